"""Chats: rows whose messages are a conversation, and messages that are rows of their own.

Each message of the assistant is one reply. Its context is every message before it but for system prompts, which are
part of it only if asked for; its turn is its number among the replies of the chat, from 1 on. A message that only calls
a tool is no reply: the call is in the context of those after it. Messages that all have a time are in its order.

The assistant owes a reply to the user's last turn, and to a chat in which nobody speaks: where none is there, the chat
has a row without a reply, whose `failure` says why. Nothing is owed after a trial, which its simulated user ends, and
an assistant that calls tools and says nothing has an empty row that is no failure.

A field next to the messages (`OUTPUTS`) that holds a reply is the reply to them, and they are its context. Where the
last message is that reply too, it is counted once.

A table with the id of a conversation, a role and a text in each row is read as chats: rows with one id belong together,
in the order of their times or numbers (`_ORDERS`), else in that of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np

from dialeval.core.account import ERROR, MISSING
from dialeval.core.errors import add_warning
from dialeval.core.inputs import Input
from dialeval.io.calls import CallLog, read_result, unwrap
from dialeval.io.fields import FieldReader, looks_like_prompt, parse_cell, read_message_time
from dialeval.io.messages import Message, find_role, read_message, read_plain_message, read_role
from dialeval.io.outcomes import remove_reasoning
from dialeval.io.row_shapes import find, find_shape, parse_reply
from dialeval.io.rows import (
    ASSISTANT,
    CONTENT_KEYS,
    DIALOGUE_IDS,
    LISTS,
    ROLE_KEYS,
    SYSTEM,
    TIME_KEYS,
    TOOL,
    USER,
    FieldNames,
    RowObject,
    kind_of,
    read_number,
)

OUTPUTS = ("response", "output", "completion", "reply", "generation", "generated_text", "model_output")
"""The fields with the reply, next to the messages of a request."""
INDEX = "message_index"
"""A field that can be kept: the place of a reply among the messages of its chat."""
HISTORY = "history"
"""The field with messages before those of a chat: their context, whose replies are not read."""
JOINED = "\0reply next to messages"
"""A mark of rows whose messages became their context."""
_ORDERS = ("turn", "turn_index", "turn_id", "index", "message_index", "position", "sequence", "seq")
"""The fields by which the messages of a conversation are ordered, where they are rows of their own without a time."""
_SPELLINGS = {
    re.sub("[^a-z]", "", name.lower()): name for name in (*DIALOGUE_IDS, *ROLE_KEYS, *CONTENT_KEYS, *TIME_KEYS)
}
_OF_MESSAGES = frozenset({*ROLE_KEYS, *CONTENT_KEYS, *TIME_KEYS, *_ORDERS, "id", "latency", "labels"})


@dataclass(slots=True)
class ReplyRow:
    """One reply with what belongs to it."""

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
    failure: str | None = None
    """Why the reply failed, where the log says so."""
    asked: int = -1
    """User turns since the reply before; -1 where they are counted by contexts."""
    values: dict[Input, Any] = field(default_factory=dict)
    """Its calls, trial, labels and latency, and what metrics ask for, by column; None where it has none."""
    shared: Mapping[Input, object] = field(default_factory=dict)
    """Values that are of the whole conversation, and count in its last reply."""


class Chat:
    """The replies of a conversation, from one message after the other.

    Attributes:
        replies: The replies so far.
        log: The calls of tools so far.
    """

    def __init__(
        self, reader: FieldReader, row: RowObject, system: str | None, dialogue: str, labels: Sequence[Sequence[str]]
    ) -> None:
        names = reader.names
        self._reader, self._row, self._labels = reader, row, labels
        self._system, self._dialogue = system, dialogue
        self._references: Sequence[str] = ()
        self._said: list[str] = []
        self._roles: list[str] = []
        if isinstance(given := row.get(HISTORY), LISTS):
            turns = reader.read_turns(list(given), HISTORY)
            self._said, self._roles = [turn.shown for turn in turns], [turn.role for turn in turns]
        self._earlier = self._roles.count(USER)
        """Turns of the user in the history, which are those of another conversation or file."""
        self._since: float | None = None
        self.replies: list[ReplyRow] = []
        self.log = CallLog()
        messages = parse_cell(row[names.messages])
        self.is_list = isinstance(messages, LISTS)
        if not isinstance(messages, LISTS):
            reader.add_problem(f"{names.messages} is {kind_of(messages)}", "make it a list of role/content objects")
            return
        prompt = row.get(names.system)
        if names.system_prompts and names.system == "system" and looks_like_prompt(prompt):
            messages = [{"role": SYSTEM, "content": prompt}, *messages]
        self._references = reader.read_references(row)
        first = next((message for message in messages if isinstance(message, dict)), {})
        if (role := next((key for key in ROLE_KEYS if key in first), None)) is not None:
            reader.fields.setdefault("role", role)
        for index, given in enumerate(_sort_by_time(messages)):
            self._add(index, given)
        if self._references and len(self.replies) > 1:
            what = f"has {names.reference} for one response but {len(self.replies)} assistant messages"
            reader.add_problem(what, "give one row per response")

    def _add(self, index: int, given: Any) -> None:
        """Add a message."""
        reader, names, failure = self._reader, self._reader.names, None
        what = names.messages
        if (plain := read_plain_message(given, names)) is not None:
            role, text = plain[0], reader.read_text(plain[1], what, index)
            shown, speaks = text, role == ASSISTANT
            if role == TOOL:
                self.log.add((), [read_result(given, text)])
        elif (message := read_spoken(reader, given, f"{what}[{index}]")) is not None:
            role, text, shown, failure = message.role, message.text, message.shown, message.failure
            self.log.add(message.calls if role == ASSISTANT else (), message.results)
            speaks = role == ASSISTANT and (bool(message.text.strip()) or not message.calls)
            if speaks and reader.is_failed(given):
                failure = ERROR
        else:
            return
        if role == ASSISTANT:
            reader.fields.setdefault("reply", what)
        if role == SYSTEM and not names.system_prompts:
            return
        if speaks:
            values = {} if plain else reader.read_values(given, self._since) | reader.read_columns(given)
            self._add_reply(text, index, failure, values)
            shown = shown if names.keep_reasoning else remove_reasoning(shown)
        if speaks or role == USER:  # a plain message has a role and a text, and no time
            self._since = None if plain else read_message_time(given)
        self._said.append(shown)
        self._roles.append(role)

    def _add_reply(self, text: str, index: int, failure: str | None, values: dict[Input, Any] | None = None) -> None:
        labels, kept, asked = self._labels, self._reader.names.kept, self._roles.count(USER) - self._earlier
        self._earlier = 0
        if INDEX in kept:
            labels = [[str(index)] if name == INDEX else own for name, own in zip(kept, labels, strict=True)]
        place = (bool(self.replies), self._system, self._dialogue, len(self.replies) + 1, labels)
        row = ReplyRow(text, self._references, self._said, self._roles, *place, failure, asked, values or {})
        self.replies.append(row)
        self._said, self._roles = [], []

    def close(self, tried: bool, called: bool) -> list[ReplyRow]:
        """Return the replies, with one that is missing or empty where the assistant owes one.

        Args:
            tried: Whether the conversation is a trial.
            called: Whether the assistant called tools.
        """
        if not self.is_list:
            return []
        failed, asked = self._reader.is_failed(self._row), self._roles.count(USER) - self._earlier
        failure = ERROR if failed else MISSING
        if not self.replies:
            self._cut_at_calls()
            self._add_reply("", len(self._said), failure if failed or not called else None)
            self.replies[0].asked = asked
        elif (self._roles[-1:] == [USER] or (failed and asked)) and not tried:
            self._add_reply("", len(self._said), failure)
        else:
            self.replies[-1].asked += asked
            if failed and len(self.replies) == 1:
                self.replies[0].failure = ERROR
        return self.replies

    def _cut_at_calls(self) -> None:
        """Leave out what comes after the first turn of an assistant that only calls tools."""
        first = self._roles.index(ASSISTANT) if ASSISTANT in self._roles else len(self._roles)
        self._said, self._roles = self._said[:first], self._roles[:first]


def _sort_by_time(messages: Sequence[object]) -> Sequence[object]:
    """Return messages in the order of their times, if all have one; newest first is reversed."""
    if not messages or not isinstance(messages[0], dict) or read_message_time(messages[0]) is None:
        return messages
    times = [read_message_time(message) if isinstance(message, dict) else None for message in messages]
    known = [time for time in times if time is not None]
    if len(known) < len(messages) or known == sorted(known):
        return messages
    add_warning("messages that are not in the order of their times are sorted by time")
    ordered = list(zip(known, messages, strict=True))
    if known == sorted(known, reverse=True):
        ordered.reverse()
    return [message for _, message in sorted(ordered, key=itemgetter(0))]


def read_spoken(reader: FieldReader, given: object, what: str) -> Message | None:
    """Return a message of a chat; None, and a problem unless it is an item without a speaker, for what is none."""
    if not isinstance(given, dict):
        reader.add_problem(f"{what} is {kind_of(given)}", "make each message an object with role and content")
        return None
    message = unwrap(given)
    role = None if message is None else read_role(reader, message, what)
    return None if message is None or role is None else read_message(reader, message, what, role)


def join_output(reader: FieldReader, row: RowObject) -> tuple[RowObject, bool]:
    """Return a row whose messages are a request, and whose reply is next to them, as one with context and response.

    The second value: whether the reply was there twice.
    """
    names = reader.names
    outputs = (names.response,) if names.mapped else OUTPUTS
    name = next((field for field in outputs if row.get(field) is not None and field != names.messages), None)
    messages = parse_cell(row[names.messages])
    if name is None or not isinstance(messages, LISTS):
        return row, False
    output: Any = row[name]
    output = parse_reply(output) if isinstance(output, str) else output
    reader.fields.setdefault("reply", name)
    if isinstance(output, dict):
        output = find(output, "choices.0.message | message") or output
    joined: RowObject = {**row, names.response: output, JOINED: True}
    del joined[names.messages]
    scratch = FieldReader(reader.where, names, [])
    last = read_spoken(scratch, messages[-1], "") if messages else None
    twice = last is not None and last.role == ASSISTANT and bool(last.text)
    if last is not None and twice:
        if scratch.read_response(joined)[0] != last.text:
            remedy = "keep one; or map the other: --field messages=NAME"
            reader.add_problem(f"has two replies: {name}, and the last of {names.messages}", remedy)
        messages = messages[:-1]
    return {**joined, names.context: list(messages)}, twice


# Messages in rows of their own.


def is_message(row: object, names: FieldNames) -> bool:
    """Return whether the first row of an input is a message, and neither a row with a response nor a chat.

    Where the row names its conversation, a role may be one that the user has yet to map.
    """
    if not isinstance(row, dict) or row.get(names.messages) is not None:
        return False
    if names.response == "response" and row.get("response") is not None:
        return False
    row = _rename(row)
    if not names.mapped and find_shape(row) is not None:
        return False
    may_map = not names.mapped and row.get(names.find_dialog_id(row)) is not None
    has_role = _find_row_role(row, names) is not None or (may_map and any(row.get(key) for key in ROLE_KEYS))
    return has_role and _find_content(row, names) is not None


@lru_cache(maxsize=64)
def _find_spellings(keys: tuple[str, ...]) -> dict[str, str]:
    """Return the fields of messages whose names are written in another way, such as `Created At`, with the usual."""
    names = {key: _SPELLINGS.get(re.sub("[^a-z]", "", key.lower())) for key in keys}
    return {key: name for key, name in names.items() if name is not None and name not in keys}


def _rename(row: RowObject) -> RowObject:
    """Return a message with its role outside of any wrapper, and with the usual names of its fields."""
    row = unwrap(row) or row
    spellings = _find_spellings(tuple(row))
    return {spellings.get(key, key): value for key, value in row.items()} if spellings else row


def _find_row_role(message: RowObject, names: FieldNames) -> str | None:
    return find_role(next((message[key] for key in ROLE_KEYS if message.get(key) is not None), None), names)


def _find_content(row: RowObject, names: FieldNames) -> str | None:
    """Return the field of a message row with its text."""
    fields = (names.response,) if names.response != "response" else CONTENT_KEYS
    return next((key for key in fields if key in row), None)


def find_first_prompt(messages: object, names: FieldNames) -> object:
    """Return the first message of the user in a chat."""
    given = (
        [unwrap(message) or message for message in messages if isinstance(message, dict)]
        if isinstance(messages, LISTS)
        else []
    )
    return next((message for message in given if _find_row_role(message, names) == USER), None)


def group_messages(reader: FieldReader, rows: Iterator[tuple[int, object]]) -> Iterator[tuple[int, object]]:
    """Yield a chat for each conversation of rows that are messages, each with the line of its first message.

    Where none of them says of which conversation it is, they are one.
    """
    names = reader.names
    chats: dict[str, tuple[int, RowObject, list[RowObject]]] = {}
    alone: list[int] = []
    for reader.line, row in rows:
        if not isinstance(row, dict):
            reader.add_problem(f"the row is {kind_of(row)}", "make it an object with a role and a text, as others are")
            continue
        row = _rename(row)
        dialogue = reader.read_dialogue(row)
        alone += [reader.line] if dialogue is None else []
        key = _find_content(row, names)
        content = {"content": None if key is None else row[key]}
        message = {name: value for name, value in row.items() if name not in CONTENT_KEYS} | content
        chats.setdefault(dialogue or "1", (reader.line, row, []))[2].append(message)
    remedy = "name the field of the conversation: --field dialog_id=NAME"
    if alone and len(chats) == 1:
        add_warning(f"{reader.where}: messages without the id of a conversation are read as one; {remedy}")
    for reader.line in alone if len(chats) > 1 else ():
        reader.add_problem("is a message of no conversation", remedy)
    for dialogue, (line, first, messages) in chats.items():
        own = {key: value for key, value in first.items() if key not in _OF_MESSAGES and key != names.response}
        yield line, {**own, names.dialog_id: dialogue, names.messages: _order(messages)}


def _order(messages: list[RowObject]) -> list[RowObject]:
    """Return messages by their numbers, if all have one."""
    for order in _ORDERS:
        numbers = [read_number(message.get(order)) for message in messages]
        if None not in numbers:
            return [messages[at] for at in np.argsort(np.array(numbers, np.float64), kind="stable")]
    return messages
