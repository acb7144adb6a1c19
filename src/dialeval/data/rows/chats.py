"""Chats: a row with `messages` is a whole dialogue in the form of chat interfaces.

Each message of the assistant is one response. Its context is every message before it but for system prompts, which
are part of it only if asked for; its turn is its index in the list. A message that only calls a tool is no response:
the call stands in the context of those after it. The row's reference, if it has one, belongs to its only response; with
several responses it is unclear whose it is, and that is a fault. In a cell of a table, messages may be JSON.
"""

from __future__ import annotations

from typing import NamedTuple

from dialeval.data.formats.records import LISTS, RowObject, kind_of
from dialeval.data.rows.fields import FieldReader
from dialeval.data.rows.messages import ASSISTANT, SYSTEM, read_message, role_of


class ChatResponse(NamedTuple):
    """One message of the assistant, with what came before it."""

    turn: int
    text: str
    messages: list[str]
    """Those between the response before and this one: its context is that of the response before, and then these."""
    roles: list[str]
    """Who said each of these."""
    references: list[str]


def chat_responses(reader: FieldReader, row: RowObject) -> list[ChatResponse]:
    """The responses in a chat; none where the assistant says nothing."""
    name = reader.names.messages
    messages = _parsed(row[name])
    if row.get(reader.names.response) is not None:
        reader.fault(
            f"has both {reader.names.response} and {name}", "keep one; or map the other: --field messages=NAME"
        )
    if not isinstance(messages, LISTS):
        reader.fault(f"{name} is {kind_of(messages)}", "make it a list of role/content objects")
        return []
    references = reader.references(row)
    said: list[str] = []
    roles: list[str] = []
    responses: list[ChatResponse] = []
    for turn, given in enumerate(messages):
        what = f"{name}[{turn}]"
        if not isinstance(given, dict):
            reader.fault(f"{what} is {kind_of(given)}", "make each message an object with role and content")
            continue
        role = role_of(reader, given, what)
        if role is None:
            continue
        message = read_message(reader, given, what, role)
        if role == SYSTEM and not reader.names.system_prompts:
            continue
        if role == ASSISTANT and not message.only_calls:
            responses.append(ChatResponse(turn, message.text, said, roles, references))
            said, roles = [], []
        said.append(message.shown)
        roles.append(role)
    if references and len(responses) > 1:
        what = f"has {reader.names.reference} for one response but {len(responses)} assistant messages"
        reader.fault(what, "give one row per response")
    return responses


def dialogue_name(reader: FieldReader, row: RowObject) -> str:
    """What a chat is called: its `dialog_id`, else its `id`, else the line it stands on."""
    return reader.dialogue(row) or reader.identifier(row, "id") or f"line {reader.line}"


def _parsed(messages: object) -> object:
    """Messages, also those that a cell of a table holds as JSON; anything else as it is."""
    if not isinstance(messages, str) or not messages.lstrip().startswith("["):
        return messages
    import orjson

    try:
        return orjson.loads(messages)
    except orjson.JSONDecodeError:
        return messages
