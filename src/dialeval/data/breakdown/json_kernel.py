"""Kernels: passing over the parts of a JSON document, blanks and strings eight bytes at a time.

Each gives the position behind the part at a position, or `GIVEN_UP` for what is no JSON and for all that these kernels
do not know (fractions, large and negative numbers, false, halves of characters). Behind the data there are zeros
(`skim.PADDING`).
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dialeval.core.bytes_kernel import load8, trailing_zeros
from dialeval.core.numba_kernel import njit

GIVEN_UP = -1
QUOTE, ZERO = ord('"'), ord("0")

_LOW_BITS = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)
_BLANKS = np.uint64(0x2020202020202020)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_BACKSLASH, _COLON, _NINE, _POINT, _U = (ord(sign) for sign in "\\:9.u")
_ESCAPED = tuple(ord(sign) for sign in '"\\/bfnrt')
_MOST_DIGITS = 9


@intrinsic
def byte(_context, array, _index):  # type: ignore[no-untyped-def]
    """The byte at a position that is not negative: indexing asks each time whether it is, in the innermost loops."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.zext(builder.load(builder.gep(data, [args[1]])), ir.IntType(64))

    return types.int64(array, types.int64), generate


@njit(inline="always")
def past_blanks(data, i):  # type: ignore[no-untyped-def]
    """The position of the next byte that is no JSON white space."""
    while True:
        c = byte(data, i)
        if c > 0x20:
            return i
        if c == 0x20:
            other = load8(data, i) ^ _BLANKS
            i += 8 if other == 0 else trailing_zeros(other) >> 3
        elif c == 0x0A or c == 0x0D or c == 0x09:
            i += 1
        else:
            return i


@njit()
def _past_escape(data, i):  # type: ignore[no-untyped-def]
    """The position behind the escape that begins at `i`, or `GIVEN_UP`; halves of characters are not for a kernel."""
    c = byte(data, i + 1)
    if c in _ESCAPED:
        return i + 2
    if c != _U:
        return GIVEN_UP
    value = 0
    for at in range(i + 2, i + 6):
        digit = byte(data, at)
        if ZERO <= digit <= _NINE:
            value = value * 16 + digit - ZERO
        elif 0x41 <= (digit & 0xDF) <= 0x46:
            value = value * 16 + (digit & 0xDF) - 0x37
        else:
            return GIVEN_UP
    return GIVEN_UP if 0xD800 <= value < 0xE000 else i + 6


@njit()
def _past_character(data, i):  # type: ignore[no-untyped-def]
    """The position behind the UTF-8 of a character above 127, or `GIVEN_UP` where it is none."""
    first, second = byte(data, i), byte(data, i + 1)
    if 0xC2 <= first <= 0xDF:
        width, low, high = 2, 0x80, 0xBF
    elif 0xE0 <= first <= 0xEF:
        width, low, high = 3, 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first <= 0xF4:
        width, low, high = 4, 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
    else:
        return GIVEN_UP
    if not low <= second <= high:
        return GIVEN_UP
    for at in range(i + 2, i + width):
        if byte(data, at) & 0xC0 != 0x80:
            return GIVEN_UP
    return i + width


@njit(inline="always")
def closing(data, i, end, escapes):  # type: ignore[no-untyped-def]
    """The position of the quote that ends the string whose text begins at `i`, or `GIVEN_UP`."""
    while i < end:
        word = load8(data, i)
        quotes, slashes = word ^ _QUOTES, word ^ _BACKSLASHES
        # The lowest mark is right: a quote, a backslash, a control character, or a byte above 127.
        marks = (quotes - _LOW_BITS) & ~quotes | (slashes - _LOW_BITS) & ~slashes | (word - _BLANKS) & ~word | word
        marks &= _HIGH_BITS
        if marks == 0:
            i += 8
            continue
        i += trailing_zeros(marks) >> 3
        c = byte(data, i)
        if c == QUOTE:
            return i
        if c > 0x7F:
            i = _past_character(data, i)
        elif c == _BACKSLASH and escapes:
            i = _past_escape(data, i)
        else:
            return GIVEN_UP
        if i == GIVEN_UP:
            return i
    return GIVEN_UP


@njit()
def past_plain(data, i, end):  # type: ignore[no-untyped-def]
    """The position behind the value at `i`, or `GIVEN_UP` where it is no string, whole number, true or null."""
    c = byte(data, i)
    if c == QUOTE:
        i = closing(data, i + 1, end, True)
        return i if i == GIVEN_UP else i + 1
    if c == 0x6E and byte(data, i + 1) == 0x75 and byte(data, i + 2) == 0x6C and byte(data, i + 3) == 0x6C:
        return i + 4
    if c == 0x74 and byte(data, i + 1) == 0x72 and byte(data, i + 2) == 0x75 and byte(data, i + 3) == 0x65:
        return i + 4
    return past_whole(data, i)


@njit()
def past_whole(data, i):  # type: ignore[no-untyped-def]
    """The position behind a whole number of few digits, or `GIVEN_UP`."""
    start = i
    while ZERO <= byte(data, i) <= _NINE:
        i += 1
    if i == start or i - start > _MOST_DIGITS or (byte(data, start) == ZERO and i > start + 1):
        return GIVEN_UP
    return GIVEN_UP if byte(data, i) == _POINT or (byte(data, i) & 0xDF) == 0x45 else i


@njit(inline="always")
def past_colon(data, i):  # type: ignore[no-untyped-def]
    """The position of the value behind the colon that follows a key."""
    i = past_blanks(data, i)
    return past_blanks(data, i + 1) if byte(data, i) == _COLON else GIVEN_UP
