"""Fields of parsed rows, with a problem for every invalid value.

A row is an object with `response` and, where known, `dialog_id`, `turn`, `system`, `context`, `reference` and
`response_is_reference`; `messages` makes it a chat (see `gathering`). `row_shapes` maps rows of other programs to these
fields. `FieldNames` has the names of the fields in the input. `FieldReader` reads them row by row: it adds every
problem and continues with an empty value, so that one pass over a file finds all of them; its caller raises in the end
if there are any.

- `response`: a string; or a message, or a list of these, of which the assistant's last one counts.
- `context`: a string (one turn), a list of strings, a list of `speaker`/`text` objects or of messages, or null. System
  prompts (the role `system` at the start and nowhere else) are part of it only if asked for.
- `reference`: a string, a list of strings, or null; none at all where `response_is_reference` is true.
- `dialog_id`, `system`: a string or a whole number; an empty string and NaN count as not given.
- further fields that are asked for: a text, a number, true or false, a list of these, or null.
- `labels`: an object of labels of the response, or a list of such objects, one per annotator (see `read_labels`).
- `latency`: the seconds until the response was there, or the times of its start and its end.
- `turn`: a whole number from 0 on, also as a string of digits, as in a cell of a CSV file.

`messages` reads the messages of chats.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

import numpy as np

from dialeval.core import inputs
from dialeval.core.account import ERROR, MISSING
from dialeval.core.errors import Problem, add_warning
from dialeval.core.inputs import Input
from dialeval.core.validation import JsonObject
from dialeval.io.calls import CallLog, join_chunks, parse_text, read_calls, read_expected_calls, unwrap
from dialeval.io.messages import ROLES, Message, find_role, read_message, read_status
from dialeval.io.outcomes import is_failed
from dialeval.io.row_shapes import explain_shape, parse_reply, value_at
from dialeval.io.rows import (
    ASSISTANT,
    CONTENT_KEYS,
    LISTS,
    OUR_ROLES,
    PROMPT,
    ROLE_KEYS,
    SCORE_FIELDS,
    SYSTEM,
    TIME_KEYS,
    USER,
    FieldNames,
    RowObject,
    join_names,
    kind_of,
    read_number,
)
from dialeval.io.scores import read_score, read_scores, take_value

_MILLISECONDS = 1e11
"""Times beyond it are milliseconds: as seconds they would be after the year 5000."""
_LABEL = re.compile(r"[^\w.+-]+")
_LABELS_ARE = "labels are texts, lists of texts, true or false, or fractions"

LARGEST_TURN = 2**63 - 1
_TRUE = {True, "true", "1"}
_FALSE = {False, None, "false", "0", ""}
_ONLY_TEXTS = frozenset({str})
_USUAL = ["answer", "output", "prediction", "hypothesis", "generated_text", "generation", "completion", "reply", "text"]
"""What responses are often called; for a remedy, and never taken without being asked."""
_ASKED = ("prompt", "question", "query", "input", "instruction", "user_input", "user", "request")
"""What the turn of the user is often called; for a remedy too."""


def describe_missing(name: str, wanted: str, there: Iterable[object]) -> tuple[str, str]:
    """Return what is wrong with a row or a table without a field, and the remedy.

    Of a row (a mapping) the values are looked at: for a text that may be the reply, and for a list of messages.
    """
    names = [str(each) for each in there]
    lowered = {each.lower().strip(): each for each in reversed(names)}
    likely = next((lowered[each] for each in (wanted, *_USUAL) if each in lowered), None)
    texts, chats = ({}, []) if wanted != "response" or not isinstance(there, Mapping) else _search_texts(there)
    asked = [path for path in texts if path.rpartition(".")[2].lower() in _ASKED]
    usual = [path for path in texts if path.rpartition(".")[2].lower() in _USUAL]
    longest = max(texts.keys() - asked, key=lambda path: len(texts[path]), default=None)
    mapped = (likely or next(iter(usual), longest) or "NAME") if wanted == "response" else "NAME"
    given = "NAME" if mapped == "NAME" else repr(mapped)
    context = f" --field context={asked[0]}" if asked and mapped != "NAME" else ""
    both = f"--field {wanted}={mapped}{context} (fields={{{wanted!r}: {given}}} in Python)"
    if chats:
        mapped, both = chats[0], f"--field messages={chats[0]} (fields={{'messages': {chats[0]!r}}} in Python)"
    remedy = f"name it {'messages' if chats else wanted}, or map the name it has: {both}"
    if wanted == "response" and isinstance(there, Mapping):
        remedy += "; or the replies are in another file; or `dialeval formats` does not list the program"
    return f"has no field {name!r}, only {join_names(names)}", remedy


def _search_texts(row: Mapping[object, object], path: str = "", depth: int = 3) -> tuple[dict[str, str], list[str]]:
    """Return the texts in a row that are sentences, by path, and the paths of lists of objects with texts."""
    texts: dict[str, str] = {}
    chats: list[str] = []
    for key, value in row.items():
        place = f"{path}{key}"
        first = value[0] if isinstance(value, LISTS) and value else None
        if isinstance(value, str) and (" " in value.strip() or key in _USUAL):
            texts[place] = value
        elif isinstance(first, Mapping) and any(isinstance(first.get(name), str) for name in CONTENT_KEYS):
            chats.append(place)
        elif isinstance(value, Mapping) and depth:
            inner, more = _search_texts(value, f"{place}.", depth - 1)
            texts |= inner
            chats += more
    return texts, chats


class FieldReader:
    """A reader of the fields of rows; `line` is the line of the current row, `problems` collects what is wrong."""

    __slots__ = ("_speakers", "_unknown", "bare_latencies", "fields", "line", "names", "problems", "where")

    def __init__(self, where: str, names: FieldNames, problems: list[Problem]) -> None:
        self.where, self.names, self.problems = where, names, problems
        self.line = 0
        self.fields: dict[str, str] = {}
        """Which field was read as what, where a row may have it by several names."""
        self.bare_latencies: list[float] = []
        """Latencies whose field does not name their unit."""
        self._unknown: Counter[str] = Counter()
        self._speakers: dict[str, str] = {}

    def add_problem(self, what: str, remedy: str) -> None:
        """Add a problem of the current row."""
        self.problems.append(Problem(self.where, self.line, what, remedy))

    def add_unknown_shape(self, row: RowObject) -> None:
        """Add the problem of a row without a response, once for all rows with the same problem."""
        lacking, by_fields = describe_missing(self.names.response, "response", row)
        what, remedy = explain_shape(row, self.names) or (lacking, by_fields)
        remedy = by_fields if "=NAME" in remedy else remedy
        if what not in self._unknown:
            self.add_problem(what, remedy)
        self._unknown[what] += 1

    def add_unknown_role(self, role: str, what: str) -> None:
        """Add the problem of a speaker whose role is not known, once for all of its messages."""
        is_first = role not in self._speakers
        known = self._speakers.setdefault(role, f"{what} has the role {role!r:.40}")
        if is_first:
            likely = [ROLES[name] for name in get_close_matches(role.lower(), ROLES, 1, 0.85)]
            ours = (likely or [USER if len(self._speakers) == 1 else ASSISTANT])[0]
            mapped = f"--role {shlex.quote(role)}={ours} (roles={{{role!r}: {ours!r}}} in Python)"
            self.add_problem(known, f"use one of {', '.join(OUR_ROLES)}, or map it: {mapped}")
        self._unknown[known] += 1

    def count_unknown(self) -> None:
        """Add the number of further rows to the problems of rows of an unknown shape, or of messages of a speaker."""
        for at, problem in enumerate(self.problems):
            if (more := self._unknown[problem.what] - 1) > 0:
                counted = "messages" if problem.what in self._speakers.values() else "rows"
                self.problems[at] = replace(problem, what=f"{problem.what} (and {more:,} more {counted})")

    def read_text(self, value: object, what: str, index: int | None = None) -> str:
        """Return a string of Unicode text; `what` and `index` name it if it is none."""
        if isinstance(value, str) and (value.isascii() or _is_unicode(value)):
            return value
        what = what if index is None else f"{what}[{index}]"
        if isinstance(value, str):
            self.add_problem(f"{what} holds half of a surrogate pair", "decode the text with the right encoding first")
        else:
            self.add_problem(f"{what} is {kind_of(value)}", "make it a string")
        return ""

    def read_response(self, row: RowObject) -> tuple[str, str | None]:
        """Return the response, and why it failed where the row says so; a null is a reply that is not there."""
        name = self.names.response
        value, failure = row.get(name), ERROR if self.is_failed(row) else None
        self.fields.setdefault("reply", name)
        if type(value) is str:
            return self.read_text(value, name), failure
        if (
            value is None
            or (isinstance(value, float) and value != value)
            or (failure is not None and value in ([], {}))
        ):
            if failure is None and (name not in row or explain_shape(row, self.names) is not None):
                self.add_unknown_shape(row)
            return "", failure or MISSING
        if isinstance(value, dict) and self.names.response == "response" and (known := explain_shape(row, self.names)):
            self.add_problem(*known)
            return "", None
        text = self._read_answer(value, name)
        return text or "", failure or (MISSING if text is None else None)

    def is_failed(self, row: RowObject) -> bool:
        """Return whether a row or a message declares an error."""
        return is_failed(*read_status(row, self.names))

    def _read_answer(self, value: object, name: str) -> str | None:
        """Return what a message says, or the last message of the assistant among several; nothing if it only calls."""
        if not isinstance(value, dict | list | tuple):
            return self.read_text(value, name)
        given = list(value) if isinstance(value, LISTS) else [value]
        if (joined := join_chunks(given)) is not None:
            given = [joined]
        said = [each for each in given if not isinstance(each, dict) or _is_spoken(each, self.names)]
        if not said and self._read_log(given, name).calls:
            return ""
        if not said or not isinstance(said[-1], dict):
            return self.read_text(value, name)
        message = read_message(self, unwrap(said[-1]) or said[-1], name, ASSISTANT)
        return message.text if message.failure is None else None

    def read_calls(
        self, row: RowObject, log: CallLog | None = None
    ) -> tuple[list[JsonObject] | None, list[JsonObject] | None]:
        """Return the calls of a row and the expected ones (see `calls`), None where there are none to look at.

        Args:
            row: The row.
            log: The calls of its messages, where it is a chat.
        """
        expected = self._read_call_list(row, self.names.expected_calls)
        made, said = self._read_call_list(row, self.names.tool_calls), row.get(self.names.response)
        if log is None and isinstance(said, dict | list | tuple):
            log = self._read_log(said, self.names.response)
        calls: list[JsonObject] | None = None
        if made is not None and any(isinstance(each, dict) and "role" in each for each in made):
            log, made = self._read_log(made, self.names.tool_calls), None
        if made is not None:
            calls = read_calls(made)
        elif log is not None and log.calls:
            calls = log.to_objects()
        if calls is None and (expected is not None or self.names.every_call):
            calls = []
        return calls, None if expected is None else read_expected_calls(expected)

    def _read_call_list(self, row: RowObject, name: str) -> list[object] | None:
        """Return the calls that a field lists; in a cell of a table they may be JSON."""
        value = parse_cell(row.get(name))
        if value is None or (isinstance(value, float) and value != value):
            return None
        if isinstance(value, np.ndarray | list | tuple):
            return list(value)
        if not isinstance(value, dict):
            self.add_problem(f"{name} is {kind_of(value)}", "make it a list of objects with name and arguments")
        return [value]

    def _read_log(self, value: object, name: str) -> CallLog:
        """Return the calls in a message or in several, whatever else is wrong with these."""
        reader, log = FieldReader(self.where, self.names, []), CallLog()
        for each in value if isinstance(value, LISTS) else [value]:
            given = unwrap(each) if isinstance(each, dict) else None
            if given is not None:
                role = find_role(given.get("role", given.get("from", ASSISTANT)), self.names) or ""
                message = read_message(reader, given, name, role)
                log.add(message.calls if role == ASSISTANT else (), message.results)
        return log

    def read_references(self, row: RowObject) -> list[str]:
        """Return the references of a row."""
        if self.names.response_is_reference in row and self._is_reference(row):
            return []
        references = self.read_texts(row.get(self.names.reference), self.names.reference)
        if references:
            self.fields.setdefault("reference", self.names.reference)
        return references

    def read_context(self, row: RowObject) -> tuple[list[str], list[str]]:
        """Return the turns of a row's context, and the role of each; no roles where no turn has one."""
        name = self.names.find_context(row)
        value = _parse_chat(row.get(name))
        if name == PROMPT and value:
            self.fields.setdefault("context", name)
        if type(value) is str or (type(value) is list and _ONLY_TEXTS.issuperset(map(type, value))):
            return self.read_texts(value, name), []
        turns = self.read_turns(value, name)
        roles = [turn.role for turn in turns]
        return [turn.shown for turn in turns], roles if any(roles) else []

    def read_texts(self, value: object, name: str) -> list[str]:
        """Return the texts in the value of a field: none in null, one in a string, any number in a list."""
        if type(value) is str:
            return [self.read_text(value, name)]
        items = enumerate(value) if type(value) is list else self._list_items(value, name)
        return [self.read_text(item, name, index) for index, item in items]

    def read_turns(self, value: object, name: str) -> list[Message]:
        """Return the turns in the value of a field, as `texts` does; items may also be objects with a role."""
        turns = [self._read_turn(item, name, index) for index, item in self._list_items(value, name)]
        if self.names.system_prompts or not turns or turns[0].role != SYSTEM:
            return turns
        # Where the role comes back later it is that of the bot, as in many sets of task dialogues.
        prompts = sum(1 for _ in takewhile(lambda turn: turn.role == SYSTEM, turns))
        return turns if any(turn.role == SYSTEM for turn in turns[prompts:]) else turns[prompts:]

    def _list_items(self, value: object, name: str) -> list[tuple[int | None, object]]:
        if value is None or (isinstance(value, float) and value != value):
            return []
        if isinstance(value, str):
            return [(None, value)]
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, LISTS):
            return list(enumerate(value))
        remedy = "make it a string or a list of strings, or null where there is none"
        self.add_problem(f"{name} is {kind_of(value)}", remedy)
        return []

    def _read_turn(self, value: object, what: str, index: int | None) -> Message:
        """Return one turn of a context: a string, or an object with `text` or `content`."""
        if not isinstance(value, dict):
            return Message("", self.read_text(value, what, index))
        value = unwrap(value) or value
        role = next((value[key] for key in ROLE_KEYS[:2] if isinstance(value.get(key), str)), None)
        return read_message(self, value, f"{what}[{index}]", find_role(role, self.names) or "")

    def read_dialogue(self, row: RowObject) -> str | None:
        """Return the dialogue's name, if the row gives one."""
        name = self.names.find_dialog_id(row)
        dialogue = self.read_identifier(row, name)
        if dialogue is not None:
            self.fields.setdefault("id", name)
        return dialogue

    def read_identifier(self, row: RowObject, name: str) -> str | None:
        """Return a name or number of something."""
        value = row.get(name)
        if value is None or (isinstance(value, str) and not value):
            return None
        if isinstance(value, str):
            return self.read_text(value, name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, float) and (value != value or value.is_integer()):  # a table's numbers, some missing
            return None if value != value else str(int(value))
        self.add_problem(f"{name} is {kind_of(value)}", "make it a string or a whole number")
        return None

    def read_system(self, row: RowObject) -> str | None:
        """Return the name of the system; where `system` is a prompt, that of the model, if the row has one."""
        name = self.names.system
        if name == "system" and looks_like_prompt(row.get(name)):
            name = next((each for each in ("system_name", "model") if isinstance(row.get(each), str)), "")
            self.fields.setdefault("system prompt", "system")
        system = self.read_identifier(row, name) if name else None
        self.fields.setdefault("system", "the file name" if system is None else name)
        return system

    def read_labels(self, value: object, name: str) -> list[str]:
        """Return the values of a further field as texts: none for null and an empty text, several for a list."""
        values = value.tolist() if isinstance(value, np.ndarray) else value
        values = values if isinstance(values, LISTS) else [values]
        return [label for each in values for label in self._read_label(each, name)]

    def _read_label(self, value: object, name: str) -> list[str]:
        if value is None or value == "" or value != value:  # a table has NaN where a number is missing
            return []
        if isinstance(value, str):
            return [self.read_text(value, name)]
        if isinstance(value, bool | np.bool_):
            return [str(value).lower()]
        if isinstance(value, int | float | np.number):
            return [str(int(value)) if float(value).is_integer() else repr(float(value))]
        self.add_problem(f"{name} is {kind_of(value)}", "make it a text, a number, or a list of these")
        return []

    def read_values(self, row: RowObject, since: float | None = None) -> dict[Input, Any]:
        """Return the labels and the latency of a row or a message, where it has them; `since`: see `read_latency`."""
        found = {inputs.TURN_LABELS: self.read_turn_labels(row), inputs.LATENCY: self.read_latency(row, since)}
        return {column: value for column, value in found.items() if value is not None}

    def read_turn_labels(self, row: RowObject) -> dict[str, list[Any]] | None:
        """Return the labels of a response; None where there are none."""
        given = parse_cell(row.get(self.names.labels))
        return read_labels(given if isinstance(given, LISTS) else [given]) or None

    def read_latency(self, row: RowObject, since: float | None = None) -> float | None:
        """Return the seconds until the response; `since`: the time of the message before."""
        name = next((name for name in self.names.latencies if row.get(name) is not None), self.names.latency)
        given, unit = row.get(name), self.names.latencies.get(name, 1.0)
        if given is None and since is not None and (time := read_message_time(row)) is not None:
            given = time - since
        elif isinstance(given, LISTS):
            start, end = map(read_time, given) if len(given) == 2 else (None, None)
            given = None if start is None or end is None else end - start
        seconds = None if isinstance(given, bool) else read_number(given)
        if seconds is None or seconds < 0:
            return None
        self.fields.setdefault("latency", name + (" (milliseconds)" if unit != 1 else ""))
        if name == self.names.latency and unit == 1 and not isinstance(row.get(name), LISTS):
            self.bare_latencies.append(seconds)
        return seconds if unit == 1 else seconds * unit

    def read_columns(self, row: RowObject) -> dict[Input, object]:
        """Return the values of the fields of a row or a message that metrics ask for, and its scores."""
        found: dict[Input, object] = {}
        for column in self.names.columns:
            name = column.field or ""
            given = value_at(row, name)
            value = given.tolist() if isinstance(given, np.ndarray | np.generic) else given
            if value is None or value != value:
                continue
            if column.kind in ("number", "boolean"):
                value = self._read_score(value, name)
            elif column.kind in ("text", "label"):
                value = " ".join(self.read_labels(value, name))
            if value is not None:
                found[column] = value
        if self.names.scores and (scores := self._read_scores(row)):
            found[inputs.SCORES] = scores
        return found

    def _read_scores(self, row: RowObject) -> dict[str, float]:
        """Return the scores of a row or a message that are asked for."""
        nested = list_scores(row)
        found: dict[str, float] = {}
        for name in self.names.scores:
            value = value_at(row, name)
            value = nested.get(name) if value is None else value
            number = None if value is None or value != value or value == "" else self._read_score(value, name)
            if number is not None:
                found[name] = number
        if "*" in self.names.scores:
            own = {
                key: value
                for key, value in row.items()
                if _SCORE_NAME.search(key) and key not in self.names.all and not isinstance(value, Mapping | list)
            }
            numbers = {name: read_score(value) for name, value in {**own, **nested}.items()}
            found |= {name: take_value(score) for name, score in numbers.items() if score is not None}
        return found

    def _read_score(self, value: object, name: str) -> float | None:
        score = read_score(value)
        if score is None:
            shown = f"the text {value!r:.40}" if isinstance(value, str) else kind_of(value)
            self.add_problem(f"{name} is {shown}", "make it a number, yes or no; or null where there is none")
        return None if score is None else take_value(score)

    def read_turn(self, row: RowObject) -> int | None:
        """Return the number of the turn, if the row gives one."""
        value = row.get(self.names.turn)
        if value is None or (isinstance(value, str) and not value) or (isinstance(value, float) and value != value):
            return None
        number = _read_whole_number(value)
        if number is None or not 0 <= number <= LARGEST_TURN:
            shown = f"{value!r:.40}" if isinstance(value, str | int | float) else kind_of(value)
            self.add_problem(f"{self.names.turn} is {shown}", "make it a whole number from 0 on")
            return None
        return number

    def _is_reference(self, row: RowObject) -> bool:
        name = self.names.response_is_reference
        value = row[name]
        truth = value.lower() if isinstance(value, str) else value
        if isinstance(truth, str | bool | None) and truth in _TRUE | _FALSE:
            return truth in _TRUE
        self.add_problem(f"{name} is {kind_of(value)}", "make it true or false")
        return False


