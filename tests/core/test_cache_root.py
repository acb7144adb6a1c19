"""Where the cache folder is; that it is made on use is in the tests of `resources.cache`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.core.errors import SettingError
from dialeval.core.files import cache_root


def test_own_variable_comes_first_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DIALEVAL_CACHE", "~/own")
    assert cache_root() == tmp_path / "own"
    assert not (tmp_path / "own").exists()
    monkeypatch.setenv("DIALEVAL_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "dialeval"


def test_without_a_home_folder_one_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: Path("~/.cache/dialeval"))
    monkeypatch.setenv("DIALEVAL_CACHE", "")
    with pytest.raises(SettingError, match="set DIALEVAL_CACHE"):
        cache_root()


def test_the_home_folder_of_nobody_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", "~there_is_no_such_user/x")
    with pytest.raises(SettingError, match="DIALEVAL_CACHE='~there_is_no_such_user/x'"):
        cache_root()
