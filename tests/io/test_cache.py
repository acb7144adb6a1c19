from __future__ import annotations

import errno
import hashlib
from pathlib import Path

import pytest

from dialeval.core.errors import SettingError
from dialeval.core.files import build_folder, cache_folder, discard, sha256_of

pytestmark = pytest.mark.usefixtures("cache")


def test_own_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder("a", "b") == tmp_path / "own" / "a" / "b"
    assert (tmp_path / "own" / "a" / "b").is_dir()


def test_xdg_comes_second_and_home_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DIALEVAL_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "dialeval"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "dialeval"


def test_a_folder_that_cannot_be_made_is_a_setting_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "file"))
    with pytest.raises(SettingError, match="DIALEVAL_CACHE"):
        cache_folder("packs")


def test_built_folder_appears_whole(cache: Path) -> None:
    target = cache / "x" / "y"
    with build_folder(target) as folder:
        (folder / "a").write_text("1")
        assert not target.exists()
    assert (target / "a").read_text() == "1"
    assert [path.name for path in target.parent.iterdir()] == ["y"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_broken_off_build_leaves_nothing(cache: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), build_folder(cache / "x" / "y") as folder:
        (folder / "a").write_text("1")
        raise error
    assert list((cache / "x").iterdir()) == []


def test_who_comes_second_keeps_the_first(cache: Path) -> None:
    with build_folder(cache / "y") as mine:
        (mine / "a").write_text("mine")
        with build_folder(cache / "y") as other:
            (other / "a").write_text("other")
    assert (cache / "y" / "a").read_text() == "other"


def test_full_disk_says_what_to_do(cache: Path) -> None:
    with pytest.raises(SettingError, match="make room"), build_folder(cache / "y"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(PermissionError), build_folder(cache / "y"):  # of some other file: not explained away
        raise PermissionError(errno.EACCES, "Permission denied")


def test_discard(cache: Path) -> None:
    (cache / "y").mkdir()
    (cache / "y" / "a").write_text("1")
    discard(cache / "y")
    discard(cache / "y")
    assert list(cache.iterdir()) == []


def test_sha256(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9000
    (tmp_path / "a").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    assert sha256_of(tmp_path / "a") == digest
    twice = hashlib.sha256((digest + digest).encode()).hexdigest()
    assert sha256_of(tmp_path / "a", tmp_path / "a") == twice