def read_labels(annotators: Iterable[object]) -> dict[str, list[Any]]:
    """Return by label how many annotators gave it, and how many of these each value.

    A value is a text, a list of texts (all that apply), or true or false, which is counted as an empty text; a number
    from 0 to 1 is the fraction of annotators who say yes. A list of yes and no, or of lists of texts, is that of
    several annotators. Null is no label. Characters but letters, digits and `. + -` become `_`.
    """
    found: dict[str, list[Any]] = {}
    for labels in annotators:
        for name, given in labels.items() if isinstance(labels, dict) else ():
            said = list(given) if isinstance(given, LISTS) else [given]
            if all(isinstance(each, str) for each in said):  # all that apply, by one annotator
                said = [] if given == "" else [[each for each in said if each]]
            own = found.setdefault(_LABEL.sub("_", str(name)), [0, {}])
            for each in said:
                if not (counts := _count_values(each)) and each != []:
                    if each is not None and each == each:  # a table has NaN where a label is missing
                        add_warning(f"the label {name!r:.40} is {kind_of(each)}, and is not read: {_LABELS_ARE}")
                    continue
                own[0] += 1
                for value, count in counts.items():
                    own[1][value] = own[1].get(value, 0) + count
    return {name: own for name, own in found.items() if own[0]}


