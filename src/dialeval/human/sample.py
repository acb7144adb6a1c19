"""Samples of responses for human evaluation: probability sampling. The folder of a sample is in `sample_files`.

What is drawn is a unit of the design:

- a context with the responses of all systems to it (the usual: what is hard about it is then the same for all), or
- a dialogue with all its rows and all systems (`dialogues`).

Contexts and dialogues of several systems are matched as in comparisons (`analysis.alignment`); what only one system has
is a unit of its own.

Units may be split into strata: a turn, or a field that the run kept. Every stratum gives units in proportion
to what it has, and at least two, so that its variance can be estimated.

Every unit of a stratum has the same probability, n_h / N_h, and every set of n_h units is equally likely: simple random
sampling without replacement, here as systematic sampling in random order. The units of a stratum are shuffled, and a
unit is taken if one of the points u, u + N_h / n_h, u + 2 N_h / n_h ... falls on it.

Paper: Särndal, Swensson and Wretman 1992, "Model Assisted Survey Sampling".
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from dialeval.analysis.alignment import align_dialogues
from dialeval.analysis.values import collapse_dialogues
from dialeval.core.arrays import Floats, Ints, Mask
from dialeval.core.errors import SettingError, escape_surrogates
from dialeval.core.fold import Level
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import NO_TURN, RowTable
from dialeval.human.sample_files import RatedLevel, Sample, SampledRow, SavedStratum, make_design
from dialeval.stats.resampling import DEFAULT_SEED

LEAST_PER_STRATUM = 2
MOST_BYTES = 1 << 28
"""Of the texts of a sample."""
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Letters of ids: those that are not confused with others."""
_ID_LENGTH = 8
_WHOLE = "all"
"""The name of the only stratum."""


@dataclass(frozen=True, eq=False)
class _SamplingFrame:
    """The responses of all systems, in the units that are drawn together."""

    tables: Mapping[str, RowTable]
    system: Ints
    """The number of each response's system."""
    row: Ints
    """The number of its row there."""
    unit: Ints
    """The number of its unit, from 0 on."""
    aligned: Ints
    """The number that it shares with the responses it is paired with."""

    @property
    def units(self) -> int:
        return int(self.unit.max(initial=-1)) + 1


def sample(
    run: Run,
    n: int,
    *,
    systems: Sequence[str] | None = None,
    stratify: Sequence[str] = (),
    dialogues: bool = False,
    level: RatedLevel = "turn",
    seed: int = DEFAULT_SEED,
) -> Sample:
    """Sample responses of a run for human evaluation, with known probabilities.

    Args:
        run: The run.
        n: The number of responses of all systems together, about; what is sampled together is not split.
        systems: Only these systems; None: all but floor and ceiling systems.
        stratify: Strata: `turn`, or a field that the run kept.
        dialogues: Sample whole dialogues.
        level: `turn` for ratings of responses, `dialogue` for ratings of whole conversations; then metrics of turns
            have their mean over the turns of a dialogue.
        seed: The seed of the sample.

    Returns:
        The sample; `Sample.save` writes its folder.

    Raises:
        SettingError: The run keeps no responses, has fewer than `n`, or cannot be stratified so.

    Examples:
        >>> import dialeval
        >>> systems = {"old": ["no"] * 40, "new": ["yes please"] * 40}
        >>> run = dialeval.evaluate(systems, contexts=[[f"tea {n} ?"] for n in range(40)], metrics="length")
        >>> drawn = dialeval.sample(run, 10)
        >>> drawn
        <Sample: 10 responses of 2 systems (old, new), unit contexts>
        >>> drawn.responses[0].probability
        0.125
    """
    if n < 1 or seed < 0:
        raise SettingError(f"n must be at least 1 and the seed 0 or above, not {n} with {seed}")
    if level not in get_args(RatedLevel):
        raise SettingError(f"ratings are at the level of a {' or a '.join(get_args(RatedLevel))}, not of {level!r}")
    run = collapse_dialogues(run) if level == "dialogue" else run
    frame = _build_frame(run, systems, dialogues)
    strata, names = _stratify(frame, stratify)
    rng = np.random.default_rng(seed)
    probabilities, taken = _draw_units(frame, strata, n, rng)
    return _build_sample(
        frame,
        taken,
        probabilities,
        [names[code] for code in strata.tolist()],
        rng,
        seed=seed,
        stratify=list(stratify),
        unit="dialogues" if dialogues else "contexts",
        level=level,
    )


