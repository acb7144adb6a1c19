"""Spans: steps of a program, as OpenTelemetry and programs for traces write them, with the messages in them.

A span is a call of a language model, a call of a tool, or anything else. Programs put what it has under many names;
`traces.toml` lists these, and `TraceSpan` is what they have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import orjson

from dialeval.core.validation import JsonObject, parse_toml
from dialeval.io.calls import parse_text, read_call, unwrap
from dialeval.io.fields import FieldReader, read_time
from dialeval.io.messages import Message, find_role, read_message, read_plain_message
from dialeval.io.outcomes import is_failed
from dialeval.io.row_shapes import value_at
from dialeval.io.rows import ASSISTANT, LISTS, SYSTEM, TOOL, USER, RowObject, read_number
from dialeval.io.scores import read_scores

_TABLE = Path(__file__).with_name("traces.toml")
_TOML = parse_toml(_TABLE.read_bytes(), str(_TABLE), "install dialeval again")
_PATHS: dict[str, list[str]] = {name: paths.split(" | ") for name, paths in (_TOML["fields"] | _TOML["found"]).items()}
_BY_KEY: dict[str, list[tuple[str, int, str]]] = {}
"""By the first key of a path: names, their paths, and how many other paths of the name come before each."""
for _name, _paths in _PATHS.items():
    for _rank, _path in enumerate(_paths):
        for _key in {_path, _path.partition(".")[0]}:
            _BY_KEY.setdefault(_key, []).append((_name, _rank, _path))
_KINDS = {name: kind for kind, names in _TOML["kinds"].items() for name in names}
_INSIDE: dict[str, list[str]] = _TOML["inside"]
_ONLY_LLM: list[str] = _TOML["only_llm"]["paths"]
_INDEXED = tuple(_TOML["indexed"]["prefixes"])
find_marker = re.compile(rb'"key":\s*"[^"]*?(?:%b)' % b"|".join(re.escape(m.encode()) for m in _TOML["markers"])).search
"""Find an attribute of a span of OTLP that is about models or tools."""
SESSION = (b"onversation", b"ession", b"hread")
CHILDREN = ("observations", "spans", "child_runs", "children", "calls")
"""The fields of a trace or a span with its spans."""
LISTED = ("data", "traces", "batch", "post", "patch", "runs", "events", "content", "results", "items")
"""The fields of a document with its traces or spans."""
HOLD_TEXTS = frozenset(("input", "output", "inputs", "outputs", "attributes", "tags", "record_attributes"))
_FAILED = ("error", "status_code_error", "2")


# OTLP as JSON: typed decoding that leaves spans and log records as bytes, since few of them are about models.


class _Scope(msgspec.Struct, rename="camel"):
    spans: list[msgspec.Raw] = []
    log_records: list[msgspec.Raw] = []


class _Resource(msgspec.Struct, rename="camel"):
    scope_spans: list[_Scope] = []
    instrumentation_library_spans: list[_Scope] = []
    scope_logs: list[_Scope] = []


class Export(msgspec.Struct, rename="camel"):
    """One export of OTLP: a line of a file, or a document."""

    resource_spans: list[_Resource] = []
    batches: list[_Resource] = []
    resource_logs: list[_Resource] = []

    def list_raw(self) -> list[msgspec.Raw]:
        """Return its spans and log records."""
        resources = (*self.resource_spans, *self.batches, *self.resource_logs)
        scopes = [
            scope
            for resource in resources
            for scope in (*resource.scope_spans, *resource.instrumentation_library_spans, *resource.scope_logs)
        ]
        return [raw for scope in scopes for raw in (*scope.spans, *scope.log_records)]


class _Head(msgspec.Struct, rename="camel"):
    trace_id: str = ""


read_export = msgspec.json.Decoder(Export).decode
read_head = msgspec.json.Decoder(_Head).decode


def unpack(value: object) -> Any:
    """Return the value of an attribute, which is an object with the name of its type; anything else as it is."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    [(kind, inner)] = value.items()
    if kind in ("arrayValue", "kvlistValue") and isinstance(inner, dict):
        items = inner.get("values") or []
        return unpack_pairs(items) if kind == "kvlistValue" else [unpack(item) for item in items]
    return int(inner) if kind == "intValue" else inner if kind.endswith("Value") else value


