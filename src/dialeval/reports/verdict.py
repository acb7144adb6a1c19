"""The verdict of a comparison in a few sentences: the design, which system is better, by how much.

    verdict(comparison)  sentences for the terminal, the report and notebooks alike

The first sentence states the design (`analysis.alignment`). A metric of the panel counts as better or worse only if its
difference is significant after the correction for all tests of the panel; everything else is undecided. The largest
gain and loss are those with the largest effect size. Where nothing is decided, the sentence says so, and how many
dialogues (or rows) it would take to find the clearest difference if it is as large as it looks. Metrics that only
describe the responses (length, diversity) never make a system better: their differences are stated as such.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dialeval.analysis.comparison import Comparison, Difference, compare
from dialeval.analysis.pairing import main_keys
from dialeval.analysis.significance import POWER, needed_clusters
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.reports.figures import BETTER, DIFFERENT, WORSE, plain, shorten, show_rounded

MOST_TESTS = 300
"""Tests that are made without being asked for; `dialeval compare` makes any number."""
MOST_UNASKED = 60
"""With more tests than that only the panel is tested unless `dialeval compare` is asked."""
_MOST_NAMED = 3
"""Reasons that are given before the rest is left out, and systems before an overview is given."""
_MOST_DIFFERENCES = 2
"""Differences that are no evidence of better replies that are named before the rest is counted."""
_MOST_SYSTEMS = 8
"""Systems that an overview names before the rest is counted."""


@dataclass(frozen=True)
class Standing:
    """The tested differences of a system to the baseline, by what they say."""

    system: str
    better: Sequence[Difference]
    worse: Sequence[Difference]
    undecided: Sequence[Difference]
    """In the panel, but not significant."""
    other: Sequence[Difference]
    """Significant, and no evidence that either system is better."""

    @property
    def panel(self) -> int:
        """The number of tested metrics that the verdict is about."""
        return len(self.better) + len(self.worse) + len(self.undecided)


def standing(comparison: Comparison, system: str) -> Standing:
    """Sort the tested differences of a system by what they say."""
    tested = [row for row in comparison.of(system) if not math.isnan(row.p)]
    panel = [row for row in tested if row.key in comparison.panel and row.evidence]
    return Standing(
        system,
        [row for row in panel if row.significant and not row.worse],
        [row for row in panel if row.significant and row.worse],
        [row for row in panel if not row.significant],
        [row for row in tested if row.significant and not row.evidence],
    )


@dataclass(frozen=True)
class Verdict:
    """The comparison of a run's systems with the first, and what it says; or why there is none."""

    comparison: Comparison | None = None
    sentences: Sequence[str] = ()


def judge_run(run: Run) -> Verdict:
    """Compare the systems of a run with the first; a sentence gives the reason where that is impossible.

    All metrics are tested unless that takes many tests; then only the panel is.
    """
    systems = len(run) - len(run.anchors)
    if systems < 2:
        return Verdict()
    metrics = None if len(run.keys_in_order) * (systems - 1) <= MOST_UNASKED else main_keys(run)
    try:
        comparison = compare(run, metrics=metrics, most_tests=MOST_TESTS)
    except SettingError as error:
        return Verdict(None, [f"Not compared: {error}."])
    return Verdict(comparison, verdict(comparison))


def verdict(comparison: Comparison) -> list[str]:
    """Return the sentences, those about one system in one text; names are as they were given, not escaped."""
    about = [" ".join(_about(standing(comparison, system), comparison)) for system in comparison.systems]
    if len(about) > _MOST_NAMED:
        about.insert(0, _overview(comparison))
    if comparison.untested:
        others, systems = len(comparison.untested), "system is" if len(comparison.untested) == 1 else "systems are"
        what = f"{others} more {systems} not tested, from {shorten(plain(comparison.untested[0]))} on"
        about.append(f"{what}: so many tests take long. `dialeval compare` tests all.")
    return [*describe_designs(comparison), *about, *(f"Warning: {line}." for line in comparison.warnings)]


def describe_designs(comparison: Comparison) -> list[str]:
    """State the design of the comparison, in one sentence where it is the same for all systems."""
    baseline = shorten(plain(comparison.baseline))
    by_text: dict[str, list[str]] = {}
    for system, design in comparison.designs.items():
        name = shorten(plain(system))
        alone = design.name == "paired" or len(comparison.designs) == 1
        text = " ".join([design.describe(baseline, name), *design.notes])
        by_text.setdefault(text if alone else f"{name}: {text}", []).append(name)
    if len(by_text) == 1:
        return list(by_text)
    return [
        f"{_listed(names)}: {text}" if text.startswith("Paired design: ") else text for text, names in by_text.items()
    ]


