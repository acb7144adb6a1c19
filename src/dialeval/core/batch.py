"""The batch: consecutive rows of one system, as a metric sees them.

A metric gets only the columns, resources and facts that it declared; values derived from them are computed once for all
metrics of the batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeVar, cast

import numpy as np

from dialeval.core.arrays import Cache, Floats, Ints, Mask
from dialeval.core.columns import Column, NumberColumn, ObjectColumn, RaggedColumn, SharedColumn, TextColumn, Words
from dialeval.core.errors import NeedError

# Inputs of metrics, and the options that provide them.
#
# A need is a column of the rows or a resource: the training text, the vocabulary, word vectors. The plan skips a metric
# when one of its needs is not met, and prints `remedy`.


class Need(str, Enum):
    """An input that a metric declares before it may read it."""

    argument: str
    """The keyword of `dialeval.evaluate` that provides it."""
    flag: str
    """The option of `dialeval score` that provides it."""

    RESPONSE = "response", "responses", "RESPONSES"
    REFERENCE = "reference", "references", "-r"
    CONTEXT = "context", "contexts", "-c"
    ROLES = "roles", "contexts", "-c"
    """Who said each turn of a context: user, assistant, tool or system; empty where the input does not say."""
    HYPOTHESES = "hypotheses", "responses", "HYPOTHESES"
    """Several responses to one query, as sampled from a system."""
    REFERENCE_GROUPS = "reference-groups", "reference_groups", "-r"
    """References in groups of one meaning each."""
    LABELS = "labels", "labels", "-o"
    """A breakdown detector's label and probabilities for a turn."""
    ANNOTATIONS = "annotations", "data", "-p"
    """Human annotations of a turn: the number of annotators who labeled it O, T and X."""
    TASK_TURNS = "task-turns", "predictions", "-i"
    """The turns of task dialogues: response and, where a system gives them, state and active domains."""
    TRIALS = "trials", "trials", "fields trial and reward in RESPONSES"
    """The trials of tasks, each in its first row, as JSON texts."""
    CALLS = "calls", "calls", "messages with tool calls, or a field tool_calls, in RESPONSES"
    """The tool calls of a row, or in the last row of a chat those of the chat: at most one text, a JSON list."""
    EXPECTED_CALLS = "expected-calls", "expected_calls", "a field expected_calls in RESPONSES"
    """The calls that should be made, in the rows that have calls."""
    TURN_LABELS = "turn-labels", "labels", "a field labels in RESPONSES, or in its messages"
    """Labels of a reply by annotators or models: at most one text, a JSON object with counts of annotators."""
    LATENCY = "latency", "latency", "a field latency, or messages with a timestamp, in RESPONSES"
    """The seconds until a reply was there: at most one text, a number."""
    OUTCOME = "outcome", "responses", "RESPONSES"
    """Of a reply that failed, why: `missing`, `empty`, `error` or `skipped`; at most one text."""
    ASSERTIONS = "assertions", "assertions", "--assertions"
    """Rules about tool calls, from a TOML file."""
    STATES = "states", "states", "a `state` in every turn of -i"
    """The states that a system predicts, one in every turn."""
    FRAMES = "frames", "predictions", "PREDICTIONS"
    """What a system tracks of one service in a user turn: intent, requested slots, values of slots."""
    SPANS = "spans", "spans", "`slots` in frames of PREDICTIONS"
    """The words of a user turn that are values of slots of a service, by a system."""
    TRUE_FRAMES = "true-frames", "references", "-r"
    """The true frame of each row, with its service."""
    SCHEMA = "schema", "schema", "--schema"
    """The slots of each service, and which of them are categorical."""
    GOALS = "goals", "data", "--data"
    TRUE_STATES = "true-states", "data", "--data"
    REFERENCE_SETS = "reference-sets", "data", "--data"
    ONTOLOGY = "ontology", "data", "--data"
    VENUES = "venues", "data", "--data"
    TRAIN = "train", "train", "--train"
    VOCABULARY = "vocabulary", "vocabulary", "--vocabulary"
    EMBEDDINGS = "vectors", "vectors", "--vectors"
    JUDGE = "judge", "judge_dir", "--judge-dir"
    """A learned judge with its sentence encoder; available without an option wherever the encoder is installed."""
    DIALOGUE_JUDGE = "dialogue-judge", "judge_dir", "--judge-dir"
    """The same for a judge that reads context and response together."""
    ENCODER = "encoder", "encoder", "an installed sentence encoder"
    """The sentence encoder of the shipped judges; available without an option wherever it is installed."""
    LLM = "llm", "llm", "--llm-endpoint and --llm-model"
    """A language model that is asked for grades over a network, or whose recorded answers are read."""

    def __new__(cls, name: str, argument: str = "", flag: str = "") -> Need:
        need = str.__new__(cls, name)
        need._value_, need.argument, need.flag = name, argument, flag
        return need

    def __str__(self) -> str:
        return str(self.value)

    @property
    def remedy(self) -> str:
        """One line for a metric that lacks it."""
        return f"needs {self.argument}: {self.flag} on the command line, {self.argument}=... in Python"


