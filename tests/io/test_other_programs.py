"""Files as other programs write them, with invented content: those that are no traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.analysis.alignment import align
from dialeval.core.errors import DataError, collect_warnings
from dialeval.io.logs import find_assembler
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames, Rows

ASKED, SAID = "When does the ferry leave?", "It leaves at nine."


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return path


def cells(rows: Rows, name: str) -> list[Any]:
    return list(next(column for need, column in rows.columns.items() if need == name))


def test_results_of_ragas_have_their_scores_and_the_question_as_context(tmp_path: Path) -> None:
    table = "user_input,retrieved_contexts,response,reference,faithfulness,answer_relevancy\n"
    table += f"{ASKED},\"['Ferries leave at 9.']\",{SAID},At 9.,0.5,1.0\n"
    [rows] = read_responses(write(tmp_path / "results.csv", table))
    assert (list(rows.responses), cells(rows, "context"), cells(rows, "reference")) == ([SAID], [[ASKED]], [["At 9."]])
    assert rows.account.scores == 2


def test_parts_of_the_ai_sdk(tmp_path: Path) -> None:
    called = {"type": "tool-timetable", "toolCallId": "c", "state": "output-available", "input": {}, "output": "9"}
    invoked = {"type": "tool-invocation", "toolInvocation": {"toolCallId": "d", "toolName": "map", "args": {}}}
    said = {"type": "text", "text": SAID}
    chat = [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": ASKED}]},
        {
            "id": "2",
            "role": "assistant",
            "parts": [{"type": "step-start"}, called, invoked, said],
        },
    ]
    [rows] = read_responses(write(tmp_path / "chat.json", {"id": "c", "messages": chat}))
    assert (list(rows.responses), cells(rows, "context")) == ([SAID], [[ASKED]])
    assert [call["name"] for call in cells(rows, "calls")[0]] == ["timetable", "map"]


def test_a_list_of_messages_is_one_chat(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "c", "content": [{"query": "ferry", "result": "9"}]}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "search", "input": {}}]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [{"type": "text", "text": SAID}]},
    ]
    with collect_warnings():
        [rows] = read_responses(write(tmp_path / "api_conversation_history.json", messages))
    assert list(rows.responses) == [SAID]
    assert cells(rows, "context") == [[ASKED, "[call search({})]", '{"query":"ferry","result":"9"}']]
    assert (rows.account.user_turns, rows.account.tool_calls) == (1, 1)


@pytest.mark.parametrize("name", ["run.traj", "run.log.json5", "run"])
def test_json_with_an_unknown_suffix_is_no_text(tmp_path: Path, name: str) -> None:
    chat = {"messages": [{"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID}]}
    if "." in name:
        assert list(read_responses(write(tmp_path / name, chat))[0].responses) == [SAID]
        lines = "".join(json.dumps({**chat, "id": number}) + "\n" for number in range(2))
        assert list(read_responses(write(tmp_path / name, lines))[0].responses) == [SAID, SAID]
    text = "[10:00] Hello\n{not JSON}\n"
    assert list(read_responses(write(tmp_path / name, text))[0].responses) == text.splitlines()


def test_markdown_is_a_history_of_aider_or_refused(tmp_path: Path) -> None:
    history = f"""
# aider chat started at 2026-01-01 09:00:00

> aider --model m
> Repo-map: using 1024 tokens

#### {ASKED}
#### Please look it up.

{SAID}

```python
>>>>>>> REPLACE
```

> Tokens: 5 sent.

#### Thanks

