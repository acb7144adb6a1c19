"""Sampling: which responses people rate, drawn at random with probabilities that are known.

What is drawn is a unit of the design:

- a context with the responses of all systems to it (the usual: what is hard about it is then the same for all),
- a single response (`apart`, where systems have different rows, and where strata are systems), or
- a dialogue with all its rows and all systems (`dialogues`).

Units may be cut into strata (`by`): a system, a turn, a field that the run kept, or quantiles of a metric. Every
stratum gives units in proportion to what it has, and at least two, so that its spread can be seen.

    equal    every unit of a stratum has the same probability, n_h / N_h
    unsure   in proportion to how unsure a judge is: the standard deviation of a yes/no answer with its mean,
             s = sqrt((x - low) (high - x)), at least a quarter of the mean s, so that no unit counts too much

Both are drawn by one procedure, systematic sampling in random order: the units of a stratum are shuffled, their
probabilities are laid end to end, and every unit is taken on which one of the points u, u + 1, u + 2 ... falls, with u
uniform between 0 and 1. The number of units is fixed, and each has exactly its probability. With equal probabilities
every set of n_h units is equally likely: that is simple random sampling without replacement. With unequal ones the
random order makes the design nearly as random as it can be, which is what the variance estimator of
`prediction_powered` (Hájek's, for designs of high entropy) assumes. Poisson sampling would have an exact variance too,
but a random number of ratings, which costs precision and which nobody can plan.

Papers: Hartley and Rao 1962, "Sampling with Unequal Probabilities and without Replacement", Annals of Mathematical
Statistics; Särndal, Swensson and Wretman 1992, "Model Assisted Survey Sampling"; Berger 1998, "Rate of Convergence to
Normal Distribution for the Horvitz-Thompson Estimator", Journal of Statistical Planning and Inference.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dialeval.analysis.resampling import DEFAULT_SEED
from dialeval.analysis.sample_folder import LEAST_UNSURE, Sample, design_of, digest_of
from dialeval.analysis.values import metric_of
from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.fold import Level
from dialeval.core.plain_text import whole_characters
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import NO_TURN, RowTable

LEAST_PER_STRATUM = 2
QUANTILES = 4
MOST_BYTES = 1 << 28
"""Of the texts of a sample."""
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Of ids: those that nobody confuses."""
_ID_LENGTH = 8
_WHOLE = "all"
"""The stratum where there are no others."""


@dataclass(frozen=True, eq=False)
class _Frame:
    """What can be drawn: the responses of all systems, in the units that are drawn together."""

    systems: Mapping[str, RowTable]
    system: Ints
    """The number of each response's system."""
    row: Ints
    """The number of its row there."""
    unit: Ints
    """The number of its unit, from 0 on."""

    @property
    def units(self) -> int:
        return int(self.unit.max(initial=-1)) + 1

    def mean_by_unit(self, values: Floats) -> Floats:
        """The mean of what responses of a unit have; NaN where none has a value."""
        known = ~np.isnan(values)
        sums = np.bincount(self.unit[known], values[known], self.units)
        counts = np.bincount(self.unit[known], minlength=self.units)
        means: Floats = np.divide(sums, counts, out=np.full(self.units, np.nan), where=counts > 0)
        return means


@checked
def draw(
    run: Run,
    n: int,
    *,
    systems: Sequence[str] | None = None,
    by: Sequence[str] = (),
    unsure: str | None = None,
    dialogues: bool = False,
    apart: bool = False,
    seed: int = DEFAULT_SEED,
) -> Sample:
    """Draw about `n` responses of a run for people to rate; `Sample.save` writes them into a folder.

    `systems`: only these (all, but floors and ceilings). `by`: strata: `system`, `turn`, a field of the rows that the
    run kept, a metric (its quarters; `metric:3` for thirds). `unsure`: a metric of the run; responses are drawn in
    proportion to how unsure it is. `dialogues`: whole dialogues. `apart`: every system's responses by themselves, and
    not all systems' to the same contexts. `n` counts responses of all systems; what is drawn together is not cut.
    """
    if n < 1 or seed < 0:
        raise SettingError(f"at least one response is drawn, with a seed from 0 on, not {n} with {seed}")
    tables = tables_of(run, systems)
    apart = apart or "system" in by
    frame = _frame(tables, dialogues, apart)
    results = {name: run[name] for name in tables}
    strata, names = _strata(frame, results, by)
    sizes = np.ones(frame.units) if unsure is None else _unsure(frame, results, unsure)
    rng = np.random.default_rng(seed)
    probabilities, taken = _drawn(frame, strata, len(names), sizes, n, rng)
    return _sample(
        frame,
        taken,
        probabilities,
        [names[code] for code in strata.tolist()],
        rng,
        seed=seed,
        by=list(by),
        unsure=unsure,
        unit="dialogues" if dialogues else "responses" if apart else "contexts",
        apart=apart,
        method="equal" if unsure is None else "unsure",
    )


