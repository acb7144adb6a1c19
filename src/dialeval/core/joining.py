"""Two runs as one: `run + run` has the systems of both, if they were scored on the same rows.

Names that both have get the number of their run, `1/damd` and `2/damd`; a floor or ceiling that is the same in both is
kept once. Warnings and commands of both are kept, and details by system; other details only where both have the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.errors import SettingError
from dialeval.core.rowtable import RowTable

if TYPE_CHECKING:
    from dialeval.core.result import Result, Run

_GIVEN_TEXTS = ("context", "reference")
"""Texts that come with the data and not from a system."""
_COMMAND = "command"


def full_names(labelled: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """The name of each system by its run's label and its own name: the label stands before a name that two have."""
    times = Counter(system for systems in labelled.values() for system in systems)
    return {
        (label, system): system if times[system] == 1 else f"{label}/{system}"
        for label, systems in labelled.items()
        for system in systems
    }


def unequal_rows(left: RowTable, right: RowTable) -> Iterator[str]:
    """In what the rows of two systems with equally many dialogues differ, in words."""
    if not np.array_equal(left.offsets, right.offsets):
        number = int(np.flatnonzero(left.offsets != right.offsets)[0]) - 1
        sizes = [int(np.diff(rows.offsets)[number]) for rows in (left, right)]
        dialogue = str(number + 1) if left.dialogues is None else repr(left.dialogues[number])
        yield f"turns of dialogue {dialogue}: {sizes[0]} and {sizes[1]}"
    if left.dialogues is not None and right.dialogues is not None:
        for one, other in zip(left.dialogues, right.dialogues, strict=True):
            if one is not None and other is not None and one != other:
                yield f"dialogue {one!r} stands where {other!r} does"
                break
    if left.turns is not None and right.turns is not None and len(left.turns) == len(right.turns):
        for row in np.flatnonzero(left.turns != right.turns)[:1].tolist():
            yield f"row {row + 1} is turn {left.turns[row]} and turn {right.turns[row]}"
    for name in _GIVEN_TEXTS:
        if name in left.texts and name in right.texts and left.texts[name].digest != right.texts[name].digest:
            yield f"{name}: {left.texts[name].digest} and {right.texts[name].digest} (digests of the texts)"


def joined(left: Run, right: Run) -> Run:
    """The systems of two runs in one; SettingError unless they were scored on the same rows."""
    from dialeval.core.result import Run

    _check_rows(left, right)
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


def _check_rows(left: Run, right: Run) -> None:
    first = next(iter(left), None)
    for name, result in right.items():
        what = None if first is None else next(_differences(left[first], result), None)
        if what is not None:
            raise SettingError(f"{name} was not scored on the rows of {first}, {what}; score both on the same data")


def _differences(left: Result, right: Result) -> Iterator[str]:
    if left.rows is None or right.rows is None:
        counts = [{est.level: est.rows for est in result.values()} for result in (left, right)]
        for level in counts[0].keys() & counts[1].keys():
            if counts[0][level] != counts[1][level]:
                yield f"{level}s: {counts[0][level]} and {counts[1][level]}"
    elif len(left.rows.offsets) != len(right.rows.offsets):
        yield f"dialogues: {len(left.rows.offsets) - 1} and {len(right.rows.offsets) - 1}"
    else:
        yield from unequal_rows(left.rows, right.rows)


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
