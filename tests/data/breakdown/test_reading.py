"""Reading the challenge's data: annotated turns with the labels of detectors."""

from __future__ import annotations

from data.breakdown.challenge import SAMPLE, faults, labelled, log, matrix
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
