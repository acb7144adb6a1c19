from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pytest

from dialeval.core import inputs
from dialeval.core.errors import Problem, SettingError, collect_warnings
from dialeval.io.calls import Call, ToolResult
from dialeval.io.fields import FieldReader, describe_missing, parse_cell, read_labels, read_time
from dialeval.io.gathering import gather_rows
from dialeval.io.messages import Message, find_role, read_message, read_plain_message, read_role
from dialeval.io.rows import FieldNames, Records, Rows, read_number

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


def test_a_column_that_no_row_fills_is_absent() -> None:
    [rows] = gathered([row(reference=None, context=[]), row()])
    assert set(rows.columns) == {inputs.RESPONSE}
    assert rows.dialogues is None
    assert rows.turns is None


def test_systems_in_order_of_appearance_and_the_file_for_those_without() -> None:
    found = gathered([row(system="b"), row(), row(system="a", reference="r"), row(system="b"), row(system=None)])
    assert [(rows.system, len(rows)) for rows in found] == [("b", 2), ("file", 2), ("a", 1)]
    assert all(inputs.REFERENCE in rows.columns for rows in found), "one file has one set of columns"


def test_dialogues_and_turns_are_kept() -> None:
    [rows] = gathered([row(dialog_id="d", turn=0), row(dialog_id=7, turn=1.0), row(turn="12"), row(dialog_id="")])
    assert rows.dialogues is not None
    assert rows.turns is not None
    assert list(rows.dialogues) == ["d", "7", "row 3", "row 4"]
    assert rows.turns.tolist() == [0, 1, 12, -1]


def test_names_can_be_mapped() -> None:
    [rows] = gathered([{"answer": "hi", "gold": "ho", "response": 3}], response="answer", reference="gold")
    assert list(rows.responses) == ["hi"]
    assert list(rows.columns[inputs.REFERENCE]) == [["ho"]]


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


@pytest.mark.parametrize(
    ("value", "name", "problems"),
    [
        (None, None, []),
        ("", None, []),
        ("a", "a", []),
        (3, "3", []),
        (0, "0", []),
        (2.0, "2", []),
        (NAN, None, []),
        (2.5, None, ["id is a number"]),
        (True, None, ["id is true or false"]),
        (["a"], None, ["id is a list"]),
        ("\ud800", "", ["id holds half of a surrogate pair"]),
    ],
)
def test_forms_of_a_name(value: object, name: str | None, problems: list[str]) -> None:
    assert reading(lambda reader: reader.read_identifier({"id": value}, "id")) == (name, problems)


@pytest.mark.parametrize(
    ("value", "texts", "problems"),
    [
        (NAN, [], []),
        (1.5, [], ["x is a number"]),
        (("a", None), ["a", ""], ["x[1] is null"]),
        (np.array(["a", "b"], object), ["a", "b"], []),
        ({"a": 1}, [], ["x is an object"]),
    ],
)
def test_forms_of_texts(value: object, texts: list[str], problems: list[str]) -> None:
    assert reading(lambda reader: reader.read_texts(value, "x")) == (texts, problems)


@pytest.mark.parametrize(
    ("value", "number", "problems"),
    [
        ("", None, []),
        (NAN, None, []),
        ("0", 0, []),
        (0, 0, []),
        (1.0, 1, []),
        (2**63 - 1, 2**63 - 1, []),
        (2**63, None, [f"turn is {2**63}"]),
        ("1" * 19, int("1" * 19), []),
        ("0" * 19 + "1", None, [f"turn is '{'0' * 19}1'"]),
        ("²", None, ["turn is '²'"]),
        ("٣", None, ["turn is '٣'"]),
        (True, None, ["turn is True"]),
        ([1], None, ["turn is a list"]),
        ("x" * 50, None, [f"turn is '{'x' * 39}"]),
    ],
)
def test_forms_of_a_turn(value: object, number: int | None, problems: list[str]) -> None:
    assert reading(lambda reader: reader.read_turn({"turn": value})) == (number, problems)


