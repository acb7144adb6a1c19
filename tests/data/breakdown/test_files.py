from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from data.breakdown.challenge import SAMPLE, faults, labelled, log, write
from dialeval.core.errors import DataError
from dialeval.core.needs import Need
from dialeval.data.breakdown.files import open_logs
from dialeval.data.breakdown.reading import read


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


def test_hidden_files_are_no_dialogues(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write(folder, "d1.log.json", log())
    write(folder, "._d1.log.json", "what another system keeps beside a file")
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as archive:
        archive.add(folder, "data")
    for source in (folder, tmp_path / "data.tar.gz"):
        assert read(source, [labelled()]).annotated.dialogues == ["d1"]


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


def test_a_device_is_no_dialogue(tmp_path: Path) -> None:
    (tmp_path / "a.log.json").symlink_to("/dev/zero")
    (store,) = open_logs(tmp_path)
    with pytest.raises(DataError, match="is a device"):
        list(store.documents())
