"""Chats: a row with `messages` is a whole dialogue in the form of chat interfaces.

Each message of the assistant is one response. Its context is every message before it, whatever the role, and its
turn is its index in the list. A message that only calls a tool says nothing and is left out. The row's reference, if
it has one, belongs to its only response; with several responses it is unclear whose it is, and that is a fault.
"""

from __future__ import annotations

from typing import NamedTuple

from dialeval.data.formats.records import LISTS, RowObject, kind_of, listed
from dialeval.data.rows.fields import FieldReader

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_CALLS = ("tool_calls", "function_call")


class ChatResponse(NamedTuple):
    """One message of the assistant, with what came before it."""

    turn: int
    text: str
    messages: list[str]
    """Those between the response before and this one: its context is that of the response before, and then these."""
    references: list[str]


def chat_responses(reader: FieldReader, row: RowObject) -> list[ChatResponse]:
    """The responses in a chat; none where the assistant says nothing."""
    name = reader.names.messages
    messages = row[name]
    if row.get(reader.names.response) is not None:
        reader.fault(
            f"has both {reader.names.response} and {name}", "keep one; or map the other: --field messages=NAME"
        )
    if not isinstance(messages, LISTS):
        reader.fault(f"{name} is {kind_of(messages)}", "make it a list of role/content objects")
        return []
    references = reader.references(row)
    said: list[str] = []
    responses: list[ChatResponse] = []
    for turn, message in enumerate(messages):
        what = f"{name}[{turn}]"
        role = _role(reader, message, what)
        if role is None or not isinstance(message, dict) or _only_calls(message):
            continue
        text = reader.content(message.get("content"), name, turn)
        if role == "assistant":
            responses.append(ChatResponse(turn, text, said, references))
            said = []
        said.append(text)
    if references and len(responses) > 1:
        what = f"has {reader.names.reference} for one response but {len(responses)} assistant messages"
        reader.fault(what, "give one row per response")
    return responses


def dialogue_name(reader: FieldReader, row: RowObject) -> str:
    """What a chat is called: its `dialog_id`, else its `id`, else the line it stands on."""
    return reader.dialogue(row) or reader.identifier(row, "id") or f"line {reader.line}"


def _role(reader: FieldReader, message: object, what: str) -> str | None:
    if not isinstance(message, dict):
        reader.fault(f"{what} is {kind_of(message)}", "make each message an object with role and content")
        return None
    role = message.get("role")
    if isinstance(role, str) and role in ROLES:
        return role
    shown = f"has no role, only {listed(message)}" if role is None else f"has the role {role!r:.40}"
    reader.fault(f"{what} {shown}", f"use one of {', '.join(ROLES)}")
    return None


def _only_calls(message: RowObject) -> bool:
    return message.get("content") is None and any(message.get(call) is not None for call in _CALLS)
