"""The user's cache folder: find it, build and remove folders in it.

The folder is `DIALEVAL_CACHE`; without it the platform's usual place (`XDG_CACHE_HOME/dialeval` or `~/.cache/dialeval`
on Linux). It is made on first use.

A folder in the cache is whole or absent (`core.files.building`): neither a run beside this one nor an interrupted one
ever shows half of it.
"""

from __future__ import annotations

import errno
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dialeval.core import files
from dialeval.core.cache_root import cache_root
from dialeval.core.errors import SettingError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def cache_folder(*parts: str) -> Path:
    """Return the cache folder or one inside it; it is made if it is not there."""
    folder = cache_root().joinpath(*parts)
    with refusals_explained():
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """Provide a new folder of the cache to fill, see `core.files.building`."""
    with refusals_explained():
        target.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=target.parent).close()
    # The block reads other files too: only a full disk is surely the cache's.
    with refusals_explained(FULL), files.building(target) as folder:
        yield folder


def discard(folder: Path) -> None:
    """Remove a folder of the cache, so that it is gone at once even where deleting takes long."""
    with refusals_explained():
        files.discard(folder)


def sha256_of(*paths: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; of several files, that of their digests one after the other."""
    digests = [files.sha256_of(path) for path in paths]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


@contextmanager
def refusals_explained(refusals: frozenset[int] | None = None) -> Iterator[None]:
    """Turn an OSError into a SettingError that says what the user can do; `refusals`: only those with these numbers."""
    try:
        yield
    except OSError as error:
        if refusals is not None and error.errno not in refusals:
            raise
        remedy = "make room, or set DIALEVAL_CACHE to another folder"
        raise SettingError(f"cannot write to the cache folder {cache_root()}: {error.strerror}; {remedy}") from error
