"""Files of other programs, where they can be had: the counts of `counts.json`, and conversations written out."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.core.account import Account
from dialeval.core.errors import DataError, collect_warnings
from dialeval.io.outcomes import total_account
from dialeval.io.reading import check, read_responses
from dialeval.io.rows import Rows

PROGRAMS = Path(__file__).parents[3] / "shared" / "data" / "logs" / "programs"
pytestmark = pytest.mark.skipif(not PROGRAMS.is_dir(), reason=f"no files of other programs in {PROGRAMS}")
COUNTS: dict[str, dict[str, int | None]] = (
    json.loads((PROGRAMS / "counts.json").read_text()) if PROGRAMS.is_dir() else {}
)


def read(name: str) -> list[Rows]:
    return read_responses(PROGRAMS / name)


def account_of(systems: list[Rows]) -> Account:
    return sum((rows.account for rows in systems), Account())


REFUSED = {
    "alpaca-eval-annotations.json": "rank the systems: dialeval rank FILE",
    "mt-bench-judgment-pair.jsonl": "rank the systems: dialeval rank FILE",
    "every-eval-ever-aggregate.json": "give its samples",
    "label-studio-export.json": "dialeval agreement",
    "tau2-voice/results.json": "give the folder that it is in",
}
"""Files without a reply to score, each with what is said about it."""
DIFFERENT: dict[str, dict[str, int]] = {
    # Only blocks after a turn of the user are replies, and a session without one is no conversation.
    "aider-chat-history.md": {"conversations": 3, "replies": 2},
    # All texts were removed.
    "braintrust-log-openai.json": {"replies": 0},
    # Two statistics of each instance have no value.
    "helm-narrative-qa-per-instance-stats.json": {"scores": 115},
    # Each of the four configurations is a system.
    "oasst-sampling-report.json": {"conversations": 80, "user_turns": 80},
}
"""Counts that differ from those of the file, each with the reason."""


NAMED = {*REFUSED, "facebook-messenger-export.json"}
"""Files that are not read without further arguments."""


@pytest.mark.parametrize("name", [name for name in COUNTS if name not in NAMED])
def test_counts(name: str) -> None:
    with collect_warnings():
        account = account_of(read(name))
    expected = {key: count for key, count in COUNTS[name].items() if count is not None} | DIFFERENT.get(name, {})
    assert {key: getattr(account, key) for key in expected} == expected


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_said_about_files_without_replies(name: str) -> None:
    with collect_warnings(), pytest.raises(DataError) as caught:
        read(name)
    problem = caught.value.problems[0]
    assert REFUSED[name] in f"{problem.what}; {problem.remedy}"


@pytest.mark.parametrize("name", [*REFUSED, "oasst-sampling-report.json"])
def test_the_account_of_a_file_that_other_commands_read_or_that_has_several_systems(name: str) -> None:
    systems, _, _ = check(PROGRAMS / name)
    account = total_account(systems)
    expected = {key: count for key, count in COUNTS[name].items() if count is not None}
    assert {key: getattr(account, key) for key in expected} == expected


def test_speakers_of_a_messenger_are_named_as_the_refusal_says() -> None:
    path, roles = PROGRAMS / "facebook-messenger-export.json", {"User 1": "user"}
    with collect_warnings():
        with pytest.raises(DataError) as caught:
            read_responses(path)
        assert "--role 'User 1'=user" in caught.value.problems[0].remedy
        [rows] = read_responses(path, roles={**roles, "User 2": "assistant"})
    assert (rows.account.conversations, rows.account.user_turns, rows.account.replies) == (1, 5, 6)
    assert "[image]" in {*rows.responses}


def flatten(systems: list[Rows]) -> list[tuple[Any, ...]]:
    """Replies with their contexts and dialogues."""
    [rows] = systems
    contexts = next(column for need, column in rows.columns.items() if need == "context")
    assert rows.dialogues is not None
    return list(zip(rows.dialogues, contexts, rows.responses, strict=True))


def test_conversations_of_traces() -> None:
    result = '{"url": "https://example.com", "title": "Example Result", "q": "example"}'
    [(dialogue, context, reply)] = flatten(read("langfuse-trace-langgraph.json"))
    assert dialogue == "demo-thread-1"
    assert context == [
        "Search the web for 'example' and summarize.",
        '[call Web-Search({"query":"example"})]',
        f"[{result}]",
    ]
    assert reply.startswith('The search for "example" primarily leads to the website')
    [(dialogue, context, reply)] = flatten(read("otel-genai-spans-google-adk.json"))
    assert dialogue == "b4866a2a-a3d4-4d2f-8f40-6bb0d03d135c"
    assert context == [
        "What is 15 multiplied by 37?",
        '[call calculator({"expression":"15 * 37"})]',
        '{"result": "555"}',
    ]
    assert reply == "15 multiplied by 37 is 555."


def test_an_agent_that_is_a_tool_has_a_thread_of_its_own() -> None:
    question, task = "What is 42 multiplied by 17, then divided by 3?", "42 multiplied by 17, then divided by 3"
    (_, context, inner), (_, outer_context, outer) = flatten(read("otel-openinference-spans-openai-agents.json"))
    assert context == [
        question,
        f'[call ask_math_specialist({{"query":"{task}"}})]',
        task,
        '[call multiply_numbers({"a":42,"b":17})] [call divide_numbers({"a":0,"b":3})]',
        "714",
        "0.0",
        '[call divide_numbers({"a":714,"b":3})]',
        "238.0",
    ]
    assert inner.startswith("First, I calculated")
    assert outer_context[len(context) :] == [inner, inner], "what the specialist says is the result of the call"
    assert outer.startswith("The result of")


def test_conversations_of_coding_agents() -> None:
    name, asked = "codex-rollout-tool-call.jsonl", "list files in current directory"
    (_, first, listing), (_, context, said) = flatten(read(name))
    assert (first, listing) == ([asked], "I'll list the files for you.")
    files = "file1.txt\nfile2.txt\nfile3.txt"
    assert context == [asked, listing, '[call exec_command({"cmd":"ls"})]', files]
    assert said == "There are 3 files: file1.txt, file2.txt, file3.txt"
    [(dialogue, context, said)] = flatten(read("openhands-trajectory.json"))
    assert dialogue == "openhands-trajectory"
    assert context[0].startswith("Please create a simple 2048 game.")
    assert context[1].startswith('[call edit({"path":"/workspace/game_2048.py"')
    assert context[2].startswith("--- /workspace/game_2048.py")
    assert said.startswith("I've created a simple implementation of the 2048 game")
    replies = flatten(read("claude-code-session.jsonl.gz"))
    assert {dialogue for dialogue, *_ in replies} == {"4bd43b45-5ddc-4d38-8114-3b7b43355b7e"}
    assert [reply.split()[0] for *_, reply in replies] == ["Now", "Now", "Now", "Enabled", "Audit's"]
    replies = flatten(read("swe-agent-function-calling.traj"))
    assert [reply.split("`")[0] for *_, reply in replies][:2] == ["The ", "We have found the "]
    assert replies[1][1][1].startswith("The `SyntaxError`")


def test_conversations_of_other_programs() -> None:
    with collect_warnings():
        [*_, (dialogue, context, reply)] = flatten(read("sdialog-customer-support.json"))
    assert dialogue == "d9cb91a7-c0bc-4113-9a82-7e48fb3f6e29"
    assert context[0].startswith("Hello, this is John Smith.")
    assert context[1].startswith("Good afternoon, Mr. Smith. This is Sarah Johnson")
    assert len(context) == 11
    first = flatten(read("convlab3-unified-camrest.json"))[0]
    asked = "I need to find an expensive restauant that's in the south section of the city."
    assert first[:2] == ("camrest-train-0", [asked])
    assert flatten(read("trulens-record.json"))[0][1] == ["hello"]
    assert flatten(read("openai-conversation-items.json"))[0][1:] == (
        ["What is the capital of France?"],
        "The capital of France is Paris.",
    )
    [*_, (_, context, reply)] = flatten(read("google-adk-evalset.json"))
    off = '[call set_device_info({"location":"Bedroom","device_id":"device_2","status":"OFF"})]'
    assert context[:3] == ["Turn off device_2 in the Bedroom.", off, "I have set the device 2 status to off."]
    assert reply == "I have set the device 2 status to on."
    trees = flatten(read("oasst-trees.jsonl"))
    assert trees[0][1] == ["How can I find the best 401k plan for my needs?"]
    assert len({reply for dialogue, _, reply in trees if dialogue == trees[0][0]}) == 3


def test_the_prompt_of_an_inspect_sample_is_what_the_model_got() -> None:
    given = json.loads((PROGRAMS / "inspect-arc-sonnet.json").read_text())["samples"]
    assert [context for _, context, _ in flatten(read("inspect-arc-sonnet.json"))] == [
        [sample["messages"][0]["content"]] for sample in given
    ]


def test_two_prompts_of_promptfoo_are_two_systems_on_the_same_tests() -> None:
    path = PROGRAMS.parent / "promptfoo" / "promptfoo_llama4-scout_output.json"
    with collect_warnings() as warned:
        systems = read_responses(path)
    assert "each of 2 prompts is a system: prompt-1: 'User: Write a viral" in next(iter(warned))
    assert [len(rows) for rows in systems] == [5, 5]
    assert systems[0].dialogues is not None
    assert systems[1].dialogues is not None
    assert sorted(systems[0].dialogues) == sorted(systems[1].dialogues)
    assert account_of(systems).scores == 10


ALL = [name for name in COUNTS if name not in NAMED]


@pytest.mark.parametrize("name", ALL)
def test_what_was_read_and_written_as_our_rows_is_the_same_run(name: str) -> None:
    with collect_warnings():
        systems = read(name)
        written = [row for rows in systems for row in to_rows(rows)]
        again = {rows.system: rows for rows in read_responses(written)}
        for rows in systems:
            assert to_rows(again[rows.system]) == to_rows(rows)
        if not account_of(systems).replies and not account_of(systems).tool_calls:
            return  # scores, or requests: nothing to evaluate
        metrics = "length,failure-rate"
        before = dialeval.evaluate(PROGRAMS / name, metrics=metrics, execution=dialeval.Execution(threads=1))
        after = dialeval.evaluate(written, metrics=metrics, execution=dialeval.Execution(threads=1))
    for system in before.systems:
        assert [repr(after[system][key]) for key in before[system]] == [repr(each) for each in before[system].values()]


def to_rows(rows: Rows) -> list[dict[str, Any]]:
    """Rows in our own format."""
    columns = {str(need): list(column) for need, column in rows.columns.items()}
    dialogues = list(rows.dialogues) if rows.dialogues is not None else [None] * len(rows)
    written = []
    for at, (response, dialogue) in enumerate(zip(rows.responses, dialogues, strict=True)):
        cell = {name: column[at] for name, column in columns.items()}
        roles = cell.get("roles") or [""] * len(cell.get("context", ()))
        context = [{"role": role, "content": text} for role, text in zip(roles, cell.get("context", ()), strict=True)]
        row: dict[str, Any] = {"system": rows.system, "dialog_id": dialogue, "response": response}
        row["context"] = context if any(roles) else cell.get("context")
        seconds = float(cell.get("latency", math.nan))
        row["latency"] = None if math.isnan(seconds) else seconds
        row["tool_calls"] = cell.get("calls")
        row["error"] = "failed" if cell.get("outcome") == ["error"] else None
        row["response"] = None if cell.get("outcome") == ["missing"] else response
        row["turn"] = None if rows.turns is None or rows.turns[at] < 0 else int(rows.turns[at])
        written.append(row)
    return written
