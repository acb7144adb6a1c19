"""A Ray cluster that folds chunks: every chunk a Ray task, states merged in tasks, resources opened once per worker.

The nodes read shards and resources by themselves, so paths must lead to the same content everywhere (shared storage),
and dialeval must be installed. Resources are known by path and digest and are never sent; word vectors are mapped, so
the workers of a node share their pages.

Ray replaces a lost worker or node: its chunks are folded again elsewhere, and states that were lost are computed
anew from their chunks. Folding depends on the chunk alone, so the total stays exact. An error in the data is not tried
again: it ends the run with file and line.

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
from itertools import cycle, islice
from typing import Any

from dialeval.core.errors import DialevalError, SettingError
from dialeval.core.fold import Metric
from dialeval.data.shards.chunks import Chunk
from dialeval.engine.job import (
    ChunkItems,
    ChunkResult,
    Engine,
    FactValues,
    Job,
    Stage,
    StateSums,
    System,
    SystemItems,
    SystemState,
    SystemStates,
)
from dialeval.engine.worker import Worker
from dialeval.text.vocabulary import Vocabulary

RETRIES = 3
"""How often a chunk is folded again after its worker or node was lost."""

GROUP = 16
"""Chunks whose states are merged before they come here."""

_CONNECT_SECONDS = 10

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": str(RETRIES),
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""No usage reports, and no endless retries of a chunk that is too large."""

_workers: dict[str, Worker] = {}


@dataclass(frozen=True)
class _JobReference:
    """A job as workers get it: they fetch it when they first need it."""

    token: str
    references: tuple[Any, Any]
    """Ray's references to the job and to the facts."""

    def worker(self) -> Worker:
        """The worker of this process."""
        if self.token not in _workers:
            import ray

            _workers.clear()
            _workers[self.token] = Worker(*ray.get(list(self.references)))
        return _workers[self.token]


def _fold(job: _JobReference, stage: Stage, chunk: Chunk) -> tuple[SystemStates, ChunkItems]:
    return job.worker().fold(stage, chunk)


def _merge(reference: _JobReference, stage: Stage, *states: SystemStates) -> SystemStates:
    import ray

    sums = StateSums(ray.get(reference.references[0]), stage, Vocabulary())
    for each in states:
        sums.add(each)
    return sums.result()


class _Actor:
    """A process that keeps its worker, for models that should stay loaded."""

    def __init__(self, job: _JobReference) -> None:
        self._job = job

    def fold(self, stage: Stage, chunk: Chunk) -> tuple[SystemStates, ChunkItems]:
        """The result of a chunk."""
        return self._job.worker().fold(stage, chunk)


@dataclass(frozen=True)
class _Lane:
    """Some of the metrics, and what folds chunks for them: tasks or actors."""

    job: Job
    reference: _JobReference
    submit: Callable[[Stage, Chunk], tuple[Any, Any]]


