"""Kernels: functions that numba compiles once on a machine. Later processes load the code and do not import numba.

    @kernel
    def count_matches(ids, offsets, matches): ...

    count_matches(ids, offsets, matches)

Importing numba takes longer than most evaluations. So a kernel is compiled when it is first called with arguments of
some types, and the machine code is kept. A later process loads it with llvmlite in a few milliseconds.
Where llvmlite cannot load the code, and with `NUMBA_DISABLE_JIT=1`, the function is called as numba or Python runs it;
it gives the same numbers.

A kernel takes arrays, numbers and tuples of these, allocates nothing, and returns nothing, a number, or a tuple of
numbers. It may call other kernels and use constants of its module. It is called as numba calls its own functions: two
addresses (for the result, for an exception), then for each array its owner (none), size, address, shape and strides,
and for each number its value.

numba reads a `.numba_config.yaml` in the working folder, which anybody may have put there. It is ignored here: code is
compiled with the settings of the environment (`NUMBA_*`), which are part of the key that the code is kept under. Where
a program imported numba before with other settings, the code is compiled with those of the environment too, and not
kept.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy import int64, uint64

from dialeval.core.errors import DialevalError
from dialeval.core.files import cache_root, write_sealed

if TYPE_CHECKING:
    from llvmlite.binding import ExecutionEngine


# Where the machine code of kernels is kept, and how it is checked.
#
# Code is kept for a digest of the byte code of the kernel, the versions of numba and llvmlite, the settings of numba,
# the processor and the types of the arguments, in `NUMBA_CACHE_DIR` if that is set, else in the first of these
# folders that can be written to: `__pycache__` next to the module; `kernels` in the user's cache folder
# (`DIALEVAL_CACHE`). Where nothing can be written, or the disk is full, kernels are compiled in each process.
#
# Whoever writes such a file decides what is executed. So a folder counts only if it, every folder above it, and the
# file belong to the user or to root, and nobody else may write to them; a folder above it may be one like `/tmp`,
# where users cannot replace files of others. A folder of the user's choice that does not count is named in
# the log.
#
# The SHA-256 of a file is its first 32 bytes. Damaged code is compiled again, with a line in the log.

_DIGEST_BYTES = 32
_ROOT = 0
UNRELATED_SETTINGS = frozenset({"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"})
"""Settings of numba that do not change the code; every other one is taken to do so."""


@dataclass(frozen=True)
class Code:
    """A compiled function."""

    symbol: str
    """What it is called in the object file."""
    returns: Sequence[str]
    """The types of the numbers that it returns."""
    returns_tuple: bool
    needs: Sequence[str]
    """The functions of other libraries that it calls."""
    content: bytes
    """The object file."""


def read(beside: Path, file: str) -> Code | None:
    """Return the code in a file of kernels of a folder; None if there is none, or it is damaged.

    Only a plain file that nobody but the user or root can have written counts.
    """
    for folder in _list_folders(beside):
        try:
            # Without waiting for the other end of a pipe, and not through a link.
            handle = os.open(folder / file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            continue
        with open(handle, "rb") as stream:  # noqa: PTH123  (a descriptor)
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or (os.name == "posix" and not _is_ours(status)):
                continue
            content = stream.read()
        if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
            facts, _, code = content[_DIGEST_BYTES:].partition(b"\n")
            return Code(**orjson.loads(facts), content=code)
        warn("%s is damaged; the kernel is compiled again", folder / file)
    return None


def write(beside: Path, file: str, code: Code) -> None:
    """Keep code where that is possible."""
    facts = asdict(code)
    content = orjson.dumps({field: facts[field] for field in facts if field != "content"}) + b"\n" + code.content
    for folder in _list_folders(beside):
        if _is_writable(folder):
            try:
                write_sealed(folder / file, content)
                (folder / file).chmod(0o644)  # else it would not be read again where the user's files are everybody's
            except (OSError, DialevalError):  # no space: it is compiled again next time
                continue
            return


def warn(message: str, about: object) -> None:
    """Write a line to the log; what writes it is imported only where there is something to say."""
    import logging

    logging.getLogger("dialeval").warning(message, about)


def digest_of(source: str, name: str, types: Sequence[str]) -> str:
    """Return the key that the code of a kernel is kept under: all that the code depends on."""
    choices = [f"{choice}={value}" for choice, value in os.environ.items() if choice.startswith("NUMBA_")]
    settings = sorted(choice for choice in choices if choice.partition("=")[0] not in UNRELATED_SETTINGS)
    parts = [source, _describe_compiler(), *settings, name, *types]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def _describe_compiler() -> str:
    """Return the versions of numba and llvmlite, and the processor; numba is not imported for that."""
    import llvmlite
    import llvmlite.binding as llvm

    numba = find_spec("numba")
    if numba is None or numba.origin is None:
        raise ModuleNotFoundError("there is no module numba")
    version = Path(numba.origin).with_name("_version.py").read_bytes()
    processor = (llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    return repr((hashlib.sha256(version).hexdigest(), llvmlite.__version__, sys.version_info[:2], processor))


def _list_folders(beside: Path) -> Iterator[Path]:
    """Yield the folders that may hold the code of kernels whose modules are in a folder, the first choice first."""
    inside = f"{beside.name}_{hashlib.sha256(os.fsencode(beside)).hexdigest()[:16]}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen and (folder := _choose_folder(chosen, "NUMBA_CACHE_DIR")) is not None:
        yield folder / inside
        return
    package = Path(os.path.realpath(beside)) / "__pycache__"
    if _is_safe(package if package.exists() else package.parent):
        yield package
    try:
        root = cache_root()
    except DialevalError:  # there is no home folder
        return
    if (folder := _choose_folder(str(root / "kernels"), "DIALEVAL_CACHE")) is not None:
        yield folder / inside


@cache
def _choose_folder(name: str, variable: str) -> Path | None:
    """Return a folder for kernels that was chosen; None where others may write to it, or it cannot be made.

    It is named in the log where the variable that chooses it is set.
    """
    try:
        Path(name).mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(os.path.realpath(name))
    except OSError:
        return None
    if _is_safe(folder):
        return folder
    if os.environ.get(variable):
        message = "%s is not used for compiled kernels: others may write there, or to a folder above it"
        warn(f"{message} ({variable})", folder)
    return None


@cache
def _is_safe(folder: Path) -> bool:
    """Return whether nobody but the user and root can change what a folder holds; its path has no link in it."""
    if os.name != "posix":
        return True
    try:
        above = all(_is_ours(place.stat(), in_sticky=True) for place in folder.parents)
        return above and _is_ours(folder.stat())
    except OSError:
        return False


def _is_ours(status: os.stat_result, in_sticky: bool = False) -> bool:
    """Return whether a file or folder is the user's or root's, and nobody else may write to it.

    `in_sticky`: accept a folder in which users cannot replace files of others.
    """
    if status.st_uid not in (_ROOT, os.geteuid()):
        return False
    mode = status.st_mode
    if in_sticky and mode & stat.S_ISVTX:
        return True
    return not mode & stat.S_IWOTH and (not mode & stat.S_IWGRP or _is_private_group(status.st_gid))


@cache
def _is_private_group(group: int) -> bool:
    """Return whether a group is the user's alone: of the user's name and without other members, or root's."""
    import grp
    import pwd

    try:
        facts, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return facts.gr_name in (user, "root") and set(facts.gr_mem) <= {user, "root"}


