"""Arguments are checked by their annotations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import pytest

from dialeval.core.arguments import check_arguments
from dialeval.core.errors import SettingError

if TYPE_CHECKING:
    from somewhere import Unknown  # type: ignore[import-not-found]


class Worker(Protocol):
    def work(self) -> None: ...


class Reader:
    def work(self) -> None: ...


AnyReader = TypeVar("AnyReader", bound=Reader)


@check_arguments
def called(
    path: str | os.PathLike[str] = "",
    number: float | None = None,
    whole: int = 0,
    way: Literal["x", "y"] = "x",
    settings: Mapping[str, Mapping[str, object]] | None = None,
    names: Iterable[str] = (),
    runs: Reader | Sequence[Reader] = (),
    worker: Worker | None = None,
    reader: Any = None,
    unknown: Unknown[int] | Unknown.Inner | None = None,
    function: Callable[[int], int] | None = None,
    **more: Any,
) -> str:
    """Says that it was called."""
    return "called"


@check_arguments
def bound(reader: AnyReader) -> AnyReader:
    return reader


FITTING: list[dict[str, Any]] = [
    {"path": Path("x"), "number": 3, "whole": np.int64(4), "way": "no such way", "other": object()},
    {"number": np.float32(1), "settings": {"a": {"b": None}}, "names": "abc", "runs": [Reader()], "worker": Reader()},
    {"names": iter([5]), "reader": 5, "unknown": 5, "function": len, "runs": Reader(), "names2": 1},
]


@pytest.mark.parametrize("given", FITTING, ids=range(len(FITTING)))
def test_what_fits_is_passed_on(given: dict[str, Any]) -> None:
    assert called(**given) == "called"
    assert isinstance(bound(Reader()), Reader)


UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"path": 5}, "path is 5; a path is expected"),
    ({"path": b"x"}, "path is a bytes; a path is expected"),
    ({"path": None}, "path is None; a path is expected"),
    ({"number": "1"}, "number is '1'; a number or None is expected"),
    ({"number": 1j}, "number is a complex; a number or None is expected"),
    ({"whole": 1.5}, "whole is 1.5; a whole number is expected"),
    ({"way": 5}, "way is 5; 'x' or 'y' is expected"),
    ({"settings": {"a": 5}}, "settings is a dict; a mapping or None is expected"),
    ({"settings": []}, "settings is a list; a mapping or None is expected"),
    ({"names": 5}, "names is 5; a list, each item of it a text, is expected"),
    ({"names": ["a", None]}, "names is a list; a list, each item of it a text, is expected"),
    ({"names": b"ab"}, "names is a bytes; a list, each item of it a text, is expected"),
    ({"runs": "ab"}, "runs is 'ab'; a Reader or a list, each item of it a Reader, is expected"),
    ({"worker": 5}, "worker is 5; a Worker or None is expected"),
    ({"path": "x", "whole": "y" * 99}, f"whole is '{'y' * 59}; a whole number is expected"),
]


@pytest.mark.parametrize(("given", "said"), UNFIT, ids=range(len(UNFIT)))
def test_what_does_not_fit_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError) as error:
        called(**given)
    assert str(error.value) == f"called: {said}"


def test_a_wrong_number_of_arguments_is_left_to_python() -> None:
    with pytest.raises(TypeError, match="reader"):
        bound()  # type: ignore[call-arg]


def test_the_function_keeps_its_name_and_words() -> None:
    assert (called.__name__, called.__doc__) == ("called", "Says that it was called.")
