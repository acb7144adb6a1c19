"""Tables for papers: systems by metrics, several data sets next to each other, as LaTeX or Markdown.

    make_paper_table({"MultiWOZ": one, "SGD": two}, ["success", "bleu"], form="latex", percent=True, digits=1)

Each data set has columns of its own, and values are bold within a data set only: the best one and those that are not
significantly worse (`find_best_systems`, the rule of every table and of the report). The caption names the test and has
the signature of each metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Literal

from dialeval.analysis.comparison import Best, find_best_systems
from dialeval.analysis.pairing import choose_main_keys, find_keys
from dialeval.analysis.values import find_better
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.reports.comparisons import find_percent_keys
from dialeval.reports.documents import Table, escape_latex, escape_markdown, format_latex_tables, format_markdown_table
from dialeval.reports.formatting import plain
from dialeval.reports.tables import ARROWS, explain_best

PaperFormat = Literal["latex", "md"]
_PERCENT = 100.0


def make_paper_table(
    runs: Mapping[str, Run],
    metrics: Sequence[str] | None = None,
    *,
    form: PaperFormat = "latex",
    percent: bool = False,
    digits: int = 2,
) -> str:
    """Return one table of all systems, with the metrics of each data set in columns of their own.

    Args:
        runs: By the name of its data set, a run.
        metrics: The metrics; the panel of each run unless given.
        form: `latex`, with booktabs rules and a caption, or `md`.
        percent: Whether values of metrics between 0 and 1 are shown as percentages.
        digits: Decimals of every value.

    Returns:
        The table.

    Raises:
        SettingError: There is no run, or a metric that no run has.
    """
    if not runs:
        raise SettingError("nothing to show: pass at least one run")
    every = list(dict.fromkeys(key for run in runs.values() for key in run.keys_in_order))
    named = None if metrics is None else find_keys(metrics, every, "no run has", "there are")
    keys = {
        name: [key for key in named if key in run.keys_in_order] if named is not None else choose_main_keys(run)
        for name, run in runs.items()
    }
    best = {name: find_best_systems(run, keys[name]) for name, run in runs.items()}
    systems = list(dict.fromkeys(name for run in runs.values() for name in run))
    columns = [(name, run, key) for name, run in runs.items() for key in keys[name]]
    fractions = {name: find_percent_keys(run) if percent else set() for name, run in runs.items()}
    scales = [_PERCENT if key in fractions[name] else 1.0 for name, _, key in columns]
    heads = [
        f"{plain(key)}{' (%)' if scale == _PERCENT else ''}{ARROWS[find_better(run, key)]}"
        for (_, run, key), scale in zip(columns, scales, strict=True)
    ]
    bold = "**{}**" if form == "md" else r"\textbf{{{}}}"
    rows = []
    for system in systems:
        cells = []
        for (name, run, key), scale in zip(columns, scales, strict=True):
            mean = run[system][key].mean if system in run and key in run[system] else math.nan
            shown = "--" if math.isnan(mean) else f"{scale * mean:.{digits}f}"
            cells.append(bold.format(shown) if system in best[name].systems.get(key, ()) else shown)
        rows.append([system, *cells])
    words = _make_caption(runs, keys, best)
    if form == "md":
        if len(runs) > 1:
            heads = [f"{plain(name)}: {head}" for (name, *_), head in zip(columns, heads, strict=True)]
        return f"{format_markdown_table(Table(['system', *heads], rows))}\n{' '.join(map(escape_markdown, words))}\n"
    lines = format_latex_tables(len(heads) + 1, Table(["system", *heads], rows))
    if len(runs) > 1:
        sizes = {name: len(columns) for name, columns in keys.items()}
        names = (rf"\multicolumn{{{size}}}{{c}}{{{escape_latex(name)}}}" for name, size in sizes.items())
        starts = accumulate(sizes.values(), initial=2)
        rules = (rf"\cmidrule(lr){{{at}-{at + size - 1}}}" for at, size in zip(starts, sizes.values(), strict=False))
        lines[2:2] = [" & ".join(["", *names]) + r" \\", " ".join(rules)]
    caption = rf"\caption{{{' '.join(map(escape_latex, words))}}}"
    return "\n".join([r"\begin{table}", r"\centering", *lines, caption, r"\label{tab:results}", r"\end{table}", ""])


def _make_caption(runs: Mapping[str, Run], keys: Mapping[str, Sequence[str]], best: Mapping[str, Best]) -> list[str]:
    """Return what bold values mean, the size of each data set, and the signature of each metric."""
    words: list[str] = []
    for name, leaders in best.items():
        prefix = f"{plain(name)}: " if len(best) > 1 else ""
        words += [f"{prefix}{line}" for line in explain_best(leaders)]
    if any(leaders.tests for leaders in best.values()):
        words.append("Test: paired approximate randomization over dialogues (or rows without one).")
    for name, run in runs.items():
        rows = max((est.units for result in run.values() for est in result.values()), default=0)
        words.append(f"{plain(name)}: {rows:,} rows.")
        for key in keys[name]:
            signatures = {str(result[key].signature) for result in run.values() if key in result}
            words += [f"{plain(key)}: {' and '.join(sorted(signatures))}."] if signatures != {"None"} else []
    return list(dict.fromkeys(words))
