"""Scale: throughput and memory from a hundred thousand to ten million responses, on one core, two, and Ray.

    python -m benchmarks scale

Not part of `make bench`: the ten million take ten minutes on quiet cores and 6 GB of disk, and
`DIALEVAL_BENCH_ROWS=100000,1000000` leaves them out. Writes `benchmarks/scale.md`.

Rows are JSONL shards of 100,000, a response and a reference of twelve words each (`texts`). Every figure is that of
the whole command, from its start to the saved run: CPU seconds of all its processes, and the largest sum of their
proportional memory (PSS), looked up once a second: looking takes time of the same cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import NamedTuple

from benchmarks.texts import lines

SIZES = [int(size) for size in os.environ.get("DIALEVAL_BENCH_ROWS", "100000,1000000,10000000").split(",")]
SHARD = 100_000
METRICS = "length,distinct,bleu"
FIXED = "length,bleu"
"""Metrics whose states do not grow."""
MAIN = "from dialeval.cli.main import main; main()"
MARK = "DIALEVAL_BENCH_MARK"
WAYS = {
    "one core": ["--jobs", "1", "-j", "1"],
    "two processes": ["--jobs", "2"],
    "two processes, --no-row-scores": ["--jobs", "2", "--no-row-scores"],
    "Ray, two cores": ["--engine", "ray"],
    "one core, without distinct": ["--jobs", "1", "-j", "1"],
    "two processes, without distinct": ["--jobs", "2"],
}
LOOKS_TO_MEMORY = 10
TARGET = Path(__file__).parent / "scale.md"


class Cost(NamedTuple):
    """What a command took."""

    wall: float
    cpu: float
    first: float
    """CPU seconds of the process that was started: what cannot be shared."""
    peak: float
    """Gigabytes of all processes together."""
    first_peak: float
    """Gigabytes of the process that was started."""


def write_shards(folder: Path, rows: int) -> None:
    """Shards that are not there yet."""
    folder.mkdir(exist_ok=True)
    for number in range(rows // SHARD):
        path = folder / f"part-{number:04}.jsonl"
        if not path.exists():
            sides = zip(lines(SHARD, 2 * number), lines(SHARD, 2 * number + 1), strict=True)
            rows_here = (
                {"dialog_id": f"{number}-{row // 5}", "response": response, "reference": reference}
                for row, (response, reference) in enumerate(sides)
            )
            path.write_text("".join(json.dumps(row) + "\n" for row in rows_here))


class Processes:
    """The processes that inherited a mark."""

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode()
        self._others: set[str] = set()
        self._ours: set[str] = set()

    def _find(self) -> None:
        for folder in Path("/proc").iterdir():
            name = folder.name
            if name.isdigit() and name not in self._others and name not in self._ours:
                with suppress(OSError):
                    ours = self._mark in (folder / "environ").read_bytes()
                    (self._ours if ours else self._others).add(name)

    def cpu(self) -> dict[int, float]:
        """CPU seconds of each that runs."""
        self._find()
        found: dict[int, float] = {}
        for name in self._ours:
            with suppress(OSError):
                times = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                found[int(name)] = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
        return found

    def memory(self) -> dict[int, int]:
        """Proportional memory of each that runs, in bytes."""
        found: dict[int, int] = {}
        for name in self._ours:
            with suppress(OSError):
                lines = Path("/proc", name, "smaps_rollup").read_text().splitlines()
                found[int(name)] = sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        return found


def measured(arguments: list[str]) -> Cost:
    """The cost of a command with everything that it starts."""
    mark = uuid.uuid4().hex
    start = time.perf_counter()
    environment = {**os.environ, MARK: mark, "RAY_AUTH_MODE": "disabled"}
    command = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    processes, looks = Processes(mark), 0
    cpu: dict[int, float] = {}
    peak = first_peak = 0.0
    while command.poll() is None:
        cpu |= processes.cpu()
        if looks % (1 if looks < LOOKS_TO_MEMORY else LOOKS_TO_MEMORY) == 0:
            now = processes.memory()
            first_peak = max(first_peak, now.get(command.pid, 0))
            peak = max(peak, sum(now.values()))
        looks += 1
        time.sleep(0.1)
    wall = time.perf_counter() - start
    assert command.stderr is not None
    if command.returncode:
        raise RuntimeError(command.stderr.read().decode())
    command.stderr.close()
    return Cost(wall, sum(cpu.values()), cpu.get(command.pid, 0.0), peak / 1e9, first_peak / 1e9)


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    costs: dict[int, dict[str, Cost]] = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("DIALEVAL_BENCH_DIR")) as name:
        for rows in SIZES:
            folder = Path(name, str(rows))
            write_shards(folder, rows)
            costs[rows] = {}
            for way, flags in WAYS.items():
                metrics = FIXED if "without distinct" in way else METRICS
                given = ["score", f"bot={folder}/*.jsonl", "-m", metrics, "-f", "json", "-o", f"{name}/out-{rows}"]
                cost = costs[rows][way] = measured([*given, "--force", *flags])
                took = f"{cost.wall:.1f} s wall, {cost.cpu:.1f} CPU s ({cost.first:.1f} in the first process)"
                rate = f"{rows / cost.cpu:,.0f} responses a CPU second, {cost.peak:.2f} GB ({cost.first_peak:.2f})"
                yield f"{rows:,} responses, {way}", f"{took}, {rate}"
            row_bytes = sum(path.stat().st_size for path in folder.iterdir()) / rows
            for path in folder.iterdir():
                path.unlink()
    TARGET.write_text(document(costs, row_bytes))
    yield "written", str(TARGET.relative_to(TARGET.parent.parent))


def document(costs: dict[int, dict[str, Cost]], row_bytes: float) -> str:
    """The page with the table and the estimate."""
    heads = [
        "responses",
        "how",
        "wall",
        "CPU",
        "in the first process",
        "responses a second, wall",
        "peak memory",
        "of the first process",
    ]
    table = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for rows, ways in costs.items():
        for way, cost in ways.items():
            table.append(
                f"| {rows:,} | {way} | {cost.wall:.1f} s | {cost.cpu:.1f} s | {cost.first:.1f} s "
                f"| {rows / cost.wall:,.0f} | {cost.peak:.2f} GB | {cost.first_peak:.2f} GB |"
            )
    return TEXT.format(
        day=date.today().isoformat(),  # noqa: DTZ011
        metrics=METRICS,
        table="\n".join(table),
        ratios="\n".join(map(ratios, costs, costs.values())),
        estimate=estimate(costs),
        storage=row_bytes * max(costs) / costs[max(costs)]["two processes"].cpu / 1e6,
    )


def ratios(rows: int, ways: dict[str, Cost]) -> str:
    """How the ways compare at one size."""
    one, two, ray = (ways[way] for way in ("one core", "two processes", "Ray, two cores"))
    fixed_one, fixed_two = (ways[f"{way}, without distinct"] for way in ("one core", "two processes"))
    return (
        f"- {rows:,} responses: two processes are {one.wall / two.wall:.2f} times as fast as one core by the clock and "
        f"take {two.cpu / one.cpu:.2f} times the CPU;\n  without distinct, whose n-grams workers have to merge, "
        f"{fixed_one.wall / fixed_two.wall:.2f} times as fast, for {fixed_two.cpu / fixed_one.cpu:.2f} times the CPU.\n"
        f"  Ray takes {ray.wall / two.wall:.2f} times the wall and {ray.cpu / two.cpu:.2f} times the CPU of two "
        "processes."
    )


def estimate(costs: dict[int, dict[str, Cost]]) -> str:
    """What a thousand million turns cost, from what the rows between the two largest sizes did."""
    if len(costs) < 2:
        return "Two sizes are needed to tell the start of a command from the cost of a row."
    fewer, more = sorted(costs)[-2:]
    page = [
        f"Between {fewer:,} and {more:,} responses, so without the start of a command, a million responses cost",
        "",
        "| how | CPU | of that in the first process | 10^9 responses: workers | first process | its share |",
        "|---|---|---|---|---|---|",
    ]
    for way, large in costs[more].items():
        small = costs[fewer][way]
        million = 1e6 / (more - fewer)
        cpu, first = (large.cpu - small.cpu) * million, (large.first - small.first) * million
        hours = (cpu - first) * 1000 / 3600
        workers = f"{hours:.1f} CPU hours, {hours / 100 * 60:.1f} minutes on 100 cores"
        thousand = (
            [workers, f"{first / 0.06:.1f} minutes", f"{first / cpu:.1%}"] if large.first < large.cpu else ["-"] * 3
        )
        page.append(f"| {way} | {cpu:.1f} s | {first:.2f} s | {' | '.join(thousand)} |")
    return "\n".join(page)


TEXT = """# From a laptop to a cluster

What `python -m benchmarks scale` printed on {day}, on two cores that other work shared; so CPU seconds are firmer than
wall, and ratios firmer than either. `dialeval score 'shards/*.jsonl' -m {metrics} -o out`, from start to saved run:
JSONL shards of 100,000 rows, response and reference of twelve words each out of 30,000. CPU and memory are those of all
processes of a command together.

{table}

Ray's figures hold its own start and its own processes. "One core" is one worker thread; where it takes more CPU than
wall, libraries below it had a second thread at work, and a second core could gain that much less.

{ratios}

## What 10^9 turns cost on 100 cores

{estimate}

Workers share what they do, and that is nearly all: they fold chunks, merge each other's counts by parts, and write the
items. The first process gives out chunks, adds up a few numbers of each and renames files. Its part grows with the
number of chunks, which is 256 up to 16 GB of input and at most 4,096 beyond, and not with the rows; so the share
above, taken between two sizes with different numbers of chunks, is too large for 10^9 responses rather than too small.

Storage must give each core about {storage:.0f} MB of JSONL a second.
"""
