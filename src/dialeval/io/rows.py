"""Rows: the responses of one system with their contexts and references, as columns.

`columns` holds the responses (a `TextColumn`) where they are scored; references and contexts (each a `RaggedColumn`,
or a `SharedColumn` for the contexts of chats) are there where the input gives them; a row that has none has no text.
Suites bring columns of their own. All columns of a system are equally long, and the order of the rows is the input's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from dialeval.core import inputs
from dialeval.core.account import Account
from dialeval.core.arrays import Ints, Mask, offsets_of, ranges, row_numbers
from dialeval.core.columns import (
    ColumnData,
    FieldColumn,
    RaggedColumn,
    SharedColumn,
    TextColumn,
    join_columns,
    make_empty,
)
from dialeval.core.errors import DataError, Problem, ProblemList, SettingError
from dialeval.core.inputs import Column, Input
from dialeval.core.rowtable import NO_TURN, RowTable
from dialeval.io import row_shapes

if TYPE_CHECKING:
    import builtins


__all__ = ["NO_TURN", "Rows", "split_systems"]

SHOWN = (
    *(inputs.CONTEXT, inputs.ROLES, inputs.RESPONSE, inputs.REFERENCE, inputs.HYPOTHESES),
    *(inputs.TRIALS, inputs.CALLS, inputs.EXPECTED_CALLS),
)
"""The columns that reports show next to the values of a row."""

_COMPARED_ROWS = 1 << 16
"""Rows whose names are compared at a time, so that many millions need little memory."""

READ_COLUMNS = (inputs.CALLS, inputs.EXPECTED_CALLS, inputs.TRIALS, inputs.TURN_LABELS, inputs.LATENCY)
"""Columns of files with a value in some rows only."""

_PLACE_NAME = re.compile(r"(row|line) \d+")
"""The name of a dialogue without an id: its place in the input."""


@dataclass(frozen=True, eq=False, slots=True)
class Rows:
    """One system's rows; `where` names the file or object they came from."""

    system: str
    columns: Mapping[Input, ColumnData]
    dialogues: TextColumn | None = None
    turns: Ints | None = None
    where: str = "responses"
    offsets: Ints | None = None
    """Row offsets of the dialogues, where they are known already."""
    fields: Mapping[str, RaggedColumn] = field(default_factory=dict)
    """Further fields that were asked for, by name: any number of values per row, as texts."""
    shown: Mapping[str, TextColumn] = field(default_factory=dict)
    """Texts by name that are shown in reports and used by no metric."""
    asked: Ints | None = None
    """User turns since the row before, where they were counted; -1 where they were not."""
    account: Account = field(default_factory=Account)
    """What was read; parts of the rows have an empty one."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def responses(self) -> TextColumn:
        """The responses, the one column that is always there."""
        return cast("TextColumn", self.columns[inputs.RESPONSE])

    def slice(self, start: int, stop: int) -> Rows:
        """Return rows `start` to `stop`, over the same bytes."""
        offsets = self.offsets
        if offsets is not None:  # a dialogue may be split
            inner = offsets[np.searchsorted(offsets, start, "right") : np.searchsorted(offsets, stop, "left")]
            offsets = np.concatenate(([0], inner - start, [stop - start] if stop > start else inner[:0]))
        return self._pick(lambda column: column.slice(start, stop), slice(start, stop), offsets)

    def take(self, rows: Ints) -> Rows:
        """Return the given rows in the given order, over the same bytes."""
        return self._pick(lambda column: column.take(rows), rows, None)

    def _pick(self, pick: Callable[[Any], Any], rows: builtins.slice | Ints, offsets: Ints | None) -> Rows:
        return replace(
            self,
            columns={need: pick(column) for need, column in self.columns.items()},
            dialogues=None if self.dialogues is None else pick(self.dialogues),
            turns=None if self.turns is None else self.turns[rows],
            offsets=offsets,
            fields={name: pick(column) for name, column in self.fields.items()},
            shown={name: pick(column) for name, column in self.shown.items()},
            asked=None if self.asked is None else self.asked[rows],
            account=Account(),
        )

    @classmethod
    def join(cls, parts: Sequence[Rows]) -> Rows:
        """Join the parts of one system; no dialogue continues from one part to the next.

        Where a part lacks a column of texts or a field that another has, its rows have none.
        """
        if len(parts) == 1:
            return parts[0]
        needs = dict.fromkeys(need for part in parts for need in part.columns)
        fields = dict.fromkeys(name for part in parts for name in part.fields)
        named = any(part.dialogues is not None for part in parts)
        turned = any(part.turns is not None for part in parts)
        before = offsets_of(map(len, parts)).tolist()
        turns = [np.full(len(part), NO_TURN) if part.turns is None else part.turns for part in parts]
        return replace(
            parts[0],
            columns={
                need: join_columns(
                    [part.columns[need] if need in part.columns else make_empty(need, len(part)) for part in parts]
                )
                for need in needs
            },
            dialogues=join_columns([part.names(at) for part, at in zip(parts, before, strict=False)])
            if named
            else None,
            turns=np.concatenate(turns) if turned else None,
            offsets=offsets_of(np.concatenate([np.diff(part.dialogue_offsets()) for part in parts])),
            fields={
                name: join_columns([part.fields.get(name, RaggedColumn.from_lists([()] * len(part))) for part in parts])
                for name in fields
            },
            shown={
                name: join_columns([part.shown[name] for part in parts])
                for name in parts[0].shown
                if all(name in part.shown for part in parts)
            },
            asked=np.concatenate([np.full(len(part), -1) if part.asked is None else part.asked for part in parts]),
            account=sum((part.account for part in parts), Account()),
        )

    def names(self, before: int = 0) -> TextColumn:
        """Return the names of the dialogues; where there are none, each row is one and is named by its place."""
        if self.dialogues is not None:
            return self.dialogues
        return TextColumn.from_strings([f"row {before + row}" for row in range(1, len(self) + 1)])

    def move_behind(self, before: int, own: int = 0) -> Rows:
        """Return the rows behind others: names of dialogues that are places of rows count these.

        `own`: how many rows of the same input come before these.
        """
        if self.dialogues is None or not before:
            return self
        names = enumerate(self.dialogues, own + 1)
        named = [f"row {before + row}" if name == f"row {row}" else name for row, name in names]
        return replace(self, dialogues=TextColumn.from_strings(named))

    def dialogue_offsets(self) -> Ints:
        """Return where each dialogue starts, and the end: runs of equal dialogue ids, or one row each without ids."""
        if self.offsets is not None:
            return self.offsets
        if self.dialogues is None:
            return np.arange(len(self) + 1, dtype=np.int64)
        return np.concatenate((np.flatnonzero(_mark_changes(self.dialogues)), [len(self.dialogues)]))

    def places(self, offsets: Ints) -> RowTable:
        """Return the table of rows that are released; names that are places of rows are left out."""
        names = None if self.dialogues is None else self.dialogues.take(offsets[:-1])
        names_given: list[str | None] = [] if names is None else list(names)
        for number in [] if names is None else _find_place_names(names):
            names_given[number] = None
        return RowTable(offsets, names_given if any(names_given) else None, self.turns)

    def ids(self, offsets: Ints) -> TextColumn | None:
        """Return the ids of the dialogues that have one; a name that is the place of a row is none."""
        if self.dialogues is None:
            return None
        names = self.dialogues.take(offsets[:-1])
        has_id = names.ends > names.starts
        has_id[_find_place_names(names)] = False
        return names.take(np.flatnonzero(has_id))

    def table(self) -> RowTable:
        """Return the table that a result keeps of its rows, over the same bytes."""
        offsets = self.dialogue_offsets()
        names = None if self.dialogues is None else list(self.dialogues.take(offsets[:-1]))
        columns = {str(need): self.columns[need] for need in SHOWN if need in self.columns}
        kinds = (TextColumn, RaggedColumn, SharedColumn)
        texts = {name: column for name, column in columns.items() if isinstance(column, kinds)}
        objects = {name: column for name, column in columns.items() if isinstance(column, FieldColumn)}
        return RowTable(offsets, names, self.turns, {**texts, **self.shown}, self.fields, objects=objects)


def _mark_changes(names: TextColumn) -> Mask:
    """Return whether each name differs from that of the row before; True for the first."""
    lengths = names.ends - names.starts
    differs: Mask = np.diff(lengths, prepend=-1) != 0
    # Rows over the same bytes are of one dialogue; of others with as many bytes these are compared.
    alike = np.flatnonzero(~differs[1:] & (np.diff(names.starts) != 0)) + 1
    for start in range(0, len(alike), _COMPARED_ROWS):
        rows = alike[start : start + _COMPARED_ROWS]
        texts, before = (names.data[ranges(names.starts[which], lengths[rows])] for which in (rows, rows - 1))
        differs[rows[row_numbers(offsets_of(lengths[rows]))[texts != before]]] = True
    return differs


def _find_place_names(names: TextColumn) -> list[int]:
    """Return the numbers of the names that are places of rows."""
    named = np.flatnonzero(names.ends > names.starts)
    letters = names.data[names.starts[named]]
    maybe = named[(letters == ord("r")) | (letters == ord("l"))]  # only few names are decoded
    return [number for number in maybe.tolist() if _PLACE_NAME.fullmatch(names[number])]


def split_systems(rows: Rows, systems: Sequence[str | None], system: str) -> list[Rows]:
    """Return the rows of each system in the order of appearance; `system` is the name of those that give none."""
    named = {name: code for code, name in enumerate(dict.fromkeys(each or system for each in systems))}
    if len(named) == 1:
        return [replace(rows, system=next(iter(named)))]
    codes = np.array([named[each or system] for each in systems], np.int64)
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return [replace(rows.take(part), system=name) for name, part in zip(named, parts, strict=True)]


# Parsed rows, the names of their fields, and words for types of values.

T = TypeVar("T")
RowObject: TypeAlias = dict[str, object]

EOS = "</s>"
"""The default separator of several responses in a line."""
LISTS = (list, tuple)
"""A list, from a file or from Python; as a tuple, since building a union type on every check costs time."""

SYSTEM, USER, ASSISTANT, TOOL = OUR_ROLES = ("system", "user", "assistant", "tool")
"""The roles of messages."""
ROLE_KEYS = ("role", "from", "sender", "speaker", "author", "sender_type", "sender_name")
"""The fields of a message with its role."""
CONTENT_KEYS = ("content", "value", "text", "parts", "message", "body", "utterance")
"""The fields of a message with its content."""
TIME_KEYS = ("timestamp", "timestamp_ms", "ts", "created_at", "createdAt", "sent_at", "time", "date", "datetime")
"""The fields of a message with its time."""
ASKED = "\0asked"
"""A mark of rows that say how many turns of the user they add, as those of a tree."""
PROMPT = "prompt"
"""The field with the context of a row that has none by its name."""
_MESSAGE_COLUMNS = (*ROLE_KEYS, *CONTENT_KEYS, *TIME_KEYS)
_CAREFUL = ("scores", "user_input", ASKED)
_SHOWN_NAMES = 12
_SETTINGS = frozenset(("columns", "scores", "kept", "system_prompts", "separator", "every_call", "skip_invalid"))
_SETTINGS |= {"keep_reasoning", "roles"}
"""What `FieldNames` holds next to names of our fields."""


SCORE_FIELDS = ("scores", "score", "metrics", "feedback", "feedback_scores", "assessments", "ratings", "grades")
"""The fields of a row or a message that hold several scores: an object by name, or a list of objects with a name."""
DIALOGUE_IDS = ("dialog_id", "dialogue_id", "conversation_id", "chat_id", "thread_id", "session_id", "trace_id")
"""The names of the field with the dialogue's id, the finest first; a trace is often a single request."""
_CAMEL_CASE = {name: re.sub("_(.)", lambda match: match[1].upper(), name) for name in DIALOGUE_IDS}
_SECONDS = {"latency": 1.0, "latency_seconds": 1.0, "latency_s": 1.0, "latency_ms": 0.001, "latencyMs": 0.001}
"""The names of the field with the latency, and their units in seconds."""


