"""The figures of the gallery: every chart of a run, drawn from the shipped sample or from trials with a fixed seed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dialeval
from dialeval import sample_data
from dialeval.reports.charts import Figure

SEED = 7


def gallery_figures() -> Iterator[tuple[str, Figure]]:
    """Yield the name of each file and its figure."""
    here = sample_data.folder()
    chats = dialeval.evaluate(
        here / "responses", here / "references.txt", here / "contexts.txt", metrics="bleu-4,rouge-l,chrf,length"
    )
    yield "means", chats.plot("means", "rouge-l")
    yield "distribution", chats.plot("distribution", "rouge-l")
    yield "forest", chats.plot("forest")
    logs = dialeval.evaluate(
        {month: here / "logs" / f"{month}.jsonl" for month in ("march", "april")}, metrics="length"
    )
    yield "turns", logs.plot("turns", "length")
    trials = dialeval.evaluate(_tried(), metrics="pass-hat")
    yield "pass-k", trials.plot("pass-k")


def _tried() -> dict[str, Any]:
    """Two invented agents, four trials of each of twelve tasks."""
    random = np.random.default_rng(SEED)
    return {
        name: [
            {"dialog_id": f"task {task}", "trial": trial, "reward": float(random.random() < chance ** (1 + task % 3))}
            | {"response": "done"}
            for task in range(12)
            for trial in range(4)
        ]
        for name, chance in (("steady", 0.9), ("hasty", 0.6))
    }


def write(folder: Path) -> list[Path]:
    """Write every figure as an SVG file, and return the paths."""
    return [figure.save(folder / f"figure-{name}.svg") for name, figure in gallery_figures()]
