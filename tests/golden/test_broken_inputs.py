"""No input ends in a traceback: files changed in structure and in single bytes are evaluated or refused.

Whatever comes out of a public entry point is a result or a `DialevalError`. The inputs are the shipped samples.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

import dialeval
from dialeval import sample
from dialeval.breakdown import evaluate_breakdown
from dialeval.core.errors import DialevalError
from dialeval.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus
from dialeval.multiwoz import Evaluator
from dialeval.resources.embeddings import load_embeddings
from golden import mutations

pytestmark = pytest.mark.long

SAMPLE = sample.folder()
# Shrinking inputs of this size takes minutes, so that what fails is printed as it was drawn.
some = settings(
    max_examples=60,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large],
)


def ends_well(call: Callable[[], object]) -> None:
    """Call, and let nothing pass but a result or an error of our own."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except DialevalError:
        event("refused")
    else:
        event("evaluated")


def head(name: str, lines: int = 12) -> bytes:
    return b"".join((SAMPLE / name).read_bytes().splitlines(keepends=True)[:lines])


def rows() -> bytes:
    """Rows of JSON with everything that a metric can ask for."""
    texts = [head(f"{name}.txt").decode().splitlines() for name in ("responses/careful", "references", "contexts")]
    made = (
        {"response": response, "reference": reference, "context": context}
        for response, reference, context in zip(*texts, strict=True)
    )
    return "".join(f"{json.dumps(row)}\n" for row in made).encode()


RESPONSES = head("responses/careful.txt")
BESIDE = {
    "references": ("references.txt", head("references.txt")),
    "contexts": ("contexts.txt", head("contexts.txt")),
    "train": ("train.txt", head("train.txt")),
    "embeddings": ("vectors.txt", head("vectors.txt", 40)),
    "vocabulary": ("vocab.txt", b"".join(word + b"\n" for word in sorted(set(head("train.txt").split())))),
}


@given(st.data(), st.sampled_from(["responses", *BESIDE]), st.booleans())
@some
def test_lines_and_vectors(data: Any, which: str, packed: bool) -> None:
    files = {"responses": ("responses.txt", RESPONSES), **BESIDE}
    with tempfile.TemporaryDirectory() as folder:
        paths: dict[str, Any] = {}
        for key, (name, sound) in files.items():
            content = data.draw(mutations.content(sound)) if key == which else sound
            paths[key] = Path(folder, f"{name}.gz" if packed and key == which else name)
            paths[key].write_bytes(gzip.compress(content) if packed and key == which else content)
        ends_well(lambda: dialeval.evaluate(**paths))


@given(mutations.content(gzip.compress(RESPONSES)))
@some
def test_broken_archives(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "responses.txt.gz")
        path.write_bytes(content)
        ends_well(lambda: dialeval.evaluate(path))


def delimited(mark: str) -> bytes:
    table = [list(row.values()) for row in map(json.loads, rows().splitlines())]
    lines = [["response", "reference", "context"], *table]
    return "\n".join(mark.join(f'"{cell}"' for cell in line) for line in lines).encode()


def parquet() -> bytes:
    import pyarrow as pa
    from pyarrow import parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist([json.loads(line) for line in rows().splitlines()]), sink)
    return bytes(sink.getvalue())


TABLES = {"jsonl": rows(), "csv": delimited(","), "tsv": delimited("\t"), "parquet": parquet()}
CHATS = head("chats.jsonl", 3)


@pytest.mark.parametrize("kind", TABLES)
@given(data=st.data())
@some
def test_rows(kind: str, data: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"rows.{kind}")
        path.write_bytes(data.draw(mutations.content(TABLES[kind])))
        ends_well(lambda: dialeval.evaluate(path))


