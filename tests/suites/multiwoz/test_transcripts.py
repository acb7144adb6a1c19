"""Transcripts are kept for some dialogues: lost ones first, the same for all systems, in the order of the data."""

from __future__ import annotations

import pytest

from dialeval import sample_data
from dialeval.core.result import Run
from dialeval.suites.multiwoz.data import load_task
from dialeval.suites.multiwoz.evaluation import evaluate_task, with_transcripts

TASK = load_task("town")
PREDICTIONS = sample_data.folder() / "town" / "predictions"


@pytest.fixture(scope="module")
def run() -> Run:
    return evaluate_task(PREDICTIONS, TASK)


def test_every_cause_has_an_example_where_there_is_room_for_one_each(run: Run) -> None:
    found = with_transcripts(run, PREDICTIONS, TASK, most=2 * len(TASK.files.turns) - 4).details
    for system, counts in found["failures"].items():
        shown = {cause["cause"] for entry in found["transcripts"][system] for cause in entry["causes"]}
        assert shown == set(counts)


def test_a_turn_says_what_was_offered_and_provided(run: Run) -> None:
    entry = with_transcripts(run, PREDICTIONS, TASK).details["transcripts"]["patient"][0]
    assert entry["domains"][0].keys() == {"domain", "wishes", "asked", "matched", "provided", "complete"}
    assert any("offer" in step for turn in entry["turns"] for step in turn["steps"])
    assert [turn["turn"] for turn in entry["turns"]] == list(range(len(entry["turns"])))
