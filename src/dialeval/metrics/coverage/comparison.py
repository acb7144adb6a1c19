"""Hypotheses and reference groups side by side: what an aligner looks at.

A query has hypotheses and groups of references. Every hypothesis of a query is compared with every group of it; such a
pair has one place in the flat arrays that aligners fill, in the order of queries, then hypotheses, then groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from dialeval.core.arrays import Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import GroupedColumn, TextColumn, TokenColumn
from dialeval.core.needs import Need
from dialeval.core.ragged import cut, offsets_of, ranges, row_numbers
from dialeval.text.tokenise import Tokeniser, tokens
from dialeval.text.vocabulary import Vocabulary

PART_PAIRS = 1 << 16
"""Pairs that are compared at a time, so that their counts stay in the processor's cache."""

Words = Sequence[str]
Group = Sequence[Words]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The words of hypotheses and references over one vocabulary, and what belongs to what.

    Query `q` has the hypotheses `lists[q]` to `lists[q + 1]` and the groups `group_lists[q]` to `group_lists[q + 1]`;
    group `g` has the references `groups[g]` to `groups[g + 1]`.
    """

    hypotheses: TokenColumn
    lists: Ints
    references: TokenColumn
    groups: Ints
    group_lists: Ints

    @classmethod
    def of_words(
        cls, hypotheses: Sequence[Sequence[Words]], references: Sequence[Sequence[Group]], vocabulary: Vocabulary
    ) -> Comparison:
        """A comparison of texts that are split already; a word may hold blanks."""
        grouped = [group for row in references for group in row]
        return cls(
            _token_column([words for row in hypotheses for words in row], vocabulary),
            offsets_of(map(len, hypotheses)),
            _token_column([words for group in grouped for words in group], vocabulary),
            offsets_of(map(len, grouped)),
            offsets_of(map(len, references)),
        )

    @cached_property
    def pairs(self) -> Ints:
        """Where the pairs of each query start, and the end."""
        return offsets_of(np.diff(self.lists) * np.diff(self.group_lists))

    @cached_property
    def group_counts(self) -> Ints:
        """Number of groups that each hypothesis is compared with."""
        return np.diff(self.group_lists)[self.hypothesis_queries]

    @cached_property
    def hypothesis_queries(self) -> Ints:
        """The query of each hypothesis."""
        return row_numbers(self.lists)

    @cached_property
    def group_queries(self) -> Ints:
        """The query of each group."""
        return row_numbers(self.group_lists)

    @property
    def pair_hypotheses(self) -> Ints:
        """The hypothesis of each pair."""
        return np.repeat(np.arange(len(self.hypotheses)), self.group_counts)

    @property
    def pair_groups(self) -> Ints:
        """The group of each pair."""
        return ranges(self.group_lists[self.hypothesis_queries], self.group_counts)

    @property
    def queries(self) -> int:
        """Number of queries."""
        return len(self.lists) - 1

    def parts(self) -> Iterator[tuple[int, Comparison]]:
        """Consecutive queries with about `PART_PAIRS` pairs, and the number of the first hypothesis among all."""
        for first, last in cut(self.pairs, PART_PAIRS):
            yield int(self.lists[first]), self._slice(first, last)

    def _slice(self, first: int, last: int) -> Comparison:
        """The queries `first` to `last`, over the same words."""
        lists, group_lists = self.lists[first : last + 1], self.group_lists[first : last + 1]
        groups = self.groups[group_lists[0] : group_lists[-1] + 1]
        return Comparison(
            _sliced(self.hypotheses, int(lists[0]), int(lists[-1])),
            lists - lists[0],
            _sliced(self.references, int(groups[0]), int(groups[-1])),
            groups - groups[0],
            group_lists - group_lists[0],
        )

    def among_references(self) -> Comparison:
        """Each reference of a query compared with each: the references as hypotheses, and one by one as groups."""
        texts = self.groups[self.group_lists]
        return Comparison(self.references, texts, self.references, np.arange(len(self.references) + 1), texts)

    def regrouped(self, order: Ints, groups: Ints, group_lists: Ints) -> Comparison:
        """The same hypotheses with the references in another order and in other groups."""
        return Comparison(self.hypotheses, self.lists, self.references.take(order), groups, group_lists)


def comparison(batch: Batch, tokeniser: Tokeniser) -> Comparison:
    """The hypotheses and reference groups of a batch; made once for all metrics of the batch."""
    hypotheses = tokens(batch, Need.HYPOTHESES, tokeniser)
    lists = batch.lists(Need.HYPOTHESES).offsets
    references = tokens(batch, Need.REFERENCE_GROUPS, tokeniser)
    column = cast(GroupedColumn, batch.lists(Need.REFERENCE_GROUPS))
    return batch.derived(
        ("comparison", tokeniser), lambda: Comparison(hypotheses, lists, references, column.groups, column.lists)
    )


def _sliced(column: TokenColumn, first: int, last: int) -> TokenColumn:
    bounds = column.offsets[first : last + 1]
    return TokenColumn(column.ids[bounds[0] : bounds[-1]], bounds - bounds[0], column.vocabulary)


def _token_column(texts: Sequence[Words], vocabulary: Vocabulary) -> TokenColumn:
    words = [word for text in texts for word in text]
    ids = vocabulary.add(TextColumn.from_strings(words, "words"))
    return TokenColumn(ids, offsets_of(map(len, texts)), vocabulary)
