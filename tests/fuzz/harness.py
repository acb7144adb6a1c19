"""One harness for every format that dialeval reads: sound files are changed, and whatever happens then must be orderly.

A *target* is a function that gets a folder of files and reads them. The harness takes one of the target's seeds (sound
files), changes it (`mutation`), and calls the target. What may happen: a result, or a `DialevalError`. What is a
*finding*: any other exception, a warning, more than the target's seconds, more than `MEMORY` bytes, a dead process,
and files that were changed or left behind.

Register a target in any module of this folder:

    @target("notes", seeds=lambda: [{"notes.json": b"[1, 2]"}])
    def notes(folder: Path) -> None:
        read_notes(folder / "notes.json")

An input is a mapping of file names to bytes (`Files`); names may have folders in them. How a file is changed depends on
its suffix. What a target writes goes into a `tempfile.TemporaryDirectory` of its own; TMPDIR must be empty afterwards.

Input number `n` of a target depends on the seed, the target's name and `n` alone, so that a run can be repeated, and so
that the input that killed a process is known without having been written. The first inputs are the seeds as they are,
and they must give a result.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import io
import logging
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import orjson

import dialeval
from dialeval.core.errors import DialevalError, collect_warnings
from fuzz.mutation import Mutator, mutated

Files: TypeAlias = dict[str, bytes]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SEEDS = HERE / "seeds"
FOUND = HERE / "found"
"""Inputs that were findings once, `TARGET-DIGEST.zip`: each is tried again, as it is, in every run."""

MEMORY = 2 << 30
"""Bytes that a process may take on top of what it had when all seeds had been read."""

SOURCE = Path(dialeval.__file__).resolve().parent
"""Where the frames of a traceback lie that are worth naming."""

MINIMIZING_SECONDS = 5.0
COMPILING = 120.0
"""Seconds for the seeds, which on a new machine wait for the compiler."""
BUSY, BUSY_SECONDS = 20.0, 600.0
"""How many times slower than alone a machine may be that others use too, and how many seconds that may take at most."""
GRACE = 20.0
"""A process that says nothing for so many seconds beyond a target's limit hangs, and is killed."""

TOO_LONG = "took more than"
_NO_TARGETS = frozenset({"__main__", "harness", "mutation"})


class TooLong(BaseException):
    """An input took more than its seconds; no `except Exception` may stop it."""


@dataclass(frozen=True)
class Target:
    """What is attacked: `read` gets a folder that holds an input's files."""

    name: str
    read: Callable[[Path], object]
    seeds: Callable[[], Sequence[Mapping[str, bytes]]]
    mutators: Mapping[str, Sequence[Mutator]] = field(default_factory=dict)
    """More ways to change files, by the suffix of the file."""
    seconds: float = 5.0


TARGETS: dict[str, Target] = {}


def target(
    name: str,
    seeds: Callable[[], Sequence[Mapping[str, bytes]]],
    mutators: Mapping[str, Sequence[Mutator]] | None = None,
    seconds: float = 5.0,
) -> Callable[[Callable[[Path], object]], Callable[[Path], object]]:
    """Register a function as a target."""

    def decorate(read: Callable[[Path], object]) -> Callable[[Path], object]:
        if name in TARGETS:
            raise ValueError(f"two targets are called {name}")
        TARGETS[name] = Target(name, read, seeds, mutators or {}, seconds)
        return read

    return decorate


def all_targets(modules: Sequence[str] = ()) -> dict[str, Target]:
    """The targets of every module in this folder, or of the modules that are named."""
    found = sorted(path.stem for path in HERE.glob("*.py") if not path.name.startswith("test_"))
    for module in modules or [f"fuzz.{name}" for name in found if name not in _NO_TARGETS]:
        importlib.import_module(module)
    return TARGETS


def checked_in(name: str) -> list[Files]:
    """The seeds of a folder in `seeds/`: each file in it is an input of one file, each folder one of several."""
    entries = sorted((SEEDS / name).iterdir())
    return [_files_in(entry) if entry.is_dir() else {entry.name: entry.read_bytes()} for entry in entries]


def _files_in(folder: Path) -> Files:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Put an input into a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def found_before(name: str) -> list[Files]:
    """The inputs of a target that were findings once."""
    return [unpacked(path) for path in sorted(FOUND.glob(f"{name}-????????????.zip"))]


def packed(files: Mapping[str, bytes]) -> bytes:
    """An input as a zip archive: the same bytes for the same input."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def unpacked(path: Path) -> Files:
    """The input in a zip archive that `packed` made."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@dataclass(frozen=True)
