"""Ontologies: what a task's dialogues are about, in one small TOML file.

An ontology names the words that placeholders stand for, the words that a goal may ask for, how slots and values are
spelled, and for each domain the table of its venues with the columns that are searched fuzzily or by order. MultiWOZ is
one (`multiwoz.toml` next to this file), the sample's town another; `docs/own-task.md` explains every entry.

Every entry of another type than it should have is reported at once; then every one that does not fit the others.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, structs

from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Problem
from dialeval.core.validation import parse_toml
from dialeval.io.opening import read_bytes
from dialeval.io.schemas import check_types
from dialeval.suites.multiwoz.venues import Rule, Spelling, StateNormalizer

MULTIWOZ = Path(__file__).with_name("multiwoz.toml")

_EXPLAINED = "docs/own-task.md explains every entry"


class Domain(Struct, frozen=True, forbid_unknown_fields=True):
    """One domain: where its venues are, and how they are offered and searched."""

    name: str = ""
    """That of its table."""
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
    ordinary: tuple[re.Pattern[str], ...] = ()
    """What phrases of lexicalized replies look like in which no word is a value."""

    def with_rule(self, old: Rule, new: Rule) -> Ontology:
        """Return the ontology with another rule for the values that have one."""
        spellings = {slot: replace(one, rule=new) if one.rule == old else one for slot, one in self.spellings.items()}
        return replace(self, spellings=spellings, digest=f"{self.digest}+{new}")

    @cached_property
    def states(self) -> StateNormalizer:
        """Normalizes slot names and values; remembers what it has seen."""
        return StateNormalizer(self.slots, self.spellings)


class _Requested(Struct, frozen=True, forbid_unknown_fields=True):
    words: list[str] = []
    when_booked: frozenset[str] = frozenset()


class _Value(Struct, forbid_unknown_fields=True):
    slots: list[str] = []
    rule: Rule = "plain"
    same: dict[str, str] = {}


_Percentage = Annotated[int, Meta(ge=0, le=100, description="a whole number from 0 to 100")]


class _File(Struct, forbid_unknown_fields=True):
    domains: dict[str, Domain]
    name: str = "task"
    references: Literal["raw", "normalized"] = "raw"
    words: dict[str, list[str]] = {}
    requested: _Requested = _Requested()
    slots: dict[str, str] = {}
    values: list[_Value] = []
    dont_care: frozenset[str] = frozenset()
    any_value: str | None = None
    named_by: str | None = None
    fuzzy_ratio: _Percentage = 90
    booking_prefix: str = ""
    patterns: dict[str, str] = {}
    ordinary: list[str] = []


def load_ontology(path: str | os.PathLike[str]) -> Ontology:
    """Return the ontology in a TOML file."""
    content, where = read_bytes(path).tobytes(), os.fspath(path)
    document = parse_toml(content, where, "correct it there")
    if problems := check_types(document, _File, where, _EXPLAINED):
        raise DataError(problems)
    file = msgspec.convert(document, _File)

    def add_problem(place: str, what: str) -> None:
        problems.append(Problem(f"{where}: {place}", None, what, _EXPLAINED))

    def compile_all(patterns: Iterable[tuple[str, str]]) -> Iterator[tuple[str, re.Pattern[str]]]:
        for place, text in patterns:
            try:
                yield place, re.compile(text)
            except re.error as error:
                add_problem(place, f"{text!r} is not a regular expression ({error})")

    words = {slot: word for word, slots in file.words.items() for slot in slots}
    patterns = compile_all((f"patterns.{slot}", text) for slot, text in file.patterns.items())
    ontology = Ontology(
        name=file.name,
        words=words,
        requested=tuple(dict.fromkeys(file.requested.words)),
        when_booked=file.requested.when_booked,
        domains={name: structs.replace(domain, name=name) for name, domain in file.domains.items()},
        digest=hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH],
        slots=file.slots,
        spellings={slot: Spelling(value.rule, value.same) for value in file.values for slot in value.slots},
        dont_care=file.dont_care,
        any_value=file.any_value,
        named_by=file.named_by,
        fuzzy_ratio=file.fuzzy_ratio,
        booking_prefix=file.booking_prefix,
        normalized_references=file.references == "normalized",
        patterns={place.removeprefix("patterns."): pattern for place, pattern in patterns},
        ordinary=tuple(pattern for _, pattern in compile_all(("ordinary", text) for text in file.ordinary)),
    )
    for slot in file.patterns.keys() - words:
        add_problem(f"patterns.{slot}", "is not a slot of [words]")
    all_words = {*words.values(), *ontology.requested}
    for name, domain in ontology.domains.items():
        if domain.table is not None and domain.offer not in all_words:
            add_problem(f"domains.{name}.offer", f"{domain.offer!r} is not a word of [words]")
    if not ontology.domains:
        add_problem("domains", "there is no domain")
    if problems:
        raise DataError(problems)
    return ontology