def unpack_pairs(pairs: object) -> Any:
    """Return attributes as an object, also where they are a list of keys and values."""
    if not isinstance(pairs, list):
        return pairs
    return {str(pair["key"]): unpack(pair.get("value")) for pair in pairs if isinstance(pair, dict) and "key" in pair}


def open_span(given: Any) -> RowObject:
    """Return a span as an object; a log record becomes an event of its span."""
    if not isinstance(given, msgspec.Raw):
        return dict(given)
    span: JsonObject = orjson.loads(bytes(given))
    if "timeUnixNano" not in span:
        return span
    attributes, body = unpack_pairs(span.pop("attributes", [])), unpack(span.pop("body", None))
    inner = attributes | (body if isinstance(body, dict) else {"content": body})
    event = {"name": span.get("eventName") or attributes.get("event.name"), "attributes": inner}
    return {**span, "timestamp": span["timeUnixNano"], "events": [event]}


# Spans.


@dataclass(slots=True, eq=False)
class TraceSpan:
    """What spans of all programs have in common."""

    id: str
    trace: str
    is_root: bool
    name: str
    kind: str
    """`llm`, `tool`, `other` (which says nothing), or an empty text."""
    start: float | None
    end: float | None
    model: str | None
    inputs: list[Message]
    outputs: list[Message]
    error: str | None
    facts: dict[str, Any]
    """What is in its fields and attributes, by the names of `traces.toml`."""
    by_events: bool
    """Whether its input and output are messages of events."""
    scores: JsonObject = field(default_factory=dict)

    @property
    def has_texts(self) -> bool:
        """Whether anything that was said or called is in it."""
        return any(message.text or message.calls or message.results for message in (*self.inputs, *self.outputs))

    def time(self) -> tuple[bool, float]:
        """Return where it is in the order of spans: the start of a call of a model, the end of a call of a tool."""
        time = self.end if self.kind == "tool" else self.start
        return time is None, time or 0

    def overlaps(self, other: TraceSpan) -> bool:
        """Return whether both run at the same time, as far as times are known."""
        if None in (self.start, self.end, other.start, other.end):
            return bool(self.id and other.id)
        return self.start <= other.end and other.start <= self.end  # type: ignore[operator]


_NOTHING: tuple[object, ...] = (None, "", "{}", [], {})


def find_values(given: Mapping[str, object]) -> dict[str, Any]:
    """Return what is at the first path of each name that leads to something."""
    found: dict[str, Any] = {}
    ranks: dict[str, int] = {}
    for key, value in given.items():
        for name, rank, path in _BY_KEY.get(key, ()) if value not in _NOTHING else ():
            if rank < ranks.get(name, len(_BY_KEY)):
                inner = value if path == key else value_at(given, path)
                if inner is value or inner not in _NOTHING:
                    found[name], ranks[name] = inner, rank
    return found


def find_value(given: Mapping[str, object], name: str) -> Any:
    """Return what is at the first path of a name that leads to something."""
    return find_values(given).get(name)


def _collect_indexed(flat: RowObject) -> None:
    """Add the lists that indexed keys are, such as `llm.input_messages.0.message.role`."""
    trees: dict[str, JsonObject] = {}
    for key in [key for key in flat if key.startswith(_INDEXED)]:
        prefix = next(prefix for prefix in _INDEXED if key.startswith(prefix))
        *steps, last = key[len(prefix) :].split(".")
        branch = trees.setdefault(prefix, {})
        for step in steps:
            inner = branch.setdefault(step, {})
            branch = inner if isinstance(inner, dict) else branch.setdefault(step + ".", {})
        branch[last] = flat[key]
    for prefix, tree in trees.items():
        flat.setdefault(prefix[:-1], _make_lists(tree))


def _make_lists(tree: object) -> Any:
    if not isinstance(tree, dict):
        return tree
    if all(key.isdecimal() for key in tree):
        return [_make_lists(tree[key]) for key in sorted(tree, key=int)]
    return {key: _make_lists(value) for key, value in tree.items()}