@pytest.mark.parametrize(
    ("given", "since", "seconds"),
    [
        ({}, 2.0, None),
        ({"latency": 1}, 2.0, 1.0),
        ({"latency": "2.5"}, None, 2.5),
        ({"latency": 0}, None, 0.0),
        ({"latency": -1}, None, None),
        ({"latency": True}, None, None),
        ({"latency": NAN}, None, None),
        ({"latency": [1, 3.5]}, None, 2.5),
        ({"latency": ("2026-01-01T00:00:00Z", "2026-01-01T00:00:02")}, None, 2.0),
        ({"latency": [1]}, None, None),
        ({"latency": [1, 2, 3]}, None, None),
        ({"latency": [None, 2]}, None, None),
        ({"latency": [2, None]}, None, None),
        ({"latency": [3, 1]}, None, None),
        ({"timestamp": 5}, 2.0, 3.0),
        ({"timestamp": 5}, None, None),
        ({"timestamp": "x"}, 2.0, None),
        ({"timestamp": 5, "latency": 7}, 2.0, 7.0),
    ],
)
def test_forms_of_a_latency(given: dict[str, object], since: float | None, seconds: float | None) -> None:
    assert reading(lambda reader: reader.read_latency(given, since)) == (seconds, [])


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3.0), (" 1e3 ", 1000.0), (True, 1.0), ("x", None), ("inf", None), (NAN, None), (10**400, None), ([1], None)],
)
def test_numbers(value: object, number: float | None) -> None:
    assert read_number(value) == number


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0, 0.0),
        (1e11, 1e11),
        (-1e11, -1e11),
        (1e11 + 1, 100_000_000.001),
        (-2e11, -2e8),
        ("2026-01-01T00:00:00Z", 1767225600.0),
        ("2026-01-01T00:00:00z", 1767225600.0),
        ("2026-01-01T01:00:00+01:00", 1767225600.0),
        ("2026-01-01T00:00:00", 1767225600.0),
        (datetime(2026, 1, 1), 1767225600.0),  # noqa: DTZ001
        (datetime(2026, 1, 1, tzinfo=timezone.utc), 1767225600.0),
        ("7", None),
        (NAN, None),
        (None, None),
        ([1], None),
    ],
)
def test_times(value: object, seconds: float | None) -> None:
    assert read_time(value) == seconds


@pytest.mark.parametrize(
    ("value", "parsed"),
    [("[1]", [1]), (' {"a": 1}', {"a": 1}), ("[x", "[x"), ("3", "3"), ("", ""), (3, 3), (["[1]"], ["[1]"])],
)
def test_cells(value: object, parsed: object) -> None:
    assert parse_cell(value) == parsed


ONE = '[{"role": "user", "content": "a"}]'


@pytest.mark.parametrize(
    ("context", "turns", "roles"),
    [
        (ONE, ["a"], ["user"]),
        ([ONE], ["a"], ["user"]),
        ((ONE,), ["a"], ["user"]),
        ([ONE, "b"], [ONE, "b"], []),
        (" " + ONE, [" " + ONE], []),
        ('[{"text": "a"}]', ['[{"text": "a"}]'], []),
        (
            '[{"role": "user", "content": "a"}, {"text": "b"}]',
            ['[{"role": "user", "content": "a"}, {"text": "b"}]'],
            [],
        ),
        ('[{"role": "user"}, 3]', ['[{"role": "user"}, 3]'], []),
        ("[{", ["[{"], []),
        ("[]", ["[]"], []),
        ([], [], []),
        ([{"text": "a"}, "b"], ["a", "b"], []),
        ([{"text": "a"}, {"from": "gpt", "value": "b"}], ["a", "b"], ["", "assistant"]),
        ([say("narrator", "a")], ["a"], []),
        ([{"type": "human", "data": {"content": "a"}}, {"event": "slot", "text": "b"}], ["a", "b"], ["user", ""]),
        ([say("system", "p"), say("system", "q"), say("user", "a")], ["a"], ["user"]),
        ([say("system", "p"), say("user", "a"), say("system", "q")], ["p", "a", "q"], ["system", "user", "system"]),
        ([say("user", "a"), say("system", "q")], ["a", "q"], ["user", "system"]),
        ([say("system", "p")], [], []),
        ([CALLING, say("tool", "r")], ['[call f({"a":1})]', "r"], ["assistant", "tool"]),
    ],
)
def test_turns_and_roles_of_a_context(context: object, turns: list[str], roles: list[str]) -> None:
    assert reading(lambda reader: reader.read_context({"context": context})) == ((turns, roles), [])


def test_system_prompts_of_a_context_are_kept_if_asked_for() -> None:
    context: dict[str, object] = {"context": [say("system", "p"), say("user", "a")]}
    found = reading(lambda reader: reader.read_context(context), system_prompts=True)
    assert found == ((["p", "a"], ["system", "user"]), [])


