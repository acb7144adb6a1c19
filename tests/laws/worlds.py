"""Worlds for the laws: rows that meet every need of the metrics of one subject, drawn by hypothesis.

A new subject brings a module with its `World` and is named in `WORLDS`; its metrics are then under all laws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dialeval.core.batch import Batch
from dialeval.core.columns import ColumnData
from dialeval.core.fold import Fact, Metric, Partial
from dialeval.core.inputs import Input
from dialeval.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class World:
    """What the metrics of one subject live in."""

    rows: st.SearchStrategy[Any]
    columns: Callable[[Sequence[Any]], Mapping[Input, ColumnData]]
    resources: Callable[[Vocabulary], Mapping[Input, Any]]
    lone: Mapping[str, Any]
    """Single rows at the edges: empty texts and the like."""
    rich: Sequence[Any]
    """Rows of which every metric scores each."""
    in_order: Callable[[Sequence[Any]], Sequence[Any]] = list
    """The same rows, where they know their place in a file with new places, one after the other."""

    @property
    def worlds(self) -> st.SearchStrategy[list[Any]]:
        """Any number of rows."""
        return st.lists(self.rows, max_size=12)


class Place:
    """Where rows are scored: a vocabulary, the resources over it, and the facts about all rows."""

    def __init__(self, world: World, everything: Sequence[Any] = ()) -> None:
        self.world = world
        self.vocabulary = Vocabulary()
        self.resources = world.resources(self.vocabulary)
        self.everything = everything

    def batch(self, rows: Sequence[Any]) -> Batch:
        """A batch in which every row is a dialogue of its own."""
        columns = self.world.columns(rows)
        return Batch(len(rows), columns, self.vocabulary, np.arange(len(rows) + 1), self.resources)

    def gathered(self, fact: Fact[Any, Any], metric: Metric[Any], rows: Sequence[Any]) -> Any:
        """The state of a fact that a metric asks for."""
        return fact.gather(self.batch(rows).restrict_to(metric.needs | metric.wants))

    def ready(self, metric: Metric[Any], rows: Sequence[Any]) -> Batch:
        """The batch as the engine hands it to a metric."""
        facts = {fact: fact.finish(self.gathered(fact, metric, self.everything)) for fact in metric.facts}
        return replace(self.batch(rows), facts=facts).restrict_to(metric.needs | metric.wants)

    def scored(self, metric: Metric[Any], rows: Sequence[Any]) -> Partial[Any]:
        """What a metric makes of some of the rows."""
        return metric.partial(self.ready(metric, rows))
