"""Sequential tests: comparisons with interim looks at any time, by confidence sequences (`stats.sequences`).

Dialogues are taken in the order of the run. The
interval is for the difference of the means over rows, as in `comparison`, or with `weight="dialogues"` for that of
means in which every dialogue counts once. It assumes that

- dialogues are independent and identically distributed: drawn one after the other from the same source, in an order
  that has nothing to do with their values (a sorted file, or users who change over the weeks, violate that);
- the same systems and metrics are tested at every interim look, since alpha is divided by their number: by that of the
  differences in the panel (`comparison`), and by that of the other ones for these.

Corpus values have no value per dialogue and no sequence. A dialogue without a row that both systems were scored on is
passed over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from msgspec.structs import asdict, replace

from dialeval.analysis.alignment import Alignment, Design, DesignName
from dialeval.analysis.difference import DEFAULT_ALPHA, pair_values
from dialeval.analysis.pairing import Runs, Weight, select
from dialeval.analysis.values import Values, find_bounds, find_metric
from dialeval.core.display import Displayable, Tabular, count_names, flatten_intervals
from dialeval.core.errors import SettingError, escape_controls
from dialeval.core.fold import Estimate
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.stats.sequences import FIRST, Kind, confidence_sequence, unpaired_confidence_sequence


class SequentialDifference(Record, frozen=True):
    """A difference to the baseline as far as it has been observed.

    Attributes:
        system: The system.
        key: The metric.
        dialogues: The number of dialogues so far.
        difference: The difference of the means.
        interval: The confidence sequence at the last dialogue; None where there is none yet.
        by: How it was computed, `betting` or `asymptotic`.
        decided: After how many dialogues 0 was outside the interval for the first time; None: not yet.
        better: Whether the system is better, once that is decided.
        reason: Why there is no interval.

    Examples:
        >>> import dialeval
        >>> short, long = ["yes"] * 400, ["yes please"] * 400
        >>> run = dialeval.evaluate({"old": short, "new": long}, ["yes please"] * 400, metrics="rouge-l")
        >>> dialeval.run_sequential_test(run).differences[0].interval[0] > 0
        True
    """

    system: str
    key: str
    dialogues: int
    difference: float
    interval: tuple[float, float] | None = None
    by: Kind | None = None
    decided: int | None = None
    better: bool | None = None
    reason: str | None = None


class SequentialTest(Tabular, Displayable, Record, frozen=True, kw_only=True, rename={"version": "dialeval"}):
    """The result of `dialeval.run_sequential_test`.

    Attributes:
        version: The version of dialeval.
        baseline: The system that the others are compared with.
        systems: The other systems.
        alpha: The error probability of all intervals of the panel together, and of all others together.
        tests: The number of differences in the panel.
        unit: What is counted, `dialogues` or `rows`.
        panel: The metrics of the verdict.
        designs: By system, how its rows or dialogues relate to those of the baseline.
        differences: The differences, system by system and metric by metric.

    Examples:
        >>> import dialeval
        >>> short, long = ["yes"] * 400, ["yes please"] * 400
        >>> run = dialeval.evaluate({"old": short, "new": long}, ["yes please"] * 400, metrics="rouge-l")
        >>> dialeval.run_sequential_test(run).to_pandas()[["system", "key", "dialogues"]].values.tolist()
        [['new', 'rouge-l', 400]]
    """

    version: str = __version__
    baseline: str
    systems: list[str]
    alpha: float
    tests: int
    unit: str
    panel: tuple[str, ...]
    designs: dict[str, Design]
    differences: list[SequentialDifference]

    def __repr__(self) -> str:
        decided = sum(row.decided is not None for row in self.differences)
        with_baseline = f"{count_names(self.systems, 'system')} with {escape_controls(self.baseline)}"
        return f"<SequentialTest: {with_baseline}, {len(self.differences):,} differences, {decided:,} decided>"

    def lines(self) -> list[JsonObject]:
        """Return a line per system and metric: the fields of `SequentialDifference`, with `low` and `high` for the
        interval.

        Returns:
            The lines, as `to_pandas` has them.
        """
        return [flatten_intervals(asdict(row)) for row in self.differences]


def run_sequential_test(
    runs: Runs,
    *,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: str | Iterable[str] | None = None,
    alpha: float = DEFAULT_ALPHA,
    design: DesignName | None = None,
    weight: Weight = "rows",
) -> SequentialTest:
    """Compare systems with a baseline by confidence sequences: intervals that hold however often one looks.

    Dialogues are taken in the order of the run, as independent draws from one source. In an unpaired design each system
    has a confidence sequence of its own with half of alpha.

    Args:
        runs: A run, a list of runs, or a mapping of names to runs.
        baseline: The system that the others are compared with; None: the first.
        systems: Only these systems; None: all but floor and ceiling systems.
        metrics: Only these metrics; None: all.
        alpha: The error probability of all intervals of the panel together.
        design: `"paired"` (the same rows or dialogues in both systems), `"common"` (paired on those that both have),
            `"openings"` (paired on the rows before user turns differ), `"ids"` (paired by id, whatever users said) or
            `"unpaired"` (independent samples); None: chosen by what the systems have in common.
        weight: `"rows"`: every row counts equally in a mean. `"dialogues"`: every dialogue does.

    Returns:
        The differences so far, and after how many dialogues each was decided.

    Raises:
        SettingError: There is nothing to compare, or alpha is not between 0 and 1.

    Examples:
        >>> import dialeval
        >>> short, long = ["yes"] * 400, ["yes please"] * 400
        >>> run = dialeval.evaluate({"old": short, "new": long}, ["yes please"] * 400, metrics="rouge-l")
        >>> found = dialeval.run_sequential_test(run)
        >>> found
        <SequentialTest: 1 system (new) with old, 1 differences, 1 decided>
        >>> found.differences[0].decided < 400, found.differences[0].better
        (True, True)
    """
    if not 0 < alpha < 1:
        raise SettingError(f"alpha must be between 0 and 1, such as 0.05; it is not {alpha}")
    selection = select(runs, baseline, systems, metrics, design, weight)
    reasons = {
        (name, key): selection.left_out.get((name, key))
        or _explain_untested(key, alignment, selection.known[selection.first][key])
        for name, alignment in selection.alignments.items()
        for key in selection.common[name]
    }
    sizes = {True: 0, False: 0}
    for (_, key), reason in reasons.items():
        sizes[key in selection.panel] += reason is None
    return SequentialTest(
        baseline=selection.first,
        systems=list(selection.others),
        alpha=alpha,
        tests=sizes[True],
        unit=next(iter(selection.designs.values())).unit,
        panel=selection.panel,
        designs=selection.designs,
        differences=[
            _test_key(name, key, selection.alignments[name], alpha / max(sizes[key in selection.panel], 1))
            if reason is None
            else SequentialDifference(name, key, 0, math.nan, reason=reason)
            for (name, key), reason in reasons.items()
        ],
    )


def _explain_untested(key: str, alignment: Alignment, here: Estimate) -> str | None:
    """Return why a metric has no confidence sequence; None where it has one."""
    metric = find_metric(here)
    if here.corpus:
        return "it is a corpus-level value, without values per dialogue"
    if metric is not None and metric.untestable is not None:
        return metric.untestable
    if any(side[key].scores is None for side in (alignment.left, alignment.right)):
        return "the run holds no per-row scores for it"
    return None


def _test_key(name: str, key: str, alignment: Alignment, alpha: float) -> SequentialDifference:
    metric = find_metric(alignment.left[key])
    left, right = (Values.of(side, [key], alone=True) for side in (alignment.left, alignment.right))
    unpaired = alignment.design.name == "unpaired"
    if not unpaired:
        left, right = pair_values(left, right, [key], alignment.by_row)
    first, second = left.sum_clusters(key), right.sum_clusters(key)
    compute = unpaired_confidence_sequence if unpaired else confidence_sequence
    low, high, by = compute(first, second, find_bounds(key, alignment.left[key]), alpha)
    found = SequentialDifference(name, key, len(low), second.mean - first.mean, by=by)
    if not len(low) or not math.isfinite(low[-1]):
        few = f"fewer than {FIRST} dialogues" if len(low) < FIRST else "too few dialogues for such skewed differences"
        return replace(found, reason=few)
    found = replace(found, interval=(float(low[-1]), float(high[-1])))
    outside = np.flatnonzero((low > 0) | (high < 0))
    if not len(outside):
        return found
    better = None
    if metric is not None and metric.better is not None:
        better = bool(low[outside[0]] > 0) == (metric.better == "higher")
    return replace(found, decided=int(outside[0]) + 1, better=better)