EMPTY: list[dict[str, object]] = []
LISTED = [{"name": "f", "arguments": {"a": 1}}]
WITH_RESULT = [{"name": "f", "arguments": {"a": 1}, "error": False}]


@pytest.mark.parametrize(
    ("given", "calls", "expected"),
    [
        ({}, None, None),
        ({"tool_calls": LISTED}, LISTED, None),
        ({"tool_calls": tuple(LISTED)}, LISTED, None),
        ({"tool_calls": np.array(LISTED, object)}, LISTED, None),
        ({"tool_calls": LISTED[0]}, LISTED, None),
        ({"tool_calls": json.dumps(LISTED)}, LISTED, None),
        ({"tool_calls": []}, EMPTY, None),
        ({"tool_calls": NAN}, None, None),
        ({"expected_calls": LISTED}, EMPTY, LISTED),
        ({"expected_calls": NAN}, None, None),
        ({"tool_calls": LISTED, "expected_calls": []}, LISTED, EMPTY),
        ({"tool_calls": [say("user", "a"), CALLING, say("tool", "b")]}, WITH_RESULT, None),
        ({"tool_calls": [{"type": "reasoning"}, CALLING]}, LISTED, None),
        ({"tool_calls": [say("user", "a")]}, None, None),
        ({"response": CALLING}, LISTED, None),
        ({"response": [CALLING, say("tool", "b")]}, WITH_RESULT, None),
        ({"response": [{"tool_calls": LISTED, "content": ""}, {"from": "tool", "value": "b"}]}, WITH_RESULT, None),
        ({"response": [say("user", "b", tool_calls=LISTED)]}, None, None),
        ({"response": [{"type": "reasoning"}, "x", say("assistant", "b")]}, None, None),
        ({"response": "x", "tool_calls": None}, None, None),
    ],
)
def test_calls_of_a_row(given: dict[str, object], calls: list[object] | None, expected: list[object] | None) -> None:
    assert reading(lambda reader: reader.read_calls(given)) == ((calls, expected), [])
    every = reading(lambda reader: reader.read_calls(given), every_call=True)
    assert every == ((EMPTY if calls is None else calls, expected), [])


def test_what_is_no_list_of_calls() -> None:
    for value, kind in ((1.5, "a number"), ("f", "a string"), (True, "true or false")):
        _, problems = reading(lambda reader, value=value: reader.read_calls({"expected_calls": value}))  # type: ignore[misc]
        assert problems == [f"expected_calls is {kind}"]


@pytest.mark.parametrize(
    ("annotators", "found"),
    [
        ([], {}),
        ([None, 3], {}),
        ([{"act": "ask"}], {"act": [1, {"ask": 1}]}),
        ([{"act": "ask"}, {"act": "tell"}, {"act": "ask"}], {"act": [3, {"ask": 2, "tell": 1}]}),
        ([{"act": ["ask", "tell", ""]}], {"act": [1, {"ask": 1, "tell": 1}]}),
        ([{"act": [["ask"], ["ask", "tell"]]}], {"act": [2, {"ask": 2, "tell": 1}]}),
        ([{"act": []}], {"act": [1, {}]}),
        ([{"act": [["", "ask"]]}], {"act": [1, {"ask": 1}]}),
        ([{"act": [[], ["ask"]]}], {"act": [2, {"ask": 1}]}),
        ([{"act": ""}], {}),
        ([{"act": None}], {}),
        ([{"act": NAN}], {}),
        ([{"ok": True}, {"ok": False}, {"ok": True}], {"ok": [3, {"": 2}]}),
        ([{"ok": [True, False, None]}], {"ok": [2, {"": 1}]}),
        ([{"ok": [None, True]}], {"ok": [1, {"": 1}]}),
        ([{"ok": np.bool_(True)}], {"ok": [1, {"": 1}]}),
        ([{"ok": 0.25}], {"ok": [1, {"": 0.25}]}),
        ([{"ok": 1}, {"ok": 0}, {"ok": 1.0}], {"ok": [3, {"": 2.0}]}),
        ([{"a b/c": "d  e!", "x.y+z-1": "é"}], {"a_b_c": [1, {"d_e_": 1}], "x.y+z-1": [1, {"é": 1}]}),
    ],
)
def test_labels(annotators: list[object], found: dict[str, list[object]]) -> None:
    with collect_warnings() as notes:
        assert read_labels(annotators) == found
    assert not list(notes)


