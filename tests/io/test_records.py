from __future__ import annotations

import pytest

from dialeval.core.batch import Need
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.io.rows import FieldNames, Records, join_names, kind_of, read_each, split_fields


def test_columns_that_can_matter() -> None:
    names = FieldNames.of({"response": "answer"})
    assert names.choose_columns(["x", "answer", "system", "response"], Need.RESPONSE) == ["answer", "system"]
    assert names.choose_columns(["x", "y"], Need.RESPONSE) == ["x", "y"], "all, so that a problem can name them"
    with pytest.raises(SettingError, match="no field 'answer' to map"):
        FieldNames.of({"answer": "response"})


def test_problems_are_placed_on_the_lines_of_items() -> None:
    problems = [Problem("x", number, "bad", "mend it") for number in (1, 2, 3)]
    with pytest.raises(DataError) as caught:
        Records("x", [], problems, lines=lambda: [4, 7]).raise_problems()
    assert [problem.line for problem in caught.value.problems] == [4, 7, None]


def test_all_results_or_all_problems() -> None:
    def failing(what: str) -> int:
        raise DataError(Problem("x", None, what, "mend it"))

    assert read_each([lambda: 1, lambda: 2]) == [1, 2]
    with pytest.raises(DataError) as caught:
        read_each([lambda: failing("a"), lambda: 1, lambda: failing("b")])
    assert [problem.what for problem in caught.value.problems] == ["a", "b"]


def test_words_for_values() -> None:
    kinds = [kind_of(value) for value in (True, None, "", 1.5, (), {}, object())]
    assert kinds == ["true or false", "null", "a string", "a number", "a list", "an object", "a Python object"]
    assert (join_names([]), join_names(range(14))) == ("nothing", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...")


def test_further_columns_matter_if_they_are_asked_for() -> None:
    there = ["topic", "response", "stars"]
    assert FieldNames().choose_columns(there, Need.RESPONSE) == ["response"]
    assert FieldNames.of(None, ["topic"]).choose_columns(there, Need.RESPONSE) == ["topic", "response"]


def test_fields_in_a_text_or_a_list() -> None:
    assert split_fields("domain, turn,,turn") == ["domain", "turn"]
    assert split_fields(["domain, turn", "x", "x"]) == ["domain, turn", "x"]
    assert split_fields("") == []
