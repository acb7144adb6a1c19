"""A run as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["csv"](run)        json, csv, md, latex, metrics-txt, each a str
    console.print(table(run))  the terminal; `table(run, comparison)` marks what is better and worse

JSON and CSV hold every digit; the tables that people read are rounded by `figures`. Metrics are rows and systems are
columns, since there are usually more metrics; in the terminal the longer side runs downwards. There a figure has the
decimals that its interval supports. Intervals are left out where one table would not hold them; columns that do not fit
even so continue in a further table below, so that no figure is ever cut off. With a comparison, the verdict stands
above the table, and marks say which systems are significantly better (▲) or worse (▼) than the baseline.

`metrics-txt` is the table file of dialog-eval: a line of names, then a line per system with `mean,std,confidence` for
each metric, all digits, a blank behind each. A value of the whole corpus has the deviation `0`, as it is printed there.
It has the columns of dialog-eval in their order and no others: programs that read the file know these.
"""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.analysis.values import metric_of
from dialeval.reports import formats
from dialeval.reports.figures import (
    BETTER,
    DECIMALS,
    DIFFERENT,
    MISSING,
    WORSE,
    interval_words,
    plain,
    shorten,
    show,
    show_scored,
    show_spread,
    supported_decimals,
)
from dialeval.reports.formats import LaidOut, Table
from dialeval.reports.verdict import how_sure, mark_of, verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from dialeval.analysis.comparison import Comparison
    from dialeval.core.fold import Better, Estimate
    from dialeval.core.result import Result, Run

CSV_FIELDS = (
    *("system", "metric", "mean", "std", "confidence", "low", "high", "interval_by", "rows", "scored", "signature"),
)
METRICS_TXT = (
    "length",
    *("per-unigram-entropy", "per-bigram-entropy", "utterance-unigram-entropy", "utterance-bigram-entropy"),
    *("unigram-kl-div", "bigram-kl-div"),
    *("embedding-average", "embedding-extrema", "embedding-greedy", "coherence"),
    *("distinct-1", "distinct-2", "bleu-1", "bleu-2", "bleu-3", "bleu-4"),
)
"""The columns of dialog-eval's table, in its order."""


ARROWS: Mapping[Better | None, str] = {"higher": " ↑", "lower": " ↓", None: ""}
"""Behind a metric's name: which values are better."""

_MOST_UNSCORED = 5
"""Metrics with rows that could not be scored that are named below a table before the rest is counted."""


def table(run: Run, comparison: Comparison | None = None) -> LaidOut:
    """The run for a rich console, with marks for what a comparison of its systems found."""
    return LaidOut(partial(_laid_out, run, comparison))


def to_csv(run: Run) -> str:
    """One line per system and metric."""
    rows = []
    for system, result in run.items():
        for key, est in result.items():
            low, high = est.interval or (None, None)
            figures = (est.mean, est.std, est.confidence, low, high)
            rows.append((system, key, *figures, interval_words([est]), est.rows, est.scored, est.signature))
    return formats.csv_text(CSV_FIELDS, rows)


def to_markdown(run: Run) -> str:
    """A table as GitHub renders it."""
    rows = [[key, *(_cell(result.get(key)) for result in run.values())] for key in run.keys_in_order]
    return formats.markdown_table(Table(["metric", *run], rows)) + "".join(f"\n{line}\n" for line in _kinds(run))


def to_latex(run: Run) -> str:
    """A tabular with booktabs rules, four significant digits per metric."""
    rows = []
    for key in run.keys_in_order:
        estimates = [result.get(key) for result in run.values()]
        decimals = significant_decimals(est.mean for est in estimates if est is not None)
        rows.append([key, *(_latex_cell(est, decimals) for est in estimates)])
    comments = [f"% {line}".replace("±", "+-").replace("√", "sqrt ").replace("·", "*") for line in _kinds(run)]
    return "\n".join([*formats.latex_lines(1 + len(run), Table(["metric", *run], rows)), *comments, ""])


def to_metrics_txt(run: Run) -> str:
    """The table file of dialog-eval: a line per file; blanks in a name become `_`, because blanks divide the fields."""
    keys = [key for key in METRICS_TXT if key in run.keys_in_order]
    lines = [" ".join(["filename", *map(_one_word, keys)])]
    for system, result in run.items():
        name = Path(result.source).name if result.source else system
        lines.append("".join(f"{field} " for field in (_one_word(name), *(_triple(result.get(key)) for key in keys))))
    return "\n".join([*lines, ""])


FORMATS: Mapping[str, Callable[[Run], str]] = {
    "json": formats.to_json,
    "csv": to_csv,
    "md": to_markdown,
    "latex": to_latex,
    "metrics-txt": to_metrics_txt,
}
"""Every format that is a text, by its name on the command line."""


