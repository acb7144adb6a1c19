"""Time against size: from a hundred lines to ten million, against what a user would pick instead.

    python -m benchmarks sizes

Not part of `make bench`: ten million lines take a quarter of an hour and 3 GB of disk;
`DIALEVAL_SIZES=100,1000,10000` leaves them out. Writes `benchmarks/sizes.csv`, `sizes.svg` and `sizes.md`.

Each figure is the CPU seconds of a whole process, from its start to the printed value: `dialeval score` on one
thread, and a script of a few lines that calls the library (`alternatives`). Values must be equal. A program is not
given ten times the lines where that would take it more than a minute or so. A library that is not installed is named
and left out; `pip install -e '.[bench]'` has them all.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from itertools import cycle, islice
from pathlib import Path

from benchmarks import responses
from benchmarks.alternatives import PROGRAMS, missing, read
from benchmarks.loglog import drawing
from benchmarks.measure import command
from benchmarks.startup import MAIN
from benchmarks.texts import written_lines
from dialeval.reports.tables import METRICS_TXT

SIZES = [int(size) for size in os.environ.get("DIALEVAL_SIZES", "100,1000,10000,100000,1000000,10000000").split(",")]
BLOCK = 100_000
"""Lines that differ; larger files repeat them."""
FEW = 1_000
"""Lines up to which the fastest of three runs counts."""
LIMIT = 60
"""CPU seconds that ten times the lines may take."""
OURS = "dialeval"
METRICS = {
    "BLEU": "bleu(per=corpus,tokeniser=13a)",
    "sentence BLEU": "bleu-4",
    "ROUGE-L": "rouge-score-l",
    "chrF": "chrf(per=corpus)",
}
MOST = {"17 metrics": 1_000_000}
"""Lines at most: ten million of these take several minutes."""
FOLDER = Path(__file__).parent
Row = tuple[str, str, int, float]
"""What was measured, the program, lines, CPU seconds."""


class Files:
    """Responses and references of each size; those of the 17 metrics are real ones where the shared data lies."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        block = [written_lines(min(BLOCK, max(SIZES)), seed) for seed in (1, 2)]
        pairs = zip(*block, strict=True)  # half of each reference is its response's, so that there is something to find
        there = [f"{one[: len(one) // 2]}{other[len(other) // 2 :]}" for one, other in pairs]
        self._made = {False: (block[0], there)}
        said, given = responses.inputs()
        first = responses.read(min(said.iterdir()))
        self._made[True] = (first, responses.read(given["references"]))

    def of(self, what: str, size: int) -> list[str]:
        """The paths of responses and of references."""
        real = what == "17 metrics"
        paths = [self.folder / f"{name}-{'real' if real else 'made'}-{size}.txt" for name in ("here", "there")]
        for path, lines in zip(paths, self._made[real], strict=True):
            if not path.exists():
                with path.open("w") as file:
                    file.writelines(f"{line}\n" for line in islice(cycle(lines), size))
        return list(map(str, paths))


def ours(what: str, paths: Sequence[str]) -> list[str]:
    """Our command."""
    flags = ["-m", METRICS.get(what, ",".join(METRICS_TXT)), "-f", "json", "-j", "1"]
    if what not in METRICS:
        _, given = responses.inputs()
        flags += ["-c", paths[1], "--train", str(given["train"]), "--vocabulary", str(given["vocabulary"])]
        flags += ["--vectors", str(given["vectors"])]
    return ["-c", MAIN, "score", paths[0], "-r", paths[1], *flags]


def value_of(arguments: Sequence[str], what: str) -> float:
    """What a program prints."""
    out = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout
    if "score" not in arguments:
        return float(out)
    (figures,) = json.loads(out)["systems"].values()
    return float(figures["metrics"][METRICS.get(what, "bleu-4")]["mean"])


