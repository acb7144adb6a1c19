"""Files of other programs, where they can be had: the counts of `counts.json`, and conversations written out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.account import Account
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


FAMILIES = ("otel", "otlp", "openinference", "jaeger", "tempo", "langfuse", "langsmith", "trulens-otel")


@pytest.mark.parametrize("name", [name for name in COUNTS if name.startswith(FAMILIES)])
def test_counts(name: str) -> None:
    account = account_of(read(name))
    counted = {key: getattr(account, key) for key in COUNTS[name]}
    assert counted == {key: counted[key] if count is None else count for key, count in COUNTS[name].items()}


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
