"""Compiled kernels: the library holds all of them, is of this source, and gives what the Python functions give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import NumbaError
from tools.compile_kernels import compile_types, find_modules

from dialeval.core import kernels
from dialeval.core.kernels import Kernel, count_ones, kernel, load8, trailing_zeros


def test_the_library_holds_every_kernel_and_is_of_this_source() -> None:
    library = kernels.open_library()
    assert library is not None, "run `make kernels`"
    for file in find_modules():
        module = import_module(f"dialeval.{file.removesuffix('.py').replace('/', '.')}")
        for value in vars(module).values():
            if isinstance(value, Kernel):
                codes = library[0]["kernels"].get(value.name, {})
                assert len(codes) == len(value.signatures)
                for types in codes:
                    assert kernels._find_call(value.name, types.split()) is not None


def test_every_baseline_gives_the_same_values() -> None:
    texts = ["a b c d, e! f", "don't", "", "the cat sat on the mat " * 12, "x y"]
    program = """
import json, sys, dialeval, dialeval.sample_data
from dialeval.core import kernels
kernels.list_baselines = lambda: (sys.argv[1],)
texts = json.loads(sys.argv[2])
folder = dialeval.sample_data.folder()
given = {"references": texts[1:] + texts[:1], "train": folder / "train.txt", "vectors": folder / "vectors.txt"}
metrics = "length,distinct,bleu,nlg-bleu,sacrebleu,chrf,rouge-l,rouge-score,meteor-exact,embedding"
run = dialeval.evaluate({"a": texts, "b": texts[::-1]}, **given, metrics=metrics)
print([value.mean for result in run.values() for value in result.values()])
"""
    printed = set()
    for baseline in kernels.list_baselines():
        command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program, baseline, json.dumps(texts)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed.add(done.stdout)
    assert len(printed) == 1


def test_what_kernels_do_not_take() -> None:
    with pytest.raises(OverflowError, match="more than 64 bits"):
        load8(np.zeros(16, np.uint8), 1 << 63)
    with pytest.raises(TypeError, match="takes no str"):
        load8("three", 1)


def test_other_types_run_in_python_with_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match=r"count_ones runs .* slower: it is not compiled for uint32"):
        assert count_ones(np.uint32(7)) == 3


def test_a_kernel_whose_source_changed_runs_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code of another version must never be called: its arguments may mean something else."""
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "kernels.py").write_text("changed")
    monkeypatch.setattr(kernels, "PACKAGE", tmp_path)
    kernels._digest_file.cache_clear()
    changed = Kernel(count_ones.function, count_ones.signatures, {})
    with pytest.warns(RuntimeWarning, match=r"core/kernels\.py has changed since it was compiled; run `make kernels`"):
        assert changed(np.uint64(255)) == 8
    kernels._digest_file.cache_clear()


@pytest.mark.parametrize("content", [None, "{"])
def test_without_a_library_kernels_run_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "kernels.json").write_text(content)
    monkeypatch.setattr(kernels, "COMPILED", tmp_path)
    kernels.open_library.cache_clear()
    lonely = Kernel(trailing_zeros.function, trailing_zeros.signatures, {})
    with pytest.warns(RuntimeWarning, match="holds no library for this processor"):
        assert lonely(np.uint64(8)) == 3
    kernels.open_library.cache_clear()


def test_compiled_code_is_in_the_package_only(tmp_path: Path) -> None:
    """A run opens the libraries of the package, makes none, and needs no compiler."""
    program = """
import sys
opened = []
sys.addaudithook(lambda name, arguments: opened.append(str(arguments[0])) if name == "ctypes.dlopen" else None)
sys.modules["numba"] = sys.modules["llvmlite"] = None
import dialeval
dialeval.evaluate(["a b", "c"], references=["a", "c"], metrics="bleu,distinct-1")
print(*[place for place in opened if "dialeval" in place])
"""
    environment = {**os.environ, "DIALEVAL_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment)
    assert {Path(place).parent for place in done.stdout.split()} == {kernels.COMPILED}
    assert not list(tmp_path.rglob("*")), "nothing is kept"


def test_threads_share_one_kernel() -> None:
    with ThreadPoolExecutor(8) as pool:
        values = [np.uint64(1 << shift) for shift in range(64)]
        assert list(pool.map(trailing_zeros, values)) == list(range(64))


def test_a_kernel_allocates_nothing() -> None:
    @kernel("(i8,)")
    def zeros(size):  # type: ignore[no-untyped-def]
        return np.zeros(size)[0]

    with pytest.raises(NumbaError, match="Only accept returning of array passed into the function"):
        compile_types(zeros, "(i8,)", "zeros", "x86-64")


@given(st.binary(min_size=16, max_size=40), st.integers(0, 8))
def test_eight_bytes_at_any_position(data: bytes, place: int) -> None:
    assert load8(np.frombuffer(data, np.uint8), place) == int.from_bytes(data[place : place + 8], "little")


@given(st.integers(1, 2**64 - 1))
def test_zero_bits_below_the_lowest_set_bit(value: int) -> None:
    assert trailing_zeros(np.uint64(value)) == (value & -value).bit_length() - 1


@given(st.integers(0, 2**64 - 1))
def test_set_bits(value: int) -> None:
    assert count_ones(np.uint64(value)) == value.bit_count()