T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class Batch(Cache):
    """Consecutive rows of one system; never part of a dialogue.

    A metric gets only the columns, resources and facts that it declared. `derive` keeps values computed from them
    (tokens, n-grams, overlap counts), so that metrics over the same rows share them. One thread works on a batch.
    """

    size: int
    columns: Mapping[Need, Column]
    vocabulary: Words
    dialogues: Ints
    """Row offsets of the dialogues: dialogue `k` is the rows `dialogues[k]` to `dialogues[k + 1]`."""
    resources: Mapping[Need, Any] = field(default_factory=dict)
    facts: Mapping[Any, Any] = field(default_factory=dict)
    """Statistics of all rows that were computed in an earlier pass; see `fold.Fact`."""
    ids: TextColumn | None = None
    """The ids of the dialogues that have one."""
    whole: bool = True
    """Whether no other batch has rows of its dialogues, as one may where files are read in chunks."""
    allowed: frozenset[Need] = frozenset(Need)

    def __len__(self) -> int:
        return self.size

    def restrict_to(self, needs: frozenset[Need]) -> Batch:
        """Return the same batch for a metric that declared `needs`; derived values stay shared."""
        return replace(self, allowed=needs)

    def has(self, need: Need) -> bool:
        """Return whether a declared need is met."""
        return need in self.allowed and (need in self.columns or need in self.resources)

    def column(self, need: Need) -> Column:
        """Return the column behind a declared need."""
        self._check(need, self.columns)
        return self.columns[need]

    def resource(self, need: Need) -> Any:
        """Return the resource behind a declared need."""
        self._check(need, self.resources)
        return self.resources[need]

    @property
    def failed(self) -> Mask:
        """Whether the reply of each row failed: there is none, it is empty, or it is an error."""
        return self._has_text(Need.OUTCOME)

    @property
    def silent(self) -> Mask:
        """Whether each row only calls tools: it is no failure, and has no text to be measured."""
        if Need.CALLS not in self.columns or not isinstance(self.columns.get(Need.RESPONSE), TextColumn):
            return np.zeros(self.size, np.bool_)
        return self.derive("silent", self._find_silent)

    def _find_silent(self) -> Mask:
        responses, calls = cast("TextColumn", self.columns[Need.RESPONSE]), self.columns[Need.CALLS]
        silent: Mask = (responses.ends == responses.starts) & self._has_text(Need.CALLS) & ~self.failed
        for row in np.flatnonzero(silent).tolist():
            silent[row] = cast("RaggedColumn", calls)[row] != ["[]"]
        return silent

    def _has_text(self, need: Need) -> Mask:
        column = self.columns.get(need)
        return np.zeros(self.size, np.bool_) if column is None else np.diff(cast("RaggedColumn", column).offsets) > 0

    def take(self, rows: Ints) -> Batch:
        """Return some rows as a batch in which each is a dialogue of its own."""
        columns: dict[Need, Column] = {need: cast("Any", column).take(rows) for need, column in self.columns.items()}
        return replace(self, size=len(rows), columns=columns, dialogues=np.arange(len(rows) + 1), ids=None, kept={})

    def fact(self, fact: Hashable) -> Any:
        """Return the value of a declared fact."""
        if fact not in self.facts:
            raise NeedError(f"the metric reads {fact} without declaring it in its facts")
        return self.facts[fact]

    def _check(self, need: Need, there: Mapping[Need, object]) -> None:
        if need not in self.allowed:
            declared = ", ".join(sorted(self.allowed)) or "nothing"
            raise NeedError(f"the metric reads {need} but declares {declared}; add Need.{need.name} to its needs")
        if need not in there:
            raise NeedError(need.remedy)

    def texts(self, need: Need) -> TextColumn:
        """Return the column of a need with one text per row."""
        return self._read_as(
            need, TextColumn, "does not hold one text per row; read it with Batch.lists or Batch.objects"
        )

    def lists(self, need: Need) -> RaggedColumn:
        """Return the column of a need with any number of texts per row."""
        column = self.column(need)
        if need is Need.CONTEXT or isinstance(column, SharedColumn):
            raise NeedError(f"rows may share texts of {need}; read it with Batch.contexts")
        if isinstance(column, ObjectColumn):
            raise NeedError(f"{need} holds objects and not texts; read it with Batch.objects")
        return RaggedColumn.from_texts(column) if isinstance(column, TextColumn) else column

    def contexts(self) -> SharedColumn:
        """Return the turns of the context of each row; rows of a chat share them."""
        column = self.column(Need.CONTEXT)
        if isinstance(column, RaggedColumn):
            return SharedColumn(column.values, column.starts, column.ends)
        if not isinstance(column, SharedColumn):
            raise NeedError(f"{Need.CONTEXT} does not hold any number of texts per row")
        return column

    def values(self, need: Need) -> TextColumn:
        """Return all texts of a need, one after the other; `texts`, `lists` and `contexts` say which row has which."""
        return self.contexts().values if need is Need.CONTEXT else self.lists(need).values

    def objects(self, need: Need) -> ObjectColumn:
        """Return the column of a need with one object per row."""
        return self._read_as(need, ObjectColumn, "holds texts; read it with Batch.texts or Batch.lists")

    def numbers(self, need: Need) -> Floats:
        """Return the column of a need with several numbers per row, as a matrix."""
        what = "does not hold numbers; read it with Batch.texts, Batch.lists or Batch.objects"
        return self._read_as(need, NumberColumn, what).matrix

    def _read_as(self, need: Need, kind: type[T], otherwise: str) -> T:
        column = self.column(need)
        if not isinstance(column, kind):
            raise NeedError(f"{need} {otherwise}")
        return column
