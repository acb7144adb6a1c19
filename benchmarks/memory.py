"""Memory: the peak of a command that scores ten million responses of one file. Not part of `make bench`: minutes.

    python -m benchmarks memory

Ten million responses and as many references, twelve words each, drawn independently from 30,000 words: such text has
some twenty million different pairs of words, more than real text of that size.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.texts import lines

ROWS = 10_000_000
PART = 1_000_000
METRICS = ["length,distinct", "train-entropy", "kl-div", "bleu"]
PROGRAM = """
import contextlib, io, resource, sys, time
from dialeval.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9, time.process_time())
"""


def write(path: Path, rows: int, seed: int) -> None:
    """A file of made-up lines, a part at a time."""
    with path.open("w") as file:
        for part in range(0, rows, PART):
            file.write("\n".join(lines(min(PART, rows - part), seed + part // PART)) + "\n")


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    with tempfile.TemporaryDirectory() as folder:
        for seed, (name, rows) in enumerate({"responses": ROWS, "references": ROWS, "train": PART}.items()):
            write(Path(folder, f"{name}.txt"), rows, 100 * seed)
        files = {"-r": "references.txt", "--train": "train.txt"}
        given = [part for flag, name in files.items() for part in (flag, str(Path(folder, name)))]
        for metrics in METRICS:
            run = [sys.executable, "-c", PROGRAM, "score", str(Path(folder, "responses.txt")), *given, "-m", metrics]
            peak, seconds = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
            yield f"`dialeval score -m {metrics}`", f"{float(peak):.2f} GB at most, {float(seconds):.0f} CPU s"
