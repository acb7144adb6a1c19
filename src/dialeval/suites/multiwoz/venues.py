"""Ontologies and venues: what a task's dialogues are about, what may be offered, and how all of it is spelled.

An ontology is a small TOML file. It names the words that placeholders stand for, the words that a goal may ask for, how
slots and values are spelled, and for each domain the table of its venues with the columns that are searched fuzzily or
by order. MultiWOZ is one (`multiwoz.toml` next to this file), the sample's town another; `docs/own-task.md` explains
every entry. Every entry of another type than it should have is reported at once; then every one that does not fit the
others.

Venues are searched by the slots of a state. A query gives the venues that meet every slot which is a column of the
domain's table:

- a value that means "I do not care" is no constraint, and a slot that is no column is passed over;
- `fuzzy` columns match from a partial ratio of `fuzzy_ratio` (90) on; `at_most` and `at_least` columns by order, as
  times where their slots have the rule `time`, else as numbers; every other column on equality;
- the value `any_value` of a venue (MultiWOZ: `?`) matches everything, a value that a venue lacks matches nothing.

A set of venues is an integer with one bit per row. For each column and value the matching set is found once, over the
distinct values of the column; a query is the intersection of such sets, so that it costs next to nothing. Rows with the
same key are one venue (MultiWOZ has train ids that occur twice): in what a query gives, the first of them stands for
all.

Tables are JSON (a list of objects), CSV, TSV, Parquet or Arrow, each also packed.

Slot names and values in one spelling: what a system wrote as a state, as the venues have it.

Slot names: lower case, spaces removed, then renamed by the ontology (`leaveat` is `leave`). Values by a rule:

- `plain`: as it is; `text`: stripped and in lower case;
- `name`: as text, `&` written out as ` and `, no space before an apostrophe;
- `short-name`: as name, and `bed and breakfast` is `b and b`;
- `time`: HH:MM, see `normalize_time`;

and then, on exact equality, another spelling from the ontology's list.

The rules are those of the MultiWOZ evaluation, with what is odd about them: `12:30 pm` is `24:30`, `929` is `929:00`,
`2 : 15 pm` is `14: 15` (and `14:15` when it is normalized again for a query), and a time that does not begin with
HH:MM in ASCII digits counts as midnight.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, reduce
from itertools import accumulate, chain, islice
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, structs

from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Problem
from dialeval.core.validation import parse_json, parse_toml
from dialeval.io import tables
from dialeval.io.opening import PACKINGS, format_of, read_bytes, strip_mark
from dialeval.io.schemas import check_types
from dialeval.suites.multiwoz.turns import NONE
from dialeval.text.similarity import Ratio, find_similar

MULTIWOZ = Path(__file__).with_name("multiwoz.toml")

_EXPLAINED = "docs/own-task.md explains every entry"


Rule = Literal["plain", "text", "name", "short-name", "time"]

State = Mapping[str, Mapping[str, str]]
"""Domain -> slot -> value."""
Alternatives = Mapping[str, Mapping[str, str | tuple[str, ...]]]
"""Domain -> slot -> the value, or several that are all right."""

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
        value = _RULES[self.rule](value) if self.rule in _RULES else value
        return self.same.get(value, value)


def normalize_text(value: str) -> str:
    """Return the value stripped and in lower case."""
    return value.strip().lower()


def normalize_name(value: str) -> str:
    """Return the name of a place in the one spelling."""
    return normalize_text(value).replace(" & ", " and ").replace("&", " and ").replace(" '", "'")


def normalize_short_name(value: str) -> str:
    """Return the name of a place as the MultiWOZ evaluation spells it since January 2023."""
    return normalize_name(value).replace("bed and breakfast", "b and b")


def normalize_time(value: str) -> str:
    """Return a time of day as HH:MM where it can be understood, else what is left of it."""
    value = normalize_text(value)
    if value in _TIMES:
        return _TIMES[value]
    for beginning, time in _BEGINNINGS.items():
        if value.startswith(beginning):
            return time
    value = _remove_words(value)
    for ending in ("pm", "p.m."):
        if value.endswith(ending):
            value = value.removesuffix(ending).strip()
            if (later := _add_twelve_hours(value)) is not None:
                return later
    return _write_clock(value)


def _add_twelve_hours(value: str) -> str | None:
    """Return a time twelve hours later, what follows its colon unchanged; None if its hour is not a number."""
    hour, *minute = value.split(":")
    if len(minute) > 1 or not (minute or hour.isdigit()):
        return None
    try:
        return f"{int(hour) + 12}:{minute[0] if minute else '00'}"
    except ValueError:  # the original ends here: "six:15", or "²", which is a digit and not a number
        return None


def _remove_words(value: str) -> str:
    if value.startswith("by"):
        value = value[3:]
    for beginning in ("after", "afer"):
        if value.startswith(beginning):
            value = value.removeprefix(beginning).strip()
    for ending in ("am", "a.m."):
        if value.endswith(ending):
            value = value.removesuffix(ending).strip()
    return value


def _write_clock(value: str) -> str:
    if not value:
        return "00:00"
    if value[-1] in ".,?":
        value = value[:-1]
    if value.isdigit():
        return f"{value[:2]}:{value[2:]}" if len(value) == 4 else f"{value.zfill(2)}:00"
    if ":" in value:
        value = value.replace(" ", "")
    return f"0{value}" if len(value) == 4 and value[1] == ":" else value


def count_minutes(value: str) -> int:
    """Return the minutes since midnight of a time that begins with HH:MM in ASCII digits, else 0."""
    match = _CLOCK.match(value)
    if match is None:
        return 0
    try:
        minute = int(match[2])
    except ValueError:  # the original ends here: "15o'clock"
        minute = int(match[2][:2])
    return 60 * int(match[1]) + minute


_RULES: Mapping[str, Callable[[str], str]] = {
    "text": normalize_text,
    "name": normalize_name,
    "short-name": normalize_short_name,
    "time": normalize_time,
}
_PLAIN = Spelling()


class StateNormalizer:
    """The normalization of states, each distinct value once: `slots` renames slots, `spellings` has their rules."""

    def __init__(self, slots: Mapping[str, str], spellings: Mapping[str, Spelling]) -> None:
        self.slot: Callable[[str], str] = cache(lambda slot: slots.get(bare := slot.lower().replace(" ", ""), bare))
        """Return the one name of a slot."""
        self.value: Callable[[str, str], str] = cache(lambda slot, value: spellings.get(slot, _PLAIN)(value))
        """Return the one spelling of a value; `slot` is a slot's one name."""
        self._pair = cache(self._normalize_pair)

    def _normalize_pair(self, pair: tuple[str, Any]) -> tuple[str, object]:
        slot, value = self.slot(pair[0]), pair[1]
        return slot, self.value(slot, value) if isinstance(value, str) else tuple(
            self.value(slot, one) for one in value
        )

    def normalize_domain(self, slots: Mapping[str, object]) -> Mapping[str, Any]:
        """Return the slots of one domain."""
        return dict(map(self._pair, slots.items()))

    def __call__(self, state: Alternatives) -> Mapping[str, Mapping[str, Any]]:
        """Return the whole state."""
        return {domain: self.normalize_domain(slots) for domain, slots in state.items()}


