"""The engine: plan what can be computed, fold it over batches, finish.

`Threads`, `Processes` and `Cluster` run the work: `dialeval.Execution(engine=dialeval.engine.Processes(4))`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialeval.engine.cluster import Cluster
    from dialeval.engine.processes import Processes
    from dialeval.engine.worker import Engine, Threads

_HOMES = {"Cluster": "cluster", "Engine": "worker", "Processes": "processes", "Threads": "worker"}

__all__ = ["Cluster", "Engine", "Processes", "Threads"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
