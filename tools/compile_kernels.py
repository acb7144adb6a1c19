"""Compile all kernels (`core/kernels.py`) into a library per processor baseline: python tools/compile_kernels.py

numba compiles each kernel to LLVM's intermediate code, without Python and without memory of its own; LLVM makes object
code of it for each baseline, and a C compiler links these: `cc`, or else the one that the package `ziglang` contains.
Objects are kept in build/kernels, so that only changed modules are compiled again.

`tools/build_hook.py` calls it when a wheel or an editable installation is built.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
KEPT = ROOT / "build" / "kernels"
CHECK = """
#if defined(X86_64_V3)
#include <cpuid.h>
static int has(unsigned leaf, unsigned bits_of_b, unsigned bits_of_c) {
    unsigned a, b, c, d;
    return __get_cpuid_count(leaf, 0, &a, &b, &c, &d) && (b & bits_of_b) == bits_of_b && (c & bits_of_c) == bits_of_c;
}
int runs_here(void) {
    unsigned kept, high;
    /* FMA, MOVBE, POPCNT, OSXSAVE, AVX, F16C; LZCNT; BMI1, AVX2, BMI2; the system keeps the registers of AVX */
    if (!has(1, 0, 0x38c01000) || !has(0x80000001, 0, 0x20) || !has(7, 0x128, 0)) return 0;
    __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    return (kept & 6) == 6;
}
#else
int runs_here(void) { return 1; }
#endif
"""
"""Part of each library: whether this processor can run it."""

if TYPE_CHECKING:
    from dialeval.core.kernels import Kernel


def find_linker() -> list[str]:
    """Return the command of a C compiler; empty if there is none."""
    if compiler := os.environ.get("CC") or shutil.which("cc"):
        return compiler.split()
    return [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") is not None else []


def find_modules() -> list[str]:
    """Return the modules that hold kernels, as paths in the package."""
    package = SOURCE / "dialeval"
    holds = [path for path in sorted(package.rglob("*.py")) if "\n@kernel" in path.read_text(encoding="utf-8")]
    return [path.relative_to(package).as_posix() for path in holds]


def compile_all() -> None:
    """Compile the kernels for the baselines of this machine, link the libraries and describe them."""
    sys.path.insert(0, str(SOURCE))
    from dialeval.core.kernels import COMPILED, list_baselines

    linker = find_linker()
    if not linker:
        sys.exit("no C compiler: install one (Debian: apt install gcc), or the package ziglang, to build the kernels")
    modules = find_modules()
    digests = {file: hashlib.sha256((SOURCE / "dialeval" / file).read_bytes()).hexdigest() for file in modules}
    COMPILED.mkdir(exist_ok=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    for baseline in list_baselines():
        codes: dict[str, dict[str, Any]] = {}
        # A process each, because numba and LLVM read their settings once.
        settings = {"NUMBA_CPU_NAME": baseline, "NUMBA_CPU_FEATURES": ""}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")} | settings
        for order in ("strict", "free"):
            arguments = [sys.executable, __file__, baseline, order, json.dumps(digests)]
            done = subprocess.run(arguments, env=environment, cwd=KEPT, check=True, stdout=subprocess.PIPE, text=True)
            codes |= json.loads(done.stdout)
        objects = [str(KEPT / code.pop("object")) for by_types in codes.values() for code in by_types.values()]
        check = KEPT / "check.c"
        check.write_text(CHECK)
        define = f"-D{baseline.upper().replace('-', '_')}"
        new = COMPILED / f"{baseline}.library.new"
        subprocess.run(
            [*linker, "-shared", "-O2", "-fPIC", define, "-o", str(new), str(check), *objects, "-lm"], check=True
        )
        new.replace(COMPILED / f"{baseline}.library")
    (COMPILED / "kernels.json").write_text(json.dumps({"digests": digests, "kernels": codes}, indent=1))


def compile_baseline(baseline: str, order: str, digests: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Compile what is not kept yet; return for each kernel and types what the library will hold, and its object.

    `order`: the kernels whose sums have a `strict` order, or those that leave it `free`. These have vectors of one size
    for all processors, so that every processor gives the same digits.
    """
    from importlib import import_module

    import llvmlite.binding as llvm

    sys.path.insert(0, str(SOURCE))
    if order == "free":
        for option in ("force-vector-width=4", "force-vector-interleave=4"):
            llvm.set_option("", f"--{option}")
    from dialeval.core.kernels import Kernel

    codes: dict[str, dict[str, Any]] = {}
    for file in digests:
        module = import_module(f"dialeval.{file.removesuffix('.py').replace('/', '.')}")
        own = [value for value in vars(module).values() if isinstance(value, Kernel)]
        own = [value for value in own if ("fastmath" in value.options) == (order == "free")]
        for kernel in [value for value in own if value.function.__module__ == module.__name__]:
            for number, signature in enumerate(kernel.signatures):
                code = compile_signature(kernel, signature, f"{kernel.name}.{number}", baseline, digests)
                codes.setdefault(kernel.name, {})[code.pop("types")] = code
    return codes


