"""What a saved run is of, so that a run of something else does not take its place unasked.

Two runs are of the same inputs if they have the same systems from the same files, floors and ceilings aside. What the
files hold may have changed: a run that is made again replaces the one before. Texts in memory have no name, so that for
them the digests of references and contexts in the signatures must be equal too.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from dialeval.core.errors import DataError, Fault
from dialeval.core.signature import Signature

if TYPE_CHECKING:
    from pathlib import Path

    from dialeval.core.result import Result

_DATA = ("reference", "context")
"""Fields of signatures that hold digests of the data."""


def refuse_other_inputs(file: Path, saved: Mapping[str, Any], results: Mapping[str, Result]) -> None:
    """DataError where the run in a `run.json` is of other inputs than some results."""
    before = _systems(saved)
    now = {name: result for name, result in results.items() if result.role == "system"}
    if before and before.keys() != now.keys():
        _refuse(file, f"holds a run of {', '.join(before)}, and this one is of {', '.join(now)}")
    sources = {name: _normal(result.source) for name, result in now.items()}
    for name, system in before.items():
        if (source := _normal(system.get("source"))) != sources[name]:
            _refuse(file, f"holds a run in which {name} is of {source}, and here it is of {sources[name]}")
    for name, result in now.items():
        metrics = before.get(name, {}).get("metrics")
        for key, estimate in metrics.items() if isinstance(metrics, dict) and not _is_file(result.source) else ():
            there = _digests(estimate.get("signature") if isinstance(estimate, dict) else None)
            here = _digests(str(result[key].signature) if key in result else None)
            for field in there.keys() & here.keys():
                if there[field] != here[field]:
                    _refuse(file, f"holds a run of other {field}s ({there[field]}, and here {here[field]})")


def refuse_other_files(file: Path, saved: Mapping[str, Any], given: Collection[str]) -> None:
    """DataError where the run in a `run.json` is of a file that is not among those given.

    It can be asked before anything is read. A source may lie within a file, and is then named behind it.
    """
    paths = tuple(os.path.normpath(path) for path in given)
    for name, system in _systems(saved).items():
        source = _normal(system.get("source"))
        if paths and source is not None and not source.startswith(paths):
            _refuse(file, f"holds a run in which {name} is of {source}, which is not among the responses now")


def _refuse(file: Path, what: str) -> NoReturn:
    raise DataError(Fault(str(file), None, what, "choose another folder, or replace it: --force, force=True in Python"))


def _normal(source: object) -> str | None:
    return os.path.normpath(source) if isinstance(source, str) else None


def _systems(saved: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The systems of a document that may hold anything."""
    systems = saved.get("systems")
    found = systems.items() if isinstance(systems, dict) else ()
    return {name: each for name, each in found if isinstance(each, dict) and each.get("role", "system") == "system"}


def _digests(signature: object) -> dict[str, str]:
    if not isinstance(signature, str):
        return {}
    fields = dict(Signature.parse(signature).fields)
    return {name: fields[name] for name in _DATA if name in fields}


def _is_file(source: str | None) -> bool:
    return source is not None and os.path.exists(source)  # noqa: PTH110  (a name of texts is no path)