@pytest.mark.parametrize(("value", "kind"), [(2, "a number"), (-0.5, "a number"), (1.5, "a number"), ({}, "an object")])
def test_what_is_no_label_is_left_out_with_a_warning(value: object, kind: str) -> None:
    with collect_warnings() as notes:
        assert read_labels([{"ok": value}, {"ok": True}]) == {"ok": [1, {"": 1}]}
    [note] = notes
    assert note.startswith(f"the label 'ok' is {kind}, and is not read: ")


def test_labels_of_a_turn_by_name() -> None:
    labelled: dict[str, object] = {"labels": '{"act": "ask"}'}
    assert reading(lambda reader: reader.read_turn_labels(labelled)) == ({"act": [1, {"ask": 1}]}, [])
    both: dict[str, object] = {"labels": [{"act": "ask"}, {"act": "ask"}]}
    assert reading(lambda reader: reader.read_turn_labels(both)) == ({"act": [2, {"ask": 2}]}, [])
    assert reading(lambda reader: reader.read_turn_labels({"labels": {"act": None}})) == (None, [])
    assert reading(lambda reader: reader.read_turn_labels({})) == (None, [])


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (say("user", "a"), ("user", "a")),
        (say("gpt", "a"), ("assistant", "a")),
        (say("function_call", "a"), None),
        (say("narrator", "a"), None),
        (say("user", None), None),
        (say("user", "a", name="b"), None),
        ({"role": 3, "content": "a"}, None),
        ({"role": "user", "text": "a"}, None),
        ("a", None),
    ],
)
def test_plain_messages(message: object, found: tuple[str, str] | None) -> None:
    assert read_plain_message(message, FieldNames()) == found


def test_roles_in_any_case_and_by_names_of_ones_own() -> None:
    names = FieldNames.of(None, roles={"Shopper": "user"})
    found = [find_role(name, names) for name in ("USER", "Agent", "shopper", "Customer", "narrator", 3)]
    assert found == ["user", "assistant", "user", "user", None, None]
    with pytest.raises(SettingError, match="roles are system, user, assistant, tool"):
        FieldNames.of(None, roles={"a": "b"})


F = Call("[call f()]", "f")
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": "r"}
ANSWER = {"functionResponse": {"name": "f", "response": {"x": 1}}}


@pytest.mark.parametrize(
    ("message", "role", "found"),
    [
        ({"content": "a", "tool_calls": [{"name": "f"}]}, "assistant", Message("assistant", "a", (F,))),
        ({"content": None, "function_call": {"name": "f"}}, "assistant", Message("assistant", "", (F,))),
        ({"content": None, "value": "a"}, "user", Message("user", "a")),
        ({"refusal": "no"}, "assistant", Message("assistant", "no")),
        ({"refusal": "no", "tool_calls": [{"name": "f"}]}, "assistant", Message("assistant", "no")),
        ({"content": {"answer": "a"}}, "assistant", Message("assistant", "a")),
        ({"content": "a"}, "tool", Message("tool", "a", (), (ToolResult(None, None, False),))),
        ({"content": "Error"}, "tool", Message("tool", "Error", (), (ToolResult(None, None, True),))),
        ({"content": [RESULT]}, "user", Message("tool", "r", (), (ToolResult("c", None, False),))),
        ({"content": [RESULT, "a"]}, "user", Message("user", "r a", (), (ToolResult("c", None, False),))),
        ({"content": ["a", RESULT]}, "assistant", Message("assistant", "a", (), (ToolResult("c", None, False),))),
        ({"content": [RESULT]}, "tool", Message("tool", "r", (), (ToolResult("c", None, False),))),
        ({"content": []}, "user", Message("user", "")),
        ({"parts": [ANSWER]}, "user", Message("tool", '{"x":1}', (), (ToolResult(None, "f", False),))),
        (
            {"content": [{**RESULT, "content": None}]},
            "user",
            Message("tool", "", (), (ToolResult("c", None, False),)),
        ),
        (
            {"content": "", "tool_calls": [{"name": "f", "id": "c", "output": "Error"}, "g"]},
            "assistant",
            Message(
                "assistant",
                "",
                (Call("[call f()]", "f", None, "c"), Call("[call g]", "g")),
                (ToolResult("c", "f", False),),
            ),
        ),
        ({"role": "function_call", "content": "x"}, "assistant", Message("assistant", "", (Call("[call x]"),))),
        (
            {"from": "function_call", "value": '{"name": "f", "arguments": {"a": 1}}'},
            "assistant",
            Message("assistant", "", (Call('[call {"name": "f", "arguments": {"a": 1}}]', "f", {"a": 1}),)),
        ),
        (
            {"content": [{"type": None, "image": "x"}, {"image": None, "text": "a"}]},
            "user",
            Message("user", "[image] a"),
        ),
        ({"content": [{"type": "widget", "text": "a"}]}, "user", Message("user", "a")),
        ({"content": [{"type": "text", "text": ""}, "b", "", "c"]}, "user", Message("user", "b c")),
    ],
)
def test_messages(message: dict[str, object], role: str, found: Message) -> None:
    assert reading(lambda reader: read_message(reader, message, "m", role)) == (found, [])


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"said": "a"}, "m has neither text nor content, only said"),
        ({"content": "a", "tool_calls": ["\ud800"]}, "m holds half of a surrogate pair"),
        ({"content": {"answer": 3}}, "m is an object"),
    ],
)
def test_problems_of_messages(message: dict[str, object], problem: str) -> None:
    assert reading(lambda reader: read_message(reader, message, "m", "assistant"))[1] == [problem]


