"""Williams' test by its formula and by simulation, the permutation test by all permutations, and the control."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

import dialeval
from analysis.test_agreement import rated
from dialeval.analysis.agreement import agree
from dialeval.analysis.matching import RatedRows
from dialeval.analysis.metric_ranking import Pair, metric_differences, permutation_ps, williams


def test_williams_by_hand() -> None:
    r1, r2, r12, n = 0.5, 0.3, 0.4, 50
    determinant = np.linalg.det([[1, r1, r2], [r1, 1, r12], [r2, r12, 1]])
    below = 2 * determinant * (n - 1) / (n - 3) + ((r1 + r2) / 2) ** 2 * (1 - r12) ** 3
    expected = (r1 - r2) * math.sqrt((n - 1) * (1 + r12) / below)
    t, p = williams(r1, r2, r12, n)
    assert t == pytest.approx(expected, rel=1e-12)
    assert p == pytest.approx(2 * stats.t.sf(abs(expected), n - 3), rel=1e-10)
    assert list(williams(r2, r1, r12, n)) == pytest.approx([-t, p])


def test_williams_has_its_size_where_nothing_differs() -> None:
    random = np.random.default_rng(5)
    rejected = 0
    for _ in range(2000):
        human = random.normal(size=60)
        one, other = human + random.normal(size=(2, 60)) * 1.5
        r = np.corrcoef([human, one, other])
        rejected += williams(r[0, 1], r[0, 2], r[1, 2], 60)[1] < 0.05
    assert 0.035 < rejected / 2000 < 0.065


def test_williams_without_an_answer() -> None:
    assert all(map(math.isnan, williams(0.5, 0.3, 0.4, 3)))
    for unknown in ((math.nan, 0.3, 0.4), (0.3, math.nan, 0.4), (0.3, 0.4, math.nan)):
        assert williams(*unknown, 30) == pytest.approx((math.nan, math.nan), nan_ok=True)
    assert not any(map(math.isnan, williams(0.5, 0.3, 0.4, 4)))
    assert williams(0.3, 0.3, 1.0, 30) == (0, 1)


def test_permutations_are_the_exact_ones_in_the_limit() -> None:
    random = np.random.default_rng(2)
    human = random.normal(size=16)
    one, other = human + random.normal(size=16), random.normal(size=16)
    clusters = np.arange(16) // 2 + 100
    x, z = (stats.zscore(side) for side in (one, other))
    observed = abs(np.corrcoef(one, human)[0, 1] - np.corrcoef(other, human)[0, 1])
    reached = []
    for swaps in product([False, True], repeat=8):
        swapped = np.array(swaps)[clusters - 100]
        a, b = np.where(swapped, z, x), np.where(swapped, x, z)
        reached.append(abs(np.corrcoef(a, human)[0, 1] - np.corrcoef(b, human)[0, 1]) >= observed - 1e-12)
    exact = np.mean(reached)
    pair = Pair(one, other, human, clusters)
    assert permutation_ps([pair], 108, 20_000, 1)[0] == pytest.approx(exact, abs=0.015)
    turned = Pair(other, one, human, clusters)
    few = Pair(one[:10], other[:10], human[:10], clusters[:10])
    alone, back, other_rows = permutation_ps([pair, turned, few], 108, 500, 1)
    assert [alone] == permutation_ps([pair], 108, 500, 1)
    assert alone == back
    assert [other_rows] == permutation_ps([few], 108, 500, 1)


def test_equal_metrics_and_constant_ones() -> None:
    human = np.arange(9.0) % 4
    same = Pair(human, 2 * human + 1, human, np.arange(9))
    constant = Pair(np.ones(9), human, human, np.arange(9))
    one, none = permutation_ps([same, constant], 9, 99, 1)
    assert one == 1
    assert math.isnan(none)
    assert permutation_ps([], 9, 99, 1) == []


def test_a_control_without_figures_flags_nobody() -> None:
    rows = [{**row, "response": f"w{number} x"} for number, row in enumerate(rated())]
    found = dialeval.agreement(rows, metrics="chrf", resamples=5)
    assert found["length"]["turn"].reason == "the metric gives the same value to every row"
    assert found["chrf"]["turn"].n == 60
    assert found.control.not_above == []


def test_metrics_that_are_better_when_lower_count_the_other_way() -> None:
    human = np.arange(50.0) % 9
    rows = RatedRows(
        ["a"], np.zeros(50, np.int64), np.arange(50), human, np.zeros(50, np.bool_),
        {"unigram-kl-div": -human + np.cos(np.arange(50)), "length": np.arange(50.0) % 2},
    )  # fmt: skip
    found = agree(rows, [np.array([value]) for value in human], "overall", resamples=10)
    assert found["unigram-kl-div"]["turn"].pearson < -0.9
    assert found.differences[0].pearson[0] > 0.9
    assert found.control.not_above == []


def test_pairs_of_too_few_points_are_not_tested() -> None:
    human = np.array([1.0, 2.0, 4.0, 3.0])
    rows = RatedRows(
        ["a"], np.zeros(4, np.int64), np.arange(4), human, np.zeros(4, np.bool_),
        {"x": np.array([1.0, 3.0, 2.0, 5.0]), "y": human**2, "z": np.array([1.0, 2.0, 0.0, np.nan])},
    )  # fmt: skip
    (found,) = metric_differences(rows, ["x", "y", "z"], "turn", 50, 1)
    assert (found.first, found.second, found.n) == ("x", "y", 4)
    assert found.pearson == pytest.approx(
        (stats.pearsonr(rows.metrics["x"], human)[0], stats.pearsonr(human**2, human)[0])
    )
