"""What a comparison says, in a few sentences: which system is better, by how much, how sure that is.

    verdict(comparison)  a sentence or more for each system, for the terminal, the report and notebooks alike

A metric with a direction counts as better or worse only if its difference is significant after the correction for all
tests; everything else is undecided. Better, worse and undecided add up to the metrics with a direction that were
tested. The largest gain and loss are those with the largest effect size. Where nothing is decided, the sentence says
so, and how many dialogues (or rows) it would take to find the clearest difference if it is as large as it looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dialeval.analysis.comparison import Comparison, Difference, compare
from dialeval.analysis.significance import POWER, needed_clusters
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.reports.figures import BETTER, DIFFERENT, WORSE, plain, shorten, show_rounded

MOST_TESTS = 300
"""Tests that are made without being asked for; `dialeval compare` makes any number."""
_MOST_NAMED = 3
"""Metrics without a direction that are named before the rest is counted, and systems before an overview is given."""
_MOST_SYSTEMS = 8
"""Systems that an overview names before the rest is counted."""


@dataclass(frozen=True)
class Standing:
    """How a system stands to the baseline: its tested differences, by what they say."""

    system: str
    better: Sequence[Difference]
    worse: Sequence[Difference]
    undecided: Sequence[Difference]
    """With a direction, but not significant."""
    other: Sequence[Difference]
    """Significant, and neither value is the better one."""

    @property
    def directed(self) -> int:
        """The tested metrics that have a direction."""
        return len(self.better) + len(self.worse) + len(self.undecided)


def standing(comparison: Comparison, system: str) -> Standing:
    """The tested differences of a system, by what they say."""
    tested = [row for row in comparison.of(system) if not math.isnan(row.p)]
    directed = [row for row in tested if row.better is not None]
    return Standing(
        system,
        [row for row in directed if row.significant and not row.worse],
        [row for row in directed if row.significant and row.worse],
        [row for row in directed if not row.significant],
        [row for row in tested if row.better is None and row.significant],
    )


def compared(run: Run) -> Comparison | None:
    """The comparison of a run's systems with the first; None if there is one system, or nothing could be tested."""
    if len(run) - len(run.anchors) < 2:
        return None
    try:
        comparison = compare(run, most_tests=MOST_TESTS)
    except SettingError:
        return None
    return comparison if any(not math.isnan(row.p) for row in comparison.rows) else None


def verdict(comparison: Comparison) -> list[str]:
    """The sentences, those about one system in one text; names are as they were given, not escaped."""
    said = [" ".join(_about(standing(comparison, system), comparison)) for system in comparison.systems]
    if len(said) > _MOST_NAMED:
        said.insert(0, _overview(comparison))
    if comparison.untested:
        others, systems = len(comparison.untested), "system is" if len(comparison.untested) == 1 else "systems are"
        what = f"{others} more {systems} not tested, from {shorten(plain(comparison.untested[0]))} on"
        said.append(f"{what}: so many tests take long. `dialeval compare` tests all.")
    return [*said, *(f"Compared by force: {what}." for what in comparison.forced)]


def _overview(comparison: Comparison) -> str:
    """One sentence about many systems: which are better than the baseline, which are worse."""
    names = {
        (True, False): "better",
        (False, True): "worse",
        (True, True): "better on some metrics and worse on others",
        (False, False): "cannot tell",
    }
    found: dict[str, list[str]] = {name: [] for name in names.values()}
    for system in comparison.systems:
        stands = standing(comparison, system)
        found[names[bool(stands.better), bool(stands.worse)]].append(shorten(plain(system)))
    parts = [f"{name}: {_listed(systems)}" for name, systems in found.items() if systems]
    return f"Compared with {shorten(plain(comparison.baseline))} ({how_sure(comparison)}), {'; '.join(parts)}."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_SYSTEMS
    return ", ".join(names) if more < 2 else f"{', '.join(names[:_MOST_SYSTEMS])} and {more} more"


def how_sure(comparison: Comparison) -> str:
    """The level of the tests, and for how many of them it was corrected."""
    tests = sum(not math.isnan(row.p) for row in comparison.rows)
    return f"{100 * comparison.settings.alpha:g}% level" + (f", corrected for {tests} tests" if tests > 1 else "")


def mark_of(row: Difference) -> str:
    """A mark for a significant difference, and nothing for others."""
    if not row.significant:
        return ""
    return DIFFERENT if row.better is None else WORSE if row.worse else BETTER


def _about(stands: Standing, comparison: Comparison) -> Iterable[str]:
    system, baseline = (shorten(plain(name)) for name in (stands.system, comparison.baseline))
    sure = how_sure(comparison)
    if not stands.directed:
        yield f"No tested metric says whether {system} or {baseline} is better."
    elif stands.better or stands.worse:
        better = f"better than {baseline} on {_of(stands.better, stands.directed)}"
        worse = f"worse on {len(stands.worse) or 'none'}"
        if not stands.better:
            better = f"worse than {baseline} on {_of(stands.worse, stands.directed)}"
            worse = "better on none"
        yield f"{system} is {better}, {worse} ({sure})."
        for what, rows in (("gain", stands.better), ("loss", stands.worse)):
            if rows:
                yield f"Largest {what}: {_figure(max(rows, key=_size))}."
    else:
        some = "the one metric that has a direction does not differ"
        if stands.directed > 1:
            some = f"none of the {stands.directed} metrics that have a direction differs"
        yield f"Cannot tell {system} from {baseline}: {some} significantly ({sure})."
        yield from _what_it_takes(stands.undecided, comparison)
    if stands.other:
        named = ", ".join(_figure(row) for row in sorted(stands.other, key=_size, reverse=True)[:_MOST_NAMED])
        more = len(stands.other) - _MOST_NAMED
        yield f"Different, but neither better nor worse: {named}{f' and {more} more' if more > 0 else ''}."


def _of(rows: Sequence[Difference], directed: int) -> str:
    return (
        f"{len(rows)} of {directed} metrics that have a direction"
        if directed > 1
        else "the one metric that has a direction"
    )


def _figure(row: Difference) -> str:
    return f"{shorten(plain(row.key))} {show_rounded(row.difference, row.interval, signed=True)}"


def _size(row: Difference) -> float:
    """The effect size; beyond all others for a difference that is the same in every dialogue."""
    if math.isnan(row.effect):
        return math.inf if row.difference else 0.0
    return abs(row.effect)


def _what_it_takes(undecided: Sequence[Difference], comparison: Comparison) -> Iterable[str]:
    clearest = min(undecided, key=lambda row: (row.p, -_size(row)))
    alpha = comparison.settings.alpha
    needed = needed_clusters(comparison.clusters, clearest.error, alpha, abs(clearest.difference))
    if clearest.p < alpha:
        what = f"alone it would be significant (p = {clearest.p:.3f}), but not as one of so many tests"
    elif needed is not None and needed > comparison.clusters:
        there = f"{comparison.clusters:,} {comparison.unit}"
        what = f"if it is real, {needed:,} instead of {there} would show it in {100 * POWER:g}% of cases"
    else:
        return
    yield f"Clearest: {_figure(clearest)}; {what}."