def flatten(given: RowObject) -> RowObject:
    """Return the fields and attributes of a span in one object, with those of its events."""
    flat: RowObject = {}
    for name in ("attributes", "tags", "record_attributes", "resource_attributes"):
        inner = unpack_pairs(parse_object(given.get(name)))
        flat |= inner if isinstance(inner, dict) else {}
    flat |= {key.removeprefix("attributes."): parse_object(value) for key, value in given.items() if value is not None}
    for key in [key for key in flat if key.startswith("mlflow.")]:  # all of them are JSON
        flat[key] = parse_text(flat[key], None)
    for name in ("events", "span_events", "logs"):
        events = parse_text(flat.get(name), None)
        if isinstance(events, LISTS):
            _add_events(flat, [event for event in events if isinstance(event, dict)])
    _collect_indexed(flat)
    return flat


def parse_object(value: object) -> Any:
    """Return an object or a list of objects in a cell of a table, as Python or NumPy prints it; others as they are."""
    if not isinstance(value, str) or not value.startswith(("{'", "[{'")):
        return value
    import ast

    try:
        return ast.literal_eval(value.replace("}\n {'", "}, {'"))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def _add_events(flat: RowObject, events: Sequence[RowObject]) -> None:
    """Add what the events of a span say: messages, attributes, errors and scores."""
    said: dict[str, list[Any]] = {"input": [], "output": []}
    scores: list[Any] = []
    for event in events:
        name = str(event.get("name") or event.get("event.name") or event.get("event_name") or "")
        inner = unpack_pairs(event.get("attributes") or event.get("fields") or event)
        if not isinstance(inner, dict) or not (name.startswith("gen_ai.") or name == "exception"):
            continue
        body = parse_text(inner.get("gen_ai.event.content", inner.get("body")), None)
        body = {**inner, **body} if isinstance(body, dict) else inner
        if name == "gen_ai.choice":
            message = parse_text(body.get("message"), None)
            message = message if isinstance(message, dict) else {"content": message or body.get("content")}
            said["output"].append(
                {"role": ASSISTANT, "tool_calls": parse_text(body.get("tool_calls"), None), **message}
            )
        elif name.endswith(".message"):
            role = name.split(".")[-2]
            content = parse_text(body.get("content"), None)
            calls = parse_text(body.get("tool_calls"), None)
            said["input"].append({**body, "role": body.get("role", role), "content": content, "tool_calls": calls})
        elif name == "gen_ai.evaluation.result":
            scores.append(
                {"name": inner.get("gen_ai.evaluation.name"), "value": inner.get("gen_ai.evaluation.score.value")}
            )
        else:
            flat.update(inner)
    for side, messages in said.items():
        if messages:
            flat.setdefault(f"gen_ai.{side}.messages", messages)
    if scores:
        flat["gen_ai.evaluation"] = scores


def make_span(given: RowObject, reader: FieldReader) -> TraceSpan:
    """Return the span that an object of any program is."""
    flat = flatten(given)
    facts = find_values(flat)
    kind = _find_kind(flat, str(facts.get("name")))
    start, end = _read_time(facts.get("start")), _read_time(facts.get("end"))
    duration = read_number(flat.get("duration"))
    if end is None and start is not None and duration is not None:  # Jaeger has microseconds
        end = start + duration / 1e6
    inputs = [
        *_read_messages(facts.get("system"), SYSTEM, reader),
        *_read_messages(facts.get("input"), USER, reader),
    ]
    output = facts.get("output")
    if kind == "llm" and isinstance(output, str) and not _is_message(decode(output)):  # a reply in JSON is a text
        output = {"role": ASSISTANT, "content": output}
    outputs = _read_messages(output, ASSISTANT, reader)
    if inputs and [said[:2] for said in outputs[: len(inputs)]] == [said[:2] for said in inputs]:
        outputs = outputs[len(inputs) :]  # a state that goes on from the input
    elif not outputs and kind != "tool" and inputs and inputs[-1].role == ASSISTANT:
        outputs = [inputs.pop()]
    if kind == "tool":  # its input and output may be anything
        reader.problems.clear()
    error, status = facts.get("error"), facts.get("status")
    failed = str(status).lower() in _FAILED or is_failed(flat.get("error"), status, None)
    own_id = read_name(facts.get("id"))
    return TraceSpan(
        own_id or "",
        read_name(facts.get("trace")) or own_id or "",
        not read_name(facts.get("parent")),
        read_name(facts.get("name")) or "",
        kind,
        start,
        end,
        read_name(facts.get("model")),
        inputs,
        outputs,
        (error if isinstance(error, str) and error else "error") if failed else None,
        facts,
        isinstance(flat.get("gen_ai.input.messages"), list),
        read_scores(list_span_scores(facts.get("scores"), of_spans=False)),
    )


