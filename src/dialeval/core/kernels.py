"""Kernels: functions that are compiled to machine code when the package is built.

    @kernel("(i4[::1], i8[::1], i8[:, ::1])")
    def count_matches(ids, offsets, matches): ...

    count_matches(ids, offsets, matches)

The decorator names the types of the arguments in numba's notation, once for each combination that is used; a kernel
that only other kernels call needs none. `tools/compile_kernels.py` compiles all kernels with numba into one library per
processor baseline, next to this file, and describes them in `kernels.json`. Neither numba nor a compiler is needed
where the package is used.

A kernel takes arrays, numbers and tuples of these, allocates nothing, and returns nothing, a number, or a tuple of
numbers. It may call other kernels and use constants of its module. It is called as numba calls its own functions: two
addresses (for the result, for an exception), then for each array its owner (none), size, address, shape and strides,
and for each number its value.

The library holds the digests of the files that it was made of. A kernel whose file has changed since then, or that is
called with other types, runs as the Python function that it is: the numbers are the same, and a warning says that it is
slow.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypedDict

import numpy as np
import orjson
from numpy import int64, uint64

COMPILED = Path(__file__).with_name("compiled")
"""The folder of the libraries."""
PACKAGE = Path(__file__).parents[1]


class Code(TypedDict):
    """A compiled function."""

    symbol: str
    returns: list[str]
    """The types of the numbers that it returns."""
    returns_tuple: bool
    files: list[str]
    """The modules that it was made of, as paths in the package."""


class Contents(TypedDict):
    """What the libraries hold."""

    digests: dict[str, str]
    """SHA-256 of each module with kernels, by path."""
    kernels: dict[str, dict[str, Code]]
    """The compiled functions of a kernel by the types of its arguments."""


Call = Callable[[Sequence[object]], object]
"""Takes the values that the arguments consist of."""

_FINE = (0, -2)
"""What a compiled function says where it raised nothing: there is a result, or there is none."""
_C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_bool,
    **{f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_INT64 = range(-(1 << 63), 1 << 63)


class Kernel:
    """One kernel; its code is looked up when it is first called with arguments of some types."""

    def __init__(self, function: FunctionType, signatures: Sequence[str], options: dict[str, object]) -> None:
        self.function, self.signatures, self.options = function, signatures, options
        self._calls: dict[tuple[str, ...], Call] = {}

    @property
    def name(self) -> str:
        """The name under which the library lists it."""
        return f"{self.function.__module__}.{self.function.__name__}"

    def __call__(self, *arguments: object) -> object:
        if not self.signatures:
            return self.function(*arguments)
        types: list[str] = []
        values: list[object] = []
        for argument in arguments:
            _flatten(argument, types, values)
        call = self._calls.get(key := tuple(types)) or _find_call(self.name, key)
        if call is None:
            with np.errstate(over="ignore"):  # integers wrap around on purpose
                return self.function(*arguments)
        self._calls[key] = call
        return call(values)


def kernel(*signatures: Any, **options: object) -> Any:
    """Make a function a kernel for arguments of some types, with options of `numba.njit` if some are given."""
    if signatures and callable(signatures[0]):
        return Kernel(signatures[0], (), {})
    return lambda function: Kernel(function, signatures, options)


def _flatten(argument: object, types: list[str], values: list[object]) -> None:
    """Add the type of an argument, and the values that a compiled function takes for it."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        types.append(f"{argument.dtype.str}{argument.ndim}{order}{'' if flags.aligned else '?'}")
        address = argument.__array_interface__["data"][0]
        values += (None, None, argument.size, argument.itemsize, address, *argument.shape, *argument.strides)
    elif isinstance(argument, tuple):
        types.append("(")
        for item in argument:
            _flatten(item, types, values)
        types.append(")")
    else:
        is_int = isinstance(argument, int) and not isinstance(argument, bool)
        if is_int and argument not in _INT64:
            raise OverflowError(f"{argument} has more than 64 bits")
        name = "float64" if isinstance(argument, float) else str(getattr(argument, "dtype", type(argument).__name__))
        name = "int64" if is_int else name
        if name not in _C_TYPES:
            raise TypeError(f"a kernel takes no {name}")
        types.append(name)
        values.append(_C_TYPES[name](argument))