def _count_values(value: object) -> dict[str, float]:
    """Return the values that one annotator gives a label; none for what is no label."""
    if isinstance(value, LISTS):
        return {_LABEL.sub("_", each): 1 for each in value if isinstance(each, str) and each}
    number = isinstance(value, int | float | np.bool_ | np.integer) and 0 <= value <= 1
    return {"": float(value) if isinstance(value, float) else int(value)} if number else {}  # type: ignore[call-overload]


_SCORE_NAME = re.compile(
    r"(^|_|[a-z](?=[A-Z]))(score|rating|grade|thumb|reward|csat|nps|stars?|quality|helpful|correct|accura|relevan|faithful"
    r"|fluen|coheren|toxic|success|resolved|satisf|passed|vote|hallucinat)",
    re.IGNORECASE,
)
"""Names of fields that are scores, where all are asked for."""


def list_scores(row: RowObject) -> dict[str, object]:
    """Return the scores in the fields of a row that hold several, by name."""
    found: dict[str, object] = {}
    for field in SCORE_FIELDS:
        if row.get(field) is not None:
            found = {**read_scores(row[field]), **found}
    return found


_PROMPT = re.compile(
    r"(you are|you're|act as|your (task|role|job|goal)|always|never|please|answer|respond|be) ", re.IGNORECASE
)


