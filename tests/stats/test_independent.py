"""Independent samples: spreads of means and of corpus values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dialeval.stats.independent import ClusterSums, Spread
from dialeval.stats.resampling import Influence


def test_resamples_know_the_error_of_the_mean() -> None:
    """The influences of clusters of equal size have the jackknife's error, which is that of Student."""
    sums = np.random.default_rng(3).normal(5, 2, 12)
    clusters = ClusterSums(sums, np.ones(12))
    drawn = clusters.resample(50, 1)
    assert drawn.influence.error == pytest.approx(sums.std(ddof=1) / math.sqrt(12))
    assert drawn.influence.error**2 == pytest.approx(clusters.spread.variance)
    assert (len(drawn.values), drawn.influence.value) == (50, clusters.mean)


def test_degrees_of_freedom_are_those_of_equal_clusters() -> None:
    """Kish's effective number of clusters less one, whether units are clusters or groups of them."""
    weights = np.array([1.0, 1.0, 2.0, 4.0])
    influence = Influence(0.5, np.array([0.1, -0.2, 0.3, -0.2]), weights)
    effective = 8**2 / (1 + 1 + 4 + 16)
    assert Spread.of_influence(influence, 4).freedom == pytest.approx(effective - 1)
    assert Spread.of_influence(influence, 40).freedom == pytest.approx(10 * effective - 1)
    assert Spread.of_influence(influence, 4).variance == pytest.approx(influence.error**2)
    counts = np.array([1.0, 1.0, 2.0, 4.0])
    assert Spread.of(np.array([0.1, -0.2, 0.3, -0.2]), counts).freedom == pytest.approx(effective - 1)
