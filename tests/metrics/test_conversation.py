"""Metrics of whole conversations, on chats as programs log them, against values computed by hand."""

from __future__ import annotations

import json
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from conftest import Dialeval
from dialeval.core.errors import SettingError
from dialeval.metrics.conversation import SpokenTurn
from dialeval.metrics.registry import registry

ASKING = [
    ("user", "How do I reset my password?"),
    ("assistant", "What is your email?"),
    ("user", "How can I reset my password?"),
    ("assistant", "What is your email?"),
    ("user", "a@b.c"),
    ("assistant", "Done. Check your inbox."),
]
SHORT = [("user", "hi"), ("assistant", "Hello there, how are you today?"), ("user", "bye"), ("assistant", "Bye!")]


def chat(turns: list[tuple[str, str]], **fields: Any) -> str:
    return json.dumps({"messages": [{"role": role, "content": text} for role, text in turns], **fields}) + "\n"


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    path = tmp_path / "chats.jsonl"
    path.write_text(chat(ASKING) + chat(SHORT))
    return path


def values(path: Path, key: str) -> list[float]:
    items = dialeval.evaluate(path, metrics=[key])["chats"][key].scores
    assert items is not None
    return [float(value) for value in items]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("dialogue-turns", [3, 2]),
        ("talk-ratio", [52 / 102, 30 / 35]),
        ("self-repetition", [2 / 4, 0.0]),
        ("repeated-questions", [1 / 2, 0.0]),
        ("user-rephrasing", [1 / 2, 0.0]),
        ("unanswered-questions", [1.0, nan]),
        ("length@dialogue-mean", [4.0, 3.5]),
        ("length@dialogue-min", [4, 1]),
        ("length@dialogue-max", [4, 6]),
        ("length@dialogue-last", [4, 1]),
    ],
)
def test_by_hand(chats: Path, key: str, expected: list[float]) -> None:
    np.testing.assert_allclose(values(chats, key), expected)


def test_cut_contexts_give_the_same_conversation(tmp_path: Path) -> None:
    """Rows whose contexts hold the last turn alone are put together from all rows of the dialogue."""
    rows = [
        {"dialog_id": "a", "turn": at, "context": [ASKING[2 * at][1]], "response": ASKING[2 * at + 1][1]}
        for at in range(3)
    ]
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for key, expected in [("dialogue-turns", 3), ("self-repetition", 0.5), ("user-rephrasing", 0.5)]:
        assert values(path, key) == [expected]


def test_single_rows_with_whole_contexts_are_conversations(tmp_path: Path) -> None:
    """Speakers without roles alternate backwards from the response."""
    path = tmp_path / "chats.jsonl"
    context = [{"speaker": "A", "text": text} for _, text in ASKING[:-1]]
    path.write_text(json.dumps({"context": context, "response": ASKING[-1][1]}) + "\n")
    assert values(path, "repeated-questions") == [0.5]
    assert values(path, "dialogue-turns") == [3]


def test_tools_and_system_prompts_are_no_speakers(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    turns = [("system", "Be brief. Be brief."), ASKING[0], ASKING[1], ("tool", "x" * 500), *ASKING[2:]]
    path.write_text(chat(turns))
    assert values(path, "talk-ratio") == [52 / 102]


def said(*texts: str, first: str = "user") -> list[SpokenTurn]:
    order = ("user", "assistant") if first == "user" else ("assistant", "user")
    return [SpokenTurn(order[at % 2], text) for at, text in enumerate(texts)]


def test_runs_are_compared_over_dialogues(dialeval: Dialeval, tmp_path: Path) -> None:
    """The second version talks to the same users in longer conversations, whose contexts hold its own replies."""
    for name, extra in (("v1", []), ("v2", [("user", "thanks a lot"), ("assistant", "You are welcome, any time.")])):
        lines = [
            chat([("user", f"question {n}?"), ("assistant", f"{name} {n}. " * (n % 3 + 1)), *extra], id=f"d{n}")
            for n in range(12)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    keys = "dialogue-turns,length@dialogue-min,unanswered-questions"
    done = dialeval("score", "v1.jsonl", "v2.jsonl", "-m", keys, "-o", "run", "-f", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["systems"]["v2"]["metrics"]["dialogue-turns"]
    assert (found["mean"], found["units"], found["level"]) == (2.0, 12, "dialogue")
    compared = dialeval("compare", "run", "-m", keys, "-f", "json")
    assert compared.returncode == 0, compared.stderr
    differences = {each["key"]: each["difference"] for each in json.loads(compared.stdout)["differences"]}
    assert differences["dialogue-turns"] == 1.0
    assert dialeval("report", "run", "--save", "page.html").returncode == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("inform@dialogue-min", "leave @dialogue-min out"),
        ("length@dialogue-median", "mean, min, max, last"),
        ("length@dialogue-first-failure", "dialeval survival"),
        ("lenght@dialogue-min", "did you mean 'length'"),
    ],
)
def test_names_that_mean_nothing(name: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        registry().parse(name)


def test_the_tokenizer_of_the_run_reaches_the_metric(chats: Path) -> None:
    run = dialeval.evaluate(chats, metrics=["length@dialogue-max"], tokenizer="char")
    np.testing.assert_array_equal(run["chats"]["length@dialogue-max"].scores, [20, 26])
