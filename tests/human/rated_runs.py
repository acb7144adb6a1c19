"""Runs with known opinions of people, for the tests of sampling and estimates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import dialeval
from dialeval.core.arrays import Floats
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.human.sample_files import Sample


def run_of(
    dialogues: int = 60, turns: int = 3, systems: Mapping[str, float] | None = None, seed: int = 1, r: float = 0.8
) -> tuple[Run, dict[str, Floats]]:
    """A run whose systems have a `judge`, and what people would say of every row; `systems`: their means."""
    rng = np.random.default_rng(seed)
    rows = dialogues * turns
    hard = np.repeat(rng.normal(size=dialogues), turns) * 0.6
    results, opinions = {}, {}
    for name, mean in (systems or {"a": 3.0, "b": 3.5}).items():
        own = rng.normal(size=rows) * 0.8
        people = mean + hard + own
        judge = r * (people - mean) + np.sqrt(1 - r * r) * rng.normal(size=rows) + 0.3
        table = [
            {"dialog_id": f"d{n // turns}", "turn": n % turns, "response": f"{name} says {n}", "context": [f"what {n}"]}
            for n in range(rows)
        ]
        made = dialeval.evaluate(table, metrics="length")[next(iter(dialeval.evaluate(table, metrics="length")))]
        results[name] = with_judge(made, judge)
        opinions[name] = people
    return Run(results, "0"), opinions


def with_judge(result: Result, values: Floats, key: str = "judge") -> Result:
    """A result with the values of one more metric."""
    extra = Estimate(
        float(values.mean()),
        float(values.std()),
        len(values),
        len(values),
        corpus=False,
        scores=values,
        level=Level.TURN,
    )
    return Result({**result.estimates, key: extra}, table=result.table)


def ratings_of(sample: Sample, opinions: Mapping[str, Floats], **more: Any) -> list[dict[str, object]]:
    """What a rater would send back."""
    return [
        {"id": row.id, "rater": "ann", "scores": {"overall": float(opinions[row.system][row.place])}, **more}
        for row in sample.responses
    ]
