from __future__ import annotations

import pytest

from dialeval.core.errors import note, noted


def test_what_is_noted_is_told_to_the_innermost_who_asks_once() -> None:
    with noted() as outer:
        note("a")
        with noted() as inner:
            for line in ("c", "b", "c"):
                note(line)
        note("d")
    assert list(inner) == ["c", "b"]
    assert list(outer) == ["a", "d"]


def test_an_error_ends_collecting() -> None:
    with noted() as outer:
        with pytest.raises(ValueError, match="x"), noted():
            raise ValueError("x")
        note("a")
    assert list(outer) == ["a"]


def test_where_nobody_asks_it_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="guessed"):
        note("guessed")
