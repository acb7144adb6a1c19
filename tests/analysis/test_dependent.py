"""Williams' test by its formula and by simulation, the permutation test by all permutations."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from dialeval.analysis.dependent import Pair, permutation_ps, williams


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
    assert all(map(math.isnan, williams(math.nan, 0.3, 0.4, 30)))
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
