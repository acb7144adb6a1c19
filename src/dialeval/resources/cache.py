"""The user's cache folder: where it is, and how something gets into it and out of it.

The folder is `DIALEVAL_CACHE`; without it the platform's usual place (`XDG_CACHE_HOME/dialeval` or `~/.cache/dialeval`
on Linux). It is made on first use.

A folder in the cache is whole or absent: it is built under another name and renamed, so that neither a run beside this
one nor an interrupted one ever shows half of it. What a killed process left behind is removed a day later.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dialeval.core.errors import SettingError

_UNFINISHED = ".unfinished-"
_LEFT_BEHIND_SECONDS = 24 * 3600
_CHUNK = 1 << 20
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_CLOSED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST})


def cache_folder(*parts: str) -> Path:
    """The cache folder or one inside it, made if it is not there."""
    folder = _root().joinpath(*parts)
    with refusals_explained():
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _root() -> Path:
    if own := os.environ.get("DIALEVAL_CACHE"):
        return Path(own).expanduser().absolute()
    from platformdirs import user_cache_path

    usual = user_cache_path("dialeval", appauthor=False)
    if not usual.is_absolute():
        raise SettingError("there is no home folder to keep the cache in; set DIALEVAL_CACHE to a folder")
    return usual


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """A new folder to fill; it becomes `target` when the block ends without an error, else it is removed.

    A target that is there already stays: whoever built it built the same thing.
    """
    with refusals_explained():
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        beside = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=target.parent))
    with refusals_explained(FULL):  # the block reads other files too: only a full disk is surely the cache's
        try:
            yield beside
            beside.chmod(0o755)  # mkdtemp makes it the user's alone, but a cache may be shared
            try:
                beside.rename(target)
            except OSError:
                if not target.is_dir():
                    raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def discard(folder: Path) -> None:
    """Remove a folder of the cache, so that it is gone at once even where deleting takes long."""
    with refusals_explained():
        doomed = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder.parent))
        try:
            folder.rename(doomed / folder.name)
        except FileNotFoundError:
            pass
        finally:
            shutil.rmtree(doomed, ignore_errors=True)


def sha256_of(*files: Path) -> str:
    """SHA-256 of a file in hexadecimal; of several files, that of their digests one after the other."""
    digests = [_sha256(file) for file in files]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def _sha256(file: Path) -> str:
    sha = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            sha.update(chunk)
    return sha.hexdigest()


def _sweep(folder: Path) -> None:
    """Remove what killed processes left behind; nothing takes a day to build."""
    now = time.time()
    for left in folder.glob(f"{_UNFINISHED}*"):
        with suppress(FileNotFoundError):  # another run sweeps too
            if now - left.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def refusals_explained(refusals: frozenset[int] = FULL | _CLOSED) -> Iterator[None]:
    """Turn the OSError of a full or closed disk into a SettingError that says what the user can do."""
    try:
        yield
    except OSError as error:
        if error.errno not in refusals:
            raise
        remedy = "make room, or set DIALEVAL_CACHE to another folder"
        raise SettingError(f"cannot write to the cache folder {_root()}: {error.strerror}; {remedy}") from error
