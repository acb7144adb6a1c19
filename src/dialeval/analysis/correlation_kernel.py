"""Kernel: Spearman's rho and Kendall's tau-b of many resamples, each in one walk along the sorted first column.

A resample takes point `i` as often as its cluster is drawn, which makes it a weight; a point that is drawn twice is
tied with itself, as it would be if it stood there twice. Points come sorted by the first column, in groups of equal
values; values of the second column are numbered upwards from 0. Ranks are midranks. Pairs are counted by a Fenwick tree
over the second column (Knight 1966 does it by merge sort): it holds the points of smaller first value.

Scratch comes from the caller: `weights` per point, `tree`, `level_weights` and `level_ranks` per value of the second
column.
"""

from __future__ import annotations

import numpy as np

from dialeval.core.kernels import kernel


@kernel
def _tally(counts, clusters, levels, weights, tree, level_weights):  # type: ignore[no-untyped-def]
    """Weights of points and of values of the second column; gives the sum."""
    for level in range(level_weights.shape[0]):
        tree[level] = level_weights[level] = 0
    total = 0
    for point in range(clusters.shape[0]):
        weight = counts[clusters[point]]
        weights[point] = weight
        level_weights[levels[point]] += weight
        total += weight
    return total


@kernel
def _ranked(total, level_weights, level_ranks):  # type: ignore[no-untyped-def]
    """Midranks of the values of the second column, less their mean; gives the sum of squares and the tied pairs."""
    below = ties = 0
    squares = 0.0
    for level in range(level_weights.shape[0]):
        weight = level_weights[level]
        rank = below + 0.5 * (weight - total)  # the midrank less (total + 1) / 2
        level_ranks[level] = rank
        squares += weight * rank * rank
        ties += weight * (weight - 1) // 2
        below += weight
    return squares, ties


@kernel
def _order(start, stop, levels, weights, tree, level_weights, taken):  # type: ignore[no-untyped-def]
    """Concordant less discordant pairs of the points of one group with all points before; then takes the group in."""
    size = tree.shape[0]  # place 0 is not used, and nothing lies above the last value
    score = 0
    for point in range(start, stop):
        weight = weights[point]
        if weight == 0:
            continue
        below = 0
        place = levels[point]  # 1-based: everything up to the value before this one
        while place > 0:
            below += tree[place]
            place -= place & -place
        score += weight * (2 * below + level_weights[levels[point]] - taken)
    for point in range(start, stop):
        weight = weights[point]
        if weight == 0:
            continue
        level_weights[levels[point]] += weight
        place = levels[point] + 1
        while place < size:
            tree[place] += weight
            place += place & -place
    return score


@kernel
def rank_correlations(counts, clusters, groups, levels, weights, tree, level_weights, level_ranks, rho, tau):  # type: ignore[no-untyped-def]
    """Fill `rho` and `tau` with a value per resample, a row of `counts` each; NaN where a column is constant.

    Group `g` of the first column is the points `groups[g]` to `groups[g + 1]`.
    """
    for resample in range(counts.shape[0]):
        total = _tally(counts[resample], clusters, levels, weights, tree, level_weights)
        second, second_ties = _ranked(total, level_weights, level_ranks)
        for level in range(level_weights.shape[0]):
            level_weights[level] = 0  # from here on: of the points that were taken in
        first = product = 0.0
        below = first_ties = score = 0
        for group in range(groups.shape[0] - 1):
            start, stop = groups[group], groups[group + 1]
            weight = 0
            ranks = 0.0
            for point in range(start, stop):
                weight += weights[point]
                ranks += weights[point] * level_ranks[levels[point]]
            if weight == 0:
                continue
            rank = below + 0.5 * (weight - total)
            first += weight * rank * rank
            product += rank * ranks
            first_ties += weight * (weight - 1) // 2
            score += _order(start, stop, levels, weights, tree, level_weights, below)
            below += weight
        pairs = total * (total - 1) // 2
        free = float(pairs - first_ties) * float(pairs - second_ties)
        rho[resample] = product / np.sqrt(first * second) if first * second > 0 else np.nan
        tau[resample] = score / np.sqrt(free) if free > 0 else np.nan