class Inputs:
    """The inputs of a target, by number."""

    target: Target
    seed: int
    seeds: Sequence[Files]
    found: Sequence[Files]

    @classmethod
    def of(cls, chosen: Target, seed: int) -> Inputs:
        """With the seeds made and the old findings read."""
        return cls(chosen, seed, [dict(files) for files in chosen.seeds()], found_before(chosen.name))

    @property
    def fixed(self) -> int:
        """How many inputs are tried as they are."""
        return len(self.seeds) + len(self.found)

    def __getitem__(self, number: int) -> Files:
        if number < len(self.seeds):
            return self.seeds[number]
        if number < self.fixed:
            return self.found[number - len(self.seeds)]
        rng = random.Random(f"{self.seed}/{self.target.name}/{number}")
        return mutated(rng.choice(self.seeds), rng, self.seeds, self.target.mutators)


@dataclass
class Tally:
    """What became of a target's inputs."""

    target: str
    inputs: int = 0
    results: int = 0
    refused: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Finding:
    """An input that did not end well, and the file it is kept in."""

    target: str
    number: int
    what: str
    path: str


@contextlib.contextmanager
def _workplace() -> Iterator[tuple[Path, Path]]:
    """A folder for inputs, and an empty TMPDIR."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        folder, temporary = Path(place, "given"), Path(place, "tmp")
        temporary.mkdir()
        tempfile.tempdir = str(temporary)
        try:
            yield folder, temporary
        finally:
            tempfile.tempdir = before


def _ring(*_: object) -> None:
    raise TooLong


def _on_clock(seconds: float) -> float:
    """Return how long so many seconds of the processor may take."""
    return min(BUSY * seconds, BUSY_SECONDS)


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """TooLong after so many seconds of the processor, or `BUSY` times as many of the clock."""
    timers = ((signal.ITIMER_PROF, signal.SIGPROF, seconds), (signal.ITIMER_REAL, signal.SIGALRM, _on_clock(seconds)))
    before = [signal.signal(number, _ring) for _, number, _ in timers]
    for timer, _, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer, _, _ in timers:
            signal.setitimer(timer, 0)
        for (_, number, _), handler in zip(timers, before, strict=True):
            signal.signal(number, handler)


def attempt(chosen: Target, files: Mapping[str, bytes], seconds: float | None = None) -> str:
    """Give an input to a target: `result`, `refused: ` and why, or what is wrong in a few lines."""
    most = seconds or chosen.seconds
    with _workplace() as (folder, temporary):
        folder.mkdir()
        write(files, folder)
        try:
            with _alarm(most):
                outcome = _outcome(chosen, folder)
        except TooLong:
            outcome = f"{TOO_LONG} {most:g} s"
        if _is_orderly(outcome):
            outcome = _traces(files, folder, temporary) or outcome
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
    return outcome


def _is_orderly(outcome: str) -> bool:
    return outcome.partition(":")[0] in ("result", "refused")


def _outcome(chosen: Target, folder: Path) -> str:
    silent = io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            collect_warnings(),  # what readers guess would be a warning of Python
            contextlib.redirect_stdout(silent),
            contextlib.redirect_stderr(silent),
        ):
            warnings.simplefilter("error")
            chosen.read(folder)
    except DialevalError as error:
        return f"refused: {error}"
    except TooLong:
        raise
    except BaseException as error:  # KeyboardInterrupt as well: no input may press Ctrl-C
        return _described(error)
    return "result"


def _described(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if SOURCE in Path(frame.filename).parents] or frames
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
    return f"{type(error).__name__} in {place}: {str(error)[:300]}"


def _traces(files: Mapping[str, bytes], folder: Path, temporary: Path) -> str | None:
    """What is wrong with the files that are there afterwards."""
    if any(temporary.iterdir()):
        gc.collect()  # a column of items lies in a temporary file as long as it lives
    left = [path.name for path in temporary.iterdir()]
    if left:
        return f"left {left[0]!r} in TMPDIR"
    there = _files_in(folder)
    for name in sorted({*there, *files}):
        if there.get(name) != files.get(name):
            return f"left or changed the file {name!r}"
    return None


def same_finding(one: str, other: str) -> bool:
    """Whether two descriptions are of one problem: the same exception in the same line."""
    return one.partition(": ")[0] == other.partition(": ")[0]


def minimized(chosen: Target, files: Files, what: str, seconds: float = MINIMIZING_SECONDS) -> Files:
    """A smaller input with the same finding, as far as that takes little time."""
    end = time.monotonic() + seconds
    for name in sorted(files, key=lambda each: -len(files[each])):
        size = max(1, len(files[name]) // 2)
        while size and time.monotonic() < end:
            start = 0
            while start < len(files[name]) and time.monotonic() < end:
                content = files[name]
                tried = {**files, name: content[:start] + content[start + size :]}
                if same_finding(attempt(chosen, tried), what):
                    files = tried
                else:
                    start += size
            size //= 2
    return files


def saved(folder: Path, name: str, files: Files) -> Path:
    """Keep the input of a finding, under a name that says whose it is."""
    content = packed(files)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}.zip"
    path.write_bytes(content)
    return path


# The child process: it goes through the inputs, and notes before each of them which one it is.


@dataclass(frozen=True)
class Budget:
    """How long a target is attacked: inputs, seconds, or whichever ends first."""

    inputs: int | None = None
    seconds: float | None = None

    def left(self, tally: Tally) -> bool:
        """Whether another input may be tried."""
        if self.inputs is not None and tally.inputs >= self.inputs:
            return False
        return self.seconds is None or tally.seconds < self.seconds


@dataclass(frozen=True)
class Work:
    """What a child is to do: some targets one after the other, the first of them from an input on."""

    names: Sequence[str]
    seed: int
    budget: Budget
    findings: str
    modules: Sequence[str] = ()
    first: int = 0
    tally: Tally | None = None
    """What the children before have done for the first target."""


STARTING, READING, READ, MINIMIZING, AGAIN = range(5)


class Note:
    """Which input of which target is at hand, in a file that outlives the process which writes it."""

    _FORM = struct.Struct("<qqq")

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(self._FORM.size))
        with path.open("r+b") as file:
            self._bytes = mmap.mmap(file.fileno(), self._FORM.size)

    def set(self, place: int, number: int, state: int) -> None:
        """The place of the target in the work, the number of the input, and what is done with it."""
        self._bytes[:] = self._FORM.pack(place, number, state)

    def get(self) -> tuple[int, int, int]:
        """What was set last."""
        place, number, state = self._FORM.unpack(self._bytes[:])
        return int(place), int(number), int(state)


def child(work: Work, note: Path) -> None:
    """What a child does; it says what became of the inputs as JSON lines on stdout."""
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    there = all_targets(work.modules)
    for place, name in enumerate(work.names):
        first, tally = (work.first, work.tally or Tally(name)) if place == 0 else (0, Tally(name))
        _attack(Inputs.of(there[name], work.seed), first, tally, work, partial(Note(note).set, place))


def _attack(inputs: Inputs, first: int, tally: Tally, work: Work, note: Callable[[int, int], None]) -> None:
    """Try the inputs of a target from the one numbered `first` on."""
    start = time.monotonic() - tally.seconds
    known: set[str] = set()
    if first >= inputs.fixed:  # a child that follows a dead one: memory counts from where the seeds have been read
        for files in inputs.seeds:
            attempt(inputs.target, files, COMPILING)
        _limit_memory()
    number = first
    while number < inputs.fixed or work.budget.left(tally):
        if number == inputs.fixed:
            _limit_memory()
            start = time.monotonic()
        note(number, READING)
        files = inputs[number]
        outcome = attempt(inputs.target, files, COMPILING if number < len(inputs.seeds) else None)
        if outcome.startswith("MemoryError") and number > first:  # perhaps inputs before it have filled the memory
            note(number, AGAIN)
            _say({"tally": asdict(tally)})
            sys.exit(0)
        note(number, READ)
        tally.inputs += 1
        tally.seconds = time.monotonic() - start if number >= inputs.fixed else 0.0
        if number < len(inputs.seeds) and outcome != "result" and _is_orderly(outcome):
            outcome = f"a seed is {outcome}"
        if _is_orderly(outcome):
            tally.results += outcome == "result"
            tally.refused += outcome != "result"
        elif (key := outcome.partition(": ")[0]) not in known:
            known.add(key)
            path = saved(Path(work.findings), tally.target, files)
            _say({"finding": asdict(Finding(tally.target, number, outcome, str(path)))})
            if outcome.startswith(TOO_LONG):
                number += 1
                continue
            note(number, MINIMIZING)
            smaller = saved(Path(work.findings), tally.target, minimized(inputs.target, files, outcome))
            if smaller != path:
                path.unlink()
                _say({"smaller": str(smaller), "than": str(path)})
        if number % 50 == 0:
            _say({"tally": asdict(tally)})
        number += 1
    _unlimit_memory()
    _say({"tally": asdict(tally), "done": True})


def _say(document: Any) -> None:
    out = sys.__stdout__
    assert out is not None
    out.write(orjson.dumps(document).decode() + "\n")
    out.flush()


def _limit_memory() -> None:
    size = Path("/proc/self/statm")
    if size.exists():  # elsewhere than on Linux the size of a process is not to be had
        most = int(size.read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def _unlimit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


# The parent process: it starts a child, and another one where a child died or hangs.


@dataclass
class Attacked:
    """What became of one target."""

    tally: Tally
    findings: list[Finding] = field(default_factory=list)


def fuzz(work: Work, done: Callable[[Attacked], object] = lambda _: None) -> dict[str, Attacked]:
    """Attack targets in a process of their own; `done` is told of each that is finished."""
    ended: dict[str, Attacked] = {}
    with tempfile.TemporaryDirectory(prefix="fuzz-note-") as place:
        while work.names:
            note = Path(place, "note")
            Note(note).set(0, work.first, STARTING)
            running = _Child(work, note, ended, done)
            running.follow()
            if running.ended == len(work.names):
                break
            work = _rest(work, Note(note).get(), running, ended)
    return ended


def _rest(work: Work, at: tuple[int, int, int], died: _Child, ended: dict[str, Attacked]) -> Work:
    """What is left to do after a child has ended; its input is a finding, or is to be tried again in a new process."""
    place, number, state = at
    name = work.names[place]
    if state == STARTING:
        raise RuntimeError(f"the process for {name} ends before its first input:\n{died.errors}")
    one = ended.setdefault(name, Attacked(Tally(name)))
    if state == AGAIN:
        return replace(work, names=work.names[place:], first=number, tally=one.tally)
    if state != MINIMIZING:  # that one has been told already
        path = saved(Path(work.findings), name, Inputs.of(all_targets(work.modules)[name], work.seed)[number])
        one.findings.append(Finding(name, number, died.end, str(path)))
    one.tally.inputs = max(one.tally.inputs, number + 1)
    one.tally.seconds += died.silence
    return replace(work, names=work.names[place:], first=number + 1, tally=one.tally)


class _Child:
    """A running child, and what it says."""

    def __init__(self, work: Work, note: Path, ended: dict[str, Attacked], done: Callable[[Attacked], object]) -> None:
        self._targets = [all_targets(work.modules)[name] for name in work.names]
        self._seeds = [len(chosen.seeds()) for chosen in self._targets]
        self._note, self._told, self._done, self._first = note, ended, done, work.first
        self.ended = 0
        self.end, self.errors, self.silence = "", "", 0.0
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed in `follow`)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", "child", orjson.dumps(work).decode(), str(note)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "MALLOC_ARENA_MAX": "2"},
        )

    def follow(self) -> None:
        """Take in what the child says until it ends; kill it where it hangs."""
        stream = self._process.stdout
        assert stream is not None
        os.set_blocking(stream.fileno(), False)
        last, since, rest = Note(self._note).get(), time.monotonic(), b""
        try:
            while self._process.poll() is None:
                rest = self._take(rest + (stream.read() or b""))
                if (now := Note(self._note).get()) != last:
                    last, since = now, time.monotonic()
                self.silence = time.monotonic() - since
                if self.silence > self._patience(last):
                    self._process.kill()
                    self.end = f"hangs: killed after {self.silence:.0f} s"
                    self._process.wait()
                time.sleep(0.02)
            self._take(rest + (stream.read() or b""))
        finally:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            stream.close()
            self._errors.seek(0)
            self.errors = self._errors.read().decode(errors="replace")[-2000:]
            self._errors.close()
        self.end = self.end or f"the process died with status {self._process.returncode}"

    def _patience(self, at: tuple[int, int, int]) -> float:
        place, number, state = at
        chosen = self._targets[place]
        seconds = COMPILING if number < self._seeds[place] or number == self._first else chosen.seconds
        return _on_clock(seconds) + GRACE + (MINIMIZING_SECONDS if state == MINIMIZING else 0)

    def _take(self, content: bytes) -> bytes:
        *lines, rest = content.split(b"\n")
        for line in lines:
            self._hear(orjson.loads(line))
        return rest

    def _hear(self, said: dict[str, Any]) -> None:
        name = self._targets[self.ended].name
        one = self._told.setdefault(name, Attacked(Tally(name)))
        if "finding" in said:
            one.findings.append(Finding(**said["finding"]))
        if "smaller" in said:
            one.findings[-1] = replace(one.findings[-1], path=said["smaller"])
        if "tally" in said:
            one.tally = Tally(**said["tally"])
        if "done" in said:
            self.ended += 1
            self._done(one)
