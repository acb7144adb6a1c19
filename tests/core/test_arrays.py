"""Mapped arrays give their memory back and keep their content."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import arrays
from dialeval.core.arrays import offsets_of, ranges, row_numbers, split_clusters
from dialeval.core.errors import SettingError


def test_released_pages_are_read_again(tmp_path: Path) -> None:
    content = np.random.default_rng(0).integers(0, 256, 1_000_000).astype(np.uint8)
    (tmp_path / "file").write_bytes(content.tobytes())
    with (tmp_path / "file").open("rb") as file:
        data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    for start, stop in ((0, 1_000_000), (5, 400_000), (4096, 4100), (999_999, 1_000_000), (7, 7)):
        arrays.release(data[start:stop])
        assert (data == content).all()


_ON_A_FULL_DISK = """
from dialeval.core import arrays
arrays.SPILLED_BYTES = 1
try:
    arrays.make_unscored_column(1 << 20)
except arrays.SettingError as error:
    print(error)
"""


def test_a_full_temporary_folder_is_an_error_and_not_the_end_of_the_process(tmp_path: Path) -> None:
    """On a real disk of 1 MB, where the system lets us make one."""
    mounted = f"mount -t tmpfs -o size=1m small {tmp_path}"
    alone = [shutil.which("unshare") or "unshare", "-rm", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*alone, mounted], check=False).returncode:
        pytest.skip("this system lets nobody make a small disk")
    command = f'{mounted} && TMPDIR={tmp_path} exec "$0" -c "$1"'
    words = [*alone, command, sys.executable, _ON_A_FULL_DISK]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, "SIGBUS before places were reserved"
    assert "no room for 8388608 bytes of temporary data (No space left on device)" in done.stdout
    assert "set TMPDIR" in done.stdout


def test_no_room_is_said_wherever_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(arrays, "SPILLED_BYTES", 1)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(SettingError, match=r"no room for 800 bytes.*set TMPDIR"):
        arrays.empty_array((100,), np.float64)


@pytest.mark.parametrize("size", [1, 100, (1 << 20) + 1])
def test_where_no_place_can_be_reserved_zeros_are_written(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    def unable(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    written: list[int] = []
    write = os.write

    def half(file: int, data: bytes) -> int:
        written.append(write(file, data[: 1 << 19]))
        return written[-1]

    monkeypatch.setattr(arrays, "SPILLED_BYTES", 1)
    monkeypatch.setattr(os, "posix_fallocate", unable, raising=False)
    monkeypatch.setattr(os, "write", half)
    array = arrays.empty_array((size,), np.uint8)
    assert array.shape == (size,)
    assert not array.any()
    assert sum(written) == size


# Ragged arrays against loops over lists.

rows = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)))


@given(rows)
def test_as_loops(made: list[tuple[int, int]]) -> None:
    starts, lengths = (np.array([row[side] for row in made], np.int64) for side in (0, 1))
    offsets = offsets_of(lengths)
    assert offsets.tolist() == offsets_of(length for _, length in made).tolist()
    assert offsets.tolist() == [sum(length for _, length in made[:row]) for row in range(len(made) + 1)]
    assert row_numbers(offsets).tolist() == [row for row, (_, length) in enumerate(made) for _ in range(length)]
    assert ranges(starts, lengths).tolist() == [start + k for start, length in made for k in range(length)]


@given(st.lists(st.integers(0, 5), max_size=15), st.integers(1, 12))
def test_cut_as_a_loop(lengths: list[int], most: int) -> None:
    expected: list[tuple[int, int]] = []
    first = 0
    while first < len(lengths):
        last = first + 1
        while last < len(lengths) and sum(lengths[first : last + 1]) <= most:
            last += 1
        expected.append((first, last))
        first = last
    assert list(split_clusters(offsets_of(lengths), most)) == expected
