"""The kernel behind fingerprints: texts as symbols, symbols as the coefficients of two polynomials modulo 2**61 - 1.

A text is its bytes, seven to a symbol, and then one symbol with its length, which no seven bytes can be. The end of a
row of several texts is a symbol of its own. So no two columns have the same symbols.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from dialeval.core.fingerprint import FIRST_BASE, PRIME, SECOND_BASE
from dialeval.core.numba_kernel import njit

_PRIME = np.uint64(PRIME)
_FIRST = np.uint64(FIRST_BASE)
_SECOND = np.uint64(SECOND_BASE)
_BITS_30 = np.uint64((1 << 30) - 1)
_BITS_31 = np.uint64((1 << 31) - 1)
_END_OF_TEXT = np.uint64(1 << 56)
_END_OF_ROW = np.uint64(1 << 60)


@njit()
def _step(total, base, symbol):  # type: ignore[no-untyped-def]
    """(total * base + symbol) mod PRIME: factors cut at bit 31, so that no product leaves 64 bits."""
    high, low = total >> uint64(31), total & _BITS_31
    base_high, base_low = base >> uint64(31), base & _BITS_31
    middle = low * base_high + high * base_low
    product = (
        high * base_high * uint64(2) + (middle >> uint64(30)) + ((middle & _BITS_30) << uint64(31)) + low * base_low
    )
    product = (product & _PRIME) + (product >> uint64(61)) + symbol
    product = (product & _PRIME) + (product >> uint64(61))
    return product - _PRIME if product >= _PRIME else product


@njit()
def _with_text(data, start, end, first, second, symbols):  # type: ignore[no-untyped-def]
    """The two sums and the number of symbols after one more text."""
    place = start
    while place < end:
        symbol = uint64(0)
        for byte in range(place, min(place + 7, end)):
            symbol = symbol << uint64(8) | uint64(data[byte])
        first, second = _step(first, _FIRST, symbol), _step(second, _SECOND, symbol)
        symbols += uint64(1)
        place += 7
    symbol = _END_OF_TEXT + uint64(end - start)
    return _step(first, _FIRST, symbol), _step(second, _SECOND, symbol), symbols + uint64(1)


@njit()
def add_texts(data, starts, ends, lists, totals):  # type: ignore[no-untyped-def]
    """Go on with `totals` (two sums, and the number of symbols) over texts; `lists` has the row offsets, or nothing."""
    first, second, symbols = totals[0], totals[1], totals[2]
    row = 1
    while row < lists.shape[0] and lists[row] == lists[0]:
        first, second = _step(first, _FIRST, _END_OF_ROW), _step(second, _SECOND, _END_OF_ROW)
        symbols += uint64(1)
        row += 1
    for text in range(starts.shape[0]):
        first, second, symbols = _with_text(data, starts[text], ends[text], first, second, symbols)
        while row < lists.shape[0] and lists[row] - lists[0] == text + 1:
            first, second = _step(first, _FIRST, _END_OF_ROW), _step(second, _SECOND, _END_OF_ROW)
            symbols += uint64(1)
            row += 1
    totals[0], totals[1], totals[2] = first, second, symbols


@njit()
def _power(base, exponent):  # type: ignore[no-untyped-def]
    """base ** exponent mod PRIME."""
    power = uint64(1)
    while exponent > uint64(0):
        if exponent & uint64(1):
            power = _step(power, base, uint64(0))
        base = _step(base, base, uint64(0))
        exponent >>= uint64(1)
    return power


@njit()
def _between(before, after, power):  # type: ignore[no-untyped-def]
    """The sum of some texts, from the sums before and after them and the base to the power of their symbols."""
    return (after + _PRIME - _step(before, power, uint64(0))) % _PRIME


@njit()
def add_shared_texts(data, starts, ends, firsts, lasts, before, totals):  # type: ignore[no-untyped-def]
    """Go on with `totals` over rows that share texts: row `i` is the texts `firsts[i]` to `lasts[i]`.

    Each text is read once; `before` is filled with the sums and the symbols of all texts before each one. Two such sums
    give that of the texts between them, as a polynomial without its first coefficients.
    """
    for text in range(starts.shape[0]):
        first, second, symbols = before[text, 0], before[text, 1], before[text, 2]
        first, second, symbols = _with_text(data, starts[text], ends[text], first, second, symbols)
        before[text + 1, 0], before[text + 1, 1], before[text + 1, 2] = first, second, symbols
    first, second, symbols = totals[0], totals[1], totals[2]
    for row in range(firsts.shape[0]):
        start, end = firsts[row], lasts[row]
        length = before[end, 2] - before[start, 2]
        power = _power(_FIRST, length)
        first = _step(first, power, _between(before[start, 0], before[end, 0], power))
        first = _step(first, _FIRST, _END_OF_ROW)
        power = _power(_SECOND, length)
        second = _step(second, power, _between(before[start, 1], before[end, 1], power))
        second = _step(second, _SECOND, _END_OF_ROW)
        symbols += length + uint64(1)
    totals[0], totals[1], totals[2] = first, second, symbols
