"""Files and objects of the LSDSCC program: several hypotheses per query, references in groups of one meaning each.

Hypotheses are a line of text per query with `eos` between them,

    This </s> is </s> line 1 </s> with 4 hypotheses

split wherever `eos` occurs, also inside a word; so an empty line is one empty hypothesis, and a separator at the end
adds one. Without a separator (`eos=None`) a line is one hypothesis. Also `.json` and `.jsonl` with a list of strings
per query, or an object that has one under `hypotheses`.

References are a JSON object of query -> group id -> list of references. The queries are taken in the order of the file
and belong to the hypotheses line by line. Groups are sorted by their ids as numbers; an id that is no number counts as
the number of groups, the next one as one more, and so on: x, 7, 1 gives 1, x, 7. Instead of ids a list of lists will
do, and a plain list of references is one group; instead of queries a list.

Differences from the original: files are UTF-8 in every locale; LF and CRLF end a line and nothing else does; a
different number of lines and queries is an error that says so.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Ints, offsets_of
from dialeval.core.columns import RaggedColumn, TextColumn, join_texts, sizes_between
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.fingerprint import Fingerprint, short_digest
from dialeval.io import json
from dialeval.io.opening import LINES, PathSource, format_of, read_bytes, read_lines, stem_of
from dialeval.io.packs import Progress, require_pack
from dialeval.io.reading import UNNAMED, find_response_files, is_folder
from dialeval.io.rows import EOS, LISTS, Rows, kind_of

FIELDS = ("hypotheses", "responses", "response")
"""Where an object may hold its hypotheses."""

_HYPOTHESES_REMEDY = "give a list of strings per query"
_GROUPS_REMEDY = "give an object of group id -> list of references per query, a list of such lists, or a list"


class HypothesisSet(list[list[str]]):
    """The hypotheses of one query, each a list of words; a text is split at whitespace.

    Args:
        hypothesis_sentences: The hypotheses.

    Examples:
        >>> from dialeval.lsdscc import HypothesisSet
        >>> HypothesisSet(["tea please", "coffee"])
        HypothesisSet([['tea', 'please'], ['coffee']])
    """

    def __init__(self, hypothesis_sentences: Iterable[Sequence[str]]) -> None:
        texts = iterate(hypothesis_sentences, "a hypothesis set")
        super().__init__(split_words(text, "a hypothesis") for text in texts)

    @classmethod
    def from_line(cls, line: str, eos: str | None = EOS) -> HypothesisSet:
        """Split a line into hypotheses.

        Args:
            line: The line.
            eos: The text between two hypotheses; None: the line is one.

        Returns:
            The hypotheses.
        """
        return cls(split_line(line, eos))

    @classmethod
    def load_corpus(cls, filename: PathSource, eos: str | None = EOS) -> list[HypothesisSet]:
        """Read the hypotheses of every query of a file.

        Args:
            filename: The file, a line per query.
            eos: The text between two hypotheses of a line; None: a line is one.

        Returns:
            A hypothesis set per query.

        Raises:
            DataError: The file cannot be read.
        """
        return [cls(row) for row in read_hypothesis_column(filename, eos)]

    def __repr__(self) -> str:
        return f"HypothesisSet({super().__repr__()})"

    def __str__(self) -> str:
        return "\n".join(f"{number}: {words}" for number, words in enumerate(self))


class ReferenceSet(list[list[list[str]]]):
    """The references of one query in groups, each a list of words; a text is split at whitespace.

    Args:
        reference_set: The groups, each a list of references.
        query: The query that the references answer, if it is known.
        names: The ids of the groups, in order; None: their numbers.

    Examples:
        >>> from dialeval.lsdscc import ReferenceSet
        >>> groups = ReferenceSet([["tea please", "some tea"], ["coffee"]], query="what would you like ?")
        >>> len(groups), groups.n_references
        (2, 3)
    """

    def __init__(
        self,
        reference_set: Iterable[Sequence[Sequence[str]]],
        query: str | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(
            [split_words(text, "a reference") for text in iterate(group, "a group")]
            for group in iterate(reference_set, "a reference set")
        )
        self.query = query
        """What the references answer, if it is known."""
        self.names = list(names) if names is not None else [str(group) for group in range(len(self))]
        """The ids of the groups, in order."""
        if len(self.names) != len(self):
            what = f"{len(self)} groups have {len(self.names)} names"
            raise DataError(Problem("reference set", None, what, "name every group once"))

    @classmethod
    def from_json(cls, json_dict: Mapping[str, object], query: str | None = None) -> ReferenceSet:
        """Make the reference set of one query from a parsed JSON object.

        Args:
            json_dict: A mapping of group ids to lists of references, or of the query to such a mapping.
            query: The query.

        Returns:
            The reference set.

        Raises:
            DataError: The object has another form.
        """
        if query is None and len(json_dict) == 1:
            (inner,) = json_dict.values()
            if isinstance(inner, Mapping):
                (query,), json_dict = json_dict, inner
        problems: list[Problem] = []
        names, groups = _read_query_groups(json_dict, "reference set", 1 if query is None else query, problems)
        if problems:
            raise DataError(problems)
        return cls(groups, query, names)

    @classmethod
    def load_json_corpus(cls, filename: PathSource | None = None) -> list[ReferenceSet]:
        """Read the reference groups of every query of a file.

        Args:
            filename: The file; None: the one of the installed data pack `lsdscc`.

        Returns:
            A reference set per query.

        Raises:
            DataError: The file cannot be read, or is no such document.
        """
        groups = read_groups(find_reference_groups() if filename is None else filename)
        named = enumerate(zip(groups.queries, groups.names, strict=True))
        return [cls(groups.column.list_groups(row), query, names) for row, (query, names) in named]

    @property
    def n_references(self) -> int:
        """The number of references in all groups."""
        return sum(map(len, self))

    def __str__(self) -> str:
        lines = [f"query: {self.query}"]
        for number, group in enumerate(self):
            lines += [f"group-{number}:", *(f"  {at}: {words}" for at, words in enumerate(group))]
        return "\n".join([*lines, ""])

    def __repr__(self) -> str:
        return f"ReferenceSet({super().__repr__()}, query={self.query!r}, names={self.names!r})"


def read_with_groups(responses: object, reference_groups: object, eos: str | None) -> tuple[list[Rows], Groups | None]:
    """Read the hypotheses of every system, with the reference groups if there are any."""
    systems = read_hypotheses(responses, eos)
    if reference_groups is None:
        return systems, None
    groups = read_groups(reference_groups)
    return [attach_groups(rows, groups) for rows in systems], groups


def read_hypotheses(source: object, eos: str | None = EOS, name: str | None = None) -> list[Rows]:
    """Read the hypotheses of every system of a path, a folder, a list of lists of texts, or a mapping to these."""
    if isinstance(source, Mapping):
        if not source:
            raise DataError(Problem(name or "responses", None, "is an empty mapping", "name at least one system"))
        return [rows for key, value in source.items() for rows in read_hypotheses(value, eos, str(key))]
    if isinstance(source, str | os.PathLike):
        if is_folder(source):
            prefix = "" if name is None else f"{name}/"
            return read_hypotheses({prefix + stem_of(file): file for file in find_response_files(source)}, eos)
        column = read_hypothesis_column(source, eos)
        return [Rows(name or stem_of(source), {inputs.HYPOTHESES: column}, where=os.fspath(source))]
    where = name or "responses"
    if not isinstance(source, LISTS):
        remedy = "pass a path, a list with a list of texts per query, or a mapping of systems to these"
        raise DataError(Problem(where, None, f"{kind_of(source)} is not a source of hypotheses", remedy))
    return [Rows(name or UNNAMED, {inputs.HYPOTHESES: _make_column(enumerate(source, 1), where)}, where=where)]


def read_hypothesis_column(path: PathSource, eos: str | None = EOS) -> RaggedColumn:
    """Read the hypotheses of every query of a file."""
    where, kind = os.fspath(path), format_of(path)
    if kind == LINES:
        return read_hypothesis_lines(path, eos)
    if kind == "jsonl":
        records = json.read_jsonl(path)
        return _make_column(records.rows, where, records.problems)
    if kind == "json":
        document = json.load(path, _HYPOTHESES_REMEDY)
        items = list(document.values()) if isinstance(document, dict) else document
        if not isinstance(items, list):
            raise DataError(Problem(where, 1, f"is {kind_of(document)}", _HYPOTHESES_REMEDY))
        return _make_column(enumerate(items, 1), where)
    remedy = "give lines with a separator between hypotheses, .json or .jsonl"
    raise DataError(Problem(where, None, f"a .{kind} file does not hold hypotheses", remedy))


def read_hypothesis_lines(path: PathSource, eos: str | None = EOS) -> RaggedColumn:
    """Read the hypotheses of every line of a text file, whatever its suffix is."""
    return RaggedColumn.from_lists([split_line(line, eos) for line in read_lines(path)])


def split_line(line: str, eos: str | None) -> list[str]:
    """Split a line at the separator; without one it is one text."""
    if eos is None:
        return [line]
    if not eos.encode(errors="ignore"):  # nothing, or half a character
        raise SettingError("the separator of hypotheses is not a text; give the token between them, or None")
    return line.split(eos)


def _make_column(rows: Iterable[tuple[int, object]], where: str, problems: list[Problem] | None = None) -> RaggedColumn:
    """Make a column of rows that hold lists of texts; `problems` grows while rows are read."""
    problems = [] if problems is None else problems
    hypotheses = []
    for line, row in rows:
        if isinstance(row, dict):
            row = next((row[field] for field in FIELDS if field in row), row)
        if isinstance(row, str):
            row = [row]
        if not isinstance(row, LISTS):
            what = f"has none of the fields {', '.join(FIELDS)}" if isinstance(row, dict) else f"is {kind_of(row)}"
            problems.append(Problem(where, line, what, _HYPOTHESES_REMEDY))
            continue
        hypotheses.append([join_words(text, where, line, "a hypothesis", problems) for text in row])
    if not hypotheses and not problems:
        problems.append(Problem(where, None, "holds no hypotheses", _HYPOTHESES_REMEDY))
    if problems:
        raise DataError(problems)
    return RaggedColumn.from_lists(hypotheses, where)


def join_words(text: object, where: str, line: int | None, what: str, problems: list[Problem]) -> str:
    """Return a text; a list of words becomes one with a space between them."""
    if isinstance(text, str):
        return text
    if isinstance(text, LISTS) and all(isinstance(word, str) for word in text):
        return " ".join(text)
    problems.append(Problem(where, line, f"{what} is {kind_of(text)}", "make it a string"))
    return ""


def iterate(values: Any, what: str) -> Iterator[Any]:
    """Iterate over a list, or over any object with `__iter__`, or with `__len__` and `__getitem__`."""
    try:
        if not isinstance(values, bytes):
            return iter(values)
    except TypeError:
        pass
    raise DataError(Problem(what, None, f"is {kind_of(values)} where a list is expected", "make it a list"))


def split_words(text: Any, what: str) -> list[str]:
    """Return the words of a text, which may be split already; numbers of words and bytes are written as texts."""
    if isinstance(text, str):
        return text.split()
    is_list = not isinstance(text, bytes) and (hasattr(text, "__iter__") or hasattr(text, "__getitem__"))
    words = list(text) if is_list else [None]
    if odd := [word for word in words if not isinstance(word, str | bytes | int | np.integer)]:
        problem = f"{what} holds {kind_of(odd[0] if is_list else text)} where a word is expected"
        raise DataError(Problem("words", None, problem, "make it a string, or a list of words"))
    return [word if isinstance(word, str) else str(word) for word in words]


@dataclass(frozen=True, eq=False, slots=True)
class GroupedColumn(RaggedColumn):
    """Several texts per row in groups: row `i` has the groups `lists[i]` to `lists[i + 1]`.

    Group `g` holds `values[groups[g]:groups[g + 1]]`; read as a `RaggedColumn` it is the texts without their groups.
    """

    groups: Ints
    lists: Ints

    @classmethod
    def of(
        cls, values: TextColumn, group_sizes: Sequence[int] | Ints, row_sizes: Sequence[int] | Ints
    ) -> GroupedColumn:
        """Make a column from the texts of every group and the groups of every row."""
        groups, lists = offsets_of(group_sizes), offsets_of(row_sizes)
        return cls(values, groups[lists], groups, lists)

    @staticmethod
    def join(parts: Sequence[GroupedColumn]) -> GroupedColumn:  # type: ignore[override]
        """Return the rows of all parts."""
        groups, lists = sizes_between(part.groups for part in parts), sizes_between(part.lists for part in parts)
        return GroupedColumn.of(join_texts([part.values for part in parts]), groups, lists)

    def list_groups(self, row: int) -> list[list[str]]:
        """Return the groups of a row."""
        bounds = self.groups[self.lists[row] : self.lists[row + 1] + 1].tolist()
        return [[self.values[text] for text in range(start, stop)] for start, stop in pairwise(bounds)]

    def slice(self, start: int, stop: int) -> GroupedColumn:
        """Return rows `start` to `stop`, over the same bytes."""
        lists, offsets = self.lists[start : stop + 1], self.offsets[start : stop + 1]
        groups = self.groups[lists[0] : lists[-1] + 1] - offsets[0]
        values = self.values.slice(int(offsets[0]), int(offsets[-1]))
        return GroupedColumn(values, offsets - offsets[0], groups, lists - lists[0])

    def take(self, rows: Ints) -> GroupedColumn:
        """Return the given rows in the given order, over the same bytes."""
        texts = RaggedColumn(self.values, self.offsets).take(rows)
        sizes = np.diff(self.groups)
        ranges = [sizes[self.lists[row] : self.lists[row + 1]] for row in rows.tolist()]
        group_sizes = np.concatenate([np.zeros(0, np.int64), *ranges])
        return GroupedColumn.of(texts.values, group_sizes, np.diff(self.lists)[rows])

    @property
    def fingerprint(self) -> Fingerprint:
        """None: that of a `RaggedColumn` would be the same for other groups."""
        raise TypeError("a column of groups has a digest as a whole, and no fingerprint that merges")

    @property
    def digest(self) -> str:
        """A digest of the texts and of how they are spread over groups and rows."""
        return short_digest(np.diff(self.lists).data, np.diff(self.groups).data, self.values.digest)


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """The reference groups of every query: a column for metrics, and what the queries and groups are called."""

    column: GroupedColumn
    queries: Sequence[str | None]
    names: Sequence[Sequence[str]]
    where: str


def read_groups(source: Any) -> Groups:
    """Read reference groups: the path of a JSON file, a mapping of queries to groups, or a list of groups per query."""
    where = inputs.REFERENCE_GROUPS.argument
    if isinstance(source, str | os.PathLike):
        where, source = os.fspath(source), json.load(source, _GROUPS_REMEDY)
    named = isinstance(source, Mapping)
    if not named and not isinstance(source, LISTS):
        raise DataError(Problem(where, None, f"is {kind_of(source)}", "give an object of query -> groups, or a list"))
    queries: list[str | None] = list(map(str, source)) if named else [None] * len(source)
    problems: list[Problem] = []
    texts: list[str] = []
    sizes: list[int] = []
    names: list[Sequence[str]] = []
    for number, row in enumerate(source.values() if named else source, 1):
        ids, groups = _read_query_groups(row, where, queries[number - 1] or number, problems)
        for group in groups:
            texts += group
            sizes.append(len(group))
        names.append(ids)
        if isinstance(row, ReferenceSet):
            queries[number - 1] = row.query
    if not names:
        problems.append(Problem(where, None, "holds no queries", _GROUPS_REMEDY))
    if problems:
        raise DataError(problems)
    column = GroupedColumn.of(TextColumn.from_strings(texts, where), sizes, list(map(len, names)))
    return Groups(column, queries, names, where)


def attach_groups(rows: Rows, groups: Groups) -> Rows:
    """Add reference groups to rows; both must have as many queries."""
    if len(rows) != len(groups.column):
        longer = rows.where if len(rows) > len(groups.column) else groups.where
        counts = f"hypotheses for {len(rows)} queries", f"groups for {len(groups.column)}"
        what = f"{rows.where} has {counts[0]}, {groups.where} has {counts[1]}"
        remedy = "give one line of hypotheses per query; equal queries of a JSON object count as one"
        raise DataError(Problem(longer, None, what, remedy))
    return replace(rows, columns={**rows.columns, inputs.REFERENCE_GROUPS: groups.column})


def order_groups(ids: Sequence[str]) -> list[int]:
    """Return the order of groups of the given ids: by number, other ids being numbered from their count on."""
    numbers, following = [], len(ids)
    for name in ids:
        try:
            number = int(name)
        except ValueError:
            number, following = following, following + 1
        numbers.append(number)
    return sorted(range(len(ids)), key=numbers.__getitem__)


def _read_query_groups(
    row: object, where: str, query: str | int, problems: list[Problem]
) -> tuple[list[str], list[list[str]]]:
    """Return the names and references of the groups of one query, in order; add what is wrong to `problems`."""
    groups: list[object]
    if isinstance(row, Mapping):
        names, groups = list(map(str, row)), list(row.values())
        order = order_groups(names)
        names, groups = [names[at] for at in order], [groups[at] for at in order]
    elif isinstance(row, ReferenceSet):
        names, groups = row.names, list(row)
    elif isinstance(row, LISTS):
        groups = [row] if set(map(type, row)) == {str} else list(row)
        names = list(map(str, range(len(groups))))
    else:
        problems.append(Problem(where, None, f"query {query!r:.60} has {kind_of(row)}", _GROUPS_REMEDY))
        return [], []
    references = []
    for name, group in zip(names, groups, strict=True):
        what = f"group {name!r} of query {query!r:.60}"
        if not isinstance(group, LISTS):
            problems.append(Problem(where, None, f"{what} is {kind_of(group)}", _GROUPS_REMEDY))
            group = ()
        references.append([join_words(text, where, None, f"a reference in {what}", problems) for text in group])
    return names, references


# The data pack `lsdscc`: the reference groups that come with the LSDSCC program, from a user's copy of that program.
#
# The copy is the JSON file (also `.gz` or `.zst`). It is read once before it is kept, so that an installed pack can be
# used.

NAME = "lsdscc"
FILE = "test.group.json"


def find_reference_groups() -> Path:
    """Return the file of the installed pack, which has its digest; SettingError with the command that installs it."""
    pack = require_pack(NAME)
    if FILE not in pack.files:
        raise DataError(Problem(str(pack.path), None, f"its manifest does not name {FILE}", pack.remedy))
    return pack.verify_file(FILE)


def build_local(source: Path, target: Path, _version: str) -> None:
    """Build the pack from a file."""
    read_groups(source)
    (target / FILE).write_bytes(read_bytes(source).tobytes())


def build_remote(address: str, target: Path, progress: Progress | None, version: str) -> None:
    """Build the pack from an address of the user's that serves the JSON file."""
    from dialeval.io.download import download

    with tempfile.TemporaryDirectory(prefix="dialeval-") as folder:
        file = Path(folder) / FILE
        download(address, file, progress)
        build_local(file, target, version)