@cache
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


Call = Callable[[Sequence[object], Sequence[object]], object]
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


class Kernel:
    """One kernel; its code is loaded or compiled when it is first called with arguments of some types."""

    def __init__(self, function: FunctionType, /, **options: object) -> None:
        self.function, self.options = function, options
        self._calls: dict[tuple[str, ...], Call] = {}
        self.compiled = 0
        """How often this process had to compile it."""

    def __call__(self, *arguments: object) -> object:
        types: list[str] = []
        values: list[object] = []
        for argument in arguments:
            _flatten(argument, types, values)
        call = self._calls.get(key := tuple(types))
        if call is None:
            with _LOADING:
                call = self._calls[key] = self._calls.get(key) or self._find_call(key, arguments)
        return call(arguments, values)

    @cached_property
    def source_digest(self) -> str:
        """Digest of the byte code of this kernel and of all that it calls, and of the constants that they use."""
        parts, kernels = [], [self]
        for used in kernels:  # those that it calls are added while it is walked
            options = {name: sorted(value) if isinstance(value, set) else value for name, value in used.options.items()}
            parts += [repr(sorted(options.items())), *_describe_code(used.function.__code__)]
            for name, value in _find_globals(used.function).items():
                if isinstance(value, Kernel):
                    kernels += [value] if value not in kernels else []
                    parts.append(f"{name}:{kernels.index(value)}")
                elif isinstance(value, int | float | np.generic | tuple):
                    parts.append(f"{name}={value!r}")
                elif isinstance(value, np.ndarray):
                    parts.append(f"{name}={value.dtype.str}{value.tobytes().hex()}")
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @cached_property
    def dispatcher(self) -> Any:
        """The function as numba compiles it; importing numba takes a second."""
        numba = _import_numba()
        used = _find_globals(self.function).items()
        values = {name: value.dispatcher if isinstance(value, Kernel) else value for name, value in used}
        function = FunctionType(self.function.__code__, {**values, "__name__": self.function.__module__})
        function.__qualname__ = self.function.__qualname__
        # No memory of its own: code that allocates would need numba's memory manager, so that the compiler refuses it.
        return numba.njit(nogil=True, _nrt=False, **self.options)(function)

    def _find_call(self, types: tuple[str, ...], arguments: Sequence[object]) -> Call:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            return self._call_function(self.function)
        source, name = Path(self.function.__code__.co_filename).absolute(), self.function.__name__
        file = f"{source.stem}.{name}-{digest_of(self.source_digest, name, types)}.kernel"
        code = read(source.parent, file)
        if code is not None and (call := _load(code, types)) is not None:
            return call
        if not hasattr(self.dispatcher, "py_func"):  # a program switched the compiler of numba off
            return self._call_function(self.function)
        self.compiled += 1
        code, is_usual = compile_kernel(self, arguments)
        if is_usual:
            write(source.parent, file, code)
        if (call := _load(code, types)) is not None:
            return call
        warn("%s cannot be loaded from the cache; numba compiles it in each process", name)
        return self._call_function(self.dispatcher)

    @staticmethod
    def _call_function(function: Callable[..., object]) -> Call:
        return lambda arguments, _values: function(*arguments)


