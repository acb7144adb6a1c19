"""Atomic writing: a file is replaced as a whole, or the previous one stays.

Everything is written next to its place, on the same file system, flushed to the disk and renamed in the end:

- `replace_file`, `write_bytes`: one file.
- `build_folder`: a folder that nobody else writes to (an entry of the cache, a data pack).
- `replace_files`: files that belong together (a run, a judge) in a folder that may hold other files as well; those
  that other processes write are made in a workplace (`make_workplace`) there.

Files that belong together are not written as a folder and renamed: an existing folder cannot be replaced in one step,
it may be the current one (`-o .`), and other files in it are the user's. One of the files is the *manifest*: it holds
the SHA-256 of the others. These are written first, under hidden names with their digests; then, under a lock, the
manifest is renamed, which makes the new files the valid ones; then each of the others is renamed. A process that is
killed before the manifest was renamed leaves the old files, one that is killed afterwards the new ones: `place_of`
finds those under hidden names, and the next save renames them. So of two saves at a time one wins as a whole.

Files that a killed process left behind have names of a known form. The next process that writes there removes them
when they are a day old.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from dialeval.core.errors import DataError, Problem, SettingError

T = TypeVar("T")

_UNFINISHED = re.compile(r"\..*\.[0-9a-f]{12}\.unfinished")
_WAITING = re.compile(r"\.(.+)\.([0-9a-f]{64})\.waiting")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LOCK = ".dialeval.lock"
_READS = 100
"""Attempts to read files that are being replaced, before giving up."""
_LONGEST_NAME = 100
"""Characters of a name that a hidden name repeats; file systems limit the length of names."""
_HASHED_BYTES = 1 << 20
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_LEFT_BEHIND_SECONDS = 24 * 3600
_WAIT_SECONDS = 30.0
"""Time to wait for another save into the same folder, which only has to rename its files."""
_POLL_SECONDS = 0.01


@contextmanager
def replace_file(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path next to `target` to write to; it replaces the target when the block ends well.

    A device or a pipe (`/dev/null`, `/dev/stdout`) is written to directly. A file is never written through a link,
    which somebody else may have put there. DataError where it cannot be written: a link, no permission, no space, or a
    folder of that name.
    """
    target = Path(target)
    with explain_refusals(target):
        if is_device(target):
            yield target
            return
        refuse_link(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        _swept_once(target.parent)
        with _make_unfinished(target) as beside:
            yield beside
            force(beside)
            beside.replace(target)
        force(target.parent)


def is_device(target: Path) -> bool:
    """Return whether a path is a device, a pipe, or an open file of this process such as `/dev/stdout`."""
    return (target.is_absolute() and target.parts[1] in ("dev", "proc")) or (
        target.exists() and not (target.is_file() or target.is_dir())
    )


def refuse_link(target: Path) -> None:
    """Raise DataError where a file to be written is a link, even a broken one."""
    if target.is_symlink():
        what = f"is a link to {os.readlink(target)}"  # noqa: PTH115
        raise DataError(Problem(str(target), None, what, "name the file itself, or remove the link"))


def write_bytes(target: str | os.PathLike[str], content: bytes) -> None:
    """Write a whole file, or leave the previous one."""
    with replace_file(target) as beside:
        beside.write_bytes(content)


def write_sealed(target: Path, content: bytes) -> None:
    """Write the SHA-256 of a content and then the content; a pipe or a link in its place is removed."""
    if target.is_symlink() or (target.exists() and not target.is_file()):
        target.unlink()
    write_bytes(target, hashlib.sha256(content).digest() + content)


def write_scratch(target: Path, content: bytes | memoryview, what: str = "temporary files") -> None:
    """Write a file in a temporary folder, which nobody reads after this process: directly, and not flushed."""
    try:
        target.write_bytes(content)
    except OSError as error:
        remedy = "make room there, or set TMPDIR where it is a temporary folder"
        raise SettingError(f"{what} cannot be written to {target.parent} ({error.strerror}); {remedy}") from error


@contextmanager
def build_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder of the cache to fill; it becomes `target` when the block ends well, else it is removed.

    An existing target stays: another process built the same content.
    """
    with explain_cache_refusals():
        target.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=target.parent).close()
    sweep(target.parent)
    # The block reads other files too: only the error of a full disk must be the cache's.
    with explain_cache_refusals(FULL), _make_unfinished(target, folder=True) as beside:
        yield beside
        for place in (*beside.rglob("*"), beside):
            force(place)
        try:
            beside.rename(target)
        except OSError:
            if not target.is_dir():
                raise
        force(target.parent)


def discard(folder: Path) -> None:
    """Remove a folder of the cache; it is renamed first, since deleting may take long."""
    with explain_cache_refusals(), _make_unfinished(folder, folder=True) as doomed, suppress(FileNotFoundError):
        folder.rename(doomed / folder.name)


class FileSet:
    """Files of a folder that are being written, see `replace_files`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.written: dict[str, tuple[Path, str]] = {}
        """The hidden path and the SHA-256 of each file, by its name."""
        self.removed: set[str] = set()
        """Names of files that the new ones make obsolete."""

    def add(self, name: str, write: Callable[[Path], object]) -> str:
        """Write a file by a function that is given the path; return its SHA-256."""
        write(self._folder / name)
        self.written[name] = self._folder / name, sha256_of(self._folder / name)
        return self.written[name][1]

    def add_bytes(self, name: str, content: bytes) -> str:
        """Write a file; return its SHA-256."""
        return self.add(name, lambda path: path.write_bytes(content))

    def take(self, name: str, place: str | bytes, sha256: str) -> None:
        """Take a file from a workplace (`make_workplace`) of the folder, or write the given content."""
        if isinstance(place, bytes):
            self.add_bytes(name, place)
        else:
            self.written[name] = Path(place), sha256


@contextmanager
def make_workplace(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a hidden folder inside of a folder, for files that `FileSet.take` moves from there; remove it in the end.

    The outer folder is made if it does not exist, and then removed if it is empty in the end.
    """
    folder = Path(folder)
    made = not folder.exists()
    try:
        with ExitStack() as stack:
            with explain_refusals(folder):
                folder.mkdir(parents=True, exist_ok=True)
                sweep(folder)
                place = stack.enter_context(_make_unfinished(folder.absolute() / "files", folder=True))
            yield place
    finally:
        if made:
            with suppress(OSError):
                folder.rmdir()


@contextmanager
def replace_files(folder: str | os.PathLike[str], manifest: str) -> Iterator[FileSet]:
    """Write files that belong together; they replace those of their names when the block ends well.

    The manifest, one of them, holds the SHA-256 of all others. DataError where that cannot be done.
    """
    folder = Path(folder)
    with explain_refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        with _make_unfinished(folder / "files", folder=True) as beside:
            files = FileSet(beside)
            yield files
            for file, _ in files.written.values():
                force(file)
            with _lock_folder(folder):
                _commit(folder, manifest, files)


def _commit(folder: Path, manifest: str, files: FileSet) -> None:
    """Move written files to their places; the caller holds the folder's lock."""
    for name in files.written:
        if (folder / name).is_dir():
            raise IsADirectoryError(0, f"{name} is a folder")
    committed = (folder / manifest).read_bytes() if (folder / manifest).is_file() else b""
    for entry in list(folder.iterdir()):  # finish what a killed save began
        if waits := _WAITING.fullmatch(entry.name):
            entry.replace(folder / waits[1]) if waits[2].encode() in committed else entry.unlink()
    others = {name: _waiting_path(folder / name, sha) for name, (_, sha) in files.written.items() if name != manifest}
    try:
        for name, waiting in others.items():
            files.written[name][0].replace(waiting)
        force(folder)
        files.written[manifest][0].replace(folder / manifest)
    except BaseException:
        for waiting in others.values():
            waiting.unlink(missing_ok=True)
        raise
    force(folder)
    for name, waiting in others.items():
        waiting.replace(folder / name)
    for name in files.removed - files.written.keys():
        (folder / name).unlink(missing_ok=True)
    force(folder)


def _waiting_path(file: Path, sha256: str) -> Path:
    return file.with_name(f".{file.name}.{sha256}.waiting")


def place_of(file: Path, sha256: str) -> Path:
    """Return the path of a file that `replace_files` wrote: its own, or a hidden one until it is renamed.

    It may be renamed before it is read; `read_consistently` then reads again.
    """
    if not _SHA256.fullmatch(sha256):  # a manifest may be damaged
        return file
    waiting = _waiting_path(file, sha256)
    return waiting if os.path.isfile(waiting) else file  # noqa: PTH113  (a name that is too long is no file)


def read_consistently(manifest: Path, read: Callable[[], T]) -> T:
    """Read files that `replace_files` wrote, and again where a save changed the folder meanwhile."""
    for _ in range(_READS):
        before = _version(manifest)
        try:
            return read()
        except DataError:
            if _version(manifest) == before:
                raise
    return read()


def _version(manifest: Path) -> tuple[int, int] | None:
    """Return a value that changes when a manifest, or a file next to it, is replaced."""
    try:
        return manifest.stat().st_ino, manifest.parent.stat().st_mtime_ns
    except (OSError, ValueError):  # a name with a NUL is no path
        return None


def sweep(folder: Path) -> None:
    """Remove unfinished files of killed processes that are more than a day old."""
    with suppress(OSError):
        for name in filter(_UNFINISHED.fullmatch, os.listdir(folder)):  # noqa: PTH208  (a large folder, often)
            place = folder / name
            with suppress(OSError):  # another process sweeps too
                if time.time() - place.lstat().st_mtime > _LEFT_BEHIND_SECONDS:
                    shutil.rmtree(place) if place.is_dir() else place.unlink()


_swept_once = cache(sweep)
"""Swept once per folder, since a process may write thousands of single files there."""


@contextmanager
def _make_unfinished(target: Path, folder: bool = False) -> Iterator[Path]:
    """Make a new file or folder next to the target, and remove it in the end if it is still there."""
    beside = target.with_name(f".{target.name[:_LONGEST_NAME]}.{os.urandom(6).hex()}.unfinished")
    try:  # a signal may end the process as soon as it is made
        beside.mkdir() if folder else beside.touch(exist_ok=False)
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True) if folder else beside.unlink(missing_ok=True)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system releases it when the process ends, however it ends."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(folder / _LOCK, timeout=_WAIT_SECONDS, poll_interval=_POLL_SECONDS):
            try:
                yield
            finally:
                with suppress(OSError):
                    (folder / _LOCK).unlink()  # while it is held: a waiting process makes another
    except Timeout:
        what, remedy = "another process is saving there", "run again when it has ended, or choose another folder"
        raise DataError(Problem(str(folder), None, what, remedy)) from None


def force(place: Path) -> None:
    """Flush a file, or the names in a folder, to the disk (fsync)."""
    is_folder = place.is_dir()
    if is_folder and os.name != "posix":
        return
    handle = os.open(place, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError:
        if not is_folder:  # some file systems cannot do it for a folder
            raise
    finally:
        os.close(handle)


def sha256_of(*files: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; of several files, that of their digests one after the other."""
    if len(files) > 1:
        return hashlib.sha256("".join(map(sha256_of, files)).encode()).hexdigest()
    sha = hashlib.sha256()
    with files[0].open("rb") as stream:
        while chunk := stream.read(_HASHED_BYTES):
            sha.update(chunk)
    return sha.hexdigest()


@contextmanager
def explain_refusals(target: Path) -> Iterator[None]:
    """Turn an OSError into a DataError that names the target."""
    try:
        yield
    except OSError as error:
        remedy = "choose a folder that may be written to and has space left"
        what = f"cannot be written ({error.strerror or error})"
        raise DataError(Problem(str(target), None, what, remedy)) from error


# Preflight checks of output paths.
#
# A folder may be reached by a link that leads to a folder; a file is never written through one.


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Raise DataError unless a folder exists or can be made, and may be written to."""
    folder = Path(folder)
    with explain_refusals(folder):
        nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
        if not nearest.exists():
            refuse_link(nearest)
        tempfile.TemporaryFile(dir=nearest).close()


def check_file(target: Path | None, *inputs: object) -> None:
    """Raise DataError unless a file may be written: it is no input, and its folder is writable; None is no file."""
    if target is None:
        return
    refuse_inputs([target], *inputs)
    if not is_device(target):
        with explain_refusals(target):
            refuse_link(target)
            if target.is_dir():
                raise IsADirectoryError(0, "is a folder")
        check_writable(target.parent)


def check_files(
    folder: str | os.PathLike[str], names: Iterable[str], list_own: Callable[[Path], Collection[str]], *inputs: object
) -> None:
    """Raise DataError unless files of these names may be written to a folder.

    Refused are folders that cannot be written to, files that are `inputs` (see `refuse_inputs`), and existing files
    that are not among those that `own` returns for the folder.
    """
    folder = Path(folder)
    check_writable(folder)
    existing = [name for name in names if os.path.lexists(folder / name)]
    refuse_inputs([folder / name for name in existing], *inputs)
    mine = list_own(folder) if existing else ()
    what, remedy = "would be overwritten, but dialeval did not write it", "choose another folder, or move it away"
    strange = [folder / name for name in existing if name not in mine or (folder / name).is_dir()]
    if strange:
        raise DataError(Problem(str(file), None, what, remedy) for file in strange)


def refuse_inputs(targets: Iterable[Path], *inputs: object) -> None:
    """Raise DataError where a file that would be written is an input.

    An input is a path, a pattern, a folder (all its files), or several of these in a mapping or a tuple; anything else
    (texts, tables) is no file.
    """
    existing = [target for target in targets if target.exists()]
    places = {_identity(place): place for place in _places(inputs)} if existing else {}
    for target in existing:
        place = places.get(_identity(target)) or places.get(_identity(target.absolute().parent))
        if place is not None:
            what = f"would be overwritten, but it is an input ({place})"
            raise DataError(Problem(str(target), None, what, "write to another place"))


def _identity(path: Path) -> tuple[int, int]:
    """Return a value that is equal for two paths of the same file or folder."""
    status = path.stat()
    return status.st_dev, status.st_ino


def _places(source: object) -> Iterator[Path]:
    """Yield the local files and folders among inputs."""
    if isinstance(source, Mapping | tuple):
        for part in source.values() if isinstance(source, Mapping) else source:
            yield from _places(part)
    elif isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        path = unquote(path.removeprefix("file://")) if path.startswith("file://") else path
        with suppress(OSError, ValueError):  # a name too long, or with a null byte, is no file
            yield from map(Path, [path] if Path(path).exists() else glob.glob(path, recursive=True))  # noqa: PTH207


# The user's cache folder: `DIALEVAL_CACHE`, else the platform's usual place (`XDG_CACHE_HOME/dialeval` or
# `~/.cache/dialeval` on Linux). It is made on first use. A folder in it is complete or absent (`build_folder`), also
# while other processes write it or after one was interrupted.


def cache_folder(*parts: str) -> Path:
    """Return the cache folder or one inside it; it is made if it does not exist."""
    folder = cache_root().joinpath(*parts)
    with explain_cache_refusals():
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def explain_cache_refusals(refusals: frozenset[int] | None = None) -> Iterator[None]:
    """Turn an OSError into a SettingError with a remedy; `refusals`: only errors with these numbers."""
    try:
        yield
    except OSError as error:
        if refusals is not None and error.errno not in refusals:
            raise
        remedy = "make room, or set DIALEVAL_CACHE to another folder"
        raise SettingError(f"cannot write to the cache folder {cache_root()}: {error.strerror}; {remedy}") from error


def cache_root() -> Path:
    """Return the cache folder, whether it exists or not; SettingError where there is no home folder for it."""
    if chosen := os.environ.get("DIALEVAL_CACHE"):
        try:
            return Path(chosen).expanduser().absolute()
        except RuntimeError:
            raise SettingError(f"DIALEVAL_CACHE={chosen!r} names the home folder of a user who is not there") from None
    from platformdirs import user_cache_path

    usual = user_cache_path("dialeval", appauthor=False)
    if not usual.is_absolute():
        raise SettingError("there is no home folder to keep the cache in; set DIALEVAL_CACHE to a folder")
    return usual