def list_span_scores(given: object, of_spans: bool) -> Any:
    """Return the scores of a trace or a span itself, or those that it lists for other spans."""
    given = decode(given)
    if not isinstance(given, LISTS):
        return [] if of_spans else given
    return [
        item for item in given if isinstance(item, dict) and (find_value(item, "observation") is not None) == of_spans
    ]


def _find_kind(flat: RowObject, name: str) -> str:
    for path in _PATHS["kind"]:
        value = value_at(flat, path) if path in flat or path.partition(".")[0] in flat else None
        if isinstance(value, str) and (kind := _KINDS.get(value.lower().split(" ")[0].rpartition("/")[2])) is not None:
            return "other" if kind == "llm" and _KINDS.get(name.lower()) == "other" else kind
    is_llm = any(value_at(flat, path) not in (None, "{}") for path in _ONLY_LLM)
    return "llm" if is_llm else ""


def read_name(value: object) -> str | None:
    """Return an id or a name as a text; None for anything else."""
    return str(value) if isinstance(value, (str, int)) and value != "" else None


def _read_time(value: object) -> float | None:
    """Return a time as seconds: any unit since 1970, a text as ISO 8601 has it, or seconds and nanoseconds."""
    if isinstance(value, LISTS) and len(value) == 2:
        seconds, rest = map(read_number, value)
        return None if seconds is None or rest is None else seconds + rest / 1e9
    number = read_number(value)
    if number == 0:  # of spans whose times were removed
        return None
    if number is None:
        return read_time(value.replace(" ", "T", 1) if isinstance(value, str) else value)
    for unit in (1e9, 1e6, 1e3):
        if number > unit * 1e8:
            return number / unit
    return number


# Messages in inputs and outputs.

_OF_MESSAGES = frozenset(
    ("role", "choices", "generations", "candidates", "messages", "output", "toolName", "content", "message", "kwargs")
)
"""Keys that tell a message, or an answer of an API, from a reply that is JSON."""


def _is_message(value: object) -> bool:
    items = value if isinstance(value, list) and value else [value]
    return isinstance(value, str) or all(isinstance(item, dict) and not _OF_MESSAGES.isdisjoint(item) for item in items)


def _read_messages(value: object, role: str, reader: FieldReader) -> list[Message]:
    """Return the messages that the input or the output of a call holds, however it writes them."""
    found: list[Message] = []
    decoded = decode(value)
    is_chat = type(decoded) is list and all(type(item) is dict and "role" in item for item in decoded)
    for given in decoded if is_chat else _list_messages(value, role):
        message = None if '"function"' in str(given.get("content"))[:20] else _read_simple(given, reader)
        if message is not None:
            found.append(message)
        elif (raw := unwrap(_tidy(given))) is not None and value_at(raw, "content.function") is None:
            before = len(reader.problems)
            said = raw.get("role", raw.get("from"))
            is_tool = any(call.name == said for message in found for call in message.calls)
            name = TOOL if is_tool else find_role(said, reader.names) or role
            message = read_message(reader, raw, "a message", name)
            if len(reader.problems) == before or message.calls:
                found.append(message)
    return [_read_printed(message) if _PRINTED.match(message.text) else message for message in found]


_PRINTED = re.compile(
    r"ResponseFunctionToolCall\(arguments='(.*?)', call_id='(.*?)', name='(.*?)'.*?\)(?: |$)", re.DOTALL
)


def _read_printed(message: Message) -> Message:
    """Return a message with the calls that an SDK printed as a text."""
    found = _PRINTED.findall(message.text)
    calls = [{"name": name, "arguments": arguments, "id": call_id} for arguments, call_id, name in found]
    return message._replace(text=_PRINTED.sub("", message.text).strip(), calls=tuple(map(read_call, calls)))


