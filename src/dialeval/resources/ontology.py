"""Ontologies: what a task's dialogues are about, in one small TOML file.

An ontology names the words that placeholders stand for, the words that a goal may ask for, how slots and values are
spelt, and for each domain the table of its venues with the columns that are searched fuzzily or by order. MultiWOZ is
one (`multiwoz.toml` beside this file), the sample's town another; `docs/task-dialogues.md` explains every entry.

Every fault of a file is reported at once, with the entry it is in.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Fault
from dialeval.data.formats.opening import read_bytes
from dialeval.text.slot_values import RULES, Spelling, StateNormaliser

MULTIWOZ = Path(__file__).with_name("multiwoz.toml")

_ENTRIES = {"name", "references", "named_by", "dont_care", "any_value", "fuzzy_ratio", "booking_prefix"} | {
    "words",
    "requested",
    "slots",
    "domains",
    "values",
}


@dataclass(frozen=True, slots=True)
class Domain:
    """One domain: where its venues are, and how they are offered and searched."""

    name: str
    table: str | None = None
    """File of its venues; a domain without one has nothing to choose from."""
    key: str = "id"
    """Column that tells venues apart."""
    label: str = "name"
    """Column by which people call a venue."""
    offer: str = "NAME"
    """Word of a response that offers venues."""
    optional: bool = False
    """Whether a goal is met without any offer, unless the offer's word was asked for."""
    fuzzy: tuple[str, ...] = ()
    at_most: tuple[str, ...] = ()
    at_least: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    """Columns that are no slots."""


@dataclass(frozen=True)
class Ontology:
    """What the dialogues of a task are about."""

    name: str
    words: Mapping[str, str]
    """Slot of a placeholder -> word."""
    requested: tuple[str, ...]
    """Words that a goal may ask for."""
    when_booked: frozenset[str]
    """Those of them that count only once the domain is booked."""
    domains: Mapping[str, Domain]
    digest: str
    slots: Mapping[str, str] = field(default_factory=dict)
    spellings: Mapping[str, Spelling] = field(default_factory=dict)
    dont_care: frozenset[str] = frozenset()
    any_value: str | None = None
    named_by: str | None = None
    """A goal with this slot names its venue."""
    fuzzy_ratio: int = 90
    booking_prefix: str = ""
    normalised_references: bool = False

    @cached_property
    def states(self) -> StateNormaliser:
        """Normalises slot names and values; remembers what it has seen."""
        return StateNormaliser(self.slots, self.spellings)


def load_ontology(path: str | os.PathLike[str]) -> Ontology:
    """The ontology in a TOML file."""
    content = read_bytes(path).tobytes()
    where = os.fspath(path)
    document = _parsed(content, where)
    faults: list[Fault] = []
    read = _Reader(where, faults)
    domains = {
        name: _domain(name, _Reader(where, faults, f"domains.{name}.", entry))
        for name, entry in read.tables(document, "domains").items()
    }
    words = {slot: word for word, slots in _lists(read, document, "words").items() for slot in slots}
    requested = _Reader(where, faults, "requested.", read.table(document, "requested"))
    top = _Reader(where, faults, "", document)
    found = Ontology(
        name=top.text("name", "task"),
        words=words,
        requested=top_down(requested.texts("words")),
        when_booked=frozenset(requested.texts("when_booked")),
        domains=domains,
        digest=hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH],
        slots={slot: str(name) for slot, name in read.table(document, "slots").items()},
        spellings=_spellings(document, where, faults),
        dont_care=frozenset(top.texts("dont_care")),
        any_value=top.optional_text("any_value"),
        named_by=top.optional_text("named_by"),
        fuzzy_ratio=top.number("fuzzy_ratio", 90),
        booking_prefix=top.text("booking_prefix", ""),
        normalised_references=top.text("references", "raw") == "normalised",
    )
    for entry in document:
        if entry not in _ENTRIES:
            what = f"is no entry of an ontology; there are {', '.join(sorted(_ENTRIES))}"
            faults.append(_fault(where, entry, what))
    if top.text("references", "raw") not in ("raw", "normalised"):
        faults.append(_fault(where, "references", "is neither raw nor normalised"))
    known = {*words.values(), *found.requested}
    for name, domain in domains.items():
        if domain.table is not None and domain.offer not in known:
            faults.append(_fault(where, f"domains.{name}.offer", f"{domain.offer!r} is no word of [words]"))
    if not domains:
        faults.append(_fault(where, "domains", "there is no domain"))
    if faults:
        raise DataError(faults)
    return found


