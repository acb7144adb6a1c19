from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

import dialeval
from dialeval.core import inputs
from dialeval.core.errors import Problem, collect_warnings
from dialeval.io.reading import read_responses
from dialeval.metrics.trials import count_trials

Caught = Callable[[Callable[[], object]], list[Problem]]


def trial(task: object, number: object, reward: object, response: str = "a", **more: Any) -> dict[str, object]:
    return {"dialog_id": task, "trial": number, "reward": reward, "response": response, **more}


def counts(rows: Any) -> list[list[int]]:
    """Trials with a reward and passes by dialogue, in its first row."""
    by_row, ends = list(rows.columns[inputs.TRIALS]), rows.dialogue_offsets().tolist()
    found: list[list[int]] = []
    for start, stop in pairwise(ends):
        trials = [trial for row in by_row[start:stop] for trial in row or ()]
        found += [list(count_trials(trials)), *[[]] * (stop - start - 1)]
    return found


def test_rows_of_a_task_are_brought_together() -> None:
    [rows] = read_responses(
        [trial("x", 0, 1, "a"), trial("y", 0, 0, "b"), trial("x", 1, 0.0, "c"), trial("y", 1, "1", "d")]
    )
    assert list(rows.responses) == ["a", "c", "b", "d"]
    assert rows.dialogues is not None
    assert list(rows.dialogues) == ["x", "x", "y", "y"]
    assert counts(rows) == [[2, 1], [], [2, 1], []]


def test_systems_have_trials_of_their_own() -> None:
    one, two = read_responses(
        [trial("x", 0, 1, system="s"), trial("x", 0, 0, system="t"), trial("x", 1, 1, system="s")]
    )
    assert (counts(one), counts(two)) == ([[2, 2], []], [[1, 0]])


def test_a_trial_in_which_nothing_is_said_is_an_empty_response() -> None:
    said, silent = [{"role": "assistant", "content": "a"}], [{"role": "user", "content": "b"}]
    rows: list[dict[str, Any]] = [
        {"task_id": task, "trial": number, "reward": float(number == 0), "traj": traj}
        for task, number, traj in ((0, 0, said), (0, 1, silent), (7, 1, []))
    ]
    [found] = read_responses(rows)
    assert list(found.responses) == ["a", "", ""]
    assert counts(found) == [[2, 1], [], [1, 0]]


@pytest.mark.parametrize("info", [{"reward": None}, None, "missing"])
def test_a_trial_without_a_reward_stays_with_its_task_and_is_not_counted(info: Any) -> None:
    chat = [{"role": "user", "content": "b"}, {"role": "assistant", "content": "a"}]
    simulations = [
        {"id": f"{task}-{number}", "task_id": task, "trial": number, "reward_info": {"reward": 1.0}, "messages": chat}
        for number in range(2)
        for task in ("0", "1")
    ]
    simulations[3]["reward_info"] = info
    if info == "missing":
        del simulations[3]["reward_info"]
    [rows] = read_responses(simulations)
    assert rows.dialogues is not None
    assert list(rows.dialogues) == ["0", "0", "1", "1"], "two tasks, as before"
    assert counts(rows) == [[2, 2], [], [1, 1], []]
    run = dialeval.evaluate(simulations, metrics="pass-hat-1,pass-hat-2")
    assert run.warnings == ("trials without a reward, which are not counted: 1 of 4",)
    estimate = run["system"]["pass-hat-2"]
    assert (estimate.mean, estimate.units, estimate.scored) == (1.0, 2, 1)


def test_numbers_of_trials_without_any_reward_are_no_trials() -> None:
    with collect_warnings() as notes:
        [rows] = read_responses([trial("x", 0, None), trial("x", 1, None)])
    assert inputs.TRIALS not in rows.columns
    assert not notes


def test_a_reward_alone_is_no_trial() -> None:
    [rows] = read_responses([{"response": "a", "reward": -3.5}])
    assert inputs.TRIALS not in rows.columns


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (trial("x", 0, 1), "trial 0 of x occurs twice"),
        (trial("x", 1, "good"), "reward is a string"),
        (trial("x", 1, float("inf")), "reward is a number"),
        (trial("x", [1], 1), "trial is a list"),
        (trial(None, 1, 1), "is trial 1 of no task"),
    ],
)
def test_problems(bad: dict[str, object], what: str, problems_of: Caught) -> None:
    [problem] = problems_of(lambda: read_responses([trial("x", 0, 1), bad]))
    assert problem.what == what
