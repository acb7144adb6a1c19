"""Agreement of metrics with human ratings as tables: for the terminal, papers, pages and other programs.

    FORMATS["csv"](agreement)          json, csv, md, latex, each a str
    console.print(lay_out(agreement))  the terminal

The verdict comes first: which metric agrees best with human ratings, and which do not differ significantly from it.
Then a table per level, a row per metric: three coefficients with their intervals, `*` where one differs from 0 (its p,
corrected for all coefficients of the table, is below 1 - confidence). Of too few systems there are no intervals. At the
level of the ranking the best metric is first, and metrics that share a letter (`group`) do not differ significantly.
Where every dialogue has one rated turn, the level of dialogues would repeat that of turns and is left out of tables.
JSON and CSV hold every digit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dialeval.analysis.metric_ranking import CONTROL, LEVELS, RANKED_BY, SIGNIFICANT
from dialeval.reports.documents import Document, Layout, Table, make_formats
from dialeval.reports.formatting import MISSING, list_names, plain, shorten, show_fixed, show_interval
from dialeval.stats.correlation import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dialeval.analysis.agreement import Agreement, Correlation, Interval

DIFFERS = "*"
HEADS = {"pearson": "Pearson r", "spearman": "Spearman rho", "kendall": "Kendall tau"}


def to_document(agreement: Agreement) -> Document:
    """Return the verdict, a table per level, and what to read it against."""
    levels = dict(_make_tables(agreement))
    return Document(state_verdict(agreement), [*levels.values()], list_notes(agreement), titles=[*levels])


def lay_out(agreement: Agreement) -> Layout:
    """Lay the agreement out for a rich console."""
    return Layout(to_document(agreement))


FORMATS = make_formats(to_document)
"""Every format that is a text, by its name on the command line."""


def state_verdict(agreement: Agreement) -> list[str]:
    """Return which metric agrees best with human ratings, which it is better than, and which do not beat length.

    A metric is called better only where the corrected test of `metric_ranking` is significant.
    """
    ranking, level = agreement.ranking, agreement.control.level
    if not ranking.metrics:
        return [f"No metric could be correlated with human ratings of {shorten(agreement.quality)}."]
    first, *others = ranking.metrics
    best = shorten(first.metric)
    correlation = agreement[first.metric][level]
    turned = " (sign reversed: lower values are better)" if first.turned else ""
    figure, over = f"{HEADS[RANKED_BY]} {show_fixed(first.value, 2)}", f"{correlation.n:,} {level}s"
    ends = getattr(correlation, f"{RANKED_BY}_interval")
    if ends is None:
        return [f"{best} has the highest {figure}{turned}, but {over} are too few to say anything about other systems."]
    low, high = ends
    figure += f" {_show_ends((-high, -low) if first.turned else (low, high))}{turned}"
    if not _is_significant(correlation, RANKED_BY, agreement):
        highest = f"the highest, {best}, has {figure} over {over}"
        family = f"corrected for {_count_tests(agreement, level)} coefficients, it does not differ from 0"
        return [f"No metric correlates significantly with human ratings: {highest}; {family}."]
    sentences = [f"{best} has the highest correlation with human ratings: {figure} over {over}."]
    worse = [place.metric for place in others if ranking.differ(first.metric, place.metric)]
    alike = [place.metric for place in others if place.metric not in worse]
    tests = "test" if ranking.tests == 1 else "tests"
    sure = f"significance level {SIGNIFICANT:g}, corrected for {ranking.tests} {tests}"
    outcomes = [f"It is better than {list_names(worse)}"] if worse else []
    outcomes += [f"{'n' if worse else 'N'}o significant difference from {list_names(alike)}"] if alike else []
    sentences += [f"{'; '.join(outcomes)} ({sure})."] if outcomes else []
    if agreement.control.not_above and first.metric != CONTROL:
        sentences.append(f"Not significantly better than response length: {list_names(agreement.control.not_above)}.")
    return [" ".join(sentences)]


def _is_significant(correlation: Correlation, name: str, agreement: Agreement) -> bool:
    """Return whether a coefficient differs from 0, corrected for all coefficients of the table."""
    return bool(getattr(correlation, f"{name}_adjusted_p") < 1 - agreement.bootstrap.confidence)


def _count_tests(agreement: Agreement, level: str) -> int:
    """Return how many coefficients the p-values of a level are corrected for."""
    rows = [levels[level] for levels in agreement.metrics.values() if level in levels]
    return sum(not math.isnan(getattr(row, f"{name}_adjusted_p")) for row in rows for name in NAMES)


def list_notes(agreement: Agreement) -> list[str]:
    """Return what the coefficients are to be read against, a line each."""
    bootstrap = agreement.bootstrap
    level = f"{100 * bootstrap.confidence:g}%"
    levels = dict(_select_levels(agreement))
    over = f"{level} intervals over dialogues (or rows without one)"
    lines = [f"{agreement.rated} rated rows, quality {agreement.quality}; {over}"]
    if "system" in levels:
        lines[0] += " (of systems: over systems)"
    people = agreement.ceiling
    if people.reason is not None:
        lines.append(f"no ceiling: {people.reason}")
    else:
        one = ", ".join(f"{HEADS[name]} {show_fixed(value, 3)}" for name, value in people.one_against_others.items())
        alpha = ", ".join(
            f"{name} {show_fixed(value, 3)} {_show_ends(people.alpha_interval[name])}"
            for name, value in people.alpha.items()
        )
        highest = ", ".join(
            f"{show_fixed(value, 3)} {_show_ends(people.highest_interval[at])} at {at} level"
            for at, value in people.highest.items()
            if at in levels
        )
        lines += [
            f"ceiling (square root of the reliability of the mean rating, {people.n} rows): Pearson r {highest}",
            f"Krippendorff's alpha: {alpha}",
            f"one annotator against the mean of the others: {one}",
        ]
    for at, keys in agreement.above_ceiling.items():
        if keys and at in levels:
            lines.append(f"ABOVE THE CEILING at {at} level, by chance or as it saw the ratings: {list_names(keys)}")
    tests = ", ".join(f"{count} at {at} level" for at in levels if (count := _count_tests(agreement, at)))
    alpha = f"significance level {1 - bootstrap.confidence:.3g}"
    if tests:
        lines.append(f"{DIFFERS} differs from 0 ({alpha}, corrected by Holm for all coefficients of a table: {tests})")
    if agreement.ranking.tests:
        lines.append(f"group: metrics that share a letter do not differ significantly ({agreement.ranking.test})")
    lines += agreement.excluded
    return [plain(line) for line in lines]


def _select_levels(agreement: Agreement) -> Iterator[tuple[str, dict[str, Correlation]]]:
    """Yield the levels with their correlations that some metric has values for, without those that repeat another."""
    for level in LEVELS:
        here = {key: levels[level] for key, levels in agreement.metrics.items() if level in levels}
        turns = {key: levels["turn"].n for key, levels in agreement.metrics.items() if "turn" in levels}
        repeated = level == "dialogue" and all(correlation.n == turns.get(key) for key, correlation in here.items())
        if any(correlation.reason is None for correlation in here.values()) and not repeated:
            yield level, here


def _make_tables(agreement: Agreement) -> Iterator[tuple[str, Table]]:
    """Yield the table of each level, with its title."""
    for level, here in _select_levels(agreement):
        n = max(correlation.n for correlation in here.values() if correlation.reason is None)
        places = {p.metric: p.groups for p in agreement.ranking.metrics} if level == agreement.control.level else {}
        order = sorted(here, key=lambda key: list(places).index(key) if key in places else len(places))
        rows = [
            [shorten(key), *([places.get(key, MISSING)] if places else []), *_make_cells(here[key], agreement)]
            for key in order
        ]
        yield f"{level} level, n = {n:,}", Table(["metric", *(["group"] if places else []), *HEADS.values()], rows)


def _make_cells(correlation: Correlation, agreement: Agreement) -> list[str]:
    if correlation.reason is not None:
        return [MISSING for _ in NAMES]
    cells = []
    for name in NAMES:
        mark = DIFFERS if _is_significant(correlation, name, agreement) else ""
        ends = getattr(correlation, f"{name}_interval")
        interval = "" if ends is None else f" {_show_ends(ends)}"
        cells.append(f"{show_fixed(getattr(correlation, name), 3)}{mark}{interval}")
    return cells


def _show_ends(ends: Interval) -> str:
    return f"({show_interval(ends, 2)})"
