"""Gates: is a system good enough? A yes or no that a build can depend on.

`limit_gates`: a system fails if its mean under a key is below or above the limit of that key, or was not computed.
Floors and ceilings are not held to limits: a floor is meant to be low. A key that nobody asked for is most likely
misspelt, so it is an error and no failed gate.

`baseline_gates`, without a margin for a key: a system fails if it is worse than the baseline and the difference is
significant (adjusted p below alpha). This gate stops what is shown to be worse and lets pass what might be.

With a margin for a key it fails unless the interval of the difference lies within the margin: the gate lets pass what
is shown to be no more than that much worse (non-inferiority) and stops what might be. Few rows give a wide interval, so
that such a gate needs enough of them; a difference that could not be tested fails it.

Keys for which neither higher nor lower is better (length, entropy) are never worse, and have no gate. With the same
runs and the same seed the answer is always the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from dialeval.core.errors import SettingError

if TYPE_CHECKING:
    from dialeval.analysis.comparison import Comparison, Difference
    from dialeval.core.result import Result


@dataclass(frozen=True, slots=True)
class Gate:
    """What is asked of a system under a key, and whether it holds."""

    system: str
    key: str
    asked: str
    """What is asked, in words: `at least 0.2`."""
    failure: str | None = None
    """A line that says what is wrong; None where the gate holds."""
    difference: Difference | None = None
    """What was found, for a gate that asks for no worse than a baseline."""


def limit_gates(
    results: Mapping[str, Result], lowest: Mapping[str, float], highest: Mapping[str, float]
) -> Iterator[Gate]:
    """A gate for each key and system: its mean is not below its lowest, not above its highest value, and is there."""
    _check_keys(results, (*lowest, *highest))
    for sign, words, limits in ((1, "at least", lowest), (-1, "at most", highest)):
        for key, limit in limits.items():
            for system, result in results.items():
                if result.role == "system":
                    mean = result[key].mean if key in result else None
                    shown = "not computed" if mean is None else f"{mean:.6g}"
                    fails = mean is None or not sign * mean >= sign * limit
                    failure = f"{key} of {system} is {shown}, limit {limit:g}" if fails else None
                    yield Gate(system, key, f"{words} {limit:g}", failure)


def _check_keys(results: Mapping[str, Result], keys: Iterable[str]) -> None:
    """SettingError for a key that was neither computed nor skipped."""
    known = dict.fromkeys(key for result in results.values() for key in (*result, *result.skipped))
    for key in keys:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise SettingError(f"no system has {key!r}, so that it cannot be held to a limit; {hint}")


def baseline_gates(comparison: Comparison, margins: Mapping[str, float], named: bool = False) -> Iterator[Gate]:
    """A gate for each system and key: it is no worse than the baseline; `margins` by key, in units of the metric.

    `named`: the metrics were asked for, so that one that cannot be compared is an error; so it is where none can be.
    """
    _check(comparison, margins)
    left_out = [row for row in comparison.rows if math.isnan(row.difference) and row.reason is not None]
    for row in left_out:
        if named or row.key in margins or len(left_out) == len(comparison.rows):
            raise SettingError(f"{row.system} cannot be held to {row.baseline} by {row.key}: {row.reason}")
    for row in comparison.rows:
        if row in left_out:
            continue
        means = f"{row.key} of {row.system} is {row.mean:.6g}, of {row.baseline} {row.baseline_mean:.6g}"
        failure = None
        if row.key in margins:
            asked = f"worse than {row.baseline} by at most {margins[row.key]:g}"
            if not _worst(row) <= margins[row.key]:
                failure = f"{means}: it may be worse by {_worst(row):.4g}, the margin is {margins[row.key]:g}"
        elif row.better is None:
            continue
        else:
            asked = f"no worse than {row.baseline}"
            if row.significant and row.worse:
                failure = f"{means}: significantly worse (adjusted p {row.adjusted_p:.4g})"
        yield Gate(row.system, row.key, asked, failure, row)


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
