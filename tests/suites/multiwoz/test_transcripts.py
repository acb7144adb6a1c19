"""Transcripts are kept for some dialogues: lost ones first, the same for all systems, in the order of the data."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dialeval import sample_data
from dialeval.core.result import Run
from dialeval.suites.multiwoz.data import load_task
from dialeval.suites.multiwoz.evaluation import MOST, evaluate_task, with_transcripts

TASK = load_task("town")
PREDICTIONS = sample_data.folder() / "town" / "predictions"


@pytest.fixture(scope="module")
def run() -> Run:
    return evaluate_task(PREDICTIONS, TASK)


@pytest.mark.parametrize("most", [2, 4, 10, MOST])
def test_which_dialogues_are_kept(run: Run, most: int) -> None:
    found = with_transcripts(run, PREDICTIONS, TASK, most=most).details["transcripts"]
    names, others = ([entry["dialogue"] for entry in found[system]] for system in ("patient", "hasty"))
    order = list(TASK.files.turns)
    assert others == [name for name in names if name != "town08"], "which hasty does not give"
    assert names == sorted(names, key=order.index)
    assert len(names) == min(len(order), max(1, most // 2))
    everything = with_transcripts(run, PREDICTIONS, TASK).details["transcripts"]
    lost = {entry["dialogue"] for entries in everything.values() for entry in entries if entry["causes"]}
    assert set(names) <= lost or lost <= set(names)


def test_every_cause_has_an_example_where_there_is_room_for_one_each(run: Run) -> None:
    found = with_transcripts(run, PREDICTIONS, TASK, most=2 * len(TASK.files.turns) - 4).details
    for system, counts in found["failures"].items():
        shown = {cause["cause"] for entry in found["transcripts"][system] for cause in entry["causes"]}
        assert shown == set(counts)


def test_the_user_speaks_before_each_turn(run: Run) -> None:
    users = json.loads((sample_data.folder() / "town" / "user_turns.json").read_text())
    for entries in with_transcripts(run, PREDICTIONS, TASK).details["transcripts"].values():
        for entry in entries:
            assert [turn["user"] for turn in entry["turns"]] == users[entry["dialogue"]][: len(entry["turns"])]
    without = replace(TASK, files=replace(TASK.files, users=None))
    entry = with_transcripts(run, PREDICTIONS, without).details["transcripts"]["patient"][0]
    assert {turn["user"] for turn in entry["turns"]} == {None}


def test_a_turn_says_what_was_offered_and_provided(run: Run) -> None:
    entry = with_transcripts(run, PREDICTIONS, TASK).details["transcripts"]["patient"][0]
    assert entry["domains"][0].keys() == {"domain", "wishes", "asked", "matched", "provided", "complete"}
    assert any("offer" in step for turn in entry["turns"] for step in turn["steps"])
    assert [turn["turn"] for turn in entry["turns"]] == list(range(len(entry["turns"])))


def test_responses_are_as_the_system_gave_them(run: Run) -> None:
    for system, entries in with_transcripts(run, PREDICTIONS, TASK).details["transcripts"].items():
        given = json.loads((PREDICTIONS / f"{system}.json").read_text())
        for entry in entries:
            responses = [turn["response"] for turn in entry["turns"]]
            assert responses == [turn["response"] for turn in given[entry["dialogue"]]]
