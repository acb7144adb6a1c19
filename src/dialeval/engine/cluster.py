"""A Ray cluster that folds pieces: every piece a task, states merged in tasks, resources opened once per worker.

The nodes read shards and resources by themselves, so paths must lead to the same content everywhere (shared storage),
and dialeval must be installed. Resources are known by path and digest and are never sent; word vectors are mapped, so
the workers of a node share their pages.

A lost worker or node is Ray's to mend: its pieces are folded again elsewhere, and states that were lost with it are
made anew from their pieces. Folding is a function of the piece alone, so the total stays exact. An error in the data
is not tried again: it ends the run with file and line.

Metrics that gain from an accelerator (`Metric.device`) run in actors that hold `gpus_per_task` of a GPU each, so that a
model is loaded once per actor; the others run in tasks beside them.
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import TracebackType
from typing import Any

from dialeval.core.errors import DialevalError, SettingError
from dialeval.data.shards.chunks import Piece
from dialeval.engine.job import Engine, Folded, Job, Known, Part, Parts, PieceItems, Place, Task

RETRIES = 3
"""How often a piece is folded again after its worker or node was lost."""

GROUP = 16
"""Pieces whose states are merged before they come here."""

_KNOCK_SECONDS = 10

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": str(RETRIES),
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""No reports to anybody, and no piece that is too large tried for ever."""

_places: dict[str, Place] = {}


@dataclass(frozen=True)
class _Errand:
    """A job as workers get it: they fetch it when they first need it."""

    token: str
    given: tuple[Any, Any]
    """References to the job and to what is known."""

    def place(self) -> Place:
        """The place of this worker."""
        if self.token not in _places:
            import ray

            _places.clear()
            _places[self.token] = Place(*ray.get(list(self.given)))
        return _places[self.token]


def _fold(errand: _Errand, task: Task, piece: Piece) -> tuple[Parts, PieceItems]:
    return errand.place().fold(task, piece)


def _merge(errand: _Errand, task: Task, *parts: Parts) -> Parts:
    import ray

    job: Job = ray.get(errand.given[0])
    return job.merged(task, parts)


class _Keeper:
    """An actor with a place of its own, for what should stay loaded."""

    def __init__(self, errand: _Errand) -> None:
        self._errand = errand

    def fold(self, task: Task, piece: Piece) -> tuple[Parts, PieceItems]:
        """What comes of a piece."""
        return self._errand.place().fold(task, piece)


@dataclass(frozen=True)
class _Lane:
    """Some of the metrics, and who folds pieces for them."""

    job: Job
    errand: _Errand
    submit: Callable[[Task, Piece], tuple[Any, Any]]