def top_down(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Each text once, in order."""
    return tuple(dict.fromkeys(texts))


def _parsed(content: bytes, where: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        document: dict[str, Any] = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(Fault(where, None, f"not TOML ({error})", "correct it there")) from None
    return document


class _Reader:
    """Reads entries of one table of the file; what has the wrong type is a fault, and its default stands in."""

    def __init__(self, where: str, faults: list[Fault], prefix: str = "", entry: Mapping[str, Any] | None = None):
        self.where, self.faults, self.prefix = where, faults, prefix
        self.entry = entry or {}

    def _typed(self, name: str, kind: type, default: Any, says: str, good: Callable[[Any], bool] = bool) -> Any:
        value = self.entry.get(name, default)
        if value is not default and (not isinstance(value, kind) or not good(value)):
            self.faults.append(_fault(self.where, f"{self.prefix}{name}", f"is {value!r}, not {says}"))
            return default
        return value

    def text(self, name: str, default: str) -> str:
        return cast(str, self._typed(name, str, default, "a text"))

    def optional_text(self, name: str) -> str | None:
        return cast("str | None", self._typed(name, str, None, "a text"))

    def number(self, name: str, default: int) -> int:
        return cast(int, self._typed(name, int, default, "a whole number from 0 to 100", lambda x: 0 <= x <= 100))

    def flag(self, name: str) -> bool:
        return cast(bool, self._typed(name, bool, False, "true or false", lambda _: True))

    def texts(self, name: str) -> tuple[str, ...]:
        listed = self._typed(name, list, [], "a list of texts", lambda x: all(isinstance(one, str) for one in x))
        return tuple(listed)

    def table(self, document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        value = document.get(name, {})
        if not isinstance(value, dict):
            self.faults.append(_fault(self.where, name, f"is {value!r}, not a table: write [{name}]"))
            return {}
        return value

    def tables(self, document: Mapping[str, Any], name: str) -> Mapping[str, Mapping[str, Any]]:
        found = self.table(document, name)
        for key, value in found.items():
            if not isinstance(value, dict):
                self.faults.append(_fault(self.where, f"{name}.{key}", f"is {value!r}, not a table"))
        return {key: value for key, value in found.items() if isinstance(value, dict)}


def _lists(read: _Reader, document: Mapping[str, Any], name: str) -> dict[str, tuple[str, ...]]:
    inside = _Reader(read.where, read.faults, f"{name}.", read.table(document, name))
    return {key: inside.texts(key) for key in inside.entry}


def _domain(name: str, read: _Reader) -> Domain:
    known = {"table", "key", "label", "offer", "optional", "fuzzy", "at_most", "at_least", "drop"}
    for entry in read.entry:
        if entry not in known:
            what = f"is no entry of a domain; there are {', '.join(sorted(known))}"
            read.faults.append(_fault(read.where, f"{read.prefix}{entry}", what))
    return Domain(
        name,
        read.optional_text("table"),
        read.text("key", "id"),
        read.text("label", "name"),
        read.text("offer", "NAME"),
        read.flag("optional"),
        read.texts("fuzzy"),
        read.texts("at_most"),
        read.texts("at_least"),
        read.texts("drop"),
    )


def _spellings(document: Mapping[str, Any], where: str, faults: list[Fault]) -> dict[str, Spelling]:
    found: dict[str, Spelling] = {}
    entries = document.get("values", [])
    if not isinstance(entries, list):
        faults.append(_fault(where, "values", "is no list of tables: write [[values]]"))
        return found
    for at, entry in enumerate(entries):
        read = _Reader(where, faults, f"values[{at}].", entry)
        rule = read.text("rule", "plain")
        if rule not in RULES:
            faults.append(_fault(where, f"values[{at}].rule", f"is {rule!r}, not one of {', '.join(RULES)}"))
            continue
        same = {other: str(value) for other, value in read.table(entry, "same").items()}
        found.update(dict.fromkeys(read.texts("slots"), Spelling(rule, same)))
    return found


def _fault(where: str, entry: str, what: str) -> Fault:
    return Fault(f"{where}: {entry}", None, what, "docs/task-dialogues.md explains every entry")
