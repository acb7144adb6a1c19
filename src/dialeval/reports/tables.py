"""A run as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["csv"](run)        json, csv, md, latex, metrics-txt, each a str
    console.print(table(run))  the terminal

JSON and CSV hold every digit; the tables that people read are rounded by `figures.show`. Metrics are rows and systems
are columns, since there are usually more metrics; in the terminal the longer side runs downwards, and columns that do
not fit beside each other continue in a further table below, so that no figure is ever cut off.

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

from dialeval.reports import formats
from dialeval.reports.figures import DECIMALS, MISSING, interval_words, plain, shorten, show, show_scored, show_spread
from dialeval.reports.formats import LaidOut, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from dialeval.core.fold import Estimate
    from dialeval.core.result import Run

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


def table(run: Run) -> LaidOut:
    """The run for a rich console."""
    return LaidOut(partial(_laid_out, run))


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


def _laid_out(run: Run, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    keys = run.keys_in_order
    downwards = len(run) > len(keys)
    if downwards:
        names, columns = list(run), {key: [result.get(key) for result in run.values()] for key in keys}
    else:
        names, columns = keys, {name: [result.get(key) for key in keys] for name, result in run.items()}
    first = ["system" if downwards else "metric", *(shorten(plain(name)) for name in names)]
    figures = [[shorten(plain(head)), *_aligned(estimates)] for head, estimates in columns.items()]
    for number, part in enumerate(formats.fitting_tables(first, figures, width)):
        if number:
            yield Text()
        yield part
    yield from (Text(line, style="dim") for line in _kinds(run))


def _kinds(run: Run) -> list[str]:
    """A line that says which intervals the figures have."""
    words = interval_words(estimate for result in run.values() for estimate in result.values())
    return [f"Intervals: {words}."] if words else []


def _aligned(column: Sequence[Estimate | None]) -> list[str]:
    """The cells of a column, each part of a cell padded so that it stands below its like."""
    parts = [_parts(estimate) for estimate in column]
    widths = [max(map(len, part)) for part in zip(*parts, strict=True)]
    return [" ".join(f"{text:>{width}}" for text, width in zip(cell, widths, strict=True) if width) for cell in parts]


def _parts(estimate: Estimate | None) -> tuple[str, str, str]:
    if estimate is None:
        return MISSING, "", ""
    return show(estimate.mean), show_spread(estimate), show_scored(estimate)


def _cell(estimate: Estimate | None) -> str:
    mean, spread, scored = _parts(estimate)
    return " ".join(filter(None, [mean, spread, scored and f"({scored})"]))


def _latex_cell(estimate: Estimate | None, decimals: int) -> str:
    if estimate is None or math.isnan(estimate.mean):
        return "--"
    mean, spread, scored = show(estimate.mean, decimals), show_spread(estimate, decimals), show_scored(estimate)
    inside = f"{mean} {spread}".strip().replace("±", r"\pm ").replace("∞", r"\infty")
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