class Cluster(Engine):
    """Folds chunks on a Ray cluster: the one at `address`, the one this process is connected to, or a new local one."""

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
            _refuse_no_answer(self._address)
            quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
            try:
                self._ray.init(address=self._address, **({"log_to_driver": False} if self._address else quiet))
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise SettingError(f"no Ray cluster at {self._address or 'this machine'}: {error}") from None
            self._ours = True
        return self

    def __exit__(self, *_error: object) -> None:
        self._users -= 1
        if self._ours and not self._users:
            self._ray.shutdown()
            self._ours = False

    def fold(
        self, job: Job, facts: FactValues, stage: Stage, chunks: Mapping[int, Chunk], alone: bool
    ) -> Iterator[ChunkResult]:
        lanes = self._lanes(job, facts, stage)
        size = 1 if alone else GROUP
        queue = iter(chunks.items())
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        ahead: deque[tuple[list[tuple[int, Chunk]], list[tuple[Any, list[Any]]]]] = deque()
        while True:
            while len(ahead) < 1 + -(-2 * cores // size) and (group := list(islice(queue, size))):
                ahead.append((group, [self._submitted(lane, stage, group) for lane in lanes]))
            if not ahead:
                return
            group, sent = ahead.popleft()
            yield self._fetched_group(job, lanes, group, sent)

    def _lanes(self, job: Job, facts: FactValues, stage: Stage) -> list[_Lane]:
        heavy = any(metric.device for plan in job.plans for metric in plan.folded)
        if not (heavy and self._gpus and stage == "metrics"):
            return [self._tasks(job, facts)]
        light = _only(job, lambda metric: not metric.device)
        lanes = [self._tasks(light, facts)] if any(plan.metrics for plan in light.plans) else []
        return [*lanes, self._actors(_only(job, lambda metric: metric.device), facts)]

    def _reference(self, job: Job, facts: FactValues) -> _JobReference:
        return _JobReference(uuid.uuid4().hex, (self._ray.put(job), self._ray.put(facts)))

    def _tasks(self, job: Job, facts: FactValues) -> _Lane:
        reference = self._reference(job, facts)
        fold = self._ray.remote(num_returns=2, max_retries=RETRIES)(_fold)
        return _Lane(job, reference, lambda stage, chunk: fold.remote(reference, stage, chunk))

    def _actors(self, job: Job, facts: FactValues) -> _Lane:
        reference = self._reference(job, facts)
        nodes = [node["Resources"].get("GPU", 0) for node in self._ray.nodes() if node["Alive"]]
        if max(nodes, default=0) < self._gpus:  # an actor would wait for ever
            most = max(nodes, default=0)
            raise SettingError(f"no node of the cluster has more than {most:g} GPUs; --gpus-per-task is {self._gpus:g}")
        # No core of their own: they would keep the tasks beside them from ever starting.
        held = {"num_gpus": self._gpus, "num_cpus": 0}
        actor = self._ray.remote(**held, max_restarts=RETRIES, max_task_retries=RETRIES)(_Actor)
        number = sum(int(have / self._gpus) for have in nodes)
        actors = cycle([actor.remote(reference) for _ in range(number)])

        def submit(stage: Stage, chunk: Chunk) -> tuple[Any, Any]:
            states, items = next(actors).fold.options(num_returns=2).remote(stage, chunk)
            return states, items

        return _Lane(job, reference, submit)

    def _submitted(self, lane: _Lane, stage: Stage, group: Sequence[tuple[int, Chunk]]) -> tuple[Any, list[Any]]:
        """References to the merged states of a group and to the items of each chunk."""
        sent = [lane.submit(stage, chunk) for _, chunk in group]
        states = [state for state, _ in sent]
        merge = self._ray.remote(max_retries=RETRIES)(_merge)
        merged = states[0] if len(states) == 1 else merge.remote(lane.reference, stage, *states)
        return merged, [items for _, items in sent]

    def _fetched_group(
        self,
        job: Job,
        lanes: Sequence[_Lane],
        group: Sequence[tuple[int, Chunk]],
        sent: Sequence[tuple[Any, list[Any]]],
    ) -> ChunkResult:
        items = [
            _joined_items([self._fetched(references[at], chunk) for _, references in sent])
            for at, (_, chunk) in enumerate(group)
        ]
        states = [self._fetched(merged, group[0][1]) for merged, _ in sent]
        together = states[0] if len(lanes) == 1 else _joined_states(job, lanes, states)
        return ChunkResult(tuple(number for number, _ in group), together, tuple(items))

    def _fetched(self, reference: Any, chunk: Chunk) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference)
        except errors.RayTaskError as error:
            if isinstance(error.cause, DialevalError):
                raise error.cause from None
            raise DialevalError(f"{chunk}: {type(error.cause).__name__}: {error.cause}") from error
        except errors.RayError as error:
            lost = str(error).strip().splitlines()[0][:200]
            raise DialevalError(f"{chunk}: lost {RETRIES + 1} times on the cluster ({lost})") from error


def _refuse_no_answer(address: str | None) -> None:
    """Try to connect first: Ray itself would go on trying for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        raise SettingError(f"no Ray cluster answers at {address} ({error}); check --address") from None


def _only(job: Job, wanted: Callable[[Metric[Any]], bool]) -> Job:
    """The job with some of its metrics."""
    plans = (
        replace(plan, metrics={name: metric for name, metric in plan.metrics.items() if wanted(metric)})
        for plan in job.plans
    )
    return replace(job, plans=tuple(plans))


def _joined_items(several: Sequence[ChunkItems]) -> ChunkItems:
    """The items of some metrics and of others as one."""
    if len(several) == 1:
        return several[0]
    joined: dict[System, SystemItems] = {}
    for items in several:
        for system, each in items.systems.items():
            own = joined.setdefault(system, SystemItems({}, places=each.places))
            for level, columns in each.values.items():
                own.values.setdefault(level, {}).update(columns)
    return ChunkItems(joined)


def _joined_states(job: Job, lanes: Sequence[_Lane], several: Sequence[SystemStates]) -> SystemStates:
    """The states of some metrics and of others, in the order of the job; those of details are the same in each lane."""
    joined: SystemStates = {}
    for system, first in several[0].items():
        states = {
            metric: state
            for lane, part in zip(lanes, several, strict=True)
            for metric, state in zip(lane.job.plans[system[0]].folded, part[system].states, strict=False)
        }
        ordered = tuple(states[metric] for metric in job.plans[system[0]].folded)
        details = first.states[len(lanes[0].job.plans[system[0]].folded) :]
        joined[system] = SystemState(first.rows, (*ordered, *details), first.fingerprints, first.notes)
    return joined
