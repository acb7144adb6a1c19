from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dialeval.core.batch import Need
from dialeval.core.errors import Problem, SettingError
from dialeval.io.fields import (
    FieldReader,
    find_role,
)
from dialeval.io.gathering import gather_rows
from dialeval.io.rows import FieldNames, Records, Rows

Caught = Callable[[Callable[[], object]], list[Problem]]


def gathered(rows: list[Any], **names: str) -> list[Rows]:
    return gather_rows(Records("rows.jsonl", enumerate(rows, 1)), FieldNames.of(names), "file")


def row(**fields: object) -> dict[str, object]:
    return {"response": "hi", **fields}


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("hello", ["hello"]),
        ("", [""]),
        (["a", "b"], ["a", "b"]),
        (("a", "b"), ["a", "b"]),
        (np.array(["a", "b"], object), ["a", "b"]),
        ([], []),
        (None, []),
        ([{"speaker": "A", "text": "a"}, {"role": "user", "content": "b"}], ["a", "b"]),
        ([{"text": None, "content": "b"}], ["b"]),
        ([{"role": "system", "content": "be kind"}, {"role": "user", "content": "b"}], ["b"]),
        ([{"role": "user", "content": "a"}, {"role": "system", "content": "the bot"}], ["a", "the bot"]),
        (
            [
                {"role": "system", "content": "bot"},
                {"role": "user", "content": "a"},
                {"role": "system", "content": "b"},
            ],
            ["bot", "a", "b"],
        ),
        ([{"speaker": "system", "text": "the bot"}, {"speaker": "user", "text": "b"}], ["the bot", "b"]),
        ([{"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]}], ["b c"]),
    ],
)
def test_forms_of_a_context(context: object, expected: list[str]) -> None:
    [rows] = gathered([row(context=context), row(context="x")])
    assert list(rows.columns[Need.CONTEXT]) == [expected, ["x"]]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reference": "r"}, ["r"]),
        ({"reference": ["r", "s"]}, ["r", "s"]),
        ({"reference": []}, []),
        ({"reference": None}, []),
        ({}, []),
        ({"reference": "r", "response_is_reference": True}, []),
        ({"reference": "r", "response_is_reference": "TRUE"}, []),
        ({"reference": "r", "response_is_reference": False}, ["r"]),
        ({"reference": "r", "response_is_reference": None}, ["r"]),
    ],
)
def test_forms_of_a_reference(fields: dict[str, object], expected: list[str]) -> None:
    [rows] = gathered([row(**fields), row(reference="x")])
    assert list(rows.columns[Need.REFERENCE]) == [expected, ["x"]]


def test_a_column_that_no_row_fills_is_absent() -> None:
    [rows] = gathered([row(reference=None, context=[]), row()])
    assert set(rows.columns) == {Need.RESPONSE}
    assert rows.dialogues is None
    assert rows.turns is None


def test_systems_in_order_of_appearance_and_the_file_for_those_without() -> None:
    found = gathered([row(system="b"), row(), row(system="a", reference="r"), row(system="b"), row(system=None)])
    assert [(rows.system, len(rows)) for rows in found] == [("b", 2), ("file", 2), ("a", 1)]
    assert all(Need.REFERENCE in rows.columns for rows in found), "one file has one set of columns"


def test_dialogues_and_turns_are_kept() -> None:
    [rows] = gathered([row(dialog_id="d", turn=0), row(dialog_id=7, turn=1.0), row(turn="12"), row(dialog_id="")])
    assert rows.dialogues is not None
    assert rows.turns is not None
    assert list(rows.dialogues) == ["d", "7", "row 3", "row 4"]
    assert rows.turns.tolist() == [0, 1, 12, -1]


def test_names_can_be_mapped() -> None:
    [rows] = gathered([{"answer": "hi", "gold": "ho", "response": 3}], response="answer", reference="gold")
    assert list(rows.responses) == ["hi"]
    assert list(rows.columns[Need.REFERENCE]) == [["ho"]]


