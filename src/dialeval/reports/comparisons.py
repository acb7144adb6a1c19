"""A comparison as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["latex"](comparison)      json, csv, md, latex, each a str
    console.print(table(comparison))  the terminal: a table per system, with the baseline beside it

Marks: `**` for an adjusted p below a fifth of alpha (0.01 for 0.05), `*` below alpha. JSON and CSV hold every digit.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from dialeval.analysis.comparison import Comparison, Difference
from dialeval.analysis.significance import POWER
from dialeval.reports.figures import MISSING, plain, shorten, show
from dialeval.reports.tables import _fit, _latex, _markdown, _significant, _table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

STRONG = 0.2
"""Below this share of alpha an adjusted p has two marks."""


def table(comparison: Comparison) -> Shown:
    """The comparison for a rich console."""
    return Shown(comparison)


def to_json(comparison: Comparison) -> str:
    """Everything, every digit; NaN is null."""
    import orjson

    return orjson.dumps(comparison.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def to_csv(comparison: Comparison) -> str:
    """One line per system and key, all digits; a field without a value is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = [each.name for each in fields(Difference)]
    writer.writerow([part for name in names for part in (("low", "high") if name == "interval" else (name,))])
    for row in comparison.rows:
        known = row.to_dict()
        cells = [
            part for name in names for part in ((known[name] or ("", "")) if name == "interval" else (known[name],))
        ]
        writer.writerow(["" if cell is None else repr(cell) if isinstance(cell, float) else cell for cell in cells])
    return out.getvalue()


def to_markdown(comparison: Comparison) -> str:
    """Tables as GitHub renders them, one below the other, with what they mean."""
    parts = []
    for system in comparison.systems:
        head = _heads(comparison, system)
        lines = [[_markdown(cell) for cell in head], ["---", *("---:" for _ in head[1:])]]
        lines += [[_markdown(cell) for cell in _cells(row, comparison)] for row in comparison.of(system)]
        parts.append("".join(f"| {' | '.join(cells)} |\n" for cells in lines))
    return "\n".join([*parts, "".join(f"{_markdown(line)}\n\n" for line in legend(comparison)).rstrip("\n") + "\n"])


def to_latex(comparison: Comparison) -> str:
    """A tabular with booktabs rules, a column per system: the best value of a metric bold, marks for differences."""
    names = [comparison.baseline, *comparison.systems]
    lines = [r"% \usepackage{booktabs}", r"\begin{tabular}{l" + "r" * len(names) + "}", r"\toprule"]
    lines += [" & ".join(["metric", *map(_latex, names)]) + r" \\", r"\midrule"]
    for key in comparison.keys:
        rows = {row.system: row for row in comparison.rows if row.key == key}
        means = {name: row.mean for name, row in rows.items()}
        means[comparison.baseline] = next(iter(rows.values())).baseline_mean
        decimals, best = _significant(means.values()), _best(means, next(iter(rows.values())))
        cells = [_latex_value(means.get(name), decimals, name in best, rows.get(name), comparison) for name in names]
        lines.append(" & ".join([_latex(key), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, *(rf"\par\smallskip\footnotesize {_latex(line)}" for line in _footnotes(comparison)), ""])


FORMATS: Mapping[str, Callable[[Comparison], str]] = {
    "json": to_json,
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
    by = (
        f"approximate randomisation with {settings.trials:,} trials"
        if settings.test == "randomisation"
        else f"paired bootstrap with {settings.resamples:,} resamples"
    )
    tests = sum(not math.isnan(row.p) for row in comparison.rows)
    drawn = f"paired bootstrap, {settings.resamples:,} resamples"
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
    reasons = dict.fromkeys(f"{row.key}: not tested, {row.reason}." for row in comparison.rows if row.reason)
    return [*lines, *reasons, *(f"Forced: {what}." for what in comparison.forced)]


def _footnotes(comparison: Comparison) -> list[str]:
    """The legend without the columns that a table of one value per system does not have."""
    return [line for line in legend(comparison) if not line.startswith(("detectable: ", "needed: "))]


@dataclass(frozen=True)
class Shown:
    """A renderable with a table for each system, and what the columns mean."""

    comparison: Comparison

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len
        from rich.text import Text

        for system in self.comparison.systems:
            rows = [_heads(self.comparison, system)]
            rows += [_cells(row, self.comparison) for row in self.comparison.of(system)]
            stub, *columns = ([*cells] for cells in zip(*rows, strict=True))
            widths = [max(map(cell_len, column)) for column in columns]
            drawn = [[" " * (w - cell_len(cell)) + cell for cell in c] for w, c in zip(widths, columns, strict=True)]
            for start, end in _fit(widths, options.max_width - max(map(cell_len, stub))):
                yield _table([stub, *drawn[start:end]])
                yield Text()
        for line in legend(self.comparison):
            yield Text(line)


def _heads(comparison: Comparison, system: str) -> list[str]:
    names = [shorten(plain(name)) for name in (comparison.baseline, system)]
    needed = [] if comparison.settings.detect is None else ["needed"]
    return ["metric", *names, "difference", "p", "adjusted", "effect", "won/tied/lost", "detectable", *needed]


def _cells(row: Difference, comparison: Comparison) -> list[str]:
    interval = f" [{show(row.interval[0])}, {show(row.interval[1])}]" if row.interval else ""
    won = MISSING if row.wins is None else f"{row.wins}/{row.ties}/{row.losses}"
    scored = f" ({row.rows}/{row.of})" if row.rows != row.of and not row.corpus else ""
    cells = [
        shorten(plain(row.key)),
        show(row.baseline_mean),
        show(row.mean) + scored,
        f"{_signed(row.difference)}{mark(row, comparison.settings.alpha)}{interval}",
        _probability(row.p),
        _probability(row.adjusted_p),
        show(row.effect, 2) if abs(row.effect) >= 0.005 or math.isnan(row.effect) else "0.00",
        won,
        show(row.detectable),
    ]
    if comparison.settings.detect is not None:
        cells.append(MISSING if row.needed is None else f"{row.needed:,}")
    return cells


def _signed(number: float) -> str:
    return show(number) if not number > 0 else f"+{show(number)}"


def _probability(p: float) -> str:
    return MISSING if math.isnan(p) else f"{p:.4f}"


def _best(means: Mapping[str, float], row: Difference) -> Sequence[str]:
    """The systems with the best value; none where neither higher nor lower is better."""
    known = [mean for mean in means.values() if not math.isnan(mean)]
    if row.better is None or not known:
        return []
    best = max(known) if row.better == "higher" else min(known)
    return [name for name, mean in means.items() if mean == best]


def _latex_value(mean: float | None, decimals: int, best: bool, row: Difference | None, comparison: Comparison) -> str:
    if mean is None or math.isnan(mean):
        return "--"
    figure = rf"\mathbf{{{show(mean, decimals)}}}" if best else show(mean, decimals)
    marks = mark(row, comparison.settings.alpha) if row is not None else ""
    return f"${figure}^{{{marks}}}$" if marks else f"${figure}$"
