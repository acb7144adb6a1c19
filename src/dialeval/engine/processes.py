"""Processes of this machine that fold chunks, each with a vocabulary and resources of its own.

A worker has one process and one pipe, and a thread of this process that waits at the pipe. Workers share nothing: no
queue, no lock. One folds a few chunks at a time. Where it dies (most often killed because memory ran out) its pipe is
closed, possibly within a message, and its chunks are given to others, one by one. After `TRIES` deaths on the same
chunk the run ends with an error that names the chunk. An error in the data ends the run at once, with file and line.

States that grow stay out of this process: workers leave parts of them in files of a temporary folder, and merge them
when all chunks are folded (`worker.cut_states`).

Workers import from where this process imports, and not from the working folder, which may hold anything: `python -c`,
by which `multiprocessing` starts processes, would put it first.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import islice
from multiprocessing import connection, util
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dialeval.core.errors import DialevalError
from dialeval.core.files import write_scratch
from dialeval.engine.worker import (
    ChunkResult,
    ChunkScores,
    Engine,
    FactValues,
    Job,
    Stage,
    StateSums,
    SystemStates,
    Worker,
    cut_states,
    map_in_order,
    merge_states,
)
from dialeval.io.chunks import Chunk

TRIES = 3
"""How often a chunk may kill its worker, and how often a worker may die before it is ready."""

GROUP = 32
"""Chunks that are folded together at most: their states have one vocabulary, so what is cut and written is less."""

PARTS = 2
"""Parts that states are cut into, for each worker: more need less memory at a time, and repeat more words."""

_PRELOADED = ["dialeval.engine.worker", "dialeval.core.rowtable", "llvmlite.binding", "pyarrow.parquet"]
"""Imported once for all workers."""

_LOST = (EOFError, OSError)
"""What reading from a pipe, writing to it or starting its process raises when the other end is gone."""

_SECONDS_TO_END = 5.0

_SAFE_PATH = "-P" if sys.version_info >= (3, 11) else "-I"
"""Python's option that keeps the working folder off `sys.path`; `-I` leaves out more (`_exclude_working_folder`)."""


