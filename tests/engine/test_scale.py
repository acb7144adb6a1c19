"""Cost and memory grow with the rows and no faster; one long line is no catastrophe."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dialeval

PEAK = """
import resource, sys
import dialeval
dialeval.evaluate(sys.argv[1], sys.argv[2], train=sys.argv[2], execution=dialeval.Execution(batch_rows=4096))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_bytes(responses: Path, references: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(responses), str(references)], capture_output=True, text=True, check=True
    )
    return 1024 * int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units elsewhere")
def test_memory_per_response_is_bounded(tmp_path: Path) -> None:
    """200,000 rows more cost offsets and items and not texts: about 25 numbers of 8 bytes a row, and some air."""
    peaks = []
    for rows in (50_000, 250_000):
        paths = [tmp_path / f"{name}{rows}.txt" for name in ("responses", "references")]
        for path in paths:
            path.write_text(
                "".join(f"the {row % 97} cats and {row % 89} dogs said hello to us\n" for row in range(rows))
            )
        peaks.append(peak_bytes(*paths))
    assert (peaks[1] - peaks[0]) / 200_000 < 25 * 8 * 1.5


def seconds(responses: list[str], references: list[str]) -> float:
    start = time.process_time()
    dialeval.evaluate(responses, references, train=references, metrics="all")
    return time.process_time() - start


@pytest.mark.parametrize("words", [2_000, 200_000])
def test_one_long_line_costs_about_what_many_short_ones_do(words: int) -> None:
    text = [f"w{number * number % 1009}" for number in range(words)]
    long_ = " ".join(text)
    short = [" ".join(text[start : start + 10]) for start in range(0, words, 10)]
    seconds([long_], [long_])  # loads the kernels
    assert seconds([long_], [long_]) < 5 * seconds(short, short) + 0.2


def test_a_line_of_five_megabytes() -> None:
    line = "word " * 1_000_000
    start = time.process_time()
    run = dialeval.evaluate([line, "x" * 5_000_000], [line, "y"], train=["word x"], metrics="all")["system"]
    assert time.process_time() - start < 20
    assert run["length"].mean == 500_000.5
    assert run["bleu-4"].scores == pytest.approx([1.0, 0.0])


HIGHEST = """
def highest():
    # Not `ru_maxrss`, which a process takes over from the one that started it.
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
"""

ONE_LINE = """
import random, sys
import dialeval
HIGHEST
text = "".join(random.Random(1).choices("etaoinshrdlu", k=int(sys.argv[1])))
words = " ".join(text[start : start + 5] for start in range(0, len(text), 5))
dialeval.evaluate([words[:99]], [words[:99]], metrics="chrf")
before = highest()
dialeval.evaluate([words], [words[::-1]], metrics="chrf")
print(highest() - before)
""".replace("HIGHEST", HIGHEST)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units elsewhere")
def test_chrf_of_a_long_line_takes_memory_for_what_is_different_in_it() -> None:
    size = 1_500_000
    done = subprocess.run([sys.executable, "-c", ONE_LINE, str(size)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60 * size


PACKED = """
import sys
from dialeval.core.arrays import return_freed_arrays
return_freed_arrays()
import dialeval
HIGHEST
dialeval.evaluate(sys.argv[1], metrics="length", output=sys.argv[2])
print(highest())
""".replace("HIGHEST", HIGHEST)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units elsewhere")
def test_a_packed_file_of_any_length_is_scored_in_bounded_memory(tmp_path: Path) -> None:
    rows = 6_000_000
    with gzip.open(tmp_path / "part.txt.gz", "wb", compresslevel=1) as stream:
        for _ in range(60):
            stream.write(b"the cats sat\n" * (rows // 60))
    command = [sys.executable, "-c", PACKED, f"{tmp_path}/part*.gz", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 330_000_000
    assert dialeval.load(tmp_path / "run")["part"]["length"].units == rows
