"""Kernels loaded as machine code give what numba gives, for all that they may be called with."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.some_kernels import SOURCE, some_kernels
from dialeval.core import kernels
from dialeval.core import kernels as kernel_files
from dialeval.core.kernels import count_ones, load8, trailing_zeros

ARRAYS = [
    np.arange(6.0),
    np.arange(12.0)[::2],
    np.arange(6, dtype=np.int32),
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.frombuffer(bytes(8) + np.arange(4.0).tobytes(), np.uint8)[4:36],
    np.array([True, False]),
    np.zeros(0),
]


def by_numba(name: str, *arguments: Any) -> Any:
    """What the function of the module gives, as numba calls it."""
    return getattr(import_module("some_kernel"), name).dispatcher(*arguments)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}{array.strides}")
def test_arrays_of_every_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, array: Any) -> None:
    for _ in ("compiled", "loaded"):
        kernel = some_kernels(tmp_path, monkeypatch)
        found = kernel.total((array, array), 0.5)
        assert (found, type(found)) == (float(array.sum()), float)
        assert found == by_numba("total", (array, array), 0.5)
        if array.ndim == 1 and array.size and array.dtype != np.bool_:
            assert kernel.ends(array) == by_numba("ends", array)
            assert [type(each) for each in kernel.ends(array)][1:] == [bool, int]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        yield some_kernels(tmp_path_factory.mktemp("shared"), patch)


@given(left=st.lists(st.floats(allow_nan=False), max_size=20))
def test_what_a_kernel_writes_is_there(kernel: Any, left: list[float]) -> None:
    both = np.full(len(left), np.nan)
    assert kernel.add(np.array(left), np.ones(len(left)), both) is None
    np.testing.assert_array_equal(both, np.array(left) + 1)


@pytest.mark.parametrize(
    ("one", "other"), [(3, 4), (-3, 2), (2.5, 1.0), (np.int32(3), 2), (np.uint64(2**63), np.uint64(1)), (True, False)]
)
def test_numbers_of_every_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: Any, other: Any) -> None:
    kernel = some_kernels(tmp_path, monkeypatch)
    found = kernel.larger(one, other)
    assert (found, type(found)) == (by_numba("larger", one, other), type(by_numba("larger", one, other)))


def test_what_kernels_do_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = some_kernels(tmp_path, monkeypatch)
    with pytest.raises(OverflowError, match="more than 64 bits"):
        kernel.times_three(1 << 63)
    with pytest.raises(TypeError, match="takes no str"):
        kernel.times_three("three")
    with pytest.raises(AttributeError):
        kernel.four(4)


def test_a_kernel_that_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = some_kernels(tmp_path, monkeypatch)
    assert kernel.ratio(7, 2) == 3
    with pytest.raises(RuntimeError, match="status"):
        kernel.ratio(7, 0)


def test_threads_share_one_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = some_kernels(tmp_path, monkeypatch)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(kernel.times_three, range(64))) == [3 * number for number in range(64)]
    assert kernel.times_three.compiled == 1


def test_code_that_cannot_be_loaded_is_left_to_numba(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such processor")

    kernel = some_kernels(tmp_path, monkeypatch)
    monkeypatch.setattr(kernels, "_load_engine", fail)
    assert kernel.times_three(2) == 6
    assert kernel.ends(np.arange(4)) == (0, True, 4)
    assert "no such processor" in caplog.text
    assert "numba compiles it in each process" in caplog.text


def test_code_that_needs_what_is_not_there_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert some_kernels(tmp_path, monkeypatch).times_three(2) == 6
    (file,) = tmp_path.glob("__pycache__/*.kernel")
    code = kernel_files.read(tmp_path, file.name)
    assert code is not None
    with pytest.raises(RuntimeError, match="there is no svml_log8 here"):
        kernels._load_engine(kernel_files.Code(code.symbol, code.returns, False, ["svml_log8"], code.content))
    with pytest.raises(RuntimeError, match="it has no other"):
        kernels._load_engine(kernel_files.Code("other", code.returns, False, [], code.content))
    assert not caplog.messages


def test_functions_that_are_not_compiled(tmp_path: Path) -> None:
    (tmp_path / "some_kernel.py").write_text(SOURCE)
    program = (
        "import numpy as np, sys; import some_kernel; "
        "print(some_kernel.ends(np.arange(4)), 'llvmlite.binding' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("(np.int64(0), np.True_, 4)")
    assert not list(tmp_path.glob("__pycache__/*.kernel"))


def test_a_warm_process_does_not_import_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert some_kernels(tmp_path, monkeypatch).times_three(2) == 6
    program = "import sys; import some_kernel; print(some_kernel.times_three(2), 'numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "6 False\n"


def test_every_kernel_that_calls_another_library_is_loaded_in_a_new_process(tmp_path: Path) -> None:
    """Roots of float32 are those of the C library, which LLVM finds only when it was told to look."""
    program = (
        "import logging, numpy as np, sys; logging.basicConfig(level='WARNING', stream=sys.stdout)\n"
        "from dialeval.metrics.encoder import add_and_normalize\n"
        "rows = np.ones((2, 3), np.float32); ones = np.ones(3, np.float32)\n"
        "add_and_normalize(rows, rows, ones, ones, ones, 1e-5)\n"
        "print('numba' in sys.modules)"
    )
    for _ in ("compiled", "loaded"):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# The machine instructions behind kernels, against plain Python.


@given(st.binary(min_size=16, max_size=40), st.integers(0, 8))
def test_eight_bytes_at_any_position(data: bytes, place: int) -> None:
    assert load8(np.frombuffer(data, np.uint8), place) == int.from_bytes(data[place : place + 8], "little")


@given(st.integers(1, 2**64 - 1))
def test_zero_bits_below_the_lowest_set_bit(value: int) -> None:
    assert trailing_zeros(np.uint64(value)) == (value & -value).bit_length() - 1


@given(st.integers(0, 2**64 - 1))
def test_set_bits(value: int) -> None:
    assert count_ones(np.uint64(value)) == value.bit_count()


# What the types and the values of arguments are called.