def _laid_out(run: Run, comparison: Comparison | None, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    yield from formats.paragraphs(() if comparison is None else verdict(comparison))
    keys = run.keys_in_order
    names = {key: shorten(plain(key)) + ARROWS[better_of(run, key)] for key in keys}
    systems = {name: shorten(plain(name)) for name in run}
    marks = {} if comparison is None else {(row.system, row.key): mark_of(row) for row in comparison.rows}
    decimals = {key: row_decimals(run, key) for key in keys}
    cells = {
        (name, key): _terminal_cell(result.get(key), decimals[key], marks.get((name, key)))
        for name, result in run.items()
        for key in keys
    }
    downwards = len(run) > len(keys)
    if downwards:
        first = ["system", *systems.values()]
        columns = {names[key]: [cells[name, key] for name in run] for key in keys}
    else:
        first = ["metric", *names.values()]
        columns = {systems[name]: [cells[name, key] for key in keys] for name in run}
    figures = [[head, *_aligned(column)] for head, column in columns.items()]
    if formats.needed_width(first, figures) > width:
        without = ((head, [(mean, "", mark) for mean, _, mark in column]) for head, column in columns.items())
        figures = [[head, *_aligned(column)] for head, column in without]
    for number, part in enumerate(formats.fitting_tables(first, figures, width)):
        if number:
            yield Text()
        yield part
    yield from (Text(line, style="dim") for line in (*_kinds(run), *_notes(run, comparison)))


def _kinds(run: Run) -> list[str]:
    """A line that says which intervals the figures have."""
    words = interval_words(estimate for result in run.values() for estimate in result.values())
    return [f"Intervals: {words}."] if words else []


def row_decimals(run: Run, key: str) -> int:
    """The decimals that the narrowest interval of a metric supports; four significant digits if there is none."""
    estimates = [result[key] for result in run.values() if key in result]
    supported = [each for est in estimates if (each := supported_decimals(est.interval)) is not None]
    return max(supported) if supported else significant_decimals(est.mean for est in estimates)


def better_of(run: Mapping[str, Result], key: str) -> Better | None:
    """Which values of a key are better."""
    metrics = (metric_of(result[key]) for result in run.values() if key in result)
    return next((metric.better for metric in metrics if metric is not None), None)


def _terminal_cell(estimate: Estimate | None, decimals: int, mark: str | None) -> tuple[str, str, str]:
    """The mean, the interval and the mark of a cell."""
    if estimate is None:
        return MISSING, "", ""
    return show(estimate.mean, decimals), show_spread(estimate, decimals), mark or ""


def _aligned(column: Sequence[tuple[str, str, str]]) -> list[str]:
    """The cells of a column: points below points, then marks, then intervals."""
    wholes, rests = zip(*(_at_point(mean) for mean, _, _ in column), strict=True) if column else ((), ())
    left, right = (max(map(len, parts), default=0) for parts in (wholes, rests))
    marked = any(mark for _, _, mark in column)
    spread = max((len(interval) for _, interval, _ in column), default=0)
    return [
        f"{whole:>{left}}{rest:<{right}}"
        + (f" {mark or ' '}" if marked else "")
        + f" {interval:<{spread}}" * (spread > 0)
        for whole, rest, (_, interval, mark) in zip(wholes, rests, column, strict=True)
    ]


def _at_point(figure: str) -> tuple[str, str]:
    whole, point, rest = figure.partition(".")
    return whole, point + rest


def _notes(run: Run, comparison: Comparison | None) -> Iterator[str]:
    """What stands below the table: what the marks mean, and how much could not be scored."""
    if comparison is not None and any(row.significant for row in comparison.rows):
        meaning = f"{BETTER} better, {WORSE} worse, {DIFFERENT} different, neither is better"
        yield f"Against {shorten(plain(comparison.baseline))}: {meaning} ({how_sure(comparison)})."
    yield from unscored(run)


def unscored(run: Run) -> Iterator[str]:
    """A sentence about rows that could not be scored, if there are some."""
    found = []
    for key in run.keys_in_order:
        estimates = [result[key] for result in run.values() if key in result]
        if any(est.scored != est.rows for est in estimates):
            least, most = (bound(est.scored for est in estimates) for bound in (min, max))
            several = f"{least:,} to {most:,}" if least != most else f"{least:,}"
            found.append(f"{shorten(plain(key))} {several} of {max(est.rows for est in estimates):,}")
    if found:
        more = len(found) - _MOST_UNSCORED
        rest = f", and {more} more metrics" if more > 0 else ""
        yield f"Scored in part: {', '.join(found[:_MOST_UNSCORED])}{rest}."


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return MISSING
    scored = show_scored(estimate)
    return " ".join(filter(None, [show(estimate.mean), show_spread(estimate), scored and f"({scored})"]))


def _latex_cell(estimate: Estimate | None, decimals: int) -> str:
    if estimate is None or math.isnan(estimate.mean):
        return "--"
    mean, spread, scored = show(estimate.mean, decimals), show_spread(estimate, decimals), show_scored(estimate)
    inside = rf"{mean}\ {spread}".removesuffix("\\ ").replace("∞", r"\infty")
    inside = re.sub(r"e([+-]\d+)", lambda match: rf"\times 10^{{{int(match[1])}}}", inside)
    return f"${inside}$" + (f" ({scored})" if scored else "")


def significant_decimals(means: Iterable[float]) -> int:
    """The decimals that give the largest of some means four significant digits, at most four."""
    largest = max((abs(mean) for mean in means if math.isfinite(mean)), default=0.0)
    return DECIMALS if largest < 1 else max(0, DECIMALS - 1 - math.floor(math.log10(largest)))


def _one_word(name: str) -> str:
    return re.sub(r"\s+", "_", name) or "_"


def _triple(estimate: Estimate | None) -> str:
    if estimate is None:
        return "nan,nan,nan"
    std = "0" if estimate.corpus and estimate.std == 0 else repr(float(estimate.std))
    return f"{float(estimate.mean)!r},{std},{float(estimate.confidence)!r}"