def strata_of_rows(run: Run, sample: Sample) -> dict[str, list[str]]:
    """By system: the stratum of each row, made anew in the way the sample was drawn."""
    design = sample.design
    tables = tables_of(run, list(design.systems))
    frame = _frame(tables, design.unit == "dialogues", design.apart)
    strata, names = _strata(frame, {name: run[name] for name in tables}, design.by)
    of_rows = [names[code] for code in strata[frame.unit].tolist()]
    ends = np.cumsum([0, *(len(table) for table in tables.values())]).tolist()
    return {name: of_rows[ends[number] : ends[number + 1]] for number, name in enumerate(tables)}


def tables_of(run: Run, systems: Sequence[str] | None) -> dict[str, RowTable]:
    """The rows of the systems that people may rate: those named, or all but floors and ceilings."""
    wanted = [name for name in run if run[name].role == "system"] or list(run) if systems is None else list(systems)
    tables = {}
    for name in wanted:
        if name not in run:
            raise SettingError(f"no system is called {name!r}; there are {', '.join(run)}")
        table = run[name].rows
        if table is None or "response" not in table.texts:
            raise SettingError(
                f"the run holds no responses of {name}, so that nobody can rate them; score again with rows in memory, "
                "or fewer of them, and save the run with items"
            )
        if name != whole_characters(name):
            raise SettingError(f"the system {name!r} has half a character in its name, which no file holds; rename it")
        tables[name] = table
    if not tables:
        raise SettingError("no system is named")
    return tables


def _frame(tables: Mapping[str, RowTable], dialogues: bool, apart: bool) -> _Frame:
    sizes = [len(table) for table in tables.values()]
    system = np.repeat(np.arange(len(sizes)), sizes)
    row = np.concatenate([np.arange(size) for size in sizes])
    first, *others = tables.values()
    alike = all(np.array_equal(first.offsets, other.offsets) for other in others)
    if not alike and not apart:
        raise SettingError("the systems do not have the same rows; draw from each by itself: --apart (apart=True)")
    if dialogues:
        unit = np.concatenate([table.clusters for table in tables.values()])
        if apart:
            counts = np.cumsum([0, *(len(table.offsets) - 1 for table in tables.values())])
            unit = unit + counts[system]
    else:
        unit = np.arange(len(row)) if apart else row
    return _Frame(tables, system, row, unit)


def _strata(frame: _Frame, results: Mapping[str, Result], by: Sequence[str]) -> tuple[Ints, list[str]]:
    """The stratum of each unit, and what the strata are called."""
    labels = [_labels(frame, results, name) for name in by]
    texts = [", ".join(parts) for parts in zip(*labels, strict=True)] if labels else [_WHOLE] * frame.units
    names = sorted(set(texts))
    number = {name: code for code, name in enumerate(names)}
    return np.array([number[text] for text in texts], np.int64), names


def _labels(frame: _Frame, results: Mapping[str, Result], name: str) -> list[str]:
    """What each unit is under one of the things that strata are made by."""
    firsts = np.full(frame.units, -1)
    firsts[frame.unit[::-1]] = np.arange(len(frame.unit))[::-1]
    places = list(zip(frame.system[firsts].tolist(), frame.row[firsts].tolist(), strict=True))
    tables, systems = list(frame.systems.values()), list(frame.systems)
    if name == "system":
        return [f"system={systems[system]}" for system, _ in places]
    if name == "turn":
        turns = [table.turns for table in tables]
        if any(each is None for each in turns):
            raise SettingError("the rows of the run do not say which turn they are, so that they are not drawn by turn")
        numbers = [int(turns[system][row]) for system, row in places]
        return [f"turn={'none' if number == NO_TURN else number}" for number in numbers]
    columns = [table.fields.get(name) for table in tables]
    if all(column is not None for column in columns):
        return [f"{name}={' + '.join(columns[system][row]) or 'none'}" for system, row in places]
    key, _, number = name.partition(":")
    parts = int(number) if number.isdigit() and 2 <= int(number) <= 100 else 0 if number else QUANTILES
    if not parts or any(key not in result for result in results.values()):
        kept = [field for field in tables[0].fields if all(field in table.fields for table in tables)]
        there = ["system", "turn", *kept, *next(iter(results.values()))]
        raise SettingError(f"rows cannot be drawn by {name!r}; there are {', '.join(there)} (a metric also as KEY:3)")
    values = frame.mean_by_unit(items_of(frame, results, key))
    known = ~np.isnan(values)
    ends = np.quantile(values[known], np.arange(1, parts) / parts) if known.any() else np.zeros(parts - 1)
    which = np.searchsorted(ends, values, side="left") + 1
    return [f"{key}={code}/{parts}" if there else f"{key}=none" for code, there in zip(which, known, strict=True)]


