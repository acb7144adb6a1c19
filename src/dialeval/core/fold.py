"""The fold: how every measurement is made.

A metric is a frozen dataclass of its settings. For a batch of rows it gives a `Partial`: a state that merges, and one
value per row. States merge in any order; the last one is finished into estimates. Corpus scores, scores per row,
threads, processes and clusters all come from these few functions:

    state = metric.empty()
    for batch in batches:
        state = metric.merge(state, metric.partial(batch).state)
    estimates = metric.finish(state)

`RowMetric` is the common case, a mean over rows: it asks for one function, `score`. A metric that must know something
of all rows before it looks at one (KL divergence: how often each word occurs) names a `Fact`; the engine folds facts
first, in a pass of their own.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction
from functools import cache
from inspect import get_annotations
from math import inf, isfinite, nan, sqrt
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.clusters import ClusterError, mean_error
from dialeval.core.contributions import BatchContributions, Resamples
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.exact import UNIT_EXPONENT, Moments
from dialeval.core.needs import Need
from dialeval.core.signature import Signature
from dialeval.core.version import __version__

Better = Literal["higher", "lower"]
"""Which values of a metric are the better ones."""

Bounds: TypeAlias = tuple[float, float]
"""The least and the largest value that is possible; infinite where there is no end."""

ANY_NUMBER: Bounds = (-inf, inf)

State = TypeVar("State")
Known = TypeVar("Known")

DEFAULT_T = 1.97
"""Factor of the confidence t * std / sqrt(n); the value that dialog-eval made customary."""


class Level(str, Enum):
    """What one row of a metric's items is."""

    TURN = "turn"
    DIALOGUE = "dialogue"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False, slots=True)
class Partial(Generic[State]):
    """What a batch gives: a state to merge, and per result key one value per row (NaN: the row cannot be scored).

    `contributions` is what each row adds to a corpus value; `Metric.resampled` computes values from it.
    """

    state: State
    items: Mapping[str, Floats]
    contributions: Mapping[str, BatchContributions] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resampling:
    """How an interval was found: by resampling clusters, dialogues or single rows."""

    method: Literal["studentised", "jackknife", "percentile", "bca"]
    level: float
    resamples: int
    seed: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Analytic:
    """How an interval was found: by a formula (see `intervals`), over clusters that are dialogues or single rows."""

    method: Literal["student", "wilson", "gaffke", "rows"]
    level: float | None
    """None where the factor was given and not the level."""
    over: Literal["dialogues", "rows"]
    clusters: int
    t: float | None
    """The factor of the standard error; None where the method has none."""
    freedom: float | None = None
    error: float | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    """A number and how sure one can be of it.

    `corpus` marks a value of all rows together (distinct-2 of a file): it has no spread over rows, so its standard
    deviation is 0 by convention. `confidence` is half the width of the interval; NaN where there is none. `error` is
    what metrics give, and `intervals` makes the interval from it.
    """

    mean: float
    std: float
    rows: int
    scored: int
    corpus: bool = False
    confidence: float = 0.0
    interval: tuple[float, float] | None = None
    items: Floats | None = None
    level: Level = Level.TURN
    signature: Signature | None = None
    interval_by: Resampling | Analytic | None = None
    """How the interval was computed."""
    error: ClusterError | None = None

    def __repr__(self) -> str:
        spread = "" if self.interval is None else " [{:.4g}, {:.4g}]".format(*self.interval)
        rows = f"{self.rows:,}" if self.scored == self.rows else f"{self.scored:,} of {self.rows:,}"
        return f"<Estimate {self.mean:.4g}{spread}, {rows} {self.level}{'' if self.rows == 1 else 's'}>"

    def __eq__(self, other: object) -> bool:
        """Compare all fields; NaN equals NaN."""
        if not isinstance(other, Estimate):
            return NotImplemented
        pairs = [(getattr(self, each.name), getattr(other, each.name)) for each in fields(self) if each.name != "items"]
        if self.items is None or other.items is None:
            same = self.items is other.items
        else:
            same = np.array_equal(self.items, other.items, equal_nan=True)
        return same and all(repr(left) == repr(right) for left, right in pairs)

    __hash__ = None  # type: ignore[assignment]  # holds an array

    @classmethod
    def of_moments(cls, moments: Moments, bounds: Bounds = ANY_NUMBER) -> Estimate:
        """Make the estimate of a mean over rows, of values within bounds."""
        error = mean_error(moments.clusters, UNIT_EXPONENT, _all_at_ends(moments, bounds))
        return cls(moments.mean, moments.std, moments.rows, moments.scored, error=error)

    def with_confidence(self, t: float, level: float | None = None) -> Estimate:
        """Add dialog-eval's confidence, t * std / sqrt(scored), and the interval mean -+ confidence.

        A value of all rows together has the confidence 0 and no interval, and one row has no interval.
        """
        if self.corpus or not self.scored:
            return self if self.corpus else replace(self, confidence=nan)
        confidence = t * self.std / sqrt(self.scored)
        if self.scored < 2:
            return replace(self, confidence=confidence)
        bounds = (self.mean - confidence, self.mean + confidence)
        how = Analytic("rows", level, "rows", self.scored, t)
        return replace(self, confidence=confidence, interval=bounds, interval_by=how)


