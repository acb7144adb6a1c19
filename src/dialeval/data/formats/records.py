"""Parsed rows on their way from a file to columns, what their fields are called, and words for what they hold."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dialeval.core.errors import DataError, Fault, FaultList, SettingError
from dialeval.core.needs import Need
from dialeval.data.formats import row_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

T = TypeVar("T")
RowObject: TypeAlias = dict[str, object]

LISTS = (list, tuple)
"""A list, from a file or from Python; as a tuple, since building a union type on every check costs time."""

_SHOWN_NAMES = 12
_SETTINGS = frozenset({"kept", "system_prompts", "separator"})
"""What `FieldNames` holds beside names of our fields."""


@dataclass(frozen=True, slots=True)
class FieldNames:
    """What each field of a row is called in the input."""

    dialog_id: str = "dialog_id"
    turn: str = "turn"
    system: str = "system"
    context: str = "context"
    response: str = "response"
    reference: str = "reference"
    response_is_reference: str = "response_is_reference"
    messages: str = "messages"
    trial: str = "trial"
    reward: str = "reward"
    kept: tuple[str, ...] = ()
    """Further fields that rows keep, by the names that they have in the input."""
    system_prompts: bool = False
    """Whether system prompts are part of contexts."""
    separator: str | None = None
    """What stands between the cells of a CSV file; None: it is found."""

    @classmethod
    def of(
        cls,
        names: Mapping[str, str] | None,
        kept: Iterable[str] = (),
        system_prompts: bool = False,
        separator: str | None = None,
    ) -> FieldNames:
        """Return the usual names, except for those mapped as in `{"response": "answer"}`; and how rows are read."""
        known = [each.name for each in fields(cls) if each.name not in _SETTINGS]
        if separator is not None and (len(separator) != 1 or separator in '"\r\n\0' or not separator.isascii()):
            raise SettingError(f"cells cannot be separated by {separator!r}; give one character, such as ; or |")
        for name, actual in (names or {}).items():
            if name not in known:
                raise SettingError(f"there is no field {name!r} to map; a row has {', '.join(known)}")
            if not isinstance(actual, str) or not actual:
                raise SettingError(f"field {name!r} is mapped to {actual!r}; map it to the name it has in the input")
        return cls(**(names or {}), kept=tuple(kept), system_prompts=system_prompts, separator=separator)

    @property
    def mapped(self) -> bool:
        """Return whether it was said which field holds responses or messages, so that no shape is looked for."""
        return self.response != "response" or self.messages != "messages"

    @property
    def careful(self) -> tuple[str, ...]:
        """Return the fields that only the reader of single rows knows: rows that have one are not read by column."""
        return (self.messages, self.response_is_reference, self.trial)

    @property
    def paths(self) -> list[str]:
        """Return the names that lead into objects, such as `output.text`."""
        return _paths(self)

    @property
    def beside(self) -> list[str]:
        """Return the fields that a row of another shape may have by our names, too; its `system` may be a prompt."""
        named = [self.dialog_id, self.turn, self.context, self.reference, self.response_is_reference, self.trial]
        named.append(self.reward)
        return [*named, *([self.system] if self.system != "system" else [])]

    @property
    def all(self) -> list[str]:
        """Return the names of all our fields."""
        return [getattr(self, each.name) for each in fields(self) if each.name not in _SETTINGS]

    def chosen(self, there: Sequence[str], need: Need) -> list[str]:
        """Return the columns of a table that can matter; all where it lacks the main one, for the error."""
        main = {self.name(need), self.response, *([self.messages] if need is Need.RESPONSE else [])}
        shapes = frozenset() if self.response in there else row_shapes.columns()
        own = [*self.all, *self.kept]
        known = {*own, *(name.partition(".")[0] for name in own), "id", *shapes}
        return [name for name in there if name in known] if main.intersection(there) else list(there)

    def name(self, need: Need) -> str:
        """Return the field that holds what a need names."""
        return str(getattr(self, need.value))


@cache
def _paths(names: FieldNames) -> list[str]:
    return [name for name in names.all if "." in name]


@dataclass(slots=True)
class Records:
    """Parsed rows with the line each stands on, read while a consumer asks for them.

    `faults` grows with what does not parse, and the consumer adds its own, so that the list is in file order.
    `header` holds the columns of a table, which every row then has. Where rows are only numbered, as in a list, the
    number stands for the line; in a JSON document `lines` finds the lines afterwards, if there is a fault to place.
    """

    where: str
    rows: Iterable[tuple[int, object]]
    faults: list[Fault] = field(default_factory=FaultList)
    header: tuple[str, ...] | None = None
    lines: Callable[[], Sequence[int]] | None = None
    columns: Callable[[], Mapping[str, list[Any]]] | None = None
    """All values by column, where a table gives these faster than its rows."""

    def __post_init__(self) -> None:
        if isinstance(self.faults, FaultList):
            self.faults.when_full = self.raise_faults

    def raise_faults(self) -> None:
        """Raise if anything is wrong."""
        if self.faults and self.lines is not None:
            lines = self.lines()
            self.faults = [replace(fault, line=_line(lines, fault.line)) for fault in self.faults]
        if self.faults:
            raise DataError(self.faults)


def split_fields(given: str | Iterable[str]) -> list[str]:
    """Names of fields, each once: those of a list, or of a text with commas between them."""
    names = [each.strip() for each in given.split(",")] if isinstance(given, str) else given
    return list(dict.fromkeys(name for name in names if name != ""))


def all_of(readers: Iterable[Callable[[], T]]) -> list[T]:
    """Return what every reader returns, or the faults of all of them."""
    results: list[T] = []
    faults: list[Fault] = []
    for read in readers:
        try:
            results.append(read())
        except DataError as error:
            faults += error.faults
    if faults:
        raise DataError(faults)
    return results


def _line(lines: Sequence[int], number: int | None) -> int | None:
    return lines[number - 1] if number is not None and number <= len(lines) else None


def kind_of(value: object) -> str:
    """Return what a value is, in words for people."""
    if isinstance(value, bool):
        return "true or false"
    for kinds, words in _KINDS:
        if isinstance(value, kinds):
            return words
    return f"a Python {type(value).__name__}"


_KINDS: list[tuple[type | tuple[type, ...], str]] = [
    (type(None), "null"),
    (str, "a string"),
    ((int, float), "a number"),
    (LISTS, "a list"),
    (dict, "an object"),
]


def listed(names: Iterable[object]) -> str:
    """Names for a message, cut short where they are many."""
    texts = [str(name) for name in names]
    more = ["..."] if len(texts) > _SHOWN_NAMES else []
    return ", ".join(texts[:_SHOWN_NAMES] + more) or "nothing"
