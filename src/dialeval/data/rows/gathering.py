"""From parsed rows to columns.

`gather_rows` makes the responses of each system; `gather_texts` the references or contexts that are given on their
own. Both go through all rows, collect the faults of all of them, and then either raise or return everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

import numpy as np

from dialeval.core.columns import Column, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import DataError, Fault
from dialeval.core.needs import Need
from dialeval.core.notes import note
from dialeval.core.ragged import offsets_of
from dialeval.data.formats.records import FieldNames, Records, kind_of
from dialeval.data.formats.row_shapes import Filters, may_hold_rows, ours, unknown, value_at
from dialeval.data.rows.chats import chat_responses, dialogue_name
from dialeval.data.rows.fields import FieldReader, missing_field
from dialeval.data.rows.plain_rows import PlainRows, Texts, plain_rows
from dialeval.data.rows.system import NO_TURN, Rows, by_system
from dialeval.data.rows.trials import Trials

_RowParts = tuple[
    str,
    Sequence[str],
    tuple[Sequence[str], Sequence[str]],
    bool,
    str | None,
    str | None,
    int | None,
    Sequence[Sequence[str]],
]
"""Response, references, context with its roles (or what it adds to that of the row before), system, dialogue, turn and
further fields of a row."""

_ROWS_AT_ONCE = 256
"""Rows that are parsed before they are gathered: few, as they may hold much that nobody asks for."""


class _RaggedLists:
    """A ragged column that grows row by row."""

    __slots__ = ("counts", "values")

    def __init__(self) -> None:
        self.values: list[str] = []
        self.counts: list[int] = []

    def add(self, texts: Sequence[str]) -> None:
        self.values += texts
        self.counts.append(len(texts))

    def extend(self, rows: Texts) -> None:
        self.values += rows.values
        self.counts += rows.counts

    def column(self) -> RaggedColumn:
        return RaggedColumn(TextColumn.from_strings(self.values), offsets_of(self.counts))


class _Contexts(_RaggedLists):
    """The contexts of rows with who said each turn; some begin with the context of the row before."""

    __slots__ = ("continued", "roles")

    def __init__(self) -> None:
        super().__init__()
        self.continued: list[int] = []
        self.roles: list[str] = []

    def add_turns(self, turns: tuple[Sequence[str], Sequence[str]], continues: bool) -> None:
        texts, roles = turns
        if continues:
            self.continued.append(len(self.counts))
        if roles:
            self.roles += self._unnamed()
            self.roles += roles
        self.add(texts)

    def _unnamed(self) -> list[str]:
        """Nobody, for each turn since the last one of which it is said who speaks."""
        return [""] * (len(self.values) - len(self.roles))

    def columns(self) -> dict[Need, Column]:
        """The contexts and, where anybody is named, the roles."""
        if not self.values:
            return {}
        found: dict[Need, Column] = {Need.CONTEXT: self._shared(self.values)}
        if self.roles:
            found[Need.ROLES] = self._shared([*self.roles, *self._unnamed()])
        return found

    def _shared(self, values: Sequence[str]) -> RaggedColumn | SharedColumn:
        column = RaggedColumn(TextColumn.from_strings(values), offsets_of(self.counts))
        if not self.continued:
            return column
        continues = np.zeros(len(column), np.bool_)
        continues[self.continued] = True
        return SharedColumn.from_steps(column, continues)


def gather_rows(records: Records, names: FieldNames, system: str, part: bool = False) -> list[Rows]:
    """The rows of each system in order of appearance; `system` is the name of those that give none.

    A part of an input may be without a row; a whole input may not.
    """
    _require_response(records, names)
    gathered = _Gathered(names)
    reader = FieldReader(records.where, names, records.faults)
    parsed, faults = iter(records.rows), 0
    while block := list(islice(parsed, _ROWS_AT_ONCE)):
        plain = plain_rows([row for _, row in block], names)
        if plain is not None:
            gathered.extend(plain)
        else:
            for parts in _row_parts(reader, block, gathered.trials, gathered.filters):
                gathered.add(*parts)
        # Lines that do not parse are found before the fields of the lines above them.
        records.faults[faults:] = sorted(records.faults[faults:], key=lambda fault: fault.line or 0)
        faults = len(records.faults)
    if not records.faults and not gathered.responses and not part:
        records.faults.append(no_rows(records.where))
    records.raise_faults()
    if gathered.filters.again:
        repeated = gathered.filters.again
        note(f"{records.where}: rows that repeat an answer under another filter, which are not read: {repeated}")
    if not part:
        gathered.trials.warn(records.where)
    return gathered.by_system(system, records.where, part) if gathered.responses else []


class _Gathered:
    """The fields of rows, row after row."""

    def __init__(self, names: FieldNames) -> None:
        self.responses: list[str] = []
        self._references, self._contexts = _RaggedLists(), _Contexts()
        self._systems: list[str | None] = []
        self._dialogues: list[str | None] = []
        self._turns: list[int] = []
        self._fields = {name: _RaggedLists() for name in names.kept}
        self.trials = Trials()
        self.filters = Filters()

    def add(
        self,
        response: str,
        references: Sequence[str],
        context: tuple[Sequence[str], Sequence[str]],
        continues: bool,
        system: str | None,
        dialogue: str | None,
        turn: int | None,
        labels: Sequence[Sequence[str]],
    ) -> None:
        """Take in one more row."""
        self.responses.append(response)
        self._references.add(references)
        self._contexts.add_turns(context, continues)
        self._systems.append(system)
        self._dialogues.append(dialogue)
        self._turns.append(NO_TURN if turn is None else turn)
        for lists, own in zip(self._fields.values(), labels, strict=True) if labels else ():
            lists.add(own)

    def extend(self, rows: PlainRows) -> None:
        """Take in rows of plain fields."""
        self.responses += rows.responses
        self._references.extend(rows.references)
        self._contexts.extend(rows.contexts)
        self._systems += rows.systems
        self._dialogues += rows.dialogues
        self._turns += rows.turns

    def by_system(self, system: str, where: str, part: bool) -> list[Rows]:
        """The rows of each system; `system` is the name of those that give none."""
        columns: dict[Need, Column] = {Need.RESPONSE: TextColumn.from_strings(self.responses)}
        if self._references.values:
            columns[Need.REFERENCE] = self._references.column()
        columns |= self._contexts.columns()
        turns = np.array(self._turns, np.int64)
        tried = bool(self.trials.counts) and not part  # of a part nobody knows how many trials a task has
        if tried:
            columns[Need.TRIALS] = self.trials.column(self._systems, self._dialogues)
        fields = {name: lists.column() for name, lists in self._fields.items() if lists.values}
        names = named_dialogues(self._dialogues)
        rows = Rows(system, columns, names, turns if (turns != NO_TURN).any() else None, where, fields=fields)
        systems = {name: number for number, name in enumerate(dict.fromkeys(each or system for each in self._systems))}
        codes = np.array([systems[each or system] for each in self._systems], np.int64)
        if tried:
            order = self.trials.order(self._systems, self._dialogues)
            rows, codes = rows.take(order), codes[order]
        return by_system(rows, list(systems), codes)


def _row_parts(
    reader: FieldReader, rows: Sequence[tuple[int, object]], trials: Trials, filters: Filters
) -> Iterator[_RowParts]:
    """What each row holds; a chat is several rows, and what cannot be read is a fault."""
    names = reader.names
    for reader.line, given in rows:
        if isinstance(given, str):
            yield reader.text(given, "the row"), (), ((), ()), False, None, None, None, [()] * len(names.kept)
            continue
        if not isinstance(given, dict):
            reader.fault(f"the row is {kind_of(given)}", "make it an object with a response, or a string")
            continue
        if not names.mapped and filters.repeat(given):
            continue
        row = ours(given, names)
        if row is None:
            reader.fault(*(unknown(given, names) or missing_field(names.response, "response", given)))
            continue
        labels = [reader.labels(value_at(given, name), name) for name in names.kept] if names.kept else ()
        if row.get(names.messages) is not None:
            system, dialogue = reader.system(row), dialogue_name(reader, row)
            responses = chat_responses(reader, row)
            if trials.note(reader, row, system, dialogue) and not responses:
                yield "", (), ((), ()), False, system, dialogue, None, labels
            for number, said in enumerate(responses):
                turns = (said.messages, said.roles)
                yield said.text, said.references, turns, number > 0, system, dialogue, said.turn, labels
        else:
            system, own = reader.system(row), reader.dialogue(row)
            trials.note(reader, row, system, own)
            response, references = reader.response(row), reader.references(row)
            yield response, references, reader.context(row), False, system, own, reader.turn(row), labels


def gather_texts(records: Records, names: FieldNames, need: Need) -> RaggedColumn:
    """The texts of one need, row by row: from rows that are texts or lists of texts, or from a field of objects."""
    own = names.name(need)
    rows = iter(records.rows)
    held: list[tuple[int, object]] = []  # until the field turns up; where it never does, another may hold the texts
    for line, row in rows:
        held.append((line, row))
        if isinstance(row, dict) and own in row:
            break
    field = _held_field(records, held, names, need)
    reader = FieldReader(records.where, names, records.faults)
    lists = _RaggedLists()
    for reader.line, row in chain(held, rows):
        if isinstance(row, dict) and need is Need.REFERENCE and field == own:
            lists.add(reader.references(row))
        elif isinstance(row, dict) and field != own and field not in row:
            reader.fault(*missing_field(field, need.value, row))
        else:
            value = row.get(field) if isinstance(row, dict) else row
            turns = [turn.shown for turn in reader.turns(value, field)] if need is Need.CONTEXT else None
            lists.add(reader.texts(value, field) if turns is None else turns)
    if not records.faults and not lists.counts:
        records.faults.append(no_rows(records.where))
    records.raise_faults()
    return lists.column()


def _held_field(records: Records, held: Sequence[tuple[int, object]], names: FieldNames, need: Need) -> str:
    """The field that holds the texts of a need; its own name where the rows have no fields."""
    there = records.header or tuple(dict.fromkeys(key for _, row in held if isinstance(row, dict) for key in row))
    field = text_field(there, names, need)
    if field is None and there:
        what, remedy = missing_field(names.name(need), need.value, there)
        records.faults.append(Fault(records.where, held[0][0] if held and records.header is None else 1, what, remedy))
        records.raise_faults()
    return field or names.name(need)


def text_field(there: Sequence[str], names: FieldNames, need: Need) -> str | None:
    """Which of the fields holds the texts of a need: its own, else `response`, else the only one there is."""
    for name in (names.name(need), names.response):
        if name in there:
            return name
    return there[0] if len(there) == 1 else None


def named_dialogues(names: Sequence[str | None]) -> TextColumn | None:
    """The column of dialogue names; a row without one is a dialogue of its own, and none at all is no column."""
    if not any(names):
        return None
    return TextColumn.from_strings([name or f"row {row}" for row, name in enumerate(names, 1)])


def no_rows(where: str) -> Fault:
    """The fault of an input without a single response."""
    return Fault(where, None, "holds no rows", "give at least one response")


def _require_response(records: Records, names: FieldNames) -> None:
    """A table without the column is one fault, not one for each of its rows."""
    there = records.header
    if there is None or may_hold_rows(there, names):
        return
    looks_like = unknown(dict.fromkeys(there, ""), names)
    what, remedy = looks_like or missing_field(names.response, "response", there, "column")
    raise DataError([*records.faults, Fault(records.where, 1, what, remedy)])
