"""The fold: how every measurement is made.

A metric is a frozen dataclass of its settings. For a batch of rows it returns a `Partial`: a state that merges, and one
value per row. States merge in any order; the last one is finished into estimates. Corpus scores, per-row scores,
threads, processes and clusters all use these few functions:

    state = metric.empty()
    for batch in batches:
        state = metric.merge(state, metric.partial(batch).state)
    estimates = metric.finish(state)

`RowMetric` is the common case, a mean over rows: it needs one function, `score`. A metric that needs a statistic of all
rows before it scores the first (KL divergence: the frequency of each word) declares a `Fact`; the engine folds facts in
an earlier pass.
"""

from __future__ import annotations

import io
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cache
from inspect import get_annotations
from math import inf, isfinite, nan, sqrt
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import numpy.typing as npt
import orjson

from dialeval.core import inputs
from dialeval.core.arrays import EqualByFields, Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import Words
from dialeval.core.contributions import BatchContributions, Resamples
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.exact import UNIT_EXPONENT, ClusterError, Moments, mean_error
from dialeval.core.inputs import Input
from dialeval.core.signature import Signature
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__

T = TypeVar("T")

Better = Literal["higher", "lower"]
"""Which values of a metric are the better ones."""

Bounds: TypeAlias = tuple[float, float]
"""The smallest and the largest possible value; infinite where there is no limit."""

ANY_NUMBER: Bounds = (-inf, inf)

if TYPE_CHECKING:
    from typing_extensions import TypeVar as AnyVar

    State = AnyVar("State", default=Any)
    Known = AnyVar("Known", default=Any)
else:  # a default is for type checkers: `Metric` without brackets is one of any state
    State = TypeVar("State")
    Known = TypeVar("Known")


class Level(str, Enum):
    """The unit of a metric's items: a turn or a dialogue."""

    TURN = "turn"
    DIALOGUE = "dialogue"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False, slots=True)
class Partial(Generic[State]):
    """The result of a batch: a state to merge, and per result key one value per row (NaN: the row cannot be scored).

    `contributions` are the per-row statistics of a corpus value; `Metric.score_resamples` computes values from them.
    """

    state: State
    scores: Mapping[str, Floats]
    contributions: Mapping[str, BatchContributions] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resampling:
    """The method of an interval by resampling clusters, which are dialogues or single rows."""

    method: Literal["studentized", "jackknife"]
    level: float
    resamples: int
    seed: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Analytic:
    """The method of an interval by a formula (see `intervals`), over clusters that are dialogues or single rows."""

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
class Estimate(EqualByFields):
    """The value of a metric with its uncertainty.

    Attributes:
        mean: The value: a mean over rows or dialogues, or a corpus value.
        std: The standard deviation of the per-row scores; 0 for a corpus value.
        units: The number of rows or dialogues.
        scored: How many of them have a value.
        corpus: Whether the value is computed from all rows together, as that of distinct-2.
        half_width: Half the width of the confidence interval; NaN where there is none.
        interval: The ends of the confidence interval; None where there is none.
        scores: The per-row scores, NaN where a row has none; None where they were not kept.
        level: What a score is of, `turn` or `dialogue`.
        signature: The metric, its settings, and digests of its inputs, as one text.
        interval_by: How the interval was computed.
        error: The clustered standard error that intervals are computed from.
        missing: How many rows or dialogues should have a value and have none: their reply failed, or was not graded.

    Examples:
        >>> import dialeval
        >>> estimate = dialeval.evaluate(["a b", "a b c", "a", "a b"], metrics="length")["system"]["length"]
        >>> estimate
        <Estimate 2 [0.7008, 3.299], 4 turns>
        >>> estimate.scores
        array([2., 3., 1., 2.])
    """

    mean: float
    std: float
    units: int
    scored: int
    corpus: bool = False
    half_width: float = 0.0
    interval: tuple[float, float] | None = None
    scores: Floats | None = None
    level: Level = Level.TURN
    signature: Signature | None = None
    interval_by: Resampling | Analytic | None = None
    error: ClusterError | None = None
    missing: int = 0

    def __repr__(self) -> str:
        spread = " [{:.4g}, {:.4g}]".format(*self.interval or (nan, nan)).replace(" [nan, nan]", "")
        rows = f"{self.units:,}" if self.scored == self.units else f"{self.scored:,} of {self.units:,}"
        return f"<Estimate {self.mean:.4g}{spread}, {rows} {self.level}{'' if self.units == 1 else 's'}>"

    @classmethod
    def of_moments(cls, moments: Moments, bounds: Bounds = ANY_NUMBER) -> Estimate:
        """Make the estimate of a mean over rows.

        Args:
            moments: The sums of the values.
            bounds: The smallest and the largest possible value.

        Returns:
            The estimate, without an interval.
        """
        error = mean_error(moments.clusters, UNIT_EXPONENT, _is_at_ends(moments, bounds))
        return cls(moments.mean, moments.std, moments.rows, moments.scored, error=error)

    def with_confidence(self, t: float, level: float | None = None) -> Estimate:
        """Add the interval of dialog-eval, mean ± t · std / √scored.

        A corpus value keeps what it has, and one row has no interval.

        Args:
            t: The factor.
            level: The confidence level that the factor is for, where that is known.

        Returns:
            The estimate with `confidence` and `interval`.
        """
        if self.corpus or not self.scored:
            return self if self.corpus else replace(self, half_width=nan)
        confidence = t * self.std / sqrt(self.scored)
        if self.scored < 2:
            return replace(self, half_width=confidence)
        bounds = (self.mean - confidence, self.mean + confidence)
        how = Analytic("rows", level, "rows", self.scored, t)
        return replace(self, half_width=confidence, interval=bounds, interval_by=how)


