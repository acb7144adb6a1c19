"""Rank systems by pairwise preferences of annotators or of language models (Bradley-Terry).

Strengths are those of the model of Bradley and Terry with ties (`bradley_terry`). Their intervals, and those of
scores and of the effect of length, are Student's over dialogues (`jackknife`). Two systems differ
significantly if the p-value of the difference of their strengths, of the same jackknife and adjusted by Holm for all
pairs of systems, is below alpha. Two systems share one of the `groups` exactly if they do not differ significantly; a
system may be in several.

Raters are fixed: the intervals are for other dialogues that these raters compare. `raters="random"` gives intervals for
other raters as well, from `FEWEST_RATERS` named raters on: the variance is that of two-way clusters, dialogues and
raters (`Jackknifed.cross`). `cluster` takes another field than `dialog_id` (users, sessions) for the dialogues.

`position`: people prefer the response that they see first (or last). With the order as a control, strengths are what is
left of the preference where either is shown first. A system that is `a` in far more than half of its pairs is warned
about, and so is one that a single rater compared.

`length`: longer responses are often preferred for their length. With the logarithm of the ratio of words as a control,
strengths are what is left of the preference between responses of equal length; its effect has an interval of its own.

Edge cases: where a group of systems never loses to the others its strength is infinite (`bradley_terry`); there is
no ranking then, and the error names the way out. Where that happens without one of the dialogues, the largest
difference that is followed counts, and intervals are wide. Of one dialogue there are no intervals. Systems that were
not compared, directly or through others, cannot be ranked together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import asdict

from dialeval.core.arrays import Floats, Ints
from dialeval.core.display import Displayable, Tabular, count_names, flatten_intervals
from dialeval.core.errors import SettingError
from dialeval.core.errors import escape_controls as shown
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.human.estimate import Raters, require_raters
from dialeval.io.ratings import Pairs, read_pairs
from dialeval.stats import significance
from dialeval.stats.bradley_terry import Cells, Fits, fit, is_connected
from dialeval.stats.intervals import DEFAULT_LEVEL
from dialeval.stats.resampling import LOG_ODDS, PLAIN, Jackknifed, check_resampling, jackknife, leave_out_clusters

ALPHA = 0.05
_PART_CELLS = 1 << 20
"""Cells that are fitted at once, which keeps memory small."""
_UNKNOWN = (math.nan, (math.nan, math.nan))
_MOST_FIRST = 0.6
"""The fraction of its pairs in which a system is `a`, above which there is a warning if it is not chance."""


class Ranked(Struct, frozen=True, kw_only=True):
    """A system in a ranking.

    Attributes:
        system: The system.
        strength: Its strength on the scale of log odds; all strengths add up to 0.
        interval: The confidence interval of the strength.
        score: The expected fraction of wins against the others, a tie counting half.
        score_interval: Its confidence interval.
        wins: The number of wins.
        ties: The number of ties.
        losses: The number of losses.

    Examples:
        >>> import dialeval
        >>> votes = ["a", "b", "b", "tie", "b", "a", "b", "b"]
        >>> pairs = [{"a": "old", "b": "new", "better": vote, "dialog_id": str(n)} for n, vote in enumerate(votes)]
        >>> best = dialeval.rank(pairs).systems[0]
        >>> best.system, round(best.score, 4)
        ('new', 0.6875)
    """

    system: str
    strength: float
    interval: tuple[float, float]
    score: float
    score_interval: tuple[float, float]
    wins: int
    ties: int
    losses: int


class Ranking(Tabular, Displayable, Record, frozen=True, kw_only=True, rename={"version": "dialeval"}):
    """The result of `dialeval.rank`, best system first.

    Attributes:
        version: The version of dialeval.
        systems: The systems, best first.
        groups: Systems without a significant difference; any two that do not differ share a group.
        between: Wins, ties and losses of each system against each other.
        p: The adjusted p-value of each two systems, the higher one first.
        tie: The tie parameter (nu) of the model; 0 without ties.
        length: The effect of the logarithm of the length ratio on the log odds; NaN where length is not controlled for.
        length_interval: Its confidence interval.
        position: The effect of being `a` (shown first) on the log odds; NaN where position is not controlled for.
        position_interval: Its confidence interval.
        pairs: The number of pairs.
        left_out: Pairs without texts, where length is controlled for.
        dialogues: The number of dialogues.
        unit: What intervals are over: `dialogues`, `rows`, or clusters by a field.
        confidence: The confidence level of the intervals (jackknife).
        raters: Whether intervals are for these raters (`fixed`) or for others as well (`random`).
        named_raters: The number of raters that the pairs name.
        warnings: Remarks about the order of the responses and about the raters.

    Examples:
        >>> import dialeval
        >>> votes = ["a", "b", "b", "tie", "b", "a", "b", "b"]
        >>> pairs = [{"a": "old", "b": "new", "better": vote, "dialog_id": str(n)} for n, vote in enumerate(votes)]
        >>> dialeval.rank(pairs)
        <Ranking: 2 systems (new, old), 8 pairs>
        >>> dialeval.rank(pairs).to_pandas()[["rank", "system", "groups"]].values.tolist()
        [[1, 'new', 'a'], [2, 'old', 'a']]
    """

    version: str
    systems: Sequence[Ranked]
    groups: Sequence[Sequence[str]]
    between: Mapping[str, Mapping[str, tuple[int, int, int]]]
    p: Mapping[str, Mapping[str, float]]
    tie: float
    length: float
    length_interval: tuple[float, float]
    position: float = math.nan
    position_interval: tuple[float, float] = (math.nan, math.nan)
    pairs: int
    left_out: int
    dialogues: int
    unit: str
    confidence: float
    raters: Raters = "fixed"
    named_raters: int = 0
    warnings: Sequence[str] = ()

    def __repr__(self) -> str:
        names = count_names([ranked.system for ranked in self.systems], "system")
        return f"<Ranking: {names}, {self.pairs:,} pairs>"

    @property
    def letters(self) -> dict[str, str]:
        """The groups of each system as letters: systems that share one do not differ significantly."""
        return significance.letter_display(self.groups)

    def lines(self) -> list[JsonObject]:
        """Return a line per system, best first: rank, strength, score, their intervals, counts and groups.

        Returns:
            The lines, as `to_pandas` has them.
        """
        return [
            {"rank": place, **flatten_intervals(asdict(ranked)), "groups": self.letters[ranked.system]}
            for place, ranked in enumerate(self.systems, 1)
        ]


def rank(
    pairs: Any,
    *,
    length: bool = False,
    confidence: float = DEFAULT_LEVEL,
    fields: Mapping[str, str] | None = None,
    position: bool = False,
    raters: Raters = "fixed",
    cluster: str | None = None,
) -> Ranking:
    """Rank systems by pairwise preferences (Bradley-Terry with ties).

    Args:
        pairs: Files or a list of objects with `a`, `b`, `better` (`a`, `b` or `tie`) and, where known, `dialog_id`,
            `response_a` and `response_b`.
        length: Control for the length of the responses.
        confidence: The confidence level of the intervals.
        fields: The names of fields in the pairs, by ours.
        position: Control for the position: `a` is the response that was shown first.
        raters: `"fixed"`, for preferences of these raters, or `"random"`, for other raters as well (`rater` in pairs).
        cluster: The field of the pairs whose values intervals are over; None: `dialog_id`.

    Returns:
        The ranking, best system first.

    Raises:
        DataError: The pairs cannot be read.
        SettingError: Systems were never compared, or one of them never lost, so that there is no ranking.

    Examples:
        >>> import dialeval
        >>> votes = ["a", "b", "b", "tie", "b", "a", "b", "b"]
        >>> pairs = [{"a": "old", "b": "new", "better": vote, "dialog_id": str(n)} for n, vote in enumerate(votes)]
        >>> ranking = dialeval.rank(pairs)
        >>> [(each.system, each.wins, each.ties, each.losses) for each in ranking.systems]
        [('new', 5, 1, 2), ('old', 2, 1, 5)]
    """
    check_resampling(confidence, 1)
    pairs = pairs if isinstance(pairs, Pairs) else read_pairs(pairs, fields, cluster)
    has_texts = ~np.isnan(pairs.length_ratio)
    left_out = int((~has_texts).sum()) if length else 0
    if length and not has_texts.any():
        raise SettingError("no pair has the texts of both responses, so that length cannot be held equal")
    if left_out:
        pairs = _keep(pairs, has_texts)
    names = pairs.systems
    if len(names) < 2 or not len(pairs):
        raise SettingError(f"a ranking needs pairs of two systems; there is {', '.join(names) or 'none'}")
    if not is_connected(len(names), pairs.left, pairs.right, pairs.outcome):
        what = "some systems won against all others they met, or were never compared with them"
        remedy = "compare more responses, or leave these systems out"
        raise SettingError(f"{what}, so their strengths cannot be estimated; {remedy}")
    cells, codes = _group_pairs(pairs, length, position)
    whole = fit(cells, _count(codes, pairs.outcome, pairs.weights[None], len(cells.left)))
    clusters = [pairs.dialogue]
    people = list(dict.fromkeys(who for who in pairs.rater if who is not None))
    if raters == "random":
        require_raters(len(people), None not in pairs.rater)
        rater = np.array([people.index(str(who)) for who in pairs.rater], np.int64)
        clusters += [rater, pairs.dialogue * len(people) + rater]
    ways = [_fit_without_each(cells, codes, pairs, members, whole) for members in clusters]

    def measure(name: str, at: int, less: int | None = None) -> Jackknifed:
        """Return a parameter, or its difference to another one, with its error over all clusters."""
        errors, scale = [], LOG_ODDS if name == "scores" else PLAIN
        for fits, sizes in ways:
            both = (getattr(whole, name), getattr(fits, name))
            value, without = (values[:, at] - (0.0 if less is None else values[:, less]) for values in both)
            errors.append(jackknife(float(value[0]), without, sizes, scale))
        return errors[0].cross(*errors[1:]) if len(errors) > 1 else errors[0]

    effects = {
        name: (float(whole.control[0, at]), measure("control", at).interval(confidence))
        for at, name in enumerate(["position"] * bool(position) + ["length"] * bool(length))
    }
    order = np.argsort(-whole.strengths[0], kind="stable").tolist()
    sums = np.zeros((len(names), len(names), 3))
    np.add.at(sums, (pairs.left, pairs.right, 1 - pairs.outcome), pairs.weights)
    counts = np.rint(sums).astype(np.int64)
    counts += counts.transpose(1, 0, 2)[..., ::-1]  # wins, ties and losses of each system against each other
    raw = {pair: measure("strengths", pair[0], less=pair[1]).p for pair in combinations(order, 2)}
    p = dict(zip(raw, significance.holm([1.0 if math.isnan(value) else value for value in raw.values()]), strict=True))
    systems_in_order = []
    for place in order:
        wins, ties, losses = counts[place].sum(axis=0).tolist()
        ranked = Ranked(
            system=names[place],
            strength=float(whole.strengths[0, place]),
            interval=measure("strengths", place).interval(confidence),
            score=float(whole.scores[0, place]),
            score_interval=measure("scores", place).interval(confidence),
            wins=wins,
            ties=ties,
            losses=losses,
        )
        systems_in_order.append(ranked)
    different = {frozenset((names[one], names[other])) for (one, other), value in p.items() if value < ALPHA}
    return Ranking(
        version=__version__,
        systems=systems_in_order,
        groups=significance.find_homogeneous_groups([names[place] for place in order], different),
        between={
            names[left]: {names[right]: tuple(counts[left, right].tolist()) for right in order if left != right}
            for left in order
        },
        p={names[left]: {names[right]: p[left, right] for right in order if (left, right) in p} for left in order[:-1]},
        tie=float(whole.tie[0]),
        length=effects.get("length", _UNKNOWN)[0],
        length_interval=effects.get("length", _UNKNOWN)[1],
        position=effects.get("position", _UNKNOWN)[0],
        position_interval=effects.get("position", _UNKNOWN)[1],
        pairs=round(float(pairs.weights.sum())),
        left_out=left_out,
        dialogues=len(np.unique(pairs.dialogue)),
        unit=f"clusters by {cluster}" if cluster else "dialogues" if pairs.named else "rows",
        confidence=confidence,
        raters=raters,
        named_raters=len(people),
        warnings=_list_warnings(pairs, position),
    )


def _keep(pairs: Pairs, kept: npt.NDArray[np.bool_]) -> Pairs:
    """Return some of the pairs."""
    columns = ("left", "right", "outcome", "dialogue", "length_ratio")
    rater = [who for who, is_kept in zip(pairs.rater, kept.tolist(), strict=False) if is_kept]
    chosen = {name: getattr(pairs, name)[kept] for name in columns}
    return replace(pairs, rater=rater, weight=pairs.weights[kept], **chosen)


def _list_warnings(pairs: Pairs, position: bool) -> list[str]:
    """Return warnings about systems that are mostly shown first, and about those that one rater compared."""
    warnings = []
    for code, name in enumerate(pairs.systems):
        first, many = int((pairs.left == code).sum()), int(((pairs.left == code) | (pairs.right == code)).sum())
        if not position and first > max(_MOST_FIRST * many, many / 2 + 1.5 * math.sqrt(many)):
            often = f"{shown(name)} is a in {first} of {many} pairs"
            warnings.append(f"{often}: if a was shown first, its strength includes that (--position controls for it)")
        compared = zip(pairs.rater, pairs.left, pairs.right, strict=False)
        if len({rater for rater, one, two in compared if code in (one, two)}) == 1 < len({*pairs.rater}):
            warnings.append(f"all pairs of {shown(name)} are by one rater, so its strength is that rater's taste")
    return warnings


def _group_pairs(pairs: Pairs, length: bool, position: bool) -> tuple[Cells, Ints]:
    """Return the different kinds of comparisons, and the kind of each pair."""
    controls = [np.ones(len(pairs))] * bool(position) + [pairs.length_ratio] * bool(length)
    kinds, codes = np.unique(np.column_stack([pairs.left, pairs.right, *controls]), axis=0, return_inverse=True)
    left, right = kinds[:, :2].T.astype(np.int64)
    cells = Cells(len(pairs.systems), left, right, kinds[:, 2:] if controls else None)
    if position:
        design = Cells(len(pairs.systems), left, right, np.ones(len(left))).make_design()
        if np.linalg.matrix_rank(design) == np.linalg.matrix_rank(design[:, :-1]):
            raise SettingError("of every two systems the same is always a, so that it cannot be told from its position")
    return cells, codes.ravel()


def _count(codes: Ints, outcome: Ints, weights: Floats, cells: int) -> Floats:
    """Count wins, ties and losses of every cell, for each row of weights of pairs."""
    places = codes * 3 + (1 - outcome)
    return np.stack([np.bincount(places, row, cells * 3).reshape(cells, 3) for row in weights])


def _fit_without_each(cells: Cells, codes: Ints, pairs: Pairs, cluster: Ints, whole: Fits) -> tuple[Fits, Floats]:
    """Return the fits without one cluster each, or one group of them each where there are many, and their pairs."""
    which, members = np.unique(cluster, return_inverse=True)
    step = max(1, _PART_CELLS // max(len(cells.left) * 3, len(pairs), 1))
    fits = []
    for counts in leave_out_clusters(len(which)):
        for start in range(0, len(counts), step):
            weights = counts[start : start + step][:, members.ravel()] * pairs.weights
            fits.append(fit(cells, _count(codes, pairs.outcome, weights, len(cells.left)), whole))
    return Fits(*map(np.concatenate, zip(*fits, strict=True))), np.bincount(members.ravel()).astype(np.float64)
