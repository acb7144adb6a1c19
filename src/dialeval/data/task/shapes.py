"""Checking parsed JSON against a description of what is expected; every mismatch is a fault with its path.

A `Shape` says what a value is, and by `inner` what is inside: one shape for all values of an object or items of a list,
or one for each named field of an object. Fields that are not named may hold anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from dialeval.core.errors import Fault
from dialeval.data.formats.records import LISTS, kind_of

OBJECT = (dict, Mapping)
"""An object, from a file or from Python; a plain `dict` is recognised fastest."""

_OF_JSON = {dict, list, str, int}
_Path = tuple[str | int, ...]
"""Names of fields and numbers of items, from the document inwards."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a value should be, in types and in words, and what to do where it is not."""

    kinds: tuple[type, ...]
    words: str
    remedy: str
    inner: Shape | Mapping[str, Shape] | None = None
    required: bool = False
    """Whether an object must have the field of this shape."""
    or_nothing: bool = False
    """Whether null or anything empty will do as well."""


def shape_faults(document: Any, shape: Shape, where: str) -> list[Fault]:
    """A fault for everything in a document that is not as its shape says, such as `FILE: pmul1635[3].state.hotel`."""
    faults: list[Fault] = []
    if not _fit([document], shape):
        _check(document, shape, (), where, faults)
    return faults


def _fit(values: Collection[Any], shape: Shape) -> bool:
    """Whether plain values fit a shape: level by level, many times faster than one by one with their paths.

    False says nothing: values of other types than those of JSON are left to `_check`.
    """
    if shape.or_nothing:
        values = [value for value in values if value]
    types = set(map(type, values))
    if not types <= set(shape.kinds) & _OF_JSON:
        return False
    if isinstance(shape.inner, Shape):
        if not types:
            return True
        if len(types) > 1:
            return False
        return _fit(list(chain.from_iterable(map(dict.values, values) if dict in types else values)), shape.inner)
    for name, field in (shape.inner or {}).items():
        given = [value[name] for value in values if name in value]
        if (field.required and len(given) < len(values)) or not _fit(given, field):
            return False
    return True


def _check(value: Any, shape: Shape, path: _Path, where: str, faults: list[Fault]) -> None:
    if shape.or_nothing and not value:
        return
    fits: bool = isinstance(value, shape.kinds)
    if not fits:
        what = f"is {kind_of(value)}, not {shape.words}"
        faults.append(Fault(_place(where, path), None, what, shape.remedy))
    elif isinstance(shape.inner, Shape):
        for key, item in enumerate(value) if isinstance(value, LISTS) else value.items():
            _check(item, shape.inner, (*path, key), where, faults)
    elif shape.inner is not None:
        for name, field in shape.inner.items():
            if name in value:
                _check(value[name], field, (*path, name), where, faults)
            elif field.required:
                faults.append(Fault(_place(where, path), None, f"has no {name}", field.remedy))


def _place(where: str, path: _Path) -> str:
    inside = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"{where}: {inside.removeprefix('.')}" if path else where