def _is_at_ends(moments: Moments, bounds: Bounds) -> bool:
    """Return whether every value is the smallest or the largest possible one."""
    if not all(map(isfinite, bounds)):
        return False
    least, largest = map(Fraction, bounds)
    inside = (least + largest) * (moments.total << UNIT_EXPONENT) - moments.squares
    return inside == least * largest * (moments.scored << 2 * UNIT_EXPONENT)


class Fold(ABC, Generic[State]):
    """A computation whose state merges: a metric, or a fact.

    A state that grows with the rows, such as counts of n-grams, can be split into parts by a hash of what is counted:
    parts of the same number hold the same n-grams in every process. Each part is then merged by one worker, and closed:
    only what `finish` needs of it is kept.
    """

    @property
    def grows(self) -> bool:
        """Whether its state grows with the rows, and can be split."""
        return False

    @abstractmethod
    def empty(self) -> State:
        """Return the state of no rows: the identity of `merge`."""

    def merge(self, left: State, right: State) -> State:
        """Merge two states; associative and commutative, and it changes neither argument. Their sum unless defined."""
        return cast("State", cast(Any, left) + right)

    def split_state(self, state: State, parts: int) -> list[State]:
        """Split a state that grows into parts, each a state; they merge into the whole."""
        raise NotImplementedError(f"{self} has no state that grows")

    def close_part(self, state: State) -> State:
        """Close a part that is merged for all rows; closed parts merge into a state that `finish` takes."""
        return state


class Fact(Fold[State], Generic[State, Known]):
    """A statistic of all rows of a system, folded before metrics run; hashable, equal if it computes the same."""

    @abstractmethod
    def gather(self, batch: Batch) -> State:
        """Return the state of one batch, from what the metric that named the fact declares."""

    def finish(self, state: State) -> Known:
        """Return the value of the fact: the state itself, unless a class defines it."""
        return cast("Known", state)

    def change_metric(self, change: Callable[[Metric], Metric]) -> Fact[State, Known]:
        """Return the fact of a changed metric, for one that computes with a metric."""
        return self


class Declared:
    """What a metric declares, by class variables, or by settings or properties of the same names."""

    needs: ClassVar[frozenset[Input]]
    """The required inputs."""
    better: ClassVar[Better | None] = None
    """Which values are better; None where neither more nor less is (length, entropy)."""
    bounds: ClassVar[Bounds] = ANY_NUMBER
    """The smallest and the largest possible value; intervals stay within them."""


