"""Documents of the breakdown challenge made by hand, and short ways to read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval import sample_data
from dialeval.core import inputs
from dialeval.core.errors import DataError
from dialeval.core.inputs import Input
from dialeval.suites.breakdown.reading import BreakdownData, read

SAMPLE = sample_data.folder() / "breakdown"


def log(dialogue: str = "d1", *turns: tuple[int, str]) -> dict[str, Any]:
    """A dialogue whose system turns have the given labels as annotations."""
    made = [
        {"turn-index": index, "speaker": "S", "annotations": [{"breakdown": label} for label in labels]}
        for index, labels in turns or ((0, ""), (2, "OOT"), (4, "XXX"))
    ]
    return {"dialogue-id": dialogue, "turns": [*made, {"turn-index": 9, "speaker": "U", "annotations": []}]}


def labeled(dialogue: str = "d1", *entries: tuple[object, str, Any]) -> dict[str, Any]:
    made = [
        {"turn-index": index, "labels": [{"breakdown": label, "prob-O": p[0], "prob-T": p[1], "prob-X": p[2]}]}
        for index, label, p in entries or ((2, "O", (0.7, 0.2, 0.1)), (4, "X", (0.0, 0.0, 1.0)))
    ]
    return {"dialogue-id": dialogue, "turns": made}


Row = tuple[list[int], list[float]]
"""The O, T and X of a turn, and the code and probabilities of its label."""


def by_the_original(dialogue: Any, labels: Any) -> list[Row]:
    """What the challenge's eval.py takes from two parsed documents; whatever it raises is raised."""
    rows: list[Row] = []
    "folder/" + dialogue["dialogue-id"]
    for turn in dialogue["turns"]:
        if turn["speaker"] == "U" or turn["annotations"] == []:
            continue
        judged = [each["breakdown"] for each in turn["annotations"]]
        counts = [judged.count(label) for label in "OTX"]
        assert sum(counts)  # it divides by this
        label = labels["turns"][len(rows)]["labels"][0]
        probabilities = [float(label[f"prob-{name}"]) for name in "OTX"]
        code = ["O", "T", "X"].index(label["breakdown"]) if label["breakdown"] in ["O", "T", "X"] else 3
        rows.append((counts, [code, *probabilities]))
    return rows


def matrix(found: BreakdownData, need: Input = inputs.LABELS) -> Any:
    return found.systems[0].columns[need].matrix  # type: ignore[union-attr]


def problems(*arguments: Any, **more: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read(*arguments, **more)
    return [str(problem) for problem in caught.value.problems]


def write(folder: Path, name: str, content: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
