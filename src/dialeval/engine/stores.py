"""Stores: where the results of chunks are kept until the run is complete.

- `ItemStore` drops items: nobody asked for them.
- `MemoryItems`: for rows in memory. Columns of known length are filled in chunk by chunk; a large one lies in a
  temporary file. It also collects what rows add to corpus values.
- `PartItems`: for rows that are read and released. Workers write the items of a chunk to files in a workplace, and the
  store knows the files.
- `Journal`: states and items on disk, so that a run that was killed resumes where it stopped.

The folder of a journal holds `manifest.json` (inputs, settings and version of the run) and a file per finished chunk:
the files with its items, as its worker wrote them, and its states, behind their SHA-256. Files are written next to
their place, forced to the disk and renamed, so that there is never half of one; one that is damaged all the same counts
as not finished.

A run resumes a journal only if its manifest is the same. Inputs are identified by path, size, time of change and a
digest of samples, large ones also by when the system last noted any change to them, which nobody can set back; every
difference is named, and the run refused. One run at a time uses a journal.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import msgspec
from msgspec import Struct

from dialeval.core import validation
from dialeval.core.arrays import Floats, make_unscored_column, release
from dialeval.core.contributions import KEPT_ROWS, BatchContributions, Contributions, join_batches
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import force, is_unfinished, make_workplace, write_bytes, write_sealed
from dialeval.core.fingerprint import Fingerprint
from dialeval.core.fold import Level
from dialeval.core.rowtable import PartKind, RunPart
from dialeval.core.states import check_like, from_bytes
from dialeval.core.validation import InvalidError, JsonObject
from dialeval.core.version import __version__
from dialeval.engine.worker import ChunkScores, Job, Stage, System, SystemState, SystemStates
from dialeval.io.chunks import Chunk, FileChunk, MemoryChunk
from dialeval.io.opening import change_times, open_stored, size_of
from dialeval.io.sources import Source

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

MANIFEST = "manifest.json"
LOCK = "lock"

_CHUNK = re.compile(r"-([0-9]{1,18})\.chunk")
_STAGES: tuple[Stage, Stage] = ("facts", "metrics")
_SAMPLES = 16
_SAMPLE_BYTES = 1 << 16
_DIGEST_BYTES = 32


class ItemStore:
    """A store that keeps nothing."""

    keeps_states = False
    workplace: str | None = None
    """A folder in which workers write items; it is deleted when the store is closed."""

    def list_finished(self, stage: Stage) -> set[int]:
        """Return the numbers of the chunks that need not be folded again."""
        return set()

    def put(self, stage: Stage, number: int, states: SystemStates, items: ChunkScores) -> None:
        """Keep the result of a chunk."""

    def read_states(self, stage: Stage, number: int) -> SystemStates:
        """Return the states of a finished chunk."""
        raise KeyError(number)

    def list_parts(self, number: int) -> Sequence[RunPart]:
        """Return the files with the items of a chunk, in order."""
        return ()

    def read_columns(self, system: System) -> Mapping[str, Floats]:
        """Return the items of all rows of a system by key, where they are in memory."""
        return {}

    def join_contributions(self, system: System) -> dict[str, Contributions]:
        """Return what the rows of a system add to corpus values, where that is kept."""
        return {}


class MemoryItems(ItemStore):
    """A store of items in memory, a column per system and key."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = [chunk for chunk in chunks if isinstance(chunk, MemoryChunk)]
        self._sizes: dict[System, tuple[int, int]] = {}
        for chunk in self._chunks:
            dialogues = len(chunk.rows.dialogue_offsets()) - 1
            ends = (chunk.first_row + len(chunk.rows), chunk.first_dialogue + dialogues)
            self._sizes[chunk.source, chunk.rows.system] = ends
        self._columns: dict[System, dict[str, Floats]] = {}
        self._contributions: dict[System, dict[str, list[BatchContributions]]] = {}

    def put(self, stage: Stage, number: int, states: SystemStates, items: ChunkScores) -> None:
        if stage != "metrics":
            return
        chunk = self._chunks[number]
        for system, values_of_system in items.systems.items():
            columns, (rows, dialogues) = self._columns.setdefault(system, {}), self._sizes[system]
            for level, values in values_of_system.values.items():
                is_turn = level == Level.TURN.value
                first, size = (chunk.first_row, rows) if is_turn else (chunk.first_dialogue, dialogues)
                for key, column in values.items():
                    if key not in columns:  # where a chunk has no values for a key, they stay NaN
                        columns[key] = make_unscored_column(size)
                    part = columns[key][first : first + len(column)]
                    part[:] = column
                    release(part)
            if rows <= KEPT_ROWS:
                parts = self._contributions.setdefault(system, {})
                # Those of one name are the same for every metric.
                named = {name: added for by_name in values_of_system.contributions for name, added in by_name.items()}
                for name, added in named.items():
                    parts.setdefault(name, []).append(added)

    def read_columns(self, system: System) -> Mapping[str, Floats]:
        return self._columns.get(system, {})

    def join_contributions(self, system: System) -> dict[str, Contributions]:
        return {name: join_batches(parts) for name, parts in self._contributions.get(system, {}).items()}


