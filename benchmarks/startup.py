"""Start-up: importing, help, the first run on a machine and the runs after it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Cost, command
from benchmarks.texts import lines

MAIN = "from dialeval.cli.main import main; main()"


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    nothing = command(["-c", "pass"])
    yield "start of Python alone", shown(nothing)
    yield "`import dialeval`", f"{shown(command(['-c', 'import dialeval']))}, Python included"
    yield "`dialeval --help`", shown(command(["-c", MAIN, "--help"]))
    with tempfile.TemporaryDirectory() as folder:
        responses = Path(folder, "responses.txt")
        responses.write_text("\n".join(lines(1000)) + "\n")
        score = ["-c", MAIN, "score", str(responses)]
        cold = command(score, 1, {"NUMBA_CACHE_DIR": str(Path(folder, "kernels"))})
        warm = command(score)
        yield "`dialeval score` of 1,000 lines, kernels compiled for the first time", shown(cold)
        yield "the same again, kernels cached", shown(warm)
        yield "compiling all kernels it needs", f"{cold.cpu - warm.cpu:.1f} CPU s"


def shown(cost: Cost) -> str:
    return f"{1000 * cost.wall:.0f} ms wall, {1000 * cost.cpu:.0f} ms CPU"
