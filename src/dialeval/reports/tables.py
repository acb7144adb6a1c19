"""A run as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["csv"](run)          json, csv, md, latex, metrics-txt, each a str
    console.print(lay_out(run))  the terminal; `lay_out(run, verdict)` marks what is better and worse
    describe_standing(run)       positions of systems between floor and ceiling, if the run has such systems

JSON and CSV hold every digit; other tables are rounded by `formatting`. Metrics are rows and systems are columns, since
there are usually more metrics; in the terminal the longer side runs downwards, and a score has the decimals that its
interval supports. Intervals are left out where one table would not hold them; columns that do not fit even so continue
in a further table below, so that no score is ever cut off. With a comparison, the verdict is above the table, and marks
show which systems are significantly better (▲) or worse (▼) than the baseline.

`metrics-txt` is the table file of dialog-eval: a line of names, then a line per system with `mean,std,confidence` for
each metric, all digits, a space behind each. A value of the whole corpus has the deviation `0`, as it is printed there.
It has the columns of dialog-eval in their order and no others: programs that read the file know these.

JSON and CSV of a run take no comparison, so `analysis` and `reports.comparisons` are imported where they are used.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.core.account import describe_accounts
from dialeval.core.signature import SACREBLEU, Signature
from dialeval.metrics.registry import GROUPS
from dialeval.reports import documents
from dialeval.reports import formatting as fmt
from dialeval.reports.documents import Document, Layout, Table
from dialeval.reports.formatting import MISSING, shorten, show, show_spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dialeval.analysis.comparison import Comparison
    from dialeval.core.fold import Better, Estimate
    from dialeval.core.result import Run
    from dialeval.reports.comparisons import RunVerdict


FIELDS = ["system", "metric", "mean", "std", "half_width", "low", "high", "interval_by", "units", "scored", "signature"]
METRICS_TXT = tuple(GROUPS["dialog-eval"])
"""The columns of dialog-eval's table, in its order."""


ARROWS: Mapping[Better | None, str] = {"higher": " ↑", "lower": " ↓", None: ""}
"""Behind a metric's name: which values are better."""


def choose_arrow(run: Run, key: str) -> str:
    """Return an arrow for a metric that says which replies are better, nothing for one that describes them."""
    from dialeval.analysis.values import find_better, find_metric

    metric = next(iter(filter(None, (find_metric(result[key]) for result in run.values() if key in result))), None)
    return "" if metric is not None and metric.descriptive else ARROWS[find_better(run, key)]


TIMES_100 = "Scores between −1 and 1 are shown times 100."
PERCENT = "percent"
"""The detail of a run whose scores from 0 to 1 are shown times 100."""
_MOST_NAMED = 3
"""Systems whose scored rows are counted one by one."""
_MOST_UNSCORED = 5
"""Metrics with rows that could not be scored that are named below a table before the rest is counted."""


def lay_out(run: Run, verdict: RunVerdict | None = None) -> Layout:
    """Lay out a run for a rich console below the verdict, with marks for significant differences."""
    return Layout(describe(run, verdict))


def describe(run: Run, verdict: RunVerdict | None) -> Document:
    """Describe a run with marks and sentences of its verdict."""
    from dialeval.reports import comparisons

    comparison = None if verdict is None else verdict.comparison
    signatures = (str(est.signature) for result in run.values() for est in result.values() if est.signature is not None)
    shown = Document([], [_make_table(run, comparison)], [], details=list_signatures(signatures))
    notes = [*describe_tokenizer(run), *describe_values(run), *list_footnotes(run, comparison)]
    if comparison is None:
        sentences = [] if verdict is None else verdict.sentences
        read = [*describe_unscored(run), *list_accounts(run), *_describe_units(run)]
        return replace(shown, sentences=sentences, notes=[" ".join(part) for part in (notes, read) if part])
    if comparison.estimand == "dialogue":
        notes.append("Values of systems are per reply; the verdict is about means per dialogue.")
    whole = comparisons.to_document(comparison)
    read = [*describe_unscored(run), *comparisons.list_what_was_read(comparison)]
    notes = [" ".join([*notes, whole.notes[0]]), " ".join(read)]
    return replace(whole, tables=shown.tables, notes=notes, details=shown.details)


