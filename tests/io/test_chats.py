from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dialeval.core import inputs
from dialeval.core.columns import SharedColumn
from dialeval.core.errors import Problem
from dialeval.io.gathering import gather_rows
from dialeval.io.rows import FieldNames, Records, Rows

Caught = Callable[[Callable[[], object]], list[Problem]]


def gathered(rows: list[Any], system_prompts: bool = False, **names: str) -> list[Rows]:
    given = FieldNames.of(names, system_prompts=system_prompts)
    return gather_rows(Records("chats.jsonl", enumerate(rows, 1)), given, "file")


def say(role: str, content: Any, **more: object) -> dict[str, object]:
    return {"role": role, "content": content, **more}


CHAT = [say("system", "be kind"), say("user", "hi"), say("assistant", "ho"), say("user", "?"), say("assistant", "!")]


def test_each_message_of_the_assistant_is_a_response() -> None:
    [rows] = gathered([{"messages": CHAT}])
    assert list(rows.responses) == ["ho", "!"]
    assert list(rows.columns[inputs.CONTEXT]) == [["hi"], ["hi", "ho", "?"]]
    assert list(rows.columns[inputs.ROLES]) == [["user"], ["user", "assistant", "user"]]
    assert rows.turns is not None
    assert rows.turns.tolist() == [1, 2]
    assert rows.dialogue_offsets().tolist() == [0, 2]


def test_system_prompts_are_part_of_the_context_if_asked_for() -> None:
    [rows] = gathered([{"messages": CHAT}], system_prompts=True)
    assert list(rows.columns[inputs.CONTEXT]) == [["be kind", "hi"], ["be kind", "hi", "ho", "?"]]


def test_names_of_chats() -> None:
    chats = [{"messages": CHAT[:3], **name} for name in ({"dialog_id": "d", "id": "i"}, {"id": 5}, {}, {"system": "s"})]
    named, own = gathered(chats)
    assert named.dialogues is not None
    assert list(named.dialogues) == ["d", "5", "line 3"]
    assert own.system == "s"


def test_chats_and_plain_rows_may_be_mixed() -> None:
    [rows] = gathered([{"messages": CHAT[:3]}, {"response": "x", "messages": None}, {"messages": CHAT[:2]}])
    assert list(rows.responses) == ["ho", "x", ""]
    assert rows.account.without_reply == 1


def test_content_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": " b"}]
    [rows] = gathered([{"messages": [say("user", parts), say("assistant", parts)]}])
    assert list(rows.responses) == ["a b"]
    assert list(rows.columns[inputs.CONTEXT]) == [["a b"]]


def test_a_call_of_a_tool_is_shown_and_is_no_response() -> None:
    call = [{"id": "1", "function": {"name": "search", "arguments": '{"q": "boat"}'}}]
    for content in (None, ""):
        calling = say("assistant", content, tool_calls=call)
        [rows] = gathered([{"messages": [say("user", "a"), calling, say("tool", "b"), say("assistant", "c")]}])
        assert list(rows.responses) == ["c"]
        assert list(rows.columns[inputs.CONTEXT]) == [["a", '[call search({"q": "boat"})]', "b"]]
        assert rows.turns is not None
        assert rows.turns.tolist() == [1]


def test_what_is_said_beside_a_call_is_a_response_without_it() -> None:
    calling = say("assistant", "wait", tool_calls=[{"function": {"name": "f", "arguments": "{}"}}])
    [rows] = gathered([{"messages": [say("user", "a"), calling, say("tool", "b"), say("assistant", "c")]}])
    assert list(rows.responses) == ["wait", "c"]
    assert list(rows.columns[inputs.CONTEXT]) == [["a"], ["a", "wait [call f({})]", "b"]]


def test_messages_may_be_json_in_a_cell() -> None:
    [rows] = gathered([{"messages": '[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]'}])
    assert list(rows.responses) == ["b"]


