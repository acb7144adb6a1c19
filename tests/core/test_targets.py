"""Files that would be overwritten are refused before long work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dialeval.core.errors import DataError
from dialeval.core.files import check_file, check_files, check_writable, refuse_inputs


def test_a_folder_is_tried_without_a_trace(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "folder")
    check_writable(tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(DataError, match="cannot be written"):
            check_writable(wrong)
    with pytest.raises(DataError, match="cannot be written"):
        check_file(tmp_path / "file" / "new")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(tmp_path)
    check_writable(tmp_path / "link")
    for link in (tmp_path / "dangling", tmp_path / "dangling" / "folder"):
        with pytest.raises(DataError, match="dangling: is a link to"):
            check_writable(link)
    with pytest.raises(DataError, match="dangling: is a link to"):
        check_file(tmp_path / "dangling")
    with pytest.raises(DataError, match=r"cannot be written \(is a folder\)"):
        check_file(tmp_path)
    check_file(None)
    check_file(Path(os.devnull))


def test_inputs_are_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("rows.jsonl", "a b.txt", "other"):
        Path(name).write_text("x")
    Path("link").symlink_to("rows.jsonl")
    os.link("rows.jsonl", "hard")
    Path("folder").mkdir()
    Path("folder", "x").write_text("x")
    target = tmp_path / "rows.jsonl"
    for given in ("rows.jsonl", "*.jsonl", "./**/rows.*", "link", "hard", {"a": "other", "b": Path("rows.jsonl")}):
        with pytest.raises(DataError, match=r"rows\.jsonl: would be overwritten, but it is an input"):
            refuse_inputs([target], None, given)
        with pytest.raises(DataError, match="is an input"):
            check_file(target, ("other", given))
    with pytest.raises(DataError, match="is an input"):
        refuse_inputs([Path("a b.txt")], f"file://{tmp_path}/a%20b.txt")
    with pytest.raises(DataError, match=r"is an input \(folder\)"):
        refuse_inputs([Path("folder/x")], "folder")
    for other in ("other", "s3://bucket/rows.jsonl", "glove-6b", ["rows.jsonl"], "x" * 5000, "a\0b", 3, "folder"):
        refuse_inputs([target, tmp_path / "new", Path("folder", "deep", "x")], other)


def test_files_of_others_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    (tmp_path / "yours").write_text("x")
    check_files(tmp_path, ["mine", "new"], lambda _folder: {"mine"})
    with pytest.raises(DataError) as error:
        check_files(tmp_path, ["mine", "yours", "new"], lambda _folder: {"mine"})
    assert [problem.where for problem in error.value.problems] == [str(tmp_path / "yours")]
    with pytest.raises(DataError, match="is an input"):
        check_files(tmp_path, ["mine"], lambda _folder: {"mine"}, tmp_path / "mine")


def test_many_files_and_many_inputs_are_looked_at_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets, inputs = [tmp_path / f"part-{at}" for at in range(50)], tmp_path / "inputs"
    inputs.mkdir()
    for file in (*targets, *(inputs / f"{at}.jsonl" for at in range(60))):
        file.touch()
    looked, plain = 0, Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        nonlocal looked
        looked += 1
        return plain(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    refuse_inputs(targets, f"{inputs}/*.jsonl")
    assert looked < 4 * (50 + 60)