@dataclass(frozen=True)
class Metric(Declared, Fold[State]):
    """A metric with its settings as fields; metrics of one class with equal settings are equal.

    `family` is its name without settings; `presets` gives short names to common settings (`distinct-2` is
    `distinct(n=2)`); by default the family's name is that of the default settings. `str(metric)` is the shortest such
    name, and the registry parses it. `definition` grows by one whenever the same settings would give another value than
    before.

    A setting annotated `Literal[...]` takes one of the values listed there; a subclass that checks more in a
    `__post_init__` of its own calls this one first.
    """

    family: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, object]]]
    subject: ClassVar[Input] = inputs.RESPONSE
    """The column that is scored; a metric whose column is not given is left out without a warning."""
    level: ClassVar[Level] = Level.TURN
    definition: ClassVar[int] = 1
    advice: ClassVar[str] = "write a name, or a name with settings: distinct(n=3)"
    """What to do where a name with settings cannot be read."""
    implied: ClassVar[Mapping[str, object]] = {}
    """Settings that were added later, with the value that a signature without them implies."""
    counts_kinds: ClassVar[bool] = False
    """Whether its corpus value counts types (different n-grams). A resample repeats rows and adds no types: all its
    values are biased to one side, and an interval has to correct that."""
    untestable: ClassVar[str | None] = None
    """The reason why the spread of its values over rows is not the sampling error of their mean, or None. Such a mean
    has no test, and no interval but that of dialog-eval on request."""
    whole_dialogues: ClassVar[bool] = False
    """Whether its corpus value is computed from whole dialogues, so that a part of one has no value."""
    descriptive: ClassVar[bool] = False
    """Whether it only describes responses (diversity), so that a difference is no evidence of better responses."""
    costly: ClassVar[bool] = False
    """Whether it takes longer than all others together; `all` leaves it out, and it is computed only if named."""
    costly_rows: ClassVar[int] = 128
    """The maximum rows of a batch of a costly metric, so that all threads have work and progress is shown."""
    limits: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """The smallest and the largest value of numeric settings."""
    judges: ClassVar[bool] = False
    """Whether it judges replies, so that it does not score those that failed."""
    complete: ClassVar[bool] = False
    """Whether every row should have a value, as where a model was asked for one."""
    one_of: ClassVar[frozenset[Input]] = frozenset()
    """Optional inputs of which at least one must be given."""

    def __init_subclass__(cls) -> None:
        if "family" in vars(cls) and "presets" not in vars(cls):
            cls.presets = {cls.family: {}}

    def __post_init__(self) -> None:
        for name, choices in _list_choices(type(self)).items():
            if getattr(self, name) not in choices:
                listed = "|".join(map(str, choices))
                raise SettingError(f"{self.family} has {name}={listed}, not {getattr(self, name)!r}")
        for name, (low, high) in self.limits.items():
            if not (low <= getattr(self, name) <= high and isfinite(getattr(self, name))):
                ends = f"between {low:g} and {high:g}" if isfinite(high) else f"finite and at least {low:g}"
                limits = ends if isfinite(low) else "a finite number"
                raise SettingError(f"{name} of {self.family} must be {limits}, not {getattr(self, name)}")

    def __str__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        defaults = {field.name: field.default for field in fields(self)}
        for preset, settings in self.presets.items():
            if {**defaults, **settings} == values:
                return preset
        changed = [
            (name, value) for name, value in values.items() if defaults[name] is MISSING or value != defaults[name]
        ]
        text = ",".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in changed)
        return f"{self.family}({text})"

    @property
    def wants(self) -> frozenset[Input]:
        """The optional inputs; its value depends on them, so their digests are in the signature too.

        With a setting `oov=unk`, all words outside of the vocabulary count as one.
        """
        return frozenset({inputs.VOCABULARY}) if getattr(self, "oov", "self") == "unk" else frozenset()

    def bounds_of(self, key: str) -> Bounds:
        """Return the bounds of one of its results, for a metric whose results have different ones."""
        return self.bounds

    def estimate_scores(self, key: str, items: Floats, dialogues: Ints | None) -> Estimate:
        """Return the mean of some items of one of its results, with the error that its interval is made of."""
        return Estimate.of_moments(Moments.of(items, dialogues), self.bounds_of(key))

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The statistics of all rows that it needs before it scores the first."""
        return ()

    @classmethod
    def setting_names(cls) -> list[str]:
        """Return the names of its settings, in order."""
        return [field.name for field in fields(cls)]

    def with_settings(self, **changes: object) -> Metric:
        """Return a preset with other defaults of its family; a metric ignores settings that it has no use for."""
        return replace(self, **changes)

    def find_setting(self, name: str) -> Any:
        """Return one of its settings, or of the metric inside it; None if it has no such setting."""
        return getattr(self, name, None) if name in self.setting_names() else None

    def change_setting(self, name: str, value: object) -> Metric:
        """Return the metric with another value of a setting that it, or the metric inside it, has."""
        return replace(self, **{name: value}) if name in self.setting_names() else self

    @property
    def survey(self) -> Fact | None:
        """A statistic of the rows of all systems that decides what it measures, such as the names of all labels."""
        return None

    def settle(self, surveyed: Any) -> Mapping[str, Metric]:
        """Return the metrics that take its place once `surveyed`, the value of its survey, is known, by name."""
        return {self.name: self}

    @property
    def name(self) -> str:
        """Its name in commands and signatures, and the key of its main result."""
        return str(self)

    def signature(self) -> Signature:
        """Return the signature of its settings; the engine adds the digests of inputs."""
        settings = {name: getattr(self, name) for name in self.setting_names()}
        settings = {name: value for name, value in settings.items() if (name, value) not in self.implied.items()}
        return Signature.of(self.name, **settings, definition=self.definition, dialeval=__version__)

    @abstractmethod
    def partial(self, batch: Batch) -> Partial[State]:
        """Return state and items of one batch, from the columns that `needs` declares."""

    @abstractmethod
    def finish(self, state: State) -> Mapping[str, Estimate]:
        """Return the results of a state, by key."""

    def count_missing(self, items: Floats, batch: Batch) -> int:
        """Count the units that should have a value and have none: those of replies that failed, or all of them."""
        if not self.complete and inputs.OUTCOME not in batch.columns:
            return 0
        failed = batch.failed | (self.complete and ~batch.silent)
        if self.level is Level.DIALOGUE:
            failed = np.add.reduceat(failed, batch.dialogues[:-1]) > 0 if len(items) else failed
        return int(np.count_nonzero(np.isnan(items) & failed))

    def find_warnings(self, states: Sequence[State]) -> Iterable[str]:
        """Return warnings about its values, from the states of all systems of a run."""
        return ()

    def split_variance(self, state: State) -> Mapping[str, float] | None:
        """Return how much of the `variance` of a score is the sampling of a judge, and of how many `answers`."""
        return None

    def list_other_signatures(self, state: State) -> Mapping[str, str]:
        """Return the signatures of other programs that print the same value, by the field of our signature."""
        return {}

    def score_resamples(self, sample: Resamples) -> Floats:
        """Return the corpus value of each resample, from the per-row statistics that `partial` returned."""
        raise NeedError(f"{self.name} has no per-row statistics, so it cannot be resampled")

    def score_jackknife(self, sample: Resamples) -> Floats:
        """Return the values from which the jackknife computes the influence of clusters.

        They are those of `score_resamples`, unless the jackknife of the value itself is not consistent (a percentile).
        """
        return self.score_resamples(sample)


class Reduction(Generic[State]):
    """A merge of states as they come, pairs of equal rank first: n states cost log n merges each, in a fixed shape."""

    def __init__(self, merge: Callable[[State, State], State], empty: Callable[[], State]) -> None:
        self._merge = merge
        self._empty = empty
        self._ranks: list[tuple[int, State]] = []

    def add(self, state: State) -> None:
        """Add a state."""
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
    """A metric that is the mean of one value per row or dialogue (`level`); a subclass defines `score`."""

    @abstractmethod
    def score(self, batch: Batch) -> Floats:
        """Return one value per row or dialogue, NaN where it cannot be scored."""

    def empty(self) -> Moments:
        return Moments()

    def partial(self, batch: Batch) -> Partial[Moments]:
        items, dialogues = self.score(batch), batch.dialogues if self.level is Level.TURN else None
        check_column(self.name, items, len(batch) if dialogues is not None else len(batch.dialogues) - 1)
        if self.level is Level.TURN and self.subject == inputs.RESPONSE:  # there is no text to be measured
            left_out = batch.silent | batch.failed if self.judges else batch.silent
            items = np.where(left_out, nan, items) if left_out.any() else items
        return Partial(Moments.of(items, dialogues), {self.name: items})

    def finish(self, state: Moments) -> Mapping[str, Estimate]:
        estimate = Estimate.of_moments(state, self.bounds)
        return {self.name: estimate if self.untestable is None else replace(estimate, error=None)}


def check_column(metric: str, values: object, rows: int, of: str = "rows") -> None:
    """Raise SettingError unless a metric returned one float for each row."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.shape == (rows,):
        return
    if isinstance(values, np.ndarray):
        returned = f"an array of {values.dtype} of the shape {values.shape}"
    else:
        returned = f"a {type(values).__name__}"
    raise SettingError(f"the metric {metric} gave {returned} for {rows} {of}; an array of {rows} float64 is expected")