class _DeathError(Exception):
    """A worker died before it answered."""

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class Processes(Engine):
    """An engine of several processes."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def fold(self, job: Job, facts: FactValues, stage: Stage, chunks: Mapping[int, Chunk]) -> Iterator[ChunkResult]:
        parts = PARTS * self._jobs if job.grows(stage) else 1
        files: dict[int, list[str]] = {part: [] for part in range(parts)}
        # Workers end first: a thread that waits for one goes on when it is gone.
        with (
            tempfile.TemporaryDirectory(prefix="dialeval-") as folder,
            ThreadPoolExecutor(self._jobs) as threads,
            _Workers(job, facts) as workers,
        ):
            fold = partial(workers.fold, stage, folder if parts > 1 else None, parts)
            groups = dict(enumerate(group_chunks(chunks, self._jobs, GROUP)))
            with closing(map_in_order(threads, self._jobs, fold, groups)) as answered:
                for _, answers in answered:
                    for numbers, answer in answers:
                        states, items, written = _read_answer(answer)
                        for part, file in enumerate(written):
                            files[part].append(file)
                        yield ChunkResult(numbers, states, items)
            if parts > 1:
                with closing(map_in_order(threads, self._jobs, partial(workers.merge, stage), files)) as merged:
                    for _, answer in merged:
                        yield ChunkResult((), _read_answer(answer), ())


class _Workers:
    """The processes of a stage: one for each thread that asks at a time, and new ones for those that die."""

    def __init__(self, job: Job, facts: FactValues) -> None:
        self._given = pickle.dumps((job, facts))
        self._lock = threading.Lock()
        self._all: set[_WorkerProcess] = set()
        self._idle: list[_WorkerProcess] = []
        self._ended = False

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._ended = True
            for worker in self._all:
                worker.end()

    def fold(
        self, stage: Stage, folder: str | None, parts: int, group: Mapping[int, Chunk]
    ) -> list[tuple[tuple[int, ...], bytes]]:
        """Return the answers of workers to consecutive chunks, by their numbers; parts stay in a folder."""
        if len(group) > 1:
            with suppress(_DeathError):
                return [(tuple(group), self._ask((_fold, stage, folder, parts, list(group.values()))))]
        # Each by itself, so that the one that kills is found.
        answers: list[tuple[tuple[int, ...], bytes]] = []
        for number, chunk in group.items():
            failed = f"{chunk}: a worker died {TRIES} times on this chunk"
            answers.append(((number,), self._answer((_fold, stage, folder, parts, [chunk]), failed)))
        return answers

    def merge(self, stage: Stage, files: list[str]) -> bytes:
        """Return what a worker answers to the same part of all chunks."""
        return self._answer((_merge, stage, files), f"a worker died {TRIES} times while it merged counts")

    def _answer(self, request: tuple[object, ...], failed: str) -> bytes:
        """Return what a worker answers; DialevalError where it dies of the request."""
        cause = ""
        for _ in range(TRIES):
            try:
                return self._ask(request)
            except _DeathError as death:
                cause = _explain_death(death.code)
        raise DialevalError(f"{failed}, {cause}")

    def _ask(self, request: tuple[object, ...]) -> bytes:
        """Return what a worker answers; _DeathError where it dies."""
        asked = pickle.dumps(request)
        worker = self._take_worker()
        try:
            answer = worker.answer(asked)
        except _LOST:
            raise _DeathError(self._bury(worker)) from None
        self._idle.append(worker)
        return answer

    def _take_worker(self) -> _WorkerProcess:
        """Return a worker that is ready, a new one if there is none."""
        with suppress(IndexError):
            while True:
                worker = self._idle.pop()
                if worker.is_alive():
                    return worker
                self._bury(worker)
        cause: BaseException | None = None
        # The fork server may be what dies; the last one is started without it.
        for method in (*[_choose_start_method()] * TRIES, "spawn"):
            worker = _WorkerProcess(method)
            try:
                self._start(worker)
                worker.begin(self._given)
            except _LOST as error:
                self._bury(worker)
                cause = error
            else:
                return worker
        raise DialevalError(
            f"worker processes die before they are ready ({str(cause) or type(cause).__name__}); use fewer --jobs. "
            "A program that uses several has to begin under: if __name__ == '__main__'"
        ) from cause

    def _start(self, worker: _WorkerProcess) -> None:
        with self._lock:  # multiprocessing's own notes on processes are not made for several threads
            if self._ended:
                raise RuntimeError("the run has ended")
            self._all.add(worker)
            worker.start()

    def _bury(self, worker: _WorkerProcess) -> int | None:
        with self._lock:
            self._all.discard(worker)
            return worker.end()


class _WorkerProcess:
    """A worker in a process of its own, and the pipe to it."""

    def __init__(self, method: str) -> None:
        self._context: Any = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload([__name__, *_PRELOADED])
        self._process: Any = None

    def start(self) -> None:
        """Start the process. It alone holds its end of the pipe, so that the pipe ends with it."""
        pipes: tuple[Connection, Connection] = self._context.Pipe()
        self._pipe, others_end = pipes
        process = self._context.Process(target=_serve, args=(others_end,), daemon=True)
        with others_end, _exclude_working_folder():
            process.start()
        self._process = process

    def begin(self, content: bytes) -> None:
        """Give it its job, and wait until it has it."""
        self._pipe.send_bytes(content)
        self._pipe.recv_bytes()

    def answer(self, asked: bytes) -> bytes:
        """Send a request, and return the answer."""
        self._pipe.send_bytes(asked)
        return self._pipe.recv_bytes()

    def is_alive(self) -> bool:
        """Return whether it still waits for a request: it sends nothing unasked but the end of the pipe."""
        return not self._pipe.poll()

    def end(self) -> int | None:
        """Kill the process, so that a thread that waits for its answer continues; return its exit code, if known."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        process.join(_SECONDS_TO_END)
        code: int | None = process.exitcode
        with suppress(ValueError):  # it lives on, as one does that waits for a disk that is lost
            # With a fork server that is dead, nobody can tell whether the worker lives. This ends it all the same: it
            # sees the pipe go by which it knows this process.
            process.close()
        return code


