"""Traces: conversations that are put together from spans.

A span is one step of a program: a call of a language model, a call of a tool, or anything else. OpenTelemetry (OTLP,
and the exports of Jaeger, Tempo and the SDKs), Langfuse, LangSmith, MLflow, Phoenix, Braintrust, Opik and TruLens all
write trees of them, under other names; `traces.toml` lists these names, and `TraceSpan` is what they have in common.

The spans of one conversation id, else of one trace, are a conversation. Its calls of models are read in the order of
their starts. The input of a call repeats what was said before: it is aligned with what is known by its texts, and only
what follows is new. A call without any overlap begins a thread of its own, such as that of an agent that is called as a
tool; what the assistant said before the first call is `history`, the context of replies and no reply. Calls of tools
are recognized again by their ids, else by name and arguments; a span of a tool gives the call its result.

A call that is logged twice, by two libraries or as the outer and the inner part of one span, has the same output at the
same time and counts once. A failed call that was repeated with success is left out. Where no call of a model has texts,
the outermost spans are read as calls; where these have none either, there is nothing to read.

What is held of a file until its end is a small record for each span about models or tools. The texts of OTLP lines stay
in the file; other spans are held as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import orjson

from dialeval.core.errors import DataError, Problem, add_warning
from dialeval.core.validation import parse_toml
from dialeval.io.calls import dump, parse_text, read_call, unwrap
from dialeval.io.fields import FieldReader, Message, find_role, read_message, read_plain_message, read_time
from dialeval.io.otlp import Export, open_span, read_export, read_head, unpack_pairs
from dialeval.io.outcomes import is_failed
from dialeval.io.row_shapes import value_at
from dialeval.io.rows import ASSISTANT, LISTS, SYSTEM, TOOL, USER, FieldNames, RowObject, read_number
from dialeval.io.scores import read_scores

_TABLE = Path(__file__).with_suffix(".toml")
_TOML = parse_toml(_TABLE.read_bytes(), str(_TABLE), "install dialeval again")
_PATHS = {
    name: [(path, path.partition(".")[0] if "." in path else path) for path in paths.split(" | ")]
    for name, paths in (_TOML["fields"] | _TOML["found"]).items()
}
"""The paths of a name, each with the key that it begins with."""
_KINDS = {name: kind for kind, names in _TOML["kinds"].items() for name in names}
_INSIDE: dict[str, list[str]] = _TOML["inside"]
_ONLY_LLM: list[str] = _TOML["only_llm"]["paths"]
_INDEXED = tuple(_TOML["indexed"]["prefixes"])
_MARKERS = [marker.encode() for marker in _TOML["markers"]]
_SESSION = (b"onversation", b"ession", b"hread")
_CHILDREN = ("observations", "spans", "child_runs", "children", "calls")
"""The fields of a trace or a span with its spans."""
_LISTED = ("data", "traces", "batch", "post", "patch", "runs", "events", "content", "results", "items")
"""The fields of a document with its traces or spans."""
_HOLD_TEXTS = frozenset(("input", "output", "inputs", "outputs", "attributes", "tags", "record_attributes"))
_FAILED = ("error", "status_code_error", "2")


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
    given: RowObject
    """All of its fields and attributes."""
    scores: dict[str, Any] = field(default_factory=dict)

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


def _find(given: Mapping[str, Any], name: str) -> Any:
    """Return what is at the first path of a name that leads to something."""
    for path, head in _PATHS[name]:
        value = given.get(path) if path is head or path in given else value_at(given, path) if head in given else None
        if value not in (None, "", "{}", [], {}):
            return value
    return None


def _collect_indexed(flat: RowObject) -> None:
    """Add the lists that indexed keys are, such as `llm.input_messages.0.message.role`."""
    trees: dict[str, dict[str, Any]] = {}
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


def _make_lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if all(key.isdecimal() for key in tree):
        return [_make_lists(tree[key]) for key in sorted(tree, key=int)]
    return {key: _make_lists(value) for key, value in tree.items()}


def _flatten(given: RowObject) -> RowObject:
    """Return the fields and attributes of a span in one object, with those of its events."""
    flat: RowObject = {}
    for name in ("attributes", "tags", "record_attributes", "resource_attributes"):
        inner = unpack_pairs(_parse_cell(given.get(name)))
        flat |= inner if isinstance(inner, dict) else {}
    flat |= {key.removeprefix("attributes."): _parse_cell(value) for key, value in given.items() if value is not None}
    for key in [key for key in flat if key.startswith("mlflow.")]:  # all of them are JSON
        flat[key] = parse_text(flat[key], None)
    for name in ("events", "span_events", "logs"):
        events = parse_text(flat.get(name), None)
        if isinstance(events, LISTS):
            _add_events(flat, [event for event in events if isinstance(event, dict)])
    _collect_indexed(flat)
    return flat


def _parse_cell(value: object) -> Any:
    """Return an object in a cell of a table, as Python or JSON writes it; anything else as it is."""
    if not isinstance(value, str) or not value.startswith("{'"):
        return value
    import ast

    try:
        return ast.literal_eval(value)
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


def _make_span(given: RowObject, reader: FieldReader) -> TraceSpan:
    """Return the span that an object of any program is."""
    flat = _flatten(given)
    kind = _find_kind(flat)
    start, end = (_read_time(_find(flat, name)) for name in ("start", "end"))
    duration = read_number(flat.get("duration"))
    if end is None and start is not None and duration is not None:  # Jaeger has microseconds
        end = start + duration / 1e6
    inputs = [
        *_read_messages(_find(flat, "system"), SYSTEM, reader),
        *_read_messages(_find(flat, "input"), USER, reader),
    ]
    output = _find(flat, "output")
    if kind == "llm" and isinstance(output, str) and not _is_message(_decode(output)):  # a reply in JSON is a text
        output = {"role": ASSISTANT, "content": output}
    outputs = _read_messages(output, ASSISTANT, reader)
    if inputs and [said[:2] for said in outputs[: len(inputs)]] == [said[:2] for said in inputs]:
        outputs = outputs[len(inputs) :]  # a state that goes on from the input
    elif not outputs and kind != "tool" and inputs and inputs[-1].role == ASSISTANT:
        outputs = [inputs.pop()]
    if kind == "tool":  # its input and output may be anything
        reader.problems.clear()
    error, status = _find(flat, "error"), _find(flat, "status")
    failed = str(status).lower() in _FAILED or is_failed(flat.get("error"), status, None)
    parent, trace, own_id = (_text(_find(flat, name)) for name in ("parent", "trace", "id"))
    return TraceSpan(
        own_id or "",
        trace or own_id or "",
        not parent,
        _text(_find(flat, "name")) or "",
        kind,
        start,
        end,
        _text(_find(flat, "model")),
        inputs,
        outputs,
        (error if isinstance(error, str) and error else "error") if failed else None,
        flat,
        read_scores(_list_scores(flat, of_spans=False)),
    )


def _list_scores(flat: RowObject, of_spans: bool) -> Any:
    """Return the scores of a trace or a span itself, or those that it lists for other spans."""
    given = _decode(_find(flat, "scores"))
    if not isinstance(given, LISTS):
        return [] if of_spans else given
    return [item for item in given if isinstance(item, dict) and (_find(item, "observation") is not None) == of_spans]


def _find_kind(flat: RowObject) -> str:
    for path, head in _PATHS["kind"]:
        value = value_at(flat, path) if path in flat or head in flat else None
        if isinstance(value, str) and (kind := _KINDS.get(value.lower().split(" ")[0].rpartition("/")[2])) is not None:
            is_other = kind == "llm" and _KINDS.get(str(_find(flat, "name")).lower()) == "other"
            return "other" if is_other else kind
    is_llm = any(value_at(flat, path) not in (None, "{}") for path in _ONLY_LLM)
    return "llm" if is_llm else ""


def _text(value: object) -> str | None:
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
    decoded = _decode(value)
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


def _decode(value: Any) -> Any:
    """Return what a text of JSON says, also one that was encoded twice."""
    for _ in range(2):
        value = parse_text(value, None) if isinstance(value, str) and value.lstrip()[:1] in ('"', "[", "{") else value
    return value


def _list_messages(value: Any, role: str) -> Iterator[RowObject]:
    given, value = value, _decode(value)
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


def _list_inside(value: dict[str, Any], role: str) -> Iterator[RowObject]:
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
        calls = _decode(text)
        if isinstance(calls, list) and all(isinstance(value_at(call, "function.name"), str) for call in calls):
            return {**inner, "role": ASSISTANT, "content": "", "tool_calls": calls}
    if isinstance(nested := inner.get("message"), dict) and "role" in nested and "role" not in inner:
        inner = dict(nested)
    if isinstance(nested := inner.get("content"), dict):  # of Amazon's distribution of OpenTelemetry
        nested = nested.get("content", nested.get("message", nested))
        inner["content"] = _decode(nested) if isinstance(_decode(nested), list) else nested
    contents = inner.pop("contents", None)
    if inner.get("content") is None and isinstance(contents, LISTS):
        inner["content"] = [part.get("message_content", part) if isinstance(part, dict) else part for part in contents]
    if isinstance(calls := inner.get("tool_calls"), LISTS):
        inner["tool_calls"] = [call.get("tool_call", call) if isinstance(call, dict) else call for call in calls]
    return inner


# Conversations.


def _list_spans(document: object) -> Iterator[Any]:
    """Yield the spans and traces in a document, with the ids of the trace that they are in."""
    if isinstance(document, dict) and (document.keys() & {"resourceSpans", "batches", "resourceLogs"}):
        document = read_export(orjson.dumps(document))
    if isinstance(document, Export):
        for raw in document.list_raw():
            text = bytes(raw)
            if any(marker in text for marker in _MARKERS):
                yield raw
    elif isinstance(document, list):
        for item in document:
            yield from _list_spans(item)
    elif isinstance(document, dict):
        yield from _list_inner_spans(document)


def _list_inner_spans(document: RowObject) -> Iterator[RowObject]:
    trace = _decode(document.get("trace"))
    if isinstance(trace, dict) and "info" in trace:  # a row of a table of MLflow
        document = trace
    is_mlflow = isinstance(document.get("info"), dict) and isinstance(document.get("data"), dict)
    if (
        isinstance(trace, dict) and trace is not document and "span_id" not in trace
    ):  # a trace of Langfuse or Opik next to its spans
        yield {key: value for key, value in trace.items() if key not in _CHILDREN}
        document = {"id": trace.get("id")} | {name: value for name, value in document.items() if name in _CHILDREN}
    elif isinstance(body := document.get("body"), dict) and "spanId" in document:  # a log record of OpenTelemetry
        told = {**unpack_pairs(document.get("attributes") or {}), **body}
        event = {"name": document.get("eventName") or told.get("event.name"), "attributes": told}
        texts = {side: body[side] for side in ("input", "output") if side in body}
        yield {**document, "events": [event], **texts}
    elif isinstance(body, dict):  # an event of Langfuse
        kind = document.get("type")
        known: RowObject = {"trace_id": body.get("id")} if kind == "trace-create" else {"type": kind}
        yield {"trace_id": body.get("traceId"), "scores": [body]} if kind == "score-create" else {**body, **known}
    elif is_mlflow:
        yield {"info": document["info"], "trace_id": _find(document, "trace")}
    elif _looks_like_span(document):
        yield {key: value for key, value in document.items() if key not in _CHILDREN}
    own = _text(_find(document, "trace")) or _text(document.get("id"))
    for name in (*_CHILDREN, *_LISTED):
        inner: Any = document.get(name)
        if is_mlflow and name == "data":  # its spans name the trace in another way
            inner = inner.get("spans")
            yield from ({**span, "trace_id": own} for span in _list_spans(inner))
        elif isinstance(inner, list) and (name in _CHILDREN or not _looks_like_span(document)):
            for span in _list_spans(inner):
                yield {"trace_id": own, **span} if isinstance(span, dict) and name in _CHILDREN and own else span


def _looks_like_span(document: RowObject) -> bool:
    has_time = any(value_at(document, path) is not None for path, _ in (*_PATHS["start"], *_PATHS["end"]))
    is_typed = any(name in document for name in ("type", "run_type", "span_kind", "span_attributes", "metrics"))
    has_texts = any(name.partition(".")[0] in _HOLD_TEXTS for name in document)
    return has_texts and (has_time or is_typed)


def assemble(rows: Iterable[tuple[int, object]], where: str, names: FieldNames) -> Iterator[tuple[int, RowObject]]:
    """Yield a chat for each conversation in the spans of an input, with the line of its first span."""
    traces: dict[str, list[tuple[int, Any]]] = {}
    conversations: dict[str, str] = {}
    for line, document in rows:
        for given in _list_spans(document):
            if isinstance(given, msgspec.Raw):
                trace, text = read_head(given).trace_id, bytes(given)
                named = any(word in text for word in _SESSION)
            else:
                trace = _text(_find(given, "trace")) or _text(given.get("id")) or ""
                named = True
            traces.setdefault(trace, []).append((line, given))
            if named and trace not in conversations:
                conversation = _text(_find(_flatten(open_span(given)), "conversation"))
                conversations |= {} if conversation is None else {trace: conversation}
    groups: dict[str, list[str]] = {}
    for trace in traces:
        groups.setdefault(conversations.get(trace, trace), []).append(trace)
    met = _Met()
    for conversation, members in groups.items():
        held = [span for trace in members for span in traces.pop(trace)]
        builder = _Builder(conversation or "trace", names, met)
        spans = [_make_span(given, builder.reader) for given in _merge(open_span(span) for _, span in held)]
        row = builder.build(_place_scores(spans))
        met.unread += len(builder.reader.problems)
        if row is not None:
            yield held[0][0], row
    met.report(where)


def _merge(documents: Iterable[RowObject]) -> list[RowObject]:
    """Return spans, each once: one that is logged when it starts and when it ends, or whose events are log records."""
    merged: dict[tuple[object, ...], RowObject] = {}
    for at, document in enumerate(documents):
        key = (_text(_find(document, "trace")), _text(_find(document, "id")) or at)
        known = merged.setdefault(key, document)
        if known is not document:
            for name, value in document.items():
                own = known.get(name)
                if isinstance(own, list) and isinstance(value, list) and name in ("events", "attributes"):
                    known[name] = own + [item for item in value if item not in own]
                elif isinstance(own, dict) and isinstance(value, dict):
                    known[name] = own | value
                elif value not in (None, "", [], {}):
                    known[name] = value
    return list(merged.values())


def _place_scores(spans: list[TraceSpan]) -> list[TraceSpan]:
    """Return spans with the scores that a trace lists for them."""
    by_id = {span.id: span for span in spans}
    for span in spans:
        for item in _list_scores(span.given, of_spans=True):
            by_id.get(str(_find(item, "observation")), span).scores |= read_scores([item])
    return spans


@dataclass(slots=True)
class _Met:
    """What was met in the spans of an input, and is not in its conversations."""

    told: int = 0
    """Conversations with texts."""
    silent: int = 0
    """Calls of models without texts."""
    merged: int = 0
    repeated: int = 0
    unread: int = 0
    answers: dict[int, tuple[str, str, float, float]] = field(default_factory=dict)
    """Traces, kinds and times of answers, by the hashes of their texts."""

    def report(self, where: str) -> None:
        """Warn of what was left out; DataError where no span is a call of a model."""
        if not self.told and not self.silent:
            remedy = "give the spans of the models; or, where they are in the file, name the fields of rows: --field"
            raise DataError(Problem(where, None, "is a trace that has no call of a model", remedy))
        causes = (
            "; most likely the capture of contents is off (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true, "
            "TRACELOOP_TRACE_CONTENT=true, OPENINFERENCE_HIDE_INPUTS=false turn it on), or a collector removed them, "
            "or they are log records in another file"
        )
        told = {
            f"calls of models have no texts and count as replies that are missing{causes}": self.silent,
            "messages or parts of messages hold no text and were left out": self.unread,
            "calls that another trace holds as well, at the same time, are counted once": self.merged,
            "failed calls were repeated with success and left out": self.repeated,
        }
        for what, number in told.items():
            if number:
                add_warning(f"{where}: {number:,} {what}")


class _Thread:
    """The texts of one line of messages, in order."""

    def __init__(self, trace: str) -> None:
        self.keys: list[tuple[str, str]] = []
        self.trace = trace

    def overlap(self, keys: list[tuple[str, str]], trace: str) -> int:
        """Return how many of the first texts of an input are the last ones here."""
        known = self.keys
        if len(keys) < len(known) and known[: len(keys)] == keys:  # the same question again
            return len(keys) if trace == self.trace else 0
        most = min(len(keys), len(known))
        return next((size for size in range(most, 0, -1) if known[-size:] == keys[:size]), 0)


class _Builder:
    """A builder of the chat of one conversation, span after span."""

    def __init__(self, conversation: str, names: FieldNames, met: _Met) -> None:
        self.reader = FieldReader("", names, [])
        self._conversation, self._met = conversation, met
        self._messages: list[RowObject | None] = []
        self._history: list[RowObject] = []
        self._threads: list[_Thread] = []
        self._calls: list[dict[str, Any]] = []
        self._failed: dict[tuple[Any, ...], list[int]] = {}
        self._prompt = ""

    def build(self, spans: list[TraceSpan]) -> RowObject | None:
        """Return the chat; None for spans that say nothing, or that another conversation has as well."""
        spans = sorted(spans, key=TraceSpan.time)
        self._mark_instructions(spans)
        models = _drop_repeated(self._choose(spans))
        told = [span for span in models if span.has_texts]
        silent = [span for span in models if not span.has_texts and not any(map(span.overlaps, told))]
        met = [self._was_met(span) for span in told if span.trace == self._conversation]
        if met and all(met):
            self._met.merged += len(met)
            return None
        tools = [span for span in spans if span.kind == "tool"]
        if not told and not silent:
            return None
        self._met.told += bool(told)
        for span in spans:
            if span in tools:
                self._add_tool(span, tools)
            elif span in told or (span in silent and span.error):
                self._add_call(span)
            elif span in silent:
                self._met.silent += 1
                self._messages.append({"role": ASSISTANT, "content": None, **_describe(span)})
        return self._finish(spans, models)

    def _finish(self, spans: Sequence[TraceSpan], models: Sequence[TraceSpan]) -> RowObject:
        messages = [message for message in self._messages if message is not None]
        prompt = [{"role": SYSTEM, "content": self._prompt}] if self._prompt else []
        answered = any(message.get("role") == ASSISTANT and message.get("content") for message in messages)
        scores: dict[str, Any] = {}
        for span in spans:
            scores |= {} if span in models else span.scores
        row = {
            "id": self._conversation,
            "history": [*prompt, *self._history] if self._history else None,
            "messages": messages if self._history else [*prompt, *messages],
            "system": next((span.model for span in models if span.model), None),
            "scores": scores or None,
            "error": None if answered else next((span.error for span in spans if span.is_root and span.error), None),
        }
        return {name: value for name, value in row.items() if value is not None}

    def _choose(self, spans: Sequence[TraceSpan]) -> list[TraceSpan]:
        """Return the calls of models; of a trace whose calls have no texts the outermost span that has some."""
        chosen: list[TraceSpan] = []
        for trace in dict.fromkeys(span.trace for span in spans):
            members = [span for span in spans if span.trace == trace]
            models = [span for span in members if span.kind == "llm"]
            if not any(map(_answers, models)):
                outer = [span for span in members if span.kind == "" and span.has_texts]
                outer.sort(key=lambda span: (not _answers(span), not span.is_root))
                models = outer[:1] or models
            chosen += models
        return [span for span in spans if span in chosen]

    def _mark_instructions(self, spans: Sequence[TraceSpan]) -> None:
        """Give what a program said in the name of the user, ahead of the user's own message, the role of a prompt."""
        asked = {
            message.text.strip()
            for span in spans
            if span.kind == ""
            for message in span.inputs
            if message.role == USER and message.text
        }
        for span in spans:
            first = next((at for at, said in enumerate(span.inputs) if said.text.strip() in asked), 0)
            if span.kind == "llm" and first:
                given = span.inputs[:first]
                span.inputs[:first] = [said._replace(role=SYSTEM) if said.role == USER else said for said in given]

    def _was_met(self, span: TraceSpan) -> bool:
        """Return whether a span of another kind in another trace has the same answer at the same time, to a second."""
        if span.start is None or span.end is None:
            return False
        own = (span.trace, f"{span.kind} {span.name}", span.start, span.end)
        key = hash((_read_question(span), _output_key(span)))
        trace, kind, start, end = self._met.answers.setdefault(key, own)
        if trace != own[0] and kind != own[1] and span.start <= end + 1 and start <= span.end + 1:
            return True
        self._met.answers[key] = own
        return False

    def _add_call(self, span: TraceSpan) -> None:
        """Add what is new in a call of a model: in its input, and its output."""
        self._prompt = self._prompt or "\n\n".join(
            said.text for said in span.inputs if said.role == SYSTEM and said.text
        )
        inputs = [said for said in span.inputs if said.role != SYSTEM]
        keys = [(said.role, said.text.strip()) for said in inputs if _is_text(said)]
        thread = max(self._threads, key=lambda each: each.overlap(keys, span.trace), default=None)
        overlap = 0 if thread is None else thread.overlap(keys, span.trace)
        if thread is None or (keys and not overlap):
            spoken = [at for at, said in enumerate(inputs) if said.role == ASSISTANT and said.text.strip()]
            begin = spoken[-1] + 1 if spoken else 0
            if thread is None:
                self._history = [_write(said) for said in inputs[:begin]]
            inputs, overlap = inputs[begin:], 0
            thread = _Thread(span.trace)
            self._threads.append(thread)
        self._add_inputs(inputs, overlap)
        texts = [said for said in span.outputs if _is_text(said)]
        thread.trace, thread.keys = span.trace, [*keys, *((said.role, said.text.strip()) for said in texts)]
        attempt = (span.trace, *keys, *(said.results for said in inputs))
        if not texts and not any(said.calls for said in span.outputs):
            if span.error is not None:
                self._failed.setdefault(attempt, []).append(len(self._messages))
            self._messages.append({"role": ASSISTANT, "content": None, **_describe(span)})
            return
        for at in self._failed.pop(attempt, ()):
            self._messages[at] = None
            self._met.repeated += 1
        for at, said in enumerate(span.outputs):
            new = self._add_new_calls(said.calls)
            if said.text.strip() or new:
                last = at == len(span.outputs) - 1
                self._messages.append({**_write(said), **(_describe(span) if last else {})})

    def _add_inputs(self, inputs: Sequence[Message], overlap: int) -> None:
        place = 0
        seen: dict[str, int] = {}
        for said in inputs:
            is_new = False
            if _is_text(said):
                is_new, place = place >= overlap, place + 1
            calls = self._add_new_calls(said.calls, seen)
            results = [result for result in said.results if self._take_result(result.id, result.name)]
            if is_new or calls or (results and said.role == TOOL):
                text = said.text if is_new or results else ""
                self._messages.append(_write(said._replace(text=text, calls=calls, results=tuple(results))))

    def _add_new_calls(self, calls: Iterable[Any], seen: dict[str, int] | None = None) -> tuple[Any, ...]:
        """Return the calls that are not known yet; `seen` counts equal ones in the same input."""
        new = []
        for call in calls:
            key = dump([call.name, call.arguments])
            alike = [one for one in self._calls if call.id is not None and one["id"] == call.id]
            by_key = call.id is None or (seen is not None and not alike)  # some libraries repeat calls by other ids
            alike = [one for one in self._calls if one["key"] == key] if by_key else alike
            number = seen.get(key, 0) if seen is not None and by_key else 0
            if seen is not None:
                seen[key] = number + 1
            if number >= len(alike) or (seen is None and call.id is None):
                self._calls.append({"id": call.id, "key": key, "name": call.name, "answered": False})
                new.append(call)
        return tuple(new)

    def _take_result(self, call_id: str | None, name: str | None) -> bool:
        """Return whether a result is new, and give it to its call."""
        waiting = [one for one in self._calls if not one["answered"]]
        by_id = [one for one in self._calls if call_id is not None and one["id"] == call_id]
        matching = by_id or [one for one in waiting if name in (None, one["name"])]
        if not matching or matching[0]["answered"]:
            return False
        matching[0]["answered"] = True
        return True

    def _add_tool(self, span: TraceSpan, tools: Sequence[TraceSpan]) -> None:
        """Add the call of a tool and its result, as far as they are not known."""
        name = _text(_find(span.given, "tool")) or span.name.rpartition(" ")[2]
        given = _find(span.given, "arguments")
        call_id = _text(_find(span.given, "call_id"))
        said = [" ".join(message.text for message in side if message.text) for side in (span.inputs, span.outputs)]
        by_events = isinstance(span.given.get("gen_ai.input.messages"), list)  # arguments and result are messages
        arguments = said[0] if by_events else _find(span.given, "input")
        arguments = _unwrap_only(arguments if given is None else given, "input")
        raw = _find(span.given, "result") or (said[1] if by_events else _find(span.given, "output"))
        result = _unwrap_only(raw, "output")
        if not name:
            return
        key = dump([name, {} if arguments is None else arguments])
        known = [one for one in self._calls if (call_id is not None and one["id"] == call_id) or one["key"] == key]
        known = known or [one for one in self._calls if call_id is None and one["name"] == name and not one["answered"]]
        waiting = [one for one in known if not one["answered"]]
        outer = [other for other in tools if other is not span and other.start is not None and other.overlaps(span)]
        if not known or (not waiting and not outer and call_id is None):
            call = {"id": call_id, "name": name, "arguments": arguments}
            waiting = [{"id": call_id, "key": key, "name": name, "answered": False}]
            self._calls += waiting
            self._messages.append({"role": ASSISTANT, "content": "", "tool_calls": [call]})
        if waiting and (result is not None or span.error):
            waiting[0]["answered"] = True
            text = next((value for value in (result, raw) if isinstance(value, str)), dump(result))
            told = {"tool_call_id": waiting[0]["id"], "name": name, "content": span.error or text}
            self._messages.append({"role": TOOL, **told, **({"is_error": True} if span.error else {})})


