"""Breakdown labels of a judge: labels, figures, the scale, and systems left out."""

from __future__ import annotations

import numpy as np
import pytest
from tools.judge_training.breakdown_scale import breakdown_scores, score_left_out_systems

from dialeval.breakdown import evaluate_breakdown
from dialeval.core.arrays import Floats, Ints
from dialeval.judges.judge import BreakdownScale, label_shares
from dialeval.metrics.breakdown import LABELS


def turns(systems: int = 3, many: int = 60) -> tuple[Floats, Floats, Ints]:
    """Turns of systems that break down more or less often, and a head that says too much."""
    dice = np.random.default_rng(0)
    number = np.repeat(np.arange(systems), many)
    bad = dice.normal(size=systems * many) + 0.5 * number
    logs = np.stack((-bad, np.zeros_like(bad), bad), axis=1)
    true = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    said = np.exp(4 * logs) / np.exp(4 * logs).sum(axis=1, keepdims=True)
    counts = np.array([dice.multinomial(30, share) for share in true], np.float64)
    return said, counts, number


def test_figures_are_those_of_the_challenge() -> None:
    said, counts, _ = turns(1, 7)
    labels = label_shares(BreakdownScale(), said)
    found = breakdown_scores(labels, counts)
    log = [
        {
            "turn-index": at,
            "speaker": "S",
            "annotations": [{"breakdown": LABELS[code]} for code in range(3) for _ in range(int(count[code]))],
        }
        for at, count in enumerate(counts)
    ]
    given = [
        {
            "turn-index": at,
            "labels": [{"breakdown": LABELS[int(row[0])], **{f"prob-{x}": row[n + 1] for n, x in enumerate(LABELS)}}],
        }
        for at, row in enumerate(labels.tolist())
    ]
    run = evaluate_breakdown(
        [{"dialogue-id": "d", "turns": log}], [{"dialogue-id": "d", "turns": given}], baselines=False
    )
    for ours, theirs in (("jsd", "jsd-o-t-x"), ("mse", "mse-o-t-x"), ("f1-tx", "f1-tx")):
        assert found[ours] == pytest.approx(run["labels"][theirs].mean)


def test_one_system_cannot_be_left_out() -> None:
    assert score_left_out_systems(*turns(1), ["a"]) == {}
