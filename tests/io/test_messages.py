from __future__ import annotations

from dialeval.core.errors import Problem
from dialeval.io.calls import Call
from dialeval.io.fields import PARTS, FieldReader, Message, read_message
from dialeval.io.rows import FieldNames


def reader() -> tuple[FieldReader, list[Problem]]:
    problems: list[Problem] = []
    return FieldReader("x", FieldNames(), problems), problems


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
        "content",
        "call",
        "response",
    }