@pytest.mark.parametrize("names", [{"answer": "response"}, {"response": ""}, {"response": 3}])
def test_a_wrong_mapping_is_a_setting_error(names: Any) -> None:
    with pytest.raises(SettingError, match="map"):
        FieldNames.of(names)


@pytest.mark.parametrize(
    ("bad", "what", "remedy"),
    [
        ({"answer": "x", "id": 1}, "has no field 'response', only answer, id", "--field response=answer"),
        ({"Response": "x"}, "has no field 'response', only Response", "--field response=Response"),
        ({"said": "x"}, "has no field 'response', only said", "--field response=NAME"),
        ({}, "has no field 'response', only nothing", "--field"),
        (row(response=3), "response is a number", "string"),
        (row(response=["x"]), "response is a list", "string"),
        (row(response=True), "response is true or false", "string"),
        (row(response="\ud800"), "response holds half of a surrogate pair", "encoding"),
        (row(reference=3), "reference is a number", "list of strings"),
        (row(reference=["a", None]), "reference[1] is null", "string"),
        (row(reference=[{"text": "a"}]), "reference[0] is an object", "string"),
        (row(context={"text": "a"}), "context is an object", "list"),
        (row(context=["a", 2]), "context[1] is a number", "string"),
        (row(context=[{"speaker": "A"}]), "context[0] has neither text nor content, only speaker", "text"),
        (row(context=[{"content": [{"type": "widget"}]}]), "context[0] has a part of type 'widget'", "text"),
        (row(dialog_id=1.5), "dialog_id is a number", "whole number"),
        (row(system=["a"]), "system is a list", "whole number"),
        (row(turn=-1), "turn is -1", "whole number"),
        (row(turn=1.5), "turn is 1.5", "whole number"),
        (row(turn="two"), "turn is 'two'", "whole number"),
        (row(turn=True), "turn is True", "whole number"),
        (row(turn=2**63), "turn is 9223372036854775808", "whole number"),
        (row(turn="9" * 5000), "turn is '999", "whole number"),
        (row(turn=[1]), "turn is a list", "whole number"),
        (row(response_is_reference="yes"), "response_is_reference is a string", "true or false"),
        (row(response_is_reference=1), "response_is_reference is a number", "true or false"),
        (None, "the row is null", "object"),
        (["a"], "the row is a list", "object"),
        (3, "the row is a number", "object"),
        (object(), "the row is a Python object", "object"),
    ],
)
def test_problems(bad: object, what: str, remedy: str, problems_of: Caught) -> None:
    [problem] = problems_of(lambda: gathered([row(), bad, row()]))
    assert (problem.where, problem.line) == ("rows.jsonl", 2)
    assert problem.what.startswith(what)
    assert remedy in problem.remedy


def test_every_problem_of_every_row_is_listed_in_order(problems_of: Caught) -> None:
    found = problems_of(lambda: gathered([row(turn="x", reference=1), row(), {}, row(context=3)]))
    assert [problem.line for problem in found] == [1, 1, 3, 4]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("taxi", ["taxi"]),
        (["taxi", "train"], ["taxi", "train"]),
        (np.array(["a", "b"], object), ["a", "b"]),
        (7, ["7"]),
        (7.0, ["7"]),
        (0.25, ["0.25"]),
        (True, ["true"]),
        ([1, False, "x", None], ["1", "false", "x"]),
        (np.float32(2.5), ["2.5"]),
        (None, []),
        ("", []),
        (float("nan"), []),
        ([], []),
    ],
)
def test_forms_of_a_further_field(value: object, expected: list[str]) -> None:
    names = FieldNames.of({}, ["topic"])
    [rows] = gather_rows(Records("rows.jsonl", enumerate([row(topic=value), row(topic="x"), "text"], 1)), names, "file")
    assert {name: list(column) for name, column in rows.fields.items()} == {"topic": [expected, ["x"], []]}


def test_a_further_field_that_is_an_object_is_a_problem(problems_of: Caught) -> None:
    records = Records("rows.jsonl", enumerate([row(), row(topic={"a": 1}), row(topic=[["a"]])], 1))
    found = problems_of(lambda: gather_rows(records, FieldNames.of({}, ["topic"]), "file"))
    assert [(problem.line, problem.what) for problem in found] == [(2, "topic is an object"), (3, "topic is a list")]


