"""Messages of chats, whatever program wrote them: a role, a text, and calls of tools with their results.

A message is an object with a role (`role`, in ShareGPT `from`) and a content (`content`, else `value`, `text` or
`parts`): a text, or a list of parts. `ROLES` maps the roles of other programs to four: system, user, assistant, tool.
`PARTS` has the meaning of each type of part: a text, a mark such as `[image]` for what is not text, a tool call, or a
thought, which is left out. Calls are shown in contexts as `[call search({"q":"ferry"})]` and are no response; `calls`
makes data of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dialeval.core.account import MISSING
from dialeval.core.errors import add_warning
from dialeval.io.calls import Call, ToolResult, dump, parse_text, read_call, read_result
from dialeval.io.outcomes import is_failed
from dialeval.io.rows import (
    ASSISTANT,
    CONTENT_KEYS,
    LISTS,
    OUR_ROLES,
    ROLE_KEYS,
    SYSTEM,
    TOOL,
    USER,
    FieldNames,
    RowObject,
    join_names,
)

if TYPE_CHECKING:
    from dialeval.io.fields import FieldReader

ROLES = {
    **dict.fromkeys(("system", "developer"), SYSTEM),
    **dict.fromkeys(("user", "human", "prompter", "customer", "visitor", "client", "caller"), USER),
    **dict.fromkeys(("assistant", "gpt", "model", "bot", "ai", "chatgpt", "bing", "bard", "claude"), ASSISTANT),
    **dict.fromkeys(("agent", "operator", "chatbot"), ASSISTANT),
    **dict.fromkeys(("tool", "function", "observation", "ipython", "function_response"), TOOL),
    "function_call": ASSISTANT,
}
"""The role of each name, in lower case."""
CALLER = "function_call"
"""The role of a message whose whole text is a call."""


PARTS: Mapping[str, str] = {
    **dict.fromkeys(("text", "input_text", "output_text"), "text"),
    "refusal": "refusal",
    **dict.fromkeys(("tool_result", "tool_call_response", "server_tool_call_response", "toolResult"), "result"),
    **dict.fromkeys(("functionResponse", "function_response", "codeExecutionResult", "tool-result"), "result"),
    **dict.fromkeys(("image", "image_url", "input_image", "image_file", "photos", "gifs", "sticker"), "[image]"),
    **dict.fromkeys(("audio", "input_audio", "audio_url", "audio_files"), "[audio]"),
    **dict.fromkeys(("video", "video_url", "videos"), "[video]"),
    **dict.fromkeys(("file", "input_file", "document", "inlineData", "inline_data", "fileData", "file_data"), "[file]"),
    **dict.fromkeys(("blob", "uri"), "[file]"),
    **dict.fromkeys(("tool_use", "tool_call", "tool-call", "toolUse", "functionCall", "function_call"), "call"),
    **dict.fromkeys(("server_tool_call", "executableCode"), "call"),
    **dict.fromkeys(("thinking", "redacted_thinking", "reasoning", "thought", "reasoningContent", "step-start"), ""),
}
"""For each type of part: the field with its text, a mark, `call`, `result`, or nothing. Of Gemini it is a key."""
_RESULTS = ("content", "response", "result", "output")
"""The fields of a part, or of the object in it, with the result of a tool."""


class Message(NamedTuple):
    """One message: who speaks, what is said, and the calls of tools next to it."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    results: tuple[ToolResult, ...] = ()
    failure: str | None = None
    """Why it is no reply, where it is one of the assistant without a content."""

    @property
    def shown(self) -> str:
        """The text that a reader of the context sees."""
        return " ".join(filter(None, (self.text, *(call.shown for call in self.calls)))) if self.calls else self.text


def read_status(row: Mapping[str, object], names: FieldNames) -> tuple[object, object, object]:
    """Return what a row or a message says about errors."""
    return row.get(names.error), row.get(names.status), row.get(names.finish_reason)


def find_role(name: object, names: FieldNames) -> str | None:
    """Return our role of a name in any case; None for one that is not known."""
    if type(name) is not str:
        return None
    if names.roles and (own := dict(names.roles).get(name.lower())) is not None:
        return own
    return ROLES.get(name) or ROLES.get(name.lower())


def read_plain_message(message: object, names: FieldNames) -> tuple[str, str] | None:
    """Return role and text of a message that has nothing else, as most have; None for others."""
    if type(message) is not dict or len(message) != 2:
        return None
    name, text = message.get("role"), message.get("content")
    if type(name) is not str or type(text) is not str or name == CALLER:
        return None
    role = find_role(name, names)
    return None if role is None else (role, text)


def read_message(reader: FieldReader, message: RowObject, what: str, role: str) -> Message:
    """Return the message of an object whose role is known."""
    calls = [_check_call(reader, each, what) for each in _list_calls(message)]
    key = next((key for key in CONTENT_KEYS if message.get(key) is not None), None)
    if key is None:
        if message.get("refusal") is not None:
            return Message(role, reader.read_text(message["refusal"], what))
        marks = [PARTS[name] for name in message if PARTS.get(name, "").startswith("[") and message[name]]
        if marks:  # such as the photos of a messenger
            return Message(role, " ".join(marks), tuple(calls))
        if not calls:
            is_null = message.keys() <= {"role"} or any(key in message for key in CONTENT_KEYS)
            if role == ASSISTANT and (is_null or is_failed(*read_status(message, reader.names))):
                return Message(role, "", failure=MISSING)
            lacking = "is null" if is_null else f"has neither text nor content, only {join_names(message)}"
            reader.add_problem(f"{what} {lacking}", "give each turn its text")
        return Message(role, "", tuple(calls))
    text, parts = read_content(reader, message[key], what, results=role != ASSISTANT)
    if any(isinstance(message.get(key), str) and message[key] == CALLER for key in ROLE_KEYS):
        given, shown = parse_text(text, None), f"[call {text}]"  # the call is the whole text of the message
        call = read_call(given)._replace(shown=shown) if isinstance(given, dict) else Call(shown)
        return Message(role, "", (*calls, call))
    own = [part for part in parts if isinstance(part, Call)]
    results = [part for part in parts if isinstance(part, ToolResult)]
    results += [read_result(each) for each in _list_calls(message) if isinstance(each, dict) and "output" in each]
    if role == TOOL and not results:
        results = [read_result(message, text)]
    elif role == USER and results and len(results) == len(message[key]):  # type: ignore[arg-type]
        role = TOOL  # Anthropic and Gemini send results back as the user
    return Message(role, text, (*calls, *own), tuple(results))


