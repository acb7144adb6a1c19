"""Ontologies: what a task's dialogues are about, in one small TOML file.

An ontology names the words that placeholders stand for, the words that a goal may ask for, how slots and values are
spelled, and for each domain the table of its venues with the columns that are searched fuzzily or by order. MultiWOZ is
one (`multiwoz.toml` next to this file), the sample's town another; `docs/own-task.md` explains every entry.

Every entry of another type than it should have is reported at once; then every one that does not fit the others.

Slot names and values in one spelling: what a system wrote as a state, as the venues have it.

Slot names: lower case, spaces removed, then renamed by the ontology (`leaveat` is `leave`). Values by a rule:

- `plain`: as it stands; `text`: stripped and in lower case;
- `name`: as text, `&` written out as ` and `, no space before an apostrophe;
- `time`: HH:MM, see `clock`;

and then, on exact equality, another spelling from the ontology's list.

The rules are those of the MultiWOZ evaluation, with what is odd about them: `12:30 pm` is `24:30`, `929` is `929:00`,
`2 : 15 pm` is `14: 15` (and `14:15` when it is normalized again for a query), and a time that does not begin with
HH:MM in ASCII digits counts as midnight.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, structs

from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Problem
from dialeval.core.validation import parse_toml
from dialeval.io.checking import type_problems
from dialeval.io.opening import read_bytes
from dialeval.text.tokenizers import tidied

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

    @cached_property
    def states(self) -> StateNormalizer:
        """Normalizes slot names and values; remembers what it has seen."""
        return StateNormalizer(self.slots, self.spellings)


class _Requested(Struct, frozen=True, forbid_unknown_fields=True):
    words: list[str] = []
    when_booked: frozenset[str] = frozenset()


class _Values(Struct, forbid_unknown_fields=True):
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
    values: list[_Values] = []
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
    if problems := type_problems(document, _File, where, _EXPLAINED):
        raise DataError(problems)
    file = msgspec.convert(document, _File)

    def problem(place: str, what: str) -> None:
        problems.append(Problem(f"{where}: {place}", None, what, _EXPLAINED))

    def compile_all(patterns: Iterable[tuple[str, str]]) -> Iterator[tuple[str, re.Pattern[str]]]:
        for place, text in patterns:
            try:
                yield place, re.compile(text)
            except re.error as error:
                problem(place, f"{text!r} is not a regular expression ({error})")

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
        spellings={slot: Spelling(each.rule, each.same) for each in file.values for slot in each.slots},
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
        problem(f"patterns.{slot}", "is not a slot of [words]")
    known = {*words.values(), *ontology.requested}
    for name, domain in ontology.domains.items():
        if domain.table is not None and domain.offer not in known:
            problem(f"domains.{name}.offer", f"{domain.offer!r} is not a word of [words]")
    if not ontology.domains:
        problem("domains", "there is no domain")
    if problems:
        raise DataError(problems)
    return ontology


Rule = Literal["plain", "text", "name", "time"]

MAIN_REFERENCES = "mwz22"
"""The reference set that comes first where it is there."""

State = Mapping[str, Mapping[str, str]]
"""Domain -> slot -> value."""

_TIMES = {
    "afternoon": "13:00",
    "lunch": "12:00",
    "noon": "12:00",
    "mid-day": "12:00",
    "around lunch time": "12:00",
    "morning": "08:00",
    "seven o'clock tomorrow evening": "07:00",
    "three forty five p.m": "15:45",
    "one thirty p.m.": "13:30",
    "six fourty five": "06:45",
    "eight thirty": "08:30",
}
_BEGINNINGS = {"one o'clock p.m": "13:00", "ten o'clock a.m": "10:00"}
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}[^:]*)")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the values of some slots are written: a rule, and other spellings of whole values."""

    rule: Rule = "plain"
    same: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, value: str) -> str:
        """Return the value in the one spelling."""
        value = _BY_RULE[self.rule](value)
        return self.same.get(value, value)


def text(value: str) -> str:
    """Return the value stripped and in lower case."""
    return value.strip().lower()


def name(value: str) -> str:
    """Return the name of a place."""
    return text(value).replace(" & ", " and ").replace("&", " and ").replace(" '", "'")


def clock(value: str) -> str:
    """Return a time of day as HH:MM where it can be understood, else what is left of it."""
    value = text(value)
    if value in _TIMES:
        return _TIMES[value]
    for beginning, time in _BEGINNINGS.items():
        if value.startswith(beginning):
            return time
    value = _without_words(value)
    for ending in ("pm", "p.m."):
        if value.endswith(ending):
            value = value.removesuffix(ending).strip()
            if (later := _add_twelve_hours(value)) is not None:
                return later
    return _digits(value)


