"""Which metrics can be told apart: p by hand, groups by their law, the level by simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dialeval.analysis.agreement import correlate_metrics
from dialeval.analysis.matching import RatedRows
from dialeval.analysis.metric_ranking import (
    MetricRanking,
    NoPointsError,
    Place,
    compare_pairs,
    find_direction,
    keep_common_rows,
    list_not_above,
    make_points,
    rank_metrics,
)
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


def test_metrics_are_turned_so_that_higher_is_better() -> None:
    assert [find_direction(name, -0.3) for name in ("rouge-l", "unigram-kl-div", "length", "no such metric")] == [
        1,
        -1,
        -1,
        1,
    ]
    same = np.linspace(-0.01, 0.01, 50)
    values = {"unigram-kl-div": -0.6, "rouge-l": 0.3, "length": -0.1}
    found = rank_metrics("turn", values, {key: value + same for key, value in values.items()}, 50)
    assert [(place.metric, place.value, place.turned) for place in found.metrics] == [
        ("unigram-kl-div", 0.6, True),
        ("rouge-l", 0.3, False),
        ("length", 0.1, True),
    ]


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


def test_the_control() -> None:
    steady = np.linspace(-0.01, 0.01, 100)
    values = {"bleu-4": 0.6, "rouge-l": 0.301, "chrf": 0.1, "length": 0.3}
    samples = {
        key: value + steady * np.random.default_rng(at).permutation(100) / 50
        for at, (key, value) in enumerate(values.items())
    }
    found = rank_metrics("turn", values, samples, 40)
    assert list_not_above(found, "length") == ["rouge-l", "chrf"]
    assert list_not_above(found, "adem") == []


def test_equal_metrics_cannot_be_told_apart() -> None:
    samples = np.random.default_rng(2).normal(size=50)
    found = rank_metrics("turn", {"rouge-l": 0.5, "chrf": 0.5}, {"rouge-l": samples, "chrf": samples}, 9)
    assert not found.differ("rouge-l", "chrf")
    assert [place.groups for place in found.metrics] == ["a", "a"]
    assert rank_metrics("turn", {}, {}, 0).metrics == []
    alone = rank_metrics("turn", {"rouge-l": 0.5}, {"rouge-l": samples}, 1)
    assert (alone.metrics[0].groups, alone.tests) == ("a", 0)


def test_p_needs_two_dialogues_and_two_resamples() -> None:
    values = {"x": 0.5, "y": 0.2}
    other = np.zeros(4)

    def p_of(samples: list[float], clusters: int, values: dict[str, float] = values) -> float:
        return compare_pairs(values, {"x": np.array(samples), "y": other[: len(samples)]}, clusters)["x", "y"]

    assert math.isnan(p_of([0.1, 0.4, 0.7], 1))
    assert math.isnan(p_of([0.1, math.nan, math.nan], 9))
    assert math.isnan(p_of([math.nan], 9))
    for samples, clusters in (([0.1, math.nan, 0.5], 2), ([0.1, 0.4, 0.7], 3), ([0.3, 0.2, 0.9, 0.1], 50)):
        known = np.array(samples)[~np.isnan(samples)]
        error = known.std(ddof=1) * math.sqrt(clusters / (clusters - 1))
        assert p_of(samples, clusters) == pytest.approx(2 * stats.t.sf(0.3 / error, clusters - 1))
    assert p_of([0.3, 0.3, 0.3], 9) == 1, "no spread"
    assert p_of([0.1, 0.2, 0.6], 9, {"x": 0.2, "y": 0.2}) == 1, "no difference"


def points_of(rows: RatedRows, key: str, level: str) -> tuple[str, int] | list[list[float]]:
    """The points of a level, or why there are none and how many there were."""
    try:
        found = make_points(rows, key, level)
    except NoPointsError as error:
        return str(error), error.n
    return [found.first.tolist(), found.second.tolist(), found.clusters.tolist()]


def test_points_of_every_level() -> None:
    human, metric = np.array([1.0, 2.0, 3.0, 1.0, 4.0, 2.0]), np.array([2.0, 4.0, 8.0, 2.0, 6.0, math.nan])
    dialogue, system = np.array([0, 0, 1, 2, 3, 3]), np.array([0, 0, 0, 1, 2, 2])
    rows = RatedRows(["a", "b", "c"], system, dialogue, human, np.zeros(6, np.bool_), {"m": metric})
    turns = [[0.125, 0.25, 0.5, 0.125, 0.375], [0.125, 0.25, 0.375, 0.125, 0.5], [0, 0, 1, 2, 3]]
    assert points_of(rows, "m", "turn") == turns
    assert points_of(rows, "m", "dialogue") == [
        [0.1875, 0.5, 0.125, 0.375],
        [0.1875, 0.375, 0.125, 0.5],
        [0, 1, 2, 3],
    ]
    means = make_points(rows, "m", "system")
    assert means.first.tolist() == pytest.approx([0.875 / 3, 0.125, 0.375])
    assert means.second.tolist() == [0.25, 0.125, 0.5]
    assert means.clusters.tolist() == [0, 1, 2], "systems are what is drawn"
    assert points_of(replace(rows, system=np.array([0, 0, 0, 1, -1, -1])), "m", "system") == (
        "2 systems cannot be correlated; 3 can",
        2,
    )
    assert points_of(replace(rows, system=np.zeros(6, np.int64)), "m", "system") == (
        "1 system cannot be correlated; 3 can",
        1,
    )
    assert points_of(replace(rows, system=np.full(6, -1)), "m", "system") == ("no rated row names its system", 0)
    assert points_of(replace(rows, whole=np.ones(6, np.bool_)), "m", "turn") == (
        "whole dialogues were rated and not turns",
        0,
    )
    assert points_of(replace(rows, of_dialogues=frozenset({"m"})), "m", "turn") == ("scores dialogues, not turns", 0)
    nothing = replace(rows, metrics={"m": np.full(6, math.nan)})
    assert points_of(nothing, "m", "dialogue") == ("no rated row could be scored", 0)
    assert points_of(replace(rows, human=np.full(6, math.nan)), "m", "dialogue") == ("no row has both values", 0)
    flat = replace(rows, metrics={"m": np.full(6, 2.0)})
    assert points_of(flat, "m", "turn") == ("the metric gives the same value to every row", 6)
    assert points_of(replace(rows, human=np.full(6, 2.0)), "m", "turn") == ("all human scores are the same", 5)
    rounded = replace(rows, metrics={"m": np.array([0.3, 0.1 + 0.2, 0.3, 0.3, 0.3, 0.3])})
    assert points_of(rounded, "m", "turn") == ("one of the two is constant (up to rounding)", 6)


def test_common_rows_are_those_that_all_metrics_score() -> None:
    def column(*missing: int) -> Floats:
        values = np.arange(12.0)
        values[list(missing)] = math.nan
        return values

    human = column(11)
    rows = rated_rows(human, np.arange(12), a=column(0), b=column(1, 2), c=column(3), d=column(0), e=column())
    found, left_out, sentences = keep_common_rows(rows)
    assert left_out == {}
    common = [4, 5, 6, 7, 8, 9, 10]
    assert all(np.flatnonzero(~np.isnan(values)).tolist() == common for values in found.metrics.values())
    assert sentences == [
        (
            "4 of 11 rated rows are left out, so that all metrics have the same: "
            "b cannot score 2, a cannot score 1, c cannot score 1 and 1 more"
        )
    ]
    three = rated_rows(human, np.arange(12), a=column(0), b=column(1, 2), c=column(3))
    assert keep_common_rows(three)[2] == [
        (
            "4 of 11 rated rows are left out, so that all metrics have the same: "
            "b cannot score 2, a cannot score 1, c cannot score 1"
        )
    ]
    assert keep_common_rows(rated_rows(human, np.arange(12), a=column(), b=column(11)))[2] == []


@pytest.mark.parametrize(("scored", "kept"), [(3, True), (2, False)])
def test_a_metric_must_leave_a_quarter_of_the_rows(scored: int, kept: bool) -> None:
    few = np.where(np.arange(12) < scored, 1.0, math.nan)
    rows = rated_rows(np.arange(12.0), np.arange(12), few=few, all=np.arange(12.0), none=np.full(12, math.nan))
    found, left_out, sentences = keep_common_rows(rows)
    left = int((~np.isnan(found.metrics["all"])).sum())
    if kept:
        assert (left, left_out) == (3, {})
        assert sentences == ["9 of 12 rated rows are left out, so that all metrics have the same: few cannot score 9"]
    else:
        reason = "is left out, since it scores 2 of 12 rated rows, and only 2 of those that the other metrics score"
        assert (left, left_out, sentences) == (12, {"few": reason}, [f"few {reason}"])
        assert np.isnan(found.metrics["few"]).all()


def test_the_metric_that_scores_most_rows_comes_first() -> None:
    few, many = (np.where(part, 1.0, math.nan) for part in (np.arange(12) >= 8, np.arange(12) < 10))
    for metrics in ({"few": few, "many": many}, {"many": many, "few": few}):
        found, left_out, _ = keep_common_rows(rated_rows(np.arange(12.0), np.arange(12), **metrics))
        assert list(left_out) == ["few"]
        assert np.flatnonzero(~np.isnan(found.metrics["many"])).tolist() == list(range(10))


def test_a_metric_as_good_as_the_control_is_not_above_it() -> None:
    places = [Place("x", 0.5, False, "a"), Place("length", 0.3, False, "b"), Place("y", 0.3, False, "a")]
    ranking = MetricRanking("spearman", "turn", 3, [*places, Place("z", 0.2, False, "c")])
    assert list_not_above(ranking, "length") == ["z"]
    assert ranking.differ("x", "length")
    assert not ranking.differ("x", "y")
    assert not ranking.differ("x", "nobody")


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
