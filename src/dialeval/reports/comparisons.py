"""A comparison as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["latex"](comparison)      json, csv, md, latex, each a str
    console.print(table(comparison))  the terminal: a table per system, with the baseline beside it

Marks: `**` for an adjusted p below a fifth of alpha (0.01 for 0.05), `*` below alpha. JSON and CSV hold every digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from dialeval.analysis.best import best_systems
from dialeval.analysis.comparison import STRONG, Comparison, Difference
from dialeval.analysis.draws import all_swaps
from dialeval.analysis.significance import POWER, least_p
from dialeval.reports import formats
from dialeval.reports.figures import (
    MISSING,
    draw_interval,
    plain,
    shorten,
    show,
    show_fixed,
    show_interval,
    show_signed,
)
from dialeval.reports.forest import scale_of, stretched
from dialeval.reports.formats import LaidOut, Table
from dialeval.reports.tables import ARROWS, best_words, significant_decimals
from dialeval.reports.verdict import mark_of, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType


def table(comparison: Comparison, bars: bool = False) -> LaidOut:
    """The comparison for a rich console; with `bars`, differences are also drawn where there is room."""
    return LaidOut(partial(_laid_out, comparison, bars))


def to_csv(comparison: Comparison) -> str:
    """One line per system and key."""
    lines = comparison.lines()
    return formats.csv_text(lines[0], (line.values() for line in lines))


def to_markdown(comparison: Comparison) -> str:
    """Tables as GitHub renders them, one below the other, with what they mean."""
    parts = [
        formats.markdown_table(system_table(comparison, system), formats.markdown) for system in comparison.systems
    ]
    return "\n".join(
        [*parts, "".join(f"{formats.markdown(line)}\n\n" for line in legend(comparison)).rstrip("\n") + "\n"]
    )


def to_latex(comparison: Comparison, transpose: bool = False) -> str:
    """A table with booktabs rules, a column per system: the best values of a metric bold, marks for differences."""
    names = [comparison.baseline, *comparison.systems]
    best = best_systems(comparison.results, comparison.keys, force=bool(comparison.forced))
    lines = []
    for key in comparison.keys:
        rows = {row.system: row for row in comparison.rows if row.key == key}
        first = next(iter(rows.values()))
        means = {comparison.baseline: first.baseline_mean, **{name: row.mean for name, row in rows.items()}}
        decimals, bold = significant_decimals(means.values()), best.systems.get(key, ())
        marks = {name: mark(row, comparison.settings.alpha) for name, row in rows.items()}
        cells = (_latex_value(means.get(name), decimals, name in bold, marks.get(name, "")) for name in names)
        lines.append([key + ARROWS[first.better], *cells])
    # The legend without the columns that a table of one value per system does not have.
    notes = [line for line in legend(comparison) if not line.startswith(("detectable: ", "needed: ", "~: "))]
    table = Table(["metric", *names], lines)
    return formats.latex_float([table.transposed("system") if transpose else table], [*best_words(best), *notes])


FORMATS: Mapping[str, Callable[..., str]] = {
    "json": formats.to_json,
    "csv": to_csv,
    "md": to_markdown,
    "latex": to_latex,
}
"""Every format that is a text, by its name on the command line."""


def mark(row: Difference, alpha: float) -> str:
    """`**`, `*` or nothing."""
    if not row.significant:
        return ""
    return "**" if row.adjusted_p < STRONG * alpha else "*"


def legend(comparison: Comparison) -> list[str]:
    """What the tables show, in words."""
    settings = comparison.settings
    everything = all_swaps(comparison.clusters, settings.trials)
    if settings.test == "bootstrap":
        by = f"paired bootstrap, studentised, with {settings.resamples:,} resamples"
    elif everything:
        by = f"randomisation, all {2**comparison.clusters:,} exchanges"
    else:
        by = f"approximate randomisation with {settings.trials:,} trials"
    tests = sum(not math.isnan(row.p) for row in comparison.rows)
    drawn = f"paired bootstrap, studentised, {settings.resamples:,} resamples"
    if any(row.interval_by == "jackknife" for row in comparison.rows):
        drawn += "; jackknife where different things are counted, or few dialogues differ"
    over = f"{comparison.clusters:,} {comparison.unit}"
    marks = f"* p < {settings.alpha:g}, ** p < {STRONG * settings.alpha:g}"
    lines = [
        f"Differences to {comparison.baseline} with {100 * settings.level:g}% intervals ({drawn}) over {over}.",
        f"{marks}: {by}, seed {settings.seed}, adjusted by Holm for {tests} tests.",
        f"detectable: the least difference that this data finds in {100 * POWER:g}% of cases (one test).",
    ]
    if settings.detect is not None:
        lines.append(
            f"needed: about how many {comparison.unit} it takes to find a difference of {settings.detect:g} like that."
        )
    if any(row.rough for row in comparison.rows):
        lines.append(f"~: a guide at best, since the {comparison.unit} are few, or a few of them decide.")
    least = least_p(comparison.clusters)
    if least * tests >= settings.alpha:
        lines.append(
            f"No difference can be significant: p is at least {least:.2g} with so few {comparison.unit}, before it is "
            f"adjusted for {tests} tests."
        )
    reasons = dict.fromkeys(f"{row.key}: not tested, {row.reason}." for row in comparison.rows if row.reason)
    return [*lines, *reasons, *(f"Forced: {what}." for what in comparison.forced)]


def _laid_out(comparison: Comparison, bars: bool, width: int) -> Iterator[RenderableType]:
    """The verdict, a table for each system, and what the columns mean."""
    from rich.text import Text

    yield from formats.paragraphs(verdict(comparison))
    for system in comparison.systems:
        head, rows = system_table(comparison, system)
        names, *columns = zip(head, *rows, strict=True)
        drawn = ("worse   better", *difference_bars(comparison, system))
        if bars and formats.needed_width(names, [*columns, drawn]) <= width:
            columns.insert(head.index("difference"), drawn)
        for part in formats.fitting_tables(names, columns, width):
            yield part
            yield Text()
    yield from map(Text, legend(comparison))


def system_table(comparison: Comparison, system: str) -> Table:
    """The differences of one system, a row per metric."""
    names = [shorten(plain(name)) for name in (comparison.baseline, system)]
    head = ["metric", *names, "difference", "p adjusted", "effect", "won/tied/lost", "detectable"]
    needed = [] if comparison.settings.detect is None else ["needed"]
    return Table([*head, *needed], [_cells(row, comparison) for row in comparison.of(system)])


def difference_bars(comparison: Comparison, system: str) -> list[str]:
    """The differences of a system in standard deviations, better to the right, all systems on one scale."""
    scale = scale_of(comparison.rows)
    ends = [stretched(row) for row in comparison.of(system)]
    return ["" if each is None else draw_interval(each, scale.low, scale.high, zero=True) for each in ends]


def _cells(row: Difference, comparison: Comparison) -> list[str]:
    interval = f" {show_interval(row.interval)}" if row.interval else ""
    scored = f" ({row.rows}/{row.of})" if row.rows != row.of and not row.corpus else ""
    cells = [
        shorten(plain(row.key)),
        show(row.baseline_mean),
        show(row.mean) + scored,
        f"{show_signed(row.difference)}{mark(row, comparison.settings.alpha)}{interval} {mark_of(row)}".strip(),
        show_fixed(row.adjusted_p, 4),
        show(row.effect, 2) if abs(row.effect) >= 0.005 or math.isnan(row.effect) else "0.00",
        MISSING if row.wins is None else f"{row.wins}/{row.ties}/{row.losses}",
        show_detectable(row),
    ]
    if comparison.settings.detect is not None:
        cells.append(MISSING if row.needed is None else f"{_rough(row)}{row.needed:,}")
    return cells


def show_detectable(row: Difference) -> str:
    """The least difference that would be found, marked where it is rough."""
    return _rough(row) + show(row.detectable)


def _rough(row: Difference) -> str:
    return "~" if row.rough else ""


def _latex_value(mean: float | None, decimals: int, best: bool, marks: str) -> str:
    if mean is None or math.isnan(mean):
        return "--"
    figure = rf"\mathbf{{{show(mean, decimals)}}}" if best else show(mean, decimals)
    return f"${figure}^{{{marks}}}$" if marks else f"${figure}$"