def _unwrap_only(value: Any, name: str) -> Any:
    """Return the input or the output of a tool, without an object that holds nothing else."""
    value = _parse_cell(_decode(value))
    return _parse_cell(_decode(value[name])) if isinstance(value, dict) and value.keys() == {name} else value


def _is_text(message: Message) -> bool:
    return message.role in (USER, ASSISTANT) and bool(message.text.strip())


def _answers(span: TraceSpan) -> bool:
    return any(message.text.strip() or message.calls for message in span.outputs)


def _read_question(span: TraceSpan) -> str:
    return next((said.text.strip() for said in reversed(span.inputs) if said.role == USER and said.text), "")


def _output_key(span: TraceSpan) -> tuple[Any, ...]:
    """Return what makes two calls the same, next to their questions: what was said and called last."""
    answers = [
        (said.text.strip(), *((call.name, dump(call.arguments)) for call in said.calls)) for said in span.outputs
    ]
    return tuple(answers[-1:] if answers and answers[-1][0] else answers)


def _drop_repeated(models: list[TraceSpan]) -> list[TraceSpan]:
    """Return calls of models without those that another call has inside of it, or next to it, with the same output."""
    kept: dict[tuple[Any, ...], list[TraceSpan]] = {}
    for span in models:
        alike = kept.setdefault(_output_key(span) if _answers(span) else (id(span),), [])
        asked = _read_question(span)
        outer = next(
            (
                other
                for other in alike
                if other.trace == span.trace
                and other.overlaps(span)
                and (_read_question(other) in ("", asked) or not asked)
            ),
            None,
        )
        if outer is not None:
            alike.remove(outer)
            span.scores = outer.scores | span.scores
        alike.append(span)
    chosen = {id(span) for spans in kept.values() for span in spans}
    return [span for span in models if id(span) in chosen]


def _write(message: Message) -> RowObject:
    """Return a message as chats have it."""
    written: RowObject = {"role": message.role, "content": message.text}
    if message.calls:
        written["tool_calls"] = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.calls]
    if message.results:
        texts = [message.text] + [""] * (len(message.results) - 1)
        written["content"] = [
            {"type": "tool_result", "tool_use_id": result.id, "content": text, "is_error": result.error}
            for result, text in zip(message.results, texts, strict=True)
        ]
    return written


def _describe(span: TraceSpan) -> RowObject:
    """Return what a span says about its reply: latency, tokens, cost, scores, and errors."""
    seconds = None if span.start is None or span.end is None else span.end - span.start
    facts = {name: _find(span.given, name) for name in ("input_tokens", "output_tokens", "cost", "finish")}
    finish = facts.pop("finish")
    more = {"latency": seconds, "finish_reason": finish if isinstance(finish, str) else None, "error": span.error}
    numbers = {name: read_number(value) for name, value in facts.items()}
    return {
        name: value for name, value in {**more, **numbers, "scores": span.scores or None}.items() if value is not None
    }