def test_a_further_field_is_not_mapped() -> None:
    with pytest.raises(SettingError, match="no field 'kept' to map"):
        FieldNames.of({"kept": "x"})


NAN = float("nan")


def reading(read: Callable[[FieldReader], object], **names: Any) -> tuple[object, list[str]]:
    """What a reader returns, and what is wrong."""
    problems: list[Problem] = []
    reader = FieldReader("rows.jsonl", FieldNames(**names), problems)
    reader.line = 4
    found = read(reader)
    assert {(problem.where, problem.line) for problem in problems} <= {("rows.jsonl", 4)}
    return found, [problem.what for problem in problems]


def say(role: str, content: object, **more: object) -> dict[str, object]:
    return {"role": role, "content": content, **more}


CALLING = say("assistant", None, tool_calls=[{"name": "f", "arguments": {"a": 1}}])


@pytest.mark.parametrize(
    ("given", "text", "problems"),
    [
        ({"response": NAN}, "missing", []),
        ({"response": None}, "missing", []),
        ({"response": None, "error": {"code": 500}}, "error", []),
        ({"response": "x", "status": 503}, "error", []),
        ({"response": "x", "finish_reason": "content_filter"}, "error", []),
        ({"response": "x", "status": "done", "error": None, "finish_reason": "length"}, "x", []),
        ({"error": "timeout"}, "error", []),
        ({"response": "x", "error": "False"}, "x", []),
        ({"response": "x", "error": {"code": None}}, "x", []),
        ({"response": 1.5}, "", ["response is a number"]),
        ({"said": "x"}, "", ["has no field 'response', only said"]),
        ({"response": {"content": "x"}}, "x", []),
        ({"response": say("user", "x")}, "", ["response is an object"]),
        ({"response": say("assistant", "x")}, "x", []),
        ({"response": {"role": 3, "content": "x"}}, "", ["response is an object"]),
        ({"response": {"from": "gpt", "value": "x"}}, "x", []),
        ({"response": {"message.role": "assistant", "message.content": "x"}}, "x", []),
        ({"response": [say("assistant", "a"), say("assistant", "b"), say("user", "c")]}, "b", []),
        ({"response": (say("user", "a"), say("assistant", "b"))}, "b", []),
        ({"response": [{"type": "reasoning"}, {"type": "message", **say("ai", "x")}]}, "x", []),
        ({"response": [{"content": "x"}, "y"]}, "", ["response is a list"]),
        ({"response": ["y", {"content": "x"}]}, "x", []),
        ({"response": [{"content": "x"}, {"content": "y"}, {"event": "slot", "text": "z"}]}, "z", []),
        ({"response": []}, "", ["response is a list"]),
        ({"response": CALLING}, "", []),
        ({"response": {"type": "function_call", "name": "f"}}, "", []),
        ({"response": [{"type": "reasoning"}]}, "", ["response is a list"]),
    ],
)
def test_forms_of_a_response(given: dict[str, object], text: str, problems: list[str]) -> None:
    found: Any
    found, listed = reading(lambda reader: reader.read_response(given))
    assert (text if listed else found[1] or found[0], listed) == (text, problems)


def test_an_object_in_a_field_that_the_user_named_is_read() -> None:
    given: dict[str, object] = {"games": [], "model": "m", "response": {"content": "x"}}
    assert reading(lambda reader: reader.read_response(given))[1] == ["is a judgment of arena-hard"]
    given["answer"] = given["response"]
    assert reading(lambda reader: reader.read_response(given), response="answer") == (("x", None), [])


def test_roles_in_any_case_and_by_names_of_ones_own() -> None:
    names = FieldNames.of(None, roles={"Shopper": "user"})
    found = [find_role(name, names) for name in ("USER", "Agent", "shopper", "Customer", "narrator", 3)]
    assert found == ["user", "assistant", "user", "user", None, None]
    with pytest.raises(SettingError, match="roles are system, user, assistant, tool"):
        FieldNames.of(None, roles={"a": "b"})
