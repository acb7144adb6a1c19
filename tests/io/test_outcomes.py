"""Which replies failed, and an account in which every row of an input is in exactly one class."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.account import Account
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, collect_warnings
from dialeval.io.outcomes import find_failed_texts, is_error_text, remove_reasoning
from dialeval.io.reading import read_responses
from dialeval.io.rows import Rows

ERRORS = [
    *("Error 500: upstream timeout", "error: quota exceeded", "Error", "502 Bad Gateway", "HTTP 503", "[ERROR] failed"),
    *("HTTP/1.1 503 Service Unavailable", "upstream connect error or disconnect/reset before headers.", "null"),
    "<html>\n<head><title>502 Bad Gateway</title></head><body></body></html>",
    "<!DOCTYPE html><html><body><h1>504 Gateway Time-out</h1></body></html>",
    '{"error": {"message": "rate limit", "code": 429}}',
    *(
        "openai.RateLimitError: Error code: 429 - slow down",
        "Traceback (most recent call last):\n  File x",
        "undefined",
    ),
    *("Internal Server Error", "Request timed out.", "ValueError: bad", "503 Service Temporarily Unavailable"),
    *("Exception: boom", "API Error: 529 overloaded", "  Error 500: x ", "ReadTimeout", "Connection reset by peer"),
]
REPLIES = [
    *(
        "Error 404 means that the page is gone.",
        "The error: you forgot a comma.",
        "500 people came.",
        "Null is a value.",
    ),
    *("<!DOCTYPE html><html><title>Random joke</title></html>", "Errors happen, sorry!", '{"answer": 5}', "Not found."),
    *("HTTP is a protocol.", "Status of your order: shipped", "status 404 is the code for a missing page", "None"),
    *("There was an error: please call us at 5.", "401k plans are great", "404 Main Street", "Time out!", "N/A"),
    "Connection refused is what you see when the port is closed, in most cases",
]


@pytest.mark.parametrize("text", ERRORS)
def test_texts_that_are_errors(text: str) -> None:
    assert is_error_text(text)


@pytest.mark.parametrize("text", REPLIES)
def test_texts_that_are_replies(text: str) -> None:
    assert not is_error_text(text)


@given(st.lists(st.one_of(st.sampled_from([*ERRORS, *REPLIES, "", " \n", "\u00a0"]), st.text(max_size=12))))
def test_failed_texts_are_found_without_decoding_the_others(texts: list[str]) -> None:
    texts = [text for text in texts if text.isprintable() or text.isascii()]
    blank = {row: "empty" for row, text in enumerate(texts) if not text.strip() and text.strip("\u2000\u3000") == text}
    expected = {**blank, **{row: "error" for row, text in enumerate(texts) if text.strip() and is_error_text(text)}}
    found = find_failed_texts(TextColumn.from_strings(texts))
    assert {row: why for row, why in found.items() if row in expected or why == "error"} == expected


def test_reasoning_is_no_reply_unless_it_is_asked_for() -> None:
    texts = ["<think>Hm.</think>\n\nAt nine.", "Hm.\n</think>\nAt nine.", "<think>for ever", "At nine."]
    assert list(map(remove_reasoning, texts)) == ["At nine.", "At nine.", "", "At nine."]
    chats = [
        {"messages": [{"role": "user", "content": "When?"}, {"role": "assistant", "content": text}]} for text in texts
    ]
    for given_rows in (texts, [{"response": text} for text in texts], chats, pa.table({"response": texts})):
        [rows] = read_responses(given_rows)
        assert list(rows.responses) == ["At nine.", "At nine.", "", "At nine."]
        assert (rows.account.reasoning, rows.account.empty, rows.account.replies) == (3, 1, 3)
        [kept] = read_responses(given_rows, keep_reasoning=True)
        assert list(kept.responses) == texts


# The sum law: a log is made of accidents whose classes are known; the account has each of them once.


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def bot(text: Any, **more: object) -> dict[str, object]:
    return {"role": "assistant", "content": text, **more}


CALL = {"id": "c", "type": "function", "function": {"name": "search", "arguments": "{}"}}
ACCIDENTS: dict[str, tuple[Any, dict[str, int]]] = {
    "chat": ({"messages": [user("a?"), bot("b"), user("c?"), bot("d")]}, {"replies": 2, "user_turns": 2}),
    "crash at once": ({"messages": [user("a?")]}, {"without_reply": 1, "user_turns": 1}),
    "crash later": (
        {"messages": [user("a?"), bot("b"), user("c?")]},
        {"replies": 1, "without_reply": 1, "user_turns": 2},
    ),
    "nobody": ({"messages": []}, {"without_reply": 1}),
    "null": ({"messages": [user("a?"), bot(None)]}, {"without_reply": 1, "user_turns": 1}),
    "empty": ({"messages": [user("a?"), bot("  ")]}, {"empty": 1, "user_turns": 1}),
    "gateway": ({"messages": [user("a?"), bot("Error 500: upstream timeout")]}, {"errors": 1, "user_turns": 1}),
    "declared": ({"messages": [user("a?"), bot("x", finish_reason="content_filter")]}, {"errors": 1, "user_turns": 1}),
    "failed": ({"messages": [user("a?")], "error": {"code": 500}}, {"errors": 1, "user_turns": 1}),
    "calls": (
        {"messages": [user("a?"), bot(None, tool_calls=[CALL])]},
        {"calls_only": 1, "tool_calls": 1, "user_turns": 1},
    ),
    "request": ({"messages": [user("a?"), bot("b"), user("c?")], "output": "d"}, {"replies": 1, "user_turns": 2}),
    "row": ({"context": ["a?"], "response": "b"}, {"replies": 1, "user_turns": 1}),
    "null row": ({"context": ["a?"], "response": None}, {"without_reply": 1, "user_turns": 1}),
    "error row": ({"context": ["a?"], "error": "timeout"}, {"errors": 1, "user_turns": 1}),
    "number": ({"context": ["a?"], "response": 5}, {"skipped": 1, "skipped_requests": 1, "user_turns": 1}),
    "broken": ({"messages": [user("a?"), bot(5)]}, {"skipped": 1, "skipped_requests": 1, "user_turns": 1}),
    "no object": (5, {"skipped": 1}),
}
CLASSES = (
    "replies",
    "without_reply",
    "empty",
    "errors",
    "calls_only",
    "skipped",
    "skipped_requests",
    "user_turns",
    "tool_calls",
)


def add_up(names: list[str]) -> dict[str, int]:
    totals = Counter[str]()
    for name in names:
        totals.update(ACCIDENTS[name][1])
    return {name: totals[name] for name in CLASSES}


def sum_accounts(systems: list[Rows]) -> Account:
    return sum((rows.account for rows in systems), Account())


@given(st.lists(st.sampled_from([*ACCIDENTS]), min_size=1, max_size=12), st.sampled_from(["jsonl", "json", "memory"]))
def test_every_row_is_in_exactly_one_class(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], form: str
) -> None:
    names = ["chat", *names]
    rows = [json.loads(json.dumps(ACCIDENTS[name][0])) for name in names]
    source: Any = rows
    if form != "memory":
        source = tmp_path_factory.mktemp("law") / f"x.{form}"
        lines = [json.dumps(row) for row in rows]
        source.write_text("\n".join(lines) if form == "jsonl" else f"[{','.join(lines)}]")
    systems = read_responses(source, skip_invalid=True)
    account = sum_accounts(systems)
    assert {name: getattr(account, name) for name in CLASSES} == add_up(names)
    assert account.due == sum(map(len, systems))
    assert account.conversations == len(names) - (account.skipped - account.skipped_requests)
    invalid = [name for name in names if "skipped" in ACCIDENTS[name][1]]
    if invalid:
        with pytest.raises(DataError) as refusal:
            read_responses(source)
        assert len(refusal.value.problems) == len(invalid)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_messages_in_rows_of_their_own(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"conversation_id": "a", "sender": "Customer", "text": "When?", "created_at": "2026-01-01T10:00:00Z"},
        {"conversation_id": "b", "sender": "Customer", "text": "Where?", "created_at": "2026-01-01T10:00:05Z"},
        {"conversation_id": "a", "sender": "Agent", "text": "At nine.", "created_at": "2026-01-01T10:00:02Z"},
        {"conversation_id": "b", "sender": "Agent", "text": "Here.", "created_at": "2026-01-01T10:00:09Z"},
        {
            "conversation_id": "a",
            "sender": "Customer",
            "text": "Thanks. And now?",
            "created_at": "2026-01-01T10:00:03Z",
        },
    ]
    path = tmp_path / f"x.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == "csv":
        path.write_text("\n".join(",".join(row) for row in ([*rows[0]], *(row.values() for row in rows))))
    else:
        path.write_text("\n".join(map(json.dumps, reversed(rows))))  # newest first
    with collect_warnings():
        [read] = read_responses(path)
        [mapped] = read_responses(path, {"response": "text"})
    for found in (read, mapped):
        by_dialogue = dict(zip(found.dialogues or (), found.responses, strict=True))
        assert sorted(found.responses) == ["", "At nine.", "Here."]
        assert by_dialogue["b"] == "Here."
        latencies = found.columns[inputs.LATENCY]
        assert {seconds for seconds in latencies if seconds == seconds} == {2.0, 4.0}
        account = found.account
        assert (account.conversations, account.user_turns, account.replies, account.without_reply) == (2, 3, 2, 1)


def test_messages_of_a_table_with_other_spellings_and_speakers(tmp_path: Path) -> None:
    header, times = "Conversation ID,Sender,Message,Created At", [f"2026-01-01 10:00:0{at}" for at in range(2)]
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\nc1,HELPDESK,At nine.,{times[1]}\nc1,Ann,When?,{times[0]}\n")
    with collect_warnings():
        with pytest.raises(DataError) as refusal:
            read_responses(path)
        assert [problem.remedy.split(" (")[0].split("map it: ")[1] for problem in refusal.value.problems] == [
            "--role Ann=user",
            "--role HELPDESK=assistant",
        ]
        [rows] = read_responses(path, roles={"Ann": "user", "HELPDESK": "assistant"})
    assert (list(rows.responses), list(rows.dialogues or ())) == (["At nine."], ["c1"])
    assert next(iter(rows.columns[inputs.CONTEXT])) == ["When?"]


def test_messages_that_name_no_conversation_are_one_and_some_of_them_are_refused() -> None:
    messages: list[dict[str, str]] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    with collect_warnings() as warned:
        [rows] = read_responses(messages)
    assert "messages without the id of a conversation are read as one" in next(iter(warned))
    assert list(rows.responses) == ["b"]
    with pytest.raises(DataError, match="is a message of no conversation; name the field of the conversation"):
        read_responses([*messages, {"role": "user", "content": "c", "chat_id": "x"}])


@pytest.mark.parametrize(
    "name", ["dialogue_id", "conversation_id", "conversationId", "session_id", "thread_id", "chat_id", "trace_id"]
)
def test_names_of_ids(name: str, tmp_path: Path) -> None:
    rows = [{name: f"d{number // 2}", "response": f"r{number}"} for number in range(6)]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet", row_group_size=2)
    careful = [{**row, "latency": 1} for row in rows]
    for source in (rows, careful, tmp_path / "x.jsonl", tmp_path / "x.parquet", pa.Table.from_pylist(rows)):
        [found] = read_responses(source)
        assert found.dialogue_offsets().tolist() == [0, 2, 4, 6]
    both = [
        {**row, "session_id": "s", "trace_id": f"t{at}", "conversation_id": row[name]} for at, row in enumerate(rows)
    ]
    assert read_responses(both)[0].dialogue_offsets().tolist() == [0, 2, 4, 6], "the conversation is the finer one"


def test_a_prompt_is_no_name_of_a_system() -> None:
    chat = [user("a?"), bot("b")]
    prompts = ["You are a bank bot.", "You are a bank bot. Be short."]
    [rows] = read_responses([{"system": prompt, "messages": chat} for prompt in prompts])
    assert (rows.system, rows.account.fields["system"]) == ("system", "the file name")
    [rows] = read_responses(
        [{"system": prompt, "model": "m-1", "messages": chat} for prompt in prompts], system_prompts=True
    )
    assert (rows.system, rows.account.fields["system"]) == ("m-1", "model")
    assert next(iter(rows.columns[inputs.CONTEXT])) == [prompts[0], "a?"]
    named = read_responses([{"system": name, "response": "x"} for name in ("v1", "my bot", "v1")])
    assert [system.system for system in named] == ["v1", "my bot"]
    [varied] = read_responses([{"system": f"branch office {at}", "response": "x"} for at in range(5)])
    assert varied.account.replies == 5


def test_units_of_latencies() -> None:
    rows = [
        {"response": "a", name: value} for name, value in (("latency_ms", 1200), ("latencyMs", 800), ("latency", 2))
    ]
    [found] = read_responses([*rows, {"response": "b", "latency_seconds": 3}])
    assert list(found.columns[inputs.LATENCY]) == [1.2, 0.8, 2, 3]
    [mapped] = read_responses([{"response": "a", "duration_ms": 1500}], {"latency": "duration_ms"})
    assert list(mapped.columns[inputs.LATENCY]) == [1.5]
    with pytest.warns(
        UserWarning, match="above 120 and are read as seconds; for milliseconds, call the field latency_ms"
    ):
        read_responses([{"response": "a", "latency": 1200}])


def test_the_finer_of_two_ids_is_that_of_the_dialogue(tmp_path: Path) -> None:
    ids = [("c1", "s1"), ("c1", "s1"), ("c1", "s2"), ("c2", "s3"), ("c2", "s3")]
    given_rows = [{"conversation_id": coarse, "session_id": fine, "response": "a"} for coarse, fine in ids]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in given_rows))
    for source in (given_rows, pa.Table.from_pylist(given_rows), path):
        [rows] = read_responses(source, keep=["conversation_id"])
        assert list(rows.dialogues or ()) == ["s1", "s1", "s2", "s3", "s3"]
        assert (rows.account.conversations, rows.account.fields["id"]) == (3, "session_id")
        assert [list(values) for values in rows.fields["conversation_id"]] == [[coarse] for coarse, _ in ids]
    crossed = [*given_rows, {"conversation_id": "c2", "session_id": "s1", "response": "a"}]
    assert read_responses(crossed)[0].account.fields["id"] == "conversation_id"
    requests = [{**row, "chat_id": f"request {at}"} for at, row in enumerate(given_rows)]
    assert read_responses(requests)[0].account.fields["id"] == "session_id"
    chats = [{"session_id": "s", "trace_id": name, "messages": [user("a?"), bot("b")]} for name in "tu"]
    assert list(read_responses(chats)[0].dialogues or ()) == ["t", "u"]


def test_a_prompt_is_the_context_of_a_row_without_one(tmp_path: Path) -> None:
    asked = [{"prompt": "When?", "response": "At nine."}, {"prompt": "Where?", "response": "Here."}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in asked))
    careful = [{**row, "latency": 1} for row in asked]
    for source in (asked, careful, pa.Table.from_pylist(asked), path):
        [rows] = read_responses(source)
        assert [list(turns) for turns in rows.columns[inputs.CONTEXT]] == [["When?"], ["Where?"]]
        assert (rows.account.user_turns, rows.account.fields["context"]) == (2, "prompt")
    [chat] = read_responses([{"prompt": [user("a?"), bot("b"), user("c?")], "response": "d"}])
    assert [list(turns) for turns in chat.columns[inputs.CONTEXT]] == [["a?", "b", "c?"]]
    with_context = {"prompt": "Be short.", "context": ["When?"], "response": "At nine."}
    [both] = read_responses([with_context, asked[1]])
    assert [list(turns) for turns in both.columns[inputs.CONTEXT]] == [["When?"], ["Where?"]]
    assert inputs.CONTEXT not in read_responses([{"prompt": {"raw": "When?"}, "response": "At nine."}])[0].columns


def test_conversations_with_one_id() -> None:
    def chat(prompt: str) -> dict[str, object]:
        return {"conversation_id": "c", "messages": [user(prompt), bot("b")]}

    with pytest.warns(UserWarning, match="are kept apart"):
        [rows] = read_responses([chat("a?"), chat("other?")])
    assert list(rows.dialogues or ()) == ["c", "c (2)"]
    assert rows.account.renamed == 1
    with pytest.raises(DataError, match="the conversation 'c' is there twice, with the same first prompt"):
        read_responses([chat("a?"), chat("a?")])


def test_each_system_of_a_file_has_its_own_counts() -> None:
    twice = {"system": "b", "messages": [user("a?"), bot("b")], "response": "b"}
    same_id = [{"system": "b", "id": "c", "messages": [user(prompt), bot("b")]} for prompt in ("a?", "other?")]
    texts = [{"system": name, "response": text} for name, text in (("a", "x"), ("b", "<think>Hm.</think>y"))]
    with pytest.warns(UserWarning, match="are kept apart"):
        first, second = read_responses([*texts, twice, *same_id])
    assert (first.account.merged, first.account.renamed, first.account.reasoning) == (0, 0, 0)
    assert (second.account.merged, second.account.renamed, second.account.reasoning) == (1, 1, 1)
    assert [rows.account.reasoning for rows in read_responses(pa.Table.from_pylist(texts))] == [0, 1]


def test_newest_messages_first_are_sorted() -> None:
    newest_first: list[dict[str, object]] = [bot("d"), {**user("c?")}, bot("b"), {**user("a?")}]
    messages = [{**message, "timestamp": 30 - at} for at, message in enumerate(newest_first)]
    with pytest.warns(UserWarning, match="sorted by time"):
        [rows] = read_responses([{"messages": messages}])
    assert list(rows.responses) == ["b", "d"]


def test_several_scores_are_no_reward() -> None:
    row = {"messages": [user("a?"), bot("b")], "dialog_id": "t", "trial": 0, "reward": {"exact": 1, "judge": 0}}
    with pytest.warns(
        UserWarning, match="has several scores, exact, judge, and no reward; choose one: --field reward="
    ):
        [rows] = read_responses([row])
    assert inputs.TRIALS not in rows.columns
    [chosen] = read_responses([row], {"reward": "reward.judge"})
    assert next(iter(chosen.columns[inputs.TRIALS]))[0]["reward"] == 0
    with pytest.warns(UserWarning, match="is not between 0 and 1, so no trial passed or failed"):
        [scale] = read_responses([{**row, "reward": 8}])
    assert inputs.TRIALS not in scale.columns


def test_a_reply_in_json_text_of_a_log_is_read_and_one_of_a_bot_is_kept() -> None:
    observation = {"traceId": "t", "type": "GENERATION", "input": "[]", "model": "m"}
    [logged] = read_responses([{**observation, "output": json.dumps(bot("It is nine."))}])
    assert list(logged.responses) == ["It is nine."]
    for output in ('{"answer": 9}', "[1, 2]"):
        assert list(read_responses([{**observation, "output": output}])[0].responses) == [output]
        assert list(read_responses([{"response": output}])[0].responses) == [output]
