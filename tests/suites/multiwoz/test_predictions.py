from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.errors import DataError
from dialeval.suites.multiwoz.data import Goals, TaskFiles, read_document, read_predictions
from dialeval.suites.multiwoz.feature import STATES, TASK_TURNS

TASK = TaskFiles(
    "data", Goals({"a1": {}, "b2": {}, "c3": {}}, None, ""), None, None, {"a1": 2, "b2": 1, "c3": 1}, None, {}
)


def turn(response: str = "hi", **more: Any) -> dict[str, Any]:
    return {"response": response, **more}


def problems_of(document: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_predictions(document, TASK)
    return [str(problem) for problem in caught.value.problems]


def test_rows_stand_in_the_order_of_the_data_and_keep_their_place() -> None:
    document = {"b2": [turn("x", state={})], "a1": [turn("y", state={"inn": {"area": "hill"}})]}
    [found] = read_predictions(document, TASK)
    rows = list(found.rows.columns[TASK_TURNS])
    assert [(row["dialogue"], row["turn"], row["response"], row["position"]) for row in rows] == [
        ("a1", 0, "y", 1),
        ("a1", 1, None, None),
        ("b2", 0, "x", 0),
        ("c3", 0, None, None),
    ]
    assert (found.dialogues, found.turns, found.short, found.with_state, found.with_domains) == (2, 2, 1, 2, 0)
    assert STATES in found.rows.columns
    assert found.rows.dialogue_offsets().tolist() == [0, 2, 3, 4]
    assert found.rows.turns is not None
    assert found.rows.turns.tolist() == [0, 1, 0, 0]
    assert list(found.rows.dialogues or ()) == ["a1", "a1", "b2", "c3"]
    assert list(found.rows.shown["response"]) == ["y", "", "x", ""]


@pytest.mark.parametrize(("unknown", "more"), [(20, []), (21, ["1 more"]), (22, ["2 more"])])
def test_twenty_unknown_dialogues_are_named(unknown: int, more: list[str]) -> None:
    found = problems_of({f"x{at}": [turn()] for at in range(unknown)})
    assert len(found) == 20 + len(more)
    assert [line.partition(" dialogue ids")[0] for line in found[20:]] == [f"predictions: and {each}" for each in more]


def test_two_systems_have_two_names(tmp_path: Path) -> None:
    content = json.dumps({"b2": [turn()]}).encode()
    (tmp_path / "mine.json").write_bytes(content)
    (tmp_path / "mine.json.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match="mine: two systems have this name"):
        read_predictions(tmp_path, TASK)


def test_a_dialogue_without_turns_is_there() -> None:
    [found] = read_predictions({"b2": [turn()], "a1": []}, TASK)
    rows = list(found.rows.columns[TASK_TURNS])
    assert [(row["dialogue"], row["listed"], row["response"]) for row in rows] == [
        ("a1", True, None),
        ("a1", True, None),
        ("b2", True, "hi"),
        ("c3", False, None),
    ]
    assert (found.dialogues, found.without_turns, found.turns, found.short) == (2, 1, 1, 2)


def test_states_are_a_column_only_where_every_turn_has_one() -> None:
    [found] = read_predictions({"a1": [turn(state={}), turn()]}, TASK)
    assert STATES not in found.rows.columns


def test_all_problems_at_once_with_their_paths() -> None:
    found = problems_of(
        {
            "a1": [turn(state={"hotel": ["x"]}), turn(state="x"), turn()],
            "b2": [{"response": None, "active_domains": "hotel"}],
            "c3": [{"state": {"inn": {"stars": 4}}}, 7],
            "A1.json": [turn()],
            "zz": "text",
        }
    )
    expected = [
        "a1[0].state.hotel: is a list, not an object; give domains with their slots and values",
        "a1[1].state: is a string, not an object; give domains",
        "b2[0].response: is null, not a text",
        "b2[0].active_domains: is a string, not a list of texts",
        "c3[0]: has no response",
        "c3[0].state.inn.stars: is a number, not a text",
        "c3[1]: is a number, not an object with response, state, active_domains",
        "zz: is a string, not a list of turns",
        "A1.json: the data has no such dialogue; write 'a1'",
        "zz: the data has no such dialogue",
        "a1[2]: one turn too many: the dialogue has 2 system turns in the data, and 3 here",
        "c3[1]: one turn too many",
    ]
    assert len(found) == len(expected)
    for problem, text in zip(found, expected, strict=True):
        assert problem.startswith("predictions: ")
        assert text in problem


@pytest.mark.parametrize("value", [4, 4.5, None, True, ["center"]])
def test_values_that_only_the_original_takes_are_refused(value: Any) -> None:
    assert ".state.hotel.stars: is " in problems_of({"b2": [turn(state={"hotel": {"stars": value}})]})[0]
    states: list[Any] = [[], None]
    for state in states:
        assert "b2[0].state: is " in problems_of({"b2": [turn(state=state)]})[0]
    assert "b2[0].active_domains: is a string" in problems_of({"b2": [turn(active_domains="hotel")]})[0]


def test_many_unknown_dialogues_are_counted() -> None:
    found = problems_of({f"x{number}": [turn()] for number in range(1000)})
    assert len(found) == 21
    assert "and 980 more dialogue ids" in found[-1]


@pytest.mark.parametrize(
    ("content", "what"), [("{", "not JSON"), ("", "is empty"), ("[]", "is a list"), ("{}", "empty object")]
)
def test_files_that_hold_no_predictions(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(DataError, match=what):
        read_predictions(path, TASK)


def test_a_hundred_megabytes_that_are_not_json(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as out:
        out.write(b'{"a1": [')
        for _ in range(100):
            out.write(b" " * (1 << 20))
        out.write(b"}")
    with pytest.raises(DataError, match=r"big.json:1: not JSON"):
        read_predictions(path, TASK)


def test_files_folders_and_names(tmp_path: Path) -> None:
    document = {"a1": [turn()]}
    (tmp_path / "one.json").write_text(json.dumps(document))
    (tmp_path / "two.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    assert [found.rows.system for found in read_predictions(tmp_path, TASK)] == ["one", "two"]
    assert [found.rows.system for found in read_predictions(tmp_path / "two.json.gz", TASK)] == ["two"]
    named = read_predictions({"x": tmp_path / "one.json", "y": document}, TASK)
    assert [(found.rows.system, found.rows.where) for found in named] == [("x", str(tmp_path / "one.json")), ("y", "y")]
    folder = read_predictions({"all": tmp_path}, TASK)
    assert [found.rows.system for found in folder] == ["all/one", "all/two"]
    assert read_document(tmp_path / "one.json") == document


def test_problems_of_several_files_come_together(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"a1": [{"response": 1}]}')
    (tmp_path / "two.json").write_text("{")
    assert [problem.split(": ")[0].split("/")[-1] for problem in problems_of(tmp_path)] == ["one.json", "two.json:1"]
