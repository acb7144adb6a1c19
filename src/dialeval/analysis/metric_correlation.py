"""How metrics of one system move together: Spearman's rank correlation over its rows.

    rho(a, b) = Pearson's correlation of the ranks of a and b, equal values sharing the mean of their ranks

over the rows that both metrics could score. Two metrics that always agree say one thing twice; one that moves with
`length` may measure nothing else. NaN where fewer than three rows are left or one of the two is constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from dialeval.analysis.correlation import FEWEST_POINTS, pearson
from dialeval.core.arrays import Floats, Ints


def rank_correlations(columns: Mapping[str, Floats]) -> Floats:
    """The matrix of Spearman's correlations of all pairs of columns, 1 on its diagonal."""
    names = list(columns)
    matrix: Floats = np.eye(len(names))
    known = {name: np.isfinite(columns[name]) for name in names}
    complete = {name: ranks(columns[name]) for name in names if known[name].all()}
    for (at, one), (to, two) in combinations(enumerate(names), 2):
        if one in complete and two in complete:
            left, right = complete[one], complete[two]
        else:
            both = known[one] & known[two]
            left, right = ranks(columns[one][both]), ranks(columns[two][both])
        enough = len(left) >= FEWEST_POINTS
        matrix[at, to] = matrix[to, at] = pearson(left, right) if enough else np.nan
    return matrix


def ranks(values: Floats) -> Floats:
    """The rank of each value from 1, equal values sharing the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends: Ints = np.cumsum(counts)
    means: Floats = ends - (counts - 1) / 2
    return means[inverse.ravel()]
