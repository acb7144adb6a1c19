"""A file is replaced whole or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dialeval.core.errors import DataError
from dialeval.core.files import check_writable, replacing, write_bytes


def test_the_old_file_stays_when_writing_fails(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target) as beside:
        beside.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("x")
    write_bytes(tmp_path / "sub" / "file", b"new")
    assert (tmp_path / "sub" / "file").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "sub" / "file").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_a_folder_is_tried_without_a_trace(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "folder")
    check_writable(tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(DataError, match="cannot be written"):
            check_writable(wrong)
