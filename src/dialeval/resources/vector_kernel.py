"""The kernel behind large text vector files: plain lines of one word and plain decimal numbers, straight from bytes.

It takes a line only where it is sure: one word without blanks, exactly `dimension` numbers of the form
`[-]digits[.digits][e[+-]digits]`, and each of them a mantissa of at most 2**53 with a power of ten of at most 22. Both
are exact as floats then, so that a single multiplication or division rounds correctly (Clinger's fast path) and the
value is the one `float` gives. Every other line is left to `vector_text.parse_line`, which is the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dialeval.core.kernels import kernel

if TYPE_CHECKING:
    from dialeval.core.arrays import Bytes, Floats, Ints

F = TypeVar("F", bound=Callable[..., Any])

_compiled: Callable[[F], F] = kernel(error_model="numpy")

_POWERS = np.array([float(f"1e{exponent}") for exponent in range(23)])
_LARGEST = 2**53
_ROOM = 10**17
"""A mantissa below this can take one more digit without leaving int64."""


@_compiled
def _is_blank(byte: int) -> bool:
    """What `bytes.split` takes for white space."""
    return byte == 32 or 9 <= byte <= 13


@_compiled
def _digits(data: Bytes, place: int, end: int, mantissa: int) -> tuple[int, int]:
    """Read digits into the mantissa; it is beyond `_LARGEST` when there are too many."""
    while place < end and 48 <= data[place] <= 57:
        mantissa = mantissa * 10 + int(data[place]) - 48 if mantissa < _ROOM else _ROOM
        place += 1
    return place, mantissa


@_compiled
def _number(data: Bytes, place: int, end: int) -> tuple[int, float]:
    """The number at `place` and where it ends; -1 for the place where it is not a plain one."""
    negative = data[place] == 45
    if negative:
        place += 1
    start = place
    place, mantissa = _digits(data, place, end, 0)
    count = place - start
    exponent = 0
    if place < end and data[place] == 46:
        point = place + 1
        place, mantissa = _digits(data, point, end, mantissa)
        exponent = point - place
        count += place - point
    if count == 0:
        return -1, 0.0
    if place < end and (data[place] | 32) == 101:
        place += 1
        below = place < end and data[place] == 45
        if place < end and (data[place] == 45 or data[place] == 43):
            place += 1
        start = place
        place, written = _digits(data, place, end, 0)
        if place == start or place - start > 4:
            return -1, 0.0
        exponent += -written if below else written
    if (place < end and not _is_blank(data[place])) or mantissa > _LARGEST or exponent < -22 or exponent > 22:
        return -1, 0.0
    value = mantissa * _POWERS[exponent] if exponent >= 0 else mantissa / _POWERS[-exponent]
    return place, -value if negative else value


@_compiled
def parse_lines(data: Bytes, starts: Ints, ends: Ints, vectors: Floats, word_ends: Ints) -> None:
    """Fill in the vector and the end of the word of each line; the end is -1 for a line that is not a plain one."""
    dimension = vectors.shape[1]
    for row in range(len(starts)):
        place, end = starts[row], ends[row]
        while place < end and not _is_blank(data[place]):
            place += 1
        word_end = place if place > starts[row] else -1
        for column in range(dimension):
            while place < end and _is_blank(data[place]):
                place += 1
            if place == end or word_end < 0:
                word_end = -1
                break
            place, value = _number(data, place, end)
            if place < 0:
                word_end = -1
                break
            vectors[row, column] = value
        if word_end >= 0:
            while place < end and _is_blank(data[place]):
                place += 1
        word_ends[row] = word_end if place == end else -1
