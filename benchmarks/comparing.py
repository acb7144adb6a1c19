"""Comparing systems: whole warm commands, CPU seconds and peak memory; and the first run, with empty caches.

`BEFORE=CHECKOUT python -m benchmarks comparing` also measures another checkout of dialeval, in the same run.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from resource import RLIMIT_CPU, setrlimit

import numpy as np

from benchmarks.multiwoz import SHARED
from benchmarks.texts import lines
from dialeval import sample_data

HERE = Path(__file__).resolve().parent.parent
SYSTEMS, PAIRS, RANKED = 20, 10_000, (20, 100)
WARM = ["score", "a-1000.txt", "b-1000.txt", "-r", "r-1000.txt"]
LONGEST = 150
"""CPU seconds after which a command is stopped."""


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    checkouts = [Path(folder) for folder in filter(None, [os.environ.get("BEFORE")])] + [HERE]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for what, arguments in list_commands(place):
            measured = [measure(checkout, place, arguments) for checkout in checkouts]
            yield what, " -> ".join(measured)
        yield (
            "score, 1,000 lines with references, first run",
            " -> ".join(measure(checkout, place, WARM, first=True) for checkout in checkouts),
        )


def list_commands(place: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Write the data, and return the commands."""
    for size in (1_000, 10_000, 100_000):
        for number, name in enumerate("abr"):
            (place / f"{name}-{size}.txt").write_text("\n".join(lines(size, number)))
        yield f"score, default metrics, 2 systems x {size:,}", ["score", f"a-{size}.txt", f"b-{size}.txt"]
    for name in "ab":
        (place / f"{name}-million.txt").write_text("\n".join([(place / f"{name}-100000.txt").read_text()] * 10))
    million = ["score", "a-million.txt", "b-million.txt", "-m", "length"]
    yield "score, length, 2 systems x 1,000,000", million
    yield "the same with --no-compare", [*million, "--no-compare"]
    several = [f"s{number}.txt" for number in range(SYSTEMS)]
    for number, name in enumerate(several):
        (place / name).write_text("\n".join(lines(1_000, 20 + number)))
    run = [*several, "-r", "r-1000.txt", "-o", "RUN-many"]
    yield f"score with references, {SYSTEMS} systems x 1,000", ["score", *run]
    yield "compare, the same", ["compare", "RUN-many"]
    yield "report, the same", ["report", "RUN-many", "--save", "many.html"]
    larger = [f"l{number}.txt" for number in range(5)]
    for number, name in enumerate(larger):
        (place / name).write_text("\n".join(lines(10_000, 50 + number)))
    run = [*larger, "-r", "r-10000.txt", "-o", "RUN-large"]
    yield "score with references, 5 systems x 10,000", ["score", *run]
    yield "report, the same", ["report", "RUN-large", "--save", "large.html"]
    data = SHARED if SHARED.is_dir() else sample_data.folder() / "town"
    task = ["-i", str(data / "predictions"), "--data", str(data)]
    yield "multiwoz, all systems", ["multiwoz", *task, "-o", "RUN-multiwoz"]
    yield "compare, the same", ["compare", "RUN-multiwoz"]
    for systems in RANKED:
        write_pairs(place / f"pairs-{systems}.jsonl", systems)
        yield f"rank, {systems} systems, {PAIRS:,} pairs", ["rank", f"pairs-{systems}.jsonl"]
    yield "the same with --length --position", ["rank", f"pairs-{RANKED[-1]}.jsonl", "--length", "--position"]
    texts = lines(40_000)
    with (place / "chats.jsonl").open("w") as stream:
        for at, text in enumerate(texts):
            context = texts[at - at % 20 : at] * 2
            row = {"dialog_id": f"d{at // 20}", "turn": at % 20, "context": context, "response": text}
            stream.write(json.dumps(row) + "\n")
    megabytes = (place / "chats.jsonl").stat().st_size / 1e6
    chats = ["score", "chats.jsonl", "-m", "length", "-o", "RUN-chats"]
    yield f"score, rows that repeat contexts, {megabytes:.0f} MB, -o", chats


def write_pairs(path: Path, systems: int) -> None:
    """Write preferences of systems of different strengths."""
    rng = np.random.default_rng(systems)
    strengths, rows = rng.normal(size=systems).tolist(), []
    for at in range(PAIRS):
        one, other = rng.choice(systems, 2, replace=False).tolist()
        wins = bool(rng.random() < 1 / (1 + math.exp(strengths[other] - strengths[one])))
        better = "tie" if rng.random() < 0.15 else "a" if wins else "b"
        texts = {side: "word " * int(rng.integers(3, 20)) for side in ("response_a", "response_b")}
        rows.append({"dialog_id": f"d{at}", "a": f"s{one}", "b": f"s{other}", "better": better, **texts})
    path.write_text("\n".join(map(json.dumps, rows)))


def measure(checkout: Path, place: Path, arguments: Sequence[str], first: bool = False) -> str:
    """Return the CPU seconds and the peak memory of a command; `first`: with empty caches."""
    with tempfile.TemporaryDirectory() as cache:
        kept = Path(cache) if first else place / f"cache-{checkout.name}"
        kept.mkdir(mode=0o700, exist_ok=True)
        caches = {"DIALEVAL_CACHE": str(kept), "NUMBA_CACHE_DIR": str(kept)}  # old versions kept kernels in the second
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), **caches}
        own, usage = [name.replace("RUN", checkout.parent.name + checkout.name) for name in arguments], None
        warm = [] if first or any(kept.iterdir()) else [[*WARM, "-o", "warm"]]
        for command in (*warm, own):
            if "-o" in command:
                shutil.rmtree(place / command[-1], ignore_errors=True)
            started = subprocess.Popen(
                [sys.executable, "-m", "dialeval", *command],
                preexec_fn=lambda: setrlimit(RLIMIT_CPU, (LONGEST, LONGEST)),  # noqa: PLW1509
                cwd=place,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _, status, usage = os.wait4(started.pid, 0)
            if os.waitstatus_to_exitcode(status):
                return f"more than {LONGEST} CPU s" if os.WIFSIGNALED(status) else "failed"
        assert usage is not None
        return f"{usage.ru_utime + usage.ru_stime:.2f} CPU s, {usage.ru_maxrss / 1024:.0f} MB"
