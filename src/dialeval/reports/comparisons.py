"""A comparison as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["latex"](comparison)      json, csv, md, latex, each a str
    console.print(table(comparison))  the terminal: a table per system, with the baseline beside it

Marks: `**` for an adjusted p below a fifth of alpha (0.01 for 0.05), `*` below alpha. JSON and CSV hold every digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from math import comb
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
    show_interval,
    show_p,
    show_signed,
)
from dialeval.reports.forest import scale_of, stretched
from dialeval.reports.formats import LaidOut, Table
from dialeval.reports.tables import ARROWS, best_words, significant_decimals
from dialeval.reports.verdict import describe_designs, mark_of, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from dialeval.analysis.alignment import Design


_MOST_PANEL = 5
"""Metrics of the panel that are named before the rest is counted."""


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
    designs = "".join(f"{formats.markdown(line)}\n\n" for line in describe_designs(comparison))
    return designs + "\n".join(
        [*parts, "".join(f"{formats.markdown(line)}\n\n" for line in legend(comparison)).rstrip("\n") + "\n"]
    )


def to_latex(comparison: Comparison, transpose: bool = False) -> str:
    """A table with booktabs rules, a column per system: the best values of a metric bold, marks for differences."""
    names = [comparison.baseline, *comparison.systems]
    best = best_systems(comparison.results, comparison.keys)
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
    caption = [*describe_designs(comparison), *best_words(best), *notes]
    return formats.latex_float([table.transposed("system") if transpose else table], caption)


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
    """Explain what the tables show."""
    settings = comparison.settings
    designs = list(comparison.designs.values())
    tests = sum(not math.isnan(row.p) and row.key in comparison.panel for row in comparison.rows)
    rest = sum(not math.isnan(row.p) for row in comparison.rows) - tests
    marks = f"* p < {settings.alpha:g}, ** p < {STRONG * settings.alpha:g}"
    level = f"{100 * settings.level:g}% confidence intervals"
    lines = [f"Differences to {comparison.baseline} with {level} ({_intervals_of(comparison)})."]
    adjusted = f"adjusted by Holm for {tests} test{'s' * (tests != 1)}" if tests > 1 else "one test"
    family = f"{adjusted} of {', '.join(comparison.panel[:_MOST_PANEL])}" if tests > 1 else adjusted
    family += f" and {len(comparison.panel) - _MOST_PANEL} more" if len(comparison.panel) > _MOST_PANEL else ""
    others = f"; the {rest} tests of other metrics are a family of their own" if rest > 1 else ""
    lines.append(f"{marks}: {_test_of(comparison)}, seed {settings.seed}, {family}{others}.")
    lines.append(f"detectable: minimum detectable difference at {100 * POWER:g}% power (one test).")
    unit = designs[0].unit
    if settings.detect is not None:
        lines.append(f"needed: about how many {unit} it takes to find a difference of {settings.detect:g} like that.")
    if any(row.rough for row in comparison.rows):
        lines.append(f"~: a guide at best, since the {unit} are few, or a few of them decide.")
    least = max(map(_least_p, designs))
    if least * tests >= settings.alpha:
        lines.append(
            f"No difference can be significant: p is at least {least:.2g} with so few {unit}, before it is "
            f"adjusted for {tests} tests."
        )
    if comparison.adjusted_for:
        fields = ", ".join(comparison.adjusted_for)
        lines.append(f"Adjusted for {fields}: means are standardized to the mix of both logs (post-stratification).")
        lines += [_show_unadjusted(row) for row in comparison.rows if not math.isnan(row.unadjusted)]
    reasons = dict.fromkeys(f"{row.key}: not tested, {row.reason}." for row in comparison.rows if row.reason)
    notes = dict.fromkeys(f"{row.key}: {row.note}." for row in comparison.rows if row.note)
    return [*lines, *reasons, *notes]


def _show_unadjusted(row: Difference) -> str:
    interval = f" {show_interval(row.unadjusted_interval)}" if row.unadjusted_interval else ""
    return f"{row.key} of {row.system} unadjusted: {show_signed(row.unadjusted)}{interval}."


def _least_p(design: Design) -> float:
    """Return the least p-value that a design allows."""
    if design.name == "unpaired":
        return 1 / comb(design.baseline_units + design.system_units, design.baseline_units)
    return least_p(design.common)


def _intervals_of(comparison: Comparison) -> str:
    """Name the methods of the intervals."""
    methods = {row.interval_by for row in comparison.rows if row.interval_by is not None}
    unpaired = all(design.name == "unpaired" for design in comparison.designs.values())
    kind = "studentized" if unpaired else "paired studentized"
    words = {
        "studentised": f"{kind} bootstrap, {comparison.settings.resamples:,} resamples",
        "jackknife": "jackknife where distinct things are counted, or few dialogues differ",
        "welch": "clustered standard errors with Welch's degrees of freedom",
        "newcombe": "Newcombe for proportions",
        "post-stratified": "post-stratified means, clustered standard errors",
    }
    return "; ".join(text for method, text in words.items() if method in methods) or "none"


def _test_of(comparison: Comparison) -> str:
    """Name the tests."""
    settings, names = comparison.settings, []
    for design in dict.fromkeys(comparison.designs.values()):
        if settings.test == "bootstrap" and design.name != "unpaired":
            names.append(f"paired bootstrap, studentized, with {settings.resamples:,} resamples")
        elif design.name == "unpaired":
            if comparison.adjusted_for:
                names.append("Welch's t test of the adjusted means")
            elif settings.test == "bootstrap":
                names.append(f"bootstrap of both systems, studentized, with {settings.resamples:,} resamples")
            else:
                names.append(
                    f"permutation of whole {design.unit} between the systems with {settings.trials:,} trials "
                    "(corpus metrics by independent resampling)"
                )
        elif all_swaps(design.common, settings.trials):
            names.append(f"randomization, all {2**design.common:,} exchanges")
        else:
            names.append(f"approximate randomization with {settings.trials:,} trials")
    return "; ".join(dict.fromkeys(names))


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
        show_p(row.adjusted_p),
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
