"""States for other processes: in terms of another vocabulary, and as bytes that are safe to read.

A state is a tree of numbers, texts, arrays, lists, tuples, dicts and dataclasses. A class that cannot be written
field by field (one that refers to a vocabulary) has `to_plain` and `from_plain`.

`to_bytes` writes such a tree as JSON with its arrays next to it, in a NumPy archive. Nothing in it is executed:
`from_bytes` makes only objects of the classes that a state of no rows contains, and refuses everything else. A
class whose fields must be consistent has a `from_plain` that raises InvalidError where they are not; `check_like`
compares with a state of no rows.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import orjson

from dialeval.core.columns import Words
from dialeval.core.errors import SettingError
from dialeval.core.validation import InvalidError, JsonObject, check_array

T = TypeVar("T")

_TREE_NAME = "tree"
_EXACT_IN_JSON = 1 << 53
_SEVERAL: Mapping[str, Callable[..., object]] = {
    **{kind.__name__: kind for kind in (list, tuple, dict, set, frozenset)},
    "Counter": lambda pairs: Counter(dict(pairs)),
}


class DamagedStateError(ValueError):
    """Bytes that are not what `to_bytes` wrote."""


def translate_state(state: T, vocabulary: Words) -> T:
    """Translate a state to another vocabulary, wherever it refers to one."""
    moved: object = state
    if hasattr(state, "to_vocabulary"):
        moved = state.to_vocabulary(vocabulary)
    elif is_dataclass(state) and not isinstance(state, type):
        parts = {field.name: translate_state(getattr(state, field.name), vocabulary) for field in fields(state)}
        moved = type(state)(**parts)
    elif isinstance(state, list | tuple):
        moved = type(state)([translate_state(part, vocabulary) for part in state])
    elif isinstance(state, dict):
        # A Counter stays one.
        moved = type(state)({key: translate_state(part, vocabulary) for key, part in state.items()})
    return cast(T, moved)


def to_bytes(state: object) -> bytes:
    """Write a state as bytes; SettingError for one that holds something else than plain data."""
    arrays: JsonObject = {}
    arrays[_TREE_NAME] = np.frombuffer(orjson.dumps(_to_tree(state, arrays)), np.uint8)
    target = io.BytesIO()
    np.savez(target, **arrays)
    return target.getvalue()


def from_bytes(content: bytes, like: object) -> Any:
    """Read a state that `to_bytes` wrote; `like` holds an object of every class that may occur in it."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        return _from_tree(orjson.loads(arrays.pop(_TREE_NAME).tobytes()), arrays, _collect_classes(like))
    except Exception as error:  # an archive, a header, a tree or a state may be broken in any way
        raise DamagedStateError(f"{type(error).__name__}: {error}") from error


def check_like(value: Any, example: Any, where: str = "state") -> None:
    """Raise InvalidError where a value differs from an example of no rows in types, sizes or array types.

    An empty list, dict or array in the example matches one of any size, None matches anything.
    """
    if example is None:
        return
    if isinstance(value, np.ndarray) and isinstance(example, np.ndarray):
        sizes = example.shape if example.size else (None, *example.shape[1:])
        if value.dtype.kind != example.dtype.kind:
            raise InvalidError(f"{where} holds {value.dtype}, not {example.dtype}")
        check_array(value, value.dtype, sizes)
    elif type(value) is not type(example):
        raise InvalidError(f"{where} is a {type(value).__name__}, not a {type(example).__name__}")
    elif isinstance(example, list | tuple) and example:
        if len(value) != len(example):
            raise InvalidError(f"{where} has {len(value)} parts, not {len(example)}")
        for number, (part, one) in enumerate(zip(value, example, strict=True)):
            check_like(part, one, f"{where}[{number}]")
    elif is_dataclass(example):
        for item in fields(example):
            check_like(getattr(value, item.name), getattr(example, item.name), f"{where}.{item.name}")


def _name_class(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _to_tree(value: Any, arrays: dict[str, npt.NDArray[Any]]) -> object:
    if value is None or isinstance(value, bool | str):
        return value
    if type(value) is int:
        return value if abs(value) < _EXACT_IN_JSON else {"int": hex(value)}
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, bytes | np.ndarray):
        if isinstance(value, np.ndarray) and value.dtype.hasobject:
            raise SettingError("a state with an array of Python objects cannot be saved")
        name = f"a{len(arrays)}"
        arrays[name] = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
        return {"bytes" if isinstance(value, bytes) else "array": name}
    if type(value) in (list, tuple, dict, set, frozenset, Counter):
        parts = value.items() if isinstance(value, dict) else value
        return {type(value).__name__: [_to_tree(part, arrays) for part in parts]}
    return {"class": _name_class(type(value)), "parts": [_to_tree(part, arrays) for part in _list_parts(value)]}


def _list_parts(value: object) -> tuple[object, ...]:
    if hasattr(value, "to_plain"):
        return tuple(value.to_plain())
    if is_dataclass(value) and not isinstance(value, type):
        return tuple(getattr(value, field.name) for field in fields(value))
    kind = type(value).__name__
    raise SettingError(f"a state that holds a {kind} cannot be sent or saved; use dicts, lists, arrays or a dataclass")


def _collect_classes(value: object) -> dict[str, type]:
    """Return the classes of all objects in a tree, by name."""
    if isinstance(value, list | tuple | set | frozenset):
        return {name: kind for part in value for name, kind in _collect_classes(part).items()}
    if isinstance(value, dict):
        return _collect_classes([*value.keys(), *value.values()])
    if hasattr(value, "to_plain") or (is_dataclass(value) and not isinstance(value, type)):
        return {_name_class(type(value)): type(value)} | _collect_classes(_list_parts(value))
    return {}


def _from_tree(tree: object, arrays: Mapping[str, npt.NDArray[Any]], classes: Mapping[str, type]) -> Any:
    if not isinstance(tree, dict):
        if tree is None or isinstance(tree, bool | str | int):
            return tree
        raise ValueError(f"{type(tree).__name__} where a value is expected")
    if "class" in tree:
        kind: Any = classes[tree["class"]]
        make: Callable[..., object] = kind.from_plain if hasattr(kind, "from_plain") else kind
        return make(*[_from_tree(part, arrays, classes) for part in tree["parts"]])
    ((form, inside),) = tree.items()
    if form in ("int", "float"):
        return int(inside, 16) if form == "int" else float.fromhex(inside)
    if form in ("bytes", "array"):
        return arrays[inside].tobytes() if form == "bytes" else arrays[inside]
    return _SEVERAL[form](_from_tree(part, arrays, classes) for part in inside)
