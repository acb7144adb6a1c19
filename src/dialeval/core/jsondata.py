"""Plain data for JSON: null for NaN and infinities, and the layout of every JSON file that people may open."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson

from dialeval.core.plain_text import whole_characters


def null_for_nan(value: Any) -> Any:
    """Return plain data with None for every float that is not finite, and lists for tuples."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: null_for_nan(inner) for key, inner in value.items()}
    return [null_for_nan(inner) for inner in value] if isinstance(value, list | tuple) else value


def dump(document: Any) -> bytes:
    """Return a document as indented JSON with a line feed at its end."""
    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    try:
        return orjson.dumps(document, option=option)
    except TypeError:  # half a character, as in the name of a file that is not UTF-8; anything else is raised again
        return orjson.dumps(_writable(document), option=option)


def _writable(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, Mapping):
        return {_writable(key): _writable(inner) for key, inner in value.items()}
    return [_writable(inner) for inner in value] if isinstance(value, list | tuple) else value
