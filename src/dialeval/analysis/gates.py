"""Gates: is a system no worse than the baseline? A yes or no that a build can depend on.

Without a margin a system fails if it is worse under some key and the difference is significant (adjusted p below
alpha): the gate stops what is shown to be worse and lets pass what might be.

With a margin for a key it fails unless the interval of the difference lies within the margin: the gate lets pass what
is shown to be no more than that much worse (non-inferiority) and stops what might be. Few rows give a wide interval, so
that such a gate needs enough of them; a difference that could not be tested fails it.

Keys for which neither higher nor lower is better (length, entropy) are never worse. With the same runs and the same
seed the answer is always the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dialeval.analysis.comparison import Comparison, Difference
from dialeval.core.errors import SettingError


def failures(comparison: Comparison, margins: Mapping[str, float] | None = None) -> Iterator[str]:
    """A line for each system and key that fails; `margins` by key, in units of the metric."""
    margins = margins or {}
    _check(comparison, margins)
    for row in comparison.rows:
        told = f"{row.key} of {row.system} is {row.mean:.6g}, of {row.baseline} {row.baseline_mean:.6g}"
        if row.key in margins:
            if not _worst(row) <= margins[row.key]:
                yield f"{told}: it may be worse by {_worst(row):.4g}, the margin is {margins[row.key]:g}"
        elif row.significant and row.worse:
            yield f"{told}: significantly worse (adjusted p {row.adjusted_p:.4f})"


def _check(comparison: Comparison, margins: Mapping[str, float]) -> None:
    for key, margin in margins.items():
        rows = [row for row in comparison.rows if row.key == key]
        if not rows:
            raise SettingError(f"there is no {key!r} to hold to a margin; there are {', '.join(comparison.keys)}")
        if rows[0].better is None:
            raise SettingError(f"neither higher nor lower values of {key} are better, so that it has no margin")
        if not margin >= 0:
            raise SettingError(f"a margin is 0 or above, not {margin}")


def _worst(row: Difference) -> float:
    """By how much the system may be worse, by the end of the interval on the bad side; NaN if there is no interval."""
    if row.interval is None:
        return float("nan")
    return -row.interval[0] if row.better == "higher" else row.interval[1]
