"""Tool calls and their results, as programs write them in messages, and as the data that metrics read.

| program | a call | its result |
|---|---|---|
| OpenAI chat | `tool_calls` with `function.name`, `function.arguments` (JSON); `function_call` | role `tool` |
| OpenAI Responses | an item of type `function_call` or `mcp_call` | `function_call_output`; `output`, `error` |
| Anthropic | a part `tool_use` or `mcp_tool_use` with `name` and `input` | a part `tool_result` with `is_error` |
| Gemini | a part with `functionCall` (`name`, `args`) | a part with `functionResponse` |
| LangChain | `tool_calls` with `name`, `args`, in messages or in their `data` or `kwargs` | type `tool`, `status` |
| MCP | a JSON-RPC request `tools/call` with `params` | `result` with `isError`, or `error` |
| tau-bench, tau2-bench, inspect_ai | `name` or `function`, `arguments` or `kwargs` | role `tool` with `error` |

A column of calls holds a list or None per row: the calls of a row or, in the last row of a chat, those of the whole
chat, each with `name`, `arguments` and, where the result is known, `error`. A row with None has no calls to look at,
which is not the same as an empty list. Expected calls are such lists too. `arguments` is None where an expected call
names none (any are correct), and `compare` lists the arguments that count, where it is given.

A result is an error if it is marked as one (`error`, `is_error`, `isError`, `status`), or if its text starts with
"Error", as in tau-bench. It belongs to the call with its id; without ids to the first call of its name that has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import orjson

from dialeval.core.validation import JsonObject
from dialeval.io.row_shapes import find, value_at
from dialeval.io.rows import LISTS, RowObject, kind_of, read_number

SETTINGS = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY

_INNER = ("function", "functionCall", "function_call", "toolUse", "params", "action")
_ARGUMENTS = (
    *("arguments", "input", "args", "kwargs", "input_parameters", "inputParameters", "parameters"),
    *("query", "queries", "code"),
)
_IDS = ("tool_call_id", "tool_use_id", "toolUseId", "toolCallId", "call_id", "id")
_CALL_IDS = ("call_id", "toolCallId", "toolUseId", "id")
_NAMES = ("toolName", "name")
_FLAGS = ("is_error", "isError", "error")
_CLASSES = {"HumanMessage": "user", "AIMessage": "assistant", "AIMessageChunk": "assistant", "ToolMessage": "tool"}
_TYPES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant", "tool": "tool", "system": "system"}
_EVENTS = {"user": "user", "bot": "assistant"}
CALL_ITEMS = frozenset({"function_call", "mcp_call", "custom_tool_call"})
_RESULT_ITEMS = frozenset({"function_call_output", "custom_tool_call_output"})
_LEAVES = frozenset({str, bool, type(None)})
_MOST_LEVELS = 100
"""Arguments that are nested more deeply are replaced by their type."""


def dump(value: object) -> str:
    """Return JSON, also of what orjson does not write: whole numbers of more than 64 bits, keys that are no texts."""
    try:
        return orjson.dumps(value, default=kind_of, option=SETTINGS).decode()
    except TypeError:
        return json.dumps(value, default=kind_of, skipkeys=True)


class Call(NamedTuple):
    """A call of a tool: as it is shown in contexts, and as data."""

    shown: str
    name: str | None = None
    arguments: object = None
    """Parsed; a text where it is no JSON, None where the call gives none."""
    id: str | None = None


class ToolResult(NamedTuple):
    """The result of a tool: which call it answers, and whether it is an error."""

    id: str | None
    name: str | None
    error: bool


def read_call(value: object) -> Call:
    """Return a call, wherever a program puts its name and arguments."""
    if not isinstance(value, dict):
        return Call(f"[call {value if isinstance(value, str) else kind_of(value)}]", _text(value))
    inner = _first(value, _INNER, value)
    name, arguments = (_first(inner, _NAMES, None), inner) if isinstance(inner, dict) else (inner, value)
    if name is None and str(value.get("type")).endswith("_call"):  # such as web_search_call
        name = str(value["type"]).removesuffix("_call")
    raw = _first(arguments, _ARGUMENTS, None)
    shown = "" if raw is None else raw
    if not isinstance(shown, str):
        try:
            shown = orjson.dumps(shown).decode()
        except TypeError:  # not plain data, or nested too deeply
            shown = kind_of(shown)
    text = f"[call {name if isinstance(name, str) else kind_of(name)}({shown})]"
    return Call(
        text, _text(name), parse_text(raw, {}), _text(_first(arguments, _CALL_IDS, _first(value, _CALL_IDS, None)))
    )


def read_result(value: Mapping[str, object], content: str = "") -> ToolResult:
    """Return the result that a message of a tool or a part of one holds; `content` is its text."""
    inner = _first(value, ("functionResponse", "function_response", "toolResult"), value)
    body = inner.get("response") if isinstance(inner, dict) else None
    marked = [_first(each, _FLAGS, None) for each in (value, body) if isinstance(each, dict)]
    failed = any(mark not in (None, False, "") for mark in marked) or value.get("status") == "error"
    name = _first(inner, _NAMES, value.get("function")) if isinstance(inner, dict) else None
    own_id = _first(inner, _IDS, None) if isinstance(inner, dict) else None
    return ToolResult(
        _text(_first(value, _IDS, own_id)), _text(name), failed or content.lstrip()[:5].lower() == "error"
    )


def unwrap(message: RowObject) -> RowObject | None:
    """Return the message with a role inside of any wrapper; None for an item without a speaker, such as a thought."""
    if "role" in message or "from" in message:
        return message
    if "message.role" in message:  # OpenInference, as a table has it
        return _remove_prefix(message, "message.")
    kind, data, kwargs = _text(message.get("type")), message.get("data"), message.get("kwargs")
    if isinstance(data, dict) and kind in _TYPES:
        return {**data, "role": _TYPES[str(kind)]}
    if isinstance(kwargs, dict) and isinstance(message.get("id"), LISTS) and message["id"]:
        return {**kwargs, "role": _CLASSES.get(str([*message["id"]][-1]), "system")}  # type: ignore[misc]
    if kind in CALL_ITEMS or (kind is not None and kind.endswith("_call") and "text" not in message):
        return {"role": "assistant", "content": "", "tool_calls": [message]}
    if kind in _RESULT_ITEMS:
        output = message.get("output")
        text = output if isinstance(output, str | list) else dump(output)
        return {"role": "tool", "tool_call_id": message.get("call_id"), "content": text}
    if message.get("method") == "tools/call":
        return {"role": "assistant", "content": "", "tool_calls": [message]}
    if "jsonrpc" in message:
        result = message.get("result")
        if not isinstance(result, dict) and message.get("error") is None:
            return None
        body = result if isinstance(result, dict) else {"isError": True}
        return {"role": "tool", "content": [], "tool_call_id": message.get("id"), **body}
    if isinstance(message.get("event"), str):  # Rasa
        role = _EVENTS.get(str(message["event"]))
        return None if role is None else {"role": role, "content": message.get("text") or ""}
    if kind in _TYPES:
        return {**message, "role": _TYPES[str(kind)]}
    return None if kind == "reasoning" or (kind is not None and kind.startswith("mcp_")) else message


def join_chunks(chunks: Iterable[object]) -> RowObject | None:
    """Return the message that the events of a stream add up to; None for what are no such events."""
    events = [chunk for chunk in chunks if isinstance(chunk, dict)]
    texts = [text for event in events if isinstance(text := find(event, _CHUNK_TEXTS), str)]
    started = [(event.get("index"), call) for event in events if (call := value_at(event, "content_block.name"))]
    if not texts and not started:
        return None
    pieces = [(event.get("index"), value_at(event, "delta.partial_json") or "") for event in events]
    calls = [
        {"name": name, "arguments": "".join(str(piece) for place, piece in pieces if place == index)}
        for index, name in started
    ]
    return {"role": "assistant", "content": "".join(texts), "tool_calls": calls}


_CHUNK_TEXTS = "delta.text | contentBlockDelta.delta.text | choices.0.delta.content | outputText | generation"
"""Where the events of streams have their texts: of Anthropic, Bedrock, OpenAI, Titan and Llama."""


def _remove_prefix(message: RowObject, prefix: str) -> RowObject:
    """Return an object without the prefix of its keys, and so its calls of tools."""
    inner = {key.removeprefix(prefix): value for key, value in message.items()}
    calls = inner.get("tool_calls")
    if isinstance(calls, LISTS):
        inner["tool_calls"] = [
            {key.removeprefix("tool_call.").removeprefix("function."): value for key, value in call.items()}
            for call in calls
            if isinstance(call, dict)
        ]
    return inner


class CallLog:
    """The calls of a conversation in order, with the results that are known."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.errors: dict[int, bool] = {}  # by call: whether its result is an error

    def add(self, calls: Iterable[Call], results: Iterable[ToolResult] = ()) -> None:
        """Take in the calls and the results of one more message."""
        self.calls += calls
        for result in results:
            waiting = [at for at in range(len(self.calls)) if at not in self.errors]
            by_id = [at for at in waiting if result.id is not None and self.calls[at].id == result.id]
            by_name = [at for at in waiting if result.name in (None, self.calls[at].name) and not by_id]
            has_ids = result.id is not None and any(call.id is not None for call in self.calls)
            if at_all := by_id or ([] if has_ids else by_name):
                self.errors[at_all[0]] = result.error

    def to_objects(self) -> list[JsonObject]:
        """Return the calls as the value of a row."""
        return [
            {"name": call.name, "arguments": {} if call.arguments is None else to_plain(call.arguments)}
            | ({"error": self.errors[at]} if at in self.errors else {})
            for at, call in enumerate(self.calls)
        ]


