"""The tokenizer of a run: the default of all metrics, the choice by script, and texts that are left whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import evaluating
from dialeval import lsdscc
from dialeval.core.result import Run
from dialeval.engine.processes import Processes
from dialeval.engine.worker import Threads
from dialeval.metrics.words import Length

CHINESE = ["今天天气很好", "我不知道你在说什么"]
THERE = ["今天天气不好", "我知道你在说什么"]
ENGLISH = ["hello there", "it is, isn't it?"]


def run_of(responses: Any, **given: Any) -> Run:
    return evaluating.evaluate(responses, **given)


def tokenizers(run: Run, system: str) -> dict[str, str]:
    signatures = {key: estimate.signature for key, estimate in run[system].items()}
    return {key: signature["tokenizer"] for key, signature in signatures.items() if signature is not None}


def test_one_for_all_metrics_that_say_none() -> None:
    asked = ["length", "bleu-4", "rouge(beta=1.0)", "distinct(tokenizer=words.1)", Length()]
    run = run_of({"a": CHINESE}, references=THERE, metrics=asked, tokenizer="zh")
    found = tokenizers(run, "a")
    assert found["distinct-2"] == "words.1"
    assert found["bleu-4"] == found["rouge(beta=1.0)"] == "zh"
    assert run["a"]["bleu-4"].mean > 0.5


def test_a_metric_without_words_is_left_alone() -> None:
    run = run_of({"a": CHINESE}, references=THERE, metrics="chrf", tokenizer="zh")
    assert "tokenizer" not in (run["a"]["chrf"].signature or {})


@pytest.mark.parametrize(("responses", "name", "length"), [(CHINESE, "zh", 7.5), (ENGLISH, "words.1", 3.0)])
def test_auto_chooses_by_script(responses: list[str], name: str, length: float) -> None:
    run = run_of({"a": responses}, metrics="length", tokenizer="auto")
    assert tokenizers(run, "a") == {"length": name}
    assert run["a"]["length"].mean == length
    assert run.warnings == ()


def test_auto_chooses_one_for_all_systems() -> None:
    run = run_of(
        {"a": CHINESE, "b": ["ok", "yes"]}, references=THERE, metrics="length,unigram-kl-div", tokenizer="auto"
    )
    assert {name for system in run for name in tokenizers(run, system).values()} == {"zh"}


def test_anchors_do_not_move_the_choice() -> None:
    few = ["好", "不好"]
    run = run_of({"a": few}, references=few, metrics="length", tokenizer="auto", baselines=True)
    assert tokenizers(run, "a") == tokenizers(run, "floor/constant") == {"length": "zh"}


def test_auto_for_one_metric() -> None:
    run = run_of({"a": CHINESE}, metrics="length,length(tokenizer=auto)")
    assert tokenizers(run, "a") == {"length": "words.1", "length(tokenizer=auto)": "zh"}
    assert run["a"]["length(tokenizer=auto)"].mean == 7.5


def test_the_choice_does_not_depend_on_chunks_or_workers(tmp_path: Path) -> None:
    # English rows come first: who looked only at these would choose another one.
    texts = ["hello there my friend"] * 40 + CHINESE * 200
    rows = [{"dialog_id": f"d{at}", "response": text, "reference": text} for at, text in enumerate(texts)]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    given: dict[str, Any] = {"metrics": "length,bigram-kl-div,distinct-2", "tokenizer": "auto"}
    whole = run_of({"a": str(tmp_path / "rows.jsonl")}, **given)
    assert set(tokenizers(whole, "a").values()) == {"zh"}
    for engine, size in ((Threads(2), 400), (Processes(2), 4000)):
        cut = run_of({"a": str(tmp_path / "*.jsonl")}, **given, engine=engine, chunk_bytes=size)
        figures = {key: (estimate.mean, str(estimate.signature)) for key, estimate in cut["a"].items()}
        assert figures == {key: (estimate.mean, str(estimate.signature)) for key, estimate in whole["a"].items()}


def test_resuming_chooses_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(CHINESE) + "\n", encoding="utf-8")
    runs = [
        run_of({"a": str(tmp_path / "a.txt")}, metrics="length", tokenizer="auto", resume=tmp_path / "work")
        for _ in range(2)
    ]
    assert [run["a"]["length"].mean for run in runs] == [7.5, 7.5]


def test_texts_that_are_left_whole_are_told_once() -> None:
    run = run_of({"a": CHINESE, "b": [*ENGLISH[:1], CHINESE[0]]}, references=THERE, metrics="length,bleu-4,distinct-2")
    what = (
        "words.1 cannot split 3 of 4 responses, whose script puts no spaces between words: each sentence counts as one"
    )
    assert run.warnings == (f"{what} word; choose --tokenizer zh, tokenizer='zh' in Python",)


@pytest.mark.parametrize("name", ["13a", "intl", "lower-words.1"])
def test_other_tokenizers_leave_them_whole_too(name: Any) -> None:
    (warning,) = run_of({"a": CHINESE}, metrics="length", tokenizer=name).warnings
    assert warning.startswith(f"{name} cannot split 2 of 2")


@pytest.mark.parametrize("name", ["zh", "char", "unicode", "ja"])
def test_those_that_split_them_are_not_told_of(name: Any) -> None:
    assert run_of({"a": CHINESE}, metrics="length", tokenizer=name).warnings == ()


def test_nothing_is_told_of_other_scripts() -> None:
    several = ["hello “there” — \U0001f600", "שלום עולם", "今天 天气 很 好", "한국어 좋아요", "a 猫"]
    assert run_of({"a": several}, metrics="length").warnings == ()


def test_hypotheses_are_looked_at_too() -> None:
    groups = {"q": {"1": [THERE[0]], "2": [THERE[1]]}}
    run = lsdscc.evaluate({"a": [CHINESE]}, groups, metrics="mds", tokenizer="auto")
    assert tokenizers(run, "a") == {"mds": "zh"}
    assert lsdscc.evaluate({"a": [CHINESE]}, groups, metrics="mds").warnings[0].startswith("words.1 cannot")


def test_in_vocabulary_are_split_as_responses_are() -> None:
    train = ["今天天气很好", "我不知道你在说什么"]
    run = run_of({"a": CHINESE}, metrics="dialog-eval", tokenizer="zh", train=train)
    assert run["a"]["distinct-1"].mean == pytest.approx(14 / 15)  # all are known, and one occurs twice
