"""JSON files: read with faults that name the file, and written for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dialeval.core.errors import DataError, Fault


def read_json(path: Path, remedy: str) -> Any:
    """The document in a file; DataError with `remedy` where it cannot be read or is not JSON."""
    try:
        return parse_json(path.read_bytes(), str(path), remedy)
    except OSError as error:
        raise DataError(Fault(str(path), None, f"cannot be read ({error.strerror})", remedy)) from None


def parse_json(content: bytes, where: str, remedy: str) -> Any:
    """The document in some bytes; `where` names their file."""
    import orjson

    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise DataError(Fault(where, error.lineno, f"not JSON ({error.msg})", remedy)) from None


def json_bytes(document: object) -> bytes:
    """A document as it is written to a file, indented for people."""
    import orjson

    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
