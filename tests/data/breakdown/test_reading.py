"""Reading the challenge's data: both layouts, matching, and every fault at once."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval import sample
from dialeval.core.errors import DataError, SettingError
from dialeval.core.needs import Need
from dialeval.data.breakdown.reading import BreakdownData, read

SAMPLE = sample.folder() / "breakdown"


def log(dialogue: str = "d1", *turns: tuple[int, str]) -> dict[str, Any]:
    """A dialogue whose system turns have the given labels as annotations."""
    made = [
        {"turn-index": index, "speaker": "S", "annotations": [{"breakdown": label} for label in labels]}
        for index, labels in turns or ((0, ""), (2, "OOT"), (4, "XXX"))
    ]
    return {"dialogue-id": dialogue, "turns": [*made, {"turn-index": 9, "speaker": "U", "annotations": []}]}


def labelled(dialogue: str = "d1", *entries: tuple[object, str, Any]) -> dict[str, Any]:
    made = [
        {"turn-index": index, "labels": [{"breakdown": label, "prob-O": p[0], "prob-T": p[1], "prob-X": p[2]}]}
        for index, label, p in entries or ((2, "O", (0.7, 0.2, 0.1)), (4, "X", (0.0, 0.0, 1.0)))
    ]
    return {"dialogue-id": dialogue, "turns": made}


def matrix(found: BreakdownData, need: Need = Need.LABELS) -> Any:
    return found.systems[0].columns[need].matrix  # type: ignore[union-attr]


def faults(*arguments: Any, **more: Any) -> list[str]:
    with pytest.raises(DataError) as caught:
        read(*arguments, **more)
    return [str(fault) for fault in caught.value.faults]


def write(folder: Path, name: str, content: object) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))


def test_annotated_turns_become_rows() -> None:
    found = read([log()], [labelled()])
    assert matrix(found).tolist() == [[0.0, 0.7, 0.2, 0.1], [2.0, 0.0, 0.0, 1.0]]
    assert matrix(found, Need.ANNOTATIONS).tolist() == [[2.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    rows = found.systems[0]
    assert (rows.system, rows.turns.tolist()) == ("labels", [2, 4])  # type: ignore[union-attr]
    assert list(rows.dialogues or []) == ["d1", "d1"]
    assert found.warnings == []


def test_folder_jsonl_and_archive_are_the_same(tmp_path: Path) -> None:
    for kind, ending in (("data", "log"), ("keywords", "labels")):
        lines = [json.dumps(json.loads(path.read_text())) for path in sorted((SAMPLE / kind).glob(f"*.{ending}.json"))]
        (tmp_path / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
        (tmp_path / f"{kind}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        archive.add(SAMPLE, "sample")
    folder = read(SAMPLE / "data", SAMPLE / "keywords")
    packed = read(tmp_path / "all.tar.gz", tmp_path / "all.tar.gz")
    assert [rows.system for rows in packed.systems] == ["cautious", "keywords"]
    others = [read(tmp_path / f"data.jsonl{end}", tmp_path / f"keywords.jsonl{end}") for end in ("", ".gz")]
    for other in (*(found.systems[0] for found in others), packed.systems[1]):
        assert (other.system, len(other)) == ("keywords", 16)
        for need in (Need.LABELS, Need.ANNOTATIONS):
            assert other.columns[need].digest == folder.systems[0].columns[need].digest


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


def test_faults_of_the_dialogues(tmp_path: Path) -> None:
    data = tmp_path / "data"
    bad = log("d1")
    del bad["turns"][0]["annotations"]
    write(data, "a.log.json", bad)
    write(data, "b.log.json", "[]")
    write(data, "c.log.json", log("d3", (2, "??")))
    write(data, "d.log.json", log("d4"))
    write(data, "e.log.json", log("d4"))
    write(data, "f.log.json", {**log(), "dialogue-id": 5})
    found = faults(data, [labelled("d3", (2, "O", (1, 0, 0))), labelled("d4")])
    for what in (
        "is no annotated dialogue: Object missing required field `annotations` - at `$.turns[0]`",
        "is no annotated dialogue: Expected `object`, got `array`",
        "turn 2: no annotation is O, T or X",
        "is also in",
        "is no annotated dialogue: Expected `str`, got `int` - at `$.dialogue-id`",
    ):
        assert any(what in fault for fault in found), what
    lenient = read(data, [labelled("d3", (2, "O", (1, 0, 0))), labelled("d4")], lenient=True)
    assert lenient.annotated.dialogues == ["d3", "d4", "d4"]


def test_a_dialogue_id_leads_out_of_no_folder(tmp_path: Path) -> None:
    write(tmp_path, "secret.labels.json", labelled("../secret"))
    write(tmp_path / "data", "a.log.json", log("../secret"))
    write(tmp_path / "labels", "other.labels.json", labelled("other"))
    assert "there are no labels for the dialogue '../secret'" in faults(tmp_path / "data", tmp_path / "labels")[0]


def archive_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def test_archives_are_not_trusted(tmp_path: Path) -> None:
    link = tarfile.TarInfo("data/d1.log.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    path = archive_of(tmp_path / "link.tar.gz", (link, b""))
    assert "link or a device" in faults(path, [labelled()])[0]
    bomb = archive_of(tmp_path / "bomb.tar.gz", (tarfile.TarInfo("x.bin"), bytes(40 << 20)))
    assert "far more than it should" in faults(bomb, [labelled()])[0]
    twice = [(tarfile.TarInfo("data/d1.log.json"), json.dumps(log()).encode()) for _ in range(2)]
    assert "twice" in faults(archive_of(tmp_path / "twice.tar.gz", *twice), [labelled()])[0]
    (tmp_path / "broken.tar.gz").write_bytes(b"\x1f\x8b nothing")
    assert "is damaged" in faults(tmp_path / "broken.tar.gz", [labelled()])[0]
    assert "no such file or folder" in faults(tmp_path / "nowhere", [labelled()])[0]


def test_names_of_detectors() -> None:
    found = read([log()], {"mine": [labelled()], "theirs": [labelled()]})
    assert [rows.system for rows in found.systems] == ["mine", "theirs"]
    both = faults(SAMPLE / "data", [SAMPLE / "keywords", SAMPLE / "keywords"])
    assert "the detector 'keywords' is also in" in both[0]
    assert "cannot read labels from int" in faults([log()], 5)[0]
    assert "holds no dialogue" in faults([], [labelled()])[0]