def items_of(frame: _Frame, results: Mapping[str, Result], key: str) -> Floats:
    """The values that a metric gives the responses; those of a dialogue go to each of its rows."""
    columns = []
    for name, table in frame.systems.items():
        columns.append(row_values(results[name], table, key, name))
    return np.concatenate(columns)


def row_values(result: Result, table: RowTable, key: str, name: str) -> Floats:
    """The values of a metric for the rows of a system; those of a dialogue go to each of its rows."""
    if key not in result:
        raise SettingError(f"the run has no {key!r} for {name}; it has {', '.join(result)}")
    estimate = result[key]
    if estimate.items is None:
        raise SettingError(f"the run holds no values of single rows for {key}, which it takes here")
    return estimate.items if estimate.level is Level.TURN else estimate.items[table.clusters]


def _unsure(frame: _Frame, results: Mapping[str, Result], key: str) -> Floats:
    """How unsure a judge is about each unit."""
    values = items_of(frame, results, key)
    if np.isnan(values).all():
        raise SettingError(f"{key} has no value of any row")
    metric = metric_of(next(iter(results.values()))[key])
    spread = unsureness(values, (-math.inf, math.inf) if metric is None else metric.bounds_of(key))
    if not spread.any():
        raise SettingError(f"{key} is equally sure of every row: all its values are at the ends of their range")
    sizes: Floats = np.bincount(frame.unit, spread, frame.units).astype(np.float64)
    return sizes


def unsureness(values: Floats, bounds: tuple[float, float] = (-math.inf, math.inf)) -> Floats:
    """How unsure a judge with these values is; where its range has no end, the values' own end counts."""
    known = values[~np.isnan(values)]
    low = bounds[0] if math.isfinite(bounds[0]) else float(known.min())
    high = bounds[1] if math.isfinite(bounds[1]) else float(known.max())
    spread = np.sqrt(np.clip((values - low) * (high - values), 0, None))
    mean = float(spread[~np.isnan(spread)].mean())
    found: Floats = np.maximum(np.where(np.isnan(spread), mean, spread), LEAST_UNSURE * mean)
    return found