@cache
def _list_choices(metric: type[Metric]) -> Mapping[str, tuple[object, ...]]:
    """Return the possible values of every setting that is annotated `Literal[...]`."""
    settings, hints = set(metric.setting_names()), dict[str, Any]()
    for kind in reversed(metric.__mro__):
        # Only the annotations of settings are looked up: those of all class variables would take several times as long.
        plain = {name: hint for name, hint in get_annotations(kind).items() if "ClassVar" not in str(hint)}
        chosen = {name: hint for name, hint in plain.items() if name in settings}
        with suppress(NameError):  # a name that only type checkers, or the function that defines the class, can see
            hints |= get_type_hints(SimpleNamespace(__annotations__=chosen), vars(sys.modules[kind.__module__]))
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Literal}


# States for other processes: in terms of another vocabulary, and as bytes that are safe to read.
#
# A state is a tree of numbers, texts, arrays, lists, tuples, dicts and dataclasses. A class that cannot be written
# field by field (one that refers to a vocabulary) has `to_plain` and `from_plain`. `to_bytes` writes such a tree as
# JSON with its arrays next to it, in a NumPy archive. Nothing in it is executed: `from_bytes` makes only objects of the
# classes that a state of no rows contains.

_TREE_NAME = "tree"
_EXACT_IN_JSON = 1 << 53
_SEVERAL: Mapping[str, Callable[..., object]] = {
    **{kind.__name__: kind for kind in (list, tuple, dict, set, frozenset)},
    "Counter": lambda pairs: Counter(dict(pairs)),
}


