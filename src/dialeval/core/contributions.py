"""Per-row statistics of corpus metrics (contributions), from which corpus values of resampled rows are computed.

distinct-2 of a file is not a mean over rows. To resample it one needs statistics of every row: `RowSums`, numbers that
add up, or `RowWords`, the words themselves. A metric returns them with its batch states. A run keeps them for systems
of up to `KEPT_ROWS` rows and saves them (`contributions.parquet`).

`Resamples` holds resamples of a system's clusters (dialogues, or single rows): how often each resample contains each
cluster. `Metric.score_resamples` computes one value per resample, equal to an evaluation of those rows. Facts about all
rows are not resampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from dialeval.core.arrays import Cache, EqualByFields, Floats, Ids, Ints, offsets_of, ranges, row_numbers
from dialeval.core.arrow import list_array, number_array, numbers_of, repeat_text, text_array
from dialeval.core.columns import TokenColumn
from dialeval.core.errors import NeedError
from dialeval.core.validation import InvalidError

if TYPE_CHECKING:
    import pyarrow as pa


KEPT_ROWS = 200_000
"""The statistics of systems with more rows are not kept: the sampling error of so many rows is small."""


@dataclass(frozen=True, eq=False, slots=True)
class RowSums(EqualByFields):
    """Numbers of each row that add up over rows, one line per row."""

    values: Floats

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False, slots=True)
class RowWords(EqualByFields):
    """The words of each row: row `i` is `ids[offsets[i]:offsets[i + 1]]`, numbered in the order of their first use."""

    ids: Ids
    offsets: Ints
    words: Sequence[str]

    @classmethod
    def of(cls, tokens: TokenColumn) -> RowWords:
        """Return the words of a token column."""
        used, ids = number_by_first_use(tokens.ids, len(tokens.vocabulary))
        return cls(ids, tokens.offsets, tokens.vocabulary.words(used))

    def __len__(self) -> int:
        return len(self.offsets) - 1


Contributions: TypeAlias = RowSums | RowWords
BatchContributions: TypeAlias = RowSums | RowWords | TokenColumn
"""The statistics of the rows of one batch; tokens refer to the vocabulary of the process."""


def number_by_first_use(ids: Ids, below: int) -> tuple[Ids, Ids]:
    """Return the distinct ids in the order of their first use, and the ids numbered in that order."""
    first = np.full(below, len(ids))
    first[ids[::-1]] = np.arange(len(ids))[::-1]  # of several assignments the last one remains: the first use
    present = np.flatnonzero(first < len(ids))
    used: Ids = present[np.argsort(first[present])].astype(np.int32)
    number = np.empty(below, np.int32)
    number[used] = np.arange(len(used))
    return used, number[ids]


def join_parts(parts: Sequence[Contributions]) -> Contributions:
    """Join the statistics of several parts."""
    sums = [part.values for part in parts if isinstance(part, RowSums)]
    if len(sums) == len(parts):
        return RowSums(np.concatenate(sums))
    words = [part for part in parts if isinstance(part, RowWords)]
    numbers: dict[str, int] = {}
    ids = [
        np.array([numbers.setdefault(word, len(numbers)) for word in part.words], np.int32)[part.ids] for part in words
    ]
    sizes = np.concatenate([np.diff(part.offsets) for part in words])
    return RowWords(np.concatenate(ids), offsets_of(sizes), list(numbers))


def take_rows(contributions: Contributions, rows: Ints) -> Contributions:
    """Return the statistics of some rows, in the given order."""
    if isinstance(contributions, RowSums):
        return RowSums(contributions.values[rows])
    lengths = np.diff(contributions.offsets)[rows]
    ids = contributions.ids[ranges(contributions.offsets[:-1][rows], lengths)]
    used, ids = number_by_first_use(ids, len(contributions.words))
    return RowWords(ids, offsets_of(lengths), [contributions.words[word] for word in used.tolist()])


def join_batches(parts: Sequence[BatchContributions]) -> Contributions:
    """Join the statistics of the rows of all batches; they no longer refer to the vocabulary of this process."""
    tokens = [part for part in parts if isinstance(part, TokenColumn)]
    # Of several processes, or no words at all.
    if len(tokens) < len(parts) or any(part.vocabulary is not tokens[0].vocabulary for part in tokens):
        return join_parts([RowWords.of(part) if isinstance(part, TokenColumn) else part for part in parts])
    ids, sizes = (
        np.concatenate(parts_of_kind)
        for parts_of_kind in zip(*((part.ids, part.lengths) for part in tokens), strict=True)
    )
    return RowWords.of(TokenColumn(ids, offsets_of(sizes), tokens[0].vocabulary))


@dataclass(frozen=True, eq=False)
class ClusteredRows(Cache):
    """The statistics of a system's rows; cluster `k` is the rows `offsets[k]` to `offsets[k + 1]`."""

    contributions: Mapping[str, Contributions]
    offsets: Ints
    used: set[str] = field(default_factory=set)
    """What was asked for."""

    def sums(self, name: str) -> Floats:
        """Return statistics that are numbers, one line per row."""
        return cast("RowSums", self._contributions(name)).values

    def words(self, name: str) -> RowWords:
        """Return statistics that are words."""
        return cast("RowWords", self._contributions(name))

    def cluster_sums(self, name: str) -> Floats:
        """Return the sums of statistics that are numbers, one line per cluster."""
        return self.derive(("cluster sums", name), lambda: sum_by_cluster(self.sums(name), self.offsets))

    def _contributions(self, name: str) -> Contributions:
        if name not in self.contributions:
            raise NeedError(f"the run has no per-row statistics of it ({name}); score the responses again")
        self.used.add(name)
        return self.contributions[name]


