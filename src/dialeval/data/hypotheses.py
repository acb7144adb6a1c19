"""Several hypotheses per query, and references in groups: the files and objects of the LSDSCC program.

Hypotheses: a line of text per query with `eos` between the hypotheses,

    This </s> is </s> line 1 </s> with 4 hypotheses

cut wherever `eos` stands, also inside a word; so an empty line is one empty hypothesis, and a separator at the end adds
one. Also `.json` and `.jsonl` with a list of strings per query, or an object that has one under `hypotheses`.

Reference groups: a JSON object of query -> group id -> list of references. The queries are taken in the order of the
file and belong to the hypotheses line by line. Groups are sorted by their ids as numbers; an id that is no number
counts as the number of groups, the next one as one more, and so on: x, 7, 1 gives 1, x, 7. Instead of ids a list of
lists will do, and a plain list of references is one group; instead of queries a list.

Differences from the original: files are UTF-8 in every locale; LF and CRLF end a line and nothing else does; a
different number of lines and queries is an error that says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, overload

import numpy as np

from dialeval.core.arrays import Bytes, Ints, release
from dialeval.core.columns import GroupedColumn, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.needs import Need
from dialeval.data import jsonl
from dialeval.data.gathering import offsets_of
from dialeval.data.lines import encoding_faults, read_lines, split
from dialeval.data.opening import PathSource, format_of, read_bytes, stem_of, without_mark
from dialeval.data.row_fields import LISTS, kind_of, numbered
from dialeval.data.rows import Rows
from dialeval.data.sources import UNNAMED, files_in, is_folder

EOS = "</s>"
"""What stands between two hypotheses of a line unless something else is said."""

FIELDS = ("hypotheses", "responses", "response")
"""Where an object may hold its hypotheses."""

_SEARCHED_BYTES = 1 << 24
"""Bytes searched for separators at a time, so that a huge file does not need a mask of its own size."""

_HYPOTHESES_REMEDY = "give a list of strings per query"
_GROUPS_REMEDY = "give an object of group id -> list of references per query, a list of such lists, or a list"


class HypothesisSet(Sequence[list[str]]):
    """The hypotheses of one query, each a list of words; a string is split at white space."""

    def __init__(self, hypotheses: Iterable[Sequence[str]]) -> None:
        self._hypotheses = [_words(hypothesis, "a hypothesis") for hypothesis in hypotheses]

    @classmethod
    def from_line(cls, line: str, eos: str = EOS) -> HypothesisSet:
        """The hypotheses of a line, cut at `eos`."""
        return cls(_cut(line, eos))

    @classmethod
    def load_corpus(cls, path: PathSource, eos: str = EOS) -> list[HypothesisSet]:
        """The hypotheses of every query of a file."""
        return [cls(row) for row in read_hypothesis_column(path, eos)]

    @overload
    def __getitem__(self, index: int) -> list[str]: ...

    @overload
    def __getitem__(self, index: slice) -> list[list[str]]: ...

    def __getitem__(self, index: int | slice) -> list[str] | list[list[str]]:
        return self._hypotheses[index]

    def __len__(self) -> int:
        return len(self._hypotheses)

    def __eq__(self, other: object) -> bool:
        return self._hypotheses == other._hypotheses if isinstance(other, HypothesisSet) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"HypothesisSet({self._hypotheses!r})"

    def __str__(self) -> str:
        return "\n".join(" ".join(words) for words in self._hypotheses)


class ReferenceSet(Sequence[list[list[str]]]):
    """The references of one query in groups, each a list of words; a string is split at white space."""

    def __init__(
        self, groups: Iterable[Sequence[Sequence[str]]], query: str | None = None, names: Sequence[str] | None = None
    ) -> None:
        self._groups = [[_words(text, "a reference") for text in group] for group in groups]
        self.query = query
        """What the references answer, if it is known."""
        self.names = list(names) if names is not None else [str(group) for group in range(len(self._groups))]
        """The ids of the groups, in order."""
        if len(self.names) != len(self._groups):
            what = f"{len(self._groups)} groups have {len(self.names)} names"
            raise DataError(Fault("reference set", None, what, "name every group once"))

    @classmethod
    def from_json(cls, document: Mapping[str, Any], query: str | None = None) -> ReferenceSet:
        """The references of one query: group id -> list of references, or query -> such an object."""
        if query is None and len(document) == 1:
            (inner,) = document.values()
            if isinstance(inner, Mapping):
                (query,), document = document, inner
        faults: list[Fault] = []
        names, groups = _groups_of(document, "reference set", 1 if query is None else query, faults)
        if faults:
            raise DataError(faults)
        return cls(groups, query, names)

    @classmethod
    def load_json_corpus(cls, path: PathSource) -> list[ReferenceSet]:
        """The reference groups of every query of a file."""
        groups = read_groups(path)
        named = enumerate(zip(groups.queries, groups.names, strict=True))
        return [cls(groups.column.grouped(row), query, names) for row, (query, names) in named]

    @property
    def n_references(self) -> int:
        """Number of references in all groups together."""
        return sum(map(len, self._groups))

    @overload
    def __getitem__(self, index: int) -> list[list[str]]: ...

    @overload
    def __getitem__(self, index: slice) -> list[list[list[str]]]: ...

    def __getitem__(self, index: int | slice) -> list[list[str]] | list[list[list[str]]]:
        return self._groups[index]

    def __len__(self) -> int:
        return len(self._groups)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReferenceSet):
            return NotImplemented
        return (self._groups, self.query, self.names) == (other._groups, other.query, other.names)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ReferenceSet({self._groups!r}, query={self.query!r}, names={self.names!r})"


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """The reference groups of every query: a column for metrics, and what the queries and groups are called."""

    column: GroupedColumn
    queries: Sequence[str | None]
    names: Sequence[Sequence[str]]
    where: str


def holds_hypotheses(source: Any) -> bool:
    """Whether responses given as Python objects are several per query: a list of lists, or a mapping of such."""
    if isinstance(source, Mapping):
        return any(map(holds_hypotheses, source.values()))
    return isinstance(source, LISTS) and any(isinstance(row, (*LISTS, HypothesisSet)) for row in source)


def read_hypotheses(source: Any, eos: str = EOS, name: str | None = None) -> list[Rows]:
    """The hypotheses of every system: a path, a folder, a list of lists of texts, or a mapping of systems to these."""
    if isinstance(source, Mapping):
        found = [rows for key, value in source.items() for rows in read_hypotheses(value, eos, str(key))]
        if not found:
            raise DataError(Fault(name or "responses", None, "is an empty mapping", "name at least one system"))
        return found
    if isinstance(source, str | os.PathLike):
        if is_folder(source):
            systems = {stem_of(file): file for file in files_in(source)}
            prefix = "" if name is None else f"{name}/"
            return [rows for stem, file in systems.items() for rows in read_hypotheses(file, eos, prefix + stem)]
        column = read_hypothesis_column(source, eos)
        return [Rows(name or stem_of(source), {Need.HYPOTHESES: column}, where=os.fspath(source))]
    where = name or "responses"
    if not isinstance(source, LISTS):
        remedy = "pass a path, a list with a list of texts per query, or a mapping of systems to these"
        raise DataError(Fault(where, None, f"{kind_of(source)} is no source of hypotheses", remedy))
    return [Rows(name or UNNAMED, {Need.HYPOTHESES: _column(numbered(source), where)}, where=where)]


def read_hypothesis_column(path: PathSource, eos: str = EOS) -> RaggedColumn:
    """The hypotheses of every query of a file."""
    where, kind = os.fspath(path), format_of(path)
    if kind == "jsonl":
        records = jsonl.read(path)
        column = _column(records.rows, where, records.faults)
    elif kind == "json":
        document = _document(path)
        items = list(document.values()) if isinstance(document, dict) else document
        if not isinstance(items, list):
            raise DataError(Fault(where, 1, f"is {kind_of(document)}", _HYPOTHESES_REMEDY))
        column = _column(numbered(items), where)
    elif kind == "txt":
        return separated(read_lines(path), eos)
    else:
        remedy = "give lines with a separator between hypotheses, .json or .jsonl"
        raise DataError(Fault(where, None, f"a .{kind} file does not hold hypotheses", remedy))
    return column


def separated(lines: TextColumn, eos: str) -> RaggedColumn:
    """The texts between the separators of each line, over the same bytes; a line is cut as `str.split(eos)` does it."""
    try:
        token = eos.encode()
    except UnicodeEncodeError:
        token = b""
    if not token:
        raise SettingError("the separator of hypotheses is not a text; give the token that stands between them")
    places = _occurrences(lines.data, token)
    rows = np.searchsorted(lines.starts, places, side="right") - 1
    inside = (rows >= 0) & (places + len(token) <= lines.ends[rows])
    places, rows = places[inside], rows[inside]
    if (np.diff(places) < len(token)).any():
        apart = _apart(places.tolist(), len(token))
        places, rows = places[apart], rows[apart]
    offsets = offsets_of(np.bincount(rows, minlength=len(lines)) + 1)
    first, last = np.zeros(offsets[-1], np.bool_), np.zeros(offsets[-1], np.bool_)
    first[offsets[:-1]], last[offsets[1:] - 1] = True, True
    starts, ends = np.empty(offsets[-1], np.int64), np.empty(offsets[-1], np.int64)
    starts[first], starts[~first] = lines.starts, places + len(token)
    ends[last], ends[~last] = lines.ends, places
    return RaggedColumn(TextColumn(lines.data, starts, ends), offsets)


def _occurrences(data: Bytes, token: bytes) -> Ints:
    """Where a token stands in some bytes, overlapping ones included."""
    found = []
    for start in range(0, len(data), _SEARCHED_BYTES):
        part = data[start : start + _SEARCHED_BYTES + len(token) - 1]
        places = np.flatnonzero(part[: max(len(part) - len(token) + 1, 0)] == token[0])
        for at, byte in enumerate(token[1:], 1):
            places = places[part[places + at] == byte]
        found.append(places + start)
        release(part)
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _apart(places: Sequence[int], width: int) -> list[int]:
    """Which occurrences are met when the search goes on after each."""
    kept, end = [], 0
    for index, place in enumerate(places):
        if place >= end:
            kept.append(index)
            end = place + width
    return kept


def read_groups(source: Any) -> Groups:
    """Reference groups: the path of a JSON file, a mapping of queries to groups, or a list of groups per query."""
    where = Need.REFERENCE_GROUPS.argument
    if isinstance(source, str | os.PathLike):
        where, source = os.fspath(source), _document(source)
    named = isinstance(source, Mapping)
    if not named and not isinstance(source, LISTS):
        raise DataError(Fault(where, None, f"is {kind_of(source)}", "give an object of query -> groups, or a list"))
    queries: list[str | None] = list(map(str, source)) if named else [None] * len(source)
    faults: list[Fault] = []
    texts: list[str] = []
    sizes: list[int] = []
    names: list[Sequence[str]] = []
    for number, row in numbered(source.values() if named else source):
        ids, groups = _groups_of(row, where, queries[number - 1] or number, faults)
        for group in groups:
            texts += group
            sizes.append(len(group))
        names.append(ids)
        if isinstance(row, ReferenceSet):
            queries[number - 1] = row.query
    if not names:
        faults.append(Fault(where, None, "holds no queries", _GROUPS_REMEDY))
    if faults:
        raise DataError(faults)
    column = GroupedColumn.of(TextColumn.from_strings(texts, where), sizes, list(map(len, names)))
    return Groups(column, queries, names, where)


def attach_groups(rows: Rows, groups: Groups) -> Rows:
    """The rows with their reference groups; both must have as many queries."""
    if len(rows) != len(groups.column):
        longer = rows.where if len(rows) > len(groups.column) else groups.where
        what = (
            f"{rows.where} has hypotheses for {len(rows)} queries, {groups.where} has groups for {len(groups.column)}"
        )
        remedy = "give one line of hypotheses per query; equal queries of a JSON object count as one"
        raise DataError(Fault(longer, None, what, remedy))
    return replace(rows, columns={**rows.columns, Need.REFERENCE_GROUPS: groups.column})


def order_of(ids: Sequence[str]) -> list[int]:
    """The order in which groups of the given ids stand: by number, other ids being numbered from their count on."""
    numbers, following = [], len(ids)
    for name in ids:
        try:
            number = int(name)
        except ValueError:
            number, following = following, following + 1
        numbers.append(number)
    return sorted(range(len(ids)), key=numbers.__getitem__)


@lru_cache(maxsize=1024)
def _ordered(ids: tuple[str, ...]) -> tuple[tuple[str, ...], list[int] | None]:
    """The ids in order, and the order if it is not that of the file; most queries have the same few ids."""
    order = order_of(ids)
    return tuple(ids[group] for group in order), None if order == sorted(order) else order


def _groups_of(
    row: Any, where: str, query: str | int, faults: list[Fault]
) -> tuple[Sequence[str], Iterable[list[str]]]:
    """The names and references of the groups of one query, in order; whatever is wrong is noted."""
    groups: Any
    names: Sequence[str]
    if isinstance(row, dict | Mapping):
        names, order = _ordered(tuple(map(str, row)))
        groups = row.values()
        if order is not None:
            given = list(groups)
            groups = [given[group] for group in order]
    elif isinstance(row, ReferenceSet):
        names, groups = row.names, list(row)
    elif isinstance(row, LISTS):
        groups = [row] if set(map(type, row)) == {str} else list(row)
        names = list(map(str, range(len(groups))))
    else:
        faults.append(Fault(where, None, f"query {query!r:.60} has {kind_of(row)}", _GROUPS_REMEDY))
        return [], []
    for at, group in enumerate(groups):
        if isinstance(group, LISTS) and set(map(type, group)) <= {str}:
            continue  # the usual case: nothing is copied
        what = f"group {names[at]!r} of query {query!r:.60}"
        groups = list(groups)
        if isinstance(group, LISTS):
            groups[at] = [_text(text, where, None, f"a reference in {what}", faults) for text in group]
        else:
            groups[at] = []
            faults.append(Fault(where, None, f"{what} is {kind_of(group)}", _GROUPS_REMEDY))
    return names, groups


def _column(rows: Iterable[tuple[int, object]], where: str, faults: list[Fault] | None = None) -> RaggedColumn:
    """The hypotheses of rows that hold lists of texts; `faults` grows while rows are read."""
    faults = [] if faults is None else faults
    found = []
    for line, row in rows:
        if isinstance(row, dict):
            row = next((row[field] for field in FIELDS if field in row), row)
        if isinstance(row, str):
            row = [row]
        if not isinstance(row, (*LISTS, HypothesisSet)):
            what = f"has none of the fields {', '.join(FIELDS)}" if isinstance(row, dict) else f"is {kind_of(row)}"
            faults.append(Fault(where, line, what, _HYPOTHESES_REMEDY))
            continue
        found.append([_text(text, where, line, "a hypothesis", faults) for text in row])
    if not found and not faults:
        faults.append(Fault(where, None, "holds no hypotheses", _HYPOTHESES_REMEDY))
    if faults:
        raise DataError(faults)
    return RaggedColumn.from_lists(found, where)


def _text(text: object, where: str, line: int | None, what: str, faults: list[Fault]) -> str:
    """A text; a list of words becomes one with a blank between them."""
    if isinstance(text, str):
        return text
    if isinstance(text, LISTS) and all(isinstance(word, str) for word in text):
        return " ".join(text)
    faults.append(Fault(where, line, f"{what} is {kind_of(text)}", "make it a string"))
    return ""


def _words(text: Sequence[str], what: str) -> list[str]:
    if isinstance(text, str):
        return text.split()
    words = list(text) if isinstance(text, Iterable) else [text]
    if not all(isinstance(word, str) for word in words):
        odd = next(word for word in words if not isinstance(word, str))
        remedy = "make it a string, or a list of words"
        raise DataError(Fault("words", None, f"{what} holds {kind_of(odd)} where a word is expected", remedy))
    return words


def _cut(line: str, eos: str) -> list[str]:
    if not eos:
        raise SettingError("the separator of hypotheses is empty; give the token that stands between them")
    return line.split(eos)


def _document(path: PathSource) -> Any:
    import orjson

    data, where = without_mark(read_bytes(path)), os.fspath(path)
    try:
        return orjson.loads(data.data)
    except orjson.JSONDecodeError as error:
        faults = encoding_faults(split(data), where)
        raise DataError(faults or Fault(where, error.lineno, f"not JSON ({error.msg})", "correct it there")) from None
