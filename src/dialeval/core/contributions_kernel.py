"""Kernel over resamples: the contributions of clusters added up.

A loop and not a matrix product: most contributions are 0, and the threads of a linear algebra library would compete
with those that share the resamples.
"""

from __future__ import annotations

from dialeval.core.kernels import kernel


@kernel
def add_up(counts, offsets, kinds, times, totals):  # type: ignore[no-untyped-def]
    """Add the contributions of every cluster to `totals` (zeros before), as often as each resample takes it.

    Cluster `k` adds `times[i]` to the kind `kinds[i]`, for i from `offsets[k]` to `offsets[k + 1]`. `counts` has a line
    per cluster and `totals` one per kind, so that the inner loop runs over all resamples.
    """
    for k in range(counts.shape[0]):
        taken = counts[k]
        for i in range(offsets[k], offsets[k + 1]):
            total, often = totals[kinds[i]], times[i]
            for r in range(taken.shape[0]):
                total[r] += taken[r] * often
