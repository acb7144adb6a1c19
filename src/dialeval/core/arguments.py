"""Arguments of the wrong type are refused by name, before anything is done with them.

    @checked
    def load(path: str | os.PathLike[str]) -> Run: ...

    load({})    SettingError: load: path is a dict; a path is expected

The annotations are what is checked: plain types, unions, literals, lists and mappings down to their items. What cannot
be told from an annotation (Any, functions) is let pass, and so are iterators, which could be read only once.
"""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import os
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from itertools import islice
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from dialeval.core.errors import SettingError

P = ParamSpec("P")
R = TypeVar("R")

_CHECKED_ITEMS = 1000
"""So many items of a list are looked at: an argument is a handful of names or numbers; data is checked elsewhere."""
_NUMBERS: Mapping[Any, type] = {float: Real, int: Integral}
_WORDS: Mapping[Any, str] = {
    str: "a text",
    float: "a number",
    int: "a whole number",
    os.PathLike: "a path",
    Mapping: "a mapping",
    Sequence: "a list",
    Iterable: "a list",
    Collection: "a list",
    dict: "a mapping",
    list: "a list",
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with its arguments checked by their annotations."""
    signature = inspect.signature(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        hints = _hints(function)
        # Too many or too few arguments are left to Python, as for any function.
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name, Any)
            if not _fits(value, hint):
                called_as = function.__qualname__.removesuffix(".__init__")
                raise SettingError(f"{called_as}: {name} is {_shown(value)}; {_words(hint)} is expected")
        return function(*args, **kwargs)

    return called


@cache
def _hints(function: Callable[..., Any]) -> Mapping[str, Any]:
    hints = get_type_hints(function, localns=_Names(function.__globals__))
    kinds = {name: parameter.kind for name, parameter in inspect.signature(function).parameters.items()}
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {name: hint for name, hint in hints.items() if kinds.get(name) not in several}


class _AnyAttribute(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):  # what Python asks of a class
            raise AttributeError(name)
        return cls


class _Unknown(metaclass=_AnyAttribute):
    """A type or module that is imported for type checkers only; whatever it has in brackets or behind a dot."""

    def __class_getitem__(cls, _items: object) -> type[_Unknown]:
        return cls


class _Names(dict[str, Any]):
    """The names of a module, or what is usual under that name; any other one stands for an unknown type."""

    def __missing__(self, name: str) -> Any:
        for module in (builtins, collections.abc, typing):
            if hasattr(module, name):
                return getattr(module, name)
        return os if name == "os" else _Unknown


def _fits(value: object, hint: Any) -> bool:
    hint = getattr(hint, "__bound__", None) or hint  # a TypeVar is its bound
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if origin is Literal:  # which of them, the function itself refuses in better words
        return any(isinstance(value, type(each)) for each in get_args(hint))
    if hint is None or hint is type(None):
        return value is None
    kind = origin or hint
    if kind in (Any, _Unknown, object, bool) or not isinstance(kind, type):
        return True
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(kind) if not name.startswith("_"))
    if not isinstance(value, _NUMBERS.get(kind, kind)) or (kind in (Sequence, Iterable) and isinstance(value, bytes)):
        return False
    return _items_fit(value, get_args(hint))


def _items_fit(value: object, hints: Sequence[Any]) -> bool:
    if isinstance(value, Mapping) and len(hints) == 2:
        return all(_fits(key, hints[0]) and _fits(item, hints[1]) for key, item in value.items())
    if isinstance(value, Collection) and len(hints) == 1:
        return all(_fits(item, hints[0]) for item in islice(value, 1 if isinstance(value, str) else _CHECKED_ITEMS))
    return True


def _shown(value: object) -> str:
    """What a value is, and for what is short also which."""
    if value is None:
        return "None"
    if isinstance(value, str | int | float):
        return f"{value!r:.60}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _words(hint: Any) -> str:
    """What an annotation asks for, in words."""
    hint = getattr(hint, "__bound__", None) or hint
    if get_origin(hint) in (Union, UnionType):
        parts = [_words(each) for each in get_args(hint)]
        if "a path" in parts:
            parts = [part for part in parts if part != "a text"]
        return " or ".join(dict.fromkeys(parts))
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if hint is type(None):
        return "None"
    kind = get_origin(hint) or hint
    inner = get_args(hint)
    words = _WORDS.get(kind, f"a {getattr(kind, '__name__', kind)}")
    if words == "a list" and inner:
        return f"a list, each item of it {_words(inner[0])},"
    return words
