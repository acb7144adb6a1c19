"""Which systems of some runs are compared, under which keys, and whether that is allowed.

Two systems can be compared row by row if they were scored on the same rows, and two figures if their signatures differ
in nothing but the version of dialeval and the responses themselves. A mismatch is named with both values. A run that
does not know its dialogues is refused too: taking rows for independent would make chance look like a difference.
`force` compares in spite of it, except for different numbers of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import cast

from dialeval.analysis.values import NO_DIALOGUES
from dialeval.core.errors import SettingError
from dialeval.core.joining import full_names, unequal_rows
from dialeval.core.result import RUN_FILE, Result, Run, load
from dialeval.metrics.registry import registry

Runs = Run | Sequence[Run] | Mapping[str, Run]


def systems_of(runs: Runs) -> dict[str, Result]:
    """The systems of runs by name; where two have the same name, the name of the run stands before both."""
    labelled = _labelled(runs)
    return {name: labelled[label][system] for (label, system), name in full_names(labelled).items()}


def _labelled(runs: Runs) -> Mapping[str, Run]:
    if isinstance(runs, Run):
        return {"run": runs}
    if isinstance(runs, Mapping):
        return cast("Mapping[str, Run]", runs)
    return {str(number): run for number, run in enumerate(runs, 1)}


def load_runs(folders: Sequence[str]) -> dict[str, Run]:
    """Saved runs by a short name each; `main` and `main/` are one run."""
    once: dict[Path, str] = {}
    for folder in folders:
        once.setdefault(run_file(folder).resolve(), folder)
    unique = list(once.values())
    return {label: load(folder) for label, folder in zip(labels_of(unique), unique, strict=True)}


def run_file(path: str) -> Path:
    """The file that a saved run is read from, for its folder or for that file."""
    return Path(path) if Path(path).name == RUN_FILE else Path(path) / RUN_FILE


def labels_of(folders: Sequence[str]) -> list[str]:
    """A short name for each folder: its last part, or all of it where two would be called the same."""
    short = [PurePath(folder).name or folder for folder in folders]
    return [name if short.count(name) == 1 else folder for name, folder in zip(short, folders, strict=True)]


def chosen(
    systems: Mapping[str, Result], baseline: str | None = None, wanted: Iterable[str] | None = None
) -> tuple[str, list[str]]:
    """The baseline, the first system unless another is named, and the systems to compare with it."""
    if wanted is None:
        names = [name for name in systems if systems[name].role == "system"] or list(systems)
    else:
        names = list(dict.fromkeys(full_name(systems, name) for name in wanted))
    first = full_name(systems, baseline) if baseline is not None else names[0] if names else None
    others = [name for name in names if name != first]
    if first is None or not others:
        raise SettingError(f"a comparison needs two systems; there is {', '.join(systems) or 'none'}")
    return first, others


def full_name(systems: Mapping[str, Result], name: str) -> str:
    """The system of that name, or the only system of the run of that name."""
    inside = [system for system in systems if system.startswith(f"{name}/")]
    if name in systems or len(inside) == 1:
        return name if name in systems else inside[0]
    close = get_close_matches(name, systems, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(systems)}"
    raise SettingError(f"no system is called {name!r}; {hint}")


def keys_meant(names: Iterable[str], keys: Sequence[str], lacking: str, there: str) -> list[str]:
    """The result keys that names stand for: keys, families of metrics, or `all`.

    The error for a name without a key says `{lacking} NAME; {there} KEYS`.
    """
    meant: dict[str, None] = {}
    for name in names:
        group = [metric.name for metric in registry().select([name])] if registry().is_group(name) else []
        of_name = [name] if name in keys else [key for key in keys if name == "all" or key in group]
        if not of_name:
            raise SettingError(f"{lacking} {name!r}; {there} {', '.join(keys)}")
        meant |= dict.fromkeys(of_name)
    return list(meant)


def mismatches(
    baseline: str, system: str, systems: Mapping[str, Result], keys: Sequence[str], force: bool
) -> list[str]:
    """In what the rows and signatures of two systems differ; an error unless `force` allows that."""
    left, right = systems[baseline], systems[system]
    fatal = _unequal_counts(left, right, keys)
    unknown = [f"{NO_DIALOGUES} ({name})" for name in (baseline, system) if systems[name].rows is None]
    unequal = fatal or [
        *unknown,
        *([] if left.rows is None or right.rows is None else unequal_rows(left.rows, right.rows)),
        *_unequal_signatures(left, right, keys),
    ]
    if fatal or (unequal and not force):
        more = f" (and {len(unequal) - 1} more)" if len(unequal) > 1 else ""
        remedy = "score both alike, or pass --force (force=True)"
        if fatal:
            remedy = "score both on the same data"
        elif unknown:
            remedy = "score again and save with items; --force (force=True) takes each row for a dialogue of its own"
        raise SettingError(f"{system} cannot be compared with {baseline}: {unequal[0]}{more}; {remedy}")
    return [f"{system} and {baseline}: {what}" for what in unequal]


def _unequal_counts(left: Result, right: Result, keys: Sequence[str]) -> list[str]:
    if left.rows is not None and right.rows is not None and len(left.rows.offsets) != len(right.rows.offsets):
        return [f"dialogues: {len(left.rows.offsets) - 1} and {len(right.rows.offsets) - 1}"]
    return [
        f"rows of {key}: {left[key].rows} and {right[key].rows}" for key in keys if left[key].rows != right[key].rows
    ]


def _unequal_signatures(left: Result, right: Result, keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        one, other = left[key].signature, right[key].signature
        if one is not None and other is not None:
            for name, (here, there) in one.differences(other).items():
                shown = ["(nothing)" if value is None else value for value in (here, there)]
                yield f"{key} has {name}:{shown[0]} and {name}:{shown[1]}"