def find_strata(run: Run, sample: Sample) -> dict[str, list[str]]:
    """Return, by system, the stratum of each row, computed as for the sample."""
    design = sample.design
    if not design.stratify:
        return {name: [_WHOLE] * system.rows for name, system in design.systems.items()}
    frame = _build_frame(run, list(design.systems), design.unit == "dialogues")
    strata, names = _stratify(frame, design.stratify)
    units = {name: frame.unit[frame.system == number] for number, name in enumerate(frame.tables)}
    return {name: [names[code] for code in strata[rows].tolist()] for name, rows in units.items()}


def number_clusters(tables: Mapping[str, RowTable], name: str) -> dict[str, Ints]:
    """Return the number of each row's value of a field that the run kept, the same for all systems."""
    numbers: dict[object, int] = {}
    clusters = {}
    for system, table in tables.items():
        if name not in table.fields:
            kept = ", ".join(table.fields) or "none"
            raise SettingError(f"the run kept no field {name!r} (dialeval score --by); there is {kept}")
        keys = [tuple(values) or (system, row) for row, values in enumerate(table.fields[name])]
        clusters[system] = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
    return clusters


def select_tables(run: Run, systems: Sequence[str] | None) -> dict[str, RowTable]:
    """Return the rows of the systems to rate: those named, or all but floors and ceilings."""
    wanted = [name for name in run if run[name].role == "system"] or list(run) if systems is None else list(systems)
    tables = {}
    for name in wanted:
        if name not in run:
            raise SettingError(f"no system is called {name!r}; there are {', '.join(run)}")
        table = run[name].table
        if table is None or "response" not in table.texts:
            remedy = "score again with rows in memory, or fewer of them, and save the run with items"
            raise SettingError(f"the run holds no responses of {name}, so they cannot be rated; {remedy}")
        if name != escape_surrogates(name):
            what = "has half of a surrogate pair in its name, which no file can store; rename it"
            raise SettingError(f"the system {name!r} {what}")
        tables[name] = table
    if not tables:
        raise SettingError("no system is named")
    return tables


def collect_row_values(result: Result, table: RowTable, key: str, name: str) -> Floats:
    """Return the values of a metric for the rows of a system; each row has the value of its dialogue, if it is one."""
    if key not in result:
        raise SettingError(f"the run has no {key!r} for {name}; it has {', '.join(result)}")
    estimate = result[key]
    if estimate.scores is None:
        raise SettingError(f"the run has no per-row scores of {key}, which it takes here")
    return estimate.scores if estimate.level is Level.TURN else estimate.scores[table.clusters]


def _build_frame(run: Run, systems: Sequence[str] | None, dialogues: bool) -> _SamplingFrame:
    tables = select_tables(run, systems)
    sizes = [len(table) for table in tables.values()]
    system = np.repeat(np.arange(len(sizes)), sizes)
    row = np.concatenate([np.arange(size) for size in sizes])
    aligned = align_dialogues({name: run[name] for name in tables})
    numbers, rows = aligned.number_dialogues(), aligned.number_rows()
    units = [numbers[name][table.clusters] if dialogues else rows[name] for name, table in tables.items()]
    aligned_rows = np.concatenate([rows[name] for name in tables])
    return _SamplingFrame(tables, system, row, np.concatenate(units), aligned_rows)


