"""Check the arguments of public functions by their annotations, before anything is done with them.

    @check_arguments
    def load(path: str | os.PathLike[str]) -> Run: ...

    load({})    SettingError: load: path is a dict; a path is expected

Plain types, unions, literals, lists and mappings are checked down to their items. An annotation that names a type which
is imported for type checkers only is not checked, nor are iterators, which could be read only once.
"""

from __future__ import annotations

import collections.abc
import inspect
import os
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, wraps
from itertools import islice
from numbers import Integral, Real
from types import SimpleNamespace, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from dialeval.core.errors import SettingError, suggest

P = ParamSpec("P")
R = TypeVar("R")

_CHECKED_ITEMS = 1000
"""The maximum number of items of a list that are checked: arguments are short lists; data is checked elsewhere."""
_NUMBERS: Mapping[Any, type] = {float: Real, int: Integral}
_NAMES: Mapping[Any, str] = {
    str: "a text",
    float: "a number",
    int: "a whole number",
    type(None): "None",
    os.PathLike: "a path",
    **dict.fromkeys((Mapping, dict), "a mapping"),
    **dict.fromkeys((Sequence, Iterable, Collection, list), "a list"),
}


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with a check of its arguments."""
    signature = inspect.signature(function)
    names = [name for name in signature.parameters if name != "self"]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        hints = _read_hints(function)
        for name in kwargs:
            if name not in names and not takes_any:
                what = f"{function.__qualname__}() got an unexpected keyword argument {name!r}"
                raise TypeError(f"{what}; {suggest(name, names)}")
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            if name in hints and not _fits(value, hints[name]):
                called_as = function.__qualname__.removesuffix(".__init__")
                raise SettingError(f"{called_as}: {name} is {_show(value)}; {_describe(hints[name])} is expected")
        return function(*args, **kwargs)

    return call


@cache
def _read_hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the types of the named parameters, of those whose annotation can be resolved."""
    names = {**vars(typing), **vars(collections.abc), "os": os, **function.__globals__}
    hints: dict[str, Any] = {}
    skipped = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in skipped and parameter.annotation is not parameter.empty:
            with suppress(NameError):
                hints |= get_type_hints(SimpleNamespace(__annotations__={name: parameter.annotation}), names)
    return hints


def _fits(value: object, hint: Any) -> bool:
    hint = getattr(hint, "__bound__", None) or hint  # a TypeVar is its bound
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, each) for each in inner)
    if kind is Literal:  # which of them, the function itself checks with a better message
        return any(isinstance(value, type(each)) for each in inner)
    if kind in (Any, object, bool) or not isinstance(kind, type):
        return True
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(kind) if not name.startswith("_"))
    if not isinstance(value, _NUMBERS.get(kind, kind)) or (kind in (Sequence, Iterable) and isinstance(value, bytes)):
        return False
    if isinstance(value, Mapping) and len(inner) == 2:
        return all(_fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items())
    if isinstance(value, Collection) and len(inner) == 1:
        return all(_fits(item, inner[0]) for item in islice(value, 1 if isinstance(value, str) else _CHECKED_ITEMS))
    return True


def _show(value: object) -> str:
    """Return what a value is: a short one itself, else its type."""
    if value is None or isinstance(value, str | int | float):
        return f"{value!r:.60}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _describe(hint: Any) -> str:
    """Return what an annotation asks for, in words."""
    hint = getattr(hint, "__bound__", None) or hint
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        parts = dict.fromkeys(map(_describe, inner))
        return " or ".join(part for part in parts if part != "a text" or "a path" not in parts)
    if kind is Literal:
        return " or ".join(map(repr, inner))
    name = _NAMES.get(kind, f"a {getattr(kind, '__name__', kind)}")
    return f"{name}, each item of it {_describe(inner[0])}," if name == "a list" and inner else name
