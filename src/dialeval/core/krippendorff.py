"""Krippendorff's alpha: how far annotators agree beyond chance.

    alpha = 1 - (n - 1) * sum_ck o_ck d_ck / sum_ck n_c n_k d_ck

over the coincidences o_ck of two values in one unit (a turn, a reply), the totals n_c of values, and a distance d_ck:
1 between any two values (nominal), the number of values between them, squared (ordinal), or their squared difference
(interval). Units with fewer than two annotators say nothing about agreement and are left out; any others may have any
number of them.

Paper: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability". The package `krippendorff` computes the same and
is the oracle of the tests; as a dependency of every installation it would cost more than these lines.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError

Distance = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(counts: Floats, distance: Distance = "nominal", values: Floats | None = None) -> float:
    """Return the agreement of annotators: 1 if they always agree, 0 if by chance; NaN where chance leaves no choice.

    `counts`: how many annotators gave each value, a row per unit, in ascending order of the values; `values`: what the
    values are, for the interval distance (else 0, 1, 2, ...).
    """
    units = counts[counts.sum(axis=1) >= 2]
    sizes = units.sum(axis=1)
    together = (units / (sizes - 1)[:, None]).T @ units - np.diag((units / (sizes - 1)[:, None]).sum(axis=0))
    totals = units.sum(axis=0)
    apart = _distances(totals, distance, values)
    by_chance = float((np.outer(totals, totals) * apart).sum())
    if not by_chance:
        return float("nan")
    return 1 - (float(sizes.sum()) - 1) * float((together * apart).sum()) / by_chance


def _distances(totals: Floats, distance: Distance, values: Floats | None) -> Floats:
    if distance == "nominal":
        return 1 - np.eye(len(totals))
    if distance == "interval":
        given = np.arange(len(totals), dtype=np.float64) if values is None else values
        differences: Floats = np.subtract.outer(given, given) ** 2
        return differences
    if distance != "ordinal":
        raise SettingError(f"alpha is nominal, ordinal or interval, not {distance!r}")
    # The values up to and with one, each end counted half: |difference| is what lies between the two.
    middles = np.cumsum(totals) - totals / 2
    between: Floats = np.subtract.outer(middles, middles) ** 2
    return between