def _stratify(frame: _SamplingFrame, by: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return the number of each unit's stratum, and the names of the strata."""
    labels = [_label_units(frame, name) for name in by]
    texts = [", ".join(parts) for parts in zip(*labels, strict=True)] if labels else [_WHOLE] * frame.units
    names = sorted(set(texts))
    number = {name: code for code, name in enumerate(names)}
    return np.array([number[text] for text in texts], np.int64), names


def _label_units(frame: _SamplingFrame, name: str) -> list[str]:
    """Return the label of each unit under one criterion: that of its first response."""
    tables = list(frame.tables.values())
    firsts = np.unique(frame.unit, return_index=True)[1]
    places = list(zip(frame.system[firsts].tolist(), frame.row[firsts].tolist(), strict=True))
    if name == "turn":
        turns = [table.turns for table in tables if table.turns is not None]
        if len(turns) < len(tables):
            what = "do not say which turn they are, so they cannot be stratified by turn"
            raise SettingError(f"the rows of the run {what}")
        numbers = [int(turns[system][row]) for system, row in places]
        return [f"turn={'none' if number == NO_TURN else number}" for number in numbers]
    if all(name in table.fields for table in tables):
        return [f"{name}={' + '.join(tables[system].fields[name][row]) or 'none'}" for system, row in places]
    kept = [field for field in tables[0].fields if all(field in table.fields for table in tables)]
    raise SettingError(f"rows cannot be stratified by {name!r}; there are {', '.join(['turn', *kept])}")


def _draw_units(frame: _SamplingFrame, strata: Ints, n: int, rng: np.random.Generator) -> tuple[Floats, Mask]:
    """Return the probability of each unit, and whether it was taken."""
    responses = len(frame.unit)
    if n > responses:
        raise SettingError(f"the run has {responses} responses, fewer than the {n} that are to be rated")
    wanted = max(1, round(n * frame.units / responses))
    shares = allocate(np.bincount(strata), wanted)
    probabilities, taken = np.zeros(frame.units), np.zeros(frame.units, np.bool_)
    for code, share in enumerate(shares.tolist()):
        members = np.flatnonzero(strata == code)
        probabilities[members] = share / len(members)
        taken[members] = sample_systematically(probabilities[members], rng)
    return probabilities, taken


def allocate(units: Ints, wanted: int) -> Ints:
    """Return how many units each stratum gives: in proportion to what it has, at least two, at most all."""
    least = np.minimum(units, LEAST_PER_STRATUM)
    if wanted < least.sum():
        what = f"{len(units)} strata give at least {least.sum()} units, more than the {wanted} to be sampled"
        raise SettingError(f"{what}; sample more, or use fewer strata")
    allocated = least.astype(np.int64)
    # One after the other to the stratum that is furthest below its quota (Jefferson's method, with minimums).
    while allocated.sum() < wanted:
        behind = np.where(allocated < units, units / (allocated + 1), -1.0)
        allocated[int(behind.argmax())] += 1
    return allocated


def sample_systematically(probabilities: Floats, rng: np.random.Generator) -> Mask:
    """Return which units are taken, in random order and with one random start; as many as probabilities add up to."""
    order = rng.permutation(len(probabilities))
    ends = np.cumsum(probabilities[order])
    ends[-1:] = round(float(ends[-1])) if len(ends) else 0.0  # but for rounding it is that
    points = np.ceil(ends - rng.random())
    taken = np.zeros(len(probabilities), np.bool_)
    taken[order] = np.diff(points, prepend=0.0) > 0
    return taken


def _build_sample(
    frame: _SamplingFrame,
    taken: Mask,
    probabilities: Floats,
    strata: Sequence[str],
    rng: np.random.Generator,
    **design: object,
) -> Sample:
    chosen = rng.permutation(np.flatnonzero(taken[frame.unit]))
    units, drawn = Counter(strata), Counter(name for name, was in zip(strata, taken, strict=True) if was)
    responses, rated = (Counter(strata[unit] for unit in some.tolist()) for some in (frame.unit, frame.unit[chosen]))
    sizes = {name: SavedStratum(units[name], drawn[name], responses[name], rated[name]) for name in sorted(units)}
    saved = make_design(frame.tables, strata=sizes, **design)
    digests = {name: system.digest for name, system in saved.systems.items()}
    ids = _make_ids(len(chosen), f"{sorted(design.items())} {sorted(digests.items())} {chosen.tolist()}")
    names, tables = list(frame.tables), list(frame.tables.values())
    clusters = [table.clusters for table in tables]
    rows, size = [], 0
    for identifier, place in zip(ids, chosen.tolist(), strict=True):
        system, row, unit = int(frame.system[place]), int(frame.row[place]), int(frame.unit[place])
        table = tables[system]
        turn = NO_TURN if table.turns is None else int(table.turns[row])
        texts = [table.texts_at(name, row) for name in ("response", "context", "roles", "reference")]
        response, context, roles, reference = texts
        size += sum(len(text.encode("utf-8", "surrogatepass")) for column in texts for text in column)
        if size > MOST_BYTES:  # every row of a long chat repeats what was said before it
            what = f"the sampled rows with their contexts have more than {MOST_BYTES >> 20} MiB of text"
            raise SettingError(f"{what}; sample fewer rows, or cut long chats into dialogues")
        dialogue = None if table.dialogues is None else table.dialogues[int(clusters[system][row])] or None
        chance, own_turn = float(probabilities[unit]), None if turn == NO_TURN else turn
        drawn_row = identifier, names[system], row + 1, chance, strata[unit]
        texts_of = response[0], context, roles, reference
        rows.append(SampledRow(*drawn_row, *texts_of, dialogue, own_turn, int(frame.aligned[place])))
    return Sample(saved, rows)


def _make_ids(number: int, drawn: str) -> list[str]:
    """Return different short random texts, seeded by what was drawn: two samples of a run have no id in common."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(drawn.encode()).digest(), "big"))
    ids: dict[str, None] = {}
    while len(ids) < number:
        ids["".join(_LETTERS[letter] for letter in rng.integers(len(_LETTERS), size=_ID_LENGTH))] = None
    return list(ids)
