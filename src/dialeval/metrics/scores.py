"""Scores that the rows carry as metrics: ratings of users, grades of other tools, cost.

    score:NAME   mean of a field of replies, of messages or of whole conversations: a number, or yes or no
    scores       every score of the rows, each as score:NAME

NAME is a field of a row or of a message (dots lead into objects), or the name of an entry of its `scores`, `metrics`,
`feedback`, `assessments`, `ratings` or `grades`: an object by name, or a list of objects with name and value. A second
file with scores is joined by `--scores FILE --key FIELD`. `scores` takes all entries of these, and fields whose names
are those of scores (rating, csat, helpful, ...).

A score of a whole conversation counts once, and one of a reply counts for the reply. True, yes and pass are 1; false,
no and fail are 0. A row without the score is not scored and is counted as missing; other values are errors.

Settings: `better` is higher or lower, or neither; unless given, lower where the name says so (cost, error, toxicity,
tokens, seconds, ...), else higher. `range` has the least and the largest value, as in `score:stars(range=1:5)` or
`score:cost(better=lower,range=0:)`, so that intervals stay within it; unless given, it is 0:1 where all values of all
systems are fractions, else there is none. What was guessed is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any, Literal

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import NeedError, SettingError, add_warning
from dialeval.core.fold import ANY_NUMBER, Better, Bounds, Fact, RowMetric

_LOWER = re.compile(
    r"cost|price|error|toxic|hallucinat|fail|token|latency|duration|seconds|(^|_)ms$|refus|violat|bias|harm|perplexity|loss"
)


def _guess_direction(name: str) -> Better | None:
    if not name:
        return None
    return "lower" if _LOWER.search(name.lower()) else "higher"


_Ranges = dict[str, tuple[int, float, float]]
"""By name: how many values a score has, the least and the largest."""


@dataclass(frozen=True)
class ScoreRanges(Fact[_Ranges, _Ranges]):
    """Collects names and ranges of the scores."""

    def empty(self) -> _Ranges:
        return {}

    def gather(self, batch: Batch) -> _Ranges:
        found: _Ranges = {}
        for scores in batch.fields(inputs.SCORES).values if batch.has(inputs.SCORES) else ():
            found = self.merge(found, {name: (1, value, value) for name, value in (scores or {}).items()})
        return found

    def merge(self, left: _Ranges, right: _Ranges) -> _Ranges:
        both = dict(left)
        for name, (count, low, high) in right.items():
            before = both.get(name, (0, inf, -inf))
            both[name] = before[0] + count, min(before[1], low), max(before[2], high)
        return both


@dataclass(frozen=True)
class Score(RowMetric):
    """Mean of a score that the rows carry; `scores` means all of them."""

    family = "score"
    presets = {"scores": {}}
    subject = inputs.SCORES
    needs = frozenset({inputs.SCORES})
    implied = {"better": None}
    survey = ScoreRanges()

    of: str = ""
    """The name of the score; empty: all."""
    better: Literal["higher", "lower", None] = "auto"  # type: ignore[assignment,misc]
    """Unless given, it is guessed by the name."""
    range: str = ""
    """The least and the largest value, as in `1:5`; either may be left out."""

    def __post_init__(self) -> None:
        known = {"auto": _guess_direction(self.of), "neither": None}
        object.__setattr__(self, "better", known.get(self.better or "", self.better))
        super().__post_init__()
        _ = self.bounds  # refuses a range that is none

    def __str__(self) -> str:
        better = "" if self.better == _guess_direction(self.of) else f"better={self.better or 'neither'}"
        inside = ",".join(filter(None, (better, self.range and f"range={self.range}")))
        start = f"score:{self.of}" if self.of else "scores"
        return start + (f"({inside})" if inside else "")

    @property
    def bounds(self) -> Bounds:  # type: ignore[override]
        if not self.range:
            return ANY_NUMBER
        low, colon, high = self.range.partition(":")
        try:
            ends = float(low or -inf), float(high or inf)
        except ValueError:
            ends = (nan, nan)
        if not colon or not ends[0] < ends[1]:
            raise SettingError(f"the range of a score is LOW:HIGH, such as 0:1 or 0:, not {self.range!r}")
        return ends

    def score(self, batch: Batch) -> Floats:
        rows = batch.fields(inputs.SCORES).values
        if not self.of:
            return np.array([float(bool(scores)) for scores in rows], np.float64)
        return np.array([nan if scores is None else scores.get(self.of, nan) for scores in rows], np.float64)

    def settle(self, surveyed: _Ranges) -> Mapping[str, Any]:
        if self.of and self.of not in surveyed:
            raise NeedError(f"no row has the score {self.of}; `-m scores` finds the scores of the rows")
        settled: dict[str, Any] = {}
        guesses = []
        for name in [self.of] if self.of else sorted(surveyed):
            _, low, high = surveyed[name]
            lowest, highest = self.bounds
            if low < lowest or high > highest:
                raise SettingError(f"score:{name} is from {low:g} to {high:g}, beyond its range {self.range}")
            limits = self.range or ("0:1" if low >= 0 and high <= 1 else "")
            own = self if self.of else Score(of=name, better=self.better or "auto", range=self.range)  # type: ignore[arg-type]
            settled[str(own)] = replace(own, range=limits)
            if limits != own.range or str(own) == f"score:{name}":
                guesses.append(f"score:{name}(better={own.better or 'neither'}{f',range={limits}' if limits else ''})")
        if guesses:
            add_warning(f"read as {', '.join(guesses)}; give such settings to change them")
        return settled

    def count_missing(self, items: Floats, batch: Batch) -> int:
        counted = batch.fields(inputs.SCORES).counted
        return int(np.count_nonzero(np.isnan(items) & counted))