def _all_at_ends(moments: Moments, bounds: Bounds) -> bool:
    """Return whether every value is the least or the largest possible one."""
    if not all(map(isfinite, bounds)):
        return False
    least, largest = map(Fraction, bounds)
    inside = (least + largest) * (moments.total << UNIT_EXPONENT) - moments.squares
    return inside == least * largest * (moments.scored << 2 * UNIT_EXPONENT)


class Fold(ABC, Generic[State]):
    """What has a state that merges: a metric, or a fact.

    A state that grows with the rows, such as counts of n-grams, can be cut into parts of different things (by a hash of
    their content, so that parts of the same number belong together wherever they were cut). Each part is then merged
    by a worker of its own, and closed: only what `finish` needs of it goes on.
    """

    @property
    def grows(self) -> bool:
        """Whether its state grows with the rows, and can be cut."""
        return False

    @abstractmethod
    def empty(self) -> State:
        """Return the state of no rows: the identity of `merge`."""

    @abstractmethod
    def merge(self, left: State, right: State) -> State:
        """Merge two states; associative and commutative, and it changes neither argument."""

    def cut(self, state: State, parts: int) -> list[State]:
        """Split a state that grows into parts, each a state; they merge into the whole."""
        raise NotImplementedError(f"{self} has no state that grows")

    def closed(self, state: State) -> State:
        """Close a part that is merged for all rows; closed parts merge into a state that `finish` takes."""
        return state


class Fact(Fold[State], Generic[State, Known]):
    """Something about all rows of a system, found by a fold before metrics run: hashable, equal if it asks the same."""

    @abstractmethod
    def gather(self, batch: Batch) -> State:
        """Return the state of one batch, from what the metric that named the fact declares."""

    @abstractmethod
    def finish(self, state: State) -> Known:
        """Return what is known in the end."""


@dataclass(frozen=True)
class Metric(Fold[State]):
    """A measurement, as a value: its settings are its fields, equal settings make equal metrics.

    `family` is its name with all settings open; `presets` gives short names to common settings (`distinct-2` is
    `distinct(n=2)`). `str(metric)` is the shortest such name and reads back through the registry. `definition` grows
    by one whenever the same settings would give another number than before.

    A setting annotated `Literal[...]` takes one of the values listed there; a subclass that checks more in a
    `__post_init__` of its own calls this one first.
    """

    family: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, object]]]
    subject: ClassVar[Need] = Need.RESPONSE
    """The column that is measured; a metric whose column is not given is left out without a warning."""
    level: ClassVar[Level] = Level.TURN
    definition: ClassVar[int] = 1
    implied: ClassVar[Mapping[str, object]] = {}
    """Settings that came later, with the value that a signature without them means."""
    counts_kinds: ClassVar[bool] = False
    """Whether its corpus value is about how many different things there are. A resample repeats rows, and what is
    repeated is not different: all resampled values are off to one side, and an interval has to put that right."""
    untestable: ClassVar[str | None] = None
    """Why the spread of its values over rows is not the sampling error of their mean, where it is not. Such a mean has
    neither an interval (but for dialog-eval's, where that is asked for) nor a test."""
    whole_dialogues: ClassVar[bool] = False
    """Whether whole dialogues contribute to its corpus value, so that a part of one has none."""
    device: ClassVar[bool] = False
    """Whether it gains from an accelerator; a cluster then gives it workers that hold one."""
    descriptive: ClassVar[bool] = False
    """Whether it describes the responses alone (diversity), so that a difference is no evidence of better replies."""
    costly: ClassVar[bool] = False
    """Whether it takes longer than all others together; `all` leaves it out, and it is computed when it is named."""
    one_of: ClassVar[frozenset[Need]] = frozenset()
    """Of these wants at least one must be there; nothing can be scored without."""

    def __post_init__(self) -> None:
        for name, choices in _choices(type(self)).items():
            if getattr(self, name) not in choices:
                listed = "|".join(map(str, choices))
                raise SettingError(f"{self.family} has {name}={listed}, not {getattr(self, name)!r}")

    def __str__(self) -> str:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        defaults = {field.name: field.default for field in fields(self)}
        for preset, settings in self.presets.items():
            if {**defaults, **settings} == own:
                return preset
        changed = [(name, value) for name, value in own.items() if defaults[name] is MISSING or value != defaults[name]]
        inside = ",".join(f"{name}={_show_setting(value)}" for name, value in changed)
        return f"{self.family}({inside})"

    @property
    @abstractmethod
    def needs(self) -> frozenset[Need]:
        """What it cannot do without."""

    @property
    def wants(self) -> frozenset[Need]:
        """What it uses where it is given; its number depends on that, so it stands in the signature too."""
        return frozenset()

    @property
    def better(self) -> Better | None:
        """Which values are better; None where neither more nor less is (length, entropy)."""
        return None

    @property
    def bounds(self) -> Bounds:
        """The least and the largest value that it can give; an interval does not go beyond."""
        return ANY_NUMBER

    def bounds_of(self, key: str) -> Bounds:
        """Return the bounds of one of its results, for a metric whose results have different ones."""
        return self.bounds

    def estimate_of_items(self, key: str, items: Floats, dialogues: Ints | None) -> Estimate:
        """Return the mean of some items of one of its results, with the error that its interval is made of."""
        return Estimate.of_moments(Moments.of(items, dialogues), self.bounds_of(key))

    @property
    def facts(self) -> tuple[Fact[Any, Any], ...]:
        """What must be known of all rows before it looks at any."""
        return ()

    @classmethod
    def setting_names(cls) -> list[str]:
        """Return the names of its settings, in order."""
        return [field.name for field in fields(cls)]

    @property
    def name(self) -> str:
        """The metric as users write it, and the key of its main result."""
        return str(self)

    def signature(self) -> Signature:
        """Return the signature: what the number depends on, from the settings alone."""
        settings = {name: getattr(self, name) for name in self.setting_names()}
        settings = {name: value for name, value in settings.items() if (name, value) not in self.implied.items()}
        return Signature.of(self.name, **settings, definition=self.definition, dialeval=__version__)

    @abstractmethod
    def partial(self, batch: Batch) -> Partial[State]:
        """Return state and items of one batch, from the columns that `needs` declares."""

    @abstractmethod
    def finish(self, state: State) -> Mapping[str, Estimate]:
        """Return the results of a state, by key."""

    def warnings(self, states: Sequence[State]) -> Iterable[str]:
        """Return what a user should know before relying on its values, from the states of all systems of a run."""
        return ()

    def known_as(self, state: State) -> Mapping[str, str]:
        """Return the signatures under which other programs print the same number, by field of ours."""
        return {}

    def resampled(self, sample: Resamples) -> Floats:
        """Return the corpus value for each resample, from the contributions that `partial` gave."""
        raise NeedError(f"{self.name} does not say what single rows add to its value, so it cannot be resampled")

    def left_out(self, sample: Resamples) -> Floats:
        """Return the values from which the jackknife finds the influence of clusters that resamples leave out.

        They are those of `resampled`, unless leaving out a cluster moves the value for another reason than the cluster.
        """
        return self.resampled(sample)