@dataclass(frozen=True, eq=False)
class Resamples(Cache):
    """Some resamples: `counts[r, k]` is how often resample `r` contains cluster `k`. One thread works on it."""

    rows: ClusteredRows
    counts: Ints

    def __len__(self) -> int:
        return len(self.counts)

    def sum_clusters(self, by_cluster: Floats) -> Floats:
        """Add up numbers of clusters, one line each, per resample; integers stay exact."""
        return self.derive("as numbers", lambda: self.counts.astype(np.float64)) @ by_cluster

    def totals(self, name: str) -> Floats:
        """Return the sums of statistics that are numbers, one line per resample."""
        return self.derive(("totals", name), lambda: self.sum_clusters(self.rows.cluster_sums(name)))


def sum_by_cluster(values: Floats, offsets: Ints) -> Floats:
    """Return the sums of the columns of rows, one line per cluster."""
    if (np.diff(offsets) == 1).all():
        return values.astype(np.float64)
    clusters, rows = len(offsets) - 1, row_numbers(offsets)
    columns = [np.bincount(rows, column, clusters) for column in values.T]
    return np.column_stack([np.zeros((clusters, 0)), *columns])


def to_arrow(contributions: Mapping[str, Contributions], system: str) -> pa.Table:
    """Return the statistics of a system as they are saved, one line per row."""
    import pyarrow as pa

    columns = {"system": repeat_text(system, len(next(iter(contributions.values()))))}
    for name, column in contributions.items():
        if isinstance(column, RowSums):
            rows, width = column.values.shape
            columns[name] = list_array(np.arange(rows + 1) * width, number_array(column.values.ravel()))
        else:
            columns[name] = list_array(column.offsets, text_array(column.words).take(number_array(column.ids)))
    return pa.table(columns)


def from_arrow(table: pa.Table) -> dict[str, Contributions]:
    """Make the statistics of one system from saved lines; a column without values is another system's."""
    contributions: dict[str, Contributions] = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        if name != "system" and column.null_count < len(column):
            if column.null_count or column.flatten().null_count:
                raise InvalidError(f"{name} has gaps")
            contributions[name] = rows_of_name = _from_lists(column)
            if isinstance(rows_of_name, RowSums) and not np.isfinite(rows_of_name.values).all():
                raise InvalidError(f"{name} has numbers that are not finite")
    return contributions


def _from_lists(column: pa.Array) -> Contributions:
    import pyarrow as pa

    offsets: Ints = numbers_of(column.offsets).astype(np.int64)
    values = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    offsets = offsets - offsets[0]
    if not pa.types.is_string(values.type):
        if len(set(np.diff(offsets).tolist())) > 1:
            raise InvalidError("rows have different numbers of values")
        return RowSums(numbers_of(values).reshape(len(column), -1).astype(np.float64))
    encoded = values.dictionary_encode()  # numbers words in the order of their first use
    return RowWords(numbers_of(encoded.indices).astype(np.int32), offsets, encoded.dictionary.to_pylist())
