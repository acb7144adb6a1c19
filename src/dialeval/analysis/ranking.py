"""Ranking systems by which of two responses was preferred, by people or by a judge.

Strengths are those of the model of Bradley and Terry with ties (`paired_comparison`). Their intervals, and those of
scores and of the effect of length, are Student's over dialogues (`jackknife`). Two systems are told apart if the p of
the difference of their strengths, of the same jackknife and adjusted by Holm for all pairs of systems, is below alpha.
`groups` are systems that stand next to each other and of which none can be told from another; a system may be in
several.

`length`: longer responses are often preferred for their length. With the logarithm of the ratio of words as a control,
strengths are what is left of the preference between responses of equal length; its effect has an interval of its own.

Pairs of a judge: every row of a run, every two systems; the one with the better value wins, and values that differ by
no more than `tie` are a tie.

Edge cases: where a group of systems never loses to the others its strength is infinite (`paired_comparison`); there is
no ranking then, and the error names the way out. Where that happens without one of the dialogues, the largest
difference that is followed counts, and intervals are wide. Of one dialogue there are no intervals. Systems that nobody
compared, directly or over others, cannot be ranked together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dialeval.analysis import significance
from dialeval.analysis.alignment import align
from dialeval.analysis.paired_comparison import Cells, Fits, connected, fitted
from dialeval.analysis.pairing import describe_inputs
from dialeval.analysis.resampling import DEFAULT_LEVEL, LOG_ODDS, Jackknifed, check_resampling, jackknife, leaving_out
from dialeval.analysis.sampling import row_values, tables_of
from dialeval.analysis.values import metric_of
from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats, Ints
from dialeval.core.display import Shown, listed
from dialeval.core.errors import SettingError
from dialeval.core.jsondata import null_for_nan
from dialeval.core.plain_text import plain as shown
from dialeval.core.result import Run
from dialeval.core.version import __version__
from dialeval.data.rows.pairs import Pairs, length_ratio, read_pairs

ALPHA = 0.05
_PART_CELLS = 1 << 20
"""Cells that are fitted at once, which keeps memory small."""


@dataclass(frozen=True)
class Ranked:
    """Where a system stands."""

    system: str
    strength: float
    """On the logarithmic scale of odds; all strengths add up to 0."""
    interval: tuple[float, float]
    score: float
    """The share of comparisons with the others that it would win, a tie counting half."""
    score_interval: tuple[float, float]
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Ranking(Shown):
    """What `dialeval.rank` gives, best system first."""

    systems: Sequence[Ranked]
    groups: Sequence[Sequence[str]]
    """Systems that cannot be told apart."""
    between: Mapping[str, Mapping[str, tuple[int, int, int]]]
    """Wins, ties and losses of each system against each other."""
    p: Mapping[str, Mapping[str, float]]
    """Adjusted, for each two systems, the higher one first."""
    tie: float
    """nu of the model; 0 without ties."""
    length: float
    """The effect of the logarithm of the ratio of lengths on the odds; NaN where it is not held equal."""
    length_interval: tuple[float, float]
    pairs: int
    dialogues: int
    unit: str
    level: float
    source: str
    """Whose preferences these are: `people`, or a judge."""
    left_out: int = 0
    """Pairs without texts, where length is held equal."""
    version: str = __version__

    def __repr__(self) -> str:
        names = listed([each.system for each in self.systems], "system")
        return f"<Ranking: {names}, {self.pairs:,} pairs by {shown(self.source)}>"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; NaN is null."""
        document = {
            "dialeval": self.version,
            "source": self.source,
            "systems": [vars(each) for each in self.systems],
            "groups": [list(group) for group in self.groups],
            "between": {name: {other: list(row) for other, row in rows.items()} for name, rows in self.between.items()},
            "p": {name: dict(rows) for name, rows in self.p.items()},
            "tie": self.tie,
            "length": self.length,
            "length_interval": self.length_interval,
            "pairs": self.pairs,
            "left_out": self.left_out,
            self.unit: self.dialogues,
            "intervals": {"method": "jackknife", "level": self.level},
        }
        plain: dict[str, Any] = null_for_nan(document)
        return plain


@checked
def rank(
    pairs: Any,
    *,
    by: str | None = None,
    tie: float = 0.0,
    length: bool = False,
    systems: Sequence[str] | None = None,
    level: float = DEFAULT_LEVEL,
    fields: Mapping[str, str] | None = None,
) -> Ranking:
    """Rank systems by pairs of responses of which one was preferred.

    `pairs`: files or a list of objects with `a`, `b`, `better` (`a`, `b` or `tie`) and, where known, `dialog_id`,
    `response_a`, `response_b`; `fields` maps their names. Or a run, with `by` a metric of it whose values are compared
    row by row; differences up to `tie` are ties. `length`: hold the length of responses equal. `systems`: only these.
    """
    check_resampling(level, 1)
    if isinstance(pairs, Run):
        if by is None:
            raise SettingError("a run is ranked by one of its metrics; name it (by=, --by)")
        known, source = pairs_of_run(pairs, by, tie, systems), by
    else:
        if by is not None or tie:
            raise SettingError("pairs say themselves who was better; by and tie are for runs")
        known, source = (pairs if isinstance(pairs, Pairs) else read_pairs(pairs, fields)), "people"
        known = known if systems is None else _only(known, systems)
    return ranked(known, source, length=length, level=level)


