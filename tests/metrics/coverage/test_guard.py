"""The warning about short hypotheses."""

from __future__ import annotations

from typing import Any

import numpy as np

import dialeval
from dialeval.metrics.coverage.guard import floors, short_hypotheses
from laws.coverage import WORLD, Row


def test_a_warning_where_short_hypotheses_dominate() -> None:
    groups = [[["a b c d e"], ["f g"]]]
    run = dialeval.evaluate([["no", "yes", "ok then"]], reference_groups=groups)
    assert len(run.warnings) == 1
    assert run.warnings[0].startswith("system: short hypotheses dominate (a median of 1 words)")
    others: list[dict[str, Any]] = [
        {"settings": {"coverage": {"aligner": "sacre"}}},
        {"metrics": "mds(aligner=nltk-bleu)"},
    ]
    for more in others:
        assert dialeval.evaluate([["no", "yes"]], reference_groups=groups, **more).warnings == ()
    assert dialeval.evaluate([["a reply of seven words or so"]], reference_groups=groups).warnings == ()


def test_floors_are_what_wrong_hypotheses_get() -> None:
    lengths = np.arange(20)
    run = dialeval.evaluate(
        [["x " * length] for length in lengths], reference_groups=[[["a"], ["b"]]] * 20, metrics="max-bleu"
    )
    items = run["system"]["max-bleu"].items
    assert items is not None
    np.testing.assert_allclose(floors(lengths, 4), items, rtol=1e-12)


def test_no_hypotheses_are_not_short() -> None:
    assert short_hypotheses("x", WORLD.columns([Row(())])[next(iter(WORLD.columns([])))], 4) is None  # type: ignore[arg-type]