def _make_table(run: Run, comparison: Comparison | None) -> Table:
    """Return the values of metrics and systems, with marks of a comparison; the longer side runs downwards."""
    from dialeval.analysis.values import find_skewed
    from dialeval.reports.comparisons import choose_mark

    marks: dict[tuple[str, str], str] = {}
    if comparison is not None:
        others = [name for name in run if run[name].role == "system" and name != comparison.baseline]
        marks = {(name, key): fmt.UNTESTED for name in others for key in run[name]}
        marks |= {(row.system, row.key): choose_mark(row) for row in comparison.differences}
    skewed, keys, cells = find_skewed(run), run.keys_in_order, {}
    for key in keys:
        decimals = choose_decimals(run, key)
        for name, result in run.items():
            estimate = result.get(key)
            mean = MISSING if estimate is None else show(estimate.mean, decimals)
            spread = "" if estimate is None else show_spread(estimate, decimals)
            doubt = "~" if key in skewed.get(name, ()) else ""
            cells[name, key] = mean, marks.get((name, key), ""), f"{doubt}({spread})" if spread else ""
    metrics = {key: shorten(key) + choose_arrow(run, key) for key in keys}
    systems = {name: shorten(name) for name in run}
    swapped = len(run) > len(keys)
    down, across = (systems, metrics) if swapped else (metrics, systems)
    columns = [["system" if swapped else "metric", *down.values()]]
    for name, head in across.items():
        columns.append([head, *_align([cells[(one, name) if swapped else (name, one)] for one in down])])
    heads, *rows = zip(*columns, strict=True)
    return Table(heads, rows)


def _describe_units(run: Run) -> list[str]:
    """Return a line that says that statistics are over lines, if they are."""
    from dialeval.analysis.alignment import OVER_LINES, are_lines

    return [OVER_LINES] if are_lines(result for result in run.values() if result.role == "system") else []


def list_accounts(run: Run) -> list[str]:
    """Return a line for each system of which replies are missing, failed or were left out while it was read."""
    accounts = describe_accounts({name: result.account for name, result in run.items() if result.role == "system"})
    return [f"{shorten(name)}: {line}." for name, line in accounts.items()]


def describe_tokenizer(run: Run) -> list[str]:
    """Return a line about the tokenizer, if it was chosen by the script of the texts."""
    chosen = run.details.get("tokenizer")
    why = "since the texts are in a script without spaces between words; --tokenizer names another"
    return [] if chosen is None else [f"Tokenizer: {shorten(str(chosen))}, {why}."]


def _align(column: Sequence[tuple[str, ...]]) -> list[str]:
    """Join the parts of the cells of a column: points below points, then marks and intervals."""
    if not column:
        return []
    wholes, points, rests = zip(*(mean.partition(".") for mean, *_ in column), strict=True)
    left, right = max(map(len, wholes)), max(map(len, map("".join, zip(points, rests, strict=True))))
    widths = [max(map(len, parts)) for parts in zip(*(cell[1:] for cell in column), strict=True)]
    return [
        f"{whole:>{left}}{point + rest:<{right}}"
        + "".join(f" {part:<{width}}" for part, width in zip(cell[1:], widths, strict=True) if width)
        for whole, point, rest, cell in zip(wholes, points, rests, column, strict=True)
    ]


def to_csv(run: Run) -> str:
    """Return a line per system and metric."""
    rows = []
    for system, result in run.items():
        for key, est in result.items():
            low, high = est.interval or (None, None)
            figures = (est.mean, est.std, est.half_width, low, high)
            rows.append((system, key, *figures, fmt.describe_intervals([est]), est.units, est.scored, est.signature))
    return documents.format_csv(FIELDS, rows)


def to_markdown(run: Run, **settings: Any) -> str:
    """Return a table as GitHub renders it (`reports.papers`)."""
    from dialeval.reports.papers import write_table

    return write_table(run, "md", **settings)


def to_latex(run: Run, **settings: Any) -> str:
    """Return a table for papers (`reports.papers`)."""
    from dialeval.reports.papers import write_table

    return write_table(run, **settings)


def list_readings(run: Run) -> list[str]:
    """Return what was not scored, is missing or failed, over which units, and which tokenizer was chosen."""
    return [*describe_unscored(run), *list_accounts(run), *_describe_units(run), *describe_tokenizer(run)]


def list_signatures(signatures: Iterable[str]) -> list[str]:
    """Return signatures, each once, below a heading, and after ours sacreBLEU's; nothing where there are none."""
    lines: dict[str, None] = {}
    for line in signatures:
        ours = Signature.parse(line)
        fields = tuple((name, value) for name, value in ours.fields if name != SACREBLEU)
        lines |= {str(Signature(ours.metric, fields)): None}
        lines |= {f"sacreBLEU: {ours[SACREBLEU]}": None} if SACREBLEU in ours else {}
    return ["Signatures:", *lines] if lines else []


