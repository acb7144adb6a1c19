"""Start-up: importing, help, the first run on a machine and the runs after it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cost, command
from benchmarks.texts import lines
from dialeval import sample_data
from dialeval.reports.tables import METRICS_TXT

MAIN = "from dialeval.cli.main import main; main()"
ROWS = 1000


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    yield "start of Python alone", shown(command(["-c", "pass"]))
    yield "`import dialeval`, Python included", shown(command(["-c", "import dialeval"]))
    yield "`dialeval --help`", shown(command(["-c", MAIN, "--help"]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed, file in enumerate(("responses", "references", "contexts")):
            (folder / f"{file}.txt").write_text("\n".join(lines(ROWS, seed)) + "\n")
        alone = ["-c", MAIN, "score", str(folder / "responses.txt")]
        sides = ["-r", str(folder / "references.txt"), "-c", str(folder / "contexts.txt")]
        seventeen = ["-m", ",".join(METRICS_TXT)]
        words = [
            "--train",
            str(sample_data.folder() / "train.txt"),
            "--vectors",
            str(sample_data.folder() / "vectors.txt"),
        ]
        for what, arguments in (("responses alone", alone), ("all 17 metrics", [*alone, *sides, *words, *seventeen])):
            first = command(arguments, 1, {"DIALEVAL_CACHE": str(folder / what)})
            yield f"`dialeval score` of {ROWS:,} lines, {what}, with an empty cache", shown(first)
            yield "the same again", shown(command(arguments))


def shown(cost: Cost) -> str:
    """A cost for people."""
    return f"{1000 * cost.wall:.0f} ms wall, {1000 * cost.cpu:.0f} ms CPU"