@given(st.one_of(mutations.content(CHATS), mutations.json_content(json.loads(CHATS.splitlines()[0]))))
@some
def test_chats(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chats.jsonl")
        path.write_bytes(content)
        ends_well(lambda: dialeval.evaluate(path))


@given(mutations.document([json.loads(line) for line in rows().splitlines()]))
@some
def test_rows_in_memory(made: Any) -> None:
    ends_well(lambda: dialeval.evaluate(made))


VECTORS = head("vectors.txt", 40)
WITH_HEADER = b"%d %d\n" % (len(VECTORS.splitlines()), len(VECTORS.splitlines()[0].split()) - 1) + VECTORS


def binary() -> bytes:
    import numpy as np

    words = [line.split() for line in VECTORS.splitlines()]
    made = b"".join(word + b" " + np.array(numbers, np.float32).tobytes() + b"\n" for word, *numbers in words)
    return WITH_HEADER.split(b"\n", 1)[0] + b"\n" + made


@given(st.data(), st.sampled_from([("v.txt", VECTORS), ("v.vec", WITH_HEADER), ("v.bin", binary())]))
@some
def test_vectors(data: Any, file: tuple[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, file[0])
        path.write_bytes(data.draw(mutations.content(file[1])))
        ends_well(lambda: load_embeddings(path))


TOWN = Evaluator(data="town", dst=True).task
PREDICTIONS = dict(list(json.loads((SAMPLE / "town/predictions/patient.json").read_text()).items())[:4])


@given(mutations.json_content(PREDICTIONS))
@some
def test_predictions(content: bytes) -> None:
    evaluator = Evaluator(data=TOWN)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "predictions.json")
        path.write_bytes(content)
        ends_well(lambda: evaluator.evaluate(path))


@given(mutations.document(PREDICTIONS), st.booleans(), st.booleans())
@some
def test_predictions_in_memory(made: Any, strict: bool, dst: bool) -> None:
    ends_well(lambda: Evaluator(data=TOWN, strict=strict, dst=dst).evaluate(made))
    ends_well(lambda: Evaluator(data=TOWN, fallback="turn").failures(made))


TASK_FILES = sorted(path.relative_to(SAMPLE / "town").as_posix() for path in (SAMPLE / "town").rglob("*.json"))
TASK_FILES = ["ontology.toml", *(name for name in TASK_FILES if not name.startswith("predictions"))]


@given(st.data(), st.sampled_from(TASK_FILES))
@some
def test_the_data_of_a_task(data: Any, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        town = Path(folder, "town")
        shutil.copytree(SAMPLE / "town", town, ignore=shutil.ignore_patterns("predictions"))
        (town / name).chmod(0o644)
        sound = (town / name).read_bytes()
        changed = mutations.json_content(json.loads(sound)) if name.endswith("json") else mutations.content(sound)
        (town / name).write_bytes(data.draw(changed))
        ends_well(lambda: Evaluator(data=town, dst=True).evaluate(PREDICTIONS))


LOGS = sorted((SAMPLE / "breakdown" / "data").iterdir())[:2]


@given(st.data(), st.sampled_from(["turn-index", "position"]), st.booleans(), st.booleans())
@some
def test_breakdown(data: Any, match: Any, lenient: bool, of_labels: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, path in enumerate(LOGS):
            sound = json.loads(path.read_bytes())
            name = f"{sound['dialogue-id']}.labels.json"
            labelled = json.loads((SAMPLE / "breakdown" / "keywords" / name).read_bytes())
            for kind, file, document in (("data", path.name, sound), ("labels", name, labelled)):
                Path(folder, kind).mkdir(exist_ok=True)
                changed = number == 0 and (kind == "labels") == of_labels
                content = data.draw(mutations.json_content(document)) if changed else json.dumps(document).encode()
                Path(folder, kind, file).write_bytes(content)
        ends_well(
            lambda: evaluate_breakdown(Path(folder, "data"), Path(folder, "labels"), match=match, lenient=lenient)
        )


HYPOTHESES = (SAMPLE / "lsdscc" / "varied.txt").read_bytes()
GROUPS = json.loads((SAMPLE / "lsdscc" / "groups.json").read_bytes())


@given(st.data(), st.booleans())
@some
def test_lsdscc(data: Any, of_groups: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        hypotheses, groups = Path(folder, "hypotheses.txt"), Path(folder, "groups.json")
        hypotheses.write_bytes(HYPOTHESES if of_groups else data.draw(mutations.content(HYPOTHESES)))
        groups.write_bytes(data.draw(mutations.json_content(GROUPS)) if of_groups else json.dumps(GROUPS).encode())
        ends_well(lambda: dialeval.evaluate(hypotheses, reference_groups=groups))
        ends_well(
            lambda: compute_score_on_corpus(
                HypothesisSet.load_corpus(hypotheses), ReferenceSet.load_json_corpus(groups)
            )
        )


@given(mutations.document([line.split("</s>") for line in HYPOTHESES.decode().splitlines()]))
@some
def test_hypotheses_in_memory_and_as_json(made: Any) -> None:
    groups = list(GROUPS.values())
    ends_well(lambda: dialeval.evaluate(made, reference_groups=[list(each.values()) for each in groups]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "hypotheses.json")
        path.write_text(json.dumps(made))
        ends_well(lambda: dialeval.evaluate(path, reference_groups=SAMPLE / "lsdscc" / "groups.json"))


@given(st.data())
@some
def test_saved_runs(data: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dialeval.evaluate(["a b", "c"], ["a b", "d"], metrics="bleu-1,length", output=folder)
        path = data.draw(st.sampled_from(sorted(path for path in Path(folder).rglob("*") if path.is_file())))
        path.write_bytes(data.draw(mutations.content(path.read_bytes())))
        ends_well(lambda: dialeval.load(folder))


NO_INPUT: tuple[Any, ...] = (None, 5, {}, [], [None], [5], b"a", [[None]])


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize("nothing", NO_INPUT, ids=repr)
def test_what_is_no_input_at_all_is_refused(nothing: Any, lenient: bool) -> None:
    data, labels = SAMPLE / "breakdown" / "data", SAMPLE / "breakdown" / "keywords"
    with pytest.raises(DialevalError):
        evaluate_breakdown(nothing, labels, lenient=lenient)
    with pytest.raises(DialevalError):
        compute_score_on_corpus(nothing, [[["a"]]])
    with pytest.raises(DialevalError):
        compute_score_on_corpus([["a"]], nothing)
    with pytest.raises(DialevalError):
        Evaluator(data=TOWN, strict=lenient).evaluate(nothing)
    with suppress(DialevalError):  # a detector without any labels, where reading is lenient
        evaluate_breakdown(data, nothing, lenient=lenient)
    with suppress(DialevalError):  # a row without a response
        dialeval.evaluate(nothing)
