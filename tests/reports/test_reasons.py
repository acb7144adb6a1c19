"""Reasons of the judge for low scores, in the explorer of the report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import dialeval
from dialeval.core.result import Run
from judges.tiny_judges import tiny_dialogue_judge
from reports.test_explorer import data_of

CHAT = ["hello there", "how are you ?", "<b>i</b> am fine", "the cat sat", "the cat sat", "not the dog", "a dog sat"]


def judged(folder: Path, trials: int = 1) -> Run:
    messages = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(CHAT)]
    path = folder / "chats.jsonl"
    chats = [{"id": "d1", "trial": number, "reward": 1, "messages": messages} for number in range(trials)]
    path.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    return dialeval.evaluate(str(path), metrics="judge", judge=tiny_dialogue_judge(folder))


def with_values(run: Run, key: str, values: list[float]) -> Run:
    """The run with other items of a key."""
    name, result = next(iter(run.items()))
    estimates = {**result.estimates, key: replace(result[key], scores=np.array(values))}
    return replace(run, systems={name: replace(result, estimates=estimates)})


def test_reasons_of_each_reply(tmp_path: Path) -> None:
    run = judged(tmp_path)
    for part, values in (("relevance", [0.9, 0.2, 0.1]), ("fluency", [0.9, 0.9, 0.9]), ("novelty", [0.9, 0.3, 0.9])):
        run = with_values(run, f"judge/{part}", values)
    (side,) = data_of(run)["sides"]
    assert side["reasons"] == [
        "",
        "does not follow from the context; repeats the context",
        "does not follow from the context",
    ]


def test_a_run_without_the_judge_has_no_reasons() -> None:
    (side,) = data_of(dialeval.evaluate({"a": ["hello there"]}, metrics="length"))["sides"]
    assert side.get("reasons") is None
