"""Print the measured tables of docs/floors.md.

    python tools/metric_tables.py [DATA]

DATA is the folder of public data sets, ../shared/data unless given; the shipped sample is always there. Word vectors
are those of wordllama (extra `vectors`), except for the sample, which has its own; `adem` needs its encoder.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dialeval
from dialeval import sample_data
from dialeval.engine.baselines import CONSTANT, GOLD, SHUFFLED, TRAIN

ANCHORS = {CONSTANT: "constant", SHUFFLED: "shuffled", TRAIN: "random line", GOLD: "gold"}
METRICS = "length,bleu-1,bleu-4,nlg-bleu-4,rouge-l,chrf,embedding-greedy,embedding-extrema,distinct-1,adem"
RATED = {
    "usr_topicalchat": "USR Topical-Chat",
    "grade_convai2": "GRADE ConvAI2",
    "grade_empathetic": "GRADE Empathetic",
    "zhao_dailydialog": "Zhao DailyDialog",
    "gupta_dailydialog": "Gupta DailyDialog",
    "humod_test": "HUMOD",
    "engage_dailydialog": "Engagement DailyDialog",
    "llmeval_dailydialog": "LLM-Eval DailyDialog",
    "dstc7_reddit": "DSTC7 Reddit",
}
RESAMPLES = 1000


def anchored(**inputs: Any) -> dialeval.Run:
    """The baselines of some inputs."""
    return dialeval.evaluate(**inputs, baselines=True, metrics="all")


def runs(data: Path) -> dict[str, dialeval.Run]:
    """A run with baselines of each data set that is there."""
    here = sample_data.folder()
    sides = {name: here / f"{name}.txt" for name in ("references", "contexts", "train")}
    found = {"sample": anchored(responses=here / "responses", vectors=here / "vectors.txt", **sides)}
    task = data / "dialog-eval" / "multiwoz"
    if task.is_dir():
        found["MultiWOZ"] = anchored(
            responses={"damd": task / "responses" / "damd.txt"},
            references=task / "test_target.txt",
            contexts=task / "test_source.txt",
            train=task / "train_source.txt.gz",
            vocabulary=task / "vocab.txt",
            vectors=task / "vectors.txt.gz",
        )
    rated = data / "ratings" / "gupta_dailydialog.jsonl.gz"
    if rated.is_file():
        found["DailyDialog"] = anchored(responses=str(rated), vectors="wordllama")
    return found


def floors_and_ceilings(found: Mapping[str, dialeval.Run]) -> list[str]:
    """A line per metric: every anchor of every data set."""
    columns = [(name, anchor) for name, run in found.items() for anchor in ANCHORS if anchor in run]
    lines = [
        "| metric | " + " | ".join(f"{name}: {ANCHORS[anchor]}" for name, anchor in columns) + " |",
        "| --- |" + " ---: |" * len(columns),
    ]
    first = next(iter(found["sample"].values()))
    for key in (key for key in found["sample"].keys_in_order if first[key].level == "turn"):
        cells = [found[name][anchor].get(key) for name, anchor in columns]
        shown = ["–" if cell is None or cell.mean != cell.mean else f"{cell.mean:.3f}" for cell in cells]
        lines.append(f"| `{key}` | {' | '.join(shown)} |")
    return lines


def agreements(data: Path) -> list[str]:
    """A line per metric: Pearson and Spearman with the overall quality of single replies."""
    sets = {name: data / "ratings" / f"{file}.jsonl.gz" for file, name in RATED.items()}
    there = {name: path for name, path in sets.items() if path.is_file()}
    found = {
        name: dialeval.measure_agreement(
            path, metrics=METRICS, vectors="wordllama", levels=["turn"], resamples=RESAMPLES, threads=2
        )
        for name, path in there.items()
    }
    lines = ["| | " + " | ".join(found) + " |", "| --- |" + " ---: |" * len(found)]
    lines.append("| rated replies | " + " | ".join(str(each.rated) for each in found.values()) + " |")
    for key in METRICS.split(","):
        cells = []
        for each in found.values():
            turn = each[key]["turn"]
            above = "" if key in each.control.not_above or key == "length" else " ^"
            cells.append("–" if turn.reason else f"{turn.pearson:.3f} / {turn.spearman:.3f}{above}")
        lines.append(f"| `{key}` | {' | '.join(cells)} |")
    people = [each.ceiling for each in found.values()]
    alphas = ["–" if one.reason else f"{one.alpha['interval']:.3f}" for one in people]
    highest = ["–" if one.reason else f"{one.highest['turn']:.3f}" for one in people]
    lines.append(f"| ceiling (Pearson) | {' | '.join(highest)} |")
    return [*lines, f"| alpha (interval) | {' | '.join(alphas)} |"]


def main() -> None:
    """Print both tables."""
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent.parent / "shared" / "data"
    print("\n".join([*floors_and_ceilings(runs(data)), ""]))
    print("\n".join(agreements(data)))


if __name__ == "__main__":
    main()
