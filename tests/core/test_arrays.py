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
from dialeval.core.columns import TextColumn
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


@pytest.mark.parametrize(("size", "most", "is_file"), [(7, 64, False), (8, 64, True), (9, 64, True), (8, None, False)])
def test_from_a_size_on_arrays_lie_in_a_file(size: int, most: int | None, is_file: bool) -> None:
    array = arrays.empty_array((size, 1), np.float64, most)
    assert array.shape == (size, 1)
    assert array.dtype == np.float64
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert (owner is not None) == is_file


def test_a_disk_without_room_is_no_disk_that_cannot_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(os, "posix_fallocate", refused, raising=False)
    with pytest.raises(SettingError) as caught:
        arrays.empty_array((3, 5), np.int32, 1)
    what = "there is no room for 60 bytes of temporary data (File too large)"
    assert str(caught.value) == f"{what}; make room, or set TMPDIR to another folder"


def test_a_column_is_filled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    released: list[int] = []
    monkeypatch.setattr(arrays, "SPILLED_BYTES", 32)
    monkeypatch.setattr(arrays, "release", lambda part: released.append(len(part)))
    assert np.isnan(arrays.make_unscored_column(10)).all()
    assert released == [4, 4, 2]
    assert len(arrays.make_unscored_column(0)) == 0


@dataclass(frozen=True, eq=False)
class Held(arrays.EqualByFields):
    one: Any = 0
    two: Any = 0


@dataclass(frozen=True, eq=False)
class Other(Held):
    pass


@pytest.mark.parametrize(
    ("left", "right", "is_equal"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), True),
        (np.array([1.0, np.nan]), np.array([np.nan, 1.0]), False),
        (np.array([1, 2]), np.array([1, 2]), True),
        (np.array(["a"]), np.array(["a"]), True),
        (np.array([1, 2]), np.array([1]), False),
        (np.array([1]), [1], False),
        ({"a": np.array([1])}, {"a": np.array([1])}, True),
        ({"a": np.array([1])}, {"a": np.array([2])}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": 1}, 1, False),
        (float("nan"), float("nan"), True),
        (TextColumn.from_strings(["a"]), TextColumn.from_strings(["a"]), True),
        (TextColumn.from_strings(["a"]), TextColumn.from_strings(["b"]), False),
    ],
)
def test_values_that_hold_arrays_are_compared(left: Any, right: Any, is_equal: bool) -> None:
    assert arrays.is_equal(left, right) is is_equal
    assert (Held(left) == Held(right)) is is_equal
    assert (Held(0, left) == Held(0, right)) is is_equal
    assert Held(left) != Other(left)
    assert Held(left) != "another type"
    with pytest.raises(TypeError):
        hash(Held())


def test_what_is_derived_is_kept_by_its_key() -> None:
    cache, made = arrays.Cache(), iter(range(9))
    assert [cache.derive(key, lambda: next(made)) for key in ("a", "b", "a", ("a", 1))] == [0, 1, 0, 2]
