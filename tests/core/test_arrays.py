"""Mapped arrays give their memory back and keep their content."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from dialeval.core import arrays


def test_released_pages_are_read_again(tmp_path: Path) -> None:
    content = np.random.default_rng(0).integers(0, 256, 1_000_000).astype(np.uint8)
    (tmp_path / "file").write_bytes(content.tobytes())
    with (tmp_path / "file").open("rb") as file:
        data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    for start, stop in ((0, 1_000_000), (5, 400_000), (4096, 4100), (999_999, 1_000_000), (7, 7)):
        arrays.release(data[start:stop])
        assert (data == content).all()


def test_large_columns_lie_in_a_file_and_behave_like_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "SPILLED_BYTES", 1 << 14)
    large, small = arrays.unscored(100_000), arrays.unscored(100)
    assert np.isnan(large).all()
    assert np.isnan(small).all()
    large[5_000:90_000] = np.arange(85_000)
    arrays.release(large[5_000:90_000])
    assert np.nansum(large) == 85_000 * 84_999 / 2
    assert np.isnan(large[:5_000]).all()


def test_ordinary_arrays_are_left_alone() -> None:
    array = np.arange(100_000)
    arrays.release(array)
    assert array.sum() == 100_000 * 99_999 // 2


class Advised(mmap.mmap):
    """A map that notes which pages are given back."""

    def madvise(self, option: int, start: int = 0, length: int | None = None) -> None:
        self.released = (option, start, length)


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="this system takes no such advice")
@pytest.mark.parametrize(
    ("start", "stop", "released"),
    [
        (0, 4, (0, 4)),
        (1, 3, (1, 2)),
        (0.5, 3.5, (1, 2)),
        (0.25, 0.75, None),
        (1.5, 2.5, None),
        (2, 2, None),
    ],
)
def test_only_whole_pages_are_released(start: float, stop: float, released: tuple[int, int] | None) -> None:
    page = mmap.PAGESIZE
    owner = Advised(-1, 4 * page)
    arrays.release(np.frombuffer(owner, np.uint8)[int(start * page) : int(stop * page)])
    expected = None if released is None else (mmap.MADV_DONTNEED, released[0] * page, released[1] * page)
    assert getattr(owner, "released", None) == expected
