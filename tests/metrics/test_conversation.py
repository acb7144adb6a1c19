"""Metrics of whole conversations, on chats as programs log them, against values computed by hand."""

from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from conftest import Dialeval
from dialeval.core.errors import SettingError
from dialeval.metrics.conversation import (
    OverDialogue,
    RepeatedQuestions,
    SelfRepetition,
    SpokenTurn,
    TalkRatio,
    UnansweredQuestions,
    UserRephrasing,
)
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
    items = dialeval.evaluate(path, metrics=[key])["chats"][key].items
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
        ("length@dialogue-first-failure(below=4)", [3, 1]),
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


def test_contexts_of_two_turns_give_the_same_conversation(tmp_path: Path) -> None:
    texts = [text for _, text in ASKING]
    rows = [
        {"dialog_id": "a", "turn": at, "context": texts[max(2 * at - 1, 0) : 2 * at + 1], "response": texts[2 * at + 1]}
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


def test_edges() -> None:
    assert np.isnan(TalkRatio().value(said("", " ")))
    assert np.isnan(SelfRepetition().value(said("hi", "hello")))
    assert SelfRepetition().value(said("hi", "yes", "and?", "yes", "so?", "no")) == 0.5
    assert SelfRepetition().value(said("hi", "", "and?", "")) != SelfRepetition().value(said("", "a b c", "", "a b c"))
    assert RepeatedQuestions().value(said("x", "Why? why?!", "y", "WHY?")) == 2 / 3
    assert np.isnan(UserRephrasing().value(said("only one")))
    assert UserRephrasing().value(said("", "?", "", "?")) == 0.0, "two empty turns say nothing again"
    assert UnansweredQuestions().value(said("when?", "", "when?", "At noon.", "where?", "here", "who?", "...")) == 0.5
    assert UserRephrasing().value(said("你好吗朋友", "好", "你好吗", "好")) == 1.0


def test_how_similar_two_turns_of_the_user_are() -> None:
    assert UserRephrasing().value(said("a", "x", "a b", "x")) == 1.0, "half of the words"
    assert UserRephrasing().value(said("a b", "x", "a c", "x")) == 0.0, "a third of them"
    assert UserRephrasing().value(said("a", "x", "A!", "x", "b", "x", "", "x")) == 1 / 3


def test_replies_of_less_than_three_words_are_repeated_as_a_whole() -> None:
    assert SelfRepetition().value(said("", "a b", "", "a b", "", "a c")) == 1 / 2
    assert SelfRepetition().value(said("", "a b c", "", "a b c d", "", "c d")) == 1 / 3
    assert SelfRepetition().value(said("", "a b c d", "", "b c d", "", "")) == 1.0
    assert SelfRepetition().value(said("", "a b c", "", "a b d")) == 0.0


def test_all_that_a_user_says_before_a_reply_counts(tmp_path: Path) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(chat([("assistant", "z"), ("user", "aaaa"), ("user", "bb"), ("assistant", "c c")]))
    assert values(path, "talk-ratio") == [3 / 9]
    assert values(path, "dialogue-turns") == [2]


def test_what_is_declared() -> None:
    names = ("talk-ratio", "self-repetition", "repeated-questions", "user-rephrasing", "unanswered-questions")
    for name in names:
        assert (registry().parse(name).bounds, registry().parse(name).descriptive) == ((0.0, 1.0), True)
    turns = registry().parse("dialogue-turns")
    assert (turns.bounds, turns.descriptive) == ((0.0, inf), True)


def aggregate(name: str) -> OverDialogue:
    metric = registry().parse(name)
    assert isinstance(metric, OverDialogue)
    return metric


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("rouge-l@dialogue-first-failure", [0.5, 0.75, 0.25, 0.1], 2),  # the middle itself does not fail
        ("rouge-l@dialogue-first-failure", [0.25, 1], 0),
        ("rouge-l@dialogue-first-failure", [nan, 0.5, nan, 1], 2),
        ("label:x(better=lower)@dialogue-first-failure", [0.5, 0.25, 0.75, 0], 2),
        ("label:x@dialogue-first-failure", [0.5, 0.75, 0.25], 2),
        ("length@dialogue-first-failure(below=-1)", [0, -1, -2], 2),
        ("length@dialogue-mean", [1, nan, 4], 2.5),
        ("length@dialogue-min", [3, nan, 2, 4], 2),
        ("length@dialogue-max", [3, nan, 5, 4], 5),
        ("length@dialogue-last", [3, 4, nan], 4),
        ("length@dialogue-last", [3, 5, 4], 4),
        ("length@dialogue-last", [7], 7),
        ("length@dialogue-last", [nan], nan),
    ],
)
def test_values_of_replies_are_condensed(name: str, given: list[float], value: float) -> None:
    np.testing.assert_array_equal(aggregate(name)._condense(np.array(given, float)), value)


def test_aggregates_are_as_their_metrics() -> None:
    plain, failing = aggregate("judge@dialogue-min"), aggregate("judge@dialogue-first-failure")
    assert (plain.bounds, plain.better, plain.how, plain.below) == ((1.0, 5.0), "higher", "min", None)
    assert (failing.bounds, failing.better) == ((0.0, inf), "higher")
    assert dict(failing.signature().fields)["below"] == "3.0"
    assert "below" not in dict(plain.signature().fields)
    lower = aggregate("label:x(better=lower)@dialogue-max")
    assert lower.better == "lower"
    assert aggregate("label:x(better=lower)@dialogue-first-failure").better == "higher"
    assert OverDialogue(plain.inner) == aggregate("judge@dialogue-mean")
    assert str(aggregate("length@dialogue-first-failure( below = 2.0 )")) == "length@dialogue-first-failure(below=2)"


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
    assert (found["mean"], found["rows"], found["level"]) == (2.0, 12, "dialogue")
    compared = dialeval("compare", "run", "-m", keys, "-f", "json")
    assert compared.returncode == 0, compared.stderr
    differences = {each["key"]: each["difference"] for each in json.loads(compared.stdout)["differences"]}
    assert differences["dialogue-turns"] == 1.0
    assert dialeval("report", "run", "--save", "page.html").returncode == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("inform@dialogue-min", "leave @dialogue-min out"),
        ("length@dialogue-median", "mean, min, max, last, first-failure"),
        ("length@dialogue-first-failure", "name the limit"),
        ("length@dialogue-first-failure(below=x)", "below is a number"),
        ("lenght@dialogue-min", "did you mean 'length'"),
    ],
)
def test_names_that_mean_nothing(name: str, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        registry().parse(name)


def test_names_read_back() -> None:
    for name in ("judge@dialogue-min", "bleu(n=2,smooth=1)@dialogue-last", "length@dialogue-first-failure(below=2.5)"):
        metric = registry().parse(name)
        assert registry().parse(str(metric)) == metric
        assert registry().parse(metric.signature().metric) == metric


def test_the_tokenizer_of_the_run_reaches_the_metric(chats: Path) -> None:
    run = dialeval.evaluate(chats, metrics=["length@dialogue-max"], tokenizer="char")
    np.testing.assert_array_equal(run["chats"]["length@dialogue-max"].items, [20, 26])
