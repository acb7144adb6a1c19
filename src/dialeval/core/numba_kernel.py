"""`njit` for all kernels, and their machine code. Only modules of kernels import it: numba takes long to import.

numba obeys a `.numba_config.yaml` of the working folder, which anybody may have put there. It is not read here: code is
compiled with the settings of the environment (`NUMBA_*`), which belong to what the code is kept under. Where a program
imported numba before and has other settings, the code is compiled with those of the environment too, and not kept.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dialeval.core.kernel_files import UNRELATED_SETTINGS, Code

_SETTINGS_FILE = ".numba_config.yaml"


@contextmanager
def _without_settings_file() -> Iterator[None]:
    """Import numba as if there were no settings in the working folder: without a parser it cannot read them."""
    if not Path(_SETTINGS_FILE).exists() or "numba" in sys.modules:
        yield
        return
    modules: dict[str, Any] = sys.modules
    before = modules.get("yaml")
    modules["yaml"] = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        del modules["yaml"]
        if before is not None:
            modules["yaml"] = before


with _without_settings_file():
    import numba
    from numba.core import config as _config

_types: Any = numba.types


def njit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit` with its options, for functions that release the GIL and allocate nothing: numba checks that."""
    decorate: Callable[[Any], Any] = numba.njit(nogil=True, _nrt=False, **options)
    return decorate


@contextmanager
def _environment_settings() -> Iterator[bool]:
    """Have numba use the settings of the environment and no others; give whether it did so before."""
    settings: dict[str, Any] = vars(_config)
    before = {name: value for name, value in settings.items() if name.isupper()}
    reloader, file = _config._env_reloader, _config._config_fname  # noqa: SLF001
    known, _config._config_fname = reloader.old_environ, ""  # noqa: SLF001
    try:
        reloader.update(force=True)
        changed = {name for name, value in before.items() if repr(settings[name]) != repr(value)}
        yield not {f"NUMBA_{name}" for name in changed} - UNRELATED_SETTINGS
    finally:
        settings.update(before)
        reloader.old_environ, _config._config_fname = known, file  # noqa: SLF001


def compiled(kernel: Any, arguments: Sequence[Any]) -> tuple[Code, bool]:
    """Compile a kernel for arguments of these types, without what Python would need to call it.

    Returns:
        The machine code, and whether it may be kept for other processes.
    """
    with _environment_settings() as usual:
        return _compile(kernel, arguments), usual


def _compile(kernel: Any, arguments: Sequence[Any]) -> Code:
    options = {**kernel.targetoptions, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    bare = numba.jit(**options)(kernel.py_func)
    # The compiler of a function gives its code and does not keep it for calls.
    made = bare._compiler.compile(tuple(map(_type_of, arguments)), None)  # noqa: SLF001
    returned = made.signature.return_type
    several = isinstance(returned, _types.BaseTuple)
    numbers = list(returned) if several else [] if returned is _types.none else [returned]
    return Code(
        made.fndesc.llvm_func_name,
        [str(number) for number in numbers],
        several,
        sorted(_needs(made.library)),
        made.library._get_compiled_object(),  # noqa: SLF001
    )


def _needs(library: Any) -> list[str]:
    """The functions that the code calls and does not contain; those of LLVM are instructions."""
    functions = library._final_module.functions  # noqa: SLF001
    return [each.name for each in functions if each.is_declaration and not each.name.startswith("llvm.")]


def _type_of(argument: Any) -> Any:
    """As `numba.typeof`, but that arrays which may only be read are of the same type as others."""
    if isinstance(argument, tuple):
        return _types.BaseTuple.from_types(tuple(map(_type_of, argument)))
    found = numba.typeof(argument)
    return found.copy(readonly=False) if isinstance(found, _types.Array) else found
