"""A Ray cluster that folds chunks: every chunk a Ray task, states merged in tasks, resources opened once per worker.

States that grow never come to this process: a chunk gives a part of them to each of several merges (`worker`), sixteen
parts of one number are merged in a task, sixteen such sums in another, and the last is closed there. What comes here of
sixteen chunks is a few kilobytes.

The nodes read shards and resources by themselves, so paths must lead to the same content everywhere (shared storage),
and dialeval must be installed. Resources are known by path and digest and are never sent; word vectors are mapped, so
the workers of a node share their pages.

Ray replaces a lost worker or node: its chunks are folded again elsewhere, and states that were lost are computed
anew from their chunks. Folding depends on the chunk alone, so the total stays exact. An error in the data is not tried
again: it ends the run with file and line.

A cluster that is started here listens on the loopback interface only and asks every connection for a token that is
drawn for it. Workers do not import from the working folder unless this process does.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from dialeval.core.errors import DialevalError, SettingError
from dialeval.engine.worker import (
    ChunkResult,
    Engine,
    FactValues,
    Job,
    Stage,
    SystemStates,
    Worker,
    cut_states,
    merge_states,
)
from dialeval.io.chunks import Chunk

RETRIES = 3
"""How often a chunk is folded again after its worker or node was lost."""

GROUP = 16
"""Chunks whose states are merged before they come here."""

MOST_PARTS = 64
"""Parts that states are cut into at most; one for each core of a smaller cluster."""

_CONNECT_SECONDS = 10

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_task_oom_retries": str(RETRIES),
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""No usage reports, and no endless retries of a chunk that is too large."""

_LOCAL = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
}
"""Settings of a cluster on this machine: it listens on the loopback interface only, and asks for a token."""

_workers: dict[str, Worker] = {}


@dataclass(frozen=True)
class _JobReference:
    """A job as workers get it: they fetch it when they first need it."""

    token: str
    references: tuple[object, object]
    """Ray's references to the job and to the facts."""

    def open_worker(self) -> Worker:
        """Return the worker of this process."""
        if self.token not in _workers:
            import ray

            _workers.clear()
            _workers[self.token] = Worker(*ray.get(list(self.references)))
        return _workers[self.token]


def _fold(job: _JobReference, stage: Stage, parts: int, chunk: Chunk) -> tuple[object, ...]:
    """Return the states of a chunk, its items, and parts of states that grow, if they are to be cut."""
    worker = job.open_worker()
    states, items = worker.fold(stage, chunk)
    states, pieces = cut_states(worker.job, stage, states, parts) if parts else (states, [])
    return states, items, *pieces


def _merge(job: _JobReference, stage: Stage, close: bool, *states: SystemStates) -> SystemStates:
    import ray

    return merge_states(ray.get(job.references[0]), stage, states, close=close)


class _Tree:
    """References to states of one part, merged sixteen at a time as they come."""

    def __init__(self, merge: Callable[..., object]) -> None:
        self._merge = merge
        self._ranks: list[list[object]] = []

    def add(self, reference: object, rank: int = 0) -> None:
        """Take in one more state, by its reference."""
        while len(self._ranks) <= rank:
            self._ranks.append([])
        self._ranks[rank].append(reference)
        if len(self._ranks[rank]) == GROUP:
            self.add(self._merge(False, *self._ranks[rank]), rank + 1)
            self._ranks[rank] = []

    def close(self) -> object:
        """Return the reference to all states, merged and closed."""
        return self._merge(True, *(reference for rank in self._ranks for reference in rank))


class Cluster(Engine):
    """An engine on a Ray cluster: the one at `address`, the one this process is connected to, or a new local one."""

    def __init__(self, address: str | None = None) -> None:
        is_local = address is None and not os.environ.get("RAY_ADDRESS")
        used: Any = sys.modules.get("ray")
        is_new = is_local and not (used is not None and used.is_initialized())
        for name, value in {**_QUIET, **(_LOCAL if is_new else {})}.items():
            os.environ.setdefault(name, value)
        if is_new and "RAY_AUTH_TOKEN_PATH" not in os.environ:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # else Ray leaves one in the home folder
        try:
            import ray
        except ImportError:
            raise SettingError("--engine ray needs Ray; run: pip install 'dialeval[cluster]'") from None
        self._ray: Any = ray
        # Without an address Ray would look in /tmp, where everybody may write, for a cluster to connect to.
        self._address = "local" if is_local else address
        self._ours = False
        self._users = 0

    def __enter__(self) -> Cluster:
        if not self._ray.is_initialized():
            _refuse_no_answer(self._address)
            options: dict[str, object] = {"log_to_driver": False, "logging_level": logging.ERROR}
            if self._address == "local":
                options["include_dashboard"] = False
            if not (self._address or "").startswith("ray://"):
                options["job_config"] = self._make_job_config()
            try:
                self._ray.init(address=self._address, **options)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise SettingError(f"no Ray cluster at {self._address or os.environ['RAY_ADDRESS']}: {error}") from None
            self._ours = True
        self._users += 1
        return self

    def __exit__(self, *_error: object) -> None:
        self._users -= 1
        if self._ours and not self._users:
            self._ray.shutdown()
            self._ours = False

    def _make_job_config(self) -> object:
        """Return the settings of a job whose workers import from the working folder only if this process does.

        Ray puts the working folder first on the path of the workers of every job that is not a client's.
        """
        from ray.job_config import JobConfig

        here = str(Path.cwd())
        is_ours = any(os.path.abspath(place) == here for place in sys.path)  # noqa: PTH100  ('' is this folder)
        return JobConfig(_client_job=True, _py_driver_sys_path=[here] if is_ours else [])

    def fold(self, job: Job, facts: FactValues, stage: Stage, chunks: Mapping[int, Chunk]) -> Iterator[ChunkResult]:
        cores = int(self._ray.cluster_resources().get("CPU", 1))
        parts = max(2, min(cores, MOST_PARTS)) if job.grows(stage) else 0
        reference = _JobReference(uuid.uuid4().hex, (self._ray.put(job), self._ray.put(facts)))
        fold = self._ray.remote(num_returns=2 + parts, max_retries=RETRIES)(_fold)
        submit = partial(fold.remote, reference, stage, parts)
        merge = partial(self._ray.remote(max_retries=RETRIES)(_merge).remote, reference, stage)
        trees = [_Tree(merge) for _ in range(parts)]
        queue = iter(chunks.items())
        ahead: deque[tuple[list[tuple[int, Chunk]], object, list[object]]] = deque()
        while True:
            while len(ahead) < 1 + -(-2 * cores // GROUP) and (group := list(islice(queue, GROUP))):
                sent = [submit(chunk) for _, chunk in group]
                for _, _, *pieces in sent:
                    for tree, piece in zip(trees, pieces, strict=True):
                        tree.add(piece)
                states, items = ([answer[at] for answer in sent] for at in range(2))
                ahead.append((group, merge(False, *states), items))
            if not ahead:
                break
            group, merged, references = ahead.popleft()
            items = [self._fetch(held, chunk) for held, (_, chunk) in zip(references, group, strict=True)]
            yield ChunkResult(tuple(number for number, _ in group), self._fetch(merged, group[0][1]), tuple(items))
        for closed in [tree.close() for tree in trees]:
            yield ChunkResult((), self._fetch(closed, "counts"), ())

    def _fetch(self, reference: object, chunk: Chunk | str) -> Any:
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
    """Refuse an address that does not answer: Ray itself would go on trying for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        raise SettingError(f"no Ray cluster answers at {address} ({error}); check --address") from None
