"""Where the machine code of kernels is kept, and how it is checked.

Code is kept for a digest of the byte code of the kernel, the versions of numba and llvmlite, the settings of numba, the
processor and the types of the arguments, in `NUMBA_CACHE_DIR` if that is set, else in the first of these folders that
can be written to: `__pycache__` next to the module; `kernels` in the user's cache folder (`DIALEVAL_CACHE`). Where
nothing can be written, or the disk is full, kernels are compiled in each process.

Whoever writes such a file decides what is executed. So a folder counts only if it, every folder above it, and the file
belong to the user or to root, and nobody else may write to them; a folder above it may be one like `/tmp`, where people
cannot replace what belongs to others. A folder of the user's choice that does not count is named in the log.

The SHA-256 of a file is its first 32 bytes. What is damaged is compiled again, and a line of the log says so.
"""

from __future__ import annotations

import hashlib
import os
import stat
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
from dialeval.core.files import replacing

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


def read(module: str, name: str, digest: str) -> Code | None:
    """The code that was written for a digest; None if there is none, or it is damaged."""
    for folder in _folders(module):
        path = folder / _file_name(module, name, digest)
        if (content := _trusted_content(path)) is None:
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
            path = folder / _file_name(module, name, digest)
            try:
                if path.is_symlink() or (path.exists() and not path.is_file()):
                    path.unlink()
                with replacing(path) as beside:
                    beside.write_bytes(hashlib.sha256(content).digest() + content)
                    beside.chmod(0o644)  # else it would not be read again where the user's files are everybody's
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
    parts = [source, _compiler(), *settings, name, *types]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _file_name(module: str, name: str, digest: str) -> str:
    return f"{module.rpartition('.')[2]}.{name}-{digest}.kernel"


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
    """Yield the folders that may hold the code of a module's kernels, the first choice first."""
    beside = _file_of(module).parent
    inside = f"{beside.name}_{hashlib.sha256(os.fsencode(beside)).hexdigest()[:16]}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen and (folder := _own_folder(chosen, "NUMBA_CACHE_DIR")) is not None:
        yield folder / inside
        return
    package = Path(os.path.realpath(beside)) / "__pycache__"
    if _is_safe(package if package.exists() else package.parent):
        yield package
    try:
        root = cache_root()
    except DialevalError:  # there is no home folder
        return
    if (folder := _own_folder(str(root / "kernels"), "DIALEVAL_CACHE")) is not None:
        yield folder / inside


@cache
def _own_folder(name: str, variable: str) -> Path | None:
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

    `in_sticky`: a folder in which people cannot replace what belongs to others will do.
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
        known, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False
    return known.gr_name in (user, "root") and set(known.gr_mem) <= {user, "root"}


def _trusted_content(path: Path) -> bytes | None:
    """Return the bytes of a plain file that only the user or root can have written; None where there is none."""
    try:
        # Without waiting for the other end of a pipe, and not through a link.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    with open(handle, "rb") as file:  # noqa: PTH123  (a descriptor)
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or (os.name == "posix" and not _is_ours(status)):
            return None
        return file.read()


@cache
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
