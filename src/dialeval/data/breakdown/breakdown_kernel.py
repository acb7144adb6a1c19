"""Kernel: skim an annotated dialogue of the breakdown challenge without building an object of it.

It checks the whole document while it passes over it, and knows a part of JSON that is enough for the challenge's own
files: no objects or lists where none are expected, no key twice, no escapes in a key, an id or a label. Whatever else
it meets makes it give up, and the document is parsed in the ordinary way; so what it does take is exactly what parsing
would give.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dialeval.core.bytes_kernel import load8
from dialeval.core.numba_kernel import njit
from dialeval.data.breakdown.json_kernel import (
    GIVEN_UP,
    QUOTE,
    ZERO,
    byte,
    closing,
    past_blanks,
    past_colon,
    past_plain,
    past_whole,
)

__all__ = ["skim"]

_COMMA, _OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = (ord(sign) for sign in ",{}[]")
_O, _T, _X, _S, _U = (ord(sign) for sign in "OTXSU")
_LONGER = 1
"""Stands for a label of another length than one byte."""


def _word(text: bytes) -> Any:
    return np.uint64(int.from_bytes(text, "little"))


# Eight bytes from the quote of a key on, and eight up to its other quote.
_BREAKDOWN, _BREAKDOWN_END = _word(b'"breakdo'), _word(b'eakdown"')
_DIALOGUE_ID, _DIALOGUE_ID_END = _word(b'"dialogu'), _word(b'ogue-id"')
_ANNOTATIONS, _ANNOTATIONS_END = _word(b'"annotat'), _word(b'tations"')
_TURN_INDEX, _TURN_INDEX_END = _word(b'"turn-in'), _word(b'n-index"')
_SPEAKER, _SPEAKER_END = _word(b'"speaker'), _word(b'speaker"')
_TURNS, _SEVEN_BYTES = _word(b'"turns"'), np.uint64(0x00FFFFFFFFFFFFFF)


@njit(inline="always")
def _past_key(data, i, end):  # type: ignore[no-untyped-def]
    """The position of the value behind the key at `i` (or `GIVEN_UP`), and that of the key's second quote."""
    if byte(data, i) != QUOTE:
        return GIVEN_UP, i
    last = closing(data, i + 1, end, False)
    return (last, i) if last == GIVEN_UP else (past_colon(data, last + 1), last)


@njit(inline="always")
def _is_key(data, i, last, width, first, second):  # type: ignore[no-untyped-def]
    """Whether the key between the quotes at `i` and `last` has these first and last eight bytes and this width."""
    return last - i == width and load8(data, i) == first and load8(data, last - 7) == second


@njit()
def _past_string(data, i, end):  # type: ignore[no-untyped-def]
    """The position behind a string without escapes, or `GIVEN_UP`."""
    last = closing(data, i + 1, end, False) if byte(data, i) == QUOTE else GIVEN_UP
    return last if last == GIVEN_UP else last + 1


@njit()
def _past_annotation(data, i, end):  # type: ignore[no-untyped-def]
    """The position behind the annotation at `i` (or `GIVEN_UP`), and its label: a byte, or `_LONGER`."""
    label = 0
    if byte(data, i) != _OPEN:
        return GIVEN_UP, label
    i = past_blanks(data, i + 1)
    while i < end:
        key = i
        i, last = _past_key(data, i, end)
        if i == GIVEN_UP:
            return i, label
        if _is_key(data, key, last, 10, _BREAKDOWN, _BREAKDOWN_END):
            if label:
                return GIVEN_UP, label
            label = byte(data, i + 1) if byte(data, i + 2) == QUOTE else _LONGER
            i = _past_string(data, i, end)
        else:
            i = past_plain(data, i, end)
        if i == GIVEN_UP:
            return i, label
        i = past_blanks(data, i)
        if byte(data, i) != _COMMA:
            break
        i = past_blanks(data, i + 1)
    return (i + 1 if label and byte(data, i) == _CLOSE else GIVEN_UP), label


@njit()
def _past_annotations(data, i, end, counts):  # type: ignore[no-untyped-def]
    """Count the labels of the list of annotations that begins at `i` (O, T, X, others); the position behind it."""
    if byte(data, i) != _OPEN_LIST:
        return GIVEN_UP
    i = past_blanks(data, i + 1)
    if byte(data, i) == _CLOSE_LIST:
        return i + 1
    while i < end:
        i, label = _past_annotation(data, i, end)
        if i == GIVEN_UP:
            return i
        counts[0 if label == _O else 1 if label == _T else 2 if label == _X else 3] += 1
        i = past_blanks(data, i)
        if byte(data, i) != _COMMA:
            break
        i = past_blanks(data, i + 1)
    return i + 1 if byte(data, i) == _CLOSE_LIST else GIVEN_UP