# Ontologies.


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


_Percentage = Annotated[int, Meta(ge=0, le=100, description="a whole number from 0 to 100")]


class _Settings(Struct, forbid_unknown_fields=True, kw_only=True):
    """What an ontology and its file have in common."""

    domains: dict[str, Domain]
    name: str = "task"
    slots: dict[str, str] = {}
    """Other name of a slot -> its one name."""
    dont_care: frozenset[str] = frozenset()
    any_value: str | None = None
    named_by: str | None = None
    """A goal with this slot names its venue."""
    fuzzy_ratio: _Percentage = 90
    booking_prefix: str = ""


class Ontology(_Settings, dict=True, kw_only=True):
    """What the dialogues of a task are about."""

    words: Mapping[str, str]
    """Slot of a placeholder -> word."""
    requested: tuple[str, ...]
    """Words that a goal may ask for."""
    when_booked: frozenset[str]
    """Those of them that count only once the domain is booked."""
    digest: str
    spellings: Mapping[str, Spelling] = {}
    normalized_references: bool = False
    patterns: Mapping[str, re.Pattern[str]] = {}
    """Slot of a placeholder -> what values look like that no table lists, for lexicalized replies."""
    ordinary: tuple[re.Pattern[str], ...] = ()
    """What phrases of lexicalized replies look like in which no word is a value."""

    def with_rule(self, old: Rule, new: Rule) -> Ontology:
        """Return the ontology with another rule for the values that have one."""
        spellings = {slot: replace(one, rule=new) if one.rule == old else one for slot, one in self.spellings.items()}
        return structs.replace(self, spellings=spellings, digest=f"{self.digest}+{new}")

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


