"""Several hypotheses per query: the hypothesis files and objects of the LSDSCC program.

A line of text per query with `eos` between the hypotheses,

    This </s> is </s> line 1 </s> with 4 hypotheses

cut wherever `eos` stands, also inside a word; so an empty line is one empty hypothesis, and a separator at the end adds
one. Without a separator (`eos=None`) a line is one hypothesis. Also `.json` and `.jsonl` with a list of strings per
query, or an object that has one under `hypotheses`.

Differences from the original: files are UTF-8 in every locale; LF and CRLF end a line and nothing else does.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from dialeval.core.arguments import checked
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.needs import Need
from dialeval.core.ragged import offsets_of
from dialeval.data.formats import json_document, jsonl
from dialeval.data.formats.lines import occurrences, read_lines
from dialeval.data.formats.opening import LINES, PathSource, format_of, stem_of
from dialeval.data.formats.records import LISTS, kind_of
from dialeval.data.rows.reading import UNNAMED, files_in, is_folder
from dialeval.data.rows.system import Rows

T = TypeVar("T")

EOS = "</s>"
"""What stands between two hypotheses of a line unless something else is said."""

FIELDS = ("hypotheses", "responses", "response")
"""Where an object may hold its hypotheses."""

_HYPOTHESES_REMEDY = "give a list of strings per query"


class TextSet(Sequence[T]):
    """What belongs to one query, in order; equal to another one of the same class that holds the same."""

    _items: list[T]

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if type(other) is type(self) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class HypothesisSet(TextSet[list[str]]):
    """The hypotheses of one query, each a list of words; a string is split at white space."""

    def __init__(self, hypothesis_sentences: Iterable[Sequence[str]]) -> None:
        self._items = [words_of(text, "a hypothesis") for text in each_of(hypothesis_sentences, "a hypothesis set")]

    @classmethod
    def from_line(cls, line: str, eos: str | None = EOS) -> HypothesisSet:
        """The hypotheses of a line, cut at `eos`; None: the line is one hypothesis."""
        if eos is None:
            return cls([line])
        if not eos:
            raise SettingError("the separator of hypotheses is empty; give the token that stands between them, or None")
        return cls(line.split(eos))

    @classmethod
    @checked
    def load_corpus(cls, filename: PathSource, eos: str | None = EOS) -> list[HypothesisSet]:
        """The hypotheses of every query of a file."""
        return [cls(row) for row in read_hypothesis_column(filename, eos)]

    def __repr__(self) -> str:
        return f"HypothesisSet({self._items!r})"

    def __str__(self) -> str:
        return "\n".join(" ".join(words) for words in self._items)


def holds_hypotheses(source: Any) -> bool:
    """Whether responses given as Python objects are several per query: a list of lists, or a mapping of such."""
    if isinstance(source, Mapping):
        return any(map(holds_hypotheses, source.values()))
    return isinstance(source, LISTS) and any(isinstance(row, (*LISTS, HypothesisSet)) for row in source)


def read_hypotheses(source: Any, eos: str | None = EOS, name: str | None = None) -> list[Rows]:
    """The hypotheses of every system: a path, a folder, a list of lists of texts, or a mapping of systems to these."""
    if isinstance(source, Mapping):
        if not source:
            raise DataError(Fault(name or "responses", None, "is an empty mapping", "name at least one system"))
        return [rows for key, value in source.items() for rows in read_hypotheses(value, eos, str(key))]
    if isinstance(source, str | os.PathLike):
        if is_folder(source):
            prefix = "" if name is None else f"{name}/"
            return read_hypotheses({prefix + stem_of(file): file for file in files_in(source)}, eos)
        column = read_hypothesis_column(source, eos)
        return [Rows(name or stem_of(source), {Need.HYPOTHESES: column}, where=os.fspath(source))]
    where = name or "responses"
    if not isinstance(source, LISTS):
        remedy = "pass a path, a list with a list of texts per query, or a mapping of systems to these"
        raise DataError(Fault(where, None, f"{kind_of(source)} is no source of hypotheses", remedy))
    return [Rows(name or UNNAMED, {Need.HYPOTHESES: _column(enumerate(source, 1), where)}, where=where)]


def read_hypothesis_column(path: PathSource, eos: str | None = EOS) -> RaggedColumn:
    """The hypotheses of every query of a file."""
    where, kind = os.fspath(path), format_of(path)
    if kind == LINES:
        return read_hypothesis_lines(path, eos)
    if kind == "jsonl":
        records = jsonl.read(path)
        return _column(records.rows, where, records.faults)
    if kind == "json":
        document = json_document.load(path, _HYPOTHESES_REMEDY)
        items = list(document.values()) if isinstance(document, dict) else document
        if not isinstance(items, list):
            raise DataError(Fault(where, 1, f"is {kind_of(document)}", _HYPOTHESES_REMEDY))
        return _column(enumerate(items, 1), where)
    remedy = "give lines with a separator between hypotheses, .json or .jsonl"
    raise DataError(Fault(where, None, f"a .{kind} file does not hold hypotheses", remedy))


def read_hypothesis_lines(path: PathSource, eos: str | None = EOS) -> RaggedColumn:
    """Read the hypotheses of every line of a text file, whatever its suffix is."""
    return separated(read_lines(path), eos)


def separated(lines: TextColumn, eos: str | None) -> RaggedColumn:
    """The texts between the separators of each line, over the same bytes; a line is cut as `str.split(eos)` does it.

    Without a separator each line is one text.
    """
    if eos is None:
        return RaggedColumn.single(lines)
    try:
        token = eos.encode()
    except UnicodeEncodeError:
        token = b""
    if not token:
        raise SettingError("the separator of hypotheses is not a text; give the token that stands between them")
    places = occurrences(lines.data, token)
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


def _apart(places: Sequence[int], width: int) -> list[int]:
    """Which occurrences are met when the search goes on after each."""
    kept, end = [], 0
    for index, place in enumerate(places):
        if place >= end:
            kept.append(index)
            end = place + width
    return kept


def _column(rows: Iterable[tuple[int, object]], where: str, faults: list[Fault] | None = None) -> RaggedColumn:
    """The hypotheses of rows that hold lists of texts; `faults` grows while rows are read."""
    faults = [] if faults is None else faults
    hypotheses = []
    for line, row in rows:
        if isinstance(row, dict):
            row = next((row[field] for field in FIELDS if field in row), row)
        if isinstance(row, str):
            row = [row]
        if not isinstance(row, (*LISTS, HypothesisSet)):
            what = f"has none of the fields {', '.join(FIELDS)}" if isinstance(row, dict) else f"is {kind_of(row)}"
            faults.append(Fault(where, line, what, _HYPOTHESES_REMEDY))
            continue
        hypotheses.append([text_of(text, where, line, "a hypothesis", faults) for text in row])
    if not hypotheses and not faults:
        faults.append(Fault(where, None, "holds no hypotheses", _HYPOTHESES_REMEDY))
    if faults:
        raise DataError(faults)
    return RaggedColumn.from_lists(hypotheses, where)


def text_of(text: object, where: str, line: int | None, what: str, faults: list[Fault]) -> str:
    """A text; a list of words becomes one with a blank between them."""
    if isinstance(text, str):
        return text
    if isinstance(text, LISTS) and all(isinstance(word, str) for word in text):
        return " ".join(text)
    faults.append(Fault(where, line, f"{what} is {kind_of(text)}", "make it a string"))
    return ""


def each_of(values: Any, what: str) -> Iterator[Any]:
    """Iterate over a list, or over any object with `__iter__`, or with `__len__` and `__getitem__`."""
    try:
        if not isinstance(values, bytes):
            return iter(values)
    except TypeError:
        pass
    raise DataError(Fault(what, None, f"is {kind_of(values)} where a list is expected", "make it a list"))


def words_of(text: Any, what: str) -> list[str]:
    """The words of a text, which may be split already."""
    if isinstance(text, str):
        return text.split()
    words = list(text) if hasattr(text, "__iter__") or hasattr(text, "__getitem__") else [text]
    if not all(isinstance(word, str) for word in words):
        odd = next(word for word in words if not isinstance(word, str))
        remedy = "make it a string, or a list of words"
        raise DataError(Fault("words", None, f"{what} holds {kind_of(odd)} where a word is expected", remedy))
    return words
