from __future__ import annotations

import errno
from pathlib import Path

import pytest

from dialeval.core.errors import SettingError
from dialeval.core.files import build_folder

pytestmark = pytest.mark.usefixtures("cache")


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
