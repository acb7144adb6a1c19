"""Utterances of a few dialogues, read again from wherever they were read before."""

from __future__ import annotations

import gzip
import json
import tarfile
from typing import TYPE_CHECKING

import pytest

from dialeval import sample
from dialeval.data.breakdown import logs
from dialeval.data.breakdown.faults import Findings
from dialeval.data.breakdown.logs import read_logs
from dialeval.data.breakdown.utterances import Utterance, utterances

if TYPE_CHECKING:
    from pathlib import Path

DATA = sample.folder() / "breakdown" / "data"
NAMES = ["library-hours", "tin-teapot"]
DOCUMENTS = {path.name.removesuffix(".log.json"): json.loads(path.read_text()) for path in sorted(DATA.iterdir())}
WANTED = {
    name: [(turn["turn-index"], turn["speaker"] == "U", turn["utterance"]) for turn in DOCUMENTS[name]["turns"]]
    for name in NAMES
}


@pytest.mark.parametrize("kind", ["folder", "jsonl", "tar.gz", "parsed", "generator"])
def test_the_turns_of_chosen_dialogues_are_read_again(kind: str, tmp_path: Path) -> None:
    source: object = DATA
    if kind == "jsonl":
        source = tmp_path / "logs.jsonl.gz"
        (tmp_path / "logs.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, DOCUMENTS.values())).encode()))
    elif kind == "tar.gz":
        source = tmp_path / "logs.tar.gz"
        with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
            archive.add(DATA, "data")
    elif kind != "folder":
        source = list(DOCUMENTS.values()) if kind == "parsed" else (each for each in DOCUMENTS.values())
    annotated = read_logs(source, Findings(False))  # type: ignore[arg-type]
    assert annotated.dialogues == list(DOCUMENTS)
    assert utterances(annotated, NAMES) == WANTED


def test_a_skimmed_folder_is_read_again_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "SKIMMED_FILES", 1)
    assert utterances(read_logs(DATA, Findings(False)), NAMES) == WANTED


def test_turns_without_a_text_are_left_out_and_halves_of_characters_written_out() -> None:
    judged = {"speaker": "S", "annotations": [{"breakdown": "O"}]}
    turns = [{**judged, "turn-index": 1, "utterance": "half \ud800"}, {**judged, "utterance": 7}, judged]
    annotated = read_logs([{"dialogue-id": "d", "turns": turns}], Findings(True))
    assert utterances(annotated, ["d"]) == {"d": [Utterance(1, False, "half \\ud800")]}


def test_a_file_that_is_gone_has_no_texts(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.log.json").write_text(json.dumps(DOCUMENTS[name]))
    annotated = read_logs(tmp_path, Findings(False))
    for path in list(tmp_path.iterdir()):
        path.unlink()
    assert utterances(annotated, NAMES) == {}
