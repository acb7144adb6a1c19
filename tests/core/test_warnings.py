from __future__ import annotations

import pytest

from dialeval.core.errors import add_warning, collect_warnings


def test_what_is_noted_is_told_to_the_innermost_who_asks_once() -> None:
    with collect_warnings() as outer:
        add_warning("a")
        with collect_warnings() as inner:
            for line in ("c", "b", "c"):
                add_warning(line)
        add_warning("d")
    assert list(inner) == ["c", "b"]
    assert list(outer) == ["a", "d"]


def test_an_error_ends_collecting() -> None:
    with collect_warnings() as outer:
        with pytest.raises(ValueError, match="x"), collect_warnings():
            raise ValueError("x")
        add_warning("a")
    assert list(outer) == ["a"]


def test_where_nobody_asks_it_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="guessed"):
        add_warning("guessed")