def kernel(function: Any = None, **options: object) -> Any:
    """Make a function a kernel, with options of `numba.njit` if some are given."""
    return partial(Kernel, **options) if function is None else Kernel(function, **options)


def _find_globals(function: FunctionType) -> dict[str, object]:
    """Return the values of its module that a function uses, by name."""
    values = function.__globals__
    return {name: values[name] for name in sorted(set(function.__code__.co_names)) if name in values}


def _describe_code(code: CodeType) -> list[str]:
    constants = [_describe_code(part) if isinstance(part, CodeType) else repr(part) for part in code.co_consts[1:]]
    return [code.co_code.hex(), repr(constants), repr((code.co_names, code.co_varnames, code.co_freevars))]


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


def _load(code: Code, types: Sequence[str]) -> Call | None:
    """Return the function of some code; None where it cannot be loaded here."""
    try:
        engine, address = _load_engine(code)
    except (ImportError, OSError, RuntimeError) as error:
        warn("llvmlite cannot load a kernel: %s", error)
        return None
    fields = [(f"number_{place}", _C_TYPES[name]) for place, name in enumerate(code.returns)]
    result: Any = type("Result", (ctypes.Structure,), {"_fields_": fields})
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, *_list_c_types(types))(address)
    width = max(ctypes.sizeof(result), ctypes.sizeof(ctypes.c_void_p))

    def call(_arguments: Sequence[object], values: Sequence[object], _engine: ExecutionEngine = engine) -> object:
        place, exception = ctypes.create_string_buffer(width), ctypes.c_void_p()
        if (status := function(ctypes.addressof(place), ctypes.addressof(exception), *values)) not in _FINE:
            raise RuntimeError(f"the kernel {code.symbol} ended with status {status}")
        numbers = result.from_buffer(place)
        returned = tuple(getattr(numbers, name) for name, _ in fields)
        return returned if code.returns_tuple else returned[0] if returned else None

    return call


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


