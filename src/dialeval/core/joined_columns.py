"""Columns one below the other: the rows of several columns of one kind as one column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from dialeval.core.arrays import Ints
from dialeval.core.columns import Column, NumberColumn, ObjectColumn, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.grouped_column import GroupedColumn
from dialeval.core.ragged import offsets_of

C = TypeVar("C", bound=Column)


def joined_columns(parts: Sequence[C]) -> C:
    """The rows of all parts; of texts that some rows share, a part without shared ones may be among them."""
    return parts[0] if len(parts) == 1 else cast(C, _joined(cast(Any, parts)))


def joined_texts(parts: Sequence[TextColumn]) -> TextColumn:
    """The texts of all parts, over one copy of their bytes."""
    shifts = offsets_of([len(part.data) for part in parts])[:-1]
    return TextColumn(
        np.concatenate([part.data for part in parts]),
        _shifted([part.starts for part in parts], shifts),
        _shifted([part.ends for part in parts], shifts),
    )


def _joined(parts: Sequence[Any]) -> Column:
    first = parts[0]
    if isinstance(first, NumberColumn):
        return NumberColumn(np.concatenate([part.values for part in parts]))
    if isinstance(first, ObjectColumn):
        return ObjectColumn([value for part in parts for value in part])
    if isinstance(first, TextColumn):
        return joined_texts(parts)
    values = joined_texts([part.values for part in parts])
    if isinstance(first, GroupedColumn):
        return GroupedColumn.of(values, _sizes(part.groups for part in parts), _sizes(part.lists for part in parts))
    if any(isinstance(part, SharedColumn) for part in parts):
        shifts = offsets_of([len(part.values) for part in parts])[:-1]
        starts = _shifted([part.starts for part in parts], shifts)
        return SharedColumn(values, starts, _shifted([part.ends for part in parts], shifts))
    return RaggedColumn(values, offsets_of(_sizes(part.offsets for part in parts)))


def _shifted(parts: Sequence[Ints], shifts: Ints) -> Ints:
    return np.concatenate([part + shift for part, shift in zip(parts, shifts, strict=True)])


def _sizes(offsets: Any) -> Ints:
    """The sizes between the offsets of each part, in a row."""
    return np.concatenate([np.diff(each) for each in offsets])
