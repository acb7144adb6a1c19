"""Columns of logs as metrics: failed replies, labels of replies, and their latency.

    failure-rate       fraction of replies that failed: there is none, it is empty, or it is an error

Which replies failed is decided while a log is read (`io.outcomes`). The metric is computed without being asked for
wherever a reply of some system failed, since judges do not score failed replies: a system that fails where it would
have been graded badly looks better without it. Replies that only call tools did not fail.

Labels are given to single replies by annotators or models: a class (breakdown O, T or X), a set of types (of errors),
or yes or no (the behaviors of ABC-Eval). Rows hold them in the field `labels`, chats in that of each message:

    {"breakdown": "X", "error": ["repetition", "contradiction"], "empathetic": true}

    label:NAME         fraction of replies to which the answer is yes
    label:NAME=VALUE   fraction of replies with this class, or with this type among others
    labels             fraction of replies that have labels; `-m labels` adds the rate of every label of the rows

With several annotators, who are a list of such objects (or, for one label, a list of yes and no, or of lists), the
value of a reply is the fraction of its annotators who said so; with `annotators=majority`, whether more than half of
them did. A number from 0 to 1 is such a fraction. The interval of a rate is over dialogues: Wilson's where all values
are 0 or 1, else Student's.

Edge cases: a reply without the label is not scored, and never counts as no; an empty list says that no type applies. A
label that is yes or no in some rows and a class in others is two labels, each over its own rows. Neither more nor less
is better, unless the name says so: `label:error=repetition(better=lower)`.

    latency            mean of the seconds until a reply was there
    latency-pN         the least number of seconds within which at least N% of the replies were there

Logs give the seconds as a duration, as the times of start and end, or as the times of messages: from the message of the
user, or the system's own before it, to the reply, with all calls of tools in between. A reply without them is not
scored. The interval of a percentile Q(p) is Q(p) -+ t error, where the error comes from Woodruff's interval: with s the
clustered standard error of the fraction of replies within Q(p) seconds, but at least that of independent replies,
error = (Q(p + 2s) - Q(p - 2s)) / 4. There is none where p + 2s or p - 2s is no fraction: too few replies are slower, or
faster.

Papers: Finch, Finch and Choi 2023, Don't Forget Your ABC's: Evaluating the State-of-the-Art in Chat-Oriented Dialogue
Systems; Higashinaka et al. 2016, The Dialogue Breakdown Detection Challenge; Woodruff 1952, Confidence Intervals for
Medians and Other Position Measures, JASA; Francisco and Fuller 1991, Quantile Estimation with a Complex Survey Design,
Annals of Statistics.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints, offsets_of
from dialeval.core.batch import Batch
from dialeval.core.contributions import ClusteredRows, Resamples, RowSums, sum_by_cluster
from dialeval.core.errors import NeedError, SettingError, add_warning
from dialeval.core.exact import ClusterError, Moments
from dialeval.core.fold import ANY_NUMBER, Better, Bounds, Estimate, Fact, Metric, Partial, RowMetric

YES = ""
"""The value under which answers of yes are counted."""
MOST_VALUES = 20
"""Values of one label that `labels` counts; a label with more is a free text, of which single values can be named."""

_RowLabels: TypeAlias = Mapping[str, tuple[float, Mapping[str, float]]]
"""By label: how many annotators gave it, and how many of them each value."""


def _list_labels(batch: Batch) -> list[_RowLabels]:
    return [labels or {} for labels in batch.fields(inputs.TURN_LABELS)]


@dataclass(frozen=True)
class FailureRate(RowMetric):
    """Fraction of replies that failed: there is none, it is empty, or it is an error."""

    family = "failure-rate"
    subject = inputs.OUTCOME
    needs = frozenset({inputs.RESPONSE})
    wants = frozenset({inputs.OUTCOME})
    better = "lower"
    bounds = (0.0, 1.0)

    def score(self, batch: Batch) -> Floats:
        batch.column(inputs.RESPONSE)  # without failures there is no other column
        return batch.failed.astype(np.float64)


@dataclass(frozen=True)
class Label(RowMetric):
    """Fraction of replies with a label of annotators or models; `labels` means all labels of the rows."""

    family = "label"
    presets = {"labels": {}}
    subject = inputs.TURN_LABELS
    needs = frozenset({inputs.TURN_LABELS})
    implied = {"better": None}
    bounds = (0.0, 1.0)

    of: str = ""
    """NAME or NAME=VALUE; empty: whether a reply has labels."""
    annotators: Literal["mean", "majority"] = "mean"
    better: Literal["higher", "lower", None] = None  # type: ignore[misc]

    def __str__(self) -> str:
        if not self.of:
            return super().__str__()
        changed = {"annotators": self.annotators != "mean", "better": self.better is not None}
        inside = ",".join(f"{name}={getattr(self, name)}" for name, other in changed.items() if other)
        return f"label:{self.of}" + (f"({inside})" if inside else "")

    @property
    def untestable(self) -> str | None:  # type: ignore[override]
        """Why the fraction of labeled replies is not tested."""
        return None if self.of else "it says how many replies have labels, which is a property of the data"

    @property
    def survey(self) -> Fact | None:
        return None if self.of else LabelNames()

    def settle(self, surveyed: Sequence[str]) -> Mapping[str, Metric]:
        rates: list[Metric] = [replace(self, of=label) for label in surveyed]
        return {metric.name: metric for metric in [self, *rates]}

    def score(self, batch: Batch) -> Floats:
        values = np.array([self._score_row(row) for row in _list_labels(batch)], np.float64)
        return np.where(np.isnan(values), nan, values > 0.5) if self.annotators == "majority" else values

    def _score_row(self, row: _RowLabels) -> float:
        if not self.of:
            return float(bool(row))
        name, _, value = self.of.partition("=")
        annotators, counts = row.get(name, (0, {}))
        if not annotators or (YES in counts) is not (value == YES):
            return nan
        return counts.get(value, 0) / annotators


@dataclass(frozen=True)
class LabelNames(Fact[dict[str, tuple[str, ...]], list[str]]):
    """Collects the values of each label, for the rates that `labels` adds."""

    def empty(self) -> dict[str, tuple[str, ...]]:
        return {}

    def gather(self, batch: Batch) -> dict[str, tuple[str, ...]]:
        if not batch.has(inputs.TURN_LABELS):
            return {}
        values: dict[str, set[str]] = defaultdict(set)
        for row in _list_labels(batch):
            for name, (_, counts) in row.items():
                values[name].update(counts)
        return _limit_values(values)

    def merge(self, left: dict[str, tuple[str, ...]], right: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        return _limit_values({name: {*left.get(name, ()), *right.get(name, ())} for name in (*left, *right)})

    def finish(self, state: dict[str, tuple[str, ...]]) -> list[str]:
        free = [name for name, values in state.items() if len(values) > MOST_VALUES]
        for name in free:
            add_warning(f"the label {name} has more than {MOST_VALUES} values; name one: -m label:{name}=VALUE")
        pairs = sorted((name, value) for name, values in state.items() if name not in free for value in values)
        return [f"{name}={value}" if value else name for name, value in pairs]


def _limit_values(found: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(sorted(values)[: MOST_VALUES + 1]) for name, values in found.items()}


def _parse_seconds(batch: Batch) -> Floats:
    """Return the latency of each row; NaN where it is unknown."""
    return np.asarray(batch.fields(inputs.LATENCY).values, np.float64)


@dataclass(frozen=True)
class Latency(RowMetric):
    """Mean of the seconds until a reply was there."""

    family = "latency"
    subject = inputs.LATENCY
    needs = frozenset({inputs.LATENCY})
    better = "lower"
    bounds = (0.0, inf)

    def score(self, batch: Batch) -> Floats:
        return _parse_seconds(batch)


_Durations: TypeAlias = tuple[Floats, Ints, int]
"""The known seconds, dialogue after dialogue; how many each dialogue has; and the number of rows."""


@dataclass(frozen=True)
class LatencyPercentile(Metric[_Durations]):
    """The least number of seconds within which a given percentage of the replies were there."""

    family = "latency-percentile"
    presets = {f"latency-p{percent}": {"percent": percent} for percent in (50, 95)}
    subject = inputs.LATENCY
    needs = frozenset({inputs.LATENCY})
    better = "lower"
    bounds = (0.0, inf)

    limits = {"percent": (1, 99)}

    percent: int = 95

    def empty(self) -> _Durations:
        return np.empty(0), np.empty(0, np.int64), 0

    def partial(self, batch: Batch) -> Partial[_Durations]:
        values = _parse_seconds(batch)
        timed = ~np.isnan(values)
        sizes = np.diff(offsets_of(timed)[batch.dialogues])
        sums = RowSums(np.column_stack([np.where(timed, values, 0.0), timed]))
        return Partial((values[timed], sizes[sizes > 0], len(batch)), {}, {"latency": sums})

    def merge(self, left: _Durations, right: _Durations) -> _Durations:
        return np.concatenate((left[0], right[0])), np.concatenate((left[1], right[1])), left[2] + right[2]

    def finish(self, state: _Durations) -> Mapping[str, Estimate]:
        values, sizes, rows = state
        if not len(values):
            return {self.name: Estimate(nan, nan, rows, 0, corpus=True)}
        value, error, _ = self._estimate_error(values, offsets_of(sizes))
        return {self.name: Estimate(value, 0.0, rows, len(values), corpus=True, error=error)}

    def _find_rank(self, number: Any) -> Any:
        """Return how many of so many replies are within the percentile, at least."""
        return -(-self.percent * number // 100)

    def _estimate_error(self, values: Floats, offsets: Ints) -> tuple[float, ClusterError | None, float]:
        """Return the percentile, its error, and how many seconds it moves per fraction of replies."""
        ordered = np.sort(values)
        value, fraction = float(ordered[self._find_rank(len(values)) - 1]), self.percent / 100
        error = Estimate.of_moments(Moments.of((values <= value).astype(np.float64), offsets)).error
        if error is None:
            return value, None, nan
        spread = max(error.error, sqrt(fraction * (1 - fraction) / len(values)))
        ends = np.array([fraction - 2 * spread, fraction + 2 * spread])
        if ends[0] <= 0 or ends[1] >= 1:
            return value, None, nan
        low, high = ordered[np.ceil(ends * len(values)).astype(np.int64) - 1].tolist()
        return value, replace(error, error=(high - low) / 4), (high - low) / (4 * spread)

    def score_resamples(self, sample: Resamples) -> Floats:
        values, timed = sample.rows.sums("latency").T
        order, sizes = np.argsort(values, kind="stable"), np.diff(sample.rows.offsets)
        ordered, taken = values[order], timed[order].astype(np.int64)

        def percentile(counts: Ints) -> float:
            up_to = np.cumsum(np.repeat(counts, sizes)[order] * taken)
            return float(ordered[np.searchsorted(up_to, self._find_rank(up_to[-1]))]) if up_to[-1:].any() else nan

        return np.array([percentile(counts) for counts in sample.counts], np.float64)

    def score_jackknife(self, sample: Resamples) -> Floats:
        """Return the linear part of the percentile: the jackknife of the percentile itself is not consistent."""
        value, slope = sample.rows.derive(("percentile", self), lambda: self._find_slope(sample.rows))
        seconds, counts = sample.rows.sums("latency").T
        within = sum_by_cluster(np.column_stack([(seconds <= value) * counts, counts]), sample.rows.offsets)
        with np.errstate(invalid="ignore"):  # 0 / 0: no known latency
            every, some = (within.sum(axis=0)[None], sample.sum_clusters(within))
            return np.asarray(value + slope * (every[:, 0] / every[:, 1] - some[:, 0] / some[:, 1]))

    def _find_slope(self, rows: ClusteredRows) -> tuple[float, float]:
        seconds, counts = rows.sums("latency").T
        timed = counts > 0
        if not timed.any():
            return nan, nan
        value, _, slope = self._estimate_error(seconds[timed], np.unique(offsets_of(timed)[rows.offsets]))
        return value, slope


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
        ranges: _Ranges = {}
        for scores in batch.fields(inputs.SCORES).values if batch.has(inputs.SCORES) else ():
            ranges = self.merge(ranges, {name: (1, value, value) for name, value in (scores or {}).items()})
        return ranges

    def merge(self, left: _Ranges, right: _Ranges) -> _Ranges:
        both = dict(left)
        for name, (count, low, high) in right.items():
            before = both.get(name, (0, inf, -inf))
            both[name] = before[0] + count, min(before[1], low), max(before[2], high)
        return both


@dataclass(frozen=True)
class Score(RowMetric):
    """Mean of a score that the rows carry; `scores` means all of them.

        score:NAME   mean of a field of replies, of messages or of whole conversations: a number, or yes or no
        scores       every score of the rows, each as score:NAME

    NAME is a field of a row or of a message (dots lead into objects), or the name of an entry of its `scores`,
    `metrics`, `feedback`, `assessments`, `ratings` or `grades`: an object by name, or a list of objects with name and
    value. A second file with scores is joined by `--scores FILE --key FIELD`. `scores` takes all entries of these, and
    fields whose names are those of scores (rating, csat, helpful, ...).

    A score of a whole conversation counts once, and one of a reply counts for the reply. True, yes and pass are 1;
    false, no and fail are 0. A row without the score is not scored and is counted as missing; other values are errors.

    Settings: `better` is higher or lower, or neither; unless given, lower where the name says so (cost, error,
    toxicity, tokens, seconds, ...), else higher. `range` has the least and the largest value, as in
    `score:stars(range=1:5)` or `score:cost(better=lower,range=0:)`, so that intervals stay within it; unless given, it
    is 0:1 where all values of all systems are fractions, else there is none. What was guessed is said.
    """

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
        spelled = {"auto": _guess_direction(self.of), "neither": None}
        object.__setattr__(self, "better", spelled.get(self.better or "", self.better))
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
            score = self if self.of else Score(of=name, better=self.better or "auto", range=self.range)  # type: ignore[arg-type]
            settled[str(score)] = replace(score, range=limits)
            if limits != score.range or str(score) == f"score:{name}":
                guesses.append(
                    f"score:{name}(better={score.better or 'neither'}{f',range={limits}' if limits else ''})"
                )
        if guesses:
            add_warning(f"read as {', '.join(guesses)}; give such settings to change them")
        return settled

    def count_missing(self, items: Floats, batch: Batch) -> int:
        counted = batch.fields(inputs.SCORES).counted
        return int(np.count_nonzero(np.isnan(items) & counted))
