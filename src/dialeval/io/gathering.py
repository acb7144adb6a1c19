"""Columns from parsed rows.

`gather_rows` makes the responses of each system; `gather_texts` the references or contexts of a source of their own.
Both read all rows, collect the problems of all of them, and then either raise or return everything.

Most rows of most files are plain: an object whose response is a string, whose references and context are strings or
lists of strings, whose dialogue and system are strings or whole numbers, and whose turn is a whole number from 0 on;
each but the response may be null or missing. Blocks of plain rows are read column by column, in a fraction of the time;
an Arrow table of plain columns is used over its buffers. Everything else, and every problem, is left to `FieldReader`,
which reads rows one by one, with equal results for plain ones.

A row with `messages` is a chat. Each message of the assistant is one response. Its context is every message before it
but for system prompts, which are part of it only if asked for; its turn is its index in the list. A message that only
calls a tool is no response: the call is in the context of those after it. The row's reference, if it has one, belongs
to its only response; with several responses it is unclear whose it is, and that is a problem. In a cell of a table,
messages may be JSON.

Tool calls of a chat are data of its last row (`calls`); a chat that calls tools and says nothing is an empty response.

A row or chat with `trial` and `reward` is one trial of the task that its `dialog_id` names. Its first row holds it, as
a JSON text with task, trial, reward and, where known, the parts of the reward, the reason for which it ended, and its
cost. Programs write trial after trial, so that the rows of a task are not consecutive: they are sorted by task here, in
the order of appearance, unless rows are read in chunks. A trial without a reward was not judged: its rows remain those
of its task. A trial in which the agent says nothing, such as one that crashed, is an empty response: otherwise its task
might have no row, and be missing among the failed ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from dialeval.core.arrays import offsets_of
from dialeval.core.batch import Need
from dialeval.core.columns import Column, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import DataError, Problem, add_warning
from dialeval.core.validation import InvalidError
from dialeval.io import parquet
from dialeval.io.calls import CallLog, dump, read_result, unwrap
from dialeval.io.fields import (
    ASSISTANT,
    LARGEST_TURN,
    SYSTEM,
    TIME,
    TOOL,
    USER,
    FieldReader,
    Message,
    describe_missing,
    parse_cell,
    read_message,
    read_number,
    read_plain_message,
    read_role,
    read_time,
)
from dialeval.io.row_shapes import Filters, explain_shape, list_unlike, map_fields, may_hold_rows, split_turns, value_at
from dialeval.io.rows import LISTS, NO_TURN, OF_SOME_ROWS, FieldNames, Records, RowObject, Rows, kind_of, split_systems

if TYPE_CHECKING:
    import pyarrow as pa

_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
"""Scores by the grades of inspect_ai: correct, partly correct, incorrect, no answer."""

_ROWS_AT_ONCE = 256
"""Rows that are parsed before they are gathered: few, as they may hold many fields that are not read."""

_NOTHING = type(None)
_Task: TypeAlias = tuple[str | None, str | None]
"""The system of a row, and its task."""


class _Row(NamedTuple):
    """One response with what belongs to it."""

    response: str
    references: Sequence[str] = ()
    context: Sequence[str] = ()
    roles: Sequence[str] = ()
    """The role of each turn of the context; empty where no turn has a role."""
    continues: bool = False
    """Whether its context is that of the row before, and then `context`."""
    system: str | None = None
    dialogue: str | None = None
    turn: int | None = None
    labels: Sequence[Sequence[str]] = ()
    """Values of the further fields that rows keep."""
    calls: str | None = None
    expected: str | None = None
    trial: str | None = None
    turn_labels: str | None = None
    latency: str | None = None


class Texts(NamedTuple):
    """Any number of texts per row: all texts one after the other, and how many each row has."""

    values: list[str]
    counts: list[int]

    def add(self, texts: Sequence[str]) -> None:
        self.values.extend(texts)
        self.counts.append(len(texts))

    def extend(self, rows: Texts) -> None:
        self.values.extend(rows.values)
        self.counts.extend(rows.counts)

    def column(self) -> RaggedColumn:
        return RaggedColumn(TextColumn.from_strings(self.values), offsets_of(self.counts))


class PlainRows(NamedTuple):
    """The fields of plain rows, each with a value for every row."""

    responses: list[str]
    references: Texts
    contexts: Texts
    systems: list[str | None]
    dialogues: list[str | None]
    turns: list[int]


def gather_rows(records: Records, names: FieldNames, system: str, part: bool = False) -> list[Rows]:
    """Return the rows of each system in order of appearance; `system` is the name of those that give none.

    A part of an input may be without a row; a whole input may not.
    """
    _require_response(records, names)
    if records.table is not None and (found := _read_table(records.table, names, system, records.where)) is not None:
        return found
    gathered = _RowCollector(names)
    reader = FieldReader(records.where, names, records.problems)
    parsed, problems = iter(records.rows), 0
    while block := list(islice(parsed, _ROWS_AT_ONCE)):
        plain = read_plain_rows(_collect_columns([row for _, row in block], names), names)
        if plain is not None:
            gathered.extend(plain)
        else:
            for row in _read_rows(reader, block, gathered.trials, gathered.filters):
                gathered.add(row)
        # Lines that do not parse are found before the fields of the lines above them.
        records.problems[problems:] = sorted(records.problems[problems:], key=lambda problem: problem.line or 0)
        problems = len(records.problems)
    reader.count_unknown()
    if not records.problems and not gathered.rows.responses and not part:
        records.problems.append(no_rows(records.where))
    records.raise_problems()
    if gathered.filters.again:
        repeated = gathered.filters.again
        add_warning(f"{records.where}: rows that repeat an answer under another filter, which are not read: {repeated}")
    return gathered.split_by_system(system, records.where, part) if gathered.rows.responses else []


def _read_table(table: pa.Table, names: FieldNames, system: str, where: str) -> list[Rows] | None:
    """Return the rows of each system in a table of plain columns, over its buffers; None where a column is not plain.

    Columns are plain if they hold what plain rows hold, each of one type; all but the response may have nulls.
    """
    columns = {name: table[name] for name in table.column_names}
    _warn_plural(columns, names)
    if not _may_be_plain(columns, names) or not len(table):
        return None
    try:
        found: dict[Need, Column] = {Need.RESPONSE: parquet.read_text_column(columns[names.response])}
        for need in (Need.REFERENCE, Need.CONTEXT):
            column = columns.get(names.name(need))
            if column is not None and len((lists := parquet.read_text_lists(column)).values):
                found[need] = lists
        dialogues, systems = (parquet.read_identifiers(columns.get(name)) for name in (names.dialog_id, names.system))
        turns = parquet.read_turn_numbers(columns.get(names.turn))
    except InvalidError:
        return None
    if dialogues is None or (dialogues.ends > dialogues.starts).all():
        named = dialogues
    else:
        named = _name_dialogues(list(dialogues))
    rows = Rows(system, found, named, turns, where)
    return split_systems(rows, [None] * len(table) if systems is None else list(systems), system)


class _RowCollector:
    """A collector of the fields of rows, row by row."""

    def __init__(self, names: FieldNames) -> None:
        self.names = names
        self.rows = PlainRows([], Texts([], []), Texts([], []), [], [], [])
        self._roles: dict[int, Sequence[str]] = {}
        self._continued: list[int] = []
        self._labels: list[Sequence[Sequence[str]]] = []
        self._texts: dict[Need, dict[int, str]] = {need: {} for need in OF_SOME_ROWS}
        self.trials = _Trials()
        self.filters = Filters()

    def add(self, row: _Row) -> None:
        """Add a row."""
        rows, number = self.rows, len(self.rows.responses)
        if row.continues:
            self._continued.append(number)
        if row.roles:
            self._roles[number] = row.roles
        rows.responses.append(row.response)
        rows.references.add(row.references)
        rows.contexts.add(row.context)
        rows.systems.append(row.system)
        rows.dialogues.append(row.dialogue)
        rows.turns.append(NO_TURN if row.turn is None else row.turn)
        self._labels.append(row.labels)
        texts = (row.calls, row.expected, row.trial, row.turn_labels, row.latency)
        for need, text in zip(OF_SOME_ROWS, texts, strict=True):
            if text is not None:
                self._texts[need][number] = text

    def extend(self, rows: PlainRows) -> None:
        """Add plain rows."""
        for column, more in zip(self.rows, rows, strict=True):
            column.extend(more)  # type: ignore[attr-defined]

    def split_by_system(self, system: str, where: str, part: bool) -> list[Rows]:
        """Return the rows of each system; `system` is the name of those that give none."""
        responses, references, contexts, systems, dialogues, numbers = self.rows
        columns: dict[Need, Column] = {Need.RESPONSE: TextColumn.from_strings(responses)}
        if references.values:
            columns[Need.REFERENCE] = references.column()
        if contexts.values:
            columns[Need.CONTEXT] = self._share_texts(contexts)
        if self._roles:
            roles = [self._roles.get(row) or [""] * turns for row, turns in enumerate(contexts.counts)]
            columns[Need.ROLES] = self._share_texts(Texts(list(chain.from_iterable(roles)), contexts.counts))
        turns = np.array(numbers, np.int64)
        if not self.trials.judged and not part:  # numbers of trials, and no reward
            self._texts[Need.TRIALS] = {}
        for need, texts in self._texts.items():
            if texts:
                counts = np.zeros(len(responses), np.int64)
                counts[list(texts)] = 1
                columns[need] = RaggedColumn(TextColumn.from_strings(list(texts.values())), offsets_of(counts))
        tried = self.trials.judged and not part  # the number of trials of a task is not known from a part
        fields = {
            name: RaggedColumn.from_lists(lists)
            for number, name in enumerate(self.names.kept)
            if any(lists := [labels[number] for labels in self._labels])
        }
        names = _name_dialogues(dialogues)
        rows = Rows(system, columns, names, turns if (turns != NO_TURN).any() else None, where, fields=fields)
        if tried:  # rows of a task are brought together; one without a task is alone
            first: dict[_Task, int] = {}
            tasks = enumerate(zip(systems, dialogues, strict=True))
            firsts = [row if task[1] is None else first.setdefault(task, row) for row, task in tasks]
            order = np.argsort(np.array(firsts, np.int64), kind="stable")
            rows, systems = rows.take(order), [systems[row] for row in order.tolist()]
        return split_systems(rows, systems, system)

    def _share_texts(self, texts: Texts) -> RaggedColumn | SharedColumn:
        """Return texts of which some rows begin with those of the row before."""
        column = texts.column()
        if not self._continued:
            return column
        continues = np.zeros(len(column), np.bool_)
        continues[self._continued] = True
        return SharedColumn.from_steps(column, continues)


def _name_dialogues(names: Sequence[str | None]) -> TextColumn | None:
    """Return the column of dialogue names; a row without one is a dialogue of its own, and none at all is no column."""
    if not any(names):
        return None
    return TextColumn.from_strings([name or f"row {row}" for row, name in enumerate(names, 1)])


def _collect_columns(rows: Sequence[Any], names: FieldNames) -> Mapping[str, list[Any]]:
    """Return the values of rows by field, null where a row does not have it; nothing where rows differ in type."""
    types = {*map(type, rows)}
    if types == {str}:
        return {names.response: list(rows)}
    fields = set().union(*rows) if types == {dict} else set()
    _warn_plural(fields, names)
    if list_unlike(fields, names):
        return {}
    return {name: [row.get(name) for row in rows] for name in fields.intersection(names.all)}


def _warn_plural(fields: Collection[str], names: FieldNames) -> None:
    """Warn of fields that are called `references` or `contexts`, which are not read."""
    for name in (names.reference, names.context):
        if name not in fields and f"{name}s" in fields:
            add_warning(f"the field '{name}s' is not read; rows have '{name}': --field {name}={name}s")


def read_plain_rows(columns: Mapping[str, list[Any]], names: FieldNames) -> PlainRows | None:
    """Return the fields of rows that are all plain, given their values by field; None where one is not."""
    responses = columns.get(names.response)
    if not responses or not _may_be_plain(columns, names) or {*map(type, responses)} != {str}:
        return None
    nothing = [None] * len(responses)
    own = (columns.get(name, nothing) for name in (names.reference, names.context))
    labels = (columns.get(name, nothing) for name in (names.system, names.dialog_id))
    try:
        (references, contexts), (systems, dialogues) = map(_read_plain_texts, own), map(_read_plain_names, labels)
        turns = _read_plain_turns(columns.get(names.turn, nothing))
        texts = chain(responses, references.values, contexts.values, filter(None, systems), filter(None, dialogues))
        "".join(texts).encode()
    except (InvalidError, UnicodeEncodeError):  # the second one: half of a surrogate pair
        return None
    return PlainRows(responses, references, contexts, systems, dialogues, turns)


def _may_be_plain(columns: Mapping[str, Any], names: FieldNames) -> bool:
    """Return whether rows with these fields have a response and nothing that only `FieldReader` reads."""
    simple = names.response in columns and not names.kept and not names.paths
    return simple and columns.keys().isdisjoint(names.careful) and not list_unlike(columns, names)


def _read_plain_texts(column: list[Any]) -> Texts:
    types = {*map(type, column)}
    if types == {_NOTHING}:
        return Texts([], [0] * len(column))
    if types == {str}:
        return Texts(column, [1] * len(column))
    if not types <= {str, list, _NOTHING}:
        raise InvalidError
    lists = [value if type(value) is list else [] if value is None else [value] for value in column]
    values = list(chain.from_iterable(lists))
    if not {*map(type, values)} <= {str}:
        raise InvalidError
    return Texts(values, list(map(len, lists)))


def _read_plain_names(column: list[Any]) -> list[str | None]:
    types = {*map(type, column)}
    if not types <= {str, int, _NOTHING}:
        raise InvalidError
    if types == {_NOTHING}:
        return column
    return [str(name) if type(name) is int else name or None for name in column]


def _read_plain_turns(column: list[Any]) -> list[int]:
    if {*map(type, column)} == {_NOTHING}:
        return [NO_TURN] * len(column)
    given = [turn for turn in column if turn is not None]
    if not {*map(type, given)} <= {int} or (given and not 0 <= min(given) <= max(given) <= LARGEST_TURN):
        raise InvalidError
    return [NO_TURN if turn is None else turn for turn in column]


def _read_rows(
    reader: FieldReader, rows: Sequence[tuple[int, object]], trials: _Trials, filters: Filters
) -> Iterator[_Row]:
    """Read rows one by one; a chat is several rows, and what cannot be read is a problem."""
    names = reader.names
    for reader.line, given in rows:
        if isinstance(given, str):
            yield _Row(reader.read_text(given, "the row"), labels=[()] * len(names.kept))
            continue
        if not isinstance(given, dict):
            reader.add_problem(f"the row is {kind_of(given)}", "make it an object with a response, or a string")
            continue
        if not names.mapped and filters.pass_over(given):
            continue
        row = map_fields(given, names)
        if row is None:
            reader.add_unknown_shape(given)
            continue
        labels = [reader.read_labels(value_at(given, name), name) for name in names.kept]
        for each in [row] if row is given or names.mapped else split_turns(row, given, names):
            yield from _read_row(reader, each, labels, trials)


def _read_row(reader: FieldReader, row: RowObject, labels: Sequence[Sequence[str]], trials: _Trials) -> Iterator[_Row]:
    """Read one row, with the names of our fields."""
    names = reader.names
    system, dialogue = reader.read_identifier(row, names.system), reader.read_dialogue(row)
    if row.get(names.messages) is not None:
        dialogue = dialogue or reader.read_identifier(row, "id") or f"line {reader.line}"
        responses, log, asked = _read_chat(reader, row, system, dialogue, labels)
        trial, (calls, expected) = trials.read(reader, row, system, dialogue), reader.read_calls(row, log)
        if not responses and (trial is not None or calls is not None):
            turns, roles = [turn for turn, _ in asked], [role for _, role in asked]
            responses = [_Row("", (), turns, roles, system=system, dialogue=dialogue, labels=labels)]
        if len(responses) == 1:
            mine, seconds = reader.read_turn_labels(row), reader.read_latency(row)
            first = responses[0]
            responses = [first._replace(turn_labels=first.turn_labels or mine, latency=first.latency or seconds)]
        elif reader.read_turn_labels(row) is not None:
            add_warning(f"{names.labels} of a whole chat are not read; put them into its messages")
        if responses:
            responses[0] = responses[0]._replace(trial=trial)
            responses[-1] = responses[-1]._replace(calls=calls, expected=expected)
        yield from responses
    else:
        trial, (calls, expected) = trials.read(reader, row, system, dialogue), reader.read_calls(row)
        response, references = reader.read_response(row), reader.read_references(row)
        (context, roles), turn = reader.read_context(row), reader.read_turn(row)
        own = (False, system, dialogue, turn, labels, calls, expected, trial)
        yield _Row(response, references, context, roles, *own, reader.read_turn_labels(row), reader.read_latency(row))


def _read_chat(
    reader: FieldReader, row: RowObject, system: str | None, dialogue: str, labels: Sequence[Sequence[str]]
) -> tuple[list[_Row], CallLog, list[tuple[str, str]]]:
    """Return the responses in a chat, none where the assistant says nothing; its calls; and the turns before these."""
    name, prompts = reader.names.messages, reader.names.system_prompts
    messages, log = parse_cell(row[name]), CallLog()
    if row.get(reader.names.response) is not None:
        remedy = "keep one; or map the other: --field messages=NAME"
        reader.add_problem(f"has both {reader.names.response} and {name}", remedy)
    if not isinstance(messages, LISTS):
        reader.add_problem(f"{name} is {kind_of(messages)}", "make it a list of role/content objects")
        return [], log, []
    references = reader.read_references(row)
    said: list[str] = []
    roles: list[str] = []
    responses: list[_Row] = []
    since: float | None = None
    for turn, given in enumerate(messages):
        if (plain := read_plain_message(given)) is not None:
            role, text = plain[0], reader.read_text(plain[1], name, turn)
            shown, speaks = text, role == ASSISTANT
            if role == TOOL:
                log.add((), [read_result(given, text)])
        elif (message := _read_message(reader, given, f"{name}[{turn}]")) is not None:
            role, text, shown = message.role, message.text, message.shown
            log.add(message.calls if role == ASSISTANT else (), message.results)
            speaks = role == ASSISTANT and (bool(message.text.strip()) or not message.calls)
        else:
            continue
        if role == SYSTEM and not prompts:
            continue
        if speaks:
            own = {"turn_labels": reader.read_turn_labels(given), "latency": reader.read_latency(given, since)}
            responses.append(
                _Row(text, references, said, roles, bool(responses), system, dialogue, turn, labels, **own)
            )
            said, roles = [], []
        if speaks or role == USER:
            since = read_time(given.get(TIME))
        said.append(shown)
        roles.append(role)
    if references and len(responses) > 1:
        what = f"has {reader.names.reference} for one response but {len(responses)} assistant messages"
        reader.add_problem(what, "give one row per response")
    before = takewhile(lambda turn: turn[1] != ASSISTANT, zip(said, roles, strict=True)) if not responses else ()
    return responses, log, list(before)


def _read_message(reader: FieldReader, given: object, what: str) -> Message | None:
    if not isinstance(given, dict):
        reader.add_problem(f"{what} is {kind_of(given)}", "make each message an object with role and content")
        return None
    message = unwrap(given)
    role = None if message is None else read_role(reader, message, what)
    return None if message is None or role is None else read_message(reader, message, what, role)


class _Trials:
    """A reader of trials that finds those that occur twice."""

    def __init__(self) -> None:
        self.judged = False
        """Whether a trial has a reward."""
        self._met: set[tuple[_Task, str]] = set()

    def read(self, reader: FieldReader, row: RowObject, system: str | None, task: str | None) -> str | None:
        """Return the text of a row that is a trial; a problem where its reward is no number, or it occurs twice."""
        names = reader.names
        if row.get(names.trial) is None:
            return None
        trial, given = reader.read_identifier(row, names.trial), row.get(names.reward)
        parts = {} if not isinstance(given, dict) else {key: _read_grade(each) for key, each in given.items()}
        reward = next(iter(parts.values()), None) if isinstance(given, dict) else _read_grade(given)
        if reward is None and given is not None and given != {}:
            reader.add_problem(f"{names.reward} is {kind_of(given)}", "make it a number; 1 is a pass")
            return None
        if trial is None:
            return None
        if task is None:
            remedy = "name the task: dialog_id, or --field dialog_id=NAME"
            reader.add_problem(f"is {names.trial} {trial} of no task", remedy)
            return None
        if ((system, task), trial) in self._met:
            reader.add_problem(f"{names.trial} {trial} of {task} occurs twice", "number the trials of a task")
        self._met.add(((system, task), trial))
        self.judged = self.judged or reward is not None
        if isinstance(own := row.get(names.reward_parts), dict):
            parts = {str(key): _read_grade(each) for key, each in own.items()}
        elif len(parts) == 1:  # a single score is the reward itself
            parts = {}
        end, cost = row.get(names.termination), read_number(row.get(names.cost))
        known = {key: value for key, value in parts.items() if value is not None}
        found = {"task": task, "trial": trial, "reward": reward, "parts": known, "cost": cost}
        return dump(found | {"end": end if isinstance(end, str) else None})


def _read_grade(value: object) -> float | None:
    """Return a reward as a number: a number, or the score of an inspect_ai sample."""
    if isinstance(value, dict):
        value = value.get("value")
    if isinstance(value, bool):
        return float(value)
    return _GRADES[value] if isinstance(value, str) and value in _GRADES else read_number(value)


def gather_texts(records: Records, names: FieldNames, need: Need) -> RaggedColumn:
    """Return the texts of one need by row: from rows that are texts or lists of texts, or from a field of objects."""
    own = names.name(need)
    rows = iter(records.rows)
    held: list[tuple[int, object]] = []  # until the field turns up; where it never does, another may hold the texts
    for line, row in rows:
        held.append((line, row))
        if isinstance(row, dict) and own in row:
            break
    field = _find_field(records, held, names, need)
    reader = FieldReader(records.where, names, records.problems)
    lists: list[Sequence[str]] = []
    for reader.line, row in chain(held, rows):
        if isinstance(row, dict) and need is Need.REFERENCE and field == own:
            lists.append(reader.read_references(row))
        elif isinstance(row, dict) and field != own and field not in row:
            reader.add_problem(*describe_missing(field, need.value, row))
        else:
            value = row.get(field) if isinstance(row, dict) else row
            turns = [turn.shown for turn in reader.read_turns(value, field)] if need is Need.CONTEXT else None
            lists.append(reader.read_texts(value, field) if turns is None else turns)
    if not records.problems and not lists:
        records.problems.append(no_rows(records.where))
    records.raise_problems()
    return RaggedColumn.from_lists(lists)


def _find_field(records: Records, held: Sequence[tuple[int, object]], names: FieldNames, need: Need) -> str:
    """Return the field that holds the texts of a need: its own, else `response`, else the only one there is.

    It is the name of the need where the rows have no fields.
    """
    there = records.header or tuple(dict.fromkeys(key for _, row in held if isinstance(row, dict) for key in row))
    own = names.name(need)
    if not there:
        return own
    found = next((name for name in (own, names.response) if name in there), there[0] if len(there) == 1 else None)
    if found is None:
        what, remedy = describe_missing(own, need.value, there)
        records.problems.append(
            Problem(records.where, held[0][0] if held and records.header is None else 1, what, remedy)
        )
        records.raise_problems()
    return found or own


def no_rows(where: str) -> Problem:
    """Return the problem of an input without a single response."""
    return Problem(where, None, "holds no rows", "give at least one response")


def _require_response(records: Records, names: FieldNames) -> None:
    """Raise one error for a table without the column, instead of one for each of its rows."""
    there = records.header
    if there is None or may_hold_rows(there, names):
        return
    looks_like = explain_shape(dict.fromkeys(there, ""), names)
    what, remedy = looks_like or describe_missing(names.response, "response", there, "column")
    raise DataError([*records.problems, Problem(records.where, 1, what, remedy)])
