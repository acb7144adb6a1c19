"""Check parsed documents against types of msgspec: every mismatch is a problem with its path inside the document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from dialeval.core.errors import Problem
from dialeval.io.rows import LISTS, kind_of

_LEAVES = {str: "a text", int: "a whole number", bool: "true or false"}
Mismatch = tuple[str, str, str]
"""The path of what does not fit, what is wrong with it, and the field that it is in, or that is missing."""
_THINGS = {str: "texts", list: "lists", dict: "objects"}


def type_problems(document: Any, kind: Any, where: str, form: str, **remedies: str) -> list[Problem]:
    """Return a problem for each value of a document that does not fit, at a place such as `FILE: pmul1635[3].state`.

    A `Struct` is an object with named fields, of which those with a default may be missing. Values may be mappings and
    tuples too. `form` is the remedy, but for fields that have one of their own.
    """
    if _fits(document, kind):
        return []
    return [
        Problem(f"{where}: {path.removeprefix('.')}" if path else where, None, what, remedies.get(field, form))
        for path, what, field in _mismatches(document, kind, "", "")
    ]


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeError, AttributeError):  # the last two: half a character, and a range
        return False
    return True


def _mismatches(value: Any, kind: Any, path: str, field: str) -> Iterator[Mismatch]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        if not _fits(value, kind):
            yield from _mismatches(value, inner[0], path, field)
    elif origin in (list, tuple, frozenset) and isinstance(value, LISTS):
        for at, item in enumerate(value):
            yield from _mismatches(item, inner[0], f"{path}[{at}]", field)
    elif origin is dict and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _mismatches(item, inner[1], f"{path}.{name}", field)
    elif _is_struct(kind) and isinstance(value, Mapping):
        yield from _in_fields(value, kind, path)
    elif not (isinstance(value, kind) if kind in _LEAVES else _fits(value, kind)):
        yield path, f"is {kind_of(value)}, not {_describe(kind)}", field


def _in_fields(value: Mapping[str, Any], kind: Any, path: str) -> Iterator[Mismatch]:
    fields = {each.name: each for each in msgspec.structs.fields(kind)}
    for name, each in fields.items():
        if name in value:
            yield from _mismatches(value[name], each.type, f"{path}.{name}", name)
        elif each.required:
            yield path, f"has no {name}", name
    if kind.__struct_config__.forbid_unknown_fields:
        known = ", ".join(sorted(fields))
        yield from (
            (f"{path}.{name}", f"is not an entry; there are {known}", name) for name in value if name not in fields
        )


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _describe(kind: Any) -> str:
    """Return what a type is, in words for messages; of a number with limits its description."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (list, tuple, frozenset):
        item = get_origin(inner[0]) or inner[0]
        return f"a list of {_THINGS.get(item) or item.__name__.strip('_').lower() + 's'}"
    if origin is Annotated:
        return str(inner[1].description)
    if origin is Literal:
        return f"one of {', '.join(inner)}"
    if _is_struct(kind):
        return f"an object with {', '.join(kind.__struct_fields__)}"
    return _LEAVES.get(kind, "an object")
