"""Arrays: names for their types, and arrays over temporary files that need little memory.

The pages of a mapped file stay in memory after they are read, and count as used, until the system reclaims them.
`release` gives them back at once; they are read again from the file if they are needed.
"""

from __future__ import annotations

import errno
import math
import mmap
import os
import tempfile
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from dialeval.core.errors import SettingError

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Ids: TypeAlias = npt.NDArray[np.int32]
Bytes: TypeAlias = npt.NDArray[np.uint8]
Mask: TypeAlias = npt.NDArray[np.bool_]

Number = TypeVar("Number", bound=np.generic)
T = TypeVar("T")

_MALLOPT_MMAP_THRESHOLD = -3
_RETURNED_BYTES = 1 << 23
_WRITTEN_BYTES = 1 << 20
_CANNOT_RESERVE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})

SPILLED_BYTES = 1 << 26
"""A column of numbers from this size on is kept in a temporary file rather than in memory."""


def empty_array(shape: tuple[int, ...], dtype: type[Number], most: int | None = None) -> npt.NDArray[Number]:
    """Return an array to be filled in; a large one is in a temporary file (in `TMPDIR`) that goes with the array.

    `most`: from how many bytes on it is large, `SPILLED_BYTES` unless given.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < (SPILLED_BYTES if most is None else most):
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile(prefix="dialeval-") as file:
            _allocate(file.fileno(), size)
            return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
    except OSError as error:
        what = f"there is no room for {size} bytes of temporary data ({error.strerror})"
        raise SettingError(f"{what}; make room, or set TMPDIR to another folder") from error


def _allocate(file: int, size: int) -> None:
    """Give a file its size and its place on the disk.

    A file that is only made long has no place yet: writing to its map would end the process (SIGBUS) where the disk is
    full. Where the system cannot reserve a place, zeros are written.
    """
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
        except OSError as error:
            if error.errno not in _CANNOT_RESERVE:
                raise
        else:
            return
    zeros, written = bytes(_WRITTEN_BYTES), 0
    while written < size:
        written += os.write(file, zeros[: size - written])


def make_unscored_column(size: int) -> Floats:
    """Return a column of NaN to be filled in; a large one is in a temporary file."""
    column = empty_array((size,), np.float64)
    for start in range(0, size, SPILLED_BYTES // 8):
        part = column[start : start + SPILLED_BYTES // 8]
        part[:] = np.nan
        release(part)
    return column


def return_freed_arrays() -> None:
    """Have the C library return arrays to the system when they are freed, from some size on.

    glibc learns to keep arrays of up to 32 MB for later, which costs a long run a fifth of its memory. The setting is
    the process's, so it is for a program to make and not for a library.
    """
    import ctypes

    setting = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if setting is not None:
        setting(_MALLOPT_MMAP_THRESHOLD, _RETURNED_BYTES)


def release(view: npt.NDArray[np.generic]) -> None:
    """Release the pages behind a view of a mapped file; any other array is left alone."""
    owner: object = view
    while isinstance(owner, np.ndarray):
        owner = owner.base
    owner = owner.obj if isinstance(owner, memoryview) else owner
    if not isinstance(owner, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED") or not view.nbytes:
        return
    first = view.__array_interface__["data"][0] - np.frombuffer(owner, np.uint8).__array_interface__["data"][0]
    start = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE  # only whole pages: the edges belong to neighbors as well
    stop = (first + view.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if start < stop:
        owner.madvise(mmap.MADV_DONTNEED, start, stop - start)


# Equality of values that hold arrays.


def is_equal(left: object, right: object) -> bool:
    """Return whether two values are the same: arrays and columns by what they hold; NaN equals NaN."""
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return np.array_equal(left, right, equal_nan=left.dtype.kind == "f")
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_equal(each, right[name]) for name, each in left.items())
    return repr(getattr(left, "digest", left)) == repr(getattr(right, "digest", right))


class EqualByFields:
    """A dataclass that holds arrays, and so has no hash."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [item.name for item in fields(cast(Any, self))]
        return all(is_equal(getattr(self, name), getattr(other, name)) for name in names)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cache:
    """A cache of values derived from an object, shared by all metrics."""

    kept: dict[Hashable, object] = field(default_factory=dict)

    def derive(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what `make` returns, computed once per key."""
        if key not in self.kept:
            self.kept[key] = make()
        return cast(T, self.kept[key])


# Ragged arrays: rows of different lengths, one after the other in a flat array, with offsets next to it.
#
# Row `i` holds the elements `offsets[i]` to `offsets[i + 1]`.


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


def split_clusters(offsets: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of clusters (dialogues, queries) with at most `most` rows each, more where one cluster has more.

    Cluster `k` is the rows `offsets[k]` to `offsets[k + 1]`; a range `(first, last)` is the clusters before `last`.
    """
    first = 0
    while first < len(offsets) - 1:
        fitting = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = max(fitting, first + 1)
        yield first, last
        first = last
