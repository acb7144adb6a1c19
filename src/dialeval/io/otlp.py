"""OTLP as JSON: typed decoding of spans and log records, whose attributes are decoded only where they are needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from dialeval.io.rows import RowObject


class Value(msgspec.Struct, rename="camel"):
    """The value of an attribute, under the name of its type."""

    string_value: str | None = None
    int_value: str | int | None = None
    double_value: float | None = None
    bool_value: bool | None = None
    array_value: _List | None = None
    kvlist_value: _Pairs | None = None


class _List(msgspec.Struct, rename="camel"):
    values: list[Value] = []


class _Pair(msgspec.Struct, rename="camel"):
    key: str
    value: Value = msgspec.field(default_factory=Value)


class _Pairs(msgspec.Struct, rename="camel"):
    values: list[_Pair] = []


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


class Head(msgspec.Struct, rename="camel"):
    """The ids of a span or a log record."""

    trace_id: str = ""
    span_id: str = ""


class _Event(msgspec.Struct, rename="camel"):
    name: str = ""
    attributes: list[_Pair] = []


class _OtlpSpan(Head, rename="camel"):
    parent_span_id: str = ""
    name: str = ""
    start_time_unix_nano: str | int = 0
    end_time_unix_nano: str | int = 0
    time_unix_nano: str | int = 0
    event_name: str = ""
    attributes: list[_Pair] = []
    events: list[_Event] = []
    status: dict[str, Any] = {}
    body: Value | None = None


read_export = msgspec.json.Decoder(Export).decode
read_head = msgspec.json.Decoder(Head).decode
_read_span = msgspec.json.Decoder(_OtlpSpan).decode


def find_decoder(line: bytes) -> Any:
    """Return the decoder of lines that begin like this one: that of OTLP, or of any JSON."""
    return read_export if re.match(rb'\s*\{\s*"resource(Spans|Logs|Metrics)"', line) else orjson.loads


def read_value(value: Value) -> Any:
    """Return the value of an attribute."""
    if value.string_value is not None:
        return value.string_value
    if value.array_value is not None:
        return [read_value(item) for item in value.array_value.values]
    if value.kvlist_value is not None:
        return _plain_pairs(value.kvlist_value.values)
    if value.int_value is not None:
        return int(value.int_value)
    return value.bool_value if value.double_value is None else value.double_value


def _plain_pairs(pairs: Sequence[_Pair]) -> dict[str, Any]:
    return {pair.key: read_value(pair.value) for pair in pairs}


def open_span(raw: msgspec.Raw) -> RowObject:
    """Return a span or a log record of OTLP as the other programs have it."""
    span = _read_span(raw)
    events = [{"name": event.name, "attributes": _plain_pairs(event.attributes)} for event in span.events]
    attributes = _plain_pairs(span.attributes)
    opened: RowObject = {
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "parent_span_id": span.parent_span_id,
        "name": span.name,
        "start_time": span.start_time_unix_nano or None,
        "timestamp": span.time_unix_nano or None,
        "end_time": span.end_time_unix_nano or None,
        "status": span.status,
        "events": events,
        "attributes": attributes,
    }
    if span.time_unix_nano:  # a log record is an event of its span
        body = None if span.body is None else read_value(span.body)
        inner = attributes | (body if isinstance(body, dict) else {"content": body})
        opened |= {"events": [{"name": span.event_name or attributes.get("event.name", ""), "attributes": inner}]}
        opened["attributes"] = {}
    return opened
