"""From a parsed row to its fields, with a fault for whatever is not as it should be.

A row is an object with `response` and, where known, `dialog_id`, `turn`, `system`, `context`, `reference` and
`response_is_reference`; `messages` makes it a chat (see `chats`). `FieldNames` says what these fields are called in
the input. `FieldReader` takes them out of one row after the other: it notes every fault and goes on with an empty
value, so that one pass over a file finds all of them; whoever uses it raises in the end if there are any.

- `context`: a string (one turn), a list of strings, a list of `speaker`/`text` or `role`/`content` objects, or null.
- `reference`: a string, a list of strings, or null; none at all where `response_is_reference` is true.
- `dialog_id`, `system`: a string or a whole number; an empty string counts as not given.
- further fields that are asked for: a text, a number, true or false, a list of these, or null.
- `turn`: a whole number from 0 on; digits in a string will do, since a cell of a CSV file holds nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dialeval.core.errors import Fault
from dialeval.data.formats.records import LISTS, FieldNames, RowObject, kind_of, listed

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FieldNames", "FieldReader", "kind_of", "missing_field"]

_LARGEST_TURN = 2**63 - 1
_TRUE = {True, "true", "1"}
_FALSE = {False, None, "false", "0", ""}


def missing_field(name: str, wanted: str, there: Iterable[object], kind: str = "field") -> tuple[str, str]:
    """What is wrong with a row or a table without a field, and the remedy."""
    remedy = f"name it {wanted}, or map the name it has: --field {wanted}=NAME (fields={{{wanted!r}: NAME}} in Python)"
    return f"has no {kind} {name!r}, only {listed(there)}", remedy


class FieldReader:
    """Takes the fields out of rows; `line` is the line of the row at hand, `faults` collects what is wrong."""

    __slots__ = ("faults", "line", "names", "where")

    def __init__(self, where: str, names: FieldNames, faults: list[Fault]) -> None:
        self.where, self.names, self.faults = where, names, faults
        self.line = 0

    def fault(self, what: str, remedy: str) -> None:
        """Note that something is wrong with the row at hand."""
        self.faults.append(Fault(self.where, self.line, what, remedy))

    def text(self, value: object, what: str, index: int | None = None) -> str:
        """A string of Unicode text; `what` and `index` name it if it is none."""
        if isinstance(value, str) and (value.isascii() or _is_unicode(value)):
            return value
        what = what if index is None else f"{what}[{index}]"
        if isinstance(value, str):
            self.fault(f"{what} holds half of a surrogate pair", "decode the text with the right encoding first")
        else:
            self.fault(f"{what} is {kind_of(value)}", "make it a string")
        return ""

    def response(self, row: RowObject) -> str:
        """The response, which every row has."""
        name = self.names.response
        if name not in row:
            self.fault(*missing_field(name, "response", row))
            return ""
        if row[name] is None:
            self.fault(
                f"{name} is null", "give the row a response (an empty string if nothing was said) or leave it out"
            )
            return ""
        return self.text(row[name], name)

    def references(self, row: RowObject) -> list[str]:
        """The references of a row."""
        if self.names.response_is_reference in row and self._is_reference(row):
            return []
        return self.texts(row.get(self.names.reference), self.names.reference)

    def context(self, row: RowObject) -> list[str]:
        """The turns of a row's context."""
        return self.texts(row.get(self.names.context), self.names.context, turns=True)

    def texts(self, value: object, name: str, turns: bool = False) -> list[str]:
        """The texts in the value of a field: none in null, one in a string, any number in a list; or the turns."""
        if value is None:
            return []
        if isinstance(value, str):
            return [self.text(value, name)]
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, LISTS):
            item_text = self._turn_text if turns else self.text
            return [item_text(item, name, index) for index, item in enumerate(value)]
        self.fault(f"{name} is {kind_of(value)}", "make it a string or a list of strings, or null where there is none")
        return []

    def _turn_text(self, value: object, what: str, index: int) -> str:
        """The text of one turn of a context: a string, or an object with `text` or `content`."""
        if not isinstance(value, dict):
            return self.text(value, what, index)
        text = value.get("text")
        if text is None:
            text = value.get("content")
        if text is not None:
            return self.content(text, what, index)
        self.fault(f"{what}[{index}] has neither text nor content, only {listed(value)}", "give each turn its text")
        return ""

    def content(self, value: object, what: str, index: int) -> str:
        """What a message says: a string, or parts such as `{"type": "text", "text": ...}`, joined."""
        if isinstance(value, LISTS):
            return "".join([self._part(part, f"{what}[{index}]") for part in value])
        return self.text(value, what, index)

    def _part(self, part: object, what: str) -> str:
        if isinstance(part, dict) and part.get("text") is None:
            self.fault(f"{what} has a part of type {part.get('type')!r:.40} without text", "leave out what is not text")
            return ""
        return self.text(part["text"] if isinstance(part, dict) else part, what)

    def system(self, row: RowObject) -> str | None:
        """The system's name, if the row gives one."""
        return self.identifier(row, self.names.system)

    def dialogue(self, row: RowObject) -> str | None:
        """The dialogue's name, if the row gives one."""
        return self.identifier(row, self.names.dialog_id)

    def identifier(self, row: RowObject, name: str) -> str | None:
        """A name or number of something."""
        value = row.get(name)
        if value is None or value == "":
            return None
        if isinstance(value, str):
            return self.text(value, name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        self.fault(f"{name} is {kind_of(value)}", "make it a string or a whole number")
        return None

    def labels(self, value: object, name: str) -> list[str]:
        """The values of a further field as texts: none for null and an empty text, several for a list."""
        if isinstance(value, np.ndarray):
            value = value.tolist()
        return [label for each in (value if isinstance(value, LISTS) else [value]) for label in self._label(each, name)]

    def _label(self, value: object, name: str) -> list[str]:
        if value is None or value == "" or value != value:  # a table has NaN where a number is missing
            return []
        if isinstance(value, str):
            return [self.text(value, name)]
        if isinstance(value, bool | np.bool_):
            return [str(value).lower()]
        if isinstance(value, int | float | np.number):
            return [str(int(value)) if float(value).is_integer() else repr(float(value))]
        self.fault(f"{name} is {kind_of(value)}", "make it a text, a number, or a list of these")
        return []

    def turn(self, row: RowObject) -> int | None:
        """The number of the turn, if the row gives one."""
        value = row.get(self.names.turn)
        if value is None or value == "":
            return None
        number = _whole_number(value)
        if number is None or not 0 <= number <= _LARGEST_TURN:
            shown = f"{value!r:.40}" if isinstance(value, str | int | float) else kind_of(value)
            self.fault(f"{self.names.turn} is {shown}", "make it a whole number from 0 on")
            return None
        return number

    def _is_reference(self, row: RowObject) -> bool:
        name = self.names.response_is_reference
        value = row[name]
        truth = value.lower() if isinstance(value, str) else value
        if isinstance(truth, str | bool | None) and truth in _TRUE | _FALSE:
            return truth in _TRUE
        self.fault(f"{name} is {kind_of(value)}", "make it true or false")
        return False


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole_number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None