class Reduction(Generic[State]):
    """Merges states as they come, pairs of equal rank first: n states cost log n merges each, in a fixed shape."""

    def __init__(self, merge: Callable[[State, State], State], empty: Callable[[], State]) -> None:
        self._merge = merge
        self._empty = empty
        self._ranks: list[tuple[int, State]] = []

    def add(self, state: State) -> None:
        """Take one more state in."""
        rank = 0
        while self._ranks and self._ranks[-1][0] == rank:
            state = self._merge(self._ranks.pop()[1], state)
            rank += 1
        self._ranks.append((rank, state))

    def result(self) -> State:
        """Return the state of everything that was added."""
        while len(self._ranks) > 1:
            # Taken off before they are merged, so that no state is kept longer than it is needed.
            (_, later), (rank, earlier) = self._ranks.pop(), self._ranks.pop()
            self._ranks.append((rank + 1, self._merge(earlier, later)))
        return self._ranks[0][1] if self._ranks else self._empty()


class RowMetric(Metric[Moments]):
    """A metric that is the mean of one value per row; a subclass only says what that value is."""

    @abstractmethod
    def score(self, batch: Batch) -> Floats:
        """Return one value per row, NaN where a row cannot be scored."""

    def empty(self) -> Moments:
        return Moments()

    def partial(self, batch: Batch) -> Partial[Moments]:
        items = self.score(batch)
        check_column(self.name, items, len(batch))
        return Partial(Moments.of(items, batch.dialogues), {self.name: items})

    def merge(self, left: Moments, right: Moments) -> Moments:
        return left + right

    def finish(self, state: Moments) -> Mapping[str, Estimate]:
        estimate = Estimate.of_moments(state, self.bounds)
        return {self.name: estimate if self.untestable is None else replace(estimate, error=None)}


def check_column(metric: str, values: object, rows: int, of: str = "rows") -> None:
    """Raise SettingError unless a metric gave one number for each row."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == (rows,):
        return
    if isinstance(values, np.ndarray):
        given = f"an array of {values.dtype} of the shape {values.shape}"
    else:
        given = f"a {type(values).__name__}"
    raise SettingError(f"the metric {metric} gave {given} for {rows} {of}; an array of {rows} float64 is expected")


@cache
def _choices(metric: type[Metric[Any]]) -> Mapping[str, tuple[object, ...]]:
    """Return the possible values of every setting that is annotated `Literal[...]`."""
    settings, hints = set(metric.setting_names()), dict[str, Any]()
    for kind in reversed(metric.__mro__):
        # Only the annotations of settings are looked up: those of all class variables would take several times as long.
        own = {name: hint for name, hint in get_annotations(kind).items() if name in settings}
        with suppress(NameError):  # a name that only type checkers, or the function that defines the class, can see
            hints |= get_type_hints(SimpleNamespace(__annotations__=own), vars(sys.modules[kind.__module__]))
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


def _show_setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
