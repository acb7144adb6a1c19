"""`run + run`: the systems of both, if they have the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import dialeval

ROWS: list[dict[str, Any]] = [
    {"dialog_id": f"d{n // 3}", "turn": n % 3, "response": f"word {n}", "reference": f"word {n + n % 2}"}
    for n in range(9)
]


def made(name: str, rows: list[dict[str, Any]] = ROWS, **more: Any) -> dialeval.Run:
    return dialeval.evaluate({name: rows}, metrics="length,rouge-l", **more)


def test_the_systems_of_both_in_order() -> None:
    one, other = made("a"), made("b", [{**row, "response": "else"} for row in ROWS])
    both = one + other
    assert list(both) == ["a", "b"]
    assert (both["a"], both["b"]) == (one["a"], other["b"])
    assert type(both) is dialeval.Run
    assert list(one + one) == ["1/a", "2/a"]
    assert list(one + other + one) == ["1/a", "b", "2/a"]
    assert dialeval.compare(both, resamples=20, trials=20).systems == ["b"]


def test_warnings_commands_and_details_of_both() -> None:
    details = {"command": "dialeval one", "curves": {"a": [1]}, "other": 5, "same": [1], "deep": {"by": {"a": 1}}}
    one = replace(made("a"), warnings=("w", "x"), details=details)
    other = replace(one, warnings=("x", "y"), details={**details, "command": "dialeval two", "other": 6})
    both = one + other
    assert both.warnings == ("w", "x", "y")
    assert both.details == {
        "command": "dialeval one\ndialeval two",
        "curves": {"1/a": [1], "2/a": [1]},
        "same": [1],
        "deep": {"by": {"1/a": 1, "2/a": 1}},
    }


def test_a_floor_that_is_the_same_in_both_is_kept_once() -> None:
    one, other = made("a", baselines=True), made("b", [{**row, "response": "else"} for row in ROWS], baselines=True)
    both = one + other
    assert len(both.baselines) == len(one.baselines) > 0
    assert next(iter(both)) == "a"
    assert set(both) == {*one, *other}


def test_systems_of_other_rows_are_joined_and_compared_by_what_they_have_in_common() -> None:
    for rows, design in (
        (ROWS[:6], "common"),
        ([*ROWS[:2], *ROWS[3:]], "paired"),  # a dialogue with another number of turns
        ([{**row, "dialog_id": row["dialog_id"].upper()} for row in ROWS], "unpaired"),
    ):
        both = made("a") + made("b", rows)
        assert list(both) == ["a", "b"]
        assert dialeval.compare(both, metrics=["length"]).design.name == design


def test_only_runs_are_added() -> None:
    with pytest.raises(TypeError):
        made("a") + 1