def _check_call(reader: FieldReader, value: object, what: str) -> Call:
    call = read_call(value)
    return call._replace(shown=reader.read_text(call.shown, what))


def read_role(reader: FieldReader, message: RowObject, what: str) -> str | None:
    """Return the role of a message; None, and a problem, where it has none that is known."""
    role = next((message[key] for key in ROLE_KEYS if message.get(key) is not None), None)
    if (known := find_role(role, reader.names)) is not None:
        return known
    if isinstance(role, str):
        reader.add_unknown_role(role, what)
    else:
        shown = f"has no role, only {join_names(message)}" if role is None else f"has the role {role!r:.40}"
        reader.add_problem(f"{what} {shown}", f"use one of {', '.join(OUR_ROLES)}")
    return None


def read_content(
    reader: FieldReader, value: object, what: str, inner: bool = False, results: bool = True
) -> tuple[str, list[Call | ToolResult]]:
    """Return the text of a content, and the calls and results in it.

    It is a text, or parts such as `{"type": "text", "text": ...}`, which are joined with spaces; that of arena-hard is
    an object with `answer`. `results`: whether results of tools are part of the text, as in the message of a tool.
    """
    if isinstance(value, dict) and isinstance(value.get("answer"), str):
        value = value["answer"]
    if not isinstance(value, LISTS):
        return reader.read_text(value, what), []
    text = ""
    others: list[Call | ToolResult] = []
    for part in value:
        said, more = _read_part(reader, part, what, inner)
        if more is not None:
            others.append(more)
        if said and (results or not isinstance(more, ToolResult)):
            text += " " * (bool(text) and not text[-1].isspace() and not said[0].isspace()) + said
    return text, others


def _find_kind(part: RowObject) -> tuple[object, str | None]:
    """Return the type of a part, and what it holds (see `PARTS`)."""
    kind = part.get("type")
    if kind is None:
        kind = next((key for key, given in part.items() if key in PARTS and given is not None), None)
    field = PARTS.get(kind) if isinstance(kind, str) else None
    if part.get("thought") is True:  # of Gemini
        field = ""
    elif field is None and isinstance(part.get("text"), str):
        field = "text"
    elif field is None and isinstance(kind, str) and kind.endswith(("_tool_result", "_tool_use")):  # of Anthropic
        field = "call" if kind.endswith("use") else "result"
    elif field is None and isinstance(kind, str) and kind.startswith(("source-", "data-")):  # of the AI SDK
        field = ""
    return kind, field


def _read_part(reader: FieldReader, part: object, what: str, inner: bool) -> tuple[str, Call | ToolResult | None]:
    """Return the text of a part, and the call or result that it is; `inner`: it is part of a tool's result."""
    if not isinstance(part, dict):
        return reader.read_text(part, what), None
    kind, field = _find_kind(part)
    if field is None and isinstance(kind, str) and kind.startswith(_INVOCATIONS):
        return "", _check_call(reader, _read_invocation(part), what)
    if inner and (field is None or field == "result"):  # whatever a tool returns
        return reader.read_text(dump(part), what), None
    if field is None:
        add_warning(f"{reader.where}: parts of the type {kind!r:.40} have no text and are left out")
        return "", None
    if field == "call":
        return "", _check_call(reader, part, what)
    if not field or field.startswith("["):
        return field, None
    if field == "result":
        given: Any = part.get(str(kind), part)
        if isinstance(given, dict):
            given = next((given[key] for key in _RESULTS if given.get(key) is not None), None)
        if isinstance(given, LISTS):
            text = read_content(reader, given, what, inner=True)[0]
        else:
            text = given if isinstance(given, str) else "" if given is None else dump(given)
        return reader.read_text(text, what), read_result(part, text)
    said = part.get(field, part.get("content"))
    return reader.read_text(said.get("value") if isinstance(said, dict) else said, what), None


_INVOCATIONS = ("tool-", "dynamic-tool")
"""How the types of the AI SDK's parts begin that are calls of tools."""


def _read_invocation(part: RowObject) -> RowObject:
    invoked = part.get("toolInvocation")
    return {"name": str(part["type"]).removeprefix("tool-"), **(invoked if isinstance(invoked, dict) else part)}


def _list_calls(message: RowObject) -> Iterator[object]:
    more = message.get("additional_kwargs")  # of LangChain
    for key in ("tool_calls", "function_call", "toolsCalled", "tools_called"):
        given = message.get(key) or (more.get(key) if isinstance(more, dict) else None)
        if given is not None:
            yield from given if isinstance(given, LISTS) else [given]
    if isinstance(message.get("content"), str):  # the AI SDK has texts a second time as parts
        parts = [part for part in message.get("parts") or () if isinstance(part, dict)]  # type: ignore[attr-defined]
        invoked = [_read_invocation(part) for part in parts if str(part.get("type")).startswith(_INVOCATIONS)]
        yield from invoked or message.get("toolInvocations") or ()  # type: ignore[misc]
