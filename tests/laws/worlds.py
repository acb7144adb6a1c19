"""Worlds for the laws: rows that meet every need a metric can declare, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from dialeval.core.arrays import Floats
from dialeval.core.columns import Batch, Column, RaggedColumn, TextColumn
from dialeval.core.fold import Fact, Metric, Partial
from dialeval.core.needs import COLUMNS, Need
from dialeval.resources.words import KnownWords, TrainText, VectorTable, listed_words
from dialeval.text.vocabulary import Vocabulary

WORDS = ["the", "cat", "sat", "on", "a", "mat", "<unk>", "日本", "Ünder", "the-very-long-word"]
LISTED = [*WORDS[:5], "dog"]
TRAIN = ["the cat sat on the mat", "a dog sat on a mat", "the-very-long-word the", ""]
VECTORS = {"the": (1.0, 0.5, -0.25), "cat": (-0.5, 2.0, 0.1), "mat": (0.0, 0.0, 0.0), "日本": (0.3, -0.3, 0.9)}

texts = st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join)


@dataclass(frozen=True)
class Row:
    """One row with everything in it."""

    response: str
    references: tuple[str, ...]
    context: tuple[str, ...]


rows = st.builds(Row, texts, st.lists(texts, max_size=2).map(tuple), st.lists(texts, max_size=2).map(tuple))
worlds = st.lists(rows, max_size=12)


class FewVectors:
    """Word vectors that know four words."""

    name = "few"
    dimension = 3
    digest = "0123456789ab"

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        known = np.array([word in VECTORS for word in words], np.bool_)
        return np.array([VECTORS.get(word, (0.0, 0.0, 0.0)) for word in words]).reshape(-1, 3), known


def columns(world: Sequence[Row]) -> dict[Need, Column]:
    """The rows as columns."""
    made: dict[Need, Column] = {
        Need.RESPONSE: TextColumn.from_strings([row.response for row in world]),
        Need.REFERENCE: RaggedColumn.from_lists([row.references for row in world]),
        Need.CONTEXT: RaggedColumn.from_lists([row.context for row in world]),
    }
    assert set(made) == COLUMNS, "a new column must be part of the laws' world"
    return made


class Place:
    """Where rows are scored: a vocabulary, the resources over it, and the facts about all rows."""

    def __init__(self, everything: Sequence[Row] = ()) -> None:
        self.vocabulary = Vocabulary()
        vectors = VectorTable(self.vocabulary, FewVectors())
        known = KnownWords(self.vocabulary, listed_words(LISTED), vectors)
        self.resources: dict[Need, Any] = {
            Need.EMBEDDINGS: vectors,
            Need.VOCABULARY: known,
            Need.TRAIN: TrainText(self.vocabulary, TextColumn.from_strings(TRAIN), known),
        }
        assert set(self.resources) == set(Need) - COLUMNS, "a new resource must be part of the laws' world"
        self.everything = everything

    def batch(self, world: Sequence[Row]) -> Batch:
        """A batch in which every row is a dialogue of its own."""
        return Batch(len(world), columns(world), self.vocabulary, np.arange(len(world) + 1), self.resources)

    def gathered(self, fact: Fact[Any, Any], metric: Metric[Any], world: Sequence[Row]) -> Any:
        """The state of a fact that a metric asks for."""
        return fact.gather(self.batch(world).only(metric.needs | metric.wants))

    def ready(self, metric: Metric[Any], world: Sequence[Row]) -> Batch:
        """The batch as the engine hands it to a metric."""
        facts = {fact: fact.finish(self.gathered(fact, metric, self.everything)) for fact in metric.facts}
        return replace(self.batch(world), facts=facts).only(metric.needs | metric.wants)

    def scored(self, metric: Metric[Any], world: Sequence[Row]) -> Partial[Any]:
        """What a metric makes of some of the rows."""
        return metric.partial(self.ready(metric, world))