def read_calls(values: Iterable[object]) -> list[JsonObject]:
    """Return the calls of a row that lists them by themselves, each with its result if it has one."""
    log = CallLog()
    for at, value in enumerate(values):
        log.add([read_call(value)])
        fields = value if isinstance(value, dict) else {}
        marks = [fields.get(name) for name in ("output", "result", "is_error", "isError", "error", "status")]
        output = next((mark for mark in marks[:2] if isinstance(mark, str)), "")
        if any(mark is not None for mark in marks):
            log.errors[at] = read_result(fields, output).error
    return log.to_objects()


def read_expected_calls(values: Iterable[object]) -> list[JsonObject]:
    """Return expected calls as the value of a row; those of others than the assistant are left out."""
    calls = []
    for value in values:
        outer: Mapping[str, Any] = value if isinstance(value, dict) else {}
        inner = _first(outer, _INNER, outer)
        function = inner if isinstance(inner, dict) else outer
        if function.get("requestor") in (None, "assistant"):
            call = read_call(value)
            compare = function.get("compare_args", function.get("compare"))
            more = {"compare": [str(each) for each in compare]} if isinstance(compare, LISTS) else {}
            calls.append({"name": call.name, "arguments": to_plain(call.arguments), **more})
    return calls


def to_plain(value: object, levels: int = _MOST_LEVELS) -> object:
    """Return a value as JSON has it: names of objects sorted, None for what is no number, floats beyond 64 bits."""
    if type(value) in _LEAVES:
        return value
    if isinstance(value, dict) and levels:
        names = value if {*map(type, value)} == {str} else {str(name): part for name, part in value.items()}
        return {name: to_plain(names[name], levels - 1) for name in sorted(names)}
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else read_number(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, np.ndarray | np.generic):
        return to_plain(value.tolist(), levels)
    return [to_plain(part, levels - 1) for part in value] if isinstance(value, LISTS) and levels else kind_of(value)


def parse_text(value: object, empty: object) -> object:
    """Return what a text of JSON says, `empty` for an empty one; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value) if value.strip() else empty
    except orjson.JSONDecodeError:
        return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else str(value) if type(value) is int else None


def _first(given: Mapping[str, object], keys: Iterable[str], default: object) -> object:
    return next((given[key] for key in keys if given.get(key) is not None), default)
