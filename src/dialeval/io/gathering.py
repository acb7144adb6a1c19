"""Columns from parsed rows.

`gather_rows` makes the responses of each system; `gather_texts` the references or contexts of a source of their own.
Both read all rows, collect the problems of all of them, and then either raise or return everything.

Most rows of most files are plain: an object whose response is a string, whose references and context are strings or
lists of strings, whose dialogue and system are strings or whole numbers, and whose turn is a whole number from 0 on;
each but the response may be null or missing. Blocks of plain rows are read column by column, in a fifth of the time.
Everything else, and every problem, is left to `FieldReader`, which reads rows one by one, with equal results for plain
ones.

A row with `messages` is a chat (`chats`). The row's reference, if it has one, belongs to its only response; with
several responses it is unclear whose it is, and that is a problem. In a cell of a table, messages may be JSON. Tool
calls of a chat are data of its last row (`calls`).

A row or chat with `trial` and `reward` is one trial of the task that its `dialog_id` names. Its first row holds it, as
an object with task, trial, reward and, where known, the parts of the reward, the reason for which it ended, and its
cost. Programs write trial after trial, so that the rows of a task are not consecutive: they are sorted by task here, in
the order of appearance, unless rows are read in chunks. A trial without a reward was not judged: its rows remain those
of its task. A trial in which the agent says nothing, such as one that crashed, is an empty response: otherwise its task
might have no row, and be missing among the failed ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from statistics import median
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dialeval.core import inputs
from dialeval.core.account import MISSING, MOST_LISTED, SKIPPED, Account
from dialeval.core.arrays import offsets_of
from dialeval.core.columns import ColumnData, FieldColumn, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import Problem, add_warning
from dialeval.core.inputs import Input
from dialeval.core.validation import InvalidError, JsonObject
from dialeval.io.chats import JOINED, Chat, ReplyRow, find_first_prompt, group_messages, is_message, join_output
from dialeval.io.fields import LARGEST_TURN, FieldReader, describe_missing, looks_like_prompt, parse_cell
from dialeval.io.logs import find_assembler, peek_rows
from dialeval.io.outcomes import account_for, mark_outcomes
from dialeval.io.row_shapes import (
    Filters,
    find_path,
    find_shape,
    list_paths,
    list_unlike,
    map_fields,
    split_turns,
    value_at,
)
from dialeval.io.rows import (
    ASKED,
    NO_TURN,
    PROMPT,
    FieldNames,
    Records,
    RowObject,
    Rows,
    kind_of,
    read_number,
    split_systems,
)
from dialeval.io.scores import collect_scores, count_scores, read_grade

_ROWS_AT_ONCE = 256
"""Rows that are parsed before they are gathered: few, as they may hold many fields that are not read."""

WITHIN = 1e-6
"""How far from 0 to 1 a reward may be."""
_LONG_LATENCY = 120
"""Seconds; a median above it is most likely one of milliseconds."""
_MOST_PROMPTS = 2
_NOTHING = type(None)
_Task: TypeAlias = tuple[str | None, str | None]
"""The system of a row, and its task."""


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
    first, parsed = peek_rows(records, names)
    names, parsed = (names, parsed) if part else _choose_id(names, first, parsed)
    reader = FieldReader(records.where, names, records.problems)
    if (assembler := find_assembler(first, names)) is not None:
        parsed = assembler(parsed, records.where)
    elif is_message(first, names):
        parsed = group_messages(reader, parsed)
    gathered = _RowCollector(names)
    skipped: list[Problem] = []
    problems = 0
    while block := list(islice(parsed, _ROWS_AT_ONCE)):
        plain = read_plain_rows([row for _, row in block], names)
        if plain is not None:
            gathered.extend(plain[0])
            reader.fields = {**plain[1], **reader.fields}
        else:
            for row in _read_rows(reader, block, gathered, skipped):
                gathered.add(row)
        # Lines that do not parse are found before the fields of the lines above them.
        records.problems[problems:] = sorted(records.problems[problems:], key=lambda problem: problem.line or 0)
        problems = len(records.problems)
        if names.skip_invalid:
            problems = records.move_problems(skipped)
    if names.skip_invalid:
        records.move_problems(skipped)
    reader.count_unknown()
    if not records.problems and not gathered.rows.responses and not part:
        records.problems.extend(skipped or [no_rows(records.where)])
    records.raise_problems()
    if reader.bare_latencies and median(reader.bare_latencies) > _LONG_LATENCY:
        what = f"half of the values of {names.latency} are above {_LONG_LATENCY} and are read as seconds"
        add_warning(f"{records.where}: {what}; for milliseconds, call the field latency_ms")
    skipped.sort(key=lambda problem: problem.line or 0)
    lines = {problem.line if problem.line is not None else -at for at, problem in enumerate(skipped)}
    extra = Account(skipped=len(lines), problems=tuple(skipped[:MOST_LISTED]), fields=reader.fields)
    if gathered.rows.responses:
        systems = gathered.split_by_system(system, records.where, part)
    elif lines or gathered.counts.total():  # what was left out is counted, also where nothing else is in this part
        systems = [Rows(system, {inputs.RESPONSE: TextColumn.from_strings([])}, where=records.where)]
    else:
        return []
    return _place_counts(account_for(systems, extra), gathered.counts, system)


def _place_counts(systems: list[Rows], counts: Mapping[tuple[str, str | None], int], unnamed: str) -> list[Rows]:
    """Return systems with further counts of their accounts, by kind and system; those of no system are in the first."""
    names = {rows.system for rows in systems}
    own: dict[str, Any] = {name: Counter() for name in names}
    for (kind, system), count in counts.items():
        name = system or unnamed
        own[name if name in names else systems[0].system][kind] += count
    return [replace(rows, account=rows.account + Account(**own[rows.system])) for rows in systems]


def _choose_id(
    names: FieldNames, first: object, rows: Iterator[tuple[int, object]]
) -> tuple[FieldNames, Iterator[tuple[int, object]]]:
    """Return names with the finest of several ids of conversations that rows have; and the rows.

    Of two ids the finer has more values, and each of these is in rows with one value of the other. Where rows are no
    chats, a trace is a request, and so is what differs in every row.
    """
    if not isinstance(first, dict):
        return names, rows
    there = [name for name in names.dialog_ids if first.get(name) not in (None, "")]
    are_chats = (map_fields(first, names) or {}).get(names.messages) is not None
    there = there if are_chats else [name for name in there if name not in ("trace_id", "traceId")]
    if len(there) < 2 or find_assembler(first, names) is not None:
        return names, rows
    held = list(rows)
    ids, rows = [row for _, row in held if isinstance(row, dict)], iter(held)
    chosen = there[0]
    for name in there[1:]:
        pairs = {(str(row.get(name)), str(row.get(chosen))) for row in ids}
        finer, coarser = ({pair[at] for pair in pairs} for at in (0, 1))
        is_given = all(row.get(name) not in (None, "") for row in ids)
        if is_given and len(pairs) == len(finer) > len(coarser) and (are_chats or len(finer) < len(ids)):
            chosen = name
    return (names if chosen == there[0] else replace(names, dialog_id=chosen)), rows


class _RowCollector:
    """A collector of the fields of rows, row by row."""

    def __init__(self, names: FieldNames) -> None:
        self.names = names
        self.rows = PlainRows([], Texts([], []), Texts([], []), [], [], [])
        self._roles: dict[int, Sequence[str]] = {}
        self._continued: list[int] = []
        self._labels: list[Sequence[Sequence[str]]] = []
        self._failures: dict[int, str] = {}
        self._values: dict[Input, dict[int, object]] = {}
        self._uncounted: dict[Input, set[int]] = {}
        """Rows in which a value of the whole conversation does not count."""
        self.trials = _Trials()
        self.filters = Filters()
        self.counts: Counter[tuple[str, str | None]] = Counter()
        """Numbers of the account that are not those of rows, by kind and system."""
        self._asked: dict[int, int] = {}
        self._chats: dict[_Task, list[int]] = {}

    def name_chat(self, reader: FieldReader, system: str | None, dialogue: str, messages: object) -> str:
        """Return the id of a chat; another one has a number behind it, and one with the same prompt is a problem."""
        digest = hash(repr(find_first_prompt(messages, self.names)))
        known = self._chats.setdefault((system, dialogue), [])
        if digest in known:
            what = f"the conversation {dialogue!r:.60} is there twice, with the same first prompt"
            remedy = "number repeated trials (a field trial), and keep the last of the versions of a growing log"
            reader.add_problem(what, remedy)
            return dialogue
        known.append(digest)
        if len(known) == 1:
            return dialogue
        self.counts["renamed", system] += 1
        add_warning(f"{reader.where}: conversations with the same id and other prompts are kept apart, as 'ID (2)'")
        return f"{dialogue} ({len(known)})"

    def add(self, row: ReplyRow) -> None:
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
        if row.asked >= 0:
            self._asked[number] = row.asked
        for column, value in row.shared.items():
            self._values.setdefault(column, {})[number] = value
            self._uncounted.setdefault(column, set()).add(number)
        for column, value in row.values.items():
            if value is not None:
                self._values.setdefault(column, {})[number] = value
        if row.failure is not None:
            self._failures[number] = row.failure

    def extend(self, rows: PlainRows) -> None:
        """Add plain rows."""
        for column, more in zip(self.rows, rows, strict=True):
            column.extend(more)  # type: ignore[attr-defined]

    def split_by_system(self, system: str, where: str, part: bool) -> list[Rows]:
        """Return the rows of each system; `system` is the name of those that give none."""
        responses, references, contexts, systems, dialogues, numbers = self.rows
        columns: dict[Input, ColumnData] = {inputs.RESPONSE: TextColumn.from_strings(responses)}
        if references.values:
            columns[inputs.REFERENCE] = references.column()
        if contexts.values:
            columns[inputs.CONTEXT] = self._share_texts(contexts)
        if self._roles:
            roles = [self._roles.get(row) or [""] * turns for row, turns in enumerate(contexts.counts)]
            columns[inputs.ROLES] = self._share_texts(Texts(list(chain.from_iterable(roles)), contexts.counts))
        turns = np.array(numbers, np.int64)
        if not self.trials.judged and not part:  # numbers of trials, and no reward
            self._values.pop(inputs.TRIALS, None)
        for column, by_row in self._values.items():
            numbers_only = column.kind in ("number", "boolean")
            uncounted = self._uncounted.get(column, set())
            counted = [row not in uncounted for row in range(len(responses))]
            columns[column] = FieldColumn.of(list(map(by_row.get, range(len(responses)))), counted, numbers_only)
        tried = self.trials.judged and not part  # the number of trials of a task is not known from a part
        fields = {
            name: RaggedColumn.from_lists(lists)
            for number, name in enumerate(self.names.kept)
            if any(lists := [labels[number] for labels in self._labels])
        }
        names = _name_dialogues(dialogues)
        asked = np.full(len(responses), -1)
        asked[list(self._asked)] = list(self._asked.values())
        numbered = turns if (turns != NO_TURN).any() else None
        rows = Rows(system, columns, names, numbered, where, fields=fields, asked=asked)
        rows = mark_outcomes(rows, self._failures, self.names.keep_reasoning)
        if rows.account.reasoning:
            changed = zip(responses, rows.responses, systems, strict=True)
            self.counts += Counter(("reasoning", system) for before, after, system in changed if before != after)
            rows = replace(rows, account=Account())
        if self.names.system == "system" and not part:  # as many names as conversations are no names of systems
            prompts = {name for name in systems if name and " " in name}
            if len(prompts) > _MOST_PROMPTS and 2 * len(prompts) > len(rows.dialogue_offsets()) - 1:
                systems = [None if name in prompts else name for name in systems]
        systems = _name_failures(systems, rows.columns.get(inputs.OUTCOME))
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


def _name_failures(systems: list[str | None], outcomes: ColumnData | None) -> list[str | None]:
    """Return the systems of rows, with the only one that is named for requests that failed and do not name it."""
    named = {*filter(None, systems)}
    if len(named) != 1 or not isinstance(outcomes, RaggedColumn):
        return systems
    nameless = [row for row, name in enumerate(systems) if not name]
    return [*named] * len(systems) if (np.diff(outcomes.offsets)[nameless] > 0).all() else systems


def _name_dialogues(names: Sequence[str | None]) -> TextColumn | None:
    """Return the column of dialogue names; a row without one is a dialogue of its own, and none at all is no column."""
    if not any(names):
        return None
    return TextColumn.from_strings([name or f"row {row}" for row, name in enumerate(names, 1)])


def read_plain_rows(rows: list[Any], names: FieldNames) -> tuple[PlainRows, dict[str, str]] | None:
    """Return the fields of rows that are all plain, and which field was read as what; None where a row is not plain."""
    types = {*map(type, rows)}
    if types == {str}:
        rows = [{names.response: row} for row in rows]
    elif types != {dict}:
        return None
    there = set().union(*rows)
    for name in (names.reference, names.context):
        if name not in there and f"{name}s" in there and names.response in there:
            add_warning(f"the field '{name}s' is not read; rows have '{name}': --field {name}={name}s")
    ids = there.intersection(names.dialog_ids)
    is_prompt = names.context == "context" and PROMPT in there and "context" not in there
    mixed = {names.context, PROMPT} <= there and any(names.context not in row for row in rows)
    asked = names.kept or names.columns or names.scores or names.paths
    if asked or mixed or len(ids) > 1 or not there.isdisjoint(names.careful) or list_unlike(there, names):
        return None
    chosen = {
        "reply": names.response,
        "reference": names.reference,
        "context": PROMPT if is_prompt else names.context,
        "system": names.system,
        "id": next(iter(ids), names.dialog_id),
        "turn": names.turn,
    }
    columns = {name: [row.get(field) for row in rows] for name, field in chosen.items()}
    responses = columns["reply"]
    if {*map(type, responses)} != {str}:
        return None
    try:
        references, contexts = _read_plain_texts(columns["reference"]), _read_plain_texts(columns["context"])
        systems, dialogues = _read_plain_names(columns["system"]), _read_plain_names(columns["id"])
        turns = _read_plain_turns(columns["turn"])
        if any(map(looks_like_prompt, {name for name in systems if name})):
            return None
        texts = chain(responses, references.values, contexts.values, filter(None, systems), filter(None, dialogues))
        "".join(texts).encode()
    except (InvalidError, UnicodeEncodeError):  # the second one: half of a surrogate pair
        return None
    shown = {"reply", "id", "reference", "system", *(["context"] if is_prompt else [])}
    read = {} if types == {str} else {"system": "the file name"}
    read |= {name: field for name, field in chosen.items() if name in shown and field in there and types == {dict}}
    return PlainRows(responses, references, contexts, systems, dialogues, turns), read


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
    reader: FieldReader, rows: Sequence[tuple[int, object]], gathered: _RowCollector, skipped: list[Problem]
) -> Iterator[ReplyRow]:
    """Read rows one by one; what cannot be read is a problem, or is skipped if that is asked for."""
    for reader.line, given in rows:
        before = len(reader.problems)
        found = list(_read_given(reader, given, gathered))
        if reader.names.skip_invalid and len(reader.problems) > before:
            skipped += reader.problems[before:]
            del reader.problems[before:]
            found = _list_requests(found)
        yield from found


def _list_requests(found: Sequence[ReplyRow]) -> list[ReplyRow]:
    """Return the reply that was due where a row that is skipped has a turn of the user."""
    asked = next((row for row in found if row.asked > 0 or (row.context and row.asked < 0)), None)
    if asked is None:
        return []
    return [replace(asked, response="", references=(), continues=False, failure=SKIPPED)]


def _read_given(reader: FieldReader, given: object, gathered: _RowCollector) -> Iterator[ReplyRow]:
    """Read what a file holds in one place; a chat is several rows."""
    names = reader.names
    if isinstance(given, str):
        yield ReplyRow(reader.read_text(given, "the row"), labels=[()] * len(names.kept))
        return
    if not isinstance(given, dict):
        reader.add_problem(f"the row is {kind_of(given)}", "make it an object with a response, or a string")
        return
    if not names.mapped and gathered.filters.pass_over(given):
        said = (map_fields(given, names) or {}).get(names.system)
        gathered.counts["dropped", said if isinstance(said, str) else None] += 1
        return
    row = map_fields(given, names)
    if row is None:
        reader.add_unknown_shape(given)
        return
    shape = None if row is given or names.mapped else find_shape(given)
    if shape is not None:
        paths = list_paths(shape, names)
        if shape.scores:
            taken = (*paths.values(), *shape.signs, *names.all, "id")
            row = {**row, "scores": collect_scores(given, shape.scores, taken)}
        if "shape" not in reader.fields:
            known = {"id": "dialog_id", "reply": "response" if "response" in paths else "messages"}
            known |= {name: name for name in ("system", "reference", "latency", "reward")}
            there = {name: find_path(given, paths[own]) for name, own in known.items() if own in paths}
            reader.fields |= {"shape": shape.name, **{name: path for name, path in there.items() if path is not None}}
    labels = [reader.read_labels(value_at(given, name), name) for name in names.kept]
    parts = [row] if shape is None else split_turns(row, shape, names)
    named = given if row is given or row.get("scores") is None else {**given, "scores": row["scores"]}
    replies = [reply for part in parts for reply in _read_row(reader, part, labels, gathered)]
    yield from _add_values(replies, reader.read_columns(named)) if names.columns or names.scores else replies


def _add_values(replies: list[ReplyRow], values: Mapping[Input, Any]) -> list[ReplyRow]:
    """Return replies with the values of the row that they are from; they count in the last of several replies."""
    if not replies:
        return replies
    *others, last = replies
    own = {name: value for name, value in values.items() if not any(name in reply.values for reply in replies)}
    has_scores = any(inputs.SCORES in reply.values for reply in replies)
    for reply in others:
        reply.shared = {**own, **({} if has_scores else {inputs.SCORES: None})}
    scores = {**values.get(inputs.SCORES, {}), **last.values.get(inputs.SCORES, {})}
    last.values = {**own, **last.values, **({inputs.SCORES: scores} if scores else {})}
    return replies


def _read_row(
    reader: FieldReader, row: RowObject, labels: Sequence[Sequence[str]], gathered: _RowCollector
) -> list[ReplyRow]:
    """Read one row, with the names of our fields."""
    names, chat = reader.names, None
    system, dialogue = reader.read_system(row), reader.read_dialogue(row)
    if names.messages in row and row[names.messages] is None and names.response not in row:
        row = {**row, names.messages: []}  # nobody speaks
    if row.get(names.messages) is not None:
        row, twice = join_output(reader, row)
        gathered.counts["merged", system] += int(twice)
    if row.get(names.messages) is not None:
        named = dialogue or reader.read_identifier(row, "id")
        if named is not None:
            reader.fields.setdefault("id", "id")
        if named is not None and row.get(names.trial) is None:
            named = gathered.name_chat(reader, system, named, parse_cell(row[names.messages]))
        dialogue = named or f"line {reader.line}"
        chat = Chat(reader, row, system, dialogue, labels)
    elif row.get(JOINED):
        dialogue = dialogue or reader.read_identifier(row, "id")
    trial = gathered.trials.read(reader, row, system, dialogue)
    calls, expected = reader.read_calls(row, None if chat is None else chat.log)
    gathered.counts["scores", system] += count_scores(row, row.get(names.messages)) or _count_rewards(trial)
    if chat is not None:
        replies = chat.close(trial is not None, bool(calls))
        if len(replies) == 1:
            replies[0].values = reader.read_values(row) | replies[0].values
        elif reader.read_turn_labels(row) is not None:
            add_warning(f"{names.labels} of a whole chat are not read; put them into its messages")
    else:
        (response, failure), references = reader.read_response(row), reader.read_references(row)
        if failure == MISSING and calls:  # it only calls tools
            failure = None
        (context, roles), turn, asked = reader.read_context(row), reader.read_turn(row), row.get(ASKED)
        asked = asked if isinstance(asked, int) else -1
        place = (False, system, dialogue, turn, labels)
        replies = [ReplyRow(response, references, context, roles, *place, failure, asked, reader.read_values(row))]
    if replies:
        replies[0].values[inputs.TRIALS] = trial and [trial]
        replies[-1].values |= {inputs.CALLS: calls, inputs.EXPECTED_CALLS: expected}
    return replies


def _read_reward(value: object) -> float | None:
    """Return a reward as a number: a number, or the score of an inspect_ai sample."""
    return read_grade(value.get("value") if isinstance(value, dict) else value)


def _count_rewards(trial: JsonObject | None) -> int:
    """Return the number of scores of a trial, where its row lists none: its reward, or the parts of it."""
    return 0 if trial is None else max(len(trial["parts"]), int(trial["reward"] is not None))


class _Trials:
    """A reader of trials that finds those that occur twice."""

    def __init__(self) -> None:
        self.judged = False
        """Whether a trial has a reward."""
        self._is_scale = False
        """Whether rewards are points of a scale, and not passes and failures."""
        self._met: set[tuple[_Task, str]] = set()

    def read(self, reader: FieldReader, row: RowObject, system: str | None, task: str | None) -> JsonObject | None:
        """Return the trial that a row is; a problem where its reward is no number, or it occurs twice."""
        names = reader.names
        if row.get(names.trial) is None:
            return None
        trial, given = reader.read_identifier(row, names.trial), row.get(names.reward)
        is_grade = isinstance(given, dict) and "value" in given
        scores = given if isinstance(given, dict) and not is_grade else {}
        parts = {key: _read_reward(score) for key, score in scores.items()}
        if len(parts) > 1:
            chosen = f"choose one: --field reward={names.reward if names.reward != 'reward' else 'scores'}.NAME"
            add_warning(f"{reader.where} has several scores, {', '.join(parts)}, and no reward; {chosen}")
        reward = (next(iter(parts.values())) if len(parts) == 1 else None) if scores else _read_reward(given)
        if reward is not None and not -WITHIN <= reward <= 1 + WITHIN:
            self._is_scale, reward = True, None
            add_warning(f"{reader.where}: {names.reward} is not between 0 and 1, so no trial passed or failed")
        if reward is None and not parts and not self._is_scale and given is not None and given != {}:
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
        self.judged = (self.judged or reward is not None) and not self._is_scale
        if reward is not None:
            reader.fields.setdefault("reward", names.reward)
        if isinstance(own := row.get(names.reward_parts), dict):
            parts = {str(key): _read_reward(each) for key, each in own.items()}
        elif len(parts) == 1:  # a single score is the reward itself
            parts = {}
        end, cost = row.get(names.termination), read_number(row.get(names.cost))
        known = {key: value for key, value in sorted(parts.items()) if value is not None}
        end = end if isinstance(end, str) else None
        return {"cost": cost, "end": end, "parts": known, "reward": reward, "task": task, "trial": trial}


def gather_texts(records: Records, names: FieldNames, need: Input) -> RaggedColumn:
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
        if isinstance(row, dict) and need == inputs.REFERENCE and field == own:
            lists.append(reader.read_references(row))
        elif isinstance(row, dict) and field != own and field not in row:
            reader.add_problem(*describe_missing(field, str(need), row))
        else:
            value = row.get(field) if isinstance(row, dict) else row
            turns = [turn.shown for turn in reader.read_turns(value, field)] if need == inputs.CONTEXT else None
            lists.append(reader.read_texts(value, field) if turns is None else turns)
    if not records.problems and not lists:
        records.problems.append(no_rows(records.where))
    records.raise_problems()
    return RaggedColumn.from_lists(lists)


def _find_field(records: Records, held: Sequence[tuple[int, object]], names: FieldNames, need: Input) -> str:
    """Return the field that holds the texts of a need: its own, else `response`, else the only one there is.

    It is the name of the need where the rows have no fields.
    """
    there = tuple(dict.fromkeys(key for _, row in held if isinstance(row, dict) for key in row))
    own = names.name(need)
    if not there:
        return own
    found = next((name for name in (own, names.response) if name in there), there[0] if len(there) == 1 else None)
    if found is None:
        what, remedy = describe_missing(own, str(need), there)
        records.problems.append(Problem(records.where, held[0][0], what, remedy))
        records.raise_problems()
    return found or own


def no_rows(where: str) -> Problem:
    """Return the problem of an input without a single response."""
    return Problem(where, None, "holds no rows", "give at least one response")
