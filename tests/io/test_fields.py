from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dialeval.core import inputs
from dialeval.core.errors import Problem, SettingError
from dialeval.io.fields import FieldReader, find_role
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
    assert list(rows.columns[inputs.CONTEXT]) == [expected, ["x"]]


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
    assert list(rows.columns[inputs.REFERENCE]) == [expected, ["x"]]


@pytest.mark.parametrize("names", [{"answer": "response"}, {"response": ""}, {"response": 3}])
def test_a_wrong_mapping_is_a_setting_error(names: Any) -> None:
    with pytest.raises(SettingError, match="map"):
        FieldNames.of(names)


def test_a_further_field_that_is_an_object_is_a_problem(problems_of: Caught) -> None:
    records = Records("rows.jsonl", enumerate([row(), row(topic={"a": 1}), row(topic=[["a"]])], 1))
    found = problems_of(lambda: gather_rows(records, FieldNames.of({}, ["topic"]), "file"))
    assert [(problem.line, problem.what) for problem in found] == [(2, "topic is an object"), (3, "topic is a list")]


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
