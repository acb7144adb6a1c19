"""Writing files so that no reader ever sees half of one: write beside the target, then rename."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dialeval.core.errors import DataError, Fault


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside `target` to write to; it takes the target's place when the block ends well, else it vanishes.

    DataError where that cannot be done: no permission, no space, a folder in the way.
    """
    target = Path(target)
    beside = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        os.close(handle)
        beside = Path(name)
        yield beside
        beside.chmod(0o666 & ~_umask())
        beside.replace(target)
    except OSError as error:
        raise _cannot_write(target, error) from error
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)


def write_bytes(target: str | os.PathLike[str], content: bytes) -> None:
    """Write a whole file, or leave what was there."""
    with replacing(target) as beside:
        beside.write_bytes(content)


def check_writable(folder: str | os.PathLike[str]) -> None:
    """DataError unless a folder is there, or can be made, and may be written to; ask it before long work."""
    folder = Path(folder)
    try:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise _cannot_write(folder, error) from error


def _cannot_write(target: Path, error: OSError) -> DataError:
    remedy = "choose a folder that may be written to and has space left"
    return DataError(Fault(str(target), None, f"cannot be written ({error.strerror})", remedy))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
