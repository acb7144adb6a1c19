"""Ragged arrays: rows of different lengths, one after the other in a flat array, with offsets beside it.

Row `i` holds the elements `offsets[i]` to `offsets[i + 1]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from dialeval.core.arrays import Ints


def offsets_of(lengths: Iterable[int] | Ints) -> Ints:
    """Return the offsets of rows of some lengths: where each row starts, and the end."""
    counts = lengths if isinstance(lengths, np.ndarray) else np.fromiter(lengths, np.int64)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))


def row_numbers(offsets: Ints) -> Ints:
    """Return the row of each element."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Return, for each row, the numbers from its start on, as many as it is long; all rows in one array."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)


def cut(offsets: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of clusters (dialogues, queries) with at most `most` rows each, more where one cluster has more.

    Cluster `k` is the rows `offsets[k]` to `offsets[k + 1]`; a range `(first, last)` is the clusters before `last`.
    """
    first = 0
    while first < len(offsets) - 1:
        fitting = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = max(fitting, first + 1)
        yield first, last
        first = last
