from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from dialeval import sample_data
from dialeval.core.errors import DataError
from dialeval.suites.sgd import feature
from dialeval.suites.sgd.data import FramePredictions, read_predictions, read_references, read_schema

FRAMES = sample_data.folder() / "frames"
SCHEMA = read_schema(FRAMES / "references" / "schema.json")
TRUE = read_references(FRAMES / "references", SCHEMA)
DIALOGUES: list[Any] = [
    dialogue
    for name in ("dialogues_001.json", "dialogues_002.json")
    for dialogue in json.loads((FRAMES / "references" / name).read_text(encoding="utf-8"))
]


@pytest.fixture
def dialogues() -> list[Any]:
    """The references, to be changed into predictions."""
    return copy.deepcopy(DIALOGUES)


def read(dialogues: Any) -> FramePredictions:
    return read_predictions(dialogues, TRUE, SCHEMA, frozenset({"Inns_1"}), "mine")


def problems_of(dialogues: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read(dialogues)
    return [str(problem) for problem in caught.value.problems]


def test_a_row_is_a_frame_of_the_references(dialogues: list[Any]) -> None:
    found = read(dialogues[::-1])
    rows = found.rows
    assert rows.turns is not None
    names = list(rows.dialogues or ())
    places = list(zip(names, rows.turns.tolist(), [each for [each] in rows.fields["service"]], strict=True))
    assert places[9:13] == [
        ("bay_00004", 0, "Inns_1"),
        ("bay_00004", 0, "Ferries_1"),
        ("bay_00004", 2, "Inns_1"),
        ("bay_00004", 2, "Ferries_1"),
    ]
    assert [value for [value] in rows.fields["domain"]][9:11] == ["Inns", "Ferries"]
    assert [value for [value] in rows.fields["seen"]][9:11] == ["seen", "unseen"]
    assert (found.dialogues, found.frames, found.unknown_slots) == (6, 18, {})
    given, true = (list(rows.columns[need]) for need in (feature.FRAMES, feature.TRUE_FRAMES))
    spans = list(rows.columns[feature.SPANS])
    assert [
        {"service": service, "spans": words, **state}
        for state, words, (_, _, service) in zip(given, spans, places, strict=True)
    ] == true


def test_missing_dialogues_and_turns_at_the_end_are_none(dialogues: list[Any]) -> None:
    dialogues[0]["turns"] = dialogues[0]["turns"][:2]
    found = read(dialogues[:2])
    states = list(found.rows.columns[feature.FRAMES])
    assert [state is not None for state in states] == [True, False, False, *[True] * 4, *[False] * 11]
    assert (found.dialogues, found.frames) == (2, 5)


def test_every_misfit_at_once(dialogues: list[Any]) -> None:
    dialogues[0]["dialogue_id"] = "elsewhere"
    dialogues[1]["turns"].append(dialogues[1]["turns"][0])
    dialogues[2]["turns"][0]["speaker"] = "SYSTEM"
    dialogues[2]["turns"][2]["utterance"] = "What?"
    dialogues[3]["turns"][0]["frames"].pop()
    del dialogues[4]["turns"][0]["frames"][0]["state"]
    assert [problem.partition(";")[0] for problem in problems_of(dialogues)] == [
        "mine: elsewhere: the references have no such dialogue",
        "mine: bay_00002: has 9 turns, and the references have 8",
        "mine: bay_00003[0]: the speaker is 'SYSTEM', and 'USER' in the references",
        "mine: bay_00003[2]: the utterance is not that of the references",
        "mine: bay_00004[0]: has no frame of the service 'Ferries_1'",
        "mine: bay_00005[0]: the frame of 'Eateries_1' has no state",
    ]


def test_many_unknown_dialogues_are_counted(dialogues: list[Any]) -> None:
    found = problems_of([{"dialogue_id": f"x{number}", "turns": []} for number in range(23)])
    assert len(found) == 21
    assert found[-1].startswith("mine: and 3 more dialogues that the references do not have")
    assert len(problems_of([{"dialogue_id": f"x{number}", "turns": []} for number in range(20)])) == 20


def test_references_must_fit_the_schema(dialogues: list[Any]) -> None:
    dialogues[0]["turns"][0]["frames"][0]["service"] = "Moon_1"
    del dialogues[1]["turns"][0]["frames"][0]["state"]
    with pytest.raises(DataError) as caught:
        read_references(dialogues, SCHEMA)
    assert [str(problem).partition(";")[0] for problem in caught.value.problems] == [
        "references: bay_00001[0]: the schema has no service 'Moon_1'",
        "references: bay_00002[0]: the frame of 'Eateries_1' has no state",
    ]
    with pytest.raises(DataError, match="no frame in a turn of USER"):
        read_references([{"dialogue_id": "a", "turns": []}], SCHEMA)
