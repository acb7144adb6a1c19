"""The journal: finished pieces on disk, so that a run that was killed goes on where it stopped.

A folder holds `manifest.json` (what the run is about: inputs, settings, version) and a file per finished piece with its
states and items behind their SHA-256. Files are written beside their place, forced to the disk and renamed, so that
there is never half of one; one that is damaged all the same counts as not finished.

A run takes up a journal only if its manifest says the same. Inputs are known by path, size, time of change and a
digest of samples; whatever differs is named, and the run refused. One run at a time uses a journal.

Without a folder it is a `Shelf`: items of finished pieces in a temporary folder, until they are put together.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.files import replacing, write_bytes
from dialeval.core.fingerprint import Fingerprint
from dialeval.core.states import DamagedStateError, from_bytes, to_bytes
from dialeval.data.formats.streams import changed_at, size_of, stored
from dialeval.engine.job import Job, Part, Parts, PieceItems, Task

MANIFEST = "manifest.json"
LOCK = "lock"
_HALF_WRITTEN = re.compile(r"\.(manifest\.json|[a-z]+-\d+\.piece)\.\w+")
"""What `core.files.replacing` calls a file of ours until it is whole."""

_SAMPLES = 16
_SAMPLE_BYTES = 1 << 16
_DIGEST_BYTES = 32


class Shelf:
    """Keeps the items of pieces until they are put together; the states of none."""

    keeps_states = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Shelf]:
        """A shelf that vanishes with the run."""
        with tempfile.TemporaryDirectory(prefix="dialeval-") as folder:
            yield cls(Path(folder))

    def finished(self, task: Task) -> set[int]:
        """The numbers of the pieces that need not be folded again."""
        return set()

    def put(self, task: Task, number: int, parts: Parts, items: PieceItems) -> None:
        """Keep what has come of a piece."""
        if task == "metrics":
            (self._folder / f"{number}").write_bytes(to_bytes(items))

    def parts(self, task: Task, number: int) -> Parts:
        """The parts of a finished piece."""
        raise KeyError(number)

    def items(self, number: int) -> PieceItems:
        """The items of a piece."""
        found: PieceItems = from_bytes((self._folder / f"{number}").read_bytes(), None)
        return found


class Journal(Shelf):
    """Keeps everything that has come of pieces, in a folder of the user's."""

    keeps_states = True

    def __init__(self, folder: Path, job: Job) -> None:
        super().__init__(folder)
        self._like = {
            task: (Part(0, 0, tuple(each.empty() for each in job.folded(task))), Fingerprint()) for task in _TASKS
        }

    @classmethod
    @contextmanager
    def taken_up(cls, folder: str | os.PathLike[str], job: Job, manifest: Mapping[str, Any]) -> Iterator[Journal]:
        """The journal of a run; SettingError if the folder belongs to another run or is in use."""
        import orjson

        path = Path(folder)
        _make(path)
        file = path / MANIFEST
        _refuse_strangers(path, file)
        with _locked(path):
            if file.exists():
                _refuse_changes(_read_manifest(file), orjson.loads(orjson.dumps(manifest)), path)
            else:
                write_bytes(file, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
            for entry in path.iterdir():
                if _HALF_WRITTEN.fullmatch(entry.name):  # by a run that was killed
                    entry.unlink()
            yield cls(path, job)

    def finished(self, task: Task) -> set[int]:
        names = (entry.name for entry in self._folder.glob(f"{task}-*.piece"))
        numbers = [int(number) for name in names if (number := name[len(task) + 1 : -len(".piece")]).isdigit()]
        return {number for number in numbers if self._content(task, number) is not None}

    def put(self, task: Task, number: int, parts: Parts, items: PieceItems) -> None:
        content = to_bytes((parts, items))
        with replacing(self._file(task, number)) as beside, beside.open("wb") as file:
            file.write(hashlib.sha256(content).digest())
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def parts(self, task: Task, number: int) -> Parts:
        return self._read(task, number)[0]

    def items(self, number: int) -> PieceItems:
        return self._read("metrics", number)[1]

    def _read(self, task: Task, number: int) -> tuple[Parts, PieceItems]:
        content = self._content(task, number)
        try:
            found: tuple[Parts, PieceItems] = from_bytes(content or b"", self._like[task])
        except DamagedStateError:
            file = self._file(task, number)
            raise DataError(Fault(str(file), None, "is damaged", "remove it, and run the same command again")) from None
        return found

    def _content(self, task: Task, number: int) -> bytes | None:
        """What was written of a piece; None if it is not whole."""
        try:
            content = self._file(task, number).read_bytes()
        except OSError:
            return None
        digest, rest = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
        return rest if hashlib.sha256(rest).digest() == digest else None

    def _file(self, task: Task, number: int) -> Path:
        return self._folder / f"{task}-{number}.piece"


_TASKS: tuple[Task, Task] = ("facts", "metrics")


def stamps(paths: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What tells one content of a file from another without reading all of it."""
    return {path: {"bytes": size_of(path), "changed": changed_at(path), "sample": _sample(path)} for path in paths}


def _sample(path: str) -> str:
    """A digest of some stretches of a file, from its start to its end; of all of it where it is small."""
    sha, last = hashlib.sha256(), size_of(path) - _SAMPLE_BYTES
    gaps = _SAMPLES - 1
    starts = [last * number // gaps for number in range(_SAMPLES)]
    if last < gaps * _SAMPLE_BYTES:
        starts = list(range(0, last + _SAMPLE_BYTES, _SAMPLE_BYTES))
    with stored(path) as stream:
        for start in starts:
            stream.seek(start)
            sha.update(stream.read(_SAMPLE_BYTES))
    return sha.hexdigest()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"{folder} cannot be made ({error.strerror}); give --resume a folder") from None


def _read_manifest(file: Path) -> dict[str, Any]:
    import orjson

    try:
        found = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise SettingError(f"{file} cannot be read ({error}); remove the folder to start anew") from None
    if not isinstance(found, dict):
        raise SettingError(f"{file} is no manifest; remove the folder to start anew")
    return found


def _refuse_changes(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> None:
    changed = list(_differences(before, now))
    if changed:
        shown = "; ".join(changed[:_SAMPLES])
        raise SettingError(
            f"{folder} belongs to another run: {shown}. Run with what it was begun with, or give another folder"
        )


def _differences(before: Any, now: Any, where: str = "") -> Iterator[str]:
    """What differs between two manifests, each difference in words."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            place = f"{where} of {key}" if where else key
            if key not in now:
                yield f"{place} was {_shown(before[key])} and is gone"
            elif key not in before:
                yield f"{place} is new"
            else:
                yield from _differences(before[key], now[key], place)
    elif before != now:
        yield f"{where} was {_shown(before)} and is {_shown(now)}"


def _shown(value: Any) -> str:
    return f"{value!r:.80}"


def _refuse_strangers(folder: Path, manifest: Path) -> None:
    """SettingError where a folder is somebody else's; nothing has been written to it by then."""
    if manifest.exists():
        _read_manifest(manifest)
    elif any(entry.name != LOCK and not _HALF_WRITTEN.fullmatch(entry.name) for entry in folder.iterdir()):
        raise SettingError(f"{folder} holds other files; give --resume a folder of its own")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system opens it when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # not on this system: two runs in one folder are then the user's to avoid
        yield
        return
    with (folder / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SettingError(f"{folder} is in use by another run") from None
        yield
