"""OTLP as JSON: typed decoding that leaves spans and log records as bytes, since few of them are about models."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from dialeval.core.validation import JsonObject
from dialeval.io.rows import RowObject


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
