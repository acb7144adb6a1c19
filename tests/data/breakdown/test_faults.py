"""Faults of the challenge's files: all at once where reading is strict, counted by kind where it is lenient."""

from __future__ import annotations

import pytest

from dialeval.core.errors import DataError, Fault
from dialeval.data.breakdown.faults import MISSING_TURNS, UNKNOWN_LABEL, Findings, named_turns


def findings(lenient: bool) -> Findings:
    found = Findings(lenient)
    found.add(MISSING_TURNS, "a.json", None, "no label for turn 3", turns=1)
    found.add(MISSING_TURNS, "b.json", 7, "no label for turns 1, 5", turns=2)
    found.add(UNKNOWN_LABEL, "c.json", None, "is not JSON")
    found.remarks.append("a remark")
    return found


def test_strict_reading_raises_every_fault() -> None:
    with pytest.raises(DataError) as caught:
        findings(lenient=False).warnings()
    assert [(fault.where, fault.line) for fault in caught.value.faults] == [
        ("a.json", None),
        ("b.json", 7),
        ("c.json", None),
    ]
    assert caught.value.faults[0].remedy == MISSING_TURNS.remedy


def test_lenient_reading_counts_files_and_turns() -> None:
    assert findings(lenient=True).warnings() == [
        "annotated turns without labels: in 2 files (3 turns); not scored",
        "labels other than O, T, X: in 1 file; counted as wrong",
        "a remark",
    ]
    one = Findings(lenient=True)
    one.add(MISSING_TURNS, "a.json", None, "no label for turn 3", turns=1)
    assert one.warnings() == ["annotated turns without labels: in 1 file (1 turn); not scored"]


def test_some_faults_are_never_only_counted() -> None:
    found = findings(lenient=True)
    found.refuse(Fault("detector", None, "is not there", "check the path"))
    with pytest.raises(DataError) as caught:
        found.warnings()
    assert len(caught.value.faults) == 4


def test_an_error_is_placed_on_its_own_line() -> None:
    error = DataError(Fault("x", 4, "is not JSON", "mend it"))
    found = Findings()
    found.add_error(UNKNOWN_LABEL, "lines.jsonl", 9, error)
    found.add_error(UNKNOWN_LABEL, "a.json", None, error)
    assert [fault.line for fault in found.faults] == [9, 4]


@pytest.mark.parametrize(
    ("turns", "shown"),
    [
        ([4], "turn 4"),
        ([4, 6], "turns 4, 6"),
        (list(range(12)), "turns 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"),
        (list(range(13)), "turns 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 1 more"),
    ],
)
def test_many_turns_are_cut_short(turns: list[int], shown: str) -> None:
    assert named_turns(turns) == shown
