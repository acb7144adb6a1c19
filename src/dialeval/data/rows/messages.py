"""Messages of a chat: who speaks, and what is said.

A message is an object with a role (`role`, in ShareGPT `from`) and a content (`content`, else `value`, `text` or
`parts`): a text, or a list of parts. `ROLES` brings the names that programs have for roles to four: system, user,
assistant, tool. `PARTS` says what each kind of part is: a text, a mark such as `[image]` for what is not text, a call
of a tool, or a thought, which is not said. Calls are written as `[call search({"q":"ferry"})]`: they are shown to who
reads the context, and are no response.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dialeval.data.formats.records import LISTS, RowObject, kind_of, listed

if TYPE_CHECKING:
    from dialeval.data.rows.fields import FieldReader

SYSTEM, USER, ASSISTANT, TOOL = "system", "user", "assistant", "tool"

ROLES = {
    **dict.fromkeys(("system", "developer"), SYSTEM),
    **dict.fromkeys(("user", "human", "prompter"), USER),
    **dict.fromkeys(("assistant", "gpt", "model", "bot", "ai", "chatgpt", "bing", "bard", "claude"), ASSISTANT),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "function_response"), TOOL),
    "function_call": ASSISTANT,
}
"""The role that each name stands for."""
CALLER = "function_call"
"""The role of a message whose whole text is a call."""

_ROLE_KEYS = ("role", "from")
_CONTENT_KEYS = ("content", "value", "text", "parts")

PARTS: Mapping[str, str] = {
    **dict.fromkeys(("text", "input_text", "output_text"), "text"),
    "refusal": "refusal",
    "tool_result": "content",
    **dict.fromkeys(("image", "image_url", "input_image", "image_file"), "[image]"),
    **dict.fromkeys(("audio", "input_audio", "audio_url"), "[audio]"),
    **dict.fromkeys(("video", "video_url"), "[video]"),
    **dict.fromkeys(("file", "input_file", "document", "inlineData", "inline_data", "fileData", "file_data"), "[file]"),
    **dict.fromkeys(("tool_use", "tool_call", "functionCall", "function_call", "server_tool_use"), "call"),
    **dict.fromkeys(("thinking", "redacted_thinking", "reasoning", "thought"), ""),
}
"""For each type of part: the field with its text, a mark, `call`, or nothing. Gemini's parts have such a key."""


class Message(NamedTuple):
    """One message: who speaks, what is said, and the calls of tools beside it."""

    role: str
    text: str
    calls: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """What a reader of the context sees."""
        return " ".join(filter(None, (self.text, *self.calls))) if self.calls else self.text

    @property
    def only_calls(self) -> bool:
        """Whether nothing is said."""
        return bool(self.calls) and not self.text.strip()


def plain_message(message: object) -> tuple[str, str] | None:
    """Role and text of a message that has nothing else, as most have; None for others, which take longer to read."""
    if type(message) is not dict or len(message) != 2:
        return None
    name, text = message.get("role"), message.get("content")
    if type(name) is not str or type(text) is not str or name == CALLER:
        return None
    role = ROLES.get(name)
    return None if role is None else (role, text)


def read_message(reader: FieldReader, message: RowObject, what: str, role: str) -> Message:
    """The message of an object whose role is known."""
    calls = [_call(each) for each in _calls(message)]
    key = next((key for key in _CONTENT_KEYS if message.get(key) is not None), None)
    if key is None:
        if message.get("refusal") is not None:
            return Message(role, reader.text(message["refusal"], what))
        if not calls:
            empty = any(key in message for key in _CONTENT_KEYS)
            lacking = "is null" if empty else f"has neither text nor content, only {listed(message)}"
            reader.fault(f"{what} {lacking}", "give each turn its text")
        return Message(role, "", tuple(reader.text(call, what) for call in calls))
    text, own = content(reader, message[key], what)
    if any(isinstance(message.get(key), str) and message[key] == CALLER for key in _ROLE_KEYS):
        text, own = "", [f"[call {text}]"]
    return Message(role, text, tuple(reader.text(call, what) for call in (*calls, *own)))


def role_of(reader: FieldReader, message: RowObject, what: str) -> str | None:
    """The role of a message; None, and a fault, where it has none that is known."""
    role = next((message[key] for key in _ROLE_KEYS if message.get(key) is not None), None)
    if isinstance(role, str) and role in ROLES:
        return ROLES[role]
    shown = f"has no role, only {listed(message)}" if role is None else f"has the role {role!r:.40}"
    reader.fault(f"{what} {shown}", f"use one of {', '.join(dict.fromkeys(ROLES.values()))}")
    return None


def content(reader: FieldReader, value: object, what: str, inner: bool = False) -> tuple[str, list[str]]:
    """Return what a content says, and the calls in it.

    It is a text, or parts such as `{"type": "text", "text": ...}`, which are joined with spaces.
    """
    if not isinstance(value, LISTS):
        return reader.text(value, what), []
    text = ""
    calls: list[str] = []
    for part in value:
        kind, said = _part(reader, part, what, inner)
        if kind == "call":
            calls.append(said)
        elif said:
            text += " " * (bool(text) and not text[-1].isspace() and not said[0].isspace()) + said
    return text, calls


def _part(reader: FieldReader, part: object, what: str, inner: bool) -> tuple[str, str]:
    """The kind of a part (text, mark, call) and what stands for it; `inner`: it is part of a tool's result."""
    if not isinstance(part, dict):
        return "text", reader.text(part, what)
    kind = part.get("type")
    if kind is None:
        kind = next((key for key, given in part.items() if key in PARTS and given is not None), None)
    field = PARTS.get(kind) if isinstance(kind, str) else None
    if field is None and part.get("text") is not None:
        field = "text"
    if field is None or (field == "content" and inner):
        reader.fault(f"{what} has a part of type {kind!r:.40} without text", "leave out what is not text")
        return "text", ""
    if field == "call":
        return "call", _call(part)
    if not field or field.startswith("["):
        return "mark", field
    if field == "content":
        given = part.get(field)
        return "mark", "" if given is None else content(reader, given, what, inner=True)[0]
    return "text", reader.text(part.get(field), what)


def _calls(message: RowObject) -> Iterator[object]:
    for key in ("tool_calls", "function_call"):
        given = message.get(key)
        if given is not None:
            yield from given if isinstance(given, LISTS) else [given]


def _call(value: object) -> str:
    """A call as it is shown: the tool's name and its arguments, wherever a program puts them."""
    import orjson

    if not isinstance(value, dict):
        return f"[call {value if isinstance(value, str) else kind_of(value)}]"
    inner = _first(value, ("function", "functionCall", "function_call"), value)
    name, given = (inner.get("name"), inner) if isinstance(inner, dict) else (inner, value)
    arguments = _first(given, ("arguments", "input", "args"), "")
    if not isinstance(arguments, str):
        try:
            arguments = orjson.dumps(arguments).decode()
        except TypeError:  # not plain data, or nested too deeply
            arguments = kind_of(arguments)
    return f"[call {name if isinstance(name, str) else kind_of(name)}({arguments})]"


def _first(given: Mapping[str, Any], keys: Iterable[str], default: Any) -> Any:
    return next((given[key] for key in keys if given.get(key) is not None), default)
