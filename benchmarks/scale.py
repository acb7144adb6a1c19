"""Scale: throughput and memory from a hundred thousand to ten million responses, on one core, two, and Ray.

    python -m benchmarks scale

Not part of `make bench`: the ten million take the better part of an hour and 6 GB of disk, and
`DIALEVAL_BENCH_ROWS=100000,1000000` leaves them out. Writes `benchmarks/scale.md`.

Rows are JSONL shards of 100,000, a response and a reference of twelve words each (`texts`). Every figure is that of
the whole command, from its start to the saved run: CPU seconds of all its processes, and the largest sum of their
proportional memory (PSS), looked up five times a second.
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
from datetime import date
from pathlib import Path
from typing import NamedTuple

from benchmarks.texts import lines

SIZES = [int(size) for size in os.environ.get("DIALEVAL_BENCH_ROWS", "100000,1000000,10000000").split(",")]
SHARD = 100_000
METRICS = "length,distinct,bleu"
MAIN = "from dialeval.cli.main import main; main()"
MARK = "DIALEVAL_BENCH_MARK"
WAYS = {
    "one core": ["--jobs", "1", "-j", "1"],
    "two processes": ["--jobs", "2"],
    "two processes, approximate counts": ["--jobs", "2", "--approx"],
    "Ray, two cores": ["--engine", "ray"],
}
TARGET = Path(__file__).parent / "scale.md"


class Cost(NamedTuple):
    """What a command took."""

    wall: float
    cpu: float
    first: float
    """CPU seconds of the process that was started: what cannot be shared."""
    peak: float
    """Gigabytes of all processes together."""


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


def marked(mark: bytes) -> dict[int, tuple[float, float]]:
    """CPU seconds and proportional memory of every process that inherited the mark."""
    found: dict[int, tuple[float, float]] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if mark not in (folder / "environ").read_bytes():
                continue
            times = (folder / "stat").read_text().rpartition(")")[2].split()
            memory = next(
                line for line in (folder / "smaps_rollup").read_text().splitlines() if line.startswith("Pss:")
            )
        except (OSError, StopIteration):
            continue
        found[int(folder.name)] = ((int(times[11]) + int(times[12])) / tick, 1024 * int(memory.split()[1]))
    return found


def measured(arguments: list[str]) -> Cost:
    """The cost of a command with everything that it starts."""
    mark = uuid.uuid4().hex
    start = time.perf_counter()
    environment = {**os.environ, MARK: mark, "RAY_AUTH_MODE": "disabled"}
    command = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    cpu: dict[int, float] = {}
    peak = 0.0
    while command.poll() is None:
        now = marked(mark.encode())
        cpu |= {process: seconds for process, (seconds, _) in now.items()}
        peak = max(peak, sum(memory for _, memory in now.values()))
        time.sleep(0.2)
    wall = time.perf_counter() - start
    assert command.stderr is not None
    if command.returncode:
        raise RuntimeError(command.stderr.read().decode())
    command.stderr.close()
    return Cost(wall, sum(cpu.values()), cpu.get(command.pid, 0.0), peak / 1e9)


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    costs: dict[int, dict[str, Cost]] = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("DIALEVAL_BENCH_DIR")) as name:
        for rows in SIZES:
            folder = Path(name, str(rows))
            write_shards(folder, rows)
            costs[rows] = {}
            for way, flags in WAYS.items():
                given = ["score", f"bot={folder}/*.jsonl", "-m", METRICS, "-f", "json", "-o", str(Path(name, "out"))]
                cost = costs[rows][way] = measured([*given, *flags])
                took = f"{cost.wall:.1f} s wall, {cost.cpu:.1f} CPU s ({cost.first:.1f} in the first process)"
                rate = f"{rows / cost.cpu:,.0f} responses a CPU second, {cost.peak:.2f} GB"
                yield f"{rows:,} responses, {way}", f"{took}, {rate}"
            for path in folder.iterdir():
                path.unlink()
    TARGET.write_text(document(costs))
    yield "written", str(TARGET.relative_to(TARGET.parent.parent))


def document(costs: dict[int, dict[str, Cost]]) -> str:
    """The page with the table and the estimate."""
    heads = ["responses", "how", "wall", "CPU", "in the first process", "responses a second, wall", "peak memory"]
    table = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for rows, ways in costs.items():
        for way, cost in ways.items():
            table.append(
                f"| {rows:,} | {way} | {cost.wall:.1f} s | {cost.cpu:.1f} s | {cost.first:.1f} s "
                f"| {rows / cost.wall:,.0f} | {cost.peak:.2f} GB |"
            )
    ratios = []
    for rows, ways in costs.items():
        one, two, ray = (ways[way] for way in ("one core", "two processes", "Ray, two cores"))
        ratios.append(
            f"- {rows:,}: two processes are {one.wall / two.wall:.2f} times as fast as one core by the clock and take "
            f"{two.cpu / one.cpu:.2f} times the CPU; Ray takes {ray.wall / two.wall:.2f} times the wall and "
            f"{ray.cpu / two.cpu:.2f} times the CPU of two processes."
        )
    return TEXT.format(
        day=date.today().isoformat(),  # noqa: DTZ011
        metrics=METRICS,
        table="\n".join(table),
        ratios="\n".join(ratios),
        estimate=estimate(costs),
    )


def estimate(costs: dict[int, dict[str, Cost]]) -> str:
    """What a thousand million turns cost, from the largest size measured."""
    rows = max(costs)
    exact, approx = costs[rows]["two processes"], costs[rows]["two processes, approximate counts"]
    scale = 1e9 / rows
    parts = []
    for name, cost in {"exact counts": exact, "approximate counts": approx}.items():
        shared = (cost.cpu - cost.first) * scale / 3600
        alone = cost.first * scale / 3600
        parts.append(
            f"- With {name}: {shared:.1f} CPU hours in workers, so {shared / 100 * 60:.0f} minutes on 100 cores, and "
            f"{alone:.1f} hours in the process that merges and writes, which no second core shortens."
        )
    return f"From {rows:,} responses ({METRICS}, items saved), multiplied by {scale:,.0f}:\n\n" + "\n".join(parts)


TEXT = """# From a laptop to a cluster

What `python -m benchmarks scale` printed on {day}, on two cores that other work shared; so CPU seconds are firmer than
wall, and ratios firmer than either. `dialeval score 'shards/*.jsonl' -m {metrics} -o out`, from start to saved run:
JSONL shards of 100,000 rows, response and reference of twelve words each out of 30,000. CPU and memory are those of all
processes of a command together.

{table}

Ray's figures hold its own start, about ten seconds, and its own processes.

{ratios}

## What 10^9 turns cost on 100 cores

{estimate}

The second number is what limits a large run: it is the merging of exact counts and the writing of `items.parquet`.
`--no-items` and `--approx` take most of it away; on Ray sixteen pieces are merged in the cluster before their states
come to it. Reading is not the limit as long as the storage gives each core some 50 MB a second.
"""
