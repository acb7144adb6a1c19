"""Files of other programs, where they can be had: the counts of `counts.json`, and conversations written out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.account import Account
from dialeval.core.errors import DataError, collect_warnings
from dialeval.io.reading import read_responses
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
    "tau2-voice/results.json": "give the files of its simulations",
    "facebook-messenger-export.json": "--role User 1=user",
    "braintrust-log-openai.json": "capture of message contents is off",
}
"""Files without a reply to score, each with what is said about it; the texts of the last one were removed."""
DIFFERENT: dict[str, dict[str, int]] = {
    # Only blocks after a turn of the user are replies, and a session without one is no conversation.
    "aider-chat-history.md": {"conversations": 3, "replies": 2},
    # Two statistics of each instance have no value.
    "helm-narrative-qa-per-instance-stats.json": {"scores": 115},
    # Each of the four configurations is a system.
    "oasst-sampling-report.json": {"conversations": 80, "user_turns": 80},
}
"""Counts that differ from those of the file, each with the reason."""


@pytest.mark.parametrize("name", [name for name in COUNTS if name not in REFUSED])
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


def flatten(systems: list[Rows]) -> list[tuple[Any, ...]]:
    """Replies with their contexts and dialogues."""
    [rows] = systems
    contexts = next(column for need, column in rows.columns.items() if getattr(need, "value", need) == "context")
    assert rows.dialogues is not None
    return list(zip(rows.dialogues, contexts, rows.responses, strict=True))


def test_conversations_of_traces() -> None:
    result = '{"url": "https://example.com", "title": "Example Result", "q": "example"}'
    [(dialogue, context, reply)] = flatten(read("langfuse-trace-langgraph.json"))
    assert dialogue == "e1fde3efec57ce8a69bafd3fb928a7eb"
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
