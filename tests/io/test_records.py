from __future__ import annotations

import pytest

from dialeval.core import inputs
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.io.rows import FieldNames, Records, join_names, kind_of, length_problem, read_each, split_fields


def test_columns_that_can_matter() -> None:
    names = FieldNames.of({"response": "answer"})
    assert names.choose_columns(["x", "answer", "system", "response"], inputs.RESPONSE) == ["answer", "system"]
    assert names.choose_columns(["x", "y"], inputs.RESPONSE) == ["x", "y"], "all, so that a problem can name them"
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
    assert FieldNames().choose_columns(there, inputs.RESPONSE) == ["response"]
    assert FieldNames.of(None, ["topic"]).choose_columns(there, inputs.RESPONSE) == ["topic", "response"]


def test_fields_in_a_text_or_a_list() -> None:
    assert split_fields("domain, turn,,turn") == ["domain", "turn"]
    assert split_fields(["domain, turn", "x", "x"]) == ["domain, turn", "x"]
    assert split_fields("") == []


def test_columns_of_other_needs_and_shapes() -> None:
    names = FieldNames()
    there = ["id", "messages", "meta", "reference", "x"]
    assert names.choose_columns(there, None) == there
    assert names.choose_columns(there, inputs.RESPONSE) == ["id", "messages", "reference"]
    assert names.choose_columns(there, inputs.REFERENCE) == ["id", "messages", "reference"]
    assert names.choose_columns(there, inputs.CONTEXT) == there, "without the main column all are named"
    shaped = ["messages", "resps", "doc", "x"]
    assert names.choose_columns(shaped, inputs.RESPONSE) == ["messages", "resps", "doc"]
    assert names.choose_columns([*shaped, "response"], inputs.RESPONSE) == ["messages", "response"]
    mapped = FieldNames.of({"response": "output.text"}, ["meta.kind"])
    assert mapped.choose_columns(["output.text", "output", "meta", "x"], inputs.RESPONSE) == [
        "output.text",
        "output",
        "meta",
    ]


def test_names_of_fields() -> None:
    names = FieldNames()
    assert names.all == [
        *("dialog_id", "turn", "system", "context", "response", "reference", "response_is_reference", "messages"),
        *("trial", "reward", "reward_parts", "termination", "cost", "tool_calls", "expected_calls", "labels"),
        *("latency", "error", "status", "finish_reason"),
    ]
    assert [name for name in names.all if name not in names.beside] == ["system", "response", "messages"]
    assert (names.mapped, names.paths, names.kept) == (False, [], ())
    assert (names.system_prompts, names.separator, names.every_call) == (False, None, False)
    mapped = FieldNames.of({"response": "a.b", "system": "who"}, ["c"], separator="|", every_call=True)
    assert (mapped.mapped, mapped.paths, mapped.kept, mapped.separator, mapped.every_call) == (
        True,
        ["a.b"],
        ("c",),
        "|",
        True,
    )
    assert "who" in mapped.beside
    assert FieldNames.of({"messages": "chat"}).mapped
    assert not FieldNames.of({"reference": "gold"}).mapped


@pytest.mark.parametrize("separator", ["", ";;", '"', "\r", "\n", "\0", "é"])
def test_what_separates_no_cells(separator: str) -> None:
    with pytest.raises(SettingError, match="cells cannot be separated by"):
        FieldNames.of(None, separator=separator)


def test_files_of_unequal_length() -> None:
    problem = length_problem("a", 1200, "b", 1000)
    assert (problem.where, problem.line, problem.what) == ("a", None, "has 1,200 rows, but b has 1,000")
    assert problem.remedy == "both must have one line per response; a:1001 is the first without"
    problem = length_problem("a", 2, "b", 3)
    assert (problem.what, problem.remedy) == (
        "has 2 rows, but b has 3",
        "both must have one line per response; b:3 is the first without",
    )


def test_names_are_cut_short_where_they_are_many() -> None:
    assert join_names(range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    assert join_names(range(13)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ..."


def test_problems_keep_their_lines_where_no_items_are_found() -> None:
    problems = [Problem("x", line, "bad", "mend it") for line in (None, 3)]
    with pytest.raises(DataError) as caught:
        Records("x", [], list(problems)).raise_problems()
    assert list(caught.value.problems) == problems
    with pytest.raises(DataError) as caught:
        Records("x", [], list(problems), lines=lambda: [7, 8, 9]).raise_problems()
    assert [problem.line for problem in caught.value.problems] == [None, 9]
    Records("x", [], lines=lambda: 1 // 0).raise_problems()  # type: ignore[return-value, arg-type]