def _add_twelve_hours(value: str) -> str | None:
    """Return a time twelve hours later, what follows its colon unchanged; None if its hour is not a number."""
    hour, *minute = value.split(":")
    if len(minute) > 1 or not (minute or hour.isdigit()):
        return None
    try:
        return f"{int(hour) + 12}:{minute[0] if minute else '00'}"
    except ValueError:  # the original ends here: "six:15", or "²", which is a digit and not a number
        return None


def _without_words(value: str) -> str:
    if value.startswith("by"):
        value = value[3:]
    for beginning in ("after", "afer"):
        if value.startswith(beginning):
            value = value.removeprefix(beginning).strip()
    for ending in ("am", "a.m."):
        if value.endswith(ending):
            value = value.removesuffix(ending).strip()
    return value


def _digits(value: str) -> str:
    if not value:
        return "00:00"
    if value[-1] in ".,?":
        value = value[:-1]
    if value.isdigit():
        return f"{value[:2]}:{value[2:]}" if len(value) == 4 else f"{value.zfill(2)}:00"
    if ":" in value:
        value = value.replace(" ", "")
    return f"0{value}" if len(value) == 4 and value[1] == ":" else value


def minutes(value: str) -> int:
    """Return the minutes since midnight of a time that begins with HH:MM in ASCII digits, else 0."""
    match = _CLOCK.match(value)
    if match is None:
        return 0
    try:
        minute = int(match[2])
    except ValueError:  # the original ends here: "15o'clock"
        minute = int(match[2][:2])
    return 60 * int(match[1]) + minute


_BY_RULE = {"plain": str, "text": text, "name": name, "time": clock}
_PLAIN = Spelling()


class StateNormalizer:
    """Normalizes states, each distinct value once; `slots` renames slots, `spellings` gives the rule of a slot."""

    def __init__(self, slots: Mapping[str, str], spellings: Mapping[str, Spelling]) -> None:
        self.slot: Callable[[str], str] = cache(lambda slot: slots.get(bare := slot.lower().replace(" ", ""), bare))
        """Return the one name of a slot."""
        self.value: Callable[[str, str], str] = cache(lambda slot, value: spellings.get(slot, _PLAIN)(value))
        """Return the one spelling of a value; `slot` is a slot's one name."""
        self._pair = cache(lambda given: (slot := self.slot(given[0]), self.value(slot, given[1])))

    def domain(self, slots: Mapping[str, str]) -> Mapping[str, str]:
        """Return the slots of one domain."""
        return dict(map(self._pair, slots.items()))

    def __call__(self, state: State) -> State:
        """Return the whole state."""
        return {domain: self.domain(slots) for domain, slots in state.items()}


# Delexicalized responses: texts in which values are placeholders, such as `[hotel_name] is [value_price]`.
#
# A response is normalized in four steps, so that systems with different placeholders can be compared:
#
# 1. lower case;
# 2. a placeholder (`[` word characters, spaces or digits `]`, and a plural ending right behind it) becomes the word
# that
#    the ontology has for its slot, in upper case; a slot that the ontology does not know is removed;
# 3. every `-s` is deleted, then every `-ly`;
# 4. split and joined again by Moses (`text/tokenizers.py`).
#
# `normalizer` does this once for each distinct response. The steps are those of the MultiWOZ evaluation, with what is
# odd about them: `[stars]-star` becomes `COUNTtar`, and `10:00` becomes `10: 00`.

PLACEHOLDER = re.compile(r"\[([\w\s]+)\](?:es|s|-s|-es)?")


def normalizer(words: Mapping[str, str]) -> Callable[[str], str]:
    """Return the function that normalizes responses, each distinct one once; `words` gives the word of each slot."""

    @cache
    def normalize(response: str) -> str:
        text = PLACEHOLDER.sub(lambda match: words.get(match[1], ""), response.lower())
        return tidied(text.replace("-s", "").replace("-ly", ""))

    return normalize


def unknown_placeholders(responses: Iterable[str], words: Mapping[str, str]) -> dict[str, int]:
    """The slots of placeholders that have no word, each with the number of times it occurs, most frequent first."""
    slots = (slot for response in responses for slot in PLACEHOLDER.findall(response.lower()))
    return dict(Counter(slot for slot in slots if slot not in words).most_common())


def slot_domains(response: str, domains: Iterable[str]) -> list[str]:
    """Return the domains that a response's placeholders name (`[hotel_name]`: hotel), in order of appearance."""
    named = (match[1].partition("_")[0] for match in PLACEHOLDER.finditer(response.lower()))
    known = set(domains)
    return list(dict.fromkeys(name for name in named if name in known))