def translate_state(state: T, vocabulary: Words) -> T:
    """Translate a state to another vocabulary, wherever it refers to one."""
    moved: object = state
    if hasattr(state, "to_vocabulary"):
        moved = state.to_vocabulary(vocabulary)
    elif is_dataclass(state) and not isinstance(state, type):
        parts = {field.name: translate_state(getattr(state, field.name), vocabulary) for field in fields(state)}
        moved = type(state)(**parts)
    elif isinstance(state, list | tuple):
        moved = type(state)([translate_state(part, vocabulary) for part in state])
    elif isinstance(state, dict):
        # A Counter stays one.
        moved = type(state)({key: translate_state(part, vocabulary) for key, part in state.items()})
    return cast(T, moved)


def to_bytes(state: object) -> bytes:
    """Write a state as bytes; SettingError for one that holds something else than plain data."""
    arrays: JsonObject = {}
    arrays[_TREE_NAME] = np.frombuffer(orjson.dumps(_to_tree(state, arrays)), np.uint8)
    target = io.BytesIO()
    np.savez(target, **arrays)
    return target.getvalue()


def from_bytes(content: bytes, like: object) -> Any:
    """Read a state that `to_bytes` wrote; `like` holds an object of every class that may occur in it."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return _from_tree(orjson.loads(arrays.pop(_TREE_NAME).tobytes()), arrays, _collect_classes(like))


def _name_class(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _to_tree(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> object:
    if value is None or isinstance(value, bool | str):
        return value
    if type(value) is int:
        return value if abs(value) < _EXACT_IN_JSON else {"int": hex(value)}
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, bytes | np.ndarray):
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            raise SettingError("a state with an array of Python objects cannot be saved")
        name = f"a{len(arrays)}"
        arrays[name] = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
        return {"bytes" if isinstance(value, bytes) else "array": name}
    if type(value) in (list, tuple, dict, set, frozenset, Counter):
        parts = value.items() if isinstance(value, dict) else value
        return {type(value).__name__: [_to_tree(part, arrays) for part in parts]}
    return {"class": _name_class(type(value)), "parts": [_to_tree(part, arrays) for part in _list_parts(value)]}


def _list_parts(value: object) -> tuple[object, ...]:
    if hasattr(value, "to_plain"):
        return tuple(value.to_plain())
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(getattr(value, field.name) for field in fields(value))
    kind = type(value).__name__
    raise SettingError(f"a state that holds a {kind} cannot be sent or saved; use dicts, lists, arrays or a dataclass")


def _collect_classes(value: object) -> dict[str, type]:
    """Return the classes of all objects in a tree, by name."""
    if isinstance(value, list | tuple | set | frozenset):
        return {name: kind for part in value for name, kind in _collect_classes(part).items()}
    if isinstance(value, dict):
        return _collect_classes([*value.keys(), *value.values()])
    if hasattr(value, "to_plain") or (is_dataclass(value) and not isinstance(value, type)):
        return {_name_class(type(value)): type(value)} | _collect_classes(_list_parts(value))
    return {}


def _from_tree(tree: object, arrays: Mapping[str, npt.NDArray[Any]], classes: Mapping[str, type]) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "class" in tree:
        kind: Any = classes[tree["class"]]
        make: Callable[..., object] = kind.from_plain if hasattr(kind, "from_plain") else kind
        return make(*[_from_tree(part, arrays, classes) for part in tree["parts"]])
    ((form, inside),) = tree.items()
    if form in ("int", "float"):
        return int(inside, 16) if form == "int" else float.fromhex(inside)
    if form in ("bytes", "array"):
        return arrays[inside].tobytes() if form == "bytes" else arrays[inside]
    return _SEVERAL[form](_from_tree(part, arrays, classes) for part in inside)