def length_problem(path: str, rows: int, other: str, others: int) -> Problem:
    """Return the problem of two files that should have equally many lines."""
    what = f"has {rows:,} rows, but {other} has {others:,}"
    first = f"{path if rows > others else other}:{min(rows, others) + 1}"
    return Problem(path, None, what, f"both must have one line per response; {first} is the first without")


@dataclass(frozen=True)
class FieldNames:
    """The names that the fields of a row have in the input."""

    dialog_id: str = "dialog_id"
    turn: str = "turn"
    system: str = "system"
    context: str = "context"
    response: str = "response"
    reference: str = "reference"
    response_is_reference: str = "response_is_reference"
    messages: str = "messages"
    trial: str = "trial"
    reward: str = "reward"
    reward_parts: str = "reward_parts"
    termination: str = "termination"
    cost: str = "cost"
    tool_calls: str = "tool_calls"
    expected_calls: str = "expected_calls"
    labels: str = "labels"
    latency: str = "latency"
    error: str = "error"
    """What went wrong with a reply; see `outcomes`."""
    status: str = "status"
    finish_reason: str = "finish_reason"
    columns: tuple[Column, ...] = ()
    """Fields of the rows that metrics ask for."""
    scores: tuple[str, ...] = ()
    """Scores of the rows that metrics ask for, by name; `*`: all."""
    kept: tuple[str, ...] = ()
    """Further fields that rows keep, by the names that they have in the input."""
    system_prompts: bool = False
    """Whether system prompts are part of contexts."""
    separator: str | None = None
    """What is between the cells of a CSV file; None: it is found."""
    every_call: bool = False
    """Whether a row without any call counts as one that makes none, for assertions about calls."""
    skip_invalid: bool = False
    """Whether rows that cannot be read are skipped and counted, instead of being errors."""
    keep_reasoning: bool = False
    """Whether reasoning blocks (`<think>...</think>`) are part of replies."""
    roles: tuple[tuple[str, str], ...] = ()
    """Further names of roles, in lower case, each with ours."""

    @classmethod
    def of(cls, names: Mapping[str, str] | None, kept: Iterable[str] = (), **settings: Any) -> FieldNames:
        """Return the usual names, except for those mapped as in `{"response": "answer"}`; and how rows are read."""
        usual = [each.name for each in fields(cls) if each.name not in _SETTINGS]
        separator = settings.get("separator")
        if separator is not None and (len(separator) != 1 or separator in '"\r\n\0' or not separator.isascii()):
            raise SettingError(f"cells cannot be separated by {separator!r}; give one character, such as ; or |")
        for name, actual in (names or {}).items():
            if name not in usual:
                raise SettingError(f"there is no field {name!r} to map; a row has {', '.join(usual)}")
            if not isinstance(actual, str) or not actual:
                raise SettingError(f"field {name!r} is mapped to {actual!r}; map it to the name it has in the input")
        roles = tuple((str(theirs).lower(), ours) for theirs, ours in dict(settings.pop("roles", None) or ()).items())
        for theirs, ours in roles:
            if ours not in OUR_ROLES:
                raise SettingError(f"the role {theirs!r} is mapped to {ours!r}; roles are {', '.join(OUR_ROLES)}")
        return cls(**{**(names or {}), **settings, "kept": tuple(kept), "roles": roles})

    @property
    def mapped(self) -> bool:
        """Whether the user named the field of responses or messages, so that no shape is searched."""
        return self.response != "response" or self.messages != "messages"

    @property
    def careful(self) -> tuple[str, ...]:
        """The fields that only the reader of single rows knows: rows that have one are not read by column."""
        always = (self.messages, self.response_is_reference, self.trial, self.tool_calls, self.expected_calls)
        return (*always, self.labels, *self.latencies, self.error, self.status, self.finish_reason, *_CAREFUL)

    @cached_property
    def dialog_ids(self) -> tuple[str, ...]:
        """The fields that may hold the dialogue's id, in the order in which they are looked for."""
        usual = [name for field_name in DIALOGUE_IDS for name in dict.fromkeys((field_name, _CAMEL_CASE[field_name]))]
        return tuple(usual) if self.dialog_id == "dialog_id" else (self.dialog_id,)

    @cached_property
    def latencies(self) -> Mapping[str, float]:
        """The fields that may hold the latency, with their units in seconds."""
        name = self.latency
        if name == "latency":
            return _SECONDS
        return {name: 0.001 if re.search(r"(_ms|Ms|_millis|Millis|_milliseconds|Milliseconds)$", name) else 1.0}

    def find_dialog_id(self, row: Mapping[str, object]) -> str:
        """Return the field of a row that holds the dialogue's id."""
        return next((name for name in self.dialog_ids if row.get(name) not in (None, "")), self.dialog_id)

    def find_context(self, row: Mapping[str, object]) -> str:
        """Return the field of a row that holds its context: the prompt, where it has none."""
        is_prompt = self.context == "context" and "context" not in row and isinstance(row.get(PROMPT), str | list)
        return PROMPT if is_prompt else self.context

    def with_columns(self, there: Collection[str]) -> FieldNames:
        """Return the names of fields for a table with some columns."""
        found = next((name for name in self.dialog_ids if name in there), self.dialog_id)
        return self if found == self.dialog_id else replace(self, dialog_id=found)

    @cached_property
    def paths(self) -> list[str]:
        """The names that lead into objects, such as `output.text`."""
        return [name for name in self.all if "." in name]

    @cached_property
    def beside(self) -> list[str]:
        """The fields that a row of another shape may also have by our names; its `system` may be a prompt."""
        return [name for name in self.all if name not in (self.response, self.messages, "system")]

    @cached_property
    def all(self) -> list[str]:
        """The names of all our fields."""
        return [getattr(self, each.name) for each in fields(self) if each.name not in _SETTINGS]

    def choose_columns(self, there: Sequence[str], need: Input | None) -> list[str]:
        """Return the columns of a table that can matter to a need; all where it lacks the main one, for the error."""
        if need is None or "*" in self.scores:
            return list(there)
        main = {self.name(need), self.response, *([self.messages] if need == inputs.RESPONSE else [])}
        shapes = frozenset() if self.response in there else row_shapes.list_columns()
        asked = [column.field or "" for column in self.columns]
        if self.scores:
            asked += [*self.scores, *SCORE_FIELDS]
        wanted = [*self.all, *self.kept, *asked, *self.dialog_ids, *self.latencies, *_MESSAGE_COLUMNS]
        chosen = {*wanted, *(name.partition(".")[0] for name in wanted), "id", PROMPT, *shapes}
        return [name for name in there if name in chosen] if main.intersection(there) else list(there)

    def name(self, need: Input) -> str:
        """Return the field that holds what a need names."""
        return str(getattr(self, str(need)))