def _only(pairs: Pairs, systems: Sequence[str]) -> Pairs:
    for name in systems:
        if name not in pairs.systems:
            raise SettingError(f"no system is called {name!r}; there are {', '.join(pairs.systems)}")
    names = list(dict.fromkeys(systems))
    code = np.array([names.index(name) if name in names else -1 for name in pairs.systems])
    kept = (code[pairs.left] >= 0) & (code[pairs.right] >= 0)
    return _kept(pairs, kept, names, code)


def _kept(pairs: Pairs, kept: Any, names: Sequence[str], code: Ints) -> Pairs:
    return Pairs(
        names,
        code[pairs.left[kept]],
        code[pairs.right[kept]],
        pairs.outcome[kept],
        pairs.dialogue[kept],
        pairs.length_ratio[kept],
        pairs.named,
    )


def pairs_of_run(run: Run, key: str, tie: float = 0.0, systems: Sequence[str] | None = None) -> Pairs:
    """Every two systems of a run compared in every row that both have a value of."""
    if not 0 <= tie < math.inf:
        raise SettingError(f"a tie is a difference from 0 on, not {tie}")
    wanted = [name for name in run if run[name].role == "system"] if systems is None else list(systems)
    tables = tables_of(run, wanted)
    names = list(tables)
    if len(names) < 2:
        raise SettingError(f"a ranking needs two systems; there is {', '.join(names) or 'none'}")
    for name in names[1:]:
        alignment = align(run[names[0]], run[name])
        if alignment.changed or not alignment.by_row:
            design = alignment.design.describe(names[0], name)
            raise SettingError(f"a ranking by a metric needs systems with the same rows in the same order. {design}")
        if key in run[name] and key in run[names[0]]:
            reason = describe_inputs(run[names[0]][key], run[name][key], alignment)
            if reason is not None:
                raise SettingError(f"{name} and {names[0]} cannot be ranked by {key}: {reason}")
    values = {name: row_values(run[name], table, key, name) for name, table in tables.items()}
    metric = metric_of(run[names[0]][key])
    sign = -1.0 if metric is not None and metric.better == "lower" else 1.0
    clusters = tables[names[0]].clusters
    texts = {name: list(table.texts["response"]) for name, table in tables.items()}
    parts: list[tuple[Ints, ...]] = []
    ratios: list[float] = []
    for left, right in combinations(range(len(names)), 2):
        difference = sign * (values[names[left]] - values[names[right]])
        rows = np.flatnonzero(~np.isnan(difference))
        outcome = np.where(np.abs(difference[rows]) <= tie, 0, np.sign(difference[rows])).astype(np.int64)
        parts.append((np.full(len(rows), left), np.full(len(rows), right), outcome, clusters[rows]))
        both = texts[names[left]], texts[names[right]]
        ratios += [length_ratio(str(both[0][row]), str(both[1][row])) for row in rows.tolist()]
    first, second, outcomes, dialogue = (np.concatenate(column) for column in zip(*parts, strict=True))
    alone = len(tables[names[0]].offsets) - 1 == len(tables[names[0]])
    return Pairs(names, first, second, outcomes, dialogue, np.array(ratios, np.float64), not alone)


def ranked(pairs: Pairs, source: str = "people", *, length: bool = False, level: float = DEFAULT_LEVEL) -> Ranking:
    """The ranking of the systems of some pairs."""
    known = ~np.isnan(pairs.length_ratio)
    left_out = int((~known).sum()) if length else 0
    if length and not known.any():
        raise SettingError("no pair has the texts of both responses, so that length cannot be held equal")
    if left_out:
        pairs = _kept(pairs, known, pairs.systems, np.arange(len(pairs.systems)))
    _check(pairs)
    cells, codes = _cells(pairs, length)
    which, dialogue = np.unique(pairs.dialogue, return_inverse=True)
    whole = fitted(cells, _counted(codes, pairs.outcome, np.ones((1, len(pairs))), len(cells.left)))
    without = _without_each(cells, codes, pairs, dialogue.ravel(), len(which))
    sizes = np.bincount(dialogue.ravel()).astype(np.float64)
    order = np.argsort(-whole.strengths[0], kind="stable").tolist()
    names = pairs.systems
    between = _between(pairs)
    p = _p_values(whole, without, order, sizes)
    return Ranking(
        [_ranked(place, whole, without, sizes, names, between, level) for place in order],
        _groups([names[place] for place in order], p, names),
        {names[left]: {names[right]: between[left, right] for right in order if left != right} for left in order},
        {names[left]: {names[right]: p[left, right] for right in order if (left, right) in p} for left in order[:-1]},
        float(whole.tie[0]),
        float(whole.control[0]),
        jackknife(float(whole.control[0]), without.control, sizes).interval(level),
        len(pairs),
        len(which),
        "dialogues" if pairs.named else "rows",
        level,
        source,
        left_out,
    )


