"""How many ratings give an interval of a certain width: from a pilot, or from assumptions that are printed.

The variance of an estimate (`prediction_powered`) of n of N responses has a part that falls with n and one that only
more dialogues would make smaller:

    V(n) = a (1 / n - 1 / N) + b

From a pilot, a and b follow from its two variances: b is that over dialogues less that of the draw, and is taken from
the estimate with the judge, which knows it best, for ratings alone as well. From assumptions, with a standard deviation
s of ratings, a correlation r of judge and people, and rows that stand alone, a = s^2 (1 - r^2) and b = s^2 / N; then
V(n) = s^2 / n (1 - r^2 (1 - n / N)). The width is that of the whole interval, from its lower to its upper end. A width
that ratings of all rows would not give is said to need more dialogues.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from msgspec import Struct

from dialeval.analysis.draws import DEFAULT_LEVEL
from dialeval.analysis.people import People
from dialeval.core.errors import SettingError
from dialeval.core.jsondata import Record

ASSUMED_SPREAD = 1.0
"""The standard deviation of ratings, as on a scale from 1 to 5."""
ASSUMED_AGREEMENT = 0.5
"""The correlation of a good judge with people."""


class Needed(Struct, frozen=True):
    """How many ratings of a system, or of both systems of a difference; None: more dialogues are needed."""

    what: str
    of: int
    """Responses that could be rated."""
    with_judge: int | None
    alone: int | None


class RatingPlan(Record, frozen=True):
    """How many ratings an interval of some width takes."""

    width: float
    level: float
    needed: list[Needed]
    assumptions: list[str]
    """What the numbers rest on, in sentences."""


def planned(
    rows: dict[str, int],
    width: float,
    level: float = DEFAULT_LEVEL,
    spread: float = ASSUMED_SPREAD,
    agreement: float = ASSUMED_AGREEMENT,
) -> RatingPlan:
    """Plan ratings of each system for a width, from assumptions; `rows`: the responses of each."""
    if not spread > 0 or not -1 <= agreement <= 1:
        raise SettingError("a standard deviation is above 0, and a correlation between -1 and 1")
    wanted = _variance(width, level)
    needed = []
    for name, number in rows.items():
        floor = spread**2 / number
        judged = _number(spread**2 * (1 - agreement**2), floor, number, wanted)
        needed.append(Needed(name, number, judged, _number(spread**2, floor, number, wanted)))
    assumptions = [
        f"ratings have a standard deviation of {spread:g} (--spread)",
        f"the judge's correlation with people is {agreement:g} (--agreement)",
        "rows stand alone: ratings of one dialogue are as different as those of several",
    ]
    return RatingPlan(width, level, needed, assumptions)


def planned_from(over_dialogues: People, of_run: People, rows: dict[str, int], width: float) -> RatingPlan:
    """Plan ratings for a width, from a pilot that was estimated for both targets."""
    wanted = _variance(width, over_dialogues.level)
    needed = []
    found, within = ([*each.figures, *each.differences] for each in (over_dialogues, of_run))
    for whole, drawn in zip(found, within, strict=True):
        names = [whole.system] if whole.baseline is None else [whole.system, whole.baseline]
        number, rated = sum(rows[name] for name in names), whole.ratings
        floor = max(whole.error**2 - drawn.error**2, 0.0)
        share = 1 / rated - 1 / number if rated < number else math.inf
        judged, alone = (_number(e**2 / share, floor, number, wanted) for e in (drawn.error, drawn.alone_error))
        needed.append(Needed(" - ".join(names), number, judged, alone))
    assumptions = [
        f"ratings to come are like the {sum(each.ratings for each in over_dialogues.figures)} of the pilot",
        "they are drawn in the same way",
    ]
    return RatingPlan(width, over_dialogues.level, needed, assumptions)


def _variance(width: float, level: float) -> float:
    """Return the variance that gives an interval of a width."""
    if not (math.isfinite(width) and width > 0):
        raise SettingError(f"the width of an interval is a number above 0, not {width}")
    return (width / 2 / NormalDist().inv_cdf((1 + level) / 2)) ** 2


def _number(falling: float, floor: float, rows: int, wanted: float) -> int | None:
    """Return the least n with falling (1 / n - 1 / rows) + floor <= wanted; None if all rows do not give it."""
    if math.isnan(falling) or math.isnan(floor) or floor > wanted:
        return None
    return min(rows, max(2, math.ceil(1 / ((wanted - floor) / falling + 1 / rows)))) if falling else 2