@dataclass(slots=True)
class Records:
    """Parsed rows with the line of each, read lazily.

    `problems` grows with what does not parse, and the consumer adds its own, so that the list is in file order.
    Where rows are only numbered, as in a list, the number stands for the line; problems of a JSON document name the
    items of the list `items_of`.
    """

    where: str
    rows: Iterable[tuple[int, object]]
    problems: list[Problem] = field(default_factory=ProblemList)
    items_of: str | None = None
    """The name of the list in a JSON document; empty where it has none."""

    def __post_init__(self) -> None:
        if isinstance(self.problems, ProblemList):
            self.problems.when_full = self.raise_problems

    def move_problems(self, target: list[Problem]) -> int:
        """Move all problems behind others; return how many are left."""
        target += self.problems
        self.problems.clear()
        return 0

    def raise_problems(self) -> None:
        """Raise if anything is wrong."""
        if self.items_of is not None:
            of = f" of {self.items_of!r:.60}" if self.items_of else ""
            self.problems = [
                replace(each, where=f"{each.where}, item {each.line}{of}" if each.line else each.where, line=None)
                for each in self.problems
            ]
        if self.problems:
            raise DataError(self.problems)


def split_fields(given: str | Iterable[str]) -> list[str]:
    """Return names of fields, each once: those of a list, or of a text with commas between them."""
    names = [each.strip() for each in given.split(",")] if isinstance(given, str) else given
    return list(dict.fromkeys(name for name in names if name != ""))


def read_each(readers: Iterable[Callable[[], T]]) -> list[T]:
    """Return what every reader returns, or the problems of all of them."""
    results: list[T] = []
    problems: list[Problem] = []
    for read in readers:
        try:
            results.append(read())
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return results


def read_number(value: object) -> float | None:
    """Return a number, also one in a text; None for anything else, and for what is not finite."""
    try:
        number = float(value) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and math.isfinite(number) else None


def kind_of(value: object) -> str:
    """Return the type of a value in words, for messages."""
    if isinstance(value, bool):
        return "true or false"
    for kinds, words in _KINDS:
        if isinstance(value, kinds):
            return words
    return f"a Python {type(value).__name__}"


_KINDS: list[tuple[type | tuple[type, ...], str]] = [
    (type(None), "null"),
    (str, "a string"),
    ((int, float), "a number"),
    (LISTS, "a list"),
    (dict, "an object"),
]


def join_names(names: Iterable[object]) -> str:
    """Return names for a message, cut short where they are many."""
    texts = [str(name) for name in names]
    more = ["..."] if len(texts) > _SHOWN_NAMES else []
    return ", ".join(texts[:_SHOWN_NAMES] + more) or "nothing"