def _overview(comparison: Comparison) -> str:
    """One sentence about many systems: which are better than the baseline, which are worse."""
    names = {
        (True, False): "better",
        (False, True): "worse",
        (True, True): "better on some metrics and worse on others",
        (False, False): "no significant difference",
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
    """State the level of the tests, and for how many of them it was corrected."""
    tests = sum(not math.isnan(row.p) and row.key in comparison.panel for row in comparison.rows)
    return f"{100 * comparison.settings.alpha:g}% level" + (f", corrected for {tests} tests" if tests > 1 else "")


def mark_of(row: Difference) -> str:
    """A mark for a significant difference, and nothing for others."""
    if not row.significant:
        return ""
    return DIFFERENT if not row.evidence else WORSE if row.worse else BETTER


def _about(stands: Standing, comparison: Comparison) -> Iterable[str]:
    system, baseline = (shorten(plain(name)) for name in (stands.system, comparison.baseline))
    sure = how_sure(comparison)
    if not stands.panel:
        yield from _without_evidence(stands, comparison, system, baseline, sure)
        return
    if stands.better or stands.worse:
        first, second, rows = ("better", "worse", stands.better) if stands.better else ("worse", "better", stands.worse)
        others = len(stands.worse) if stands.better else 0
        on = f"{len(rows)} of {stands.panel} metrics, {second} on {others or 'none'}"
        if stands.panel == 1:
            on = shorten(plain(rows[0].key))
        yield f"{system} is {first} than {baseline} on {on} ({sure})."
        for what, rows in (("gain", stands.better), ("loss", stands.worse)):
            if rows:
                yield f"Largest {what}: {_figure(max(rows, key=_size))}."
    else:
        some = f"{stands.undecided[0].key} does not differ"
        if stands.panel > 1:
            some = f"none of the {stands.panel} metrics differs"
        yield f"Cannot tell {system} from {baseline}: {some} significantly ({sure})."
        yield from _what_it_takes(stands.undecided, comparison)
    if stands.other:
        yield f"Also different, without being better or worse: {_list_differences(stands.other)}."


def _without_evidence(stands: Standing, comparison: Comparison, system: str, baseline: str, sure: str) -> Iterable[str]:
    """Say what is known where no tested metric says which system is better."""
    reasons = dict.fromkeys(
        f"{row.key}: {row.reason}" for row in comparison.of(stands.system) if row.reason and row.better is not None
    )
    if stands.other:
        yield f"{system} and {baseline} differ in {_list_differences(stands.other)} ({sure})."
    elif any(not math.isnan(row.p) for row in comparison.of(stands.system)):
        yield f"No significant difference between {system} and {baseline} ({sure})."
    if reasons:
        yield f"Not compared: {'; '.join(list(reasons)[:_MOST_NAMED])}."
    yield "None of the tested metrics says which replies are better: add references (-r), or score with -m judge."


def _list_differences(rows: Sequence[Difference]) -> str:
    named = ", ".join(_figure(row) for row in sorted(rows, key=_size, reverse=True)[:_MOST_DIFFERENCES])
    more = len(rows) - _MOST_DIFFERENCES
    return f"{named}{f' and {more} more' if more > 0 else ''}"


def _figure(row: Difference) -> str:
    return f"{shorten(plain(row.key))} {show_rounded(row.difference, row.interval, signed=True)}"


def _size(row: Difference) -> float:
    """The effect size; beyond all others for a difference that is the same in every dialogue."""
    if math.isnan(row.effect):
        return math.inf if row.difference else 0.0
    return abs(row.effect)


def _what_it_takes(undecided: Sequence[Difference], comparison: Comparison) -> Iterable[str]:
    clearest = min(undecided, key=lambda row: (row.p, -_size(row)))
    alpha, design = comparison.settings.alpha, comparison.designs[clearest.system]
    needed = needed_clusters(design.clusters, clearest.error, alpha, abs(clearest.difference))
    if clearest.p < alpha:
        what = f"alone it would be significant (p = {clearest.p:.3f}), but not as one of so many tests"
    elif needed is not None and needed > design.clusters:
        there = f"{design.clusters:,} {design.unit}"
        what = f"if it is real, {needed:,} instead of {there} would show it in {100 * POWER:g}% of cases (one test)"
    else:
        return
    yield f"Clearest: {_figure(clearest)}; {what}."
