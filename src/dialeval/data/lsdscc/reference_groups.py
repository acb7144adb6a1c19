"""References in groups of one meaning each: the reference files and objects of the LSDSCC program.

A JSON object of query -> group id -> list of references. The queries are taken in the order of the file and belong to
the hypotheses line by line. Groups are sorted by their ids as numbers; an id that is no number counts as the number of
groups, the next one as one more, and so on: x, 7, 1 gives 1, x, 7. Instead of ids a list of lists will do, and a plain
list of references is one group; instead of queries a list.

Differences from the original: files are UTF-8 in every locale; a different number of lines and queries is an error that
says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from dialeval.core.columns import GroupedColumn, TextColumn
from dialeval.core.errors import DataError, Fault
from dialeval.core.needs import Need
from dialeval.data.formats import json_document
from dialeval.data.formats.opening import PathSource
from dialeval.data.formats.records import LISTS, kind_of
from dialeval.data.lsdscc.hypotheses import TextSet, each_of, text_of, words_of
from dialeval.data.rows.system import Rows

AnySet = TypeVar("AnySet", bound="ReferenceSet")

_GROUPS_REMEDY = "give an object of group id -> list of references per query, a list of such lists, or a list"


class ReferenceSet(TextSet[list[list[str]]]):
    """The references of one query in groups, each a list of words; a string is split at white space."""

    def __init__(
        self,
        reference_set: Iterable[Sequence[Sequence[str]]],
        query: str | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self._items = [
            [words_of(text, "a reference") for text in each_of(group, "a group")]
            for group in each_of(reference_set, "a reference set")
        ]
        self.query = query
        """What the references answer, if it is known."""
        self.names = list(names) if names is not None else [str(group) for group in range(len(self._items))]
        """The ids of the groups, in order."""
        if len(self.names) != len(self._items):
            what = f"{len(self._items)} groups have {len(self.names)} names"
            raise DataError(Fault("reference set", None, what, "name every group once"))

    @classmethod
    def from_json(cls, json_dict: Mapping[str, Any], query: str | None = None) -> ReferenceSet:
        """The references of one query: group id -> list of references, or query -> such an object."""
        if query is None and len(json_dict) == 1:
            (inner,) = json_dict.values()
            if isinstance(inner, Mapping):
                (query,), json_dict = json_dict, inner
        faults: list[Fault] = []
        names, groups = _groups_of(json_dict, "reference set", 1 if query is None else query, faults)
        if faults:
            raise DataError(faults)
        return cls(groups, query, names)

    @classmethod
    def load_json_corpus(cls: type[AnySet], filename: PathSource) -> list[AnySet]:
        """The reference groups of every query of a file."""
        groups = read_groups(filename)
        named = enumerate(zip(groups.queries, groups.names, strict=True))
        return [cls(groups.column.grouped(row), query, names) for row, (query, names) in named]

    @property
    def n_references(self) -> int:
        """Number of references in all groups together."""
        return sum(map(len, self._items))

    def __str__(self) -> str:
        lines = [] if self.query is None else [f"query: {self.query}"]
        for name, group in zip(self.names, self._items, strict=True):
            lines += [f"group {name}:", *(f"  {' '.join(words)}" for words in group)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"ReferenceSet({self._items!r}, query={self.query!r}, names={self.names!r})"


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """The reference groups of every query: a column for metrics, and what the queries and groups are called."""

    column: GroupedColumn
    queries: Sequence[str | None]
    names: Sequence[Sequence[str]]
    where: str


def read_groups(source: Any) -> Groups:
    """Reference groups: the path of a JSON file, a mapping of queries to groups, or a list of groups per query."""
    where = Need.REFERENCE_GROUPS.argument
    if isinstance(source, str | os.PathLike):
        where, source = os.fspath(source), json_document.load(source, _GROUPS_REMEDY)
    named = isinstance(source, Mapping)
    if not named and not isinstance(source, LISTS):
        raise DataError(Fault(where, None, f"is {kind_of(source)}", "give an object of query -> groups, or a list"))
    queries: list[str | None] = list(map(str, source)) if named else [None] * len(source)
    faults: list[Fault] = []
    texts: list[str] = []
    sizes: list[int] = []
    names: list[Sequence[str]] = []
    for number, row in enumerate(source.values() if named else source, 1):
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
            groups[at] = [text_of(text, where, None, f"a reference in {what}", faults) for text in group]
        else:
            groups[at] = []
            faults.append(Fault(where, None, f"{what} is {kind_of(group)}", _GROUPS_REMEDY))
    return names, groups