def test_the_reference_belongs_to_the_only_response(problems_of: Caught) -> None:
    [rows] = gathered([{"messages": CHAT[:3], "reference": ["r"]}])
    assert list(rows.columns[inputs.REFERENCE]) == [["r"]]
    [problem] = problems_of(lambda: gathered([{"messages": CHAT, "reference": ["r"]}]))
    assert "2 assistant messages" in problem.what


def test_messages_can_be_mapped() -> None:
    [rows] = gathered([{"conversation": CHAT}], messages="conversation")
    assert len(rows) == 2


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        ("hi", "messages is a string"),
        ("[hi", "messages is a string"),
        ([3], "messages[0] is a number"),
        ([{"content": "x"}], "messages[0] has no role, only content"),
        ([say("assistent", "x")], "messages[0] has the role 'assistent'"),
        ([say("assistent", 3)], "messages[0] has the role 'assistent'"),
        ([say(["user"], "x")], "messages[0] has the role ['user']"),  # type: ignore[arg-type]
        ([say("user", None)], "messages[0] is null"),
        ([say("user", 3)], "messages[0] is a number"),
        ([say("user", [3])], "messages[0] is a number"),
    ],
)
def test_problems(messages: object, what: str, problems_of: Caught) -> None:
    [problem] = problems_of(lambda: gathered([{"messages": CHAT}, {"messages": messages}]))
    assert (problem.where, problem.line, problem.what) == ("chats.jsonl", 2, what)


def test_a_row_cannot_have_two_replies(problems_of: Caught) -> None:
    [problem] = problems_of(lambda: gathered([{"messages": CHAT, "response": "x"}]))
    assert problem.what == "has two replies: response, and the last of messages"


def test_a_reply_next_to_the_messages_of_a_request() -> None:
    calls = {"choices": [{"message": {"role": "assistant", "content": "Yes."}}]}
    rows = [
        {"messages": CHAT[:4], "output": output} for output in ("Yes.", {"role": "assistant", "content": "Yes."}, calls)
    ]
    [found] = gathered([*rows, {"messages": CHAT, "completion": "!"}, {"messages": CHAT[:2], "output": None}])
    assert list(found.responses) == ["Yes.", "Yes.", "Yes.", "!", ""]
    assert [list(context) for context in found.columns[inputs.CONTEXT]] == [*[["hi", "ho", "?"]] * 4, ["hi"]]
    assert (found.account.replies, found.account.merged, found.account.without_reply) == (4, 1, 1)


def test_replies_that_are_messages_in_json_are_decoded_and_other_json_is_a_text() -> None:
    said = {"role": "assistant", "content": "Yes."}
    outputs = [said, [said], {"choices": [{"message": said}]}, {"answer": "Yes."}]
    for given in ({"messages": CHAT[:2]}, {"input": "hi"}):
        [rows] = gathered([{**given, "output": json.dumps(output)} for output in outputs])
        assert list(rows.responses) == ["Yes.", "Yes.", "Yes.", '{"answer": "Yes."}']


def test_chats_without_a_reply_are_rows_that_failed() -> None:
    [rows] = gathered([{"messages": CHAT[:4]}, {"messages": CHAT[:2]}, {"messages": []}, {"messages": None}])
    assert list(rows.responses) == ["ho", "", "", "", ""]
    account = rows.account
    assert (account.conversations, account.user_turns, account.replies, account.without_reply) == (4, 3, 1, 4)


def test_contexts_of_a_chat_are_shared() -> None:
    def size(turns: int) -> int:
        [rows] = gathered(
            [{"messages": [say(("user", "assistant")[turn % 2], f"turn {turn:5}") for turn in range(turns)]}]
        )
        column = rows.columns[inputs.CONTEXT]
        assert isinstance(column, SharedColumn)
        assert column[len(column) - 1] == [f"turn {turn:5}" for turn in range(turns - 1)]
        texts = column.values
        return sum(array.nbytes for array in (texts.data, texts.starts, texts.ends, column.starts, column.ends))

    assert size(2000) < 2.01 * size(1000)
    assert size(2000) < 2000 * 64
