"""A module of kernels for tests, which may be changed."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from dialeval.core import kernels

SOURCE = """
from dialeval.core.kernels import kernel

@kernel
def three(): return 3

@kernel
def times_three(number): return number * three()

@kernel
def ends(values): return values[0], values[-1] > 2, len(values)

@kernel
def add(left, right, both):
    for place in range(len(both)):
        both[place] = left[place] + right[place]

@kernel
def total(parts, weight):
    found = 0.0
    for part in parts:
        for value in part.flat:
            found += value
    return found * weight

@kernel
def ratio(one, other): return one // other

@kernel
def larger(one, other): return max(one, other)
"""
CACHES = ("_choose_folder", "_is_safe", "_is_writable")


def some_kernels(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str = SOURCE) -> Any:
    """The kernels of a module in a folder, as a new process would find them."""
    for name in CACHES:
        getattr(kernels, name).cache_clear()
    sys.modules.pop("some_kernel", None)
    folder.mkdir(exist_ok=True)
    file = folder / "some_kernel.py"
    if not file.exists() or file.read_text() != source:
        file.write_text(source)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # byte code of a file changed within a second would be kept
    monkeypatch.syspath_prepend(folder)
    return import_module("some_kernel")
