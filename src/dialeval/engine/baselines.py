"""Floor and ceiling systems, scored next to the real ones, so that a score can be read between them.

- `ceiling/gold`: the first reference as the response. Where a row has more references it is compared with those; where
  it is the only one it is compared with itself, and overlap is perfect by construction.
- `floor/shuffled-gold`: the first reference of another dialogue. Fluent and human, and an answer to something else.
- `floor/constant`: "i do not know ." in every row.
- `floor/random-train`: a random line of the training text.

The shuffle is a derangement over dialogues: no row gets a text of its own dialogue. It and the random lines come from a
fixed seed. Rows without a reference have no gold and are left out of `ceiling/gold`.

The standing of a system on a metric is its position between the best floor and the ceiling,

    share = (value - floor) / (ceiling - floor)

which may be below 0 or above 1. Only metrics where higher or lower is better have one: more words are not better. The
constant is a floor of all of these; shuffled gold and random lines are floors only where a response is compared with
what belongs to its own row, for they are as diverse, and have as many of the right words, as any human text.

`make_baselines` is for single responses. Each suite makes its own systems of the same names from its data, since
sampled hypotheses, task dialogues and frames have no response that could be exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import to_builtins

from dialeval.core import inputs
from dialeval.core.account import Account
from dialeval.core.arrays import Ints, offsets_of, ranges
from dialeval.core.columns import RaggedColumn, TextColumn, make_empty
from dialeval.core.errors import SettingError
from dialeval.core.fold import Metric
from dialeval.core.result import Run
from dialeval.core.run_schema import Role, SavedBaselines, SavedStanding
from dialeval.engine.folding import Evaluation, Options, run_sources
from dialeval.engine.plan import Planner
from dialeval.engine.resources import Resources, read_train_texts
from dialeval.io.rows import Rows
from dialeval.io.sources import wrap_systems

GOLD, SHUFFLED, CONSTANT, TRAIN = "ceiling/gold", "floor/shuffled-gold", "floor/constant", "floor/random-train"
CONSTANT_RESPONSE = "i do not know ."
SEED = 8
"""Of the shuffle and of the random lines; fixed, so that the same data gives the same floors."""

Floors = Mapping[str, Sequence[str]]
"""By key the systems that are floors of it."""
_OF_RESPONSES = (inputs.OUTCOME, inputs.TURN_LABELS, inputs.LATENCY)
"""Columns about the responses of a system, of which other responses have nothing."""
_PAIRED = frozenset({inputs.REFERENCE, inputs.CONTEXT})


@dataclass(frozen=True)
class Baselines:
    """The baselines of some systems, those that could not be made, and whose rows they were made of."""

    systems: Sequence[Rows]
    left_out: Mapping[str, str]
    rows_of: str
    others: Sequence[str] = ()
    """Systems with other references, to which the baselines apply only roughly."""

    @property
    def roles(self) -> dict[str, Role]:
        """Which of them are ceilings and which are floors."""
        return {rows.system: "ceiling" if rows.system == GOLD else "floor" for rows in self.systems}


def evaluate_with_baselines(systems: Sequence[Rows], planner: Planner, resources: Resources, options: Options) -> Run:
    """Score systems with baselines next to them, and add the standing of each system between floor and ceiling."""
    train = read_train_texts(resources.train)
    resources = replace(resources, train=train)
    return run_with_baselines(systems, make_baselines(systems, train), planner, resources, options).run


def run_with_baselines(
    systems: Sequence[Rows], baselines: Baselines | None, planner: Planner, resources: Resources, options: Options
) -> Evaluation:
    """Score systems and their baselines, if there are any; the run then has the standing of each system."""
    if baselines is None:
        return run_sources(wrap_systems(systems), planner, resources, options)
    sources = wrap_systems([*systems, *baselines.systems], baselines.roles)
    evaluation = run_sources(sources, planner, resources, options)
    metrics = evaluation.systems[baselines.rows_of].plan.metrics
    return evaluation._replace(run=with_standing(evaluation.run, baselines, metrics))


def make_baselines(systems: Sequence[Rows], train: TextColumn | None) -> Baselines:
    """Return floors and ceilings over the rows of the first system."""
    first = systems[0]
    check_names(rows.system for rows in systems)
    made: list[Rows] = []
    left_out: dict[str, str] = {}
    references = first.columns.get(inputs.REFERENCE)
    if isinstance(references, RaggedColumn) and np.diff(references.offsets).any():
        made.append(_make_gold(first, references))
        order = derangement(made[0].dialogue_offsets(), SEED)
        if order is None:
            left_out[SHUFFLED] = "more than half of the rows are of one dialogue"
        else:
            made.append(_with_responses(made[0], SHUFFLED, made[0].responses.take(order)))
    else:
        left_out |= dict.fromkeys((GOLD, SHUFFLED), inputs.REFERENCE.remedy)
    constant = TextColumn.from_strings([CONSTANT_RESPONSE]).take(np.zeros(len(first), np.int64))
    made.append(_with_responses(first, CONSTANT, constant))
    if train is not None and len(train):
        lines = np.random.default_rng(SEED).integers(len(train), size=len(first))
        made.append(_with_responses(first, TRAIN, train.take(lines)))
    else:
        left_out[TRAIN] = inputs.TRAIN.remedy
    others = [rows.system for rows in systems if _has_other_references(rows, first)]
    return Baselines(made, left_out, first.system, others)


def check_names(systems: Iterable[str]) -> None:
    """Refuse systems that are called like a baseline."""
    if taken := {GOLD, SHUFFLED, CONSTANT, TRAIN}.intersection(systems):
        raise SettingError(f"a system is called {taken.pop()}, which is the name of a baseline; rename it")


def _has_other_references(one: Rows, other: Rows) -> bool:
    """Return whether two systems were compared with different references."""
    mine, theirs = (rows.columns.get(inputs.REFERENCE) for rows in (one, other))
    if mine is theirs or mine is None or theirs is None:
        return mine is not theirs
    return mine.digest != theirs.digest


def _with_responses(rows: Rows, name: str, responses: TextColumn) -> Rows:
    unknown = {need: make_empty(need, len(rows)) for need in _OF_RESPONSES if need in rows.columns}
    return replace(
        rows,
        system=name,
        columns={**rows.columns, **unknown, inputs.RESPONSE: responses},
        where=name,
        account=Account(),
    )


def _make_gold(rows: Rows, references: RaggedColumn) -> Rows:
    """Take first references as responses, over the rows that have one; of several it leaves the references."""
    counts = np.diff(references.offsets)
    occurring = np.flatnonzero(counts)
    firsts, several = references.offsets[:-1][occurring], counts[occurring] > 1
    left = np.where(several, counts[occurring] - 1, 1)
    others = references.values.take(ranges(firsts + several, left))
    gold = _with_responses(rows.take(occurring), GOLD, references.values.take(firsts))
    return replace(gold, columns={**gold.columns, inputs.REFERENCE: RaggedColumn(others, offsets_of(left))})


def derangement(offsets: Ints, seed: int) -> Ints | None:
    """Return for each row another one, each once, never of the same dialogue; None where there is no such order.

    Dialogues are put in random order, and every row takes the one that follows it at a distance of at least the size of
    the largest dialogue.
    """
    generator = np.random.default_rng(seed)
    sizes = np.diff(offsets)
    rows, largest = int(offsets[-1]), int(sizes.max(initial=0))
    if rows < 2 * largest or not rows:
        return None
    line = np.concatenate(
        [offsets[dialogue] + generator.permutation(sizes[dialogue]) for dialogue in generator.permutation(len(sizes))]
    )
    shift = int(generator.integers(largest, rows - largest + 1))
    taken = np.empty(rows, np.int64)
    taken[line] = np.roll(line, -shift)
    return taken


def with_standing(run: Run, baselines: Baselines, metrics: Mapping[str, Metric]) -> Run:
    """Return the run with the position of each system between floor and ceiling; warn of floors above a system."""
    names = [rows.system for rows in baselines.systems]
    real = [name for name in run if name not in names]
    floors = {key: [name for name in names if _is_floor(name, metric)] for key, metric in metrics.items()}
    standing = {name: located for name in real if (located := _locate(run, name, metrics, floors))}
    details = to_builtins(SavedBaselines(baselines.rows_of, dict(baselines.left_out), standing))
    warnings = [line for name in real for line in _warn_of_floors(run, name, metrics, floors)]
    if baselines.others:
        made_of = f"baselines are made of the rows of {baselines.rows_of}; other references belong to"
        warnings.insert(0, f"{made_of} {', '.join(baselines.others)}")
    return replace(run, details={**run.details, "baselines": details}, warnings=(*run.warnings, *warnings))


def _is_floor(name: str, metric: Metric) -> bool:
    """Return whether a baseline is a floor of a metric."""
    if name not in (CONSTANT, SHUFFLED, TRAIN) or metric.better is None:
        return False
    # A metric that must know all rows first compares distributions, and those do not care whose text it is.
    return (
        name == CONSTANT
        or any(need.is_gold for need in metric.needs)
        or (bool(metric.needs & _PAIRED) and not metric.facts)
    )


def _orient_mean(run: Run, system: str, key: str, metric: Metric) -> float:
    """Return the value of a system, negated where lower is better; NaN where it has none."""
    mean = run[system][key].mean if system in run and key in run[system] else math.nan
    return -mean if metric.better == "lower" else mean


def _locate(run: Run, system: str, metrics: Mapping[str, Metric], floors: Floors) -> dict[str, SavedStanding]:
    """Return by key the fraction of the way from the best floor to the ceiling, where both are known."""
    standings: dict[str, SavedStanding] = {}
    for key, metric in metrics.items():
        below = {name: value for name in floors[key] if not math.isnan(value := _orient_mean(run, name, key, metric))}
        top, here = (_orient_mean(run, name, key, metric) for name in (GOLD, system))
        best = max(below, key=lambda name: below[name], default="")
        if below and top > below[best] and not math.isnan(here):
            standings[key] = SavedStanding((here - below[best]) / (top - below[best]), best, GOLD)
    return standings


def _warn_of_floors(run: Run, system: str, metrics: Mapping[str, Metric], floors: Floors) -> Iterable[str]:
    """Yield a line for each floor that is at least as good as a system on some metric."""
    for floor in dict.fromkeys(name for names in floors.values() for name in names):
        lost = [
            key
            for key, metric in metrics.items()
            if floor in floors[key] and _orient_mean(run, floor, key, metric) >= _orient_mean(run, system, key, metric)
        ]
        if lost:
            yield f"{system} is no better than {floor} on {', '.join(lost)}"
