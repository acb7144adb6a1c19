"""Reading the challenge's data: annotated turns with the labels of detectors."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from data.breakdown.challenge import SAMPLE, by_the_original, faults, labelled, log, matrix, write
from dialeval.core.errors import DataError
from dialeval.core.needs import Need
from dialeval.data.breakdown.reading import read
from golden import mutations


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
    assert "labels: name no detector" in faults([log()], {}, lenient=True)[0]
    assert "cannot read annotated dialogues from dict" in faults(log(), [labelled()])[0]


@given(st.data())
@settings(max_examples=300)
def test_by_position_and_lenient_all_that_the_original_evaluates_is_read_as_it_reads_it(data: Any) -> None:
    dialogue, labels = log(), labelled()
    if data.draw(st.booleans()):
        dialogue = data.draw(mutations.document(dialogue))
    if data.draw(st.booleans()):
        labels = data.draw(mutations.document(labels))
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
