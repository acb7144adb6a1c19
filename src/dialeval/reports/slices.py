"""Slices for people: in which parts of the rows a system is good or bad, in the terminal, in papers and in the report.

    FORMATS["md"](slices)          json, csv, md, latex, each a str
    console.print(table(slices))   the terminal: for each field and metric a table of slices by systems
    section(slices)                the part of the report, with the differences in each slice as strips

The slices in which a system loses most come first. Marks are those of the summary, corrected for the tests of all
slices. `losses` says in a sentence where each system loses most, and claims nothing that is not significant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dialeval.analysis.slices import Slice, Slices
from dialeval.analysis.values import metric_of
from dialeval.core.fold import Level
from dialeval.reports import formats, markup
from dialeval.reports.figures import BETTER, DIFFERENT, MISSING, WORSE, plain, shorten, show, show_rounded, show_spread
from dialeval.reports.forest import WIDTH, scale_of
from dialeval.reports.formats import LaidOut, Table
from dialeval.reports.markup import Section
from dialeval.reports.metric_drawings import axis
from dialeval.reports.summary import NARROW, cell, has_room, heads
from dialeval.reports.tables import ARROWS, better_of, row_decimals
from dialeval.reports.verdict import mark_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dialeval.analysis.difference import Difference
    from dialeval.core.fold import Estimate

CSV_FIELDS = (
    *("field", "slice", "rows", "dialogues", "system", "metric", "mean", "std", "low", "high", "scored"),
    *("baseline", "difference", "difference_low", "difference_high", "p", "adjusted_p", "significant", "not_tested"),
)
ALL = "all rows"
MOST_TESTS = 100
"""Tests of slices that are made without being asked for; `dialeval compare --by` makes any number."""
_MOST_KEYS = 3
"""Metrics that are shown at once where none were named: those that differ most surely in some slice."""
_MOST_NAMED = 5
_LATEX = {
    BETTER: "$^{+}$",
    WORSE: "$^{-}$",
    DIFFERENT: r"$^{\ast}$",
    MISSING: "--",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}
"""Symbols that a plain LaTeX does not have."""


def table(slices: Slices) -> LaidOut:
    """The slices for a rich console."""
    return LaidOut(partial(_laid_out, slices))


def to_csv(slices: Slices) -> str:
    """One line per slice, system and metric, all digits."""
    lines = []
    for each in slices.slices:
        for system, result in each.run.items():
            for key, est in result.items():
                row = each.difference(system, key)
                figures = (est.mean, est.std, *(est.interval or (None, None)), est.scored)
                place = (each.field, each.label, each.rows, each.dialogues, system, key)
                lines.append((*place, *figures, *_difference_cells(row), each.reason))
    return formats.csv_text(CSV_FIELDS, lines)


def _difference_cells(row: Difference | None) -> tuple[object, ...]:
    if row is None:
        return (None,) * 7
    bounds = row.interval or (None, None)
    return row.baseline, row.difference, *bounds, row.p, row.adjusted_p, row.significant


def to_markdown(slices: Slices) -> str:
    """A table for each field and metric as GitHub renders it, with what the marks mean."""
    tables = [formats.markdown_table(each) for each in _tables(slices)]
    return "\n".join([*tables, *(f"{formats.markdown(line)}\n" for line in (*losses(slices), *notes(slices)))])


def to_latex(slices: Slices) -> str:
    """One tabular with booktabs rules, a part for each field and metric."""
    lines = formats.latex_lines(2 + len(slices.whole), *_tables(slices))
    said = (rf"\par\smallskip\footnotesize {formats.latex(line)}" for line in (*losses(slices), *notes(slices)))
    text = "\n".join([r"% \usepackage{booktabs}", *lines, *said, ""])
    for symbol, command in _LATEX.items():
        text = text.replace(symbol, command)
    return text


FORMATS: Mapping[str, Callable[[Slices], str]] = {
    "json": formats.to_json,
    "csv": to_csv,
    "md": to_markdown,
    "latex": to_latex,
}
"""Every format that is a text, by its name on the command line."""


def losses(slices: Slices) -> list[str]:
    """For each system a sentence about the slice in which it loses most; none for one that loses nowhere for sure."""
    said = []
    for system in slices.whole:
        loss = slices.worst(system)
        if loss is not None:
            names = [shorten(plain(name)) for name in (system, loss.by.baseline, loss.where.field, loss.where.label)]
            figure = f"{shorten(plain(loss.by.key))} {show_rounded(loss.by.difference, loss.by.interval, signed=True)}"
            where = f"{names[0]} loses most to {names[1]} where {names[2]} is {names[3]}"
            said.append(f"{where}: {figure} ({how_sure(slices)}).")
    return said


def how_sure(slices: Slices) -> str:
    """The level of the tests, and for how many of them it was corrected."""
    alpha = slices.comparisons[0].settings.alpha
    tests = sum(not math.isnan(row.p) for row in slices.differences)
    return f"{100 * alpha:g}% level, corrected for {markup.count(tests, 'test')} in all slices"


def notes(slices: Slices) -> Iterator[str]:
    """What the marks mean, what was not tested and why, and what figures depend on other rows."""
    if slices.comparisons:
        first = slices.comparisons[0]
        baseline = shorten(plain(first.baseline))
        if any(row.significant for row in slices.differences):
            meaning = f"{BETTER} better, {WORSE} worse, {DIFFERENT} different, neither is better"
            yield f"Against {baseline}: {meaning} ({how_sure(slices)})."
        else:
            yield f"No slice differs significantly from {baseline} ({how_sure(slices)})."
        if first.untested:
            yield f"Not tested: {_listed(first.untested)}; so many tests take long. `dialeval compare --by` tests all."
        yield "Slices in which a system loses most stand first."
    reasons: dict[str, list[str]] = {}
    for each in slices.slices:
        if each.reason is not None:
            reasons.setdefault(each.reason, []).append(f"{each.field} {each.label}")
    for reason, where in reasons.items():
        yield f"Not tested: {_listed(where)} ({plain(reason)})."
    if conditioned := [key for key in slices.keys if _knows_all_rows(slices, key)]:
        yield f"{_listed(conditioned)}: scored with what is known of all rows, also in a slice."
    if parts := [key for key in slices.keys if _cuts_dialogues(slices, key)]:
        yield f"{_listed(parts)}: of whole dialogues, those with a row in the slice."


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    shown = ", ".join(shorten(plain(name)) for name in names[:_MOST_NAMED])
    return shown + (f" and {more} more" if more > 0 else "")


def _knows_all_rows(slices: Slices, key: str) -> bool:
    """Whether the items of a key depend on facts about all rows."""
    metric = metric_of(next(result[key] for result in slices.whole.values() if key in result))
    return metric is not None and bool(metric.facts)


def _cuts_dialogues(slices: Slices, key: str) -> bool:
    """Whether a key is of dialogues, and some slice has a part of one."""
    estimate = next(result[key] for result in slices.whole.values() if key in result)
    return estimate.level is Level.DIALOGUE and any(each.cuts_dialogues for each in slices.slices)


def shown_keys(slices: Slices) -> list[str]:
    """The metrics that are shown at once, in their order: those that differ most surely in some slice."""
    tested = [row for row in slices.differences if not math.isnan(row.adjusted_p)]
    least = {key: min((row.adjusted_p for row in tested if row.key == key), default=1.0) for key in slices.keys}
    first = sorted(slices.keys, key=least.__getitem__)[:_MOST_KEYS]
    return [key for key in slices.keys if key in first]


def _laid_out(slices: Slices, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    yield from formats.paragraphs(losses(slices))
    keys = shown_keys(slices)
    for field in slices.by:
        for key in keys:
            head, *lines = zip(*_lines(slices, field, key), strict=True)
            yield from formats.fitting_tables(head, lines, width)
            yield Text()
    more = [key for key in slices.keys if key not in keys]
    if more:
        yield Text(f"Also in -f csv and -f json: {_listed(more)}.", style="dim")
    yield from (Text(line, style="dim") for line in notes(slices))


def _tables(slices: Slices) -> list[Table]:
    tables = []
    for field in slices.by:
        for key in slices.keys:
            head, *lines = _lines(slices, field, key)
            tables.append(Table(head, lines))
    return tables


def _lines(slices: Slices, field: str, key: str) -> Iterator[list[str]]:
    """The table of a field and a metric: a head, all rows, and a line per slice, worst first."""
    decimals, better = row_decimals(slices.whole, key), better_of(slices.whole, key)
    unit = next((each.unit for each in slices.slices), "rows")
    yield [f"{shorten(plain(key))}{ARROWS[better]} by {shorten(plain(field))}", unit, *map(_short, slices.whole)]
    cells = [_cell(result.get(key), decimals, "") for result in slices.whole.values()]
    yield [ALL, f"{_dialogues(slices):,}", *cells]
    for each in slices.worst_first(field, key):
        cells = [_cell(each.estimate(name, key), decimals, _mark(each, name, key)) for name in slices.whole]
        yield [_short(each.label), f"{each.dialogues:,}", *cells]


def _mark(each: Slice, system: str, key: str) -> str:
    row = each.difference(system, key)
    return "" if row is None else mark_of(row)


def _short(name: str) -> str:
    return shorten(plain(name))


def _dialogues(slices: Slices) -> int:
    rows = next(iter(slices.whole.values())).rows
    return 0 if rows is None else len(rows.offsets) - 1


def _cell(estimate: Estimate | None, decimals: int, mark: str) -> str:
    if estimate is None:
        return MISSING
    return " ".join(filter(None, (show(estimate.mean, decimals), mark, show_spread(estimate, decimals))))


def section(several: Sequence[Slices]) -> Section:
    """The section of the report: where systems lose, the differences in each slice, and the values."""
    return Section("slices", "Where it fails", "".join(map(_content, several)))


def _content(slices: Slices) -> str:
    said = "".join(f"<li>{markup.text(sentence)}</li>" for sentence in losses(slices))
    answer = f'<ul class="answer">{said}</ul>' if said else ""
    below = "".join(map(markup.note, map(markup.text, notes(slices))))
    first = shown_keys(slices)
    others = [key for key in slices.keys if key not in first]
    content = ""
    for field in slices.by:
        content += f"<h3>By {markup.name(field)}</h3>"
        content += "".join(_metric(slices, field, key) for key in first)
        if others:
            inside = "".join(_metric(slices, field, key) for key in others)
            content += markup.details(markup.count(len(others), "more metric"), inside)
    return answer + content + below


def _metric(slices: Slices, field: str, key: str) -> str:
    """The table of a field and a metric: the values of each slice, and their differences to the baseline as strips."""
    whole, decimals = slices.whole, row_decimals(slices.whole, key)
    rows = [row for row in slices.differences if row.key == key and not math.isnan(row.p)]
    few = has_room(whole)
    scale = scale_of(rows, WIDTH if few else NARROW) if rows else None
    cells = (cell(markup.name(name), result.get(key), decimals, None, None) for name, result in whole.items())
    lines = [markup.row(ALL, "".join(cells))]
    for each in slices.worst_first(field, key):
        cells = (
            cell(markup.name(name), each.estimate(name, key), decimals, each.difference(name, key), scale)
            for name in whole
        )
        count = markup.span("aside", f"{each.dialogues:,} {each.unit}")
        lines.append(markup.row(f"{markup.name(each.label)} {count}", "".join(cells)))
    tested = {row.system for row in rows}
    axes = ("" if scale is None or name not in tested else f"<div>{axis(scale)}</div>" for name in whole)
    below = f"<tr><td></td>{markup.cells(*axes, kind='figure')}</tr>" if few and scale is not None else ""
    caption = f"{markup.name(key)}{markup.arrow(better_of(whole, key))} by {markup.name(field)}, with intervals"
    caption += f"; strips: differences to {markup.name(next(iter(whole)))} in standard deviations." if rows else "."
    kind = "summary" if few else "summary dense"
    return markup.table(kind, caption, heads(markup.name(field), map(markup.name, whole)), lines, below)
