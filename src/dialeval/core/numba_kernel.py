"""`njit` for all kernels, and their machine code. Only modules of kernels import it: numba takes long to import."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numba

from dialeval.core.kernel_files import Code

_types: Any = numba.types


def njit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit` with its options, for functions that release the GIL and allocate nothing: numba checks that."""
    decorate: Callable[[Any], Any] = numba.njit(nogil=True, _nrt=False, **options)
    return decorate


def compiled(kernel: Any, arguments: Sequence[Any]) -> Code:
    """The machine code of a kernel for arguments of these types, without what Python would need to call it."""
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
