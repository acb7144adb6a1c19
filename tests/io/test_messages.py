from __future__ import annotations

from typing import Any

import pytest

from dialeval.core.errors import Problem
from dialeval.io.calls import Call
from dialeval.io.fields import FieldReader
from dialeval.io.messages import PARTS, ROLES, Message, read_content, read_message, read_role
from dialeval.io.rows import FieldNames


def reader() -> tuple[FieldReader, list[Problem]]:
    problems: list[Problem] = []
    return FieldReader("x", FieldNames(), problems), problems


@pytest.mark.parametrize(
    ("given", "text", "calls"),
    [
        ("a", "a", []),
        ([], "", []),
        (["a", "b"], "a b", []),
        (["a", " b", "c\n", "d"], "a b c\nd", []),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "u"}}], "a [image]", []),
        ([{"type": "image"}, {"type": "text", "text": "a"}, {"text": "b"}], "[image] a b", []),
        ([{"type": "text", "text": "a "}, {"type": "input_audio"}, {"type": "file"}], "a [audio] [file]", []),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}], "a", []),
        ([{"type": "tool_use", "name": "f", "input": {"q": "é"}}], "", ['[call f({"q":"é"})]']),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "r"}]}], "r", []),
        ([{"type": "refusal", "refusal": "no"}], "no", []),
        (
            [{"text": "a"}, {"inlineData": {"mimeType": "image/png"}}, {"functionCall": {"name": "g"}}],
            "a [file]",
            ["[call g()]"],
        ),
    ],
)
def test_parts(given: Any, text: str, calls: list[str]) -> None:
    own, problems = reader()
    said, parts = read_content(own, given, "messages[0]")
    assert (said, [part.shown for part in parts if isinstance(part, Call)]) == (text, calls)
    assert not problems


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ([{"type": "text"}], "m is null"),
        ([3], "m is a number"),
        (3, "m is a number"),
    ],
)
def test_what_is_no_content(given: Any, what: str) -> None:
    own, problems = reader()
    read_content(own, given, "m")
    [problem] = problems
    assert problem.what.startswith(what)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ({"function": {"name": "f", "arguments": '{"a": 1}'}}, '[call f({"a": 1})]'),
        ({"function": "f", "arguments": {"a": 1}}, '[call f({"a":1})]'),
        ({"name": "f", "arguments": {}}, "[call f({})]"),
        ({"name": 3}, "[call a number()]"),
        ({"name": "f", "arguments": {"a": object()}}, "[call f(an object)]"),
        ("f", "[call f]"),
        (3, "[call a number]"),
    ],
)
def test_calls_as_they_are_shown(call: Any, shown: str) -> None:
    own, problems = reader()
    message = read_message(own, {"content": "", "tool_calls": [call]}, "m", "assistant")
    assert [call.shown for call in message.calls] == [shown]
    assert message.calls
    assert message.shown == shown
    assert not problems


def test_roles() -> None:
    own, problems = reader()
    for name, role in ROLES.items():
        assert read_role(own, {"role": name}, "m") == read_role(own, {"from": name}, "m") == role
    assert not problems
    assert read_role(own, {"role": "narrator"}, "m") is None
    assert problems[0].what == "m has the role 'narrator'"


def test_a_message_that_refuses_or_calls_by_its_role() -> None:
    own, problems = reader()
    assert read_message(own, {"content": None, "refusal": "I cannot."}, "m", "assistant").text == "I cannot."
    call = read_message(own, {"from": "function_call", "value": '{"name": "f"}'}, "m", "assistant")
    assert call == Message("assistant", "", (Call('[call {"name": "f"}]', "f"),))
    assert not problems


def test_every_kind_of_part_is_a_field_a_mark_a_call_or_nothing() -> None:
    assert {field for field in PARTS.values() if field and not field.startswith("[")} == {
        "text",
        "refusal",
        "result",
        "call",
    }