def _check(pairs: Pairs) -> None:
    if len(pairs.systems) < 2 or not len(pairs):
        raise SettingError(f"a ranking needs pairs of two systems; there is {', '.join(pairs.systems) or 'none'}")
    if not connected(len(pairs.systems), pairs.left, pairs.right, pairs.outcome):
        raise SettingError(
            "some systems won against all others they met, or were never compared with them, so that nothing says how "
            "much stronger they are; compare more responses, or rank fewer systems (--systems)"
        )


def _cells(pairs: Pairs, length: bool) -> tuple[Cells, Ints]:
    """The different kinds of comparisons, and the kind of each pair."""
    columns = [pairs.left.astype(np.float64), pairs.right.astype(np.float64)]
    if length:
        columns.append(pairs.length_ratio)
    kinds, codes = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    control = kinds[:, 2] if length else None
    return Cells(len(pairs.systems), kinds[:, 0].astype(np.int64), kinds[:, 1].astype(np.int64), control), codes.ravel()


def _counted(codes: Ints, outcome: Ints, weights: Floats, cells: int) -> Floats:
    """Wins, ties and losses of every cell, for each row of weights of pairs."""
    places = codes * 3 + (1 - outcome)
    return np.stack([np.bincount(places, row, cells * 3).reshape(cells, 3) for row in weights])


def _without_each(cells: Cells, codes: Ints, pairs: Pairs, dialogue: Ints, dialogues: int) -> Fits:
    """Return the fits without one dialogue each, or one group of them each where there are many."""
    step = max(1, _PART_CELLS // max(len(cells.left) * 3, len(pairs), 1))
    fits = []
    for counts in leaving_out(dialogues):
        for start in range(0, len(counts), step):
            weights = counts[start : start + step][:, dialogue].astype(np.float64)
            fits.append(fitted(cells, _counted(codes, pairs.outcome, weights, len(cells.left))))
    return Fits(*(np.concatenate([getattr(each, name) for each in fits]) for name in Fits.__dataclass_fields__))


def _ranked(
    place: int,
    whole: Fits,
    without: Fits,
    sizes: Floats,
    names: Sequence[str],
    between: Mapping[tuple[int, int], tuple[int, int, int]],
    level: float,
) -> Ranked:
    rows = [row for (left, _), row in between.items() if left == place]
    wins, ties, losses = (sum(row[number] for row in rows) for number in range(3))
    return Ranked(
        names[place],
        float(whole.strengths[0, place]),
        jackknife(float(whole.strengths[0, place]), without.strengths[:, place], sizes).interval(level),
        float(whole.scores[0, place]),
        jackknife(float(whole.scores[0, place]), without.scores[:, place], sizes, LOG_ODDS).interval(level),
        wins,
        ties,
        losses,
    )


def _between(pairs: Pairs) -> dict[tuple[int, int], tuple[int, int, int]]:
    """Wins, ties and losses of each system against each other."""
    systems = len(pairs.systems)
    counts = np.zeros((systems, systems, 3), np.int64)
    np.add.at(counts, (pairs.left, pairs.right, 1 - pairs.outcome), 1)
    both = counts + counts.transpose(1, 0, 2)[..., ::-1]
    return {
        (left, right): tuple(both[left, right].tolist())
        for left in range(systems)
        for right in range(systems)
        if left != right
    }


def _p_values(whole: Fits, without: Fits, order: Sequence[int], sizes: Floats) -> dict[tuple[int, int], float]:
    """Return the adjusted p of each two systems, the higher one first; 1 where nothing is known of the difference."""
    raw = {(left, right): _difference(whole, without, left, right, sizes).p for left, right in combinations(order, 2)}
    known = [1.0 if math.isnan(p) else p for p in raw.values()]
    return dict(zip(raw, significance.holm(known), strict=True))


def _difference(whole: Fits, without: Fits, left: int, right: int, sizes: Floats) -> Jackknifed:
    difference = whole.strengths[0, left] - whole.strengths[0, right]
    return jackknife(float(difference), without.strengths[:, left] - without.strengths[:, right], sizes)


def _groups(order: Sequence[str], p: Mapping[tuple[int, int], float], names: Sequence[str]) -> list[list[str]]:
    """The longest stretches of the ranking in which no two systems can be told apart."""
    code = {name: number for number, name in enumerate(names)}
    groups: list[list[str]] = []
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and all(p[code[each], code[order[end]]] >= ALPHA for each in order[start:end]):
            end += 1
        if not groups or order[end - 1] not in groups[-1]:
            groups.append(list(order[start:end]))
    return groups
