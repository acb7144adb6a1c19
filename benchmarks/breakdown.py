"""Breakdown detection: 100 copies of the challenge's sets, against the original's rate, and the start-up.

Uses the six sets of DBDC3 where the shared data lies beside the checkout (each copy of a dialogue under an id of its
own, bytes otherwise as published), else the shipped sample. The original, measured elsewhere on all seven sets
together, makes about 5,800 turns a CPU second.
"""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import orjson

from benchmarks.measure import command, cpu_seconds
from benchmarks.startup import MAIN, shown
from dialeval import sample_data
from dialeval.breakdown import evaluate_breakdown

SHARED = Path(__file__).parent.parent.parent / "shared" / "data" / "dbdc"
ORIGINAL = 5_800
COPIES = 100
DETECTOR = "noisy-oracle"


def unpacked(folder: Path) -> list[tuple[Path, Path]]:
    """Folders of dialogues and of labels for them."""
    if not SHARED.is_dir():
        return [(sample_data.folder() / "breakdown" / "data", sample_data.folder() / "breakdown" / "keywords")]
    found = []
    for archive in sorted(SHARED.glob("*-*.tar.gz")):
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        name = archive.name.removesuffix(".tar.gz")
        found.append((folder / name / "data", folder / name / DETECTOR))
    return found


def copied(sets: list[tuple[Path, Path]], folder: Path) -> tuple[Path, Path]:
    """All dialogues in one folder, many times over."""
    data, labels = folder / "data", folder / "labels"
    data.mkdir(parents=True)
    labels.mkdir()
    for number, (logs, outputs) in enumerate(sets):
        for path in logs.iterdir():
            content = path.read_bytes()
            dialogue = orjson.loads(content)["dialogue-id"]
            output = (outputs / f"{dialogue}.labels.json").read_bytes()
            for copy in range(COPIES):
                name = f"{number}-{copy}-{dialogue}"
                for target, text, kind in ((data, content, "log"), (labels, output, "labels")):
                    renamed = text.replace(f'"{dialogue}"'.encode(), f'"{name}"'.encode(), 1)
                    (target / f"{name}.{kind}.json").write_bytes(renamed)
    return data, labels


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    with tempfile.TemporaryDirectory() as folder:
        sets = unpacked(Path(folder, "sets"))
        small = ["-c", MAIN, "breakdown", str(sets[0][1]), "-p", str(sets[0][0])]
        yield "`dialeval breakdown` on one set of 50 dialogues", shown(command(small))
        once = [evaluate_breakdown(*each, baselines=False)[each[1].name] for each in sets]
        data, labels = copied(sets, Path(folder, "copies"))
        run = evaluate_breakdown(data, labels, baselines=False)
        turns, dialogues = run["labels"]["accuracy"].units, run.tables["labels"][0.0].dialogues
        assert turns == COPIES * sum(result["accuracy"].units for result in once)
        seconds = cpu_seconds(lambda: evaluate_breakdown(data, labels, baselines=False, threads=1))
        fast = turns / seconds
        yield (
            f"turns per CPU second, {turns:,} turns in {dialogues:,} dialogues",
            f"{fast:,.0f}, {fast / ORIGINAL:.1f} times the original's {ORIGINAL:,}",
        )
        whole = command(["-c", MAIN, "breakdown", str(labels), "-p", str(data)], 3)
        yield (
            "the whole command on these, start included",
            f"{shown(whole)}, {turns / whole.cpu / ORIGINAL:.1f} times the original's rate",
        )