class _File(_Settings, kw_only=True):
    references: Literal["raw", "normalized"] = "raw"
    words: dict[str, list[str]] = {}
    requested: _Requested = _Requested()
    values: list[_Value] = []
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
    shared = {name: getattr(file, name) for name in _Settings.__struct_fields__}
    shared["domains"] = {name: structs.replace(domain, name=name) for name, domain in file.domains.items()}
    ontology = Ontology(
        **shared,
        words=words,
        requested=tuple(dict.fromkeys(file.requested.words)),
        when_booked=file.requested.when_booked,
        digest=hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH],
        spellings={slot: Spelling(value.rule, value.same) for value in file.values for slot in value.slots},
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


# Venues.


class VenueTable:
    """The venues of one domain as columns of texts."""

    def __init__(self, domain: Domain, ontology: Ontology, venues: Sequence[Mapping[str, str]]) -> None:
        self.domain = domain
        self.venues = venues
        self._ontology = ontology
        self._everything = (1 << len(venues)) - 1
        self.columns = list(dict.fromkeys(chain.from_iterable(venues)))
        """The slots that a query may use."""
        self.find_matching: Callable[[str, str, Ratio], int] = cache(self._match_slot)
        """Return the venues that meet one slot; all of them where it is no constraint."""
        self._values, self._order = cache(self._index_values), cache(self._order_values)
        self._again: dict[int, int] = {}
        """Rows whose key has occurred before -> the row where it did."""
        first: dict[str, int] = {}
        for row, venue in enumerate(venues):
            if first.setdefault(venue[domain.key], row) != row:
                self._again[row] = first[venue[domain.key]]
        self._doubles = sum(1 << row for row in self._again)

    def __len__(self) -> int:
        return len(self.venues)

    def query(self, slots: Mapping[str, str], ratio: Ratio = "historical") -> int:
        """Return the venues that meet all slots."""
        venues = self._everything
        for slot, value in slots.items():
            venues &= self.find_matching(slot, value, ratio)
        for row in self.iterate_rows(venues & self._doubles):
            venues = venues & ~(1 << row) | 1 << self._again[row]
        return venues

    def _match_slot(self, slot: str, value: str, ratio: Ratio) -> int:
        if slot not in self.columns or value in self._ontology.dont_care:
            return self._everything
        values = self._values(slot)
        value = self._ontology.states.value(slot, value)
        match_everything = values.get(self._ontology.any_value, NONE) if self._ontology.any_value else NONE
        if slot in self.domain.at_most or slot in self.domain.at_least:
            return match_everything | self._find_within(slot, self._rank(slot, value))
        if slot in self.domain.fuzzy:
            near = find_similar(value, values, self._ontology.fuzzy_ratio, ratio)
            return reduce(or_, (values[has] for has in near), match_everything)
        return match_everything | values.get(value, NONE)

    def _find_within(self, slot: str, limit: float) -> int:
        """Return the venues whose value of an ordered column is at most, or at least, as large as a limit."""
        ranks, having = self._order(slot)
        if math.isnan(limit):
            return NONE
        if slot in self.domain.at_most:
            return having[bisect_right(ranks, limit)]
        return having[-1] & ~having[bisect_left(ranks, limit)]

    def _order_values(self, slot: str) -> tuple[Sequence[float], Sequence[int]]:
        """Return the ranks of a column's values in order, and the venues that have the first none, one, two, ..."""
        ranks = [(self._rank(slot, value), venues) for value, venues in self._values(slot).items()]
        ranked = sorted((rank, venues) for rank, venues in ranks if not math.isnan(rank))
        having = accumulate((venues for _, venues in ranked), or_, initial=NONE)
        return [rank for rank, _ in ranked], list(having)

    def _index_values(self, slot: str) -> Mapping[str, int]:
        """Return the values of a column, each with the venues that have it."""
        having: dict[str, int] = {}
        for row, venue in enumerate(self.venues):
            if slot in venue:
                having[venue[slot]] = having.get(venue[slot], NONE) | 1 << row
        return having

    def _rank(self, slot: str, value: str) -> float:
        spelling = self._ontology.spellings.get(slot)
        if spelling is not None and spelling.rule == "time":
            return count_minutes(value)
        try:
            return float(value)
        except ValueError:
            return math.nan  # what is no number meets nothing

    @staticmethod
    def iterate_rows(venues: int) -> Iterator[int]:
        """Yield the rows of a set of venues, in order."""
        while venues:
            lowest = venues & -venues
            yield lowest.bit_length() - 1
            venues ^= lowest

    def list_labels(self, venues: int, most: int) -> list[str]:
        """Return what the first venues of a set are called."""
        column, key = self.domain.label, self.domain.key
        first = islice(self.iterate_rows(venues), most)
        return [self.venues[row].get(column) or self.venues[row][key] for row in first]