# aider chat started at 2026-01-01 10:00:00
"""
    [rows] = read_responses(write(tmp_path / ".aider.chat.history.md", history))
    assert list(rows.responses) == [f"{SAID}\n\n```python\n>>>>>>> REPLACE\n```\n", ""]
    assert (rows.account.conversations, rows.account.user_turns, rows.account.without_reply) == (1, 2, 1)
    with pytest.raises(DataError, match="is Markdown without a turn of a user"):
        read_responses(write(tmp_path / "notes.md", "# Notes\n\n- the ferry\n"))


def promptfoo(prompt: str, number: int, output: str | None, **more: Any) -> dict[str, Any]:
    result = {"prompt": {"raw": f"{prompt} {number}", "label": prompt}, "vars": {"n": number}, "provider": {"id": "m"}}
    grade = {
        "componentResults": [
            {"score": 1, "assertion": {"type": "contains"}},
            {"score": 0.5, "assertion": {"metric": "tone"}},
        ]
    }
    scored = {"success": True, "score": 0.75, "namedScores": {"tone": 0.5}, "gradingResult": grade, "latencyMs": 1500}
    return {**result, **scored, "response": {"output": output}, **more}


@pytest.mark.parametrize("version", [1, 3, 4])
def test_promptfoo(tmp_path: Path, version: int) -> None:
    results = [promptfoo(prompt, number, SAID) for number in range(2) for prompt in ("short", "long")]
    results.append(promptfoo("short", 2, None, error="timeout", failureReason=2, score=0))
    document: Any = {
        "evalId": "e",
        "results": {"version": version, "timestamp": "now", "results": results},
        "config": {},
    }
    document = {"version": version, "results": results, "stats": {}} if version == 1 else document
    with collect_warnings():
        short, long = read_responses(write(tmp_path / "results.json", document))
    assert (short.system, long.system) == ("m/prompt-1", "m/prompt-2")
    assert (list(short.responses), list(long.responses)) == ([SAID, SAID, ""], [SAID, SAID])
    assert short.dialogues is not None
    assert long.dialogues is not None
    assert list(short.dialogues)[:2] == list(long.dialogues)
    assert cells(long, "context") == [["long 0"], ["long 1"]]
    assert cells(short, "latency")[0] == 1.5
    assert (short.account.errors, short.account.scores, long.account.scores) == (1, 9, 6)
    assembler = find_assembler(results[0], FieldNames())
    assert assembler is not None
    [(_, row)] = assembler([(1, results[0])], "x")
    assert row["scores"] == {"score": 0.75, "contains": 1.0, "tone": 0.5}


def test_two_prompts_of_promptfoo_are_compared_by_test(tmp_path: Path) -> None:
    results = [promptfoo(prompt, number, SAID) for number in range(6) for prompt in ("short", "long")]
    path = write(tmp_path / "results.json", {"evalId": "e", "results": {"version": 3, "results": results}})
    run = dialeval.evaluate(path, metrics="length")
    design = align(run["m/prompt-1"], run["m/prompt-2"]).design
    assert (design.name, design.by, design.common) == ("paired", "ids", 6)


def test_a_list_of_documents_has_the_rows_of_all(tmp_path: Path) -> None:
    def document(model: str) -> dict[str, Any]:
        sample = {"epoch": 1, "input": "a?", "output": {"completion": SAID}}
        samples = [{"id": number, **sample} for number in range(2)]
        return {"eval": {"model": model}, "samples": samples}

    documents = [document("m"), document("n")]
    for source in (documents, [{"results": {"results": [promptfoo("a", at, SAID)]}} for at in range(4)]):
        systems = read_responses(write(tmp_path / "logs.json", source))
        assert sum(rows.account.replies for rows in systems) == 4
    assert [rows.system for rows in read_responses(write(tmp_path / "logs.json", documents))] == ["m", "n"]
    (tmp_path / "logs.json").write_text("\n".join(map(json.dumps, documents)))
    assert [rows.system for rows in read_responses(tmp_path / "logs.json")] == ["m", "n"]


def test_a_table_of_promptfoo_has_a_system_for_each_prompt(tmp_path: Path) -> None:
    head = ['"{""raw"":""Tweet about {{topic}}""}"', '"{""raw"":""Post about {{topic}}""}"', "topic"]
    cells = [["", "[FAIL] (0.25) Boats.", "ferry"], ["[PASS] (1.00) Ferries!", "[FAIL]", "ferry"]]
    rows = [head, *cells, ["[ERROR] timeout", "[PASS] (1.00) x", "y"]]
    path = write(tmp_path / "output.csv", "".join(",".join(row) + "\n" for row in rows))
    first, second = read_responses(path)
    assert (first.system, list(first.responses)) == ("prompt-1", ["", "Ferries!", "timeout"]), "a cell may be empty"
    assert (second.system, list(second.responses)) == ("prompt-2", ["Boats.", "", "x"])
    assert (first.account.errors, first.account.empty, first.account.scores) == (1, 1, 1)
    assert (second.account.errors, second.account.empty, second.account.scores) == (0, 1, 2)
    assert len(set(first.dialogues or ())) == 3, "a repeated test is one of its own"
    assert list(first.dialogues or ()) == list(second.dialogues or ())


def test_a_run_of_tau2_bench_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "simulations").mkdir()
    info = {"agent_info": {"implementation": "agent", "llm": "m"}}
    write(tmp_path / "results.json", {"info": info, "tasks": [{"id": "0"}], "simulation_index": []})
    for trial in range(2):
        chat = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID}]
        simulation = {"task_id": "0", "trial": trial, "reward_info": {"reward": float(trial)}, "messages": chat}
        write(tmp_path / "simulations" / f"{trial}.json", simulation)
    [rows] = read_responses(tmp_path)
    assert (rows.system, list(rows.dialogues or ())) == ("agent/m", ["0", "0"])
    assert (rows.account.conversations, rows.account.replies, rows.account.scores) == (2, 2, 2)


def test_sessions_of_claude_code(tmp_path: Path) -> None:
    def event(number: int, kind: str, message: Any, **more: Any) -> dict[str, Any]:
        times = {"timestamp": f"2026-01-01T00:00:0{number}.000Z", "uuid": f"u{number}", "sessionId": "s"}
        return {"type": kind, "message": message, "isSidechain": False, **times, **more}

    def said(*parts: Any, name: str = "m1") -> dict[str, Any]:
        return {"id": name, "role": "assistant", "model": "claude", "content": list(parts)}

    call = {"type": "tool_use", "id": "c", "name": "Read", "input": {"path": "a"}}
    error = {"type": "tool_result", "tool_use_id": "c", "content": "no such file", "is_error": True}
    events = [
        {"type": "summary", "summary": "A ferry", "leafUuid": "x"},
        event(0, "user", {"role": "user", "content": "<system>"}, isMeta=True),
        event(1, "user", {"role": "user", "content": ASKED}),
        event(2, "assistant", said({"type": "thinking", "thinking": "hm"})),
        event(3, "assistant", said({"type": "text", "text": "I look it up."})),
        event(4, "assistant", said(call)),
        event(4, "assistant", said(call)),
        event(5, "user", {"role": "user", "content": [error]}),
        event(6, "assistant", said({"type": "text", "text": SAID}, name="m2")),
        event(6, "user", {"role": "user", "content": "<command-name>/exit</command-name>"}, uuid="exit"),
        event(7, "user", {"role": "user", "content": "Look around."}, isSidechain=True, agentId="a1"),
        event(8, "assistant", said({"type": "text", "text": "Done."}, name="m3"), isSidechain=True, agentId="a1"),
    ]
    path = write(tmp_path / "s.jsonl", "".join(json.dumps(each) + "\n" for each in events))
    [rows] = read_responses(path)
    assert rows.dialogues is not None
    assert (rows.system, list(rows.dialogues)) == ("claude", ["s", "s", "s a1"])
    assert list(rows.responses) == ["I look it up.", SAID, "Done."]
    account = rows.account
    assert (account.user_turns, account.tool_calls, account.without_reply) == (2, 1, 0)
    assert cells(rows, "calls")[1][0]["error"] is True


def test_history_is_context_and_is_not_counted() -> None:
    history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}]
    messages = [{"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID}]
    [rows] = read_responses([{"id": "c", "history": history, "messages": messages}])
    assert (list(rows.responses), cells(rows, "context")) == ([SAID], [["Hello", "Hi.", ASKED]])
    assert (rows.account.user_turns, rows.account.replies) == (1, 1)


def test_scores_that_are_no_numbers_are_left_out() -> None:
    chat = {
        "messages": [{"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID, "scores": {"a": 1}}]
    }
    scores = {
        "label": "friendly",
        "grade": "C",
        "passed": True,
        "none": None,
        "rated": {"value": 3, "better": "higher"},
    }
    [rows] = read_responses([{**chat, "scores": scores}])
    assert rows.account.scores == 4


def test_a_log_that_is_built_in_another_way_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", {"eval_cases": [{"conversation": 3}], "name": "x"})
    with pytest.raises(DataError, match="looks like an eval set of Google ADK, but is built in another way"):
        read_responses(path)


def test_rows_of_a_page(tmp_path: Path) -> None:
    row = {
        "custom_id": "r",
        "response": {"status_code": 200, "body": {"choices": [{"message": {"content": SAID, "role": "assistant"}}]}},
    }
    page = {"object": "list", "page": {"data": [row], "total": 1}, "next": None}
    assert list(read_responses(write(tmp_path / "x.json", page))[0].responses) == [SAID]
