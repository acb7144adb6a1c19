"""A file is replaced whole or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dialeval.core.files import replacing, write_bytes


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