def series(what: str, program: str, files: Files) -> Iterator[Row]:
    """The costs of a program from the fewest lines on, which show what its start takes."""
    start = 0.0
    for size in SIZES:
        if size > MOST.get(what, size):
            return
        paths = files.of(what, size)
        mine = ours(what, paths)
        arguments = mine if program == OURS else ["-m", "benchmarks.alternatives", program, what, *paths]
        if size == SIZES[0]:
            first, second = value_of(mine, what), value_of(arguments, what)
            assert math.isclose(first, second, rel_tol=1e-6), (what, program, first, second)
        cost = command(arguments, 3 if size <= FEW else 1).cpu
        yield what, program, size, cost
        start = cost if size == SIZES[0] else start
        if program != OURS and start + 10 * (cost - start) > LIMIT:
            return


def table(rows: Sequence[Row]) -> str:
    """CPU seconds by size, and how often ours go into theirs."""
    by_line: dict[tuple[str, str], dict[int, float]] = {}
    for what, program, size, cost in rows:
        by_line.setdefault((what, program), {})[size] = cost
    sizes = sorted({size for _, _, size, _ in rows})
    lines = ["| what | program |" + "".join(f" {size:,} |" for size in sizes), "|---|---|" + "---|" * len(sizes)]
    for (what, program), costs in by_line.items():
        mine = by_line[what, OURS]
        cells = []
        for size in sizes:
            times = f" ({costs[size] / mine[size]:.1f} times)" if size in costs and program != OURS else ""
            cells.append(f" {_seconds(costs[size])}{times} |" if size in costs else " |")
        lines.append(f"| {what} | {program} |" + "".join(cells))
    return "\n".join(lines)


def _seconds(cost: float) -> str:
    return f"{cost:.2f} s" if cost < 10 else f"{cost:.0f} s"


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        files = Files(Path(folder))
        for what, programs in PROGRAMS.items():
            for program in (OURS, *programs):
                if program != OURS and missing(program):
                    yield program, "not installed, left out"
                    continue
                for row in series(what, program, files):
                    rows.append(row)
                    yield f"{what}, {program}, {row[2]:,} lines", f"{row[3]:.2f} CPU s"
    with (FOLDER / "sizes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("what", "program", "lines", "cpu_seconds"), *rows])
    write_page(rows)
    yield "written", "benchmarks/sizes.csv, sizes.svg, sizes.md"


def write_page(rows: Sequence[Row], note: str = "") -> None:
    """The plot and the page, from the rows; `note` says what was special this time."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for what, program, size, cost in rows:
        panels.setdefault(what, {}).setdefault(program, []).append((size, cost))
    (FOLDER / "sizes.svg").write_text(drawing(panels, "lines", "CPU seconds"))
    day = f"{datetime.now(tz=timezone.utc):%Y-%m-%d}"
    page = TEXT.format(day=day, table=table(rows), note=note and f"\n\n{note}")
    (FOLDER / "sizes.md").write_text(page)


def written_rows() -> list[Row]:
    """The rows of the last time."""
    _, *lines = csv.reader(read(str(FOLDER / "sizes.csv")))
    return [(what, program, int(size), float(cost)) for what, program, size, cost in lines]


TEXT = """# Time against size

What `python -m benchmarks sizes` measured on {day}, on two cores that other work shared: CPU seconds of whole
processes, start-up included, from two files of lines to a printed value. `dialeval score` runs on one thread; of the
others each is the few lines of Python by which one calls the library (`benchmarks/alternatives.py`). All print the same
values. Figures up to 1,000 lines are the fastest of three runs, the others those of one. A line ends where ten times as
many would have taken too long.{note}

![CPU seconds against lines, both logarithmic, in five panels](sizes.svg)

{table}

BLEU is that of the corpus with sacreBLEU's defaults, sentence BLEU the mean of nltk's with smoothing method 4, ROUGE-L
the mean F1 of rouge-score, chrF that of the corpus with sacreBLEU's defaults; lines are made up, about twelve words
with punctuation each. The 17 metrics are those of dialog-eval on responses of MultiWOZ, against plain Python with NumPy
and nltk (`benchmarks/plain.py`), which is about as fast as the original.
"""