def _find_call(name: str, types: Sequence[str]) -> Call | None:
    """Return the function of a kernel for some types; None, with a warning, where the library has no valid one."""
    if (library := open_library()) is None:
        warn_slow(name, f"{COMPILED} holds no library for this processor")
        return None
    contents, functions = library
    code = contents["kernels"].get(name, {}).get(" ".join(types))
    if code is None:
        warn_slow(name, f"it is not compiled for {' '.join(types)}")
        return None
    if changed := [file for file in code["files"] if _digest_file(file) != contents["digests"][file]]:
        warn_slow(name, f"{changed[0]} has changed since it was compiled")
        return None
    fields = [(f"number_{place}", _C_TYPES[field]) for place, field in enumerate(code["returns"])]
    result: Any = type("Result", (ctypes.Structure,), {"_fields_": fields})
    width = max(ctypes.sizeof(result), ctypes.sizeof(ctypes.c_void_p))
    function = functions[code["symbol"]]
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, *_list_c_types(types)]

    def call(values: Sequence[object]) -> object:
        place, exception = ctypes.create_string_buffer(width), ctypes.c_void_p()
        if (status := function(ctypes.addressof(place), ctypes.addressof(exception), *values)) not in _FINE:
            raise RuntimeError(f"the kernel {name} ended with status {status}")
        numbers = result.from_buffer(place)
        returned = tuple(getattr(numbers, field) for field, _ in fields)
        return returned if code["returns_tuple"] else returned[0] if returned else None

    return call


def warn_slow(name: str, reason: str) -> None:
    """Warn that a kernel runs in Python."""
    remedy = "run `make kernels` in a checkout, or install dialeval again"
    warnings.warn(f"the kernel {name} runs about a hundred times slower: {reason}; {remedy}", RuntimeWarning, 5)


def list_baselines() -> Sequence[str]:
    """Return the processors that libraries are made for on this machine, the fastest first."""
    return ("x86-64-v3", "x86-64") if platform.machine() in ("x86_64", "AMD64") else ("generic",)


@cache
def open_library() -> tuple[Contents, ctypes.CDLL] | None:
    """Return the fastest library that this processor can run, and what it holds; None if there is none."""
    try:
        contents: Contents = orjson.loads((COMPILED / "kernels.json").read_bytes())
        for baseline in list_baselines():
            library = ctypes.CDLL(str(COMPILED / f"{baseline}.library"))
            if library.runs_here():
                return contents, library
    except (OSError, orjson.JSONDecodeError):
        pass
    return None


@cache
def _digest_file(file: str) -> str:
    return hashlib.sha256((PACKAGE / file).read_bytes()).hexdigest()


def _list_c_types(types: Sequence[str]) -> list[Any]:
    """Return the types of the values that arguments of some types consist of."""
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    c_types = []
    for name in types:
        if name in _C_TYPES:
            c_types.append(_C_TYPES[name])
        elif name not in "()":
            dimensions = int(name.rstrip("?")[-2])
            c_types += (pointer, pointer, number, number, pointer, *[number] * (2 * dimensions))
    return c_types


# Kernels' way to look at many bytes and bits at once, written so that LLVM makes single instructions of them.

_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_UNITS = np.uint64(0x0101010101010101)


@kernel("(u1[::1], i8)")
def load8(data, place):  # type: ignore[no-untyped-def]
    """Return the eight bytes from a place on as one little-endian integer."""
    i = uint64(place)  # unsigned, for an index that could be negative is checked for that
    low = uint64(data[i]) | uint64(data[i + uint64(1)]) << uint64(8)
    low |= uint64(data[i + uint64(2)]) << uint64(16) | uint64(data[i + uint64(3)]) << uint64(24)
    high = uint64(data[i + uint64(4)]) | uint64(data[i + uint64(5)]) << uint64(8)
    high |= uint64(data[i + uint64(6)]) << uint64(16) | uint64(data[i + uint64(7)]) << uint64(24)
    return low | high << uint64(32)


@kernel("(u8,)")
def count_ones(value):  # type: ignore[no-untyped-def]
    """Return the number of set bits: sums in ever wider fields, which LLVM knows as one instruction."""
    value -= (value >> uint64(1)) & _PAIRS
    value = (value & _FOURS) + ((value >> uint64(2)) & _FOURS)
    value = (value + (value >> uint64(4))) & _BYTES
    return (value * _UNITS) >> uint64(56)


@kernel("(u8,)")
def trailing_zeros(value):  # type: ignore[no-untyped-def]
    """Return the number of zero bits below the lowest set bit of a non-zero integer."""
    return int64(count_ones(~value & (value - uint64(1))))
