"""The decision of a comparison: which system is better, worse, equivalent, or neither can be said.

Everything that claims something about a difference asks `decide`: the verdict and its sentences, marks, bold values,
gates and slices. So none of them contradicts another. Of one difference it says

    better, worse   significant at the level that is adjusted for all tests of the family
    equivalent      the whole interval is within the margin (two one-sided tests, each at half of 1 - confidence)
    different       significant, under a metric that does not say which system is better
    inconclusive    none of these; with a margin also what is better, but might be worse by more than the margin
    untested        there is no p-value; `Difference.reason` says why

A side from whose value significantly more was left out than from the other (`Difference.left_out`: replies that failed)
is neither better nor equivalent by it: the difference is inconclusive.

`is_acceptable` is the gate: with a margin the interval excludes a larger loss (non-inferiority), without one the system
is not worse. A worse system is never acceptable, and neither a better nor an equivalent one is ever refused.

`judge_system` sums up the panel: mixed is better on some metrics and worse on others, refused is a comparison in which
nothing was tested.

Papers: Schuirmann 1987, "A Comparison of the Two One-Sided Tests Procedure and the Power Approach for Assessing the
Equivalence of Average Bioavailability", Journal of Pharmacokinetics and Biopharmaceutics.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec.structs import replace

from dialeval.analysis.alignment import Alignment
from dialeval.analysis.difference import Difference
from dialeval.core.account import FAILURES
from dialeval.core.errors import SettingError, suggest
from dialeval.core.fold import Estimate
from dialeval.core.run_schema import Record
from dialeval.stats.significance import sign_test

Decision = Literal["better", "worse", "equivalent", "different", "inconclusive", "untested"]
Kind = Literal["better", "worse", "mixed", "equivalent", "different", "inconclusive", "refused"]


class Standing(Record, frozen=True):
    """The differences of a system to the baseline, by what is decided about them."""

    panel: Sequence[Difference]
    """Of the metrics that the verdict is about; each is better, worse, equivalent or undecided."""
    better: Sequence[Difference]
    worse: Sequence[Difference]
    equivalent: Sequence[Difference]
    undecided: Sequence[Difference]
    """Inconclusive."""
    other: Sequence[Difference]
    """Significant, and no evidence that either system is better."""
    kind: Kind


class VerdictNumber(Record, frozen=True, kw_only=True):
    """What is decided about a metric of the verdict.

    Attributes:
        system: The system.
        key: The metric.
        kind: The decision.
        difference: The difference to the baseline.
        interval: Its confidence interval.
        adjusted_p: The p-value, adjusted for all tests of the verdict.
        margin: The margin of equivalence, if one was given.
        detectable: The minimum detectable difference at 80% power.
        rough: Whether interval and p-value are only a guide.
        acceptable: Whether a gate that asks for no worse than the baseline holds.

    Examples:
        >>> import dialeval
        >>> references = [f"a table for {n}" for n in range(12)]
        >>> run = dialeval.evaluate({"old": ["sorry ?"] * 12, "new": references}, references, metrics="rouge-l")
        >>> (number,) = dialeval.compare(run, margin=0.1).verdict.numbers
        >>> number.kind, number.difference, number.acceptable
        ('better', 1.0, True)
    """

    system: str
    key: str
    kind: Decision
    difference: float
    interval: tuple[float, float] | None
    adjusted_p: float
    margin: float | None
    detectable: float
    rough: bool
    acceptable: bool


class Verdict(Record, frozen=True):
    """The verdict of a comparison.

    Attributes:
        kind: `better`, `worse`, `mixed`, `equivalent`, `different` (under metrics that do not say what is better),
            `inconclusive`, or `refused` (nothing could be tested); of several systems what holds for all, else `mixed`.
        headline: The verdict in one sentence.
        sentences: What explains the headline, what a reader should know about it, and what was compared.
        numbers: A line per system and metric of the verdict.

    Examples:
        >>> import dialeval
        >>> references = [f"a table for {n}" for n in range(12)]
        >>> run = dialeval.evaluate({"old": ["sorry ?"] * 12, "new": references}, references, metrics="rouge-l")
        >>> verdict = dialeval.compare(run).verdict
        >>> verdict.kind, verdict.headline
        ('better', 'new is better than old')
    """

    kind: Kind
    headline: str
    sentences: list[str]
    numbers: list[VerdictNumber]


def find_gain(row: Difference) -> tuple[float, float]:
    """Return the interval of a difference, above 0 where the system is better; NaN without one, or without better."""
    if row.interval is None or row.better is None:
        return math.nan, math.nan
    low, high = row.interval
    return (low, high) if row.better == "higher" else (-high, -low)


def decide(row: Difference) -> Decision:
    """Return what can be said of a difference."""
    if math.isnan(row.p):
        return "untested"
    low, high = find_gain(row)
    decision: Decision = "inconclusive"
    if row.margin is not None and -row.margin <= low <= high <= row.margin:
        decision = "equivalent"
    elif row.significant and not row.evidence:
        return "different"
    elif row.significant and row.worse:
        decision = "worse"
    elif row.significant and (row.margin is None or low >= -row.margin):
        decision = "better"
    hidden = {"system": ("better", "equivalent"), "baseline": ("worse", "equivalent")}
    return "inconclusive" if row.left_out is not None and decision in hidden[row.left_out] else decision


def is_acceptable(row: Difference) -> bool:
    """Return whether a gate lets a difference pass."""
    if row.margin is None:
        return not (row.significant and row.evidence and row.worse)
    return find_gain(row)[0] >= -row.margin


def depends_on_weights(row: Difference, alpha: float) -> bool:
    """Return whether equal weights of replies and of dialogues give another sign or another significance by itself."""
    if math.isnan(row.by_dialogue_p) or math.isnan(row.p):
        return False
    certain = row.p < alpha, row.by_dialogue_p < alpha
    return certain[0] != certain[1] or (any(certain) and row.by_dialogue * row.difference < 0)


def judge_system(rows: Sequence[Difference], panel: Collection[str]) -> Standing:
    """Sort the differences of a system by what is decided about them, and sum up those of the panel."""
    tested = [row for row in rows if not math.isnan(row.p)]
    main = [row for row in tested if row.key in panel and row.evidence]
    better, worse, equivalent, undecided = (
        [row for row in main if decide(row) == kind] for kind in ("better", "worse", "equivalent", "inconclusive")
    )
    other = [row for row in tested if row.significant and not row.evidence]
    kind: Kind = "inconclusive" if tested else "refused"
    if better or worse:
        kind = "mixed" if better and worse else "better" if better else "worse"
    elif main and len(equivalent) == len(main):
        kind = "equivalent"
    elif other and not main:
        kind = "different"
    return Standing(main, better, worse, equivalent, undecided, other, kind)


def list_numbers(rows: Sequence[Difference], panel: Collection[str]) -> list[VerdictNumber]:
    """Return the numbers of a verdict."""
    shared = [name for name in VerdictNumber.__struct_fields__ if name in Difference.__struct_fields__]
    return [
        VerdictNumber(kind=decide(row), acceptable=is_acceptable(row), **{name: getattr(row, name) for name in shared})
        for row in rows
        if row.key in panel
    ]


def check_margins(margins: Mapping[str, float], directions: Mapping[str, object]) -> None:
    """Refuse margins of metrics that have no better direction, or are not there; `directions`: by metric."""
    for key, margin in margins.items():
        if key not in directions:
            raise SettingError(f"there is no {key!r} to set a margin for; {suggest(key, directions)}")
        if directions[key] is None:
            raise SettingError(f"neither higher nor lower values of {key} are better, so it has no margin")
        if not 0 <= margin < math.inf:
            raise SettingError(f"a margin is 0 or above, not {margin}")


def mark_left_out(rows: Sequence[Difference], alignments: Mapping[str, Alignment], alpha: float) -> list[Difference]:
    """Return the differences with what was left out of them: replies that failed, or that only one side has values of.

    Significantly more is left out of one side if it fails more often, or if it lacks the value of significantly more of
    the rows that only one side has a value of (sign test).
    """
    failures = {row.system: row for row in rows if row.key == FAILURES and row.significant}
    marked = []
    for row in rows:
        left, right = (
            side[row.key].scores if row.key in side else None for side in _list_sides(alignments[row.system])
        )
        lacking, failing = row.missing, failures.get(row.system)
        side: Literal["baseline", "system"] | None = None
        if left is not None and right is not None and len(left) == len(right) and not row.corpus:
            unscored, others = np.isnan(left), np.isnan(right)
            only = int(np.count_nonzero(unscored & ~others)), int(np.count_nonzero(others & ~unscored))
            lacking = max(lacking[0], only[0] - only[1]), max(lacking[1], only[1] - only[0])
            if sign_test(*only) < alpha:
                side = "baseline" if only[0] > only[1] else "system"
        if failing is not None and row is not failing and any(row.missing):
            side = "system" if failing.worse else "baseline"
        marked.append(replace(row, missing=lacking, left_out=side))
    return marked


def _list_sides(alignment: Alignment) -> tuple[Mapping[str, Estimate], Mapping[str, Estimate]]:
    return (alignment.left, alignment.right) if alignment.design.name != "unpaired" else ({}, {})