def test_what_a_reader_of_a_context_sees() -> None:
    assert Message("user", "a").shown == "a"
    assert Message("assistant", "", (F, F)).shown == "[call f()] [call f()]"
    assert Message("assistant", "a", (F,)).shown == "a [call f()]"


def test_problems_of_roles() -> None:
    def read(message: dict[str, object]) -> tuple[object, list[str]]:
        return reading(lambda reader: read_role(reader, message, "m"))

    assert read({"role": None, "from": "human"}) == ("user", [])
    assert read({"role": "x" * 50}) == (None, [f"m has the role '{'x' * 39}"])
    assert read({"content": "a"}) == (None, ["m has no role, only content"])


def test_rows_of_one_unknown_shape_are_counted(problems_of: Caught) -> None:
    given = [{"said": "x"}, {"said": "y"}, row(turn="x"), {"told": "x"}, {"said": "z"}]
    found = problems_of(lambda: gathered(given))
    assert [(problem.line, problem.what) for problem in found] == [
        (1, "has no field 'response', only said (and 2 more rows)"),
        (3, "turn is 'x'"),
        (4, "has no field 'response', only told"),
    ]


@pytest.mark.parametrize(
    ("wanted", "there", "remedy"),
    [
        ("response", ["Answer ", "text"], "--field response=Answer  (fields={'response': 'Answer '} in Python)"),
        ("response", ["Response", "text"], "--field response=Response (fields={'response': 'Response'} in Python)"),
        ("response", ["TEXT", "Text"], "--field response=TEXT (fields={'response': 'TEXT'} in Python)"),
        ("response", ["zzz"], "--field response=NAME (fields={'response': NAME} in Python)"),
        ("reference", ["text"], "--field reference=NAME (fields={'reference': NAME} in Python)"),
    ],
)
def test_remedies_for_a_missing_field(wanted: str, there: list[str], remedy: str) -> None:
    what, shown = describe_missing("own", wanted, there)
    assert what == f"has no field 'own', only {', '.join(there)}"
    assert shown == f"name it {wanted}, or map the name it has: {remedy}"


def test_a_field_to_try_is_computed_from_the_row() -> None:
    call = {"query": "When does it leave, and from where?", "said": "It leaves at nine.", "by": "bot"}
    what, remedy = describe_missing("response", "response", {"id": 1, "call": call})
    assert what == "has no field 'response', only id, call"
    assert "--field response=call.said --field context=call.query (fields={'response': 'call.said'}" in remedy
    chat = {"title": "a ferry", "thread": {"posts": [{"who": "u", "text": "Hello"}]}}
    assert "--field messages=thread.posts" in describe_missing("response", "response", chat)[1]


def test_references_are_read_where_it_is_unclear_whether_the_response_is_one() -> None:
    given: dict[str, object] = {"response_is_reference": "yes", "reference": 3}
    found = reading(lambda reader: reader.read_references(given))
    assert found == ([], ["response_is_reference is a string", "reference is a number"])
