"""Where the machine code of kernels is kept, and how it is checked.

Code is kept for a digest of the sources of the kernel, the versions of numba and llvmlite, the processor and the types
of the arguments, in `NUMBA_CACHE_DIR` if that is set, else in the first of these folders that can be written to:
`__pycache__` beside the module; `kernels` in the user's cache folder (`DIALEVAL_CACHE`), if it is the user's alone,
since whoever writes there decides what is executed. Where nothing can be written, or the disk is full, kernels are
compiled in each process.

The SHA-256 of a file stands in front of it. What is damaged is compiled again, and a line of the log says so.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import orjson

from dialeval.core.cache_root import cache_root
from dialeval.core.errors import DialevalError
from dialeval.core.files import write_bytes

_DIGEST_BYTES = 32
_OTHERS_MAY_WRITE = 0o022
_CHOICES = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_BOUNDSCHECK")
"""Settings of numba that change the code."""
_IMPORTED = re.compile(rb"^from (dialeval\.[\w.]+) import", re.MULTILINE)


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


def read(module: str, name: str, digest: str) -> Code | None:
    """The code that was written for a digest; None if there is none, or it is damaged."""
    for folder in _folders(module):
        path = folder / _file_name(module, name, digest)
        try:
            content = path.read_bytes()
        except OSError:
            continue
        if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
            facts, _, code = content[_DIGEST_BYTES:].partition(b"\n")
            return Code(**orjson.loads(facts), content=code)
        warn("%s is damaged; the kernel is compiled anew", path)
    return None


def write(module: str, name: str, digest: str, code: Code) -> None:
    """Keep code where that is possible."""
    facts = asdict(code)
    content = orjson.dumps({field: facts[field] for field in facts if field != "content"}) + b"\n" + code.content
    for folder in _folders(module):
        if _is_writable(folder):
            try:
                write_bytes(folder / _file_name(module, name, digest), hashlib.sha256(content).digest() + content)
            except (OSError, DialevalError):  # no space: it is compiled again next time
                continue
            return


def warn(message: str, about: object) -> None:
    """Write a line to the log; what writes it is imported only where there is something to say."""
    import logging

    logging.getLogger("dialeval").warning(message, about)


def digest_of(module: str, name: str, types: Sequence[str]) -> str:
    """What the code of a kernel depends on."""
    parts = [*_sources(module), _compiler(), *(os.environ.get(choice, "") for choice in _CHOICES), name, *types]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _file_name(module: str, name: str, digest: str) -> str:
    return f"{module.rpartition('.')[2]}.{name}-{digest}.kernel"


@cache
def _sources(module: str) -> tuple[str, ...]:
    """The digests of a module and of what it imports, if it is one of kernels: constants and other kernels."""
    content = _file_of(module).read_bytes()
    imported = _IMPORTED.findall(content) if module.endswith("_kernel") else []
    others = [digest for found in imported for digest in _sources(found.decode())]
    return hashlib.sha256(content).hexdigest(), *others


@cache
def _compiler() -> str:
    """The versions of numba and llvmlite, and the processor; numba is not imported for that."""
    import llvmlite
    import llvmlite.binding as llvm

    version = _file_of("numba").with_name("_version.py").read_bytes()
    processor = (llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    return repr((hashlib.sha256(version).hexdigest(), llvmlite.__version__, sys.version_info[:2], processor))


@cache
def _file_of(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"there is no module {module}")
    return Path(spec.origin)


def _folders(module: str) -> Iterator[Path]:
    """The folders that may hold the code of a module's kernels, the first choice first."""
    beside = _file_of(module).parent
    inside = f"{beside.name}_{hashlib.sha256(os.fsencode(beside)).hexdigest()[:16]}"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / inside
        return
    yield beside / "__pycache__"
    if (own := _own_folder()) is not None:
        yield own / inside


@cache
def _own_folder() -> Path | None:
    """The folder for kernels in the user's cache; None where others may write to it, or it cannot be made."""
    try:
        folder = cache_root() / "kernels"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, DialevalError, RuntimeError):  # RuntimeError: there is no home folder
        return None
    if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE):
        return None
    return folder


@cache
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