def looks_like_prompt(value: object) -> bool:
    """Return whether the value of a field `system` is a system prompt and not the name of a system."""
    if not isinstance(value, str) or value.count(" ") < 1:
        return False
    is_sentence = value.count(" ") > 1 and value.rstrip()[-1:] in tuple(".!?:")
    return is_sentence or len(value) > 80 or "\n" in value or _PROMPT.match(value) is not None


def read_message_time(message: Mapping[str, object]) -> float | None:
    """Return the time of a message as seconds, where it has one."""
    given = next((message[key] for key in TIME_KEYS if message.get(key) is not None), None)
    return None if given is None else read_time(given)


def read_time(value: object) -> float | None:
    """Return a time as seconds: a number of seconds or milliseconds since 1970, or a text as ISO 8601 has it."""
    if isinstance(value, int | float) and (number := read_number(value)) is not None:
        return number / 1000 if abs(number) > _MILLISECONDS else number
    try:
        time = datetime.fromisoformat(re.sub("[zZ]$", "+00:00", value)) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(time, datetime):
        return None
    return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp()


def parse_cell(value: object) -> object:
    """Return a list or an object, also where a cell of a table or a field holds it as JSON; else the value as it is."""
    is_json = isinstance(value, str) and value.lstrip().startswith(("[", "{"))
    return parse_text(value, "") if is_json else value


def _parse_chat(value: object) -> object:
    """Return a context, also a chat that is written as JSON, by itself or as the only item of a list."""
    text = value[0] if isinstance(value, LISTS) and len(value) == 1 else value
    chat = parse_reply(text) if isinstance(text, str) else text
    return value if chat is text else chat


def _is_spoken(message: Mapping[str, object], names: FieldNames) -> bool:
    """Return whether a message is the assistant's or has no role and type; thoughts and calls of an API have a type."""
    role = message.get("role", message.get("from", message.get("message.role")))
    if role is None:
        return message.get("type") is None
    return find_role(role, names) == ASSISTANT


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_whole_number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None