def compile_signature(
    kernel: Kernel, signature: str, symbol: str, baseline: str, digests: dict[str, str]
) -> dict[str, Any]:
    """Compile a kernel for some types, or find its kept object; return what describes it."""
    import llvmlite
    import numba

    files = sorted({find_file(used) for used in list_called(kernel)})
    versions = [numba.__version__, llvmlite.__version__, Path(__file__).read_text(encoding="utf-8")]
    parts = [symbol, signature, baseline, *versions, *(digests[file] for file in files)]
    kept = KEPT / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}.json"
    if not kept.exists():
        description, content = compile_types(kernel, signature, symbol, baseline)
        (KEPT / f"{kept.stem}.o").write_bytes(content)
        kept.write_text(json.dumps(description | {"files": files, "object": f"{kept.stem}.o"}))
    described: dict[str, Any] = json.loads(kept.read_text())
    return described


def compile_types(kernel: Kernel, signature: str, symbol: str, baseline: str) -> tuple[dict[str, Any], bytes]:
    """Compile a kernel for some types; return what describes the function, and the object file."""
    import llvmlite.binding as llvm
    import numba
    from numba.core.sigutils import normalize_signature

    function = make_dispatcher(kernel).py_func
    # No memory of its own: code that allocates would need numba's memory manager, so that the compiler refuses it.
    options = {"nogil": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **kernel.options}
    argument_types, _ = normalize_signature(signature)
    compiled = numba.njit(**options)(function)._compiler.compile(argument_types, None)  # noqa: SLF001
    module = llvm.parse_assembly(str(compiled.library._final_module))  # noqa: SLF001
    entry = compiled.fndesc.llvm_func_name
    for part in [*module.functions, *module.global_variables]:
        if part.name == entry:
            part.name = symbol
        elif not part.is_declaration:
            part.linkage = "internal"
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(cpu=baseline, features="", opt=3, reloc="pic", codemodel="default")
    returned = compiled.signature.return_type
    is_tuple = isinstance(returned, numba.types.BaseTuple)
    numbers = list(returned) if is_tuple else [] if returned is numba.types.none else [returned]
    description = {
        "symbol": symbol,
        "types": " ".join(name for argument in argument_types for name in name_types(argument)),
        "returns": list(map(str, numbers)),
        "returns_tuple": is_tuple,
    }
    return description, machine.emit_object(module)


def make_dispatcher(kernel: Kernel) -> Any:
    """Return the function of a kernel as numba compiles it: it calls other kernels as numba's functions."""
    from types import FunctionType

    import numba

    names = find_kernels(kernel)
    values = kernel.function.__globals__ | {name: make_dispatcher(used) for name, used in names.items()}
    function = FunctionType(kernel.function.__code__, values)
    function.__qualname__ = kernel.function.__qualname__
    return numba.njit(nogil=True, _nrt=False, **kernel.options)(function)


def find_kernels(kernel: Kernel) -> dict[str, Kernel]:
    """Return the kernels that a kernel calls, by their names in its module."""
    values = kernel.function.__globals__
    used = {name: values.get(name) for name in kernel.function.__code__.co_names}
    return {name: value for name, value in used.items() if isinstance(value, type(kernel))}


def list_called(kernel: Kernel) -> list[Kernel]:
    """Return a kernel, and all that it calls directly or through others."""
    called = [kernel]
    for used in called:  # those that it calls are added while it is walked
        called += [other for other in find_kernels(used).values() if other not in called]
    return called


def find_file(kernel: Kernel) -> str:
    """Return the module of a kernel, as a path in the package."""
    return f"{kernel.function.__module__.removeprefix('dialeval.').replace('.', '/')}.py"


def name_types(argument: Any) -> list[str]:
    """Return the names of a type of numba as `core/kernels.py` writes them."""
    import numba
    from numba.np.numpy_support import as_dtype

    if isinstance(argument, numba.types.BaseTuple):
        return ["(", *(name for item in argument for name in name_types(item)), ")"]
    if isinstance(argument, numba.types.Array):
        return [f"{as_dtype(argument.dtype).str}{argument.ndim}{argument.layout}"]
    return [str(argument)]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        compile_all()
    else:
        print(json.dumps(compile_baseline(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))))
