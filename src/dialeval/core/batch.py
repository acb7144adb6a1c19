"""The batch: consecutive rows of one system, as a metric sees them.

A metric gets only the columns, resources and facts that it declared; values derived from them are computed once for all
metrics of the batch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Cache, Floats, Ints, Mask
from dialeval.core.columns import (
    ColumnData,
    FieldColumn,
    NumberColumn,
    ObjectColumn,
    RaggedColumn,
    SharedColumn,
    TextColumn,
    Words,
)
from dialeval.core.errors import NeedError
from dialeval.core.inputs import Input

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class Batch(Cache):
    """Consecutive rows of one system; never part of a dialogue.

    A metric gets only the columns, resources and facts that it declared. `derive` keeps values computed from them
    (tokens, n-grams, overlap counts), so that metrics over the same rows share them. One thread works on a batch.
    """

    size: int
    columns: Mapping[Input, ColumnData]
    vocabulary: Words
    dialogues: Ints
    """Row offsets of the dialogues: dialogue `k` is the rows `dialogues[k]` to `dialogues[k + 1]`."""
    resources: Mapping[Input, object] = field(default_factory=dict)
    facts: Mapping[Any, Any] = field(default_factory=dict)
    """Statistics of all rows that were computed in an earlier pass; see `fold.Fact`."""
    ids: TextColumn | None = None
    """The ids of the dialogues that have one."""
    whole: bool = True
    """Whether no other batch has rows of its dialogues, as one may where files are read in chunks."""
    allowed: frozenset[Input] | None = None
    """What the metric declared; None: everything."""

    def __len__(self) -> int:
        return self.size

    def restrict_to(self, needs: frozenset[Input]) -> Batch:
        """Return the same batch for a metric that declared `needs`; derived values stay shared."""
        return replace(self, allowed=needs)

    def has(self, need: Input) -> bool:
        """Return whether a declared need is met."""
        return (self.allowed is None or need in self.allowed) and (need in self.columns or need in self.resources)

    def column(self, need: Input) -> ColumnData:
        """Return the column behind a declared need."""
        self._check(need, self.columns)
        return self.columns[need]

    def resource(self, need: Input) -> Any:
        """Return the resource behind a declared need."""
        self._check(need, self.resources)
        return self.resources[need]

    @property
    def failed(self) -> Mask:
        """Whether the reply of each row failed: there is none, it is empty, or it is an error."""
        column = self.columns.get(inputs.OUTCOME)
        return np.zeros(self.size, np.bool_) if column is None else np.diff(cast("RaggedColumn", column).offsets) > 0

    @property
    def silent(self) -> Mask:
        """Whether each row only calls tools: it is no failure, and has no text to be measured."""
        responses, calls = self.columns.get(inputs.RESPONSE), self.columns.get(inputs.CALLS)
        if not isinstance(calls, FieldColumn) or not isinstance(responses, TextColumn):
            return np.zeros(self.size, np.bool_)
        called = self.derive("called", lambda: np.array(list(map(bool, calls)), np.bool_))
        return (responses.ends == responses.starts) & called & ~self.failed

    def take(self, rows: Ints) -> Batch:
        """Return some rows as a batch in which each is a dialogue of its own."""
        columns: dict[Input, ColumnData] = {
            need: cast("Any", column).take(rows) for need, column in self.columns.items()
        }
        return replace(self, size=len(rows), columns=columns, dialogues=np.arange(len(rows) + 1), ids=None, kept={})

    def fact(self, fact: Hashable) -> Any:
        """Return the value of a declared fact."""
        if fact not in self.facts:
            raise NeedError(f"the metric reads {fact} without declaring it in its facts")
        return self.facts[fact]

    def _check(self, need: Input, there: Mapping[Input, object]) -> None:
        if self.allowed is not None and need not in self.allowed:
            declared = ", ".join(sorted(self.allowed)) or "nothing"
            raise NeedError(f"the metric reads {need} but declares {declared}; add {need} to its needs")
        if need not in there:
            raise NeedError(need.remedy)

    def texts(self, need: Input) -> TextColumn:
        """Return the column of a need with one text per row."""
        return self._read_as(
            need, TextColumn, "does not hold one text per row; read it with Batch.lists or Batch.objects"
        )

    def lists(self, need: Input) -> RaggedColumn:
        """Return the column of a need with any number of texts per row."""
        column = self.column(need)
        if need == inputs.CONTEXT or isinstance(column, SharedColumn):
            raise NeedError(f"rows may share texts of {need}; read it with Batch.contexts")
        if isinstance(column, ObjectColumn):
            raise NeedError(f"{need} holds objects and not texts; read it with Batch.objects")
        return RaggedColumn.from_texts(column) if isinstance(column, TextColumn) else column

    def contexts(self) -> SharedColumn:
        """Return the turns of the context of each row; rows of a chat share them."""
        column = self.column(inputs.CONTEXT)
        if isinstance(column, RaggedColumn):
            return SharedColumn(column.values, column.starts, column.ends)
        if not isinstance(column, SharedColumn):
            raise NeedError(f"{inputs.CONTEXT} does not hold any number of texts per row")
        return column

    def values(self, need: Input) -> TextColumn:
        """Return all texts of a need, one after the other; `texts`, `lists` and `contexts` say which row has which."""
        return self.contexts().values if need == inputs.CONTEXT else self.lists(need).values

    def fields(self, need: Input) -> FieldColumn:
        """Return the column of a need with at most one value per row."""
        return self._read_as(need, FieldColumn, "does not hold one value per row; read it with Batch.texts")

    def objects(self, need: Input) -> ObjectColumn:
        """Return the column of a need with one object per row."""
        return self._read_as(need, ObjectColumn, "holds texts; read it with Batch.texts or Batch.lists")

    def numbers(self, need: Input) -> Floats:
        """Return the column of a need with several numbers per row, as a matrix."""
        what = "does not hold numbers; read it with Batch.texts, Batch.lists or Batch.objects"
        return self._read_as(need, NumberColumn, what).matrix

    def _read_as(self, need: Input, kind: type[T], otherwise: str) -> T:
        column = self.column(need)
        if not isinstance(column, kind):
            raise NeedError(f"{need} {otherwise}")
        return column
