"""Users compared: halves of one log are alike, and what simulators do differently is named."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import dialeval
from analysis.test_discovery import COMMON, WORDS
from dialeval.analysis.users import classify
from dialeval.core.errors import SettingError


def log_of(seed: int, dialogues: int = 60, polite: float = 0.1, questions: float = 0.5, **more: Any) -> list[Any]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(dialogues):
        messages = []
        for _ in range(rng.integers(1, 5)):
            text = " ".join(rng.choice(WORDS, rng.integers(3, 9), p=COMMON))
            text = f"please {text}" if rng.random() < polite else text
            mark = "?" if rng.random() < questions else ""
            messages += [{"role": "user", "content": text + mark}, {"role": "assistant", "content": "ok"}]
        rows.append({"messages": messages, **more})
    return rows


def run_of(rows: list[Any], **more: Any) -> dialeval.Run:
    return dialeval.evaluate({"bot": rows}, metrics="length", **more)


def test_halves_of_one_log_are_alike() -> None:
    users = dialeval.compare_users(run_of(log_of(1)), run_of(log_of(2)))
    assert users.p > 0.05
    assert users.interval[0] < 0.5 < users.interval[1]
    assert not [habit for habit in users.habits if habit.advice]
    assert users.dialogues == (60, 60)


def test_what_a_simulator_does_differently_is_named() -> None:
    users = dialeval.compare_users(run_of(log_of(1, 100)), run_of(log_of(2, 100, polite=0.9, questions=0.05)))
    assert users.p < 0.01
    assert users.interval[0] > 0.5
    assert "please" in users.simulated_words[0]
    advice = {habit.name: habit.advice for habit in users.habits if habit.advice}
    assert advice["politeness"] == "less politeness"
    assert advice["questions"] == "more questions"
    assert "user turns" not in advice


@pytest.mark.parametrize("sets", [120, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_level_of_the_two_sample_test(sets: int) -> None:
    """Fraction of data sets in which two halves of one log are told apart; logs may be of different sizes."""
    wrong = 0
    for seed in range(sets):
        rng = np.random.default_rng(seed)
        matrix = (rng.random((70, 150)) < rng.random(150) * 0.3).astype(np.float64)
        wrong += classify(matrix, np.repeat([0, 1], [30, 40]), seed)[1] <= 0.05
    sys.stdout.write(f"told apart: {100 * wrong / sets:.1f}%\n")
    bounds = (0.03, 0.065) if sets == 1000 else (0.0, 0.11)
    assert bounds[0] <= wrong / sets <= bounds[1]


def test_systems_may_rank_differently_under_simulated_users() -> None:
    def run(seed: int, lengths: dict[str, int]) -> dialeval.Run:
        systems = {
            name: [
                {
                    "context": [f"{' '.join(WORDS[seed + at : seed + at + 4])}"],
                    "response": "yes " * length,
                    "scores": {"q": length},
                }
                for at in range(40)
            ]
            for name, length in lengths.items()
        }
        return dialeval.evaluate(systems, metrics="scores")

    users = dialeval.compare_users(run(0, {"a": 1, "b": 2, "c": 3}), run(50, {"a": 1, "b": 3, "c": 2}))
    assert users.ranking["score:q"]["tau"] == pytest.approx(1 / 3)
    assert users.ranking["score:q"]["systems"]["b"] == (2.0, 3.0)


def test_too_few_dialogues_are_refused() -> None:
    with pytest.raises(SettingError, match="5 real and 60 simulated dialogues"):
        dialeval.compare_users(run_of(log_of(1, 5)), run_of(log_of(2)))
    with pytest.raises(SettingError, match="no texts of users; those of more than 100,000 rows"):
        dialeval.compare_users(run_of([{"response": "yes"}] * 50), run_of(log_of(2)))
