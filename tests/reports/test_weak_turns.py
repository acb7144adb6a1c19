"""The turns at which dialogues break: worst first, with reasons, in the terminal and in the report."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

import dialeval
from dialeval.core.result import Run
from dialeval.judges.report import find_weak_turns, make_weak_turns_section, make_weak_turns_table
from dialeval.reports.explorer import make_explorer
from dialeval.reports.html import render
from judges.tiny_judges import tiny_dialogue_judge

CHAT = ["hello there", "how are you ?", "<b>i</b> am fine", "the cat sat", "the cat sat", "not the dog", "a dog sat"]


def judged(folder: Path, trials: int = 1) -> Run:
    messages = [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(CHAT)]
    path = folder / "chats.jsonl"
    chats = [{"id": "d1", "trial": number, "reward": 1, "messages": messages} for number in range(trials)]
    path.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    return dialeval.evaluate(str(path), metrics="judge", judge_dir=tiny_dialogue_judge(folder))


def with_values(run: Run, key: str, values: list[float]) -> Run:
    """The run with other items of a key."""
    name, result = next(iter(run.items()))
    estimates = {**result.estimates, key: replace(result[key], items=np.array(values))}
    return replace(run, systems={name: replace(result, estimates=estimates)})


def test_turns_are_listed_worst_first_with_reasons(tmp_path: Path) -> None:
    run = with_values(judged(tmp_path), "judge/continuity", [0.3, 0.1, 0.4])
    for part, values in (("relevance", [0.9, 0.2, 0.1]), ("fluency", [0.9, 0.9, 0.9]), ("novelty", [0.9, 0.3, 0.9])):
        run = with_values(run, f"judge/{part}", values)
    worst, other = find_weak_turns(run, 10)
    assert (worst.place, worst.continuity, worst.before, worst.said) == (
        "d1, turn 2",
        0.1,
        "<b>i</b> am fine",
        "the cat sat",
    )
    assert worst.reasons == ["does not follow from the context", "repeats the context"]
    assert (other.place, other.reasons) == ("d1, turn 1", [])
    assert [turn.place for turn in find_weak_turns(run, 1)] == ["d1, turn 2"]
    [(_, (header, first, _other))] = make_weak_turns_table(run)
    assert len(header) == len(first)
    assert first[2:] == ["0.10", "the cat sat", "does not follow from the context; repeats the context"]
    found = make_weak_turns_section(run)
    assert found is not None
    assert "&lt;b&gt;i&lt;/b&gt; am fine" in found.content
    assert found.content.index("turn 2") < found.content.index("turn 1")
    assert "Probable breakdowns" in render(run, compared=False)
    shown = make_explorer(run)
    assert shown is not None
    assert shown[1]["groups"][0]["reasons"] == [
        ["", "does not follow from the context; repeats the context", "does not follow from the context"]
    ]


def many_turns(values: list[float], texts: list[str] | None = None, role: Literal["system", "floor"] = "system") -> Run:
    """A run of single replies with these values of continuity."""
    said = texts or [f"reply {n}" for n in range(len(values))]
    rows = [{"context": [f"question {n}"], "response": text} for n, text in enumerate(said)]
    (result,) = dialeval.evaluate(rows, metrics="length").values()
    continuity = replace(result["length"], items=np.array(values))
    return Run({"bot": replace(result, estimates={"judge/continuity": continuity}, role=role)}, "0")


def test_turns_below_a_third_are_listed_up_to_a_number() -> None:
    run = many_turns([0.5, 1 / 3, 0.3333, float("nan"), 0.2, 0.2, 0.1])
    assert [(turn.place, turn.continuity) for turn in find_weak_turns(run, 9)] == [
        *(("row 7", 0.1), ("row 5", 0.2), ("row 6", 0.2), ("row 3", 0.3333))
    ]
    assert [turn.place for turn in find_weak_turns(run, 2)] == ["row 7", "row 5"]
    assert find_weak_turns(many_turns([0.1], role="floor"), 9) == []
    [(title, lines)] = make_weak_turns_table(run)
    assert title == "Most probable breakdowns, worst first"
    assert lines == [
        ["system", "turn", "continuity", "said", "why"],
        ["bot", "row 7", "0.10", "reply 6", ""],
        ["bot", "row 5", "0.20", "reply 4", ""],
        ["bot", "row 6", "0.20", "reply 5", ""],
    ]


def test_the_report_folds_all_but_three_turns_and_has_fifty() -> None:
    for number, more in ((3, None), (4, "1 more turn<"), (5, "2 more turns<"), (52, "47 more turns<")):
        found = make_weak_turns_section(many_turns([0.001 * n for n in range(number)]))
        assert found is not None
        shown = min(number, 50)
        assert [f">reply {n}<" in found.content for n in range(number)] == [n < shown for n in range(number)]
        head, _, folded = found.content.partition("<details")
        assert head.count("reply ") == 3
        assert folded.count("reply ") == shown - 3
        assert more is None or more in folded


def test_long_texts_are_cut() -> None:
    first, second = find_weak_turns(many_turns([0.1, 0.2], ["x" * 300, "x" * 301]), 2)
    assert (first.said, second.said) == ("x" * 300, "x" * 300 + " …")
    assert (first.before, first.reasons) == ("question 0", [])


def test_the_same_turn_of_several_trials_is_listed_once(tmp_path: Path) -> None:
    run = with_values(judged(tmp_path, trials=2), "judge/continuity", [0.3, 0.1, 0.4, 0.2, 0.15, 0.4])
    assert [(turn.place, turn.continuity) for turn in find_weak_turns(run, 2)] == [
        ("d1, turn 2", 0.1),
        ("d1, turn 1", 0.2),
    ]


def test_a_run_without_the_judge_lists_nothing(tmp_path: Path) -> None:
    run = dialeval.evaluate({"a": ["hello there"]}, metrics="length")
    assert find_weak_turns(run, 10) == []
    assert make_weak_turns_section(run) is None
    assert list(make_weak_turns_table(run)) == []
    shown = make_explorer(run)
    assert shown is not None
    assert shown[1]["groups"][0]["reasons"] == [None]
    good = with_values(judged(tmp_path), "judge/continuity", [0.6, np.nan, 0.7])
    assert find_weak_turns(good, 10) == []
