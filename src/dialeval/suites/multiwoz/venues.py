"""Venues: one table per domain, searched by the slots of a state.

A query gives the venues that meet every slot which is a column of the domain's table:

- a value that means "I do not care" is no constraint, and a slot that is no column is passed over;
- `fuzzy` columns match from a partial ratio of `fuzzy_ratio` (90) on; `at_most` and `at_least` columns by order, as
  times where their slots have the rule `time`, else as numbers; every other column on equality;
- the value `any_value` of a venue (MultiWOZ: `?`) matches everything, a value that a venue lacks matches nothing.

A set of venues is an integer with one bit per row. For each column and value the matching set is found once, over the
distinct values of the column; a query is the intersection of such sets, so that it costs next to nothing. Rows with the
same key are one venue (MultiWOZ has train ids that occur twice): in what a query gives, the first of them stands for
all.

Tables are JSON (a list of objects), CSV, TSV, Parquet or Arrow, each also packed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import accumulate, chain, islice
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Problem
from dialeval.core.validation import parse_json
from dialeval.io import parquet
from dialeval.io.opening import PACKINGS, format_of, read_bytes, without_mark
from dialeval.suites.multiwoz.ontology import minutes
from dialeval.text.similarity import Ratio, similar

if TYPE_CHECKING:
    from dialeval.suites.multiwoz.ontology import Domain, Ontology

NONE = 0
"""The set of no venues."""


class Table:
    """The venues of one domain as columns of texts."""

    def __init__(self, domain: Domain, ontology: Ontology, venues: Sequence[Mapping[str, str]]) -> None:
        self.domain = domain
        self.venues = venues
        self._ontology = ontology
        self._everything = (1 << len(venues)) - 1
        self.columns = list(dict.fromkeys(chain.from_iterable(venues)))
        """The slots that a query may use."""
        self.matching: Callable[[str, str, Ratio], int] = cache(self._matching)
        """Return the venues that meet one slot; all of them where it is no constraint."""
        self._values, self._order = cache(self._having), cache(self._ordered)
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
            venues &= self.matching(slot, value, ratio)
        for row in self.rows(venues & self._doubles):
            venues = venues & ~(1 << row) | 1 << self._again[row]
        return venues

    def _matching(self, slot: str, value: str, ratio: Ratio) -> int:
        if slot not in self.columns or value in self._ontology.dont_care:
            return self._everything
        values = self._values(slot)
        value = self._ontology.states.value(slot, value)
        match_everything = values.get(self._ontology.any_value, NONE) if self._ontology.any_value else NONE
        if slot in self.domain.at_most or slot in self.domain.at_least:
            return match_everything | self._within(slot, self._rank(slot, value))
        if slot in self.domain.fuzzy:
            near = similar(value, values, self._ontology.fuzzy_ratio, ratio)
            return reduce(or_, (values[has] for has in near), match_everything)
        return match_everything | values.get(value, NONE)

    def _within(self, slot: str, limit: float) -> int:
        """Return the venues whose value of an ordered column is at most, or at least, as large as a limit."""
        ranks, having = self._order(slot)
        if math.isnan(limit):
            return NONE
        if slot in self.domain.at_most:
            return having[bisect_right(ranks, limit)]
        return having[-1] & ~having[bisect_left(ranks, limit)]

    def _ordered(self, slot: str) -> tuple[Sequence[float], Sequence[int]]:
        """Return the ranks of a column's values in order, and the venues that have the first none, one, two, ..."""
        ranks = [(self._rank(slot, value), venues) for value, venues in self._values(slot).items()]
        ranked = sorted((rank, venues) for rank, venues in ranks if not math.isnan(rank))
        having = accumulate((venues for _, venues in ranked), or_, initial=NONE)
        return [rank for rank, _ in ranked], list(having)

    def _having(self, slot: str) -> Mapping[str, int]:
        """Return the values of a column, each with the venues that have it."""
        having: dict[str, int] = {}
        for row, venue in enumerate(self.venues):
            if slot in venue:
                having[venue[slot]] = having.get(venue[slot], NONE) | 1 << row
        return having

    def _rank(self, slot: str, value: str) -> float:
        spelling = self._ontology.spellings.get(slot)
        if spelling is not None and spelling.rule == "time":
            return minutes(value)
        try:
            return float(value)
        except ValueError:
            return math.nan  # what is no number meets nothing

    @staticmethod
    def rows(venues: int) -> Iterator[int]:
        """Yield the rows of a set of venues, in order."""
        while venues:
            lowest = venues & -venues
            yield lowest.bit_length() - 1
            venues ^= lowest

    def labels(self, venues: int, most: int) -> list[str]:
        """Return what the first venues of a set are called."""
        column, key = self.domain.label, self.domain.key
        first = islice(self.rows(venues), most)
        return [self.venues[row].get(column) or self.venues[row][key] for row in first]


@dataclass(frozen=True, eq=False)
class Venues:
    """The tables of all domains that have one."""

    tables: Mapping[str, Table]
    digest: str

    def __contains__(self, domain: str) -> bool:
        return domain in self.tables

    def __getitem__(self, domain: str) -> Table:
        return self.tables[domain]


def load_venues(ontology: Ontology, folder: str | os.PathLike[str]) -> Venues:
    """Return the tables of an ontology's domains from a folder; every problem of every table at once."""
    tables: dict[str, Table] = {}
    problems: list[Problem] = []
    sha = hashlib.sha256()
    for name, domain in ontology.domains.items():
        if domain.table is None:
            continue
        path = Path(folder) / domain.table
        path = existing(path) or path
        try:
            content = without_mark(read_bytes(path)).tobytes()
            sha.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
            tables[name] = Table(domain, ontology, _venues(domain, ontology, _records(path, content), str(path)))
        except DataError as error:
            problems += error.problems
    if problems:
        raise DataError(problems)
    return Venues(tables, sha.hexdigest()[:DIGEST_LENGTH])


def existing(path: Path) -> Path | None:
    """Return the file, or its packed form, if there is one."""
    packed = (path.with_name(f"{path.name}{packing}") for packing in sorted(PACKINGS))
    return next((file for file in (path, *packed) if file.is_file()), None)


def _records(path: Path, content: bytes) -> list[Any]:
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
    if kind in ("parquet", "arrow"):
        import pyarrow as pa

        return list(parquet.plain_rows(parquet.table_of(pa.BufferReader(content), path), str(path)))
    raise DataError(Problem(str(path), None, "is not a table", "give .json, .csv, .tsv, .parquet or .arrow"))


def _venues(domain: Domain, ontology: Ontology, records: Sequence[Any], where: str) -> list[dict[str, str]]:
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
