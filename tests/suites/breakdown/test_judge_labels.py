"""Breakdown labels of a judge: labels, figures, the scale, and systems left out."""

from __future__ import annotations

import numpy as np
import pytest
from tools.judge_training.breakdown_scale import breakdown_scores, fit_breakdown_scale, score_left_out_systems

from dialeval.breakdown import evaluate_breakdown
from dialeval.core.arrays import Floats, Ints
from dialeval.judges.judge import BreakdownScale, label_shares, shrink_shares
from dialeval.metrics.breakdown import LABELS


def test_shares_go_towards_the_mean() -> None:
    said = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [np.nan] * 3])
    np.testing.assert_allclose(shrink_shares(BreakdownScale(), said), said)
    mean = (0.2, 0.3, 0.5)
    np.testing.assert_allclose(shrink_shares(BreakdownScale(0.0, mean), said)[:2], [mean, mean])
    expected = said**0.25 * np.array(mean) ** 0.75
    found = shrink_shares(BreakdownScale(0.25, mean), said)
    np.testing.assert_allclose(found, expected / expected.sum(axis=1, keepdims=True))


def test_a_label_is_o_below_the_cut_and_else_the_larger_one() -> None:
    shares = np.array([[0.7, 0.2, 0.1], [0.4, 0.35, 0.25], [0.4, 0.25, 0.35], [np.nan] * 3])
    codes = label_shares(BreakdownScale(cut=0.5), shares)[:, 0]
    np.testing.assert_array_equal(codes, [0, 1, 2, np.nan])
    np.testing.assert_array_equal(label_shares(BreakdownScale(cut=0.7), shares)[:3, 0], [0, 0, 0])
    said = np.array([[0.2, 0.5, 0.3], [0.2, 0.3, 0.5]])
    scale = BreakdownScale(0.1, (0.2, 0.5, 0.3))
    found = shrink_shares(scale, said)
    assert (found[:, 1] > found[:, 2]).all()
    np.testing.assert_array_equal(label_shares(scale, found)[:, 0], [1, 2])


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


def test_a_head_that_says_too_much_counts_less_and_helps_every_system() -> None:
    said, counts, systems = turns()
    scale = fit_breakdown_scale(said, counts, systems)
    assert 0.1 <= scale.weight <= 0.5
    assert sum(scale.mean) == pytest.approx(1)
    table = score_left_out_systems(said, counts, systems, ["a", "b", "c"])
    assert list(table) == ["a", "b", "c"]
    for found in table.values():
        ours, mean, always = found["judge"], found["floor/mean-of-development-set"], found["floor/always-X"]
        assert ours["jsd"] < mean["jsd"]
        assert ours["mse"] < mean["mse"]
        assert ours["f1-tx"] > always["f1-tx"]
        assert {"ceiling/annotator", "ceiling/oracle"} <= set(found)


def test_one_system_cannot_be_left_out() -> None:
    assert score_left_out_systems(*turns(1), ["a"]) == {}