def _read_simple(given: RowObject, reader: FieldReader) -> Message | None:
    """Return a message of one text, as most are; None for others."""
    parts = given.get("parts")
    if parts is None:
        plain = read_plain_message(given, reader.names)
        return None if plain is None else Message(*plain)
    role = find_role(given.get("role"), reader.names)
    if role is None or type(parts) is not list or len(parts) != 1 or type(parts[0]) is not dict:
        return None
    part = parts[0]
    is_text = part.get("type") == "text" and type(part.get("content")) is str
    return Message(role, part["content"]) if is_text else None


def decode(value: object) -> Any:
    """Return what a text of JSON says, also one that was encoded twice."""
    for _ in range(2):
        value = parse_text(value, None) if isinstance(value, str) and value.lstrip()[:1] in ('"', "[", "{") else value
    return value


def _list_messages(value: object, role: str) -> Iterator[RowObject]:
    given, value = value, decode(value)
    if isinstance(given, str) and isinstance(value, (dict, list)):  # a text of JSON that holds no messages is a text
        messages = list(_list_messages(value, role))
        yield from messages or [{"role": role, "content": given}]
    elif isinstance(value, (str, int, float)) and not isinstance(value, bool):
        yield {"role": role, "content": str(value)}
    elif isinstance(value, LISTS):
        if value and all(isinstance(item, dict) and "role" not in item for item in value):
            if all("toolName" in item or "function" in item for item in value):
                yield {"role": ASSISTANT, "content": "", "tool_calls": list(value)}
                return
            if all(item.get("type") == "text" or set(item) == {"text"} for item in value):
                yield {"role": role, "content": list(value)}
                return
        for item in value:
            yield from _list_messages(item, role)
    elif isinstance(value, dict):
        yield from _list_inside(value, role)


def _list_inside(value: JsonObject, role: str) -> Iterator[RowObject]:
    """Yield the message that an object is, or those in it."""
    kind = value.get("type")
    if "role" in value or "message.role" in value or (isinstance(kind, str) and unwrap(value) is not value):
        yield value
        return
    if isinstance(kwargs := value.get("kwargs"), dict) and "content" in kwargs:
        yield value
        return
    for path in _INSIDE["system"] if role == USER else ():
        if (prompt := value_at(value, path)) and isinstance(prompt, str | list | dict):
            for message in _list_messages(prompt, SYSTEM):
                yield {**message, "role": SYSTEM}
            break
    calls = next((parse_text(value[name], None) for name in _INSIDE["calls"] if value.get(name)), None)
    paths = _INSIDE[USER if role == SYSTEM else role]
    inner = next((found for path in paths if (found := value_at(value, path)) not in (None, "", [])), None)
    if isinstance(inner, dict) and role == ASSISTANT and "parts" in inner:
        inner = {"role": ASSISTANT, **inner}
    messages: list[RowObject] = [{"role": role, "content": inner}]
    messages = messages if isinstance(inner, str) else list(_list_messages(inner, role))
    if calls and role == ASSISTANT:
        messages = messages or [{"role": ASSISTANT, "content": ""}]
        messages[-1] = {"tool_calls": calls, **messages[-1]}
    yield from messages


def _tidy(message: RowObject) -> RowObject:
    """Return a message of OpenInference or Vercel as others write it."""
    inner = {key.removeprefix("message."): value for key, value in message.items()}
    if isinstance(text := inner.get("content"), str) and text.startswith("[{") and '"function"' in text:
        calls = decode(text)
        if isinstance(calls, list) and all(isinstance(value_at(call, "function.name"), str) for call in calls):
            return {**inner, "role": ASSISTANT, "content": "", "tool_calls": calls}
    if isinstance(nested := inner.get("message"), dict) and "role" in nested and "role" not in inner:
        inner = dict(nested)
    if isinstance(nested := inner.get("content"), dict):  # of Amazon's distribution of OpenTelemetry
        nested = nested.get("content", nested.get("message", nested))
        inner["content"] = decode(nested) if isinstance(decode(nested), list) else nested
    contents = inner.pop("contents", None)
    if inner.get("content") is None and isinstance(contents, LISTS):
        inner["content"] = [part.get("message_content", part) if isinstance(part, dict) else part for part in contents]
    if isinstance(calls := inner.get("tool_calls"), LISTS):
        inner["tool_calls"] = [call.get("tool_call", call) if isinstance(call, dict) else call for call in calls]
    return inner
