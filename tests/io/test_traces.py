"""Traces of several programs and versions, with invented content: each is the same conversation."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.errors import DataError, collect_warnings
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames, Rows
from dialeval.io.traces import assemble

PROMPT, ASKED, SAID = "You are the desk of a ferry company.", "When does it leave?", "It leaves at nine."
CALL = {"day": "today"}
RESULT = "09:00 Anna"
SECOND = 1_000_000_000
START = 1_767_225_600 * SECOND


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


FIRST_INPUT = [
    {"role": "system", "parts": [text_part(PROMPT)]},
    {"role": "user", "parts": [text_part(ASKED)]},
]
FIRST_OUTPUT = [
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "timetable", "arguments": CALL}]}
]
TOOL_INPUT = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": RESULT}]}]
LAST_OUTPUT = [{"role": "assistant", "parts": [text_part(SAID)], "finish_reason": "stop"}]


def span(number: int, **attributes: Any) -> dict[str, Any]:
    """A span of an SDK; later ones begin later."""
    return {
        "trace_id": "t1",
        "span_id": f"s{number}",
        "parent_span_id": None if number == 0 else "s0",
        "name": attributes.pop("name", "step"),
        "start_time": START + number * SECOND,
        "end_time": START + number * SECOND + SECOND // 2,
        "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
    }


def parts() -> list[dict[str, Any]]:
    """Conventions from 1.37 on: messages with parts as attributes."""
    return [
        span(0, gen_ai__operation__name="invoke_agent"),
        span(
            1,
            gen_ai__operation__name="chat",
            gen_ai__response__model="m",
            gen_ai__input__messages=json.dumps(FIRST_INPUT),
            gen_ai__output__messages=json.dumps(FIRST_OUTPUT),
        ),
        span(
            2,
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name="timetable",
            gen_ai__tool__call__id="c1",
            gen_ai__tool__call__arguments=json.dumps(CALL),
            gen_ai__tool__call__result=RESULT,
        ),
        span(
            3,
            gen_ai__operation__name="chat",
            gen_ai__response__model="m",
            gen_ai__system_instructions=json.dumps([text_part(PROMPT)]),
            gen_ai__input__messages=json.dumps([*FIRST_INPUT[1:], *FIRST_OUTPUT, *TOOL_INPUT]),
            gen_ai__output__messages=json.dumps(LAST_OUTPUT),
        ),
    ]


def events() -> list[dict[str, Any]]:
    """Conventions up to 1.36: an event for each message."""
    call = {"id": "c1", "type": "function", "function": {"name": "timetable", "arguments": json.dumps(CALL)}}
    asked = [
        {"name": "gen_ai.system.message", "attributes": {"content": PROMPT}},
        {"name": "gen_ai.user.message", "attributes": {"content": ASKED}},
    ]
    made = {"content": None, "tool_calls": json.dumps([call])}
    first = span(1, gen_ai__operation__name="chat", gen_ai__request__model="m")
    choice = {"index": 0, "finish_reason": "tool_calls", "message": json.dumps(made | {"tool_calls": [call]})}
    first["events"] = [*asked, {"name": "gen_ai.choice", "attributes": choice}]
    last = span(3, gen_ai__operation__name="chat", gen_ai__request__model="m")
    last["events"] = [
        *asked,
        {"name": "gen_ai.assistant.message", "attributes": made},
        {"name": "gen_ai.tool.message", "attributes": {"id": "c1", "content": RESULT}},
        {"name": "gen_ai.choice", "attributes": {"index": 0, "message": json.dumps({"content": SAID})}},
    ]
    return [first, last]


def one_event() -> list[dict[str, Any]]:
    """Conventions from 1.37 on with the messages in an event."""
    moved = []
    for given in parts():
        attributes = given["attributes"]
        texts = {key: attributes.pop(key) for key in list(attributes) if "messages" in key or "instructions" in key}
        details = {"name": "gen_ai.client.inference.operation.details", "attributes": texts}
        moved.append({**given, "events": [details] if texts else []})
    return moved


def indexed(prompt: str, answer: str, inner: str, call: str) -> list[dict[str, Any]]:
    """Messages as indexed attributes: of traceloop and OpenInference."""

    def message(path: str, role: str, content: str) -> dict[str, str]:
        return {f"{path}.{inner}role": role, f"{path}.{inner}content": content}

    asked = message(f"{prompt}.0", "system", PROMPT) | message(f"{prompt}.1", "user", ASKED)

    def called(path: str) -> dict[str, str]:
        place = f"{path}.{inner}tool_calls.0.{call}"
        ids = place.removesuffix("function.")
        return {
            f"{path}.{inner}role": "assistant",
            f"{ids}id": "c1",
            f"{place}name": "timetable",
            f"{place}arguments": json.dumps(CALL),
        }

    kind = {"openinference.span.kind": "LLM", "llm.model_name": "m"} if inner else {"llm.request.type": "chat"}
    kind |= {"gen_ai.response.model": "m"}
    result = message(f"{prompt}.3", "tool", RESULT) | {f"{prompt}.3.{inner}tool_call_id": "c1"}
    return [
        {**span(1), "attributes": kind | asked | called(f"{answer}.0")},
        {
            **span(3),
            "attributes": kind | asked | called(f"{prompt}.2") | result | message(f"{answer}.0", "assistant", SAID),
        },
    ]


def to_value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [to_value(each) for each in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def to_pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": to_value(value)} for key, value in attributes.items()]


def to_otlp(spans: list[dict[str, Any]]) -> dict[str, Any]:
    """Spans as OTLP JSON."""
    written = [
        {
            "traceId": given["trace_id"],
            "spanId": given["span_id"],
            "name": given["name"],
            "startTimeUnixNano": str(given["start_time"]),
            "endTimeUnixNano": str(given["end_time"]),
            "attributes": to_pairs(given["attributes"]),
            "events": [
                {"name": event["name"], "attributes": to_pairs({k: v for k, v in event["attributes"].items() if v})}
                for event in given.get("events", ())
            ],
            "status": {},
        }
        for given in spans
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": written}]}]}


def to_logs() -> list[dict[str, Any]]:
    """Spans without texts, and the events of `events` as log records of OTLP."""
    records = []
    for given in events():
        for event in given.pop("events"):
            body = {k: v for k, v in event["attributes"].items() if v}
            records.append(
                {
                    "timeUnixNano": str(given["start_time"]),
                    "traceId": given["trace_id"],
                    "spanId": given["span_id"],
                    "eventName": event["name"],
                    "body": {"kvlistValue": {"values": to_pairs(body)}},
                }
            )
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    return [to_otlp([{**given, "events": []} for given in events()]), logs]


def to_jaeger(spans: list[dict[str, Any]]) -> dict[str, Any]:
    written = [
        {
            "traceID": given["trace_id"],
            "spanID": given["span_id"],
            "operationName": given["name"],
            "startTime": given["start_time"] // 1000,
            "duration": (given["end_time"] - given["start_time"]) // 1000,
            "tags": [{"key": key, "type": "string", "value": value} for key, value in given["attributes"].items()],
            "logs": [],
        }
        for given in spans
    ]
    return {"data": [{"traceID": "t1", "spans": written, "processes": {}}]}


CHAT_INPUT = [{"role": "system", "content": PROMPT}, {"role": "user", "content": ASKED}]
CHAT_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "timetable", "arguments": json.dumps(CALL)}}],
}
CHAT_RESULT = {"role": "tool", "tool_call_id": "c1", "content": RESULT}
CHAT_SAID = {"role": "assistant", "content": SAID}
TIMES = [f"2026-01-01T00:00:0{number}.000Z" for number in range(8)]


def completion(message: dict[str, Any]) -> dict[str, Any]:
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "message": message}]}


def langfuse() -> dict[str, Any]:
    def observation(number: int, kind: str, given: Any, said: Any) -> dict[str, Any]:
        texts = {"input": json.dumps(given), "output": json.dumps(said)}
        times = {"startTime": TIMES[number], "endTime": TIMES[number + 1]}
        named = {"id": f"o{number}", "traceId": "t1", "type": kind, "name": "timetable"}
        return {**named, **texts, **times, "model": "m" if kind == "GENERATION" else None}

    scores = [
        {"name": "toxicity", "value": 0, "traceId": "t1", "observationId": None, "dataType": "NUMERIC"},
        {"name": "helpful", "value": 1, "traceId": "t1", "observationId": "o4", "dataType": "BOOLEAN"},
    ]
    last = [*CHAT_INPUT, CHAT_CALL, CHAT_RESULT]
    return {
        "trace": {"id": "t1", "name": "desk", "timestamp": TIMES[0], "scores": scores},
        "observations": [
            observation(4, "GENERATION", last, CHAT_SAID),
            observation(2, "TOOL", CALL, RESULT),
            observation(0, "GENERATION", CHAT_INPUT, CHAT_CALL),
        ],
    }


def langsmith() -> list[dict[str, Any]]:
    def run(number: int, kind: str, given: Any, said: Any) -> dict[str, Any]:
        ids = {"id": f"r{number}", "trace_id": "r9", "parent_run_id": "r9", "run_type": kind, "name": "timetable"}
        times = {"start_time": TIMES[number][:-1], "end_time": TIMES[number + 1][:-1]}
        return {**ids, **times, "inputs": given, "outputs": said, "extra": {"metadata": {"ls_model_name": "m"}}}

    class_name = ["langchain", "schema", "messages"]
    human = {"lc": 1, "type": "constructor", "id": [*class_name, "HumanMessage"], "kwargs": {"content": ASKED}}
    prompt = {"lc": 1, "type": "constructor", "id": [*class_name, "SystemMessage"], "kwargs": {"content": PROMPT}}
    call = {"id": "c1", "name": "timetable", "args": CALL}
    made = {
        "lc": 1,
        "type": "constructor",
        "id": [*class_name, "AIMessage"],
        "kwargs": {"content": "", "tool_calls": [call]},
    }
    tool = {
        "lc": 1,
        "type": "constructor",
        "id": [*class_name, "ToolMessage"],
        "kwargs": {"content": RESULT, "tool_call_id": "c1"},
    }
    answer = {"lc": 1, "type": "constructor", "id": [*class_name, "AIMessage"], "kwargs": {"content": SAID}}
    root = run(0, "chain", {"input": ASKED}, {"output": SAID}) | {"id": "r9", "parent_run_id": None}
    root["feedback_stats"] = {"correctness": {"n": 1, "avg": 0.5}}
    root["child_runs"] = [
        run(1, "llm", {"messages": [[prompt, human]]}, {"generations": [[{"text": "", "message": made}]]}),
        run(2, "tool", {"input": json.dumps(CALL)}, {"output": RESULT}),
        run(
            4,
            "llm",
            {"messages": [[prompt, human, made, tool]]},
            {"generations": [[{"text": SAID, "message": answer}]]},
        ),
    ]
    return [root]


def mlflow() -> dict[str, Any]:
    def step(number: int, kind: str, given: Any, said: Any) -> dict[str, Any]:
        attributes = {"mlflow.spanType": json.dumps(kind), "mlflow.traceRequestId": json.dumps("t1")}
        attributes |= {"mlflow.spanInputs": json.dumps(given), "mlflow.spanOutputs": json.dumps(said)}
        attributes |= {"mlflow.llm.model": json.dumps("m")} if kind == "CHAT_MODEL" else {}
        ids = {"trace_id": "AAAA", "span_id": f"s{number}", "parent_span_id": "s0", "name": "timetable"}
        times = {"start_time_unix_nano": START + number * SECOND, "end_time_unix_nano": START + (number + 1) * SECOND}
        return {**ids, **times, "attributes": attributes, "status": {"code": "STATUS_CODE_OK"}}

    assessment = {"assessment_name": "correct", "trace_id": "t1", "feedback": {"value": True}}
    return {
        "info": {"trace_id": "AAAA", "request_preview": ASKED, "assessments": [assessment], "state": "OK"},
        "data": {
            "spans": [
                step(1, "CHAT_MODEL", {"messages": CHAT_INPUT}, completion(CHAT_CALL)),
                step(2, "TOOL", CALL, RESULT),
                step(3, "CHAT_MODEL", {"messages": [*CHAT_INPUT, CHAT_CALL, CHAT_RESULT]}, completion(CHAT_SAID)),
            ]
        },
    }


def braintrust() -> list[dict[str, Any]]:
    def row(number: int, kind: str, given: Any, said: Any, **more: Any) -> dict[str, Any]:
        ids = {
            "id": f"i{number}",
            "span_id": f"s{number}",
            "root_span_id": "t1",
            "span_parents": ["s0"] if number else None,
        }
        times = {"metrics": {"start": 1767225600.0 + number, "end": 1767225600.5 + number}}
        return {
            **ids,
            **times,
            "span_attributes": {"type": kind, "name": "timetable"},
            "input": given,
            "output": said,
            **more,
        }

    model = {"metadata": {"model": "m"}}
    answer = [{"finish_reason": "stop", "index": 0, "message": CHAT_SAID}]
    return [
        row(3, "llm", [*CHAT_INPUT, CHAT_CALL, CHAT_RESULT], answer, **model),
        row(2, "tool", CALL, RESULT),
        row(1, "llm", CHAT_INPUT, [{"finish_reason": "tool_calls", "index": 0, "message": CHAT_CALL}], **model),
        row(0, "task", ASKED, SAID, scores={"Factuality": 0.75, "Missing": None}),
    ]


def opik() -> dict[str, Any]:
    def step(number: int, kind: str, given: Any, said: Any) -> dict[str, Any]:
        ids = {"id": f"s{number}", "trace_id": "t1", "parent_span_id": None, "type": kind, "name": "timetable"}
        times = {"start_time": TIMES[number], "end_time": TIMES[number + 1]}
        return {**ids, **times, "input": given, "output": said, "model": "m"}

    return {
        "trace": {
            "id": "t1",
            "start_time": TIMES[0],
            "input": {"input": ASKED},
            "output": {"output": SAID},
            "feedback_scores": [{"name": "relevance", "value": 0.9, "source": "sdk"}],
        },
        "spans": [
            step(0, "llm", {"messages": CHAT_INPUT}, completion(CHAT_CALL)),
            step(2, "tool", CALL, {"output": RESULT}),
            step(4, "llm", {"messages": [*CHAT_INPUT, CHAT_CALL, CHAT_RESULT]}, completion(CHAT_SAID)),
        ],
    }


def phoenix() -> list[dict[str, Any]]:
    """Spans of the REST interface, whose attributes are nested."""

    def nest(attributes: dict[str, Any]) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        for key, value in attributes.items():
            *steps, last = key.split(".")
            branch = tree
            for step in steps:
                branch = branch.setdefault(step, {})
            branch[last] = value
        return tree

    def to_lists(tree: Any) -> Any:
        if isinstance(tree, dict) and tree and all(key.isdecimal() for key in tree):
            return [to_lists(tree[key]) for key in sorted(tree, key=int)]
        return {key: to_lists(value) for key, value in tree.items()} if isinstance(tree, dict) else tree

    rows = []
    for given in indexed("llm.input_messages", "llm.output_messages", "message.", "tool_call.function."):
        context = {"trace_id": given.pop("trace_id"), "span_id": given.pop("span_id")}
        rows.append(
            {**given, "context": context, "span_kind": "LLM", "attributes": to_lists(nest(given["attributes"]))}
        )
    return rows


TRACES: dict[str, Any] = {
    "parts": parts(),
    "events": events(),
    "one event": one_event(),
    "traceloop": indexed("gen_ai.prompt", "gen_ai.completion", "", ""),
    "OpenInference": indexed("llm.input_messages", "llm.output_messages", "message.", "tool_call.function."),
    "OTLP": to_otlp(parts()),
    "OTLP, events": to_otlp(events()),
    "OTLP, several": [to_otlp([each]) for each in parts()],
    "OTLP, logs": to_logs(),
    "Jaeger": to_jaeger(parts()),
    "Langfuse": langfuse(),
    "LangSmith": langsmith(),
    "MLflow": mlflow(),
    "MLflow, several": {"traces": [mlflow()], "next_page_token": None},
    "Braintrust": braintrust(),
    "Braintrust, fetched": {"events": braintrust(), "cursor": None},
    "Opik": opik(),
    "Phoenix, REST": {"data": phoenix(), "next_cursor": None},
}
SCORES = {"Langfuse": 2, "LangSmith": 1, "MLflow": 1, "MLflow, several": 1, "Braintrust": 1, "Opik": 1}
SCORES["Braintrust, fetched"] = 1


def column(rows: Rows, name: str) -> Any:
    return next((column for need, column in rows.columns.items() if need == name), None)


def read(path: Path, content: Any) -> list[Rows]:
    lines = path.suffix == ".jsonl" or path.name.endswith(".jsonl.gz")
    documents = content if isinstance(content, list) and lines else [content]
    text = "".join(json.dumps(each) + "\n" for each in documents)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return read_responses(path)


@pytest.mark.parametrize("suffix", ["json", "jsonl", "jsonl.gz"])
@pytest.mark.parametrize("name", TRACES)
def test_the_same_conversation_in_traces_of_all_programs(tmp_path: Path, name: str, suffix: str) -> None:
    [rows] = read(tmp_path / f"trace.{suffix}", TRACES[name])
    assert (rows.system, list(rows.responses)) == ("m", [SAID])
    assert list(column(rows, "context")) == [[ASKED, '[call timetable({"day":"today"})]', RESULT]]
    assert next(iter(column(rows, "calls"))) == [{"name": "timetable", "arguments": CALL, "error": False}]
    account = rows.account
    assert (account.conversations, account.user_turns, account.replies, account.tool_calls) == (1, 1, 1, 1)
    assert (account.failed, account.scores) == (0, SCORES.get(name, 0))
    seconds = [float(each) for each in column(rows, "latency") if each == each]
    assert seconds[0] in (pytest.approx(0.5), pytest.approx(1.0))


def chat_span(number: int, trace: str, given: list[str], said: str | None, **attributes: Any) -> dict[str, Any]:
    """A call of a model; texts of the user and the assistant take turns."""
    roles = ("user", "assistant")
    inputs = [{"role": roles[at % 2], "parts": [text_part(text)]} for at, text in enumerate(given)]
    texts = {"gen_ai__input__messages": json.dumps(inputs)}
    if said is not None:
        texts["gen_ai__output__messages"] = json.dumps([{"role": "assistant", "parts": [text_part(said)]}])
    made = span(number, gen_ai__operation__name="chat", **texts, **attributes)
    return {**made, "trace_id": trace, "span_id": f"{trace}-{number}"}


def session(trace: str, turns: int, **attributes: Any) -> list[dict[str, Any]]:
    """Calls of a conversation, each with all that was said before."""
    texts = [f"{trace} {'question' if at % 2 == 0 else 'answer'} {at // 2}" for at in range(2 * turns)]
    return [chat_span(at, trace, texts[: 2 * at + 1], texts[2 * at + 1], **attributes) for at in range(turns)]


def dialogues_of(systems: list[Rows]) -> dict[str, list[tuple[list[str], str]]]:
    found: dict[str, list[tuple[list[str], str]]] = {}
    for rows in systems:
        assert rows.dialogues is not None
        contexts = column(rows, "context")
        for at, (name, reply) in enumerate(zip(rows.dialogues, rows.responses, strict=True)):
            found.setdefault(name, []).append((list(contexts)[at], reply))
    return found


def test_reordered_duplicated_and_interleaved_spans_are_the_same_conversations(tmp_path: Path) -> None:
    spans = [*session("a", 4), *session("b", 3), *session("c", 1)]
    expected = dialogues_of(read(tmp_path / "x.jsonl", spans))
    assert [len(replies) for replies in expected.values()] == [4, 3, 1]
    assert expected["a"][2] == (
        [f"a {what}" for what in ("question 0", "answer 0", "question 1", "answer 1", "question 2")],
        "a answer 2",
    )
    chance = random.Random(3)
    for _ in range(20):
        shuffled = chance.sample(spans, len(spans)) + chance.sample(spans, 3)
        assert dialogues_of(read(tmp_path / "y.jsonl", shuffled)) == expected


def test_what_a_truncated_trace_lacks_is_in_later_inputs(tmp_path: Path) -> None:
    spans = session("a", 4)
    [rows] = read(tmp_path / "x.jsonl", [spans[0], spans[1], spans[3]])
    assert list(rows.responses) == ["a answer 0", "a answer 1", "a answer 2", "a answer 3"], "one is known as an input"
    [rows] = read(tmp_path / "y.jsonl", spans[2:])
    assert list(rows.responses) == ["a answer 2", "a answer 3"], "what was before is context"
    assert (rows.account.conversations, rows.account.user_turns, rows.account.due) == (1, 2, 2)
    assert next(iter(column(rows, "context")))[:2] == ["a question 0", "a answer 0"]


def test_a_conversation_id_joins_traces_whether_they_repeat_the_history_or_not(tmp_path: Path) -> None:
    ids = {"gen_ai__conversation__id": "c7"}
    whole = [
        chat_span(
            at, f"t{at}", [f"q{n // 2}" if n % 2 == 0 else f"a{n // 2}" for n in range(2 * at + 1)], f"a{at}", **ids
        )
        for at in range(3)
    ]
    last = [chat_span(at, f"t{at}", ["again"], f"a{at}", **ids) for at in range(3)]
    for spans, asked in ((whole, ["q0", "q1", "q2"]), (last, ["again"] * 3)):
        [rows] = read(tmp_path / "x.jsonl", spans)
        assert list(dialogues_of([rows])) == ["c7"]
        assert list(rows.responses) == ["a0", "a1", "a2"]
        assert list(column(rows, "context"))[2] == [asked[0], "a0", asked[1], "a1", asked[2]]
        assert rows.account.user_turns == 3


def test_failed_calls(tmp_path: Path) -> None:
    error = {"status": {"code": 2, "message": "rate limit"}}
    spans = session("a", 3)
    failed = {**chat_span(1, "a", ["a question 0", "a answer 0", "a question 1"], None), **error, "span_id": "failed"}
    failed["start_time"] -= SECOND // 4
    with collect_warnings() as warned:
        [rows] = read(tmp_path / "x.jsonl", [spans[0], failed, *spans[1:]])
    assert list(rows.responses) == ["a answer 0", "a answer 1", "a answer 2"]
    assert "1 failed calls were repeated with success" in next(iter(warned))
    [rows] = read(tmp_path / "y.jsonl", [spans[0], failed])
    assert list(rows.responses) == ["a answer 0", ""]
    assert (rows.account.user_turns, rows.account.replies, rows.account.errors, rows.account.due) == (2, 1, 1, 2)


def test_calls_without_texts_are_counted_as_missing_replies(tmp_path: Path) -> None:
    silent = [{**each, "attributes": {"gen_ai.operation.name": "chat"}} for each in session("b", 2)]
    for spans, told in (([*session("a", 1), *silent], 1), (silent, 0)):
        with collect_warnings() as warned:
            systems = read(tmp_path / "x.jsonl", spans)
        account = sum((rows.account for rows in systems[1:]), systems[0].account)
        assert (account.conversations, account.replies, account.without_reply) == (1 + told, told, 2)
        assert "2 calls of models have no texts" in next(iter(warned))
        assert "CAPTURE_MESSAGE_CONTENT=true" in next(iter(warned))
    with pytest.raises(DataError, match="has no call of a model"):
        read(tmp_path / "z.json", [span(1, http__method="GET")])


def test_messages_and_results_as_amazon_writes_them(tmp_path: Path) -> None:
    def record(number: int, given: list[Any], said: Any) -> dict[str, Any]:
        body = {"input": {"messages": given}, "output": {"messages": [{"role": "assistant", "content": said}]}}
        ids = {"traceId": "t1", "spanId": f"s{number}", "timeUnixNano": START + number}
        return {**ids, "body": body, "attributes": {"event.name": "strands.telemetry.tracer", "session.id": "c1"}}

    asked = {"role": "user", "content": {"content": json.dumps([{"text": ASKED}])}}
    made = json.dumps([{"toolUse": {"toolUseId": "c1", "name": "timetable", "input": CALL}}])
    result = json.dumps([{"toolResult": {"toolUseId": "c1", "content": [{"text": RESULT}], "status": "success"}}])
    called = {"role": "assistant", "content": {"content": made}}
    given = [asked, called, {"role": "tool", "content": {"content": result}}]
    said = {"message": json.dumps([{"text": SAID}]), "finish_reason": "end_turn"}
    spans = [{**each, "traceId": each["trace_id"]} for each in (span(1, gen_ai__operation__name="chat"),)]
    calls = [{**record(1, [asked], {"message": made}), "spanId": "s1"}, record(3, given, said)]
    names = [{**span(3, gen_ai__operation__name="chat"), "traceId": "t1"}]
    [rows] = read(tmp_path / "x.json", [*spans, *names, *calls])
    assert dialogues_of([rows]) == {"c1": [([ASKED, '[call timetable({"day":"today"})]', RESULT], SAID)]}


def test_a_call_that_two_libraries_log_counts_once(tmp_path: Path) -> None:
    inner = session("a", 2)
    outer = [
        {**each, "span_id": f"o{at}", "end_time": each["end_time"] + 5, "start_time": each["start_time"] - 5}
        for at, each in enumerate(inner)
    ]
    empty = {**span(0, gen_ai__operation__name="chat"), "trace_id": "a", "span_id": "e"}
    [rows] = read(tmp_path / "x.jsonl", [*outer, empty, *inner])
    assert list(rows.responses) == ["a answer 0", "a answer 1"]
    assert rows.account.due == 2


def test_parts_of_a_call_in_two_traces_count_once_and_equal_answers_to_two_users_do_not(
    tmp_path: Path,
) -> None:
    inner, other = session("a", 1), session("a", 1)
    other[0] |= {"trace_id": "b", "span_id": "b-0"}
    assert len(read(tmp_path / "x.jsonl", [*inner, *other])[0]) == 2, "two users may say hello at the same time"
    with collect_warnings() as warned:
        assert len(read(tmp_path / "y.jsonl", [*inner, other[0] | {"name": "outer"}])[0]) == 1
    assert "1 calls that another trace holds as well" in next(iter(warned))


def test_without_texts_of_models_the_outermost_span_is_read(tmp_path: Path) -> None:
    root = span(0, openinference__span__kind="CHAIN", input__value=ASKED, output__value=json.dumps({"answer": SAID}))
    inner = span(1, openinference__span__kind="CHAIN", input__value="x", output__value="y")
    [rows] = read(tmp_path / "x.json", [inner, root, span(2, gen_ai__operation__name="chat")])
    assert dialogues_of([rows]) == {"t1": [([ASKED], SAID)]}


def test_a_reply_in_json_is_a_text(tmp_path: Path) -> None:
    said = '{"result": [1, 2]}'
    rows = {"traceId": "t", "type": "GENERATION", "input": "x", "output": said}
    assert list(read_responses([rows])[0].responses) == [said]


def test_scores_at_their_levels() -> None:
    [(_, row)] = assemble([(1, langfuse())], "x", FieldNames())
    assert row["scores"] == {"toxicity": 0.0}
    assert [message.get("scores") for message in row["messages"]][-1] == {"helpful": 1.0}  # type: ignore[attr-defined]
    [(_, row)] = assemble([(1, langsmith())], "x", FieldNames())
    assert row["scores"] == {"correctness": 0.5}
    event = {
        "name": "gen_ai.evaluation.result",
        "attributes": {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.value": 0.25},
    }
    spans = session("a", 1)
    spans[0]["events"] = [event]
    [(_, row)] = assemble(enumerate(spans), "x", FieldNames())
    assert row["messages"][-1]["scores"] == {"tone": 0.25}  # type: ignore[index]


def test_scores_of_several_traces_of_a_session_are_those_of_their_last_replies() -> None:
    def trace(number: int) -> dict[str, Any]:
        scores = [{"name": "helpful", "value": number, "traceId": f"t{number}"}]
        times = {"startTime": f"2026-01-01T00:00:0{number}Z", "endTime": f"2026-01-01T00:00:0{number}.5Z"}
        call = {"id": f"o{number}", "traceId": f"t{number}", "type": "GENERATION", **times}
        said = {"input": [{"role": "user", "content": f"q{number}"}], "output": f"a{number}"}
        return {"trace": {"id": f"t{number}", "sessionId": "s", "scores": scores}, "observations": [{**call, **said}]}

    [(_, row)] = assemble(enumerate([trace(1), trace(2)]), "x", FieldNames())
    said = [message for message in row["messages"] if message["role"] == "assistant"]  # type: ignore[attr-defined]
    assert [message["scores"] for message in said] == [{"helpful": 1.0}, {"helpful": 2.0}]
    assert "scores" not in row


def test_chunks_of_spans_are_read_as_a_whole(tmp_path: Path) -> None:
    from dialeval.io.chunks import read_blocks, split_sources
    from dialeval.io.sources import find_sources

    path = tmp_path / "x.jsonl"
    whole = read(path, chance_order(session("a", 5) + session("b", 4)))
    chunks = split_sources(find_sources(str(path)), 100, chunk_bytes=200)
    parts = [rows for chunk in chunks for block in read_blocks(chunk, FieldNames(), 3) for rows in block.rows()]
    assert dialogues_of(parts) == dialogues_of(whole)


def chance_order(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return random.Random(1).sample(spans, len(spans))