def _load_engine(code: Code) -> tuple[ExecutionEngine, int]:
    """Return what holds the loaded code, and the address of the function."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(codemodel="jitdefault", jit=True)  # an engine owns its machine
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


_SETTINGS_FILE = ".numba_config.yaml"


@cache
def _import_numba() -> ModuleType:
    """Import numba as if the working folder had no settings file: without a YAML parser numba cannot read one."""
    if not Path(_SETTINGS_FILE).exists() or "numba" in sys.modules:
        return import_module("numba")
    before = sys.modules.get("yaml")
    sys.modules["yaml"] = None  # type: ignore[assignment]  # importing it fails then
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module("numba")
    finally:
        del sys.modules["yaml"]
        if before is not None:
            sys.modules["yaml"] = before


@contextmanager
def _environment_settings() -> Iterator[bool]:
    """Make numba use the settings of the environment and no others; yield whether it did so before."""
    from numba.core import config

    settings: dict[str, object] = vars(config)
    before = {name: value for name, value in settings.items() if name.isupper()}
    reloader, file = config._env_reloader, config._config_fname  # noqa: SLF001
    environment, config._config_fname = reloader.old_environ, ""  # noqa: SLF001
    try:
        reloader.update(force=True)
        changed = {name for name, value in before.items() if repr(settings[name]) != repr(value)}
        yield not {f"NUMBA_{name}" for name in changed} - UNRELATED_SETTINGS
    finally:
        settings.update(before)
        reloader.old_environ, config._config_fname = environment, file  # noqa: SLF001


def compile_kernel(kernel: Kernel, arguments: Sequence[object]) -> tuple[Code, bool]:
    """Compile a kernel for arguments of these types, without what Python would need to call it.

    Returns:
        The machine code, and whether it may be kept for other processes.
    """
    numba = _import_numba()
    with _environment_settings() as is_usual:
        options = {**kernel.dispatcher.targetoptions, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        bare = numba.jit(**options)(kernel.dispatcher.py_func)
        # The compiler of a function returns its code and does not keep it for calls.
        compiled = bare._compiler.compile(tuple(map(_find_type, arguments)), None)  # noqa: SLF001
        functions = compiled.library._final_module.functions  # noqa: SLF001
        content = compiled.library._get_compiled_object()  # noqa: SLF001
    returned = compiled.signature.return_type
    is_tuple = isinstance(returned, numba.types.BaseTuple)
    numbers = list(returned) if is_tuple else [] if returned is numba.types.none else [returned]
    # Functions that the code calls and does not contain; those of LLVM are instructions.
    needs = sorted(used.name for used in functions if used.is_declaration and not used.name.startswith("llvm."))
    return Code(compiled.fndesc.llvm_func_name, list(map(str, numbers)), is_tuple, needs, content), is_usual


def _find_type(argument: object) -> object:
    """Return `numba.typeof(argument)`, but for arrays that may only be read the type of other arrays."""
    numba = _import_numba()
    if isinstance(argument, tuple):
        return numba.types.BaseTuple.from_types(tuple(map(_find_type, argument)))
    kind = numba.typeof(argument)
    return kind.copy(readonly=False) if isinstance(kind, numba.types.Array) else kind


# Kernels' way to look at many bytes and bits at once, written so that LLVM makes single instructions of them.

_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_UNITS = np.uint64(0x0101010101010101)


@kernel
def load8(data, place):  # type: ignore[no-untyped-def]
    """Return the eight bytes from a place on as one little-endian integer."""
    i = uint64(place)  # unsigned, for an index that could be negative is checked for that
    low = uint64(data[i]) | uint64(data[i + uint64(1)]) << uint64(8)
    low |= uint64(data[i + uint64(2)]) << uint64(16) | uint64(data[i + uint64(3)]) << uint64(24)
    high = uint64(data[i + uint64(4)]) | uint64(data[i + uint64(5)]) << uint64(8)
    high |= uint64(data[i + uint64(6)]) << uint64(16) | uint64(data[i + uint64(7)]) << uint64(24)
    return low | high << uint64(32)


@kernel
def count_ones(value):  # type: ignore[no-untyped-def]
    """Return the number of set bits: sums in ever wider fields, which LLVM knows as one instruction."""
    value -= (value >> uint64(1)) & _PAIRS
    value = (value & _FOURS) + ((value >> uint64(2)) & _FOURS)
    value = (value + (value >> uint64(4))) & _BYTES
    return (value * _UNITS) >> uint64(56)


@kernel
def trailing_zeros(value):  # type: ignore[no-untyped-def]
    """Return the number of zero bits below the lowest set bit of a non-zero integer."""
    return int64(count_ones(~value & (value - uint64(1))))
