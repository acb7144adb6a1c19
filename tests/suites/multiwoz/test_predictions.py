from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.errors import DataError
from dialeval.suites.multiwoz.data import Goals, TaskFiles, read_document, read_predictions

TASK = TaskFiles(
    "data", Goals({"a1": {}, "b2": {}, "c3": {}}, None, ""), None, None, {"a1": 2, "b2": 1, "c3": 1}, None, {}
)


def turn(response: str = "hi", **more: Any) -> dict[str, Any]:
    return {"response": response, **more}


def problems_of(document: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read_predictions(document, TASK)
    return [str(problem) for problem in caught.value.problems]


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


@pytest.mark.parametrize("value", [4, 4.5, None, True, {"center": 1}])
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


def test_two_systems_have_two_names(tmp_path: Path) -> None:
    content = json.dumps({"b2": [turn()]}).encode()
    (tmp_path / "mine.json").write_bytes(content)
    (tmp_path / "mine.json.gz").write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match="mine: two systems have this name"):
        read_predictions(tmp_path, TASK)
