"""Two runs as one: `run + run` has the systems of both; `compare` finds out which rows they have in common.

Names that both have get the number of their run, `1/damd` and `2/damd`; a floor or ceiling that is the same in both is
kept once. Warnings and commands of both are kept, and details by system; other details only where both have the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialeval.core.result import Run

_COMMAND = "command"


def full_names(labelled: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """The name of each system by its run's label and its own name: the label stands before a name that two have."""
    times = Counter(system for systems in labelled.values() for system in systems)
    return {
        (label, system): system if times[system] == 1 else f"{label}/{system}"
        for label, systems in labelled.items()
        for system in systems
    }


def joined(left: Run, right: Run) -> Run:
    """Return the systems of two runs in one."""
    from dialeval.core.result import Run

    same = {name for name in right if name in left and left[name].role != "system" and left[name] == right[name]}
    parts = {"1": left, "2": {name: result for name, result in right.items() if name not in same}}
    names = full_names(parts)
    systems = {names[label, name]: result for label, part in parts.items() for name, result in part.items()}
    renamed = [_renamed(left.details, {name: names["1", name] for name in left})]
    renamed.append(_renamed(right.details, {name: names["1" if name in same else "2", name] for name in right}))
    details = {name: value for name, value in _merged(*renamed).items() if name != _COMMAND}
    if commands := list(dict.fromkeys(run.details[_COMMAND] for run in (left, right) if _COMMAND in run.details)):
        details[_COMMAND] = "\n".join(commands)
    version = ", ".join(dict.fromkeys((left.version, right.version)))
    return Run(systems, version, tuple(dict.fromkeys((*left.warnings, *right.warnings))), details)


def _renamed(details: Any, names: Mapping[str, str]) -> Any:
    """Details with what they hold by system under other names."""
    if not isinstance(details, Mapping):
        return details
    if details and details.keys() <= names.keys():
        return {names[name]: value for name, value in details.items()}
    return {name: _renamed(value, names) for name, value in details.items()}


def _merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Both mappings, down to their last ones; what is not the same in both is left out."""
    merged = {**left, **right}
    for name in left.keys() & right.keys():
        if isinstance(left[name], Mapping) and isinstance(right[name], Mapping):
            merged[name] = _merged(left[name], right[name])
        elif left[name] != right[name]:
            del merged[name]
    return merged