@dataclass(frozen=True, eq=False)
class Venues:
    """The tables of all domains that have one."""

    tables: Mapping[str, VenueTable]
    digest: str

    def __contains__(self, domain: str) -> bool:
        return domain in self.tables

    def __getitem__(self, domain: str) -> VenueTable:
        return self.tables[domain]


def load_venues(ontology: Ontology, folder: str | os.PathLike[str]) -> Venues:
    """Return the tables of an ontology's domains from a folder; every problem of every table at once."""
    tables: dict[str, VenueTable] = {}
    problems: list[Problem] = []
    sha = hashlib.sha256()
    for name, domain in ontology.domains.items():
        if domain.table is None:
            continue
        path = Path(folder) / domain.table
        path = find_file(path) or path
        try:
            content = strip_mark(read_bytes(path)).tobytes()
            sha.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
            venues = _make_venues(domain, ontology, _read_records(path, content), str(path))
            tables[name] = VenueTable(domain, ontology, venues)
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return Venues(tables, sha.hexdigest()[:DIGEST_LENGTH])


def find_file(path: Path) -> Path | None:
    """Return the file or its compressed form; None where there is neither."""
    packed = (path.with_name(f"{path.name}{packing}") for packing in sorted(PACKINGS))
    return next((file for file in (path, *packed) if file.is_file()), None)


def _read_records(path: Path, content: bytes) -> list[object]:
    kind = format_of(path)
    if kind == "json":
        records = parse_json(content, str(path), "correct it there")
        if not isinstance(records, list):
            raise DataError(Problem(str(path), 1, "is not a list of venues", "give a list of objects, one per venue"))
        return records
    if kind in ("csv", "tsv"):
        try:
            lines = io.StringIO(content.decode(), newline="")
        except UnicodeDecodeError as error:
            raise DataError(Problem(str(path), None, f"not UTF-8 ({error})", "save it as UTF-8")) from None
        return list(csv.DictReader(lines, delimiter="," if kind == "csv" else "\t"))
    if kind == "parquet":
        return list(tables.list_rows(tables.parse_table(content, path), str(path)))
    raise DataError(Problem(str(path), None, "is not a table", "give .json, .csv, .tsv or .parquet"))


def _make_venues(domain: Domain, ontology: Ontology, records: Sequence[object], where: str) -> list[dict[str, str]]:
    """Return the venues with the one names of their columns; what is no slot is dropped."""
    venues: list[dict[str, str]] = []
    problems: list[Problem] = []
    for row, record in enumerate(records):
        if not isinstance(record, dict):
            problems.append(Problem(f"{where}: [{row}]", None, "is not an object", "give one object per venue"))
            continue
        venue: dict[str, str] = {}
        for name, value in record.items():
            column = ontology.states.slot(str(name))
            if column in domain.drop or value is None:
                continue
            if isinstance(value, dict | list):
                remedy = f"name the column in `drop` of domains.{domain.name}, or give a text"
                problems.append(Problem(f"{where}: [{row}].{name}", None, "is not a text or number", remedy))
            else:  # MultiWOZ writes true and false as yes and no
                venue[column] = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        if domain.key not in venue:
            remedy = f"give it one, or name another column as `key` of domains.{domain.name}"
            problems.append(Problem(f"{where}: [{row}]", None, f"has no {domain.key!r}", remedy))
        venues.append(venue)
    if problems:
        raise DataError(problems)
    return venues
