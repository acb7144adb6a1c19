"""A module of kernels for tests, which may be changed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dialeval.core import kernel_files
from dialeval.core.kernels import Kernels

SOURCE = """
from dialeval.core.numba_kernel import njit

@njit()
def three(): return 3

@njit()
def times_three(number): return number * three()

@njit()
def ends(values): return values[0], values[-1] > 2, len(values)

@njit()
def add(left, right, both):
    for place in range(len(both)):
        both[place] = left[place] + right[place]

@njit()
def total(parts, weight):
    found = 0.0
    for part in parts:
        for value in part.flat:
            found += value
    return found * weight

@njit()
def ratio(one, other): return one // other

@njit()
def larger(one, other): return max(one, other)
"""
CACHES = ("_file_of", "_sources", "_own_folder", "_is_safe", "_is_writable")


def some_kernels(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str = SOURCE) -> Kernels:
    """The kernels of a module in a folder, as a new process would find them."""
    for name in CACHES:
        getattr(kernel_files, name).cache_clear()
    sys.modules.pop("some_kernel", None)
    folder.mkdir(exist_ok=True)
    file = folder / "some_kernel.py"
    if not file.exists() or file.read_text() != source:
        file.write_text(source)
    monkeypatch.syspath_prepend(folder)
    return Kernels("some_kernel")
