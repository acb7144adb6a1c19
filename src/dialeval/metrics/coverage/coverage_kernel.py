"""Kernels: every hypothesis of a query against every group of its references.

`add_one`, `weighted` and `cosines` turn counts and vectors into scores, `best_groups` finds the group of each
hypothesis.

Scores are computed exactly as in the originals: the same logarithms, added up in the same order. Two groups may be
equally good on paper, 6 * 1 = 3 * 2 matches, and only rounding decides which one is taken.

Texts, groups and queries are laid out as in `comparison`. Kernels allocate nothing; scratch comes from the caller.
"""

from __future__ import annotations

import math

import numpy as np

from dialeval.core.kernels import kernel

NO_GROUP = -1
"""The group of a hypothesis that landed in none."""
UNDEFINED = -2
"""The group of a hypothesis that could not be compared with every group."""

_FREE_ORDER = {"reassoc", "contract"}


@kernel
def add_one(matches, lengths, counts, closest, n, scores):  # type: ignore[no-untyped-def]
    """Fill `scores` with the geometric mean of (matches + 1) / (n-grams + 1) over the orders up to n.

    `lengths` and `counts`, the number of pairs, are those of the hypotheses. NaN for a group without a reference.
    """
    weight = 1.0 / n
    pair = 0
    for text in range(counts.shape[0]):
        for _ in range(counts[text]):
            total = 0.0
            for order in range(n):
                total += weight * math.log((matches[pair, order] + 1.0) / (max(lengths[text] - order, 0) + 1.0))
            scores[pair] = math.exp(total) if closest[pair] >= 0 else math.nan
            pair += 1


@kernel
def _sum(terms, size, partials):  # type: ignore[no-untyped-def]
    """The sum of some terms, rounded once, as `math.fsum` gives it."""
    count = 0
    for k in range(size):
        x = terms[k]
        used = 0
        for j in range(count):
            y = partials[j]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                partials[used] = low
                used += 1
            x = high
        partials[used] = x
        count = used + 1
    if count == 0:
        return 0.0
    count -= 1
    high = partials[count]
    low = 0.0
    while count > 0:
        count -= 1
        x = high
        y = partials[count]
        high = x + y
        low = y - (high - x)
        if low != 0.0:
            break
    # Half way between two floats, what lies below decides.
    if count > 0 and ((low < 0.0 and partials[count - 1] < 0.0) or (low > 0.0 and partials[count - 1] > 0.0)):
        y = 2.0 * low
        x = high + y
        if y == x - high:
            high = x
    return high


@kernel
def weighted(smoothed, matches, lengths, counts, closest, terms, partials, scores):  # type: ignore[no-untyped-def]
    """Fill `scores` with BLEU as nltk makes it of smoothed precisions, equal weights for all their orders.

    `terms` and `partials` are scratch for one number an order. A NaN among the precisions is a NaN of the score.
    """
    orders = smoothed.shape[1]
    weight = 1.0 / orders
    pair = 0
    for text in range(counts.shape[0]):
        length = lengths[text]
        for _ in range(counts[text]):
            if closest[pair] < 0:
                scores[pair] = math.nan
            elif matches[pair, 0] == 0:
                scores[pair] = 0.0
            else:
                size = 0
                undefined = False
                for order in range(orders):
                    if smoothed[pair, order] > 0.0:
                        terms[size] = weight * math.log(smoothed[pair, order])
                        size += 1
                    undefined |= math.isnan(smoothed[pair, order])
                penalty = 1.0 if length > closest[pair] else math.exp(1.0 - closest[pair] / length)
                scores[pair] = math.nan if undefined else penalty * math.exp(_sum(terms, size, partials))
            pair += 1


@kernel(fastmath=_FREE_ORDER)
def cosines(vectors, lists, reference_vectors, groups, group_lists, scores):  # type: ignore[no-untyped-def]
    """Fill `scores` with the largest cosine of a hypothesis and a reference of the group; vectors have length 1 or 0.

    A reference whose vector is 0 is passed over; a pair that leaves nothing to be compared is NaN.
    """
    size = vectors.shape[1]
    pair = 0
    for query in range(lists.shape[0] - 1):
        for text in range(lists[query], lists[query + 1]):
            for group in range(group_lists[query], group_lists[query + 1]):
                best = math.nan
                for reference in range(groups[group], groups[group + 1]):
                    product = 0.0
                    left = 0.0
                    right = 0.0
                    for k in range(size):
                        a = vectors[text, k]
                        b = reference_vectors[reference, k]
                        product += a * b
                        left += a * a
                        right += b * b
                    if left > 0.0 and right > 0.0 and not best >= product:
                        best = product
                scores[pair] = best
                pair += 1


@kernel
def best_groups(scores, counts, lands, best, best_scores):  # type: ignore[no-untyped-def]
    """Fill `best` with the group of each hypothesis, counted within its query, and `best_scores` with its score.

    Of equal groups it is the first. Where not every hypothesis `lands`, one without a score above 0 is in `NO_GROUP`.
    """
    pair = 0
    for text in range(counts.shape[0]):
        found = UNDEFINED
        highest = -np.inf
        undefined = counts[text] == 0
        for group in range(counts[text]):
            if math.isnan(scores[pair]):
                undefined = True
            elif scores[pair] > highest:
                found = group
                highest = scores[pair]
            pair += 1
        if undefined:
            best[text] = UNDEFINED
            best_scores[text] = math.nan
        else:
            best[text] = found if lands or highest > 0.0 else NO_GROUP
            best_scores[text] = highest
