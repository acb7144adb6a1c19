"""All 17 response metrics: real responses, against the plain twin, and how the cost grows.

Uses the 14,696 responses of multiwoz-large where the shared data lies beside the checkout, else the shipped sample. The
original program, measured elsewhere on those responses, makes about 390 a CPU second.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dialeval
from benchmarks.measure import command, cpu_seconds
from benchmarks.plain import Plain
from benchmarks.startup import MAIN, shown
from dialeval import sample_data
from dialeval.io.vectors import load_embeddings
from dialeval.reports.tables import METRICS_TXT

SHARED = Path(__file__).parent.parent.parent / "shared" / "data" / "dialog-eval"
ORIGINAL = 390
TWIN_ROWS = 400
COPIES = 10


def read(path: Path) -> list[str]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode().removesuffix("\n").split("\n")


def inputs() -> tuple[Path, dict[str, Any]]:
    """The folder of responses, and the other arguments of `evaluate`."""
    large, words = SHARED / "multiwoz-large", SHARED / "multiwoz"
    if large.is_dir():
        return large / "responses", {
            "references": large / "test_target.txt.gz",
            "contexts": large / "test_source.txt.gz",
            "train": words / "train_source.txt.gz",
            "vocabulary": words / "vocab.txt",
            "vectors": words / "vectors.txt.gz",
        }
    here = sample_data.folder()
    given = {name: here / f"{name}.txt" for name in ("references", "contexts", "train")}
    return here / "responses", {**given, "vocabulary": here / "train.txt", "vectors": here / "vectors.txt"}


def copied(folder: Path, responses: Path, given: dict[str, Any], copies: int) -> tuple[Path, dict[str, Any]]:
    """The same rows several times over."""
    (folder / "responses").mkdir(parents=True)
    for path in responses.iterdir():
        (folder / "responses" / f"{path.name.split('.')[0]}.txt").write_text("\n".join(read(path) * copies) + "\n")
    made = dict(given)
    for name in ("references", "contexts"):
        made[name] = folder / f"{name}.txt"
        made[name].write_text("\n".join(read(given[name]) * copies) + "\n")
    return folder / "responses", made


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    responses, given = inputs()
    systems = {path.name: read(path) for path in sorted(responses.iterdir())}
    rows = sum(map(len, systems.values()))
    name, first = next(iter(systems.items()))
    sides = [first, read(given["references"]), read(given["contexts"])]
    few = [side[:TWIN_ROWS] for side in sides]

    vectors = load_embeddings(given["vectors"])
    words = vectors.words()  # type: ignore[union-attr]
    table = dict(zip(words, np.asarray(vectors.vectors_for(words)[0]), strict=True))
    twin = Plain(read(given["train"]), [line.strip() for line in read(given["vocabulary"])], table)
    expected = twin.means(*few)
    found = dialeval.evaluate(
        few[0],
        few[1],
        few[2],
        train=given["train"],
        vectors=given["vectors"],
        metrics="dialog-eval",
        reading=dialeval.Reading(vocabulary=given["vocabulary"]),
    )
    for key, value in expected.items():
        assert abs(found["system"][key].mean - value) < 1e-9, key

    slow = len(few[0]) / cpu_seconds(lambda: twin.means(*few))
    yield f"responses per CPU second, plain twin ({len(few[0])} of {name})", f"{slow:,.0f}"
    with tempfile.TemporaryDirectory() as folder:
        times = {}
        for copies in (1, COPIES):
            many, more = copied(Path(folder, str(copies)), responses, given, copies)
            reading = dialeval.Reading(vocabulary=more.pop("vocabulary"))
            more |= {"metrics": "dialog-eval", "reading": reading, "execution": dialeval.Execution(threads=1)}
            times[copies] = cpu_seconds(lambda many=many, more=more: dialeval.evaluate(many, **more))  # type: ignore[misc]
            fast = copies * rows / times[copies]
            yield (
                f"responses per CPU second, dialeval, {copies * rows:,} responses",
                f"{fast:,.0f}, {fast / slow:.0f} times the twin, {fast / ORIGINAL:.0f} times the original's {ORIGINAL}",
            )
        yield f"cost of {COPIES} times the responses", f"{times[COPIES] / times[1]:.1f} times"
    flags = {
        "references": "-r",
        "contexts": "-c",
        "train": "--train",
        "vocabulary": "--vocabulary",
        "vectors": "--vectors",
    }
    arguments = [part for key, path in given.items() for part in (flags[key], str(path))]
    cost = command(["-c", MAIN, "score", str(responses), *arguments, "-m", ",".join(METRICS_TXT), "-f", "json"])
    yield f"the whole warm command, {rows:,} responses, all 17 metrics", shown(cost)
