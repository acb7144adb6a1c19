"""Kernel over resamples of clusters: what clusters bring, added up.

Written out instead of a product of matrices: most of what clusters bring is 0, and the threads of a linear algebra
library would wait for those that share the resamples.
"""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)
def add_up(counts, offsets, kinds, times, totals):  # type: ignore[no-untyped-def]
    """Add what every cluster brings to `totals` (zeros before), as often as each resample takes it.

    Cluster `k` brings `times[i]` of the kinds `kinds[i]`, i from `offsets[k]` to `offsets[k + 1]`. `counts` has a line
    per cluster and `totals` one per kind, so that all resamples are added to at once.
    """
    for k in range(counts.shape[0]):
        taken = counts[k]
        for i in range(offsets[k], offsets[k + 1]):
            total, often = totals[kinds[i]], times[i]
            for r in range(taken.shape[0]):
                total[r] += taken[r] * often