def to_metrics_txt(run: Run, verbatim: bool = False) -> str:
    """Return the table file of dialog-eval: a line per file, its own metrics first.

    Whitespace in a name becomes `_`, because it separates the fields, unless names are `verbatim`, as in the original.
    """
    keys = sorted(run.keys_in_order, key=lambda key: METRICS_TXT.index(key) if key in METRICS_TXT else len(METRICS_TXT))
    lines = [" ".join(["filename", *map(_replace_whitespace, keys)])]
    for system, result in run.items():
        name = Path(result.source).name if result.source else system
        name = name if verbatim else _replace_whitespace(name)
        lines.append("".join(f"{field} " for field in (name, *(_format_triple(result.get(key)) for key in keys))))
    return "\n".join([*lines, ""])


FORMATS: Mapping[str, Callable[..., str]] = {
    "json": documents.to_json,
    "csv": to_csv,
    "md": to_markdown,
    "latex": to_latex,
    "metrics-txt": to_metrics_txt,
}
"""Every format that is a text, by its name on the command line."""


def describe_values(run: Run) -> list[str]:
    """Return lines about the intervals and the scale of the values."""
    estimates = (estimate for result in run.values() for estimate in result.values())
    words = fmt.describe_intervals(estimates)
    if cluster := run.details.get("cluster"):
        words = re.sub("over (dialogues|rows)", lambda _: f"over values of {cluster}", words)
    lines = [f"Confidence intervals: {words}."] if words else []
    return [*lines, TIMES_100] if run.details.get(PERCENT) else lines


def choose_decimals(run: Run, key: str) -> int:
    """Return the decimals of the values of a metric."""
    estimates = [result[key] for result in run.values() if key in result]
    return fmt.align_decimals((est.mean for est in estimates), (est.interval for est in estimates))


def list_footnotes(run: Run, comparison: Comparison | None) -> Iterator[str]:
    """Yield remarks on single values of a table: skewed metrics, and differences with a note."""
    from dialeval.analysis.values import find_skewed

    if any(find_skewed(run).values()):
        yield "~ skewed, with few dialogues: the interval may be too narrow; --intervals studentized is wider."
    for row in () if comparison is None else comparison.differences:
        if row.note is not None:
            yield f"{shorten(row.key)} of {shorten(row.system)}: {row.note}."


def describe_unscored(run: Run) -> Iterator[str]:
    """Yield a sentence about rows that could not be scored, if there are some."""
    parts = []
    for key in run.keys_in_order:
        estimates = [result[key] for result in run.values() if key in result]
        if any(est.scored != est.units for est in estimates):
            counts = {
                name: f"{run[name][key].scored:,} of {run[name][key].units:,}" for name in run if key in run[name]
            }
            least, most = (bound(est.scored for est in estimates) for bound in (min, max))
            several = f"{least:,} to {most:,} of {max(est.units for est in estimates):,}"
            if len(set(counts.values())) == 1:
                several = next(iter(counts.values()))
            elif len(counts) <= _MOST_NAMED:
                several = ", ".join(f"{count} ({shorten(name)})" for name, count in counts.items())
            parts.append(f"{shorten(key)} {several}")
    if parts:
        more = len(parts) - _MOST_UNSCORED
        rest = f", and {more} more metrics" if more > 0 else ""
        yield f"Scored in part: {'; '.join(parts[:_MOST_UNSCORED])}{rest}."


def _replace_whitespace(name: str) -> str:
    return re.sub(r"\s+", "_", name) or "_"


def _format_triple(estimate: Estimate | None) -> str:
    if estimate is None:
        return "nan,nan,nan"
    std = "0" if estimate.corpus and estimate.std == 0 else repr(float(estimate.std))
    return f"{float(estimate.mean)!r},{std},{float(estimate.half_width)!r}"


def describe_standing(run: Run) -> Document | None:
    """Describe the positions of systems between the best floor (0%) and the gold replies (100%); None without them."""
    standing = run.details.get("baselines", {}).get("standing", {})
    rows = []
    for key in run.keys_in_order:
        places = [located.get(key) for located in standing.values()]
        shares = [MISSING if place is None else f"{round(100 * place['share'])}%" for place in places]
        rows += [[key, *shares]] if any(places) else []
    table = Table(["metric", *map(shorten, standing)], rows)
    return Document(["Between floor (0%) and ceiling (100%):"], [table], []) if rows else None