@njit()
def _past_field(data, i, key, last, end, counts, turn):  # type: ignore[no-untyped-def]
    """Read the value at `i` of a turn's key; the position behind it, and the bit of the key (0: it does not matter)."""
    if _is_key(data, key, last, 12, _ANNOTATIONS, _ANNOTATIONS_END):
        return _past_annotations(data, i, end, counts), 1
    if _is_key(data, key, last, 8, _SPEAKER, _SPEAKER_END):
        speaker = byte(data, i + 1) if byte(data, i + 2) == QUOTE else _LONGER
        if speaker != _S and speaker != _U:
            return GIVEN_UP, 2
        turn[1] = speaker == _S
        return _past_string(data, i, end), 2
    if _is_key(data, key, last, 11, _TURN_INDEX, _TURN_INDEX_END):
        behind = past_whole(data, i)
        turn[0] = 0
        for at in range(i, behind):
            turn[0] = 10 * turn[0] + byte(data, at) - ZERO
        return behind, 4
    return past_plain(data, i, end), 0


@njit()
def _past_turn(data, i, end, counts, turn):  # type: ignore[no-untyped-def]
    """Read the turn that begins at `i` into `turn` (index, whether it is the system's); the position behind it."""
    seen = 0
    if byte(data, i) != _OPEN:
        return GIVEN_UP
    i = past_blanks(data, i + 1)
    while i < end:
        key = i
        i, last = _past_key(data, i, end)
        if i == GIVEN_UP:
            return i
        i, bit = _past_field(data, i, key, last, end, counts, turn)
        if i == GIVEN_UP or seen & bit:
            return GIVEN_UP
        seen |= bit
        i = past_blanks(data, i)
        if byte(data, i) != _COMMA:
            break
        i = past_blanks(data, i + 1)
    whole = seen == 7 or (seen == 6 and turn[1] == 0)  # a user's turn may lack annotations
    return i + 1 if byte(data, i) == _CLOSE and whole else GIVEN_UP


@njit()
def _past_turns(data, i, end, turns, counts, first, found):  # type: ignore[no-untyped-def]
    """Read the list of turns that begins at `i`; the position behind it."""
    if byte(data, i) != _OPEN_LIST:
        return GIVEN_UP
    i = past_blanks(data, i + 1)
    if byte(data, i) == _CLOSE_LIST:
        return i + 1
    number = first
    while i < end and number < len(turns):
        counts[number, :] = 0
        i = _past_turn(data, i, end, counts[number], turns[number])
        if i == GIVEN_UP:
            return i
        if turns[number, 1] and counts[number].sum():
            found[3] += counts[number, 3]
            number += 1
        i = past_blanks(data, i)
        if byte(data, i) != _COMMA:
            found[2] = number - first
            return i + 1 if byte(data, i) == _CLOSE_LIST else GIVEN_UP
        i = past_blanks(data, i + 1)
    return GIVEN_UP


@njit()
def _past_part(data, i, key, last, end, turns, counts, first, found):  # type: ignore[no-untyped-def]
    """Read the value at `i` of a document's key; the position behind it, and the bit of the key."""
    if _is_key(data, key, last, 12, _DIALOGUE_ID, _DIALOGUE_ID_END):
        behind = _past_string(data, i, end)
        found[0], found[1] = i + 1, behind - 1
        return behind, 1
    if last - key == 6 and load8(data, key) & _SEVEN_BYTES == _TURNS:
        return _past_turns(data, i, end, turns, counts, first, found), 2
    return past_plain(data, i, end), 0


@njit()
def skim(data, end, turns, counts, first, found):  # type: ignore[no-untyped-def]
    """Read the document `data[:end]`; False if it has to be parsed instead.

    From row `first` on, `turns` gets the index of each annotated turn (and a mark) and `counts` its O, T, X and other
    annotations; `found` gets where the id begins and ends, how many turns there are and how many other annotations.
    """
    seen = 0
    found[:] = 0
    i = past_blanks(data, 0)
    if byte(data, i) != _OPEN:
        return False
    i = past_blanks(data, i + 1)
    while i < end:
        key = i
        i, last = _past_key(data, i, end)
        if i == GIVEN_UP:
            return False
        i, bit = _past_part(data, i, key, last, end, turns, counts, first, found)
        if i == GIVEN_UP or seen & bit:
            return False
        seen |= bit
        i = past_blanks(data, i)
        if byte(data, i) != _COMMA:
            break
        i = past_blanks(data, i + 1)
    return byte(data, i) == _CLOSE and seen == 3 and past_blanks(data, i + 1) == end