class Cluster(Engine):
    """Folds pieces on a Ray cluster: the one at `address`, the one this process is connected to, or a new local one."""

    def __init__(self, address: str | None = None, gpus_per_task: float = 0.0) -> None:
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        try:
            import ray
        except ImportError:
            raise SettingError("--engine ray needs Ray; run: pip install 'dialeval[cluster]'") from None
        self._ray: Any = ray
        self._address = address
        self._gpus = gpus_per_task
        self._ours = False
        self._users = 0

    def __enter__(self) -> Cluster:
        self._users += 1
        if not self._ray.is_initialized():
            _refuse_silence(self._address)
            quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
            try:
                self._ray.init(address=self._address, **({"log_to_driver": False} if self._address else quiet))
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise SettingError(f"no Ray cluster at {self._address or 'this machine'}: {error}") from None
            self._ours = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._users -= 1
        if self._ours and not self._users:
            self._ray.shutdown()
            self._ours = False

    def each(self, job: Job, known: Known, task: Task, pieces: Mapping[int, Piece], alone: bool) -> Iterator[Folded]:
        lanes = self._lanes(job, known, task)
        size = 1 if alone else GROUP
        queue = iter(pieces.items())
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        ahead: deque[tuple[list[tuple[int, Piece]], list[tuple[Any, list[Any]]]]] = deque()
        while True:
            while len(ahead) < 1 + -(-2 * cores // size) and (group := list(islice(queue, size))):
                ahead.append((group, [self._submitted(lane, task, group) for lane in lanes]))
            if not ahead:
                return
            group, sent = ahead.popleft()
            yield self._folded(job, task, lanes, group, sent)

    def _lanes(self, job: Job, known: Known, task: Task) -> list[_Lane]:
        heavy = tuple(metric for metric in job.metrics if metric.device)
        if not (heavy and self._gpus and task == "metrics"):
            return [self._tasks(job, known)]
        light = tuple(metric for metric in job.metrics if not metric.device)
        lanes = [self._tasks(replace(job, metrics=light), known)] if light else []
        return [*lanes, self._actors(replace(job, metrics=heavy), known)]

    def _errand(self, job: Job, known: Known) -> _Errand:
        return _Errand(uuid.uuid4().hex, (self._ray.put(job), self._ray.put(known)))

    def _tasks(self, job: Job, known: Known) -> _Lane:
        errand = self._errand(job, known)
        fold = self._ray.remote(num_returns=2, max_retries=RETRIES)(_fold)
        return _Lane(job, errand, lambda task, piece: fold.remote(errand, task, piece))

    def _actors(self, job: Job, known: Known) -> _Lane:
        errand = self._errand(job, known)
        have = self._ray.cluster_resources().get("GPU", 0)
        if have < self._gpus:
            raise SettingError(f"the cluster has {have:g} GPUs and --gpus-per-task asks for {self._gpus:g}")
        # No core of their own: they would keep the tasks beside them from ever starting.
        held = {"num_gpus": self._gpus, "num_cpus": 0}
        keeper = self._ray.remote(**held, max_restarts=RETRIES, max_task_retries=RETRIES)(_Keeper)
        keepers = deque(keeper.remote(errand) for _ in range(int(have / self._gpus)))

        def submit(task: Task, piece: Piece) -> tuple[Any, Any]:
            keepers.rotate()
            parts, items = keepers[0].fold.options(num_returns=2).remote(task, piece)
            return parts, items

        return _Lane(job, errand, submit)

    def _submitted(self, lane: _Lane, task: Task, group: Sequence[tuple[int, Piece]]) -> tuple[Any, list[Any]]:
        """References to the merged parts of a group and to the items of each piece."""
        sent = [lane.submit(task, piece) for _, piece in group]
        parts = [part for part, _ in sent]
        merge = self._ray.remote(max_retries=RETRIES)(_merge)
        merged = parts[0] if len(parts) == 1 else merge.remote(lane.errand, task, *parts)
        return merged, [items for _, items in sent]

    def _folded(
        self,
        job: Job,
        task: Task,
        lanes: Sequence[_Lane],
        group: Sequence[tuple[int, Piece]],
        sent: Sequence[tuple[Any, list[Any]]],
    ) -> Folded:
        items: list[PieceItems] = []
        for place, (_, piece) in enumerate(group):
            found = [self._fetched(refs[place], piece) for _, refs in sent]
            items.append(_joined_items(found))
        parts = [self._fetched(merged, group[0][1]) for merged, _ in sent]
        together = parts[0] if len(lanes) == 1 else _joined_parts(job, lanes, parts)
        return Folded(tuple(number for number, _ in group), together, tuple(items))

    def _fetched(self, reference: Any, piece: Piece) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, DialevalError):
                raise error.cause from None
            raise DialevalError(f"{piece}: {type(error.cause).__name__}: {error.cause}") from error
        except errors.RayError as error:
            lost = str(error).strip().splitlines()[0][:200]
            raise DialevalError(f"{piece}: lost {RETRIES + 1} times on the cluster ({lost})") from error


def _refuse_silence(address: str | None) -> None:
    """Ask whether anybody is there: Ray itself would go on asking for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), _KNOCK_SECONDS).close()
    except OSError as error:
        raise SettingError(f"no Ray cluster answers at {address} ({error}); check --address") from None


def _joined_items(several: Sequence[PieceItems]) -> PieceItems:
    """The items of some metrics and of others as one."""
    if len(several) == 1:
        return several[0]
    found: PieceItems = {}
    for items in several:
        for system, levels in items.items():
            for level, columns in levels.items():
                found.setdefault(system, {}).setdefault(level, {}).update(columns)
    return found


def _joined_parts(job: Job, lanes: Sequence[_Lane], several: Sequence[Parts]) -> Parts:
    """The states of some metrics and of others, in the order of the job."""
    found: Parts = {}
    for system, part in several[0].items():
        states = {
            metric: state
            for lane, parts in zip(lanes, several, strict=True)
            for metric, state in zip(lane.job.metrics, parts[system].states, strict=True)
        }
        ordered = tuple(states[metric] for metric in job.metrics)
        found[system] = Part(part.rows, part.dialogues, ordered, part.prints)
    return found
