"""Reading the challenge's data: annotated turns with the labels of detectors."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from data.breakdown.challenge import SAMPLE, faults, labelled, log, matrix, write
from dialeval.core.errors import DataError
from dialeval.core.needs import Need
from dialeval.data.breakdown.reading import read


def test_annotated_turns_become_rows() -> None:
    found = read([log()], [labelled()])
    assert matrix(found).tolist() == [[0.0, 0.7, 0.2, 0.1], [2.0, 0.0, 0.0, 1.0]]
    assert matrix(found, Need.ANNOTATIONS).tolist() == [[2.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    rows = found.systems[0]
    assert (rows.system, rows.turns.tolist()) == ("labels", [2, 4])  # type: ignore[union-attr]
    assert list(rows.dialogues or []) == ["d1", "d1"]
    assert found.warnings == []


def test_names_of_detectors() -> None:
    found = read([log()], {"mine": [labelled()], "theirs": [labelled()]})
    assert [rows.system for rows in found.systems] == ["mine", "theirs"]
    both = faults(SAMPLE / "data", [SAMPLE / "keywords", SAMPLE / "keywords"])
    assert "the detector 'keywords' is also in" in both[0]
    assert "cannot read labels from int" in faults([log()], 5)[0]
    assert "holds no dialogue" in faults([], [labelled()])[0]


Row = tuple[list[int], list[float]]
"""The O, T and X of a turn, and the code and probabilities of its label."""


def by_the_original(dialogue: Any, labels: Any) -> list[Row]:
    """What the challenge's eval.py takes from two parsed documents; whatever it raises is raised."""
    rows: list[Row] = []
    "folder/" + dialogue["dialogue-id"]
    for turn in dialogue["turns"]:
        if turn["speaker"] == "U" or turn["annotations"] == []:
            continue
        judged = [each["breakdown"] for each in turn["annotations"]]
        counts = [judged.count(label) for label in "OTX"]
        assert sum(counts)  # it divides by this
        label = labels["turns"][len(rows)]["labels"][0]
        probabilities = [float(label[f"prob-{name}"]) for name in "OTX"]
        code = ["O", "T", "X"].index(label["breakdown"]) if label["breakdown"] in ["O", "T", "X"] else 3
        rows.append((counts, [code, *probabilities]))
    return rows


odd = st.sampled_from(
    ["S", "U", "B", "X", "o", "", "0.25", " 1e-3 ", "2", 0, 2, -1, 1.5, 1 << 70, True, None, [], {}, [None], {"a": 1}]
)


def changed(data: Any, document: Any) -> Any:
    """A document with one to three of its parts replaced, removed or repeated."""
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        place, depth = document, data.draw(st.integers(0, 5))
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(keys))
            if depth > 0 and isinstance(place[key], dict | list) and place[key]:
                place, depth = place[key], depth - 1
                continue
            how = data.draw(st.sampled_from(["replaced", "removed", "repeated"]))
            if how == "removed":
                del place[key]
            elif how == "repeated" and isinstance(place, list):
                place.insert(0, copy.deepcopy(place[key]))
            else:
                place[key] = copy.deepcopy(data.draw(odd))
            break
    return document


@given(st.data())
@settings(max_examples=300)
def test_by_position_and_lenient_all_that_the_original_evaluates_is_read_as_it_reads_it(data: Any) -> None:
    dialogue, labels = log(), labelled()
    if data.draw(st.booleans()):
        dialogue = changed(data, dialogue)
    if data.draw(st.booleans()):
        labels = changed(data, labels)
    try:
        expected = by_the_original(dialogue, labels)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AssertionError):
        event("the original ends")
        expected = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, "d1.log.json", dialogue)
        write(folder, f"{dialogue['dialogue-id'] if expected is not None else 'd1'}.labels.json", labels)
        try:
            found = read(folder, folder, match="position", lenient=True)
        except DataError:
            assert expected is None  # a fault, never anything else
            return
    if expected is not None:
        assert matrix(found, Need.ANNOTATIONS).tolist() == [counts for counts, _ in expected]
        np.testing.assert_array_equal(matrix(found), np.reshape([row for _, row in expected], (-1, 4)))
