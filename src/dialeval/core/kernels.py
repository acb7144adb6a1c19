"""Kernels: functions that numba compiles once on a machine. Later processes load the code and leave numba alone.

    _kernel = Kernels("dialeval.text.words_kernel")
    _kernel.split_words(data, starts, ...)

Importing numba takes longer than most evaluations. So nothing is imported before a kernel is called, and then the
machine code of an earlier process (`kernel_files`) is loaded by llvmlite, which takes a few milliseconds. Only where
there is none, the module is imported and the function compiled (`numba_kernel`). Where llvmlite cannot load the code,
and with `NUMBA_DISABLE_JIT=1`, the function of the module is called as it is; it gives the same numbers. Kernels with
instructions of their own (those of BLEU and chrF) cannot be run without the compiler.

A kernel takes arrays, numbers and tuples of these, allocates nothing, and returns nothing, a number, or a tuple of
numbers. It is called as numba calls its own functions: two addresses (for the result, for an exception), then for each
array its owner (none), size, address, shape and strides, and for each number its value.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.kernel_files import Code, digest_of, read, warn, write

if TYPE_CHECKING:
    from llvmlite.binding import ExecutionEngine

Call = Callable[[Sequence[Any], Sequence[Any]], Any]
"""Takes the arguments as they were given, and the values that they consist of."""

_FINE = (0, -2)
"""What a compiled function says where it raised nothing: there is a result, or there is none."""
_C_TYPES: dict[str, Any] = {
    "bool": ctypes.c_bool,
    **{f"{sign}int{bits}": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_INT64 = range(-(1 << 63), 1 << 63)
_LOADING = RLock()


class Kernels:
    """The kernels of a module, by name."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("__"):
            raise AttributeError(name)
        kernel = self.__dict__[name] = Kernel(self._module, name)
        return kernel


class Kernel:
    """One kernel; its code is loaded or compiled when it is first called with arguments of some types."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name
        self._calls: dict[tuple[str, ...], Call] = {}
        self.compiled = 0
        """How often this process had to compile it."""

    def __call__(self, *arguments: Any) -> Any:
        types: list[str] = []
        values: list[Any] = []
        for argument in arguments:
            _flatten(argument, types, values)
        call = self._calls.get(key := tuple(types))
        if call is None:
            with _LOADING:
                call = self._calls[key] = self._calls.get(key) or self._found(key, arguments)
        return call(arguments, values)

    def _found(self, types: tuple[str, ...], arguments: Sequence[Any]) -> Call:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            return self._plain()
        digest = digest_of(self._module, self._name, types)
        code = read(self._module, self._name, digest)
        if code is not None and (call := _loaded(code, types)) is not None:
            return call
        from dialeval.core.numba_kernel import compiled

        function = getattr(import_module(self._module), self._name)
        if not hasattr(function, "py_func"):  # a program has told numba to compile nothing
            return self._plain()
        self.compiled += 1
        code, is_usual = compiled(function, arguments)
        if is_usual:
            write(self._module, self._name, digest, code)
        if (call := _loaded(code, types)) is not None:
            return call
        warn("%s cannot be loaded as it was compiled; numba compiles it in each process", self._name)
        return self._plain()

    def _plain(self) -> Call:
        """The function as numba makes it."""
        function = getattr(import_module(self._module), self._name)
        return lambda arguments, _values: function(*arguments)


def _flatten(argument: Any, types: list[str], values: list[Any]) -> None:
    """Add the type of an argument, and the values that a compiled function takes for it."""
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        types.append(f"{argument.dtype.str}{argument.ndim}{order}{'' if flags.aligned else '?'}")
        address = argument.__array_interface__["data"][0]
        values += (None, None, argument.size, argument.itemsize, address, *argument.shape, *argument.strides)
    elif isinstance(argument, tuple):
        types.append("(")
        for each in argument:
            _flatten(each, types, values)
        types.append(")")
    else:
        name = _number_type(argument)
        types.append(name)
        values.append(_C_TYPES[name](argument))


def _number_type(number: Any) -> str:
    if isinstance(number, bool | np.bool_):
        return "bool"
    if isinstance(number, int):
        if number not in _INT64:
            raise OverflowError(f"{number} has more than 64 bits")
        return "int64"
    name = "float64" if isinstance(number, float) else str(getattr(number, "dtype", type(number).__name__))
    if name not in _C_TYPES:
        raise TypeError(f"a kernel takes no {name}")
    return name


def _loaded(code: Code, types: Sequence[str]) -> Call | None:
    """The function that code is of; None where it cannot be loaded here."""
    try:
        engine, address = _engine(code)
    except (ImportError, OSError, RuntimeError) as error:
        warn("llvmlite cannot load a kernel: %s", error)
        return None
    fields = [(f"number_{place}", _C_TYPES[each]) for place, each in enumerate(code.returns)]
    result: Any = type("Result", (ctypes.Structure,), {"_fields_": fields})
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *_c_types(types))(address)
    width = max(ctypes.sizeof(result), ctypes.sizeof(ctypes.c_void_p))

    def call(_arguments: Sequence[Any], values: Sequence[Any], _engine: ExecutionEngine = engine) -> Any:
        place, exception = ctypes.create_string_buffer(width), ctypes.c_void_p()
        if (status := function(ctypes.addressof(place), ctypes.addressof(exception), *values)) not in _FINE:
            raise RuntimeError(f"the kernel {code.symbol} ended with status {status}")
        numbers = result.from_buffer(place)
        found = tuple(getattr(numbers, name) for name, _ in fields)
        return found if code.returns_tuple else found[0] if found else None

    return call


def _c_types(types: Sequence[str]) -> list[Any]:
    """The types of the values that arguments of some types consist of."""
    found: list[Any] = []
    for each in types:
        if each in _C_TYPES:
            found.append(_C_TYPES[each])
        elif each not in "()":
            dimensions = int(each.rstrip("?")[-2])
            pointer, number = ctypes.c_void_p, ctypes.c_int64
            found += (pointer, pointer, number, number, pointer, *[number] * (2 * dimensions))
    return found


def _engine(code: Code) -> tuple[ExecutionEngine, int]:
    """What holds the loaded code, and the address of the function."""
    import llvmlite.binding as llvm

    machine = _target().create_target_machine(codemodel="jitdefault", jit=True)  # an engine owns its machine
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    # Only now the functions of this process can be looked up. LLVM would end it where one is not there.
    lacking = [name for name in code.needs if llvm.address_of_symbol(name) is None]
    if lacking:
        raise RuntimeError(f"there is no {lacking[0]} here")
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.content))
    engine.finalize_object()
    address = engine.get_function_address(code.symbol)
    if not address:
        raise RuntimeError(f"it has no {code.symbol}")
    return engine, address


@cache
def _target() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()
