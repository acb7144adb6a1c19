"""Select the systems and metrics of some runs that are compared, and describe which inputs of two values differ.

Which rows of two systems belong together is decided by `alignment`. Two values are compared if their signatures differ
in nothing but the version of dialeval, the responses themselves and what follows from other rows; otherwise the metric
is left out of the comparison, and `describe_inputs` gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from itertools import accumulate
from pathlib import Path, PurePath
from typing import Literal, TypeAlias, cast, get_args

from msgspec.structs import replace

from dialeval.analysis.alignment import Alignment, Design, DesignName, align, count_different
from dialeval.analysis.crossed import list_replicates, list_ways, pool_replicates
from dialeval.analysis.values import add_failure_rates, find_metric, regroup, weigh_dialogues
from dialeval.core.account import FAILURES
from dialeval.core.errors import SettingError, suggest
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run, load, name_systems
from dialeval.core.rowtable import REFERENCE, RUN_FILE, RowTable
from dialeval.metrics.registry import registry, split_names

Runs = Run | Sequence[Run] | Mapping[str, Run]

Weight: TypeAlias = Literal["rows", "dialogues"]
"""Whether every row or every dialogue has equal weight in a mean."""

_NUMBERED = re.compile(r"-\d+$")
USERS = frozenset({"user", "user_id", "userid", "customer", "customer_id", "account", "account_id"})
"""Fields that identify who talked to a system."""
_MAY_DIFFER = frozenset({"context", "roles", "slice", "trials", "calls"})
"""Inputs that differ between systems that answered the same users."""
_COLUMNS = frozenset({REFERENCE, "annotations", "reference-groups", "true-frames", "expected-calls"})
"""Inputs that come with the rows."""
_INPUTS = {
    REFERENCE: "references",
    "annotations": "annotations",
    "reference-groups": "reference groups",
    "true-frames": "true frames",
    "expected-calls": "expected calls",
    "call-checks": "checks",
    "text-checks": "checks",
    "tokenizer": "tokenizers",
    "train": "training texts",
    "vocabulary": "vocabularies",
    "vectors": "word vectors",
    "judge": "judges",
    "dialogue-judge": "judges",
    "encoder": "encoders",
    "goals": "user goals",
    "true-states": "true states",
    "reference-sets": "reference responses",
    "ontology": "ontologies",
    "venues": "venue databases",
    "schema": "schemas",
    "data": "versions of the data",
}
"""What signatures call an input, and what it is called in sentences."""
_DIGESTED = frozenset(_INPUTS) - {"tokenizer", "data"}
"""Inputs of which a signature has a digest, which nobody can read."""


def collect_systems(runs: Runs, weight: Weight = "rows") -> dict[str, Result]:
    """Return the systems of runs by name, with the name of the run before it where two have the same.

    `weight`: means are over rows, or over dialogues that count once each.
    """
    if weight not in get_args(Weight):
        raise SettingError(f"means are over {' or '.join(get_args(Weight))}, not over {weight!r}")
    labeled: Mapping[str, Run]
    if isinstance(runs, Run):
        labeled = {"run": runs}
    elif isinstance(runs, Mapping):
        labeled = cast("Mapping[str, Run]", runs)
    else:
        labeled = {str(number): run for number, run in enumerate(runs, 1)}
    systems = {name: labeled[label][system] for (label, system), name in name_systems(labeled).items()}
    systems = add_failure_rates(systems)
    return systems if weight == "rows" else {name: weigh_dialogues(result) for name, result in systems.items()}


@dataclass(frozen=True)
class Selection:
    """The systems and metrics of a comparison, with the rows that belong together."""

    known: Mapping[str, Result]
    first: str
    """The baseline."""
    others: Sequence[str]
    common: Mapping[str, Sequence[str]]
    """By system the keys that it shares with the baseline."""
    alignments: Mapping[str, Alignment]
    left_out: Mapping[tuple[str, str], str]
    """By system and key why two values must not be compared."""
    tested: Mapping[str, Sequence[str]]
    """By system the other keys that it shares with the baseline."""
    panel: tuple[str, ...]
    untested: tuple[str, ...]
    """Systems that `most_tests` left out."""
    design: DesignName | None = None
    """The design that was asked for."""
    cluster: str | None = None
    """The field whose values are the clusters, instead of dialogues; or two fields."""
    replicate: str | None = None
    """The field that numbers the replicates of a system."""
    crossed: Sequence[Mapping[str, Alignment]] = ()
    """The alignments over the second field and over both; of replicates that over rows."""

    def take(self, keys: Collection[str]) -> Selection:
        """Return the selection of some keys."""
        parts = (self.common, self.tested)
        common, tested = ({name: [key for key in own if key in keys] for name, own in part.items()} for part in parts)
        return replace_fields(self, common=common, tested=tested)

    @property
    def designs(self) -> dict[str, Design]:
        """The design of the comparison of each system."""
        return {name: alignment.design for name, alignment in self.alignments.items()}


def select(
    runs: Runs,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: str | Iterable[str] | None = None,
    design: DesignName | None = None,
    weight: Weight = "rows",
    most_tests: int | None = None,
    cluster: str | None = None,
    replicate: str | None = None,
) -> Selection:
    """Select what is compared, as `dialeval.compare` describes its arguments, and align the rows."""
    fields: list[str | None] = [*list_ways(cluster, replicate)] or [None]
    if replicate is not None and weight != "rows":
        raise SettingError("means over replicates are per reply; leave the weight of dialogues out")
    known = collect_systems(runs, weight)
    first, others = choose_systems(known, baseline, systems)
    known = {**known, **pool_replicates({name: known[name] for name in (first, *others)}, replicate)}
    asked = split_names(metrics) if isinstance(metrics, str) else None if metrics is None else list(metrics)
    common = {name: _find_common(known[first], known[name], asked) for name in others}
    if most_tests is not None:
        fitting = sum(tests <= most_tests for tests in accumulate(map(len, common.values())))
        others = others[: max(fitting, 1)]
    ways: list[dict[str, Alignment]] = [{} for _ in fields]
    whole: dict[str, Alignment] = {}
    for name in others:
        try:
            whole[name] = align(known[first], known[name], design)
            for field, over in zip(fields, ways, strict=True):
                over[name] = _choose_units(whole[name], weight, field, replicate)
        except SettingError as error:
            raise SettingError(f"{name} cannot be compared with {first}: {error}") from None
    alignments, *crossed = ways
    for name, second in crossed[0].items() if crossed else ():
        design_of = replace(alignments[name].design, notes=(*alignments[name].design.notes, *second.design.notes[-1:]))
        alignments[name] = replace_fields(alignments[name], design=design_of)
    left_out = {
        (name, key): reason
        for name, alignment in alignments.items()
        for key in common[name]
        if (reason := _explain_exclusion(known[first][key], known[name][key], alignment, key)) is not None
    }
    tested = {name: [key for key in common[name] if (name, key) not in left_out] for name in others}
    keys = list(dict.fromkeys(key for shared in common.values() for key in shared))
    panel = choose_panel({name: known[name] for name in (first, *others)}, keys, asked is not None)
    untested = tuple(name for name in common if name not in others)
    found = Selection(known, first, others, common, alignments, left_out, tested, panel, untested, design, cluster)
    return replace_fields(found, replicate=replicate, crossed=crossed if replicate is None else [whole])


def _choose_units(alignment: Alignment, weight: Weight, cluster: str | None, replicate: str | None) -> Alignment:
    """Give dialogues that are compared as wholes equal weights, and make the values of a field the clusters."""
    left, right, design = alignment.left, alignment.right, alignment.design
    if design.whole and weight == "rows":
        left, right = weigh_dialogues(left), weigh_dialogues(right)
        alignment = Alignment(design, left, right, True)
    if cluster is not None:
        left, labels = regroup(left, cluster)
        right, others = regroup(right, cluster, None if design.name == "unpaired" else labels)
        clusters = len(set(labels)), len(set(others))
        sizes = f"{clusters[0]:,}" if design.name != "unpaired" else f"{clusters[0]:,} and {clusters[1]:,}"
        note = f"Clusters are the {sizes} values of {cluster}."
        return Alignment(replace(design, notes=(*design.notes, note)), left, right, True)
    notes = [warn_of_users(each.table) for each in (left, right) if each.table is not None]
    if replicate is not None:
        counts = dict.fromkeys(f"{len(list_replicates(each, replicate)[0]):,}" for each in (left, right))
        notes.insert(0, f"Clusters are dialogues, and {' and '.join(counts)} values of {replicate} in each system.")
    return Alignment(replace(design, notes=(*design.notes, *filter(None, notes[:1]))), left, right, alignment.changed)


def describe_estimand(selection: Selection, weight: Weight) -> str | None:
    """Return what a mean is a mean of, `reply` or `dialogue`; None where no dialogue has several rows."""
    sides = [selection.known[name] for name in (selection.first, *selection.others)]
    several = any(len(side.table) > len(side.table.offsets) - 1 for side in sides if side.table is not None)
    turns = several and any(each.level is Level.TURN and not each.corpus for side in sides for each in side.values())
    wholes = {design.whole and design.name != "unpaired" for design in selection.designs.values()}
    if weight == "dialogues" or (turns and wholes == {True}):
        return "dialogue"
    mixed = "reply, and per dialogue where dialogues are compared as wholes"
    return None if not turns else mixed if True in wholes else "reply"


def warn_of_users(table: RowTable) -> str | None:
    """Return a sentence about a field of users that have several dialogues; None where there is none."""
    for field in (field for field in table.fields if field.lower() in USERS):
        values = [table.fields[field][row] for row in table.offsets[:-1].tolist()]
        users = len({value for each in values for value in each})
        if 0 < users < sum(map(bool, values)):
            return f"{len(values):,} dialogues are of {users:,} users; --cluster {field} takes that into account."
    return None


def _find_common(left: Result, right: Result, asked: list[str] | None) -> list[str]:
    keys = [key for key in left if key in right and left[key].corpus == right[key].corpus]
    if not keys:
        raise SettingError("the systems have no metric in common; score them with the same metrics")
    if asked is None:
        return keys
    if not asked:
        raise SettingError(f"no metric is named; the systems share {', '.join(keys)}")
    named = find_keys(asked, keys, "not every system has", "they share")
    fails = FAILURES in keys and FAILURES not in named and bool(left[FAILURES].mean or right[FAILURES].mean)
    return [FAILURES, *named] if fails and any(left[key].missing or right[key].missing for key in named) else named


def _explain_exclusion(here: Estimate, there: Estimate, alignment: Alignment, key: str) -> str | None:
    """Return why a metric is left out of a comparison: other inputs, or no value for the rows in common."""
    for side in (alignment.left, alignment.right):
        if key not in side:
            return side.skipped.get(key, "it has no value for the rows in common")
    return describe_inputs(here, there, alignment)


def choose_panel(known: Mapping[str, Result], keys: Sequence[str], asked: bool) -> tuple[str, ...]:
    """Choose the metrics that a verdict is about among some keys; `asked`: they were named.

    Where no metric says which system is better, it is about all keys.
    """
    metrics = {key: find_metric(next(result[key] for result in known.values() if key in result)) for key in keys}
    panel = [key for key in keys if (metric := metrics[key]) is not None and metric.better is not None]
    if not asked:
        main = choose_main_keys(known)
        panel = [key for key in panel if key in main]
    evidence = any((metric := metrics[key]) is not None and not metric.descriptive for key in panel)
    return tuple(panel) if panel and (asked or evidence) else tuple(keys)


def load_runs(folders: Sequence[str]) -> dict[str, Run]:
    """Load saved runs, by a short name each; `main` and `main/` are one run."""
    once: dict[Path, str] = {}
    for folder in folders:
        once.setdefault(find_run_file(folder).resolve(), folder)
    unique = list(once.values())
    return {label: load(folder) for label, folder in zip(label_folders(unique), unique, strict=True)}


def find_run_file(path: str) -> Path:
    """Return the file that a saved run is read from, for its folder or for that file."""
    return Path(path) if Path(path).name == RUN_FILE else Path(path) / RUN_FILE


def label_folders(folders: Sequence[str]) -> list[str]:
    """Return a short name for each folder: its last part, or all of it where two would be called the same."""
    short = [PurePath(folder).name or folder for folder in folders]
    return [name if short.count(name) == 1 else folder for name, folder in zip(short, folders, strict=True)]


def choose_systems(
    systems: Mapping[str, Result], baseline: str | None = None, wanted: Iterable[str] | None = None
) -> tuple[str, list[str]]:
    """Return the baseline, the first system unless another is named, and the systems to compare with it."""
    if wanted is None:
        names = [name for name in systems if systems[name].role == "system"] or list(systems)
    else:
        names = list(dict.fromkeys(find_system(systems, name) for name in wanted))
    first = find_system(systems, baseline) if baseline is not None else names[0] if names else None
    others = [name for name in names if name != first]
    if first is None or not others:
        there = f"there is {', '.join(systems) or 'none'}"
        named = "" if wanted is None else f"; named: {', '.join(names) or 'none'}"
        raise SettingError(f"a comparison needs two systems; {there}{named}")
    return first, others


def collect_compared(runs: Runs, baseline: str | None, wanted: Iterable[str] | None) -> dict[str, Result]:
    """Return the systems to compare, the baseline first; a run of one system has only that."""
    known = collect_systems(runs)
    real = [name for name, result in known.items() if result.role == "system"] or list(known)
    alone = len(real) == 1 and wanted is None and baseline is None
    first, others = (real[0], []) if alone else choose_systems(known, baseline, wanted)
    return {name: known[name] for name in (first, *others)}


def find_system(systems: Mapping[str, Result], name: str) -> str:
    """Return the system of that name, or the only system of the run of that name."""
    inside = [system for system in systems if system.startswith(f"{name}/")]
    if name in systems or len(inside) == 1:
        return name if name in systems else inside[0]
    raise SettingError(f"no system is called {name!r}; {suggest(name, systems)}")


def find_key(name: str, keys: Collection[str]) -> str:
    """Return the key that a name stands for, which may be an alias or in another case; the name itself if none."""
    if name in keys or registry().is_group(name):
        return name
    try:
        found = registry().parse(name).name
    except SettingError:
        return name
    return found if found in keys else name


def find_keys(names: Iterable[str], keys: Sequence[str], lacking: str, there: str) -> list[str]:
    """Return the result keys that names stand for: keys, families of metrics, or `all`.

    The error for a name without a key is `{lacking} NAME; {there} KEYS`.
    """
    meant: dict[str, None] = {}
    for asked in names:
        name = find_key(str(asked), keys)
        group = [metric.name for metric in registry().select([name])] if registry().is_group(name) else []
        of_name = [name] if name in keys else [key for key in keys if name.lower() == "all" or key in group]
        if not of_name:
            raise SettingError(f"{lacking} {name!r}; {there} {', '.join(keys)}")
        meant |= dict.fromkeys(of_name)
    return list(meant)


def describe_inputs(left: Estimate, right: Estimate, alignment: Alignment) -> str | None:
    """Return which inputs of two values differ, so that they must not be compared; None where none does.

    Contexts may differ, since they contain the replies of each system. Columns of the rows (references, annotations)
    differ in unpaired designs, where other rows were scored, and are compared row by row where rows are paired.
    """
    if left.signature is None or right.signature is None:
        return None
    design = alignment.design
    fields = left.signature.differences(right.signature)
    # The version of the data says most, and settings say more than the name that they are part of.
    for name, (here, there) in sorted(fields.items(), key=lambda field: (field[0] == "metric") - (field[0] == "data")):
        if name in _MAY_DIFFER or (name in _COLUMNS and (design.name == "unpaired" or design.whole)):
            continue
        if name == REFERENCE and alignment.left.table is not None and alignment.right.table is not None:
            different = count_different(alignment.left.table, alignment.right.table, REFERENCE)
            if different is not None:
                if different:
                    return f"references differ in {different:,} of {len(alignment.left.table):,} rows"
                continue
        if name == "definition":
            return "it was computed by different versions of the metric; score both again"
        words = _INPUTS.get(name, f"settings of {name}")
        if here is None or there is None or name in _DIGESTED:
            return f"{words} differ"
        return f"{words} differ: {here} and {there}"
    return None


def choose_main_keys(systems: Mapping[str, Result]) -> list[str]:
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
        metric = find_metric(next(result[key] for result in systems.values() if key in result))
        if metric is not None and metric.better is not None:
            group = families[metric.descriptive]
            group[metric.family] = key if _NUMBERED.search(key) else group.get(metric.family, key)
    return list(families[False].values()) or list(families[True].values()) or keys
