"""Preflight checks of output paths.

A folder may be reached by a link that leads to a folder; a file is never written through one.
"""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dialeval.core.errors import DataError, Fault
from dialeval.core.files import is_device, refusals_explained, refuse_link


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Raise DataError unless a folder is there, or can be made, and may be written to."""
    folder = Path(folder)
    with refusals_explained(folder):
        there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
        if not there.exists():
            refuse_link(there)
        tempfile.TemporaryFile(dir=there).close()


def check_file(target: Path | None, *inputs: Any) -> None:
    """Raise DataError unless a file may be written: it is no input, and its folder is writable; None is no file."""
    if target is None:
        return
    refuse_inputs([target], *inputs)
    if not is_device(target):
        with refusals_explained(target):
            refuse_link(target)
            if target.is_dir():
                raise IsADirectoryError(0, "is a folder")
        check_writable(target.parent)


def check_files(
    folder: str | os.PathLike[str], names: Iterable[str], own: Callable[[Path], Collection[str]], *inputs: Any
) -> None:
    """Raise DataError unless files of these names may be written to a folder.

    Refused are folders that cannot be written to, files that are `inputs` (see `refuse_inputs`), and files of the same
    names that are somebody else's: all but those that `own` gives for the folder.
    """
    folder = Path(folder)
    check_writable(folder)
    there = [name for name in names if os.path.lexists(folder / name)]
    refuse_inputs([folder / name for name in there], *inputs)
    mine = own(folder) if there else ()
    what, remedy = "would be overwritten, but dialeval did not write it", "choose another folder, or move it away"
    strange = [folder / name for name in there if name not in mine or (folder / name).is_dir()]
    if strange:
        raise DataError(Fault(str(file), None, what, remedy) for file in strange)


def refuse_inputs(targets: Iterable[Path], *inputs: Any) -> None:
    """Raise DataError where a file that would be written is an input.

    An input is a path, a pattern, a folder of which all files count, or several of these in a mapping or a tuple;
    anything else (texts, tables) is no file.
    """
    there = [target for target in targets if target.exists()]
    places = {_identity(place): place for place in _places(inputs)} if there else {}
    for target in there:
        place = places.get(_identity(target)) or places.get(_identity(target.absolute().parent))
        if place is not None:
            what = f"would be overwritten, but it is an input ({place})"
            raise DataError(Fault(str(target), None, what, "write to another place"))


def _identity(path: Path) -> tuple[int, int]:
    """Return what is equal for two paths of the same file or folder."""
    known = path.stat()
    return known.st_dev, known.st_ino


def _places(given: Any) -> Iterator[Path]:
    """Yield the local files and folders among inputs."""
    if isinstance(given, Mapping):
        given = tuple(given.values())
    if isinstance(given, tuple):
        for each in given:
            yield from _places(each)
    elif isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        path = unquote(path.removeprefix("file://")) if path.startswith("file://") else path
        with suppress(OSError, ValueError):  # a name too long, or with a null byte, is no file
            yield from map(Path, [path] if Path(path).exists() else glob.glob(path, recursive=True))  # noqa: PTH207
