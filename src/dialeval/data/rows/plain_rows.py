"""Rows of plain fields, taken column by column: most rows of most files are, and it takes a fraction of the time.

Plain is an object whose response is a string, whose references and context are strings or lists of strings, whose
dialogue and system are strings or whole numbers, and whose turn is a whole number from 0 on; each but the response may
be null or missing. Everything else, and every fault, is for `FieldReader`, which reads rows one by one and gives the
same of plain ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from dialeval.data.formats.records import FieldNames
from dialeval.data.formats.row_shapes import unlike_fields
from dialeval.data.rows.fields import LARGEST_TURN
from dialeval.data.rows.system import NO_TURN

_NOTHING = type(None)
_TEXT = frozenset({str})
_TEXTS = frozenset({str, list, _NOTHING})
_NAME = frozenset({str, int, _NOTHING})
_NUMBER = frozenset({int, _NOTHING})


class Texts(NamedTuple):
    """The texts of all rows one after the other, and how many each row has."""

    values: list[str]
    counts: list[int]


class PlainRows(NamedTuple):
    """The fields of rows, each with a value for every row."""

    responses: list[str]
    references: Texts
    contexts: Texts
    systems: list[str | None]
    dialogues: list[str | None]
    turns: list[int]


class NotPlainError(Exception):
    """Rows have to be read one by one."""


def plain_rows(rows: Sequence[Any], names: FieldNames) -> PlainRows | None:
    """The fields of rows that are all plain; None where one is not."""
    if names.kept or names.paths or {*map(type, rows)} != {dict}:
        return None
    there = set().union(*rows)
    if not there.isdisjoint((names.messages, names.response_is_reference, names.trial)) or unlike_fields(there, names):
        return None

    def column(name: str) -> list[Any]:
        if name not in there:
            return [None] * len(rows)
        try:
            return list(map(itemgetter(name), rows))
        except KeyError:
            return [row.get(name) for row in rows]

    responses = column(names.response)
    try:
        if {*map(type, responses)} != _TEXT:
            return None
        _check_unicode(responses)
        return PlainRows(
            responses,
            _texts(column(names.reference)),
            _texts(column(names.context)),
            _names(column(names.system)),
            _names(column(names.dialog_id)),
            _turns(column(names.turn)),
        )
    except NotPlainError:
        return None


def _check_unicode(texts: Sequence[str]) -> None:
    if not all(map(str.isascii, texts)):
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:
            raise NotPlainError from None


def _texts(column: list[Any]) -> Texts:
    kinds = {*map(type, column)}
    if kinds == {_NOTHING}:
        return Texts([], [0] * len(column))
    if kinds == _TEXT:
        values, counts = column, [1] * len(column)
    elif kinds <= _TEXTS:
        lists = [value if type(value) is list else [] if value is None else [value] for value in column]
        values, counts = list(chain.from_iterable(lists)), list(map(len, lists))
    else:
        raise NotPlainError
    if not _TEXT.issuperset(map(type, values)):
        raise NotPlainError
    _check_unicode(values)
    return Texts(values, counts)


def _names(column: list[Any]) -> list[str | None]:
    kinds = {*map(type, column)}
    if not kinds <= _NAME:
        raise NotPlainError
    if kinds == {_NOTHING}:
        return column
    names = [str(name) if type(name) is int else name for name in column] if int in kinds else column
    _check_unicode(list(filter(None, names)))
    return [name or None for name in names]


def _turns(column: list[Any]) -> list[int]:
    kinds = {*map(type, column)}
    if kinds == {_NOTHING}:
        return [NO_TURN] * len(column)
    if not kinds <= _NUMBER:
        raise NotPlainError
    given = [turn for turn in column if turn is not None]
    if given and not 0 <= min(given) <= max(given) <= LARGEST_TURN:
        raise NotPlainError
    return [NO_TURN if turn is None else turn for turn in column]
