"""Which metrics can be told apart: p by hand, groups by their law, the level by simulation."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dialeval.analysis.agreement import MetricRanking, Place, compare_pairs, correlate_metrics, rank_metrics
from dialeval.analysis.matching import RatedRows
from dialeval.core.arrays import Floats, Ints
from dialeval.stats.significance import find_homogeneous_groups, letter_display


def rated_rows(human: Floats, dialogue: Ints, **metrics: Floats) -> RatedRows:
    n = len(human)
    return RatedRows(["a"], np.zeros(n, np.int64), dialogue, human, np.zeros(n, np.bool_), metrics)


def test_p_by_hand() -> None:
    random = np.random.default_rng(1)
    values = {"rouge-l": 0.5, "chrf": 0.4, "bleu-4": 0.1}
    samples = {key: value + 0.1 * random.normal(size=200) for key, value in values.items()}
    found = rank_metrics("turn", values, samples, 30)
    raw = []
    for one, other in combinations(values, 2):
        error = np.std(samples[one] - samples[other], ddof=1) * math.sqrt(30 / 29)
        raw.append(2 * stats.t.sf(abs(values[one] - values[other]) / error, 29))
    order = np.argsort(raw)
    holm = np.maximum.accumulate([min(1.0, (3 - place) * raw[at]) for place, at in enumerate(order)])
    adjusted = list(compare_pairs(values, samples, 30).values())
    assert [adjusted[at] for at in order] == pytest.approx(holm.tolist(), rel=1e-9)
    assert [place.metric for place in found.metrics] == ["rouge-l", "chrf", "bleu-4"]
    assert found.tests == 3


PAIRS = list(combinations("abcdefg", 2))


@settings(max_examples=200)
@given(st.lists(st.sampled_from([0.01, 0.5, math.nan]), min_size=len(PAIRS), max_size=len(PAIRS)))
def test_two_metrics_share_a_letter_exactly_if_they_cannot_be_told_apart(ps: list[float]) -> None:
    different = {frozenset(pair) for pair, p in zip(PAIRS, ps, strict=True) if p < 0.05}
    letters = letter_display(find_homogeneous_groups("abcdefg", different))
    assert all(letters.values())
    ranking = MetricRanking("spearman", "turn", 0, [Place(name, 0.0, False, letters[name]) for name in "abcdefg"])
    for (one, other), p in zip(PAIRS, ps, strict=True):
        assert ranking.differ(one, other) == ranking.differ(other, one) == (p < 0.05)


def shares_found(trials: int, seed: int, turns: int = 1) -> float:
    """How often two equally good metrics are told apart; in dialogues of several turns, they err alike."""
    random, found = np.random.default_rng(seed), 0
    dialogue = np.repeat(np.arange(60 // turns), turns)
    for _ in range(trials):
        human = random.normal(size=60) + random.normal(size=60)[dialogue]
        errors = {name: random.normal(size=60) + 2 * random.normal(size=60)[dialogue] for name in ("rouge-l", "chrf")}
        rows = rated_rows(human, dialogue, **{name: human + error for name, error in errors.items()})
        annotations = [np.array([value]) for value in human]
        again = int(random.integers(1000))
        found += correlate_metrics(
            rows, annotations, "overall", levels=["turn"], resamples=100, seed=again
        ).ranking.differ(*errors)
    return found / trials


def test_equally_good_metrics_are_rarely_told_apart() -> None:
    assert shares_found(100, 3) <= 0.1


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, 3])
def test_the_level_is_kept(turns: int) -> None:
    assert 0.03 <= shares_found(2000, 4, turns) <= 0.07
