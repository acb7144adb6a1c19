"""Ontologies: what a task's dialogues are about, in one small TOML file.

An ontology names the words that placeholders stand for, the words that a goal may ask for, how slots and values are
spelled, and for each domain the table of its venues with the columns that are searched fuzzily or by order. MultiWOZ is
one (`multiwoz.toml` next to this file), the sample's town another; `docs/own-task.md` explains every entry.

Every problem of a file is reported at once, with the entry it is in.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Problem
from dialeval.core.validation import parse_toml
from dialeval.io.opening import read_bytes
from dialeval.suites.multiwoz.states import RULES, Spelling, StateNormalizer

MULTIWOZ = Path(__file__).with_name("multiwoz.toml")

_EXPLAINED = "docs/own-task.md explains every entry"


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
    normalized_references: bool = False
    patterns: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    """Slot of a placeholder -> what values look like that no table lists, for lexicalized replies."""
    ordinary: tuple[str, ...] = ()
    """Values of tables that are ordinary words in a reply."""

    @cached_property
    def states(self) -> StateNormalizer:
        """Normalizes slot names and values; remembers what it has seen."""
        return StateNormalizer(self.slots, self.spellings)


def load_ontology(path: str | os.PathLike[str]) -> Ontology:
    """Return the ontology in a TOML file."""
    content = read_bytes(path).tobytes()
    top = _Reader(os.fspath(path), "", parse_toml(content, os.fspath(path), "correct it there"), [])
    words = top.table("words")
    requested = top.table("requested")
    references = top.text("references", "raw")
    if references not in ("raw", "normalized"):
        top.problem("references", "is neither raw nor normalized")
    ontology = Ontology(
        name=top.text("name", "task"),
        words={slot: word for word in words.entries for slot in words.texts(word)},
        requested=tuple(dict.fromkeys(requested.texts("words"))),
        when_booked=frozenset(requested.texts("when_booked")),
        domains={name: _domain(name, entry) for name, entry in top.table("domains").tables().items()},
        digest=hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH],
        slots={slot: str(name) for slot, name in top.table("slots").entries.items()},
        spellings=_spellings(top),
        dont_care=frozenset(top.texts("dont_care")),
        any_value=top.optional_text("any_value"),
        named_by=top.optional_text("named_by"),
        fuzzy_ratio=top.percentage("fuzzy_ratio", 90),
        booking_prefix=top.text("booking_prefix", ""),
        normalized_references=references == "normalized",
        patterns=_patterns(top, words),
        ordinary=top.texts("ordinary"),
    )
    top.refuse_others("an ontology")
    known = {*ontology.words.values(), *ontology.requested}
    for name, domain in ontology.domains.items():
        if domain.table is not None and domain.offer not in known:
            top.problem(f"domains.{name}.offer", f"{domain.offer!r} is not a word of [words]")
    if not ontology.domains:
        top.problem("domains", "there is no domain")
    if top.problems:
        raise DataError(top.problems)
    return ontology


class _Reader:
    """Reads the entries of one table of the file; one of the wrong type is a problem and read as its default."""

    def __init__(self, where: str, prefix: str, entries: Mapping[str, Any], problems: list[Problem]) -> None:
        self.where, self.prefix, self.entries, self.problems = where, prefix, entries, problems
        self._asked: set[str] = set()

    def problem(self, name: str, what: str) -> None:
        self.problems.append(Problem(f"{self.where}: {self.prefix}{name}", None, what, _EXPLAINED))

    def refuse_others(self, kind: str) -> None:
        """Note a problem for every entry that was not asked for."""
        for name in self.entries:
            if name not in self._asked:
                self.problem(name, f"is not an entry of {kind}; there are {', '.join(sorted(self._asked))}")

    def _typed(self, name: str, kind: type, default: Any, says: str, good: Callable[[Any], bool] = bool) -> Any:
        self._asked.add(name)
        value = self.entries.get(name, default)
        if value is not default and (not isinstance(value, kind) or not good(value)):
            self.problem(name, f"is {value!r}, not {says}")
            return default
        return value

    def text(self, name: str, default: str) -> str:
        return cast(str, self._typed(name, str, default, "a text"))

    def optional_text(self, name: str) -> str | None:
        return cast("str | None", self._typed(name, str, None, "a text"))

    def percentage(self, name: str, default: int) -> int:
        return cast(int, self._typed(name, int, default, "a whole number from 0 to 100", lambda x: 0 <= x <= 100))

    def flag(self, name: str) -> bool:
        return cast(bool, self._typed(name, bool, False, "true or false", lambda _: True))

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._typed(name, list, [], "a list of texts", lambda x: all(isinstance(one, str) for one in x)))

    def table(self, name: str) -> _Reader:
        entries = self._typed(name, dict, {}, f"a table: write [{self.prefix}{name}]", lambda _: True)
        return _Reader(self.where, f"{self.prefix}{name}.", entries, self.problems)

    def tables(self) -> dict[str, _Reader]:
        """Return the entries, each of which is a table itself."""
        readers = {name: self.table(name) for name in self.entries}
        return {name: read for name, read in readers.items() if isinstance(self.entries[name], dict)}

    def list_of_tables(self, name: str) -> list[Mapping[str, Any]]:
        tables: list[Mapping[str, Any]] = self._typed(
            name, list, [], f"a list of tables: write [[{name}]]", lambda x: all(isinstance(one, dict) for one in x)
        )
        return tables


def _domain(name: str, read: _Reader) -> Domain:
    domain = Domain(
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
    read.refuse_others("a domain")
    return domain


def _patterns(top: _Reader, words: _Reader) -> dict[str, re.Pattern[str]]:
    """Return the regular expressions of the table `patterns`, by slot."""
    read, known = top.table("patterns"), {slot for word in words.entries for slot in words.texts(word)}
    patterns: dict[str, re.Pattern[str]] = {}
    for slot in read.entries:
        try:
            patterns[slot] = re.compile(read.text(slot, ""))
        except re.error as error:
            read.problem(slot, f"is not a regular expression ({error})")
        if slot not in known:
            read.problem(slot, "is not a slot of [words]")
    return patterns


def _spellings(top: _Reader) -> dict[str, Spelling]:
    """Return how the values of slots are spelled: by slot, out of the list of tables `values`."""
    spellings: dict[str, Spelling] = {}
    for at, entry in enumerate(top.list_of_tables("values")):
        read = _Reader(top.where, f"values[{at}].", entry, top.problems)
        rule = read.text("rule", "plain")
        if rule not in RULES:
            read.problem("rule", f"is {rule!r}, not one of {', '.join(RULES)}")
            continue
        same = {other: str(value) for other, value in read.table("same").entries.items()}
        spellings.update(dict.fromkeys(read.texts("slots"), Spelling(rule, same)))
    return spellings
