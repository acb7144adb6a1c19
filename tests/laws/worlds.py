"""Worlds for the laws: rows that meet every need a metric can declare, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dialeval.core.columns import Batch, Column, RaggedColumn, TextColumn
from dialeval.core.needs import Need
from dialeval.text.vocabulary import Vocabulary

words = st.sampled_from(["the", "cat", "sat", "on", "a", "mat", "<unk>", "日本", "Ünder", "the-very-long-word"])
texts = st.lists(words, max_size=7).map(" ".join)


@dataclass(frozen=True)
class Row:
    """One row with everything in it."""

    response: str
    references: tuple[str, ...]
    context: tuple[str, ...]


rows = st.builds(Row, texts, st.lists(texts, max_size=2).map(tuple), st.lists(texts, max_size=2).map(tuple))
worlds = st.lists(rows, max_size=12)


def columns(world: Sequence[Row]) -> dict[Need, Column]:
    """The rows as columns, one for every need."""
    made: dict[Need, Column] = {
        Need.RESPONSE: TextColumn.from_strings([row.response for row in world]),
        Need.REFERENCE: RaggedColumn.from_lists([row.references for row in world]),
        Need.CONTEXT: RaggedColumn.from_lists([row.context for row in world]),
    }
    assert set(made) == set(Need), "a new need must be part of the laws' world"
    return made


def batch(world: Sequence[Row], vocabulary: Vocabulary | None = None) -> Batch:
    """A batch in which every row is a dialogue of its own."""
    return Batch(len(world), columns(world), vocabulary or Vocabulary(), np.arange(len(world) + 1))
