"""A column of texts in groups: any number of texts per row, put together by what they mean (grouped references)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dialeval.core.arrays import Ints
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.fingerprint import DIGEST_LENGTH, Fingerprint
from dialeval.core.ragged import offsets_of


@dataclass(frozen=True, eq=False, slots=True)
class GroupedColumn(RaggedColumn):
    """Several texts per row in groups: row `i` has the groups `lists[i]` to `lists[i + 1]`.

    Group `g` holds `values[groups[g]:groups[g + 1]]`; read as a `RaggedColumn` it is the texts without their groups.
    """

    groups: Ints
    lists: Ints

    @classmethod
    def of(
        cls, values: TextColumn, group_sizes: Sequence[int] | Ints, row_sizes: Sequence[int] | Ints
    ) -> GroupedColumn:
        """A column from the texts of every group and the groups of every row."""
        groups, lists = offsets_of(group_sizes), offsets_of(row_sizes)
        return cls(values, groups[lists], groups, lists)

    def grouped(self, row: int) -> list[list[str]]:
        """The groups of a row."""
        bounds = self.groups[self.lists[row] : self.lists[row + 1] + 1].tolist()
        return [[self.values[text] for text in range(start, stop)] for start, stop in pairwise(bounds)]

    def slice(self, start: int, stop: int) -> GroupedColumn:
        """Rows `start` to `stop`, over the same bytes."""
        lists, offsets = self.lists[start : stop + 1], self.offsets[start : stop + 1]
        groups = self.groups[lists[0] : lists[-1] + 1] - offsets[0]
        values = self.values.slice(int(offsets[0]), int(offsets[-1]))
        return GroupedColumn(values, offsets - offsets[0], groups, lists - lists[0])

    def take(self, rows: Ints) -> GroupedColumn:
        """The given rows in the given order, over the same bytes."""
        texts = RaggedColumn(self.values, self.offsets).take(rows)
        sizes = np.diff(self.groups)
        ranges = [sizes[self.lists[row] : self.lists[row + 1]] for row in rows.tolist()]
        found = np.concatenate([np.zeros(0, np.int64), *ranges])
        return GroupedColumn.of(texts.values, found, np.diff(self.lists)[rows])

    @property
    def fingerprint(self) -> Fingerprint:
        """None: that of a `RaggedColumn` would be the same for other groups."""
        raise TypeError("a column of groups has a digest as a whole, and no fingerprint that merges")

    @property
    def digest(self) -> str:
        """A digest of the texts and of how they are spread over groups and rows."""
        sha = hashlib.sha256(np.diff(self.lists).data)
        sha.update(np.diff(self.groups).data)
        sha.update(self.values.digest.encode())
        return sha.hexdigest()[:DIGEST_LENGTH]
