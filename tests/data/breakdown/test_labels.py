from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from data.breakdown.challenge import faults, labelled, log, matrix, write
from dialeval.core.errors import SettingError
from dialeval.data.breakdown.reading import read


def test_labels_for_unannotated_turns_shift_nothing_unless_matched_by_position() -> None:
    labels = labelled("d1", (0, "T", (0, 1, 0)), (2, "O", (1, 0, 0)), (4, "X", (0, 0, 1)))
    found = read([log()], [labels])
    assert matrix(found)[:, 0].tolist() == [0.0, 2.0]
    assert "MATCHING MATTERS" in found.warnings[0]
    assert "entries that belong to no annotated turn: 1;" in found.warnings[1]
    shifted = read([log()], [labels], match="position")
    assert matrix(shifted)[:, 0].tolist() == [1.0, 0.0]
    assert "Leave --match position out" in shifted.warnings[0]
    with pytest.raises(SettingError, match="by turn-index or by position"):
        read([log()], [labels], match="name")  # type: ignore[arg-type]


def test_every_fault_of_every_file_at_once(tmp_path: Path) -> None:
    data, labels = tmp_path / "data", tmp_path / "labels"
    good = labelled()["turns"]
    for number in range(1, 11):
        write(data, f"d{number}.log.json", log(f"d{number}"))
    write(labels, "d1.labels.json", labelled("d2"))
    write(labels, "d2.labels.json", {"dialogue-id": "d2", "turns": good[:1]})
    write(labels, "d3.labels.json", labelled("d3", (2, "o", (1, 0, 0)), (4, "X", (0.9, 0.9, 0.9))))
    write(labels, "d4.labels.json", labelled("d4", (2, "O", (-0.5, 1, 0.5)), (4, "X", (float("nan"), 0, 1))))
    write(labels, "d5.labels.json", "{broken")
    write(labels, "d6.labels.json", {"dialogue-id": "d6", "turns": [*good, good[0]]})
    write(labels, "d7.labels.json", labelled("d7", (2, "O", ("a", 0, 1)), (4, "X", (0, 0, 1))))
    write(labels, "d8.labels.json", {"dialogue-id": "d8", "turns": [{"turn-index": 2, "labels": []}, good[1]]})
    write(labels, "d9.labels.json", "[" * 100_000)
    found = faults(data, labels)
    expected = [
        ("d1", "holds the labels of the dialogue 'd2', not 'd1'"),
        ("d2", "turn 4: no labels (1 entries for 2 annotated turns)"),
        ("d5", "not JSON"),
        ("d6", "turn 2: labels more than once"),
        ("d8", "entry 0: no labels"),
        ("d9", "not JSON"),
        ("labels", "there are no labels for the dialogue 'd10'"),
        ("d3", "turn 2: the label is none of O, T and X"),
        ("d4", "turns 2, 4: a probability is below 0 or not finite (first: -0.5, 1, 0.5)"),
        ("d7", "turn 2: a probability is below 0 or not finite"),
        ("d3", "turn 4: the probabilities do not add up to 1 (first: 0.9, 0.9, 0.9)"),
    ]
    assert len(found) == len(expected)
    for place, what in expected:
        assert any(what in fault and place in fault.split(": ")[0] for fault in found), what
    lenient = read(data, labels, lenient=True)
    assert len(lenient.warnings) >= 9
    assert "labels other than O, T, X: in 1 file (1 turn); counted as wrong" in lenient.warnings
    codes = matrix(lenient)[:, 0].reshape(-1, 2)
    by_name = dict(zip(lenient.annotated.dialogues, codes.tolist(), strict=True))
    assert by_name["d1"] == [0.0, 2.0]
    assert by_name["d3"] == [3.0, 2.0]
    assert by_name["d2"][0] == 0.0
    assert np.isnan(by_name["d2"][1])
    assert all(np.isnan(by_name[name]).all() for name in ("d5", "d9", "d10"))


def test_of_several_labels_the_first_counts_whatever_the_others_are() -> None:
    labels = labelled()
    labels["turns"][0]["labels"] += [None, {"breakdown": "X"}]
    labels["turns"].append("no entry")
    labels["\ud800"] = labels["turns"][1]["\ud800"] = labels["turns"][1]["labels"][0]["\ud800"] = 1
    found = read([log()], [labels], match="position", lenient=True)
    assert matrix(found).tolist() == [[0.0, 0.7, 0.2, 0.1], [2.0, 0.0, 0.0, 1.0]]
    assert "labels: turns with several labels: 1; the first counts" in found.warnings