class PartItems(ItemStore):
    """A store of the files that workers wrote; threads wait for the disk while further chunks are folded."""

    def __init__(self, workplace: Path, threads: ThreadPoolExecutor) -> None:
        self.workplace, self._threads = str(workplace), threads
        self._parts: dict[int, tuple[RunPart, ...]] = {}

    def put(self, stage: Stage, number: int, states: SystemStates, items: ChunkScores) -> None:
        if stage == "metrics":
            self._parts[number] = items.parts
            for part in items.parts:
                if isinstance(part.place, str):
                    self._threads.submit(force, Path(part.place))

    def list_parts(self, number: int) -> Sequence[RunPart]:
        return self._parts[number]


class Journal(ItemStore):
    """A store of states and items of chunks in a folder of the user."""

    keeps_states = True

    def __init__(self, folder: Path, job: Job, workplace: Path) -> None:
        self._folder, self._job = folder, job
        self.workplace = str(workplace)
        self._like = {stage: job.make_empty_state(stage) for stage in _STAGES}

    @classmethod
    @contextmanager
    def open(
        cls, folder: str | os.PathLike[str], job: Job, sources: Sequence[Source], chunks: Sequence[Chunk]
    ) -> Iterator[Journal]:
        """Open the journal of a run, new or resumed; SettingError if the folder belongs to another run or is in use."""
        import orjson

        path, manifest = Path(folder), msgspec.to_builtins(_make_manifest(job, sources, chunks))
        file = path / MANIFEST
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingError(f"{path} cannot be made ({error.strerror}); give --resume a folder") from None
        _refuse_strangers(path, file)
        with _lock_folder(path), make_workplace(path) as place:
            if file.exists():
                _refuse_changes(_read_manifest(file), orjson.loads(orjson.dumps(manifest)), path)
            else:
                write_bytes(file, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
            yield cls(path, job, place)

    def list_finished(self, stage: Stage) -> set[int]:
        names = (entry.name for entry in self._folder.glob(f"{stage}-*.chunk"))
        numbers = [int(number[1]) for name in names if (number := _CHUNK.fullmatch(name, len(stage)))]
        return {number for number in numbers if _read_content(self._find_file(stage, number)) is not None}

    def put(self, stage: Stage, number: int, states: SystemStates, items: ChunkScores) -> None:
        files = [Path(part.place) for part in items.parts if isinstance(part.place, str)]
        parts = [
            (part.kind, part.place if isinstance(part.place, bytes) else Path(part.place).read_bytes())
            for part in items.parts
        ]
        write_sealed(self._find_file(stage, number), self._job.pack(stage, states, parts))
        for file in files:
            file.unlink()

    def read_states(self, stage: Stage, number: int) -> SystemStates:
        return self._read(stage, number)[1]

    def list_parts(self, number: int) -> Sequence[RunPart]:
        parts = self._read("metrics", number)[0]
        return [RunPart(kind, hashlib.sha256(content).hexdigest(), content) for kind, content in parts]

    def _read(self, stage: Stage, number: int) -> tuple[list[tuple[PartKind, bytes]], SystemStates]:
        """Read the parts with items and the states of a chunk; DataError where they are damaged or forged."""
        file = self._find_file(stage, number)
        try:
            kept = from_bytes(_read_content(file) or b"", self._like[stage])
            check_like(kept, ([], {}), "chunk")
            for part in kept[0]:
                check_like(part, ("", b""), "part")
                if part[0] not in get_args(PartKind):
                    raise InvalidError("a part holds neither items nor rows")
            _check_states(kept[1], self._job, stage)
        except ValueError as error:
            what = f"is damaged ({error})"[:300]
            raise DataError(Problem(str(file), None, what, "remove it, and run the same command again")) from None
        return cast("tuple[list[tuple[PartKind, bytes]], SystemStates]", kept)

    def _find_file(self, stage: Stage, number: int) -> Path:
        return self._folder / f"{stage}-{number}.chunk"


def _read_content(file: Path) -> bytes | None:
    """Return what was written to a file; None if it is not whole."""
    try:
        content = validation.read_bytes(file, "")
    except DataError:
        return None
    digest, rest = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return rest if hashlib.sha256(rest).digest() == digest else None


def _check_states(states: object, job: Job, stage: Stage) -> None:
    """Raise InvalidError for what is not the states of systems, each with a part for every fold of its source."""
    if not isinstance(states, dict) or not all(isinstance(each, SystemState) for each in states.values()):
        raise InvalidError("there is no SystemState by system")
    for system in states:
        check_like(system, (0, ""), "system")
    for (source, _), state in states.items():
        if not 0 <= source < len(job.plans) or type(state.rows) is not int or state.rows < 0:
            raise InvalidError("a state is of no source, or of no rows")
        check_like(state.states, tuple(fold.empty() for fold in job.list_folds(stage, source)))
        if not isinstance(state.fingerprints, dict):
            raise InvalidError("fingerprints are not by column")
        for need, fingerprint in state.fingerprints.items():
            check_like((need, fingerprint), ("", Fingerprint()))


class JournalManifest(Struct):
    """`manifest.json` in the folder of `--resume`: two runs with the same manifest do the same."""

    dialeval: str
    metrics: dict[str, str]
    resources: dict[str, str]
    fields: JsonObject
    systems: dict[str, str | None]
    inputs: dict[str, JsonObject]
    chunks: list[list[str]]


def _make_manifest(job: Job, sources: Sequence[Source], chunks: Sequence[Chunk]) -> JournalManifest:
    shards = [shard for source in sources for shard in source.shards]
    beside = [file for shard in shards for _, files in shard.beside for file in files]
    metrics = [metric for plan in job.plans for metric in plan.folded]
    parts = [chunk for chunk in chunks if isinstance(chunk, FileChunk)]
    return JournalManifest(
        __version__,
        {str(metric): str(metric.signature()) for metric in metrics},
        {str(need): digest for need, digest in job.resources.digests.items()},
        asdict(job.names),
        {str(number): source.system for number, source in enumerate(sources)},
        {path: stamp(path) for path in [*(shard.path for shard in shards), *beside]},
        [[str(chunk), *(str(span) for _, spans in chunk.beside for span in spans)] for chunk in parts],
    )


def stamp(path: str) -> JsonObject:
    """Return what distinguishes two contents of a file without reading all of it."""
    size, (changed, touched) = size_of(path), change_times(path)
    facts = {"bytes": size, "changed": changed, "sample": _digest_samples(path)}
    return facts if size < _SAMPLES * _SAMPLE_BYTES else {**facts, "touched": touched}


def _digest_samples(path: str) -> str:
    """Return a digest of samples of a file from its start to its end; of all of it where it is small."""
    sha, last = hashlib.sha256(), size_of(path) - _SAMPLE_BYTES
    gaps = _SAMPLES - 1
    starts = [last * number // gaps for number in range(_SAMPLES)]
    if last < gaps * _SAMPLE_BYTES:
        starts = list(range(0, last + _SAMPLE_BYTES, _SAMPLE_BYTES))
    with open_stored(path) as stream:
        for start in starts:
            stream.seek(start)
            sha.update(stream.read(_SAMPLE_BYTES))
    return sha.hexdigest()


def _read_manifest(file: Path) -> JsonObject:
    return validation.read_json(file, JsonObject, "remove the folder to start again")


def _refuse_changes(before: Mapping[str, object], now: Mapping[str, object], folder: Path) -> None:
    changed = list(_list_differences(before, now))
    if changed:
        differences = "; ".join(changed[:_SAMPLES])
        raise SettingError(
            f"{folder} belongs to another run: {differences}. Run with what it was begun with, or give another folder"
        )


def _list_differences(before: object, now: object, where: str = "") -> Iterator[str]:
    """Yield every difference between two manifests, in words."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*before, *now]):
            place = f"{where} of {key}" if where else key
            if key not in now:
                yield f"{place} was {before[key]!r:.80} and is gone"
            elif key not in before:
                yield f"{place} is new"
            else:
                yield from _list_differences(before[key], now[key], place)
    elif before != now:
        yield f"{where} was {before!r:.80} and is {now!r:.80}"


def _refuse_strangers(folder: Path, manifest: Path) -> None:
    """Raise SettingError for a folder with other files; nothing has been written to it by then."""
    if manifest.exists():
        _read_manifest(manifest)
    elif any(entry.name != LOCK and not is_unfinished(entry.name) for entry in folder.iterdir()):
        raise SettingError(f"{folder} holds other files; give --resume a folder of its own")


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; the system releases it when the process ends, however it ends."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(folder / LOCK, timeout=0):
            yield
    except Timeout:
        raise SettingError(f"{folder} is in use by another run") from None
    except OSError as error:
        if error.filename is None or Path(error.filename).name != LOCK:
            raise
        raise SettingError(f"{folder / LOCK} cannot be locked ({error.strerror}); remove it") from None
