"""Tool calls and results in the shapes of other programs, written after the structure of their messages."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.core import inputs
from dialeval.core.columns import FieldColumn
from dialeval.io.calls import (
    Call,
    CallLog,
    ToolResult,
    dump,
    parse_text,
    read_call,
    read_calls,
    read_expected_calls,
    read_result,
    unwrap,
)
from dialeval.io.reading import read_responses
from dialeval.io.rows import Rows

ASK = {"role": "user", "content": "Is there a ferry?"}
SAY = {"role": "assistant", "content": "At nine."}
MADE = {"name": "timetable", "arguments": {"day": 2, "stops": ["Aa", "Bo"]}}
ARGUMENTS, RESULT = MADE["arguments"], "09:00 Anna"


def calls_of(rows: Rows, row: int = 0) -> Any:
    """The calls of a row."""
    return [*rows.columns[inputs.CALLS]][row]


def openai(failed: bool) -> list[Any]:
    function = {"name": "timetable", "arguments": json.dumps(ARGUMENTS)}
    return [
        ASK,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "Error: no such day" if failed else RESULT},
        SAY,
    ]


def openai_function(failed: bool) -> list[Any]:
    function = {"name": "timetable", "arguments": json.dumps(ARGUMENTS)}
    result = {"role": "function", "name": "timetable", "content": "error: closed" if failed else RESULT}
    return [ASK, {"role": "assistant", "content": None, "function_call": function}, result, SAY]


def responses(failed: bool) -> list[Any]:
    return [
        ASK,
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "c1", "id": "f", "name": "timetable", "arguments": json.dumps(ARGUMENTS)},
        {"type": "function_call_output", "call_id": "c1", "output": "Error" if failed else RESULT},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "At nine."}]},
    ]


def responses_mcp(failed: bool) -> list[Any]:
    call = {
        "type": "mcp_call",
        "id": "m1",
        "server_label": "port",
        "name": "timetable",
        "arguments": json.dumps(ARGUMENTS),
    }
    return [
        ASK,
        call | {"output": None if failed else RESULT, "error": "closed" if failed else None},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "At nine."}]},
    ]


def bare(failed: bool) -> list[Any]:
    """A result without an id or a name."""
    result = {"role": "tool", "content": "Error: closed" if failed else RESULT}
    return [ASK, {"role": "assistant", "content": None, "tool_calls": [MADE]}, result, SAY]


def anthropic(failed: bool) -> list[Any]:
    call = {"type": "tool_use", "id": "t1", "name": "timetable", "input": ARGUMENTS}
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": RESULT}]}
    return [
        ASK,
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result | ({"is_error": True} if failed else {})]},
        {"role": "assistant", "content": [{"type": "text", "text": "At nine."}]},
    ]


def anthropic_mcp(failed: bool) -> list[Any]:
    call = {"type": "mcp_tool_use", "id": "t1", "name": "timetable", "server_name": "port", "input": ARGUMENTS}
    result = {
        "type": "mcp_tool_result",
        "tool_use_id": "t1",
        "is_error": failed,
        "content": [{"type": "text", "text": "x"}],
    }
    return [ASK, {"role": "assistant", "content": [call, result, {"type": "text", "text": "At nine."}]}]


def gemini(failed: bool) -> list[Any]:
    response = {"error": "closed"} if failed else {"result": RESULT}
    return [
        {"role": "user", "parts": [{"text": "Is there a ferry?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "timetable", "args": ARGUMENTS}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "timetable", "response": response}}]},
        {"role": "model", "parts": [{"text": "At nine."}]},
    ]


def langchain(failed: bool) -> list[Any]:
    return [
        {"type": "human", "content": "Is there a ferry?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "timetable", "args": ARGUMENTS, "id": "c1"}]},
        {"type": "tool", "content": "x", "tool_call_id": "c1", "status": "error" if failed else "success"},
        {"type": "ai", "content": "At nine."},
    ]


def langchain_data(failed: bool) -> list[Any]:
    return [
        {"type": each["type"], "data": {key: each[key] for key in each if key != "type"}} for each in langchain(failed)
    ]


def langchain_dump(failed: bool) -> list[Any]:
    names = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    return [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", names[each["type"]]],
            "kwargs": {key: each[key] for key in each if key != "type"},
        }
        for each in langchain(failed)
    ]


def mcp(failed: bool) -> list[Any]:
    result = {"content": [{"type": "text", "text": RESULT}], "isError": failed}
    return [
        ASK,
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "timetable", "arguments": ARGUMENTS}},
        {"jsonrpc": "2.0", "id": 1, "result": result},
        SAY,
    ]


def tau2(failed: bool) -> list[Any]:
    call = {"id": "c1", "name": "timetable", "arguments": ARGUMENTS, "requestor": "assistant"}
    return [
        ASK | {"tool_calls": None},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"id": "c1", "role": "tool", "content": RESULT, "requestor": "assistant", "error": failed},
        SAY | {"tool_calls": None},
    ]


def inspect(failed: bool) -> list[Any]:
    error = {"type": "timeout", "message": "too slow"} if failed else None
    return [
        ASK,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "function": "timetable", "arguments": ARGUMENTS}],
        },
        {"role": "tool", "tool_call_id": "c1", "function": "timetable", "content": RESULT, "error": error},
        SAY,
    ]


def sharegpt(failed: bool) -> list[Any]:
    return [
        {"from": "human", "value": "Is there a ferry?"},
        {"from": "function_call", "value": json.dumps(MADE)},
        {"from": "observation", "value": "Error" if failed else RESULT},
        {"from": "gpt", "value": "At nine."},
    ]


SHAPES = [
    *(openai, openai_function, responses, anthropic, anthropic_mcp, gemini, langchain, langchain_data, langchain_dump),
    *(mcp, tau2, inspect, sharegpt, responses_mcp, bare),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("failed", [False, True])
def test_calls_and_results(shape: Any, failed: bool) -> None:
    [rows] = read_responses([{"messages": shape(failed)}])
    assert list(rows.responses) == ["At nine."]
    assert calls_of(rows) == [MADE | {"error": failed}]
    contexts = next(iter(rows.columns[inputs.CONTEXT]))
    assert contexts[0] == "Is there a ferry?"
    assert any(turn.startswith("[call ") for turn in contexts) or shape is anthropic_mcp
    assert next(iter(rows.columns[inputs.ROLES])).count("user") == 1, "results are not said by the user"


def test_results_belong_to_calls_by_id_whatever_their_order() -> None:
    calls = [{"id": name, "function": {"name": "f", "arguments": json.dumps({"x": name})}} for name in "ab"]
    results = [{"role": "tool", "tool_call_id": name, "content": "x", "error": name == "b"} for name in "ba"]
    chat = [ASK, {"role": "assistant", "content": None, "tool_calls": calls}, *results, SAY]
    [rows] = read_responses([{"messages": chat}])
    assert [(call["arguments"]["x"], call["error"]) for call in calls_of(rows)] == [("a", False), ("b", True)]


def test_a_result_of_an_unknown_call_is_nobodys() -> None:
    chat = [*openai(True)[:2], {"role": "tool", "tool_call_id": "other", "content": "Error"}, SAY]
    [rows] = read_responses([{"messages": chat}])
    assert calls_of(rows) == [MADE]


def test_calls_of_a_chat_are_in_its_last_row_and_those_of_the_user_in_none() -> None:
    by_user = {"role": "user", "content": "wait", "tool_calls": [{"name": "reboot", "arguments": {}}]}
    [rows] = read_responses([{"messages": [*openai(False), by_user, SAY]}, {"messages": [ASK, SAY]}])
    calls = list(rows.columns[inputs.CALLS])
    assert [row is None for row in calls] == [True, False, True], "a chat without a call has nothing to look at"
    assert [call["name"] for call in calls[1]] == ["timetable"]


def test_a_chat_that_only_calls_is_an_empty_response_with_its_context() -> None:
    [rows] = read_responses([{"messages": openai(False)[:2]}])
    assert list(rows.responses) == [""]
    assert list(rows.columns[inputs.CONTEXT]) == [["Is there a ferry?"]]


def test_an_answer_that_only_calls_is_an_empty_response() -> None:
    body = {"choices": [{"message": openai(False)[1]}]}
    output = {"output": [responses(False)[2]]}
    rows = [{"custom_id": str(n), "response": {"body": each}, "error": None} for n, each in enumerate((body, output))]
    [found] = read_responses(rows)
    assert list(found.responses) == ["", ""]
    assert [calls_of(found, row) for row in range(2)] == [[MADE], [MADE]]


def test_calls_in_cells_of_a_table(tmp_path: Path) -> None:
    cell = json.dumps([MADE]).replace('"', '""')
    (tmp_path / "a.csv").write_text(f'response,tool_calls,expected_calls\nok,"{cell}","{cell}"\nno,,"{cell}"\n')
    run = dialeval.evaluate(tmp_path / "a.csv", metrics="call-recall")
    assert run["a"]["call-recall"].mean == 0.5


def test_calls_of_deepeval() -> None:
    case = {
        "input": "a",
        "actual_output": "b",
        "tools_called": [{"name": "timetable", "input_parameters": ARGUMENTS, "output": "x"}],
        "expected_tools": [{"name": "timetable", "description": "when ferries leave"}],
    }
    run = dialeval.evaluate([case], metrics="call-f1,call-errors")["system"]
    assert (run["call-f1"].mean, run["call-errors"].mean) == (1, 0)


def test_what_is_no_list_of_calls() -> None:
    with pytest.raises(dialeval.DataError, match="tool_calls is a number"):
        read_responses([{"response": "a", "tool_calls": 3}])


@pytest.mark.parametrize(
    "message",
    [
        {"type": [1], "data": {}, "kwargs": {}},
        {"lc": 1, "id": [], "kwargs": {"content": "x"}},
        {"role": "assistant", "content": "x", "tool_calls": [{"name": "f", "arguments": {"n": 10**30}}]},
        {"role": "assistant", "content": "x", "tool_calls": [{"name": "f", "arguments": {1: {(): 2}}}]},
        {"type": "function_call_output", "call_id": 3, "output": {1: 10**30}},
        {"role": "model", "parts": [{"functionResponse": {"name": "f", "response": {1: 2}}}]},
        {"jsonrpc": "2.0", "result": []},
        {"message.role": "user", "message.content": "x", "message.tool_calls": [1]},
    ],
)
def test_odd_messages_are_read_or_are_a_problem(message: Any) -> None:
    with suppress(dialeval.DataError):
        read_responses([{"messages": [ASK, message, SAY], "expected_calls": [{"name": "f", "arguments": 10**30}]}])


UNKNOWN = object()


@pytest.mark.parametrize(
    ("given", "call"),
    [
        ("f", Call("[call f]", "f")),
        (3, Call("[call a number]", "3")),
        (True, Call("[call true or false]")),
        ({"name": "f"}, Call("[call f()]", "f")),
        ({"name": "f", "arguments": ""}, Call("[call f()]", "f", {})),
        ({"name": "f", "arguments": " "}, Call("[call f( )]", "f", {})),
        ({"name": "f", "arguments": "{x"}, Call("[call f({x)]", "f", "{x")),
        ({"name": "f", "arguments": '{"a": 1}'}, Call('[call f({"a": 1})]', "f", {"a": 1})),
        ({"name": "f", "args": {"b": 2}, "input": {"a": 1}}, Call('[call f({"a":1})]', "f", {"a": 1})),
        ({"name": "f", "arguments": None, "kwargs": [1]}, Call("[call f([1])]", "f", [1])),
        ({"name": "f", "arguments": UNKNOWN}, Call("[call f(a Python object)]", "f", UNKNOWN)),
        ({"name": "f", "id": 7}, Call("[call f()]", "f", None, "7")),
        ({"name": "f", "id": "x", "call_id": "c"}, Call("[call f()]", "f", None, "c")),
        ({"name": "f", "id": True}, Call("[call f()]", "f")),
        ({"name": 3}, Call("[call a number()]", "3")),
        ({"function": "f", "arguments": {"a": 1}}, Call('[call f({"a":1})]', "f", {"a": 1})),
        ({"name": "g", "function": {"name": "f", "args": {}}, "args": {"a": 1}}, Call("[call f({})]", "f", {})),
    ],
)
def test_where_programs_put_a_call(given: object, call: Call) -> None:
    assert read_call(given) == call


@pytest.mark.parametrize(
    ("given", "text", "result"),
    [
        ({}, "", ToolResult(None, None, False)),
        ({"tool_call_id": "c", "id": "i", "name": "f", "function": "g"}, "fine", ToolResult("c", "f", False)),
        ({"id": 4, "function": "g"}, "No error", ToolResult("4", "g", False)),
        ({}, "Error", ToolResult(None, None, True)),
        ({}, "\n erroR: closed", ToolResult(None, None, True)),
        ({}, "Erro", ToolResult(None, None, False)),
        ({"is_error": False}, "", ToolResult(None, None, False)),
        ({"is_error": None, "isError": True}, "", ToolResult(None, None, True)),
        ({"error": ""}, "", ToolResult(None, None, False)),
        ({"error": {"code": 1}}, "", ToolResult(None, None, True)),
        ({"status": "error"}, "", ToolResult(None, None, True)),
        ({"status": "success"}, "", ToolResult(None, None, False)),
        ({"functionResponse": {"name": "f", "response": {"error": "x"}}}, "", ToolResult(None, "f", True)),
        ({"function_response": {"name": "f", "response": {"out": "x"}}}, "", ToolResult(None, "f", False)),
        ({"functionResponse": {"name": "f", "response": "x"}, "error": True}, "", ToolResult(None, "f", True)),
        ({"functionResponse": "x", "name": "f"}, "", ToolResult(None, None, False)),
    ],
)
def test_which_results_are_errors(given: dict[str, Any], text: str, result: ToolResult) -> None:
    assert read_result(given, text) == result
    assert read_result(given).error == (result.error and not text)


ONE_CALL = {"type": "custom_tool_call", "name": "f"}
REQUEST = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "f"}}


@pytest.mark.parametrize(
    ("message", "inner"),
    [
        ({"type": "human", "data": {"content": "x", "role": "y"}}, {"content": "x", "role": "user"}),
        ({"type": "other", "data": {}}, {"type": "other", "data": {}}),
        ({"type": "ai", "data": 3}, {"type": "ai", "data": 3, "role": "assistant"}),
        ({"id": ["a", "ToolMessage"], "kwargs": {"content": "x"}}, {"content": "x", "role": "tool"}),
        ({"id": ("a", "Other"), "kwargs": {"content": "x"}}, {"content": "x", "role": "system"}),
        ({"id": [], "kwargs": {}}, {"id": [], "kwargs": {}}),
        ({"id": "HumanMessage", "kwargs": {}}, {"id": "HumanMessage", "kwargs": {}}),
        ({"id": ["HumanMessage"], "kwargs": 3}, {"id": ["HumanMessage"], "kwargs": 3}),
        (ONE_CALL, {"role": "assistant", "content": "", "tool_calls": [ONE_CALL]}),
        (REQUEST, {"role": "assistant", "content": "", "tool_calls": [REQUEST]}),
        (
            {"type": "function_call_output", "call_id": 3, "output": {"a": 1}},
            {"role": "tool", "tool_call_id": 3, "content": '{"a":1}'},
        ),
        (
            {"type": "custom_tool_call_output", "call_id": "c", "output": ["x"]},
            {"role": "tool", "tool_call_id": "c", "content": ["x"]},
        ),
        (
            {"jsonrpc": "2.0", "id": 1, "result": {"content": "x"}},
            {"role": "tool", "content": "x", "tool_call_id": 1},
        ),
        (
            {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}},
            {"role": "tool", "content": [], "tool_call_id": 1, "isError": True},
        ),
        (
            {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1}},
            {"role": "tool", "content": [], "tool_call_id": 1},
        ),
        ({"jsonrpc": "2.0", "result": 3}, None),
        ({"event": "user", "text": "hi"}, {"role": "user", "content": "hi"}),
        ({"event": "bot", "text": None}, {"role": "assistant", "content": ""}),
        ({"event": "slot", "text": "hi"}, None),
        ({"event": 3, "text": "hi"}, {"event": 3, "text": "hi"}),
        ({"type": "tool", "content": "x"}, {"type": "tool", "content": "x", "role": "tool"}),
        ({"type": "reasoning"}, None),
        (
            {"type": "web_search_call"},
            {"role": "assistant", "content": "", "tool_calls": [{"type": "web_search_call"}]},
        ),
        ({"type": "message", "x": 1}, {"type": "message", "x": 1}),
        (
            {"message.role": "user", "message.tool_calls": [{"tool_call.function.name": "f", "tool_call.id": "c"}, 1]},
            {"role": "user", "tool_calls": [{"name": "f", "id": "c"}]},
        ),
        ({"message.role": "user", "message.tool_calls": 3}, {"role": "user", "tool_calls": 3}),
    ],
)
def test_messages_inside_of_wrappers(message: dict[str, object], inner: dict[str, object] | None) -> None:
    assert unwrap(message) == inner


@pytest.mark.parametrize("message", [{"role": None, "type": "reasoning"}, {"from": "x", "type": "reasoning"}])
def test_a_message_with_a_role_is_not_unwrapped(message: dict[str, object]) -> None:
    assert unwrap(message) is message


def logged(calls: list[Call], *results: ToolResult) -> list[bool | None]:
    log = CallLog()
    log.add(calls, results)
    return [call.get("error") for call in log.to_objects()]


def test_which_call_a_result_belongs_to() -> None:
    named, numbered = [Call("", name) for name in "fgf"], [Call("", "f", None, number) for number in "123"]
    assert logged(named) == [None] * 3
    assert logged(named, ToolResult(None, "f", True)) == [True, None, None]
    assert logged(named, ToolResult(None, "f", False), ToolResult(None, "f", True)) == [False, None, True]
    assert logged(named, ToolResult(None, None, False), ToolResult(None, None, True)) == [False, True, None]
    assert logged(named, *[ToolResult(None, "g", True)] * 2) == [None, True, None]
    assert logged(named, ToolResult("2", "g", True)) == [None, True, None], "calls without ids are found by name"
    assert logged(numbered, ToolResult("2", None, True)) == [None, True, None]
    assert logged(numbered, ToolResult("2", "g", False), ToolResult("2", "f", True)) == [None, False, None]
    assert logged([named[0], *numbered], ToolResult("4", "f", True)) == [None] * 4, "calls have ids"
    assert logged(numbered, ToolResult(None, "f", True)) == [True, None, None], (
        "a result without an id is found by name"
    )


def test_calls_that_a_row_lists() -> None:
    given = [
        {"name": "f", "arguments": '{"a": 1}'},
        {"name": "f", "output": "Error: closed"},
        {"name": "f", "output": "fine", "result": "Error"},
        {"name": "f", "output": 3, "result": "Error"},
        {"name": "f", "output": [], "status": "error"},
        {"name": "f", "is_error": False},
        {"name": "f", "isError": True},
        {"name": "f", "error": "closed"},
        {"name": "f", "output": None, "error": None},
        "g",
    ]
    errors = [None, True, False, True, True, False, True, True, None, None]
    arguments = [{"a": 1}, *[{}] * 9]
    assert read_calls(given) == [
        {"name": name, "arguments": values} | ({} if error is None else {"error": error})
        for name, values, error in zip("f" * 9 + "g", arguments, errors, strict=True)
    ]


def test_expected_calls() -> None:
    given = [
        {"name": "f"},
        {"name": "no", "requestor": "user"},
        {"action": {"name": "g", "kwargs": {"a": 1}, "requestor": "assistant", "compare_args": ["a", 1]}},
        {"action": {"name": "no", "requestor": "user"}},
        {"function": "no", "requestor": "user"},
        {"name": "h", "arguments": "", "compare": ("b",)},
        {"name": "i", "arguments": {}, "compare": "b"},
        "j",
    ]
    assert read_expected_calls(given) == [
        {"name": "f", "arguments": None},
        {"name": "g", "arguments": {"a": 1}, "compare": ["a", "1"]},
        {"name": "h", "arguments": {}, "compare": ["b"]},
        {"name": "i", "arguments": {}},
        {"name": "j", "arguments": None},
    ]


def test_json_of_any_values() -> None:
    assert dump({"b": [1, None], "a": UNKNOWN, 3: True}) == '{"3":true,"a":"a Python object","b":[1,null]}'
    assert dump({"b": 10**30, ("a",): 1, "c": UNKNOWN}) == f'{{"b": {10**30}, "c": "a Python object"}}'
    assert [parse_text(text, "none") for text in (" 3", " ", "x", 7, None)] == [3, "none", "x", 7, None]


def test_arguments_are_plain_data_that_can_be_compared_and_saved() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    given = {"b": float("nan"), "a": 1 << 70, "c": np.int64(3), 4: (1, {2}), "e": deep}
    [call] = read_calls([{"name": "f", "arguments": given}])
    assert list(call["arguments"]) == ["4", "a", "b", "c", "e"]
    assert call["arguments"] | {"e": None} == {"4": [1, "a Python set"], "a": 2.0**70, "b": None, "c": 3, "e": None}
    column = FieldColumn.of([[call], None])
    assert column.digest == FieldColumn.of([json.loads(text[0]) if text else None for text in column.to_texts()]).digest
