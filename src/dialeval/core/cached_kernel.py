"""`njit` for all kernels: numba's, with a cache that needs no place to write to and checks what it reads.

Compiled kernels are kept in the first of these that can be written to: `NUMBA_CACHE_DIR`; `__pycache__` beside the
module, as numba does it; `kernels` in the user's cache folder (`DIALEVAL_CACHE`), if it is the user's alone, since
whoever writes there decides what is executed. In a package that may only be read, and without any of these, what lies
in `__pycache__` already is used, and everything else is compiled anew in each process. A full disk is no error either.

numba trusts its files: one that is cut short is a traceback, and one with a changed bit is executed. So each has the
SHA-256 of its content in front; what does not check out is compiled again, and a line of the log says so. The content
belongs to a version of dialeval, too: a kernel holds the code of those that it calls in other modules.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

from dialeval.core.cache_root import cache_root
from dialeval.core.errors import DialevalError
from dialeval.core.files import write_bytes
from dialeval.core.version import __version__

_DIGEST_BYTES = 32
_OTHERS_MAY_WRITE = 0o022
_LOG = logging.getLogger("dialeval")


def njit(*, cache: bool = False, **options: Any) -> Callable[[Any], Any]:
    """`numba.njit` with its options; `cache`: keep what was compiled, where that is possible."""

    def decorate(function: Any) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache and not numba.config.DISABLE_JIT and (folder := _folder_for(function.__code__.co_filename)):
            dispatcher._cache = _Cache(function, folder)  # noqa: SLF001  (what `enable_caching` of numba does)
        return dispatcher

    return decorate


@cache
def _folder_for(source: str) -> Path | None:
    """Where the kernels of a module are kept; None where nowhere."""
    beside = Path(source).parent / "__pycache__"
    inside: str = caching._CacheLocator.get_suitable_cache_subpath(source)  # noqa: SLF001  (a name for the module's folder)
    if numba.config.CACHE_DIR and _is_writable(chosen := Path(str(numba.config.CACHE_DIR)) / inside):
        return chosen
    if _is_writable(beside):
        return beside
    own = _own_folder()
    if own is not None and _is_writable(own / inside):
        return own / inside
    return beside if beside.is_dir() else None


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


class _Files(caching.IndexDataCacheFile):  # type: ignore[misc]
    """The files of a function: an index of signatures, and one with code for each; all behind their digests."""

    def _load_index(self) -> dict[Any, str]:
        content = self._content(self._index_path)
        if content is None:
            return {}
        version, stamp, overloads = pickle.loads(content)  # noqa: S301  (what we wrote, as its digest says)
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        content = self._content(self._data_path(name))
        if content is None:
            raise FileNotFoundError(name)  # `load` takes it for a file that is gone
        return pickle.loads(content)  # noqa: S301

    def _save_data(self, name: str, data: object) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, data: object) -> None:
        content = self._dump(data)
        write_bytes(path, hashlib.sha256(content).digest() + content)

    @staticmethod
    def _content(path: str) -> bytes | None:
        """What was written to a file; None if there is none, or it is damaged."""
        try:
            content = Path(path).read_bytes()
        except OSError:
            return None
        if hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]:
            return content[_DIGEST_BYTES:]
        _LOG.warning("%s is damaged; the kernel is compiled anew", path)
        return None


class _Place:
    """Stands for numba's locators, which look for a folder and raise where there is none."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._folder = folder
        self._line = function.__code__.co_firstlineno
        self._py_file = function.__code__.co_filename  # numba names it in warnings

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> tuple[str, str]:
        return __version__, hashlib.sha256(Path(self._py_file).read_bytes()).hexdigest()

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """The folder was tried before."""


class _Results(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """How a compiled function becomes bytes: as numba does it, in our place."""

    def __init__(self, function: Callable[..., Any], place: _Place) -> None:
        self._lineno, self._locator = function.__code__.co_firstlineno, place
        module = Path(function.__code__.co_filename).stem
        # Another name than numba would give them: its files have no digests.
        self._filename_base = self.get_filename_base(f"{module}.{function.__qualname__}.checked", "")


class _Cache(caching.FunctionCache):  # type: ignore[misc]
    """The cache of one function."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._name, self._py_func = repr(function), function
        self._impl = _Results(function, _Place(function, folder))
        self._cache_path = str(folder)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)
        self.enable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            _LOG.warning("%s: a kernel cannot be loaded (%s) and is compiled anew", self._cache_path, error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except (OSError, DialevalError):  # no space, no permission: it is compiled again next time
            self.disable()