def _drawn(
    frame: _Frame, strata: Ints, number: int, sizes: Floats, n: int, rng: np.random.Generator
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The probability of each unit, and whether it was taken."""
    responses = len(frame.unit)
    if n > responses:
        raise SettingError(f"the run has {responses} responses, fewer than the {n} that are to be rated")
    wanted = max(1, round(n * frame.units / responses))
    shares = allocated(
        np.bincount(strata, sizes, number).astype(np.float64), np.bincount(strata, minlength=number), wanted
    )
    probabilities, taken = np.zeros(frame.units), np.zeros(frame.units, np.bool_)
    for code, share in enumerate(shares.tolist()):
        own = np.flatnonzero(strata == code)
        probabilities[own] = inclusion(sizes[own], share)
        taken[own] = systematic(probabilities[own], rng)
    return probabilities, taken


def allocated(weights: Floats, units: Ints, wanted: int) -> Ints:
    """How many units each stratum gives: in proportion to its weight, at least two, at most what it has."""
    least = np.minimum(units, LEAST_PER_STRATUM)
    if wanted < least.sum():
        raise SettingError(
            f"{len(units)} strata give at least {least.sum()} units, more than the {wanted} that are to be drawn; "
            "draw more, or by fewer strata"
        )
    given = least.astype(np.int64)
    # One after the other to the stratum that is furthest behind its share (Jefferson's method, with the least given).
    while given.sum() < wanted:
        behind = np.where(given < units, weights / (given + 1), -1.0)
        given[int(behind.argmax())] += 1
    return given


def inclusion(sizes: Floats, n: int) -> Floats:
    """Probabilities in proportion to sizes that add up to n; what would be above 1 is certain."""
    certain = np.zeros(len(sizes), np.bool_)
    while True:
        probabilities = np.ones(len(sizes))
        probabilities[~certain] = (n - certain.sum()) * sizes[~certain] / sizes[~certain].sum()
        more = ~certain & (probabilities >= 1)
        if not more.any():
            return probabilities
        certain |= more
        if certain.all():
            return np.ones(len(sizes))


def systematic(probabilities: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Which units are taken, in random order and with one random start; as many as the probabilities add up to."""
    order = rng.permutation(len(probabilities))
    ends = np.cumsum(probabilities[order])
    ends[-1:] = round(float(ends[-1])) if len(ends) else 0.0  # but for rounding it is that
    points = np.ceil(ends - rng.random())
    taken = np.zeros(len(probabilities), np.bool_)
    taken[order] = np.diff(points, prepend=0.0) > 0
    return taken


def _sample(
    frame: _Frame,
    taken: npt.NDArray[np.bool_],
    probabilities: Floats,
    strata: Sequence[str],
    rng: np.random.Generator,
    **design: object,
) -> Sample:
    from dialeval.analysis.sample_schema import SampledRow, SavedStratum, SavedSystem

    chosen = rng.permutation(np.flatnonzero(taken[frame.unit]))
    digests = {name: digest_of(table) for name, table in frame.systems.items()}
    ids = _ids(len(chosen), f"{sorted(design.items())} {sorted(digests.items())} {chosen.tolist()}")
    tables, names = list(frame.systems.values()), list(frame.systems)
    clusters = [table.clusters for table in tables]
    _check_size(tables, frame.system[chosen], frame.row[chosen])
    rows = []
    for identifier, place in zip(ids, chosen.tolist(), strict=True):
        system, row, unit = int(frame.system[place]), int(frame.row[place]), int(frame.unit[place])
        table = tables[system]
        turn = NO_TURN if table.turns is None else int(table.turns[row])
        rows.append(
            SampledRow(
                id=identifier,
                system=names[system],
                row=row + 1,
                probability=float(probabilities[unit]),
                stratum=strata[unit],
                response=table.texts["response"][row],  # type: ignore[arg-type]
                context=_texts(table, "context", row),
                roles=_texts(table, "roles", row),
                reference=_texts(table, "reference", row),
                dialog_id=None if table.dialogues is None else table.dialogues[int(clusters[system][row])] or None,
                turn=None if turn == NO_TURN else turn,
            )
        )
    units, drawn = Counter(strata), Counter(name for name, was in zip(strata, taken, strict=True) if was)
    responses = Counter(strata[unit] for unit in frame.unit.tolist())
    rated = Counter(row.stratum for row in rows)
    return Sample(
        design_of(
            **design,
            systems={
                name: SavedSystem(len(table), len(table.offsets) - 1, digests[name])
                for name, table in frame.systems.items()
            },
            strata={
                name: SavedStratum(units[name], drawn[name], responses[name], rated[name]) for name in sorted(units)
            },
        ),
        rows,
    )


def _check_size(tables: Sequence[RowTable], systems: Ints, rows: Ints) -> None:
    """Refuse a sample whose texts would fill the memory: every row of a long chat repeats what was said before it."""
    total = 0
    for number, table in enumerate(tables):
        own = rows[systems == number]
        for column in table.texts.values():
            values = column if isinstance(column, TextColumn) else column.values
            before = np.concatenate(([0], np.cumsum(values.ends - values.starts)))
            starts, ends = (own, own + 1) if isinstance(column, TextColumn) else (column.starts[own], column.ends[own])
            total += int((before[ends] - before[starts]).sum())
    if total > MOST_BYTES:
        raise SettingError(
            f"the sampled rows with their contexts have {total >> 20:,} MiB of text, and {MOST_BYTES >> 20} are the "
            "most; sample fewer rows, or cut long chats into dialogues"
        )


def _texts(table: RowTable, name: str, row: int) -> list[str]:
    column = table.texts.get(name)
    if column is None:
        return []
    return list(column[row]) if isinstance(column, RaggedColumn | SharedColumn) else [column[row]]


def _ids(number: int, drawn: str) -> list[str]:
    """Different short texts that say nothing, by what was drawn: two samples of a run have no id in common."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(drawn.encode()).digest(), "big"))
    ids: dict[str, None] = {}
    while len(ids) < number:
        ids["".join(_LETTERS[letter] for letter in rng.integers(len(_LETTERS), size=_ID_LENGTH))] = None
    return list(ids)
