"""The ceiling: how far annotators agree."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dialeval.analysis.correlation import ceiling, one_against_others


def test_one_against_the_others_is_the_mean_over_annotators() -> None:
    random = np.random.default_rng(3)
    said = random.integers(1, 6, (30, 3)).astype(np.float64)
    expected = []
    for annotator in range(3):
        others = np.delete(said, annotator, axis=1).mean(axis=1)
        tests = (stats.pearsonr, stats.spearmanr, stats.kendalltau)
        expected.append([test(said[:, annotator], others).statistic for test in tests])
    found = one_against_others(list(said))
    assert list(found) == ["pearson", "spearman", "kendall"]
    np.testing.assert_allclose(list(found.values()), np.mean(expected, axis=0), atol=1e-12)


def test_people_who_agree() -> None:
    found = ceiling([np.array([value] * 3) for value in (1.0, 2.0, 4.0)] + [np.array([3.0]), np.array([])])
    assert found.n == 3
    assert found.annotators == (3, 3)
    assert found.alpha == pytest.approx({"nominal": 1, "ordinal": 1, "interval": 1})
    assert found.one_against_others == pytest.approx({"pearson": 1, "spearman": 1, "kendall": 1})


def test_responses_with_different_numbers_of_annotators() -> None:
    said = [np.array(values) for values in ([1.0, 2.0], [3.0, 3.0, 5.0, 4.0], [2.0, 2.0, 1.0], [5.0, 4.0, 5.0], [9.0])]
    found = ceiling(said)
    assert (found.n, found.annotators) == (4, (2, 4))
    expected = []
    for annotator in range(3):  # the fourth rated one response only
        own = [
            (values[annotator], np.delete(values, annotator).mean()) for values in said[:4] if len(values) > annotator
        ]
        expected.append([test(*zip(*own, strict=True)).statistic for test in (stats.pearsonr, stats.spearmanr)])
    assert [found.one_against_others[name] for name in ("pearson", "spearman")] == pytest.approx(
        np.mean(expected, axis=0).tolist()
    )


def test_no_second_opinion_no_ceiling() -> None:
    found = ceiling([np.array([1.0]), np.array([])])
    assert found.n == 0
    assert "two annotators" in (found.reason or "")


def test_annotators_without_variety() -> None:
    found = ceiling([np.array([1.0, 1.0])] * 4)
    assert all(map(math.isnan, [*found.alpha.values(), *found.one_against_others.values()]))
