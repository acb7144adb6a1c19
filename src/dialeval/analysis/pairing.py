"""Select the systems and metrics of some runs that are compared, and say which inputs of two values differ.

Which rows of two systems belong together is decided by `alignment`. Two values are compared if their signatures differ
in nothing but the version of dialeval, the responses themselves and what follows from other rows; otherwise the metric
is left out of the comparison, and `describe_inputs` gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import Literal, TypeAlias, cast, get_args

from dialeval.analysis.alignment import Alignment, count_different
from dialeval.analysis.cutting import weigh_dialogues
from dialeval.analysis.values import metric_of
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import RUN_FILE, Result, Run, full_names, load
from dialeval.core.rowtable import REFERENCE
from dialeval.metrics.registry import registry

Runs = Run | Sequence[Run] | Mapping[str, Run]

Weight: TypeAlias = Literal["rows", "dialogues"]
"""What counts equally in a mean: every row, or every dialogue."""

_NUMBERED = re.compile(r"-\d+$")
_MAY_DIFFER = frozenset({"context", "roles", "slice", "trials"})
"""Inputs that differ between systems that answered the same users."""
_COLUMNS = frozenset({REFERENCE, "annotations", "reference-groups", "true-frames"})
"""Inputs that come with the rows."""
_INPUTS = {
    REFERENCE: "references",
    "annotations": "annotations",
    "reference-groups": "reference groups",
    "true-frames": "true frames",
    "tokeniser": "tokenizers",
    "train": "training texts",
    "vocabulary": "vocabularies",
    "embeddings": "word vectors",
    "judge": "judges",
    "dialogue-judge": "judges",
    "encoder": "encoders",
    "goals": "user goals",
    "true-states": "true states",
    "reference-sets": "reference responses",
    "ontology": "ontologies",
    "venues": "venue databases",
    "schema": "schemas",
}
"""What signatures call an input, and what it is called in sentences."""
_DIGESTED = frozenset(_INPUTS) - {"tokeniser"}
"""Inputs of which a signature has a digest, which nobody can read."""


def systems_of(runs: Runs) -> dict[str, Result]:
    """The systems of runs by name; where two have the same name, the name of the run stands before both."""
    labelled = _labelled(runs)
    return {name: labelled[label][system] for (label, system), name in full_names(labelled).items()}


def weigh(systems: Mapping[str, Result], weight: Weight) -> Mapping[str, Result]:
    """Return the systems with means over rows, or over dialogues that count once each."""
    if weight not in get_args(Weight):
        raise SettingError(f"means are over {' or '.join(get_args(Weight))}, not over {weight!r}")
    if weight == "rows":
        return systems
    return {name: weigh_dialogues(result) for name, result in systems.items()}


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


def describe_inputs(left: Estimate, right: Estimate, alignment: Alignment) -> str | None:
    """Say in words which inputs of two values differ, so that they must not be compared; None where none does.

    Contexts may differ, since they contain the replies of each system. Columns of the rows (references, annotations)
    differ in unpaired designs, where other rows were scored, and are compared row by row where rows are paired.
    """
    if left.signature is None or right.signature is None:
        return None
    design = alignment.design
    fields = left.signature.differences(right.signature)
    for name, (here, there) in sorted(fields.items(), key=lambda field: field[0] == "metric"):  # the settings first
        if name in _MAY_DIFFER or (name in _COLUMNS and (design.name == "unpaired" or design.whole)):
            continue
        if name == REFERENCE and alignment.left.rows is not None and alignment.right.rows is not None:
            different = count_different(alignment.left.rows, alignment.right.rows, REFERENCE)
            if different is not None:
                if different:
                    return f"references differ in {different:,} of {len(alignment.left.rows):,} rows"
                continue
        if name == "definition":
            return "it was computed by different versions of the metric; score both again"
        words = _INPUTS.get(name, f"settings of {name}")
        if here is None or there is None or name in _DIGESTED:
            return f"{words} differ"
        return f"{words} differ: {here} and {there}"
    return None


def main_keys(systems: Mapping[str, Result]) -> list[str]:
    """Return the panel of a comparison: one key of each family of metrics for which higher or lower is better.

    Of `bleu-1` to `bleu-4` it is the last, of others the first; parts of another key (`inform/hotel`) and keys without
    a value are left out.
    Metrics that only describe the responses (`Metric.descriptive`) are in it where there are no others; all keys are
    where neither higher nor lower is better for any.
    """
    there = list(dict.fromkeys(key for result in systems.values() for key in result if result[key].scored))
    keys = [key for key in there if "/" not in key or key.split("/")[0] not in there]
    families: dict[bool, dict[str, str]] = {False: {}, True: {}}
    for key in keys:
        metric = metric_of(next(result[key] for result in systems.values() if key in result))
        if metric is not None and metric.better is not None:
            group = families[metric.descriptive]
            group[metric.family] = key if _NUMBERED.search(key) else group.get(metric.family, key)
    return list(families[False].values()) or list(families[True].values()) or keys
