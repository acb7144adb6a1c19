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

import csv
import io
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.reports.figures import DECIMALS, MISSING, plain, shorten, show, show_scored, show_spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

    from dialeval.core.fold import Estimate
    from dialeval.core.result import Run

CSV_FIELDS = ("system", "metric", "mean", "std", "confidence", "low", "high", "rows", "scored", "signature")
METRICS_TXT = (
    "length",
    *("per-unigram-entropy", "per-bigram-entropy", "utterance-unigram-entropy", "utterance-bigram-entropy"),
    *("unigram-kl-div", "bigram-kl-div"),
    *("embedding-average", "embedding-extrema", "embedding-greedy", "coherence"),
    *("distinct-1", "distinct-2", "bleu-1", "bleu-2", "bleu-3", "bleu-4"),
)
"""The columns of dialog-eval's table, in its order."""
GAP = 3
"""Blanks between two columns in the terminal."""


def table(run: Run) -> Summary:
    """The summary of a run for a rich console."""
    return Summary(run)


def to_json(run: Run) -> str:
    """The run without its items, as `run.json` holds it."""
    import orjson

    return orjson.dumps(run.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def to_csv(run: Run) -> str:
    """One line per system and metric, all digits; a field without a value is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for system, result in run.items():
        for key, est in result.items():
            low, high = est.interval or (math.nan, math.nan)
            figures = ("" if math.isnan(x) else repr(float(x)) for x in (est.mean, est.std, est.confidence, low, high))
            writer.writerow((system, key, *figures, est.rows, est.scored, est.signature or ""))
    return out.getvalue()


def to_markdown(run: Run) -> str:
    """A table as GitHub renders it."""
    lines = [["metric", *map(_markdown, run)], ["---", *("---:" for _ in run)]]
    lines += [[_markdown(key), *(_cell(result.get(key)) for result in run.values())] for key in run.keys_in_order]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def to_latex(run: Run) -> str:
    """A tabular with booktabs rules, four significant digits per metric."""
    lines = [r"\begin{tabular}{l" + "r" * len(run) + "}", r"\toprule"]
    lines += [" & ".join(["metric", *map(_latex, run)]) + r" \\", r"\midrule"]
    for key in run.keys_in_order:
        estimates = [result.get(key) for result in run.values()]
        decimals = _significant(est.mean for est in estimates if est is not None)
        lines.append(" & ".join([_latex(key), *(_latex_cell(est, decimals) for est in estimates)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def to_metrics_txt(run: Run) -> str:
    """The table file of dialog-eval: a line per file; blanks in a name become `_`, because blanks divide the fields."""
    keys = [key for key in METRICS_TXT if key in run.keys_in_order]
    lines = [" ".join(["filename", *map(_one_word, keys)])]
    for system, result in run.items():
        name = Path(result.source).name if result.source else system
        lines.append("".join(f"{field} " for field in (_one_word(name), *(_triple(result.get(key)) for key in keys))))
    return "\n".join([*lines, ""])


FORMATS: Mapping[str, Callable[[Run], str]] = {
    "json": to_json,
    "csv": to_csv,
    "md": to_markdown,
    "latex": to_latex,
    "metrics-txt": to_metrics_txt,
}
"""Every format that is a text, by its name on the command line."""


@dataclass(frozen=True)
class Summary:
    """A renderable that lays a run out for the width of the console it is printed to."""

    run: Run

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.cells import cell_len
        from rich.text import Text

        run, keys = self.run, self.run.keys_in_order
        cells = {(key, system): result.get(key) for system, result in run.items() for key in keys}
        downwards = len(run) > len(keys)
        rows, columns = (list(run), keys) if downwards else (keys, list(run))
        grid = [[cells[(col, row) if downwards else (row, col)] for row in rows] for col in columns]
        stub = ["system" if downwards else "metric", *(shorten(plain(row)) for row in rows)]
        drawn = [_aligned(shorten(plain(col)), cells) for col, cells in zip(columns, grid, strict=True)]
        room = options.max_width - max(map(cell_len, stub))
        for start, end in _fit([cell_len(column[0]) for column in drawn], room):
            if start:
                yield Text()
            yield _table([stub, *drawn[start:end]])


def _table(columns: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # Text, not str: a name such as [bold] is a name, not markup.
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    for head, *_ in columns:
        drawn.add_column(Text(head), overflow="fold")
    for cells in zip(*(column[1:] for column in columns), strict=True):
        drawn.add_row(*map(Text, cells))
    return drawn


def _aligned(head: str, column: Sequence[Estimate | None]) -> list[str]:
    """Head and cells of a column, equally wide, each part of a cell padded so that it stands below its like."""
    from rich.cells import cell_len

    parts = [_parts(estimate) for estimate in column]
    mean, spread, scored = (max(map(len, part), default=0) for part in zip(*parts, strict=True))
    cells = [f"{a:>{mean}} {b:>{spread}}" if spread else f"{a:>{mean}}" for a, b, _ in parts]
    if scored:
        cells = [f"{cell} {c:>{scored}}" for cell, (_, _, c) in zip(cells, parts, strict=True)]
    width = max(map(cell_len, [head, *cells]))
    return [" " * (width - cell_len(cell)) + cell for cell in (head, *cells)]


def _fit(widths: Sequence[int], room: int) -> Iterable[tuple[int, int]]:
    """Cut columns into runs that fit the room; a column wider than the room stands alone."""
    start, used = 0, 0
    for at, width in enumerate(widths):
        if at > start and used + width + GAP > room:
            yield start, at
            start, used = at, 0
        used += width + GAP
    yield start, len(widths)


def _parts(estimate: Estimate | None) -> tuple[str, str, str]:
    if estimate is None:
        return MISSING, "", ""
    return show(estimate.mean), show_spread(estimate), show_scored(estimate)


def _cell(estimate: Estimate | None) -> str:
    mean, spread, scored = _parts(estimate)
    return " ".join(filter(None, [mean, spread, scored and f"({scored})"]))


def _markdown(text: str) -> str:
    # Entities rather than backslashes for what could open a tag: some renderers of tables ignore backslashes there.
    text = plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|~$!])", r"\\\1", text)


_LATEX = str.maketrans(
    {char: f"\\{char}" for char in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
)


def _latex(text: str) -> str:
    return plain(text).translate(_LATEX)


def _latex_cell(estimate: Estimate | None, decimals: int) -> str:
    if estimate is None or math.isnan(estimate.mean):
        return "--"
    mean, spread, scored = show(estimate.mean, decimals), show_spread(estimate, decimals), show_scored(estimate)
    inside = f"{mean} {spread}".strip().replace("±", r"\pm ").replace("∞", r"\infty")
    inside = re.sub(r"e([+-]\d+)", lambda match: rf"\times 10^{{{int(match[1])}}}", inside)
    return f"${inside}$" + (f" ({scored})" if scored else "")


def _significant(means: Iterable[float]) -> int:
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
