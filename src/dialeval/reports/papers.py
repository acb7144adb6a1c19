"""Tables for papers: systems by metrics, several data sets next to each other, as LaTeX or Markdown.

    paper_table({"MultiWOZ": one, "SGD": two}, ["success", "bleu"], form="latex", percent=True, digits=1)

Each data set has columns of its own, and values are bold within a data set only: the best one and those that are not
significantly worse (`best_systems`, the rule of every table and of the report). The caption says which test that is and
has the signature of each metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from dialeval.analysis.comparison import Best, best_systems
from dialeval.analysis.pairing import keys_meant, main_keys
from dialeval.analysis.values import better_of, metric_of
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.reports.documents import Table, latex, markdown, markdown_table
from dialeval.reports.figures import plain
from dialeval.reports.tables import ARROWS, best_words

PaperFormat = Literal["latex", "md"]
_PERCENT = 100.0
_LATEX_ARROWS = {" ↑": r" $\uparrow$", " ↓": r" $\downarrow$", "": ""}


def paper_table(
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
    asked = None if metrics is None else keys_meant(metrics, every, "no run has", "there are")
    keys = {
        name: [key for key in asked if key in run.keys_in_order] if asked is not None else main_keys(run)
        for name, run in runs.items()
    }
    best = {name: best_systems(run, keys[name]) for name, run in runs.items()}
    systems = list(dict.fromkeys(name for run in runs.values() for name in run))
    columns = [(name, run, key) for name, run in runs.items() for key in keys[name]]
    scales = {(name, key): _PERCENT if percent and _is_fraction(run, key) else 1.0 for name, run, key in columns}
    heads = [_head(run, key, scales[name, key]) for name, run, key in columns]
    bold = "**{}**" if form == "md" else r"\textbf{{{}}}"
    rows = []
    for system in systems:
        cells = []
        for name, run, key in columns:
            estimate = run[system].get(key) if system in run else None
            known = estimate is not None and not math.isnan(estimate.mean)
            shown = f"{scales[name, key] * estimate.mean:.{digits}f}" if known and estimate is not None else "--"
            cells.append(bold.format(shown) if system in best[name].systems.get(key, ()) else shown)
        rows.append([system, *cells])
    words = _caption(runs, keys, best)
    sizes = {name: len(keys[name]) for name in runs}
    return _latex(rows, heads, sizes, words) if form == "latex" else _markdown(rows, heads, sizes, words)


def _is_fraction(run: Run, key: str) -> bool:
    """Tell whether all values of a metric are between 0 and 1."""
    metric = metric_of(next(result[key] for result in run.values() if key in result))
    if metric is not None and metric.bounds is not None:
        return tuple(metric.bounds) == (0.0, 1.0)
    return all(0 <= result[key].mean <= 1 for result in run.values() if key in result)


def _head(run: Run, key: str, scale: float) -> tuple[str, str]:
    """Return the name of a metric with its unit, and its arrow."""
    return f"{plain(key)} (%)" if scale == _PERCENT else plain(key), ARROWS[better_of(run, key)]


def _caption(runs: Mapping[str, Run], keys: Mapping[str, Sequence[str]], best: Mapping[str, Best]) -> list[str]:
    """Return what bold values mean, the size of each data set, and the signature of each metric."""
    words: list[str] = []
    for name, found in best.items():
        prefix = f"{plain(name)}: " if len(best) > 1 else ""
        words += [f"{prefix}{line}" for line in best_words(found)]
    if any(found.tests for found in best.values()):
        words.append("Test: paired approximate randomization over dialogues.")
    for name, run in runs.items():
        rows = max((est.rows for result in run.values() for est in result.values()), default=0)
        words.append(f"{plain(name)}: {rows:,} rows.")
        for key in keys[name]:
            signatures = {str(result[key].signature) for result in run.values() if key in result}
            words += [f"{plain(key)}: {' and '.join(sorted(signatures))}."] if signatures != {"None"} else []
    return list(dict.fromkeys(words))


def _markdown(
    rows: Sequence[Sequence[str]], heads: Sequence[tuple[str, str]], sizes: Mapping[str, int], words: Sequence[str]
) -> str:
    data = [name for name, size in sizes.items() for _ in range(size)]
    several = len(sizes) > 1
    titles = [
        f"{f'{plain(name)}: ' if several else ''}{head}{arrow}" for name, (head, arrow) in zip(data, heads, strict=True)
    ]
    return f"{markdown_table(Table(['system', *titles], rows))}\n{' '.join(map(markdown, words))}\n"


def _latex(
    rows: Sequence[Sequence[str]], heads: Sequence[tuple[str, str]], sizes: Mapping[str, int], words: Sequence[str]
) -> str:
    lines = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{l{'r' * len(heads)}}}", r"\toprule"]
    if len(sizes) > 1:
        names = (rf"\multicolumn{{{size}}}{{c}}{{{latex(name)}}}" for name, size in sizes.items())
        lines.append(" & ".join(["", *names]) + r" \\")
        start, rules = 2, []
        for size in sizes.values():
            rules.append(rf"\cmidrule(lr){{{start}-{start + size - 1}}}")
            start += size
        lines.append(" ".join(rules))
    titles = [f"{latex(head)}{_LATEX_ARROWS[arrow]}" for head, arrow in heads]
    lines += [" & ".join(["system", *titles]) + r" \\", r"\midrule"]
    lines += [" & ".join([latex(cells[0]), *cells[1:]]) + r" \\" for cells in rows]
    caption = " ".join(map(latex, words))
    below = [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\label{tab:results}", r"\end{table}", ""]
    return "\n".join([*lines, *below])