@contextmanager
def _exclude_working_folder() -> Iterator[None]:
    """Start Python with an option that keeps the working folder off `sys.path`, also for the fork server.

    A worker is given the path of this process before it unpickles anything, so no installed module is missing.
    """
    module: Any = util
    flags = module._args_from_interpreter_flags  # noqa: SLF001
    module._args_from_interpreter_flags = lambda: [*flags(), _SAFE_PATH]  # noqa: SLF001
    try:
        yield
    finally:
        module._args_from_interpreter_flags = flags  # noqa: SLF001


def _explain_death(code: int | None) -> str:
    """Return why a process died, by what it ended with, and what to do."""
    if code is not None and code < 0 and -code != signal.SIGKILL:
        return f"by {signal.Signals(-code).name}; please report it, or leave out the metric that does it"
    return "most likely because memory ran out; use fewer --jobs, or split the shard"


def _choose_start_method() -> str:
    # Never plain fork: a copy of a process with threads may wait for a lock that is never released.
    return "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def _serve(pipe: Connection) -> None:
    """Answer until the pipe ends: what the process of a worker does."""
    from dialeval.core.arrays import return_freed_arrays

    return_freed_arrays()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process gets it too, and ends its workers
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    worker: Worker | None = None
    with suppress(*_LOST):
        message = pipe.recv_bytes()
        pipe.send_bytes(b"ready")
        while True:
            asked = pipe.recv_bytes()
            try:
                # Opened with the first chunk, where an error is not taken for a death.
                worker = worker or Worker(*_load_message(message))
                answer_to, *what = _load_message(asked)
                result = answer_to(worker, *what)
                try:
                    answer = pickle.dumps((result, None, ""))
                except Exception:
                    worker.job.pack(what[0], result[0])  # names the metric
                    raise
            except Exception as error:
                answer = _dump_error(error)
            pipe.send_bytes(answer)


def group_chunks(chunks: Mapping[int, Chunk], jobs: int, most: int) -> Iterator[dict[int, Chunk]]:
    """Yield groups of consecutive chunks, smaller ones toward the end, so that all workers end at the same time."""
    waiting = iter(chunks.items())
    left = len(chunks)
    while left:
        size = max(1, min(most, left // (2 * jobs)))
        yield dict(islice(waiting, size))
        left -= size


def _fold(
    worker: Worker, stage: Stage, folder: str | None, parts: int, chunks: list[Chunk]
) -> tuple[SystemStates, tuple[ChunkScores, ...], list[str]]:
    sums, items = StateSums(worker.job, stage), []
    for chunk in chunks:
        states, arrays = worker.fold(stage, chunk)
        sums.add(states)
        items.append(arrays)
    states = sums.finish()
    if folder is None:
        return states, tuple(items), []
    states, pieces = cut_states(worker.job, stage, states, parts)
    # Names of their own: after a death another worker may be writing the parts of the same chunks.
    files = [Path(folder) / f"part-{os.urandom(16).hex()}" for _ in pieces]
    for file, piece in zip(files, pieces, strict=True):
        write_scratch(file, worker.job.pack(stage, piece))
    return states, tuple(items), list(map(str, files))


def _merge(worker: Worker, stage: Stage, files: list[str]) -> SystemStates:
    several = (worker.job.unpack(stage, Path(file).read_bytes()) for file in files)
    return merge_states(worker.job, stage, several, close=True)


def _load_message(content: bytes) -> Any:
    """Return what one of our own processes has sent."""
    return pickle.loads(content)  # noqa: S301


def _dump_error(error: Exception) -> bytes:
    trace = traceback.format_exc()
    try:
        content = pickle.dumps((None, error, trace))
        _load_message(content)  # some can be sent and not received
    except Exception:
        return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}"), trace))
    return content


def _read_answer(answer: bytes) -> Any:
    """Return what an answer holds, or raise the error in it."""
    result, error, trace = _load_message(answer)
    if isinstance(error, DialevalError):
        raise error
    if error is not None:
        raise error from RuntimeError(f"in a worker:\n{trace}")
    return result


def _leave_with_parent() -> None:
    """End this process when the first one is gone: one that was killed cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
