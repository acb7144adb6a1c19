"""Tool calls against expected ones, and what calls show by themselves.

A call is a name and arguments. Two calls are equal if their names are, and their arguments by a declared rule:

- typed: true is not 1 and "5" is not 5, but 1 is 1.0, as in JSON; nested objects and lists are compared all through,
  objects whatever the order of their keys, lists in order;
- `tolerance`: numbers may differ by this fraction of the larger one; `text=folded`: case and repeated spaces of texts
  do not matter; `ignore=a+b`: arguments that do not count; `arguments=expected`: a call may have arguments that the
  expected one does not name. `match=name`: arguments do not matter at all;
- an expected call without `arguments` matches any; one with `compare_args` (tau2-bench) only by these.

With m the size of the largest one-to-one matching of equal calls, so that a call that is expected twice must be made
twice, and one that is made twice more than expected is extra:

    call-precision = m / made        call-recall = m / expected        call-f1 = 2 m / (made + expected)
    tool-precision, tool-recall, tool-f1: the same by names alone (match=name)
    missing-calls = expected - m     extra-calls = made - m            a mean over conversations
    call-order    = 2 * LCS / (made + expected)     LCS: longest common subsequence of both lists
    call-exact    = 1 if both lists are equal, call by call and in this order, else 0

`call-arguments` looks into calls that are not equal as a whole: calls of one name are paired so that most arguments
agree. An argument is a value at a path, so that nested ones count one by one. It is 2 * equal / (arguments made +
arguments expected) over the pairs; missing and extra calls are no part of it.

`call-errors` is the fraction of calls with a known result whose result is an error. `repeated-calls` is the fraction of
calls that were made before in the same conversation, with the same arguments. `call-assertions` is the fraction of
the rules of `--checks` about calls that hold, with a value for each rule:

    [[check]]
    rule = "must"              # or "must-not"; "before": each call of `before` has one of `call` ahead of it
    call = "verify_identity"
    before = "cancel_booking"  # of the rule "before", which does not apply where that is never called
    arguments = {}             # optional: those that a call must have to count, others being free
    name = "verify-first"      # optional: what its value is called

Fractions are of all conversations together (`per=response`: a mean over conversations), with an interval over
dialogues. A conversation is a row or a chat, also each trial of a task.

Paper: none; multiset precision, recall and F1, and the longest common subsequence, as usual. `call-exact` with
`match=name` is trajectory match in other programs.

Edge cases: a conversation without `expected_calls` is not scored against any, while an empty list says that none should
be made. Fractions with nothing below the line are not scored: the precision where no call was made, the recall where
none was expected, both F1 and `call-order` where neither was; `call-exact` is 1 there. Arguments that are no JSON are
compared as texts. Where calls are compared one by one (`tolerance`, `arguments=expected`, expected calls that leave
arguments open, `call-arguments`), a conversation with more than 100,000 pairs of calls is an error.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, nan
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError
from dialeval.core.fold import Better, Metric, RowMetric
from dialeval.metrics.counting import CountMetric, Flags, Per

Call = Mapping[str, Any]
Calls = list[Call]
MOST_PAIRS = 100_000
"""Of calls of a conversation that are compared one by one: 316 made and 316 expected."""


@dataclass(frozen=True)
class Rule:
    """When two calls are equal; also the settings of metrics against expected calls."""

    match: Literal["call", "name"] = "call"
    text: Literal["exact", "folded"] = "exact"
    tolerance: float = 0.0
    arguments: Literal["all", "expected"] = "all"
    ignore: str = ""

    def is_equal(self, expected: Call, made: Call) -> bool:
        """Return whether a call is the expected one."""
        if expected["name"] != made["name"]:
            return False
        if self.match == "name" or expected["arguments"] is None:
            return True
        return self.is_same(*self.select_arguments(expected, made))

    def select_arguments(self, expected: Call, made: Call) -> tuple[object, object]:
        """Return the arguments of both that count."""
        both = expected["arguments"], made["arguments"]
        if not all(isinstance(call, dict) for call in both):
            return both
        only, without = expected.get("compare"), set(self.ignore.split("+"))
        first, second = (
            {key: value for key, value in call.items() if key not in without and (only is None or key in only)}
            for call in both
        )
        return first, second

    def is_same(self, expected: object, made: object) -> bool:
        """Return whether two values are the same."""
        if isinstance(expected, dict) and isinstance(made, dict):
            enough = made.keys() >= expected.keys() if self.arguments == "expected" else made.keys() == expected.keys()
            return enough and all(self.is_same(value, made[key]) for key, value in expected.items())
        if isinstance(expected, list) and isinstance(made, list):
            return len(expected) == len(made) and all(map(self.is_same, expected, made))
        if isinstance(expected, bool) or isinstance(made, bool):
            return expected is made
        if isinstance(expected, int | float) and isinstance(made, int | float):
            return abs(expected - made) <= self.tolerance * max(abs(expected), abs(made))
        if self.text == "folded" and isinstance(expected, str) and isinstance(made, str):
            return _fold(expected) == _fold(made)
        return type(expected) is type(made) and bool(expected == made)

    def is_transitive(self, expected: Calls) -> bool:
        """Return whether two calls that equal the same expected call are equal too, so that calls have an identity."""
        is_loose = self.tolerance > 0 or self.arguments == "expected"
        is_open = any(call["arguments"] is None or call.get("compare") is not None for call in expected)
        return self.match == "name" or not (is_loose or is_open)

    def identify(self, call: Call) -> object:
        """Return what equal calls have in common, where the rule is transitive."""
        arguments = None if self.match == "name" else self._identify(self.select_arguments(call, call)[0])
        return call["name"], arguments

    def _identify(self, value: object) -> object:
        if isinstance(value, dict):
            return dict, frozenset((key, self._identify(item)) for key, item in value.items())
        if isinstance(value, list):
            return list, tuple(map(self._identify, value))
        if isinstance(value, bool):
            return bool, value
        return _fold(value) if isinstance(value, str) and self.text == "folded" else value


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


class ComparedCalls(NamedTuple):
    """The calls of a conversation, the expected ones, and which of both are equal."""

    made: Calls
    expected: Calls
    kinds: tuple[list[int], list[int]] | None
    """By call, a number that only equal calls share; None where a call may equal different ones."""
    equal: list[list[bool]]
    """By expected call, then by call; empty where there are kinds."""

    @property
    def matched(self) -> int:
        """The size of the largest one-to-one matching of equal calls."""
        if self.kinds is not None:
            made, expected = map(Counter, self.kinds)
            return (made & expected).total()
        partner: dict[int, int] = {}

        def find(at: int, tried: set[int]) -> bool:
            for other, equal in enumerate(self.equal[at]):
                if equal and other not in tried:
                    tried.add(other)
                    if other not in partner or find(partner[other], tried):
                        partner[other] = at
                        return True
            return False

        return sum(find(at, set()) for at in range(len(self.expected)))

    @property
    def common(self) -> int:
        """The length of the longest common subsequence."""
        if self.kinds is not None:
            from rapidfuzz.distance import LCSseq

            return int(LCSseq.similarity(*self.kinds))
        lengths = [0] * (len(self.made) + 1)
        for row in self.equal:
            before = lengths
            lengths = [0]
            for at, equal in enumerate(row):
                lengths.append(before[at] + 1 if equal else max(before[at + 1], lengths[at]))
        return lengths[-1]


def compare_calls(made: Calls, expected: Calls, rule: Rule) -> ComparedCalls:
    """Compare the calls of a conversation with the expected ones."""
    if rule.is_transitive(expected):
        numbers: dict[Any, int] = {}
        made_keys, other = (
            [numbers.setdefault(rule.identify(call), len(numbers)) for call in each] for each in (made, expected)
        )
        return ComparedCalls(made, expected, (made_keys, other), [])
    check_pairs(made, expected)
    return ComparedCalls(made, expected, None, [[rule.is_equal(one, other) for other in made] for one in expected])


def check_pairs(made: Calls, expected: Calls) -> None:
    """Raise ValueError for so many pairs of calls that comparing all of them would take long."""
    if len(made) * len(expected) > MOST_PAIRS:
        raise ValueError(f"{len(made):,} calls and {len(expected):,} expected ones are more than {MOST_PAIRS:,} pairs")


@dataclass(frozen=True)
class _Expecting(Rule, Metric):
    """A metric against expected calls."""

    subject = inputs.CALLS
    needs = frozenset({inputs.CALLS, inputs.EXPECTED_CALLS})
    better: ClassVar[Better | None] = "higher"
    bounds = (0.0, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.tolerance < 1:
            raise SettingError(f"tolerance is {self.tolerance:g}; it is a fraction from 0 up to 1")

    def compare(self, batch: Batch) -> list[ComparedCalls | None]:
        """Compare the calls of each row with the expected ones; None where a row has none."""
        rule = Rule(self.match, self.text, self.tolerance, self.arguments, self.ignore)
        both = zip(batch.fields(inputs.CALLS), batch.fields(inputs.EXPECTED_CALLS), strict=True)
        return batch.derive(
            rule,
            lambda: [compare_calls(made or [], right, rule) if right is not None else None for made, right in both],
        )


@dataclass(frozen=True)
class _CallFraction(CountMetric):
    """A fraction of counts; conversations with nothing below the line are not scored."""

    subject = inputs.CALLS
    bounds = (0.0, 1.0)

    per: Per = "corpus"

    @property
    def width(self) -> int:
        return 3

    @abstractmethod
    def count(self, batch: Batch) -> list[tuple[int, ...] | None]:
        """Return the counts of each row; None where a row has none."""

    def ratio(self, counts: Any) -> tuple[Any, Any]:
        """Return what is above and below the line: twice the first count, and the sum of the others."""
        return 2 * counts[:, 0], counts[:, 1] + counts[:, 2]

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        counted = self.count(batch)
        counts = np.array([numbers or (0,) * self.width for numbers in counted], np.int64).reshape(-1, self.width)
        return counts, np.array([numbers is not None for numbers in counted], np.bool_) & (self.ratio(counts)[1] > 0)

    def formula(self, counts: Ints | Floats) -> Floats:
        above, below = self.ratio(counts)
        return np.asarray(np.divide(above, below, out=np.zeros(len(counts)), where=below > 0))


@dataclass(frozen=True)
class CallMatch(_Expecting, _CallFraction):
    """Calls made against calls expected, as multisets: precision, recall and F1."""

    family = "call-match"
    presets = {
        f"{kind}-{of}": {"of": of, "match": match}
        for kind, match in (("call", "call"), ("tool", "name"))
        for of in ("f1", "precision", "recall")
    }

    of: Literal["f1", "precision", "recall"] = "f1"

    def count(self, batch: Batch) -> list[tuple[int, ...] | None]:
        pairs = self.compare(batch)
        return [None if pair is None else (pair.matched, len(pair.made), len(pair.expected)) for pair in pairs]

    def ratio(self, counts: Any) -> tuple[object, object]:
        return super().ratio(counts) if self.of == "f1" else (counts[:, 0], counts[:, 1 + (self.of == "recall")])


@dataclass(frozen=True)
class CallOrder(_Expecting, _CallFraction):
    """How far calls keep the expected order: the longest common subsequence."""

    family = "call-order"

    def count(self, batch: Batch) -> list[tuple[int, ...] | None]:
        pairs = self.compare(batch)
        return [None if pair is None else (pair.common, len(pair.made), len(pair.expected)) for pair in pairs]


@dataclass(frozen=True)
class _PerConversation(_Expecting, RowMetric):
    """A mean over conversations with expected calls."""

    @abstractmethod
    def value(self, pair: ComparedCalls) -> float:
        """Return the value of a conversation."""

    def score(self, batch: Batch) -> Floats:
        return np.array([nan if pair is None else self.value(pair) for pair in self.compare(batch)], np.float64)


@dataclass(frozen=True)
class CallSequence(_PerConversation):
    """Whether the expected calls were made, no others, and in the expected order."""

    family = "call-exact"

    def value(self, pair: ComparedCalls) -> float:
        return float(len(pair.made) == len(pair.expected) == pair.common)


@dataclass(frozen=True)
class MissingCalls(_PerConversation):
    """The number of expected calls of a conversation that were not made."""

    family = "missing-calls"
    better = "lower"
    bounds = (0.0, inf)

    def value(self, pair: ComparedCalls) -> float:
        return float(len(pair.expected) - pair.matched)


@dataclass(frozen=True)
class ExtraCalls(MissingCalls):
    """The number of calls of a conversation that were not expected."""

    family = "extra-calls"

    def value(self, pair: ComparedCalls) -> float:
        return float(len(pair.made) - pair.matched)


@dataclass(frozen=True)
class ArgumentMatch(_Expecting, _CallFraction):
    """Arguments of calls against those of expected calls of the same name."""

    family = "call-arguments"

    def count(self, batch: Batch) -> list[tuple[int, ...] | None]:
        return [None if pair is None else self._count(pair) for pair in self.compare(batch)]

    def _count(self, pair: ComparedCalls) -> tuple[int, ...]:
        """Return how many arguments are equal, made and expected, in the pairs of calls that agree most."""
        totals = np.zeros(3, np.int64)
        for name in dict.fromkeys(call["name"] for call in pair.expected):
            calls_due, other = (
                [call for call in calls if call["name"] == name] for calls in (pair.expected, pair.made)
            )
            check_pairs(other, calls_due)
            counts = np.array([[self._count_equal(one, two) for two in other] for one in calls_due], np.int64)
            if counts.size:
                most = int(counts[:, :, 1:].sum()) + 1  # of equally good pairs those with the fewest arguments
                weights = counts[:, :, 0] * most - counts[:, :, 1:].sum(axis=2)
                totals += sum(counts[row, column] for row, column in find_best_pairs(weights))
        return tuple(totals.tolist())

    def _count_equal(self, expected: Call, made: Call) -> tuple[int, int, int]:
        if expected["arguments"] is None or self.match == "name":
            return 0, 0, 0
        due, leaves = (dict(_list_leaves(each)) for each in self.select_arguments(expected, made))
        if self.arguments == "expected":
            leaves = {path: value for path, value in leaves.items() if path in due}
        equal = sum(path in leaves and self.is_same(value, leaves[path]) for path, value in due.items())
        return equal, len(leaves), len(due)


def _list_leaves(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], object]]:
    """Yield the values inside nested arguments with their paths; an empty object or list inside is a value."""
    if isinstance(value, dict | list) and (value or not path):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _list_leaves(inner, (*path, key))
    else:
        yield path, value


def find_best_pairs(weights: Ints) -> list[tuple[int, int]]:
    """Return the pairs of rows and columns with the largest sum of weights, each at most once (Hungarian method)."""
    if weights.shape[0] > weights.shape[1]:
        return [(row, column) for column, row in find_best_pairs(weights.T)]
    costs = (weights.max() - weights).tolist()
    rows, columns = weights.shape
    above, left, owner = [0.0] * (rows + 1), [0.0] * (columns + 1), [0] * (columns + 1)
    for row in range(1, rows + 1):
        owner[0], at = row, 0
        slack, before, done = [inf] * (columns + 1), [0] * (columns + 1), [False] * (columns + 1)
        while owner[at]:
            done[at], own, step, following = True, owner[at], inf, 0
            for column in range(1, columns + 1):
                if not done[column]:
                    cost = costs[own - 1][column - 1] - above[own] - left[column]
                    if cost < slack[column]:
                        slack[column], before[column] = cost, at
                    if slack[column] < step:
                        step, following = slack[column], column
            for column in range(columns + 1):
                if done[column]:
                    above[owner[column]] += step
                    left[column] -= step
                else:
                    slack[column] -= step
            at = following
        while at:
            owner[at], at = owner[before[at]], before[at]
    return [(owner[column] - 1, column - 1) for column in range(1, columns + 1) if owner[column]]


@dataclass(frozen=True)
class CallErrors(_CallFraction):
    """The fraction of calls whose result is an error."""

    family = "call-errors"
    needs = frozenset({inputs.CALLS})
    better = "lower"

    @property
    def width(self) -> int:
        return 2

    def count(self, batch: Batch) -> list[tuple[int, ...] | None]:
        return [None if calls is None else self.count_calls(calls) for calls in batch.fields(inputs.CALLS)]

    def count_calls(self, calls: Calls) -> tuple[int, int]:
        """Return how many calls of a conversation are counted above and below the line."""
        errors = [call["error"] for call in calls if "error" in call]
        return sum(errors), len(errors)

    def ratio(self, counts: Any) -> tuple[object, object]:
        return counts[:, 0], counts[:, 1]


@dataclass(frozen=True)
class RepeatedCalls(CallErrors):
    """The fraction of calls that were made before in the same conversation, with the same arguments."""

    family = "repeated-calls"

    def count_calls(self, calls: Calls) -> tuple[int, int]:
        return len(calls) - len(set(map(Rule().identify, calls))), len(calls)
