"""Tables for papers, of every result: LaTeX, Markdown or HTML, by one description of the table.

    write_table(run, width="column", percent=True)
    write_table({"MultiWOZ": one, "SGD": two}, metrics=["success", "bleu"], form="md")
    write_table(comparison)

Of runs, systems are rows and metrics columns, those of each data set together, unless it takes fewer panels in LaTeX if
they are swapped. Values have the digits that their
uncertainty supports and are bold within a data set only: the best one, and those that are not significantly worse
(`find_best_systems`, the rule of the report), with all that print the same. A metric that only describes responses has
neither arrow nor bold values. The caption says in words what the table shows; signatures are comments.

    paragraph, references = describe_methods(run, comparison, agreement)

The paragraph for the methods section is read from the run, the comparison and the agreement: nothing is stated that
they do not hold. References are those of `assets/papers.bib`, by the families of the metrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Literal

from dialeval.analysis.agreement import Agreement
from dialeval.analysis.comparison import Best, Comparison, find_best_systems
from dialeval.analysis.difference import DEFAULT_ALPHA, Difference
from dialeval.analysis.pairing import find_keys
from dialeval.analysis.values import find_metric
from dialeval.analysis.verdict import decide
from dialeval.core.display import list_some
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.signature import SACREBLEU
from dialeval.core.version import __version__
from dialeval.reports import comparisons, documents, tables
from dialeval.reports import formatting as fmt
from dialeval.reports.comparisons import describe_test
from dialeval.reports.documents import Grid, PaperStyle, Spread, Table, describe_result, escape_latex, escape_markdown

Form = Literal["latex", "md", "html"]


_MOST_SKEWED = 1.5
"""An interval of which one side is longer than the other by this factor is shown whole, never as ±."""
_MOST_FEWER = 2
"""Metrics that a caption names because their tests are over less than their values."""


def write_table(
    result: Any,
    form: Form = "latex",
    *,
    metrics: str | Sequence[str] | None = None,
    percent: bool = False,
    transpose: bool = False,
    best: Best | None = None,
    **style: Any,
) -> str:
    """Return the table of a result for a paper.

    Args:
        result: A run, runs by the names of their data sets, a comparison, or another result.
        form: `latex`, `md` or `html`.
        metrics: Only these metrics of runs; None: all but parts of others, such as `judge/fluency`.
        percent: Whether values between -1 and 1 are multiplied by 100.
        transpose: Swap rows and columns.
        best: The best systems of a comparison by key, whose values are bold.
        **style: `width`, `label`, `rename` and `spread` of LaTeX (`dialeval.reports.documents.PaperStyle`).

    Returns:
        The table.

    Raises:
        SettingError: There is no run, or a metric that no run has, or a style that does not exist.
    """
    chosen = documents.make_style(**style)
    if isinstance(result, Result):
        result = Run({"value": result}, __version__)
    if isinstance(result, Run):
        result = {"": result}
    if isinstance(result, Mapping):
        grid, caption, signatures, label = _lay_out_runs(result, metrics, percent, chosen.spread)
        caption += [] if form == "latex" else [line for run in result.values() for line in tables.list_readings(run)]
    elif isinstance(result, Comparison):
        grid, caption, signatures, label = _lay_out_comparison(result, percent, best)
    else:
        document = describe_result(result)
        if form == "latex":
            return documents.to_latex(document, chosen)
        return documents.to_markdown(document) if form == "md" else documents.to_html(document)
    other = grid.transpose("system" if grid.head[0] == "metric" else "metric")
    swapped = form == "latex" and grid.head[0] == "system" and not grid.groups
    if transpose != (swapped and documents.count_panels(other, chosen) < documents.count_panels(grid, chosen)):
        grid = other
    if form == "latex":
        return documents.format_float([grid], caption, label, chosen, tables.list_signatures(signatures))
    return _write(grid, caption, form, chosen)


def write_appendix(runs: Iterable[Run]) -> str:
    """Return a part of an appendix in LaTeX: version, commands and signatures that reproduce the values of runs."""
    lines = [f"Scores were computed with dialeval {escape_latex(__version__)}.", r"\begin{itemize}"]
    for run in runs:
        signatures = (str(est.signature) for result in run.values() for est in result.values() if est.signature)
        commands = [str(run.details["command"])] if "command" in run.details else []
        texts = [*commands, *tables.list_signatures(signatures)[1:]]
        lines += [rf"\item \texttt{{{_let_break(text)}}}" for text in texts]
    return "\n".join([*dict.fromkeys(lines), r"\end{itemize}", ""])


def _let_break(text: str) -> str:
    """Return a text in LaTeX that may be broken behind its separators."""
    return "".join(escape_latex(char) + r"\allowbreak{}" * (char in "|:,/@+-") for char in text)


def _lay_out_runs(
    runs: Mapping[str, Run], metrics: str | Sequence[str] | None, percent: bool, spread: Spread
) -> tuple[Grid, list[str], list[str], str]:
    """Return the table of runs, its caption, the signatures of its values, and its label."""
    if not runs:
        raise SettingError("nothing to fmt.show: pass at least one run")
    scaled = {
        name: comparisons.run_to_percent(run) if percent and not run.details.get(tables.PERCENT) else run
        for name, run in runs.items()
    }
    percent = percent or any(run.details.get(tables.PERCENT) for run in runs.values())
    every = list(dict.fromkeys(key for run in runs.values() for key in run.keys_in_order))
    named = [metrics] if isinstance(metrics, str) else metrics
    chosen = None if named is None else find_keys(named, every, "no run has", "there are")
    systems = list(dict.fromkeys(name for run in runs.values() for name in run))
    columns: list[list[str]] = [["system", *systems]]
    bold: set[tuple[int, int]] = set()
    tests: set[int] = set()
    groups, signatures = [], []
    for data, run in scaled.items():
        keys = [key for key in run.keys_in_order if key.partition("/")[0] not in run.keys_in_order or "/" not in key]
        keys = keys if chosen is None else [key for key in chosen if key in run.keys_in_order]
        leaders = find_best_systems(runs[data], keys, comparison=comparisons.judge_run(runs[data]).comparison)
        tests |= {leaders.tests} if leaders.systems else set()
        for key in keys:
            decimals, arrow = tables.choose_decimals(run, key), tables.choose_arrow(run, key)
            estimates = {name: run[name].get(key) if name in run else None for name in systems}
            texts = {
                name: fmt.MISSING if est is None else fmt.show(est.mean, decimals) for name, est in estimates.items()
            }
            best = {texts[name] for name in leaders.systems.get(key, ()) if arrow}
            bold |= {(row, len(columns)) for row, name in enumerate(systems) if texts[name] in best}
            cells = (_add_spread(texts[name], est, decimals, spread) for name, est in estimates.items())
            columns.append([key + arrow, *cells])
            groups.append(data)
            signatures += [str(est.signature) for est in estimates.values() if est is not None and est.signature]
    head, *rows = zip(*columns, strict=True)
    grid = Grid(head, rows, bold, groups if len(runs) > 1 else ())
    shown = [est for run in scaled.values() for result in run.values() for est in result.values()]
    return grid, _caption_runs(scaled, shown, tests if bold else set(), percent, spread), signatures, "tab:scores"


def _add_spread(text: str, estimate: Estimate | None, decimals: int, spread: Spread) -> str:
    """Return a value with its uncertainty."""
    if estimate is None or estimate.interval is None or spread == "none" or text == fmt.MISSING:
        return text
    low, high = estimate.interval
    below, above = estimate.mean - low, high - estimate.mean
    if spread == "pm" and max(below, above) < _MOST_SKEWED * min(below, above):
        return f"{text} ± {fmt.show((high - low) / 2, decimals)}"
    return f"{text} [{fmt.show_interval(estimate.interval, decimals).replace(' to ', ', ')}]"


def _caption_runs(
    runs: Mapping[str, Run], shown: Sequence[Estimate], tests: set[int], percent: bool, spread: Spread
) -> list[str]:
    """Return a caption in words: what the values are, of how much, and what is bold."""
    sizes = []
    for name, run in runs.items():
        counts = max((_count_units(result) for result in run.values()), default="")
        sizes.append(f"{name}: {counts}" if name else counts)
    intervals = {est.interval_by.level for est in shown if est.interval_by is not None and est.interval is not None}
    level = "".join(f"{100 * level:g}% " for level in intervals if level is not None and len(intervals) == 1)
    words = {"interval": f" with {level}confidence intervals", "pm": f" ± half of the {level}confidence interval"}
    caption = [f"Scores{words.get(spread, '') if intervals else ''} ({'; '.join(filter(None, sizes))})."]
    if percent:
        caption.append("Scores between −1 and 1 are shown ×100.")
    if tests:
        corrected = f", corrected for {max(tests)} tests" if max(tests) > 1 else ""
        rest = f", and those not significantly worse (paired randomization test, p < {DEFAULT_ALPHA:g}{corrected})"
        caption.append(f"Bold: the best{rest if max(tests) else ''}.")
    return caption


def _count_units(result: Result) -> str:
    """Return how many dialogues and rows there are."""
    rows = 0 if result.table is None else len(result.table)
    if result.table is None or not rows:
        return ""
    clusters = len(result.table.offsets) - 1
    return f"{rows:,} rows" if clusters == rows else f"{clusters:,} dialogues, {rows:,} rows"


def _lay_out_comparison(
    comparison: Comparison, percent: bool, best: Best | None
) -> tuple[Grid, list[str], list[str], str]:
    """Return the table of a comparison: with one other system its differences, with several the values of all."""
    if percent:
        comparison = comparisons.to_percent(comparison)
    names, level = [comparison.baseline, *comparison.systems], f"{100 * comparison.confidence:g}%"
    bold: set[tuple[int, int]] = set()
    rows = []
    for number, key in enumerate(comparison.keys):
        differences = [row for row in comparison.differences if row.key == key]
        arrow = tables.ARROWS[differences[0].better if differences[0].evidence else None]
        texts, winners = _show_row(names, differences, () if best is None else best.systems.get(key, ()))
        best_texts = {texts[name] for name in winners if arrow}
        bold |= {(number, at) for at, name in enumerate(names, 1) if texts[name] in best_texts}
        cells = list(texts.values())
        if len(names) == 2:
            (row,) = differences
            cells += [fmt.show_rounded(row.difference, row.interval, signed=True), fmt.show_p(row.adjusted_p)]
        else:
            marks = {row.system: comparisons.choose_mark(row) for row in differences}
            cells = [text + marks.get(name, "") for name, text in texts.items()]
        rows.append([key + arrow, *cells])
    head = ["metric", *names, *([f"difference ({level} CI)", "p"] if len(names) == 2 else [])]
    signatures = list(comparison.signatures.values())
    return Grid(head, rows, bold), _caption_comparison(comparison, percent, bool(bold)), signatures, "tab:comparison"


def _show_row(
    names: Sequence[str], differences: Sequence[Difference], best: Sequence[str]
) -> tuple[dict[str, str], Sequence[str]]:
    """Return the values of a metric by system as they are printed, and whose are bold."""
    first = differences[0]
    means = {first.baseline: first.values[0], **{row.system: row.values[1] for row in differences}}
    decimals = fmt.align_decimals(means.values(), (row.interval for row in differences))
    texts = {name: fmt.show(means[name], decimals) if name in means else fmt.MISSING for name in names}
    if len(names) > 2:
        return texts, best
    return texts, {"better": [first.system], "worse": [first.baseline]}.get(decide(first), [])


def _caption_comparison(comparison: Comparison, percent: bool, bold: bool) -> list[str]:
    """Return a caption in words: values, units, test and marks."""
    two, decided = len(comparison.systems) == 1, {decide(row) for row in comparison.differences}
    what = f"Scores and differences with {100 * comparison.confidence:g}% confidence intervals" if two else "Scores"
    adjusted = f", adjusted for {comparison.tests} tests" if comparison.tests > 1 else ""
    units = f"{comparison.design.clusters:,} {comparison.design.unit}"
    caption = [f"{what} ({units}; {comparisons.describe_test(comparison)}{adjusted})."]
    caption += ["Scores between −1 and 1 are shown ×100."] if percent else []
    caption += [f"Means are per {comparison.estimand}."] if comparison.estimand is not None else []
    fewer: dict[str, Difference] = {}  # by metric, the comparison of the fewest
    for row in comparison.differences:
        if row.units < row.of and row.values != (row.baseline_mean, row.mean):
            fewer[row.key] = min(row, fewer.get(row.key, row), key=lambda one: one.units)
    if fewer:
        listed = list_some([f"{key} {row.units:,} of {row.of:,}" for key, row in fewer.items()], _MOST_FEWER)
        caption.append(f"Tests are over what both systems have: {listed}.")
    if bold:
        caption.append("Bold: clearly better." if two else "Bold: the best, and those not significantly worse.")
    marks = [f"{mark} {kind}" for kind, mark in fmt.MARK_OF.items() if kind in decided]
    if marks and not two:
        caption.append(f"Against {comparison.baseline}: {', '.join(marks)} (p < {comparison.alpha:g}).")
    return caption


def _write(grid: Grid, caption: Sequence[str], form: Form, style: PaperStyle) -> str:
    """Return the table in Markdown or HTML."""
    groups = [f"{style.rename.get(name, name)}: " for name in grid.groups] or [""] * (len(grid.head) - 1)
    head = [group + style.name(name) for group, name in zip(["", *groups], grid.head, strict=True)]
    mark, quote = ("**{}**", escape_markdown) if form == "md" else ("<b>{}</b>", escape)
    rows = []
    for row, (name, *cells) in enumerate(grid.rows):
        texts = (mark.format(quote(c)) if (row, at) in grid.bold else quote(c) for at, c in enumerate(cells, 1))
        rows.append([style.name(name), *texts])
    below = quote(" ".join(caption))
    if form == "md":
        return f"{documents.format_markdown_table(Table(head, rows))}\n{below}\n"
    return f"{documents.format_html_table(Table(head, rows), str)}<p><small>{below}</small></p>"


# The paragraph for the methods section.

_ENTRY = re.compile(r"@\w+\{(?P<key>\w+),.*?^\}\n", re.DOTALL | re.MULTILINE)
_CITED = re.compile(r"\\citep\{([^}]*)\}")
_USED_BY = re.compile(r",\s*metrics = \{([^}]*)\}")
_NAMED = {"length": "response length in tokens", "judge": "the learned judge of dialeval"}
"""Metrics that have no name outside of dialeval, in words."""
_MODELS = ("model", "dialogue-judge", "encoder", "judge", "rubric", "mode")
"""Fields of a signature that name models and rubrics."""


def _cite(subject: str) -> str:
    """Return a citation of what a subject is defined by; nothing where that is nothing."""
    keys = _read_papers()[0].get(subject, [])
    return rf"~\citep{{{','.join(keys)}}}" if keys else ""


@cache
def _read_papers() -> tuple[Mapping[str, list[str]], Mapping[str, str]]:
    """Return the keys by what is defined there, and the entries by key."""
    text = (Path(__file__).parent / "assets" / "papers.bib").read_text(encoding="utf-8")
    subjects: dict[str, list[str]] = {}
    entries = {}
    for entry in _ENTRY.finditer(text):
        used = _USED_BY.search(entry[0])
        for subject in used[1].split() if used else ():
            subjects.setdefault(subject, []).append(entry["key"])
        entries[entry["key"]] = _USED_BY.sub("", entry[0])
    return subjects, entries


def describe_methods(
    run: Run, comparison: Comparison | None = None, agreement: Agreement | None = None
) -> tuple[str, str]:
    """Return the paragraph and the references of a run.

    Args:
        run: The run.
        comparison: The comparison of its systems, whose test and correction are described.
        agreement: The agreement with human ratings, whose raters are described.

    Returns:
        The paragraph in LaTeX, and the entries in BibTeX.
    """
    sentences = [
        *_describe_data(run),
        *_describe_metrics(run),
        *_describe_statistics(run, comparison),
        *([] if agreement is None else _describe_raters(agreement)),
    ]
    paragraph = " ".join(sentences) + "\n"
    cited = dict.fromkeys(key for keys in _CITED.findall(paragraph) for key in keys.split(","))
    return paragraph, "\n".join(_read_papers()[1][key] for key in cited)


def _describe_data(run: Run) -> Iterator[str]:
    """Yield what was scored, and what failed."""
    systems = {name: result for name, result in run.items() if result.role == "system"}
    sizes = set()
    for result in systems.values():
        units = max((est.units for est in result.values()), default=0)
        dialogues = 0 if result.table is None else len(result.table.offsets) - 1
        sizes.add(f"{units:,} responses" + (f" in {dialogues:,} dialogues" if 0 < dialogues < units else ""))
    many = "one system" if len(systems) == 1 else f"{len(systems)} systems"
    names = escape_latex(", ".join(systems))
    each = " each" if len(systems) > 1 and len(sizes) == 1 else ""
    yield f"We scored {many} ({names}; {' or '.join(sorted(sizes))}{each}) with dialeval {escape_latex(__version__)}."
    for name, result in systems.items():
        if result.account is not None and result.account.failed:
            account = result.account
            yield f"Of {account.due:,} replies due from {escape_latex(name)}, {account.failed:,} failed."


def _describe_metrics(run: Run) -> Iterator[str]:
    """Yield the metrics with their papers, and the models that compute them."""
    names: list[str] = []
    models: dict[str, str] = {}
    for estimate in _first_estimates(run):
        metric, signature = find_metric(estimate), estimate.signature
        if signature is None:
            continue
        key = signature.metric
        family = key.partition("(")[0] if metric is None else metric.family
        cited = _cite("sacrebleu") if key == "sacrebleu" else _cite(family)
        names.append(escape_latex(_NAMED.get(key, key)) + cited)
        found = {name: value for name, value in signature.fields if name in _MODELS}
        models |= {key: ", ".join(f"{name} {value}" for name, value in found.items())} if found else {}
    yield f"Metrics are {_join(dict.fromkeys(names))}."
    signatures = (est.signature for est in _first_estimates(run) if est.signature is not None)
    for line in dict.fromkeys(signature[SACREBLEU] for signature in signatures if SACREBLEU in signature):
        yield rf"The signature of sacreBLEU is \texttt{{{escape_latex(line)}}}."
    for key, model in models.items():
        yield f"{escape_latex(key)} uses {escape_latex(model)}."


def _first_estimates(run: Run) -> Iterator[Estimate]:
    """Yield an estimate of every metric, without parts of others."""
    for key in run.keys_in_order:
        if key.partition("/")[0] not in run.keys_in_order or "/" not in key:
            yield next(result[key] for result in run.values() if key in result)


def _describe_statistics(run: Run, comparison: Comparison | None) -> Iterator[str]:
    """Yield the intervals of values, and the tests of differences."""
    words = fmt.describe_intervals(est for result in run.values() for est in result.values())
    if words:
        yield f"Confidence intervals: {escape_latex(words)}."
    if comparison is None:
        return
    baseline, design = escape_latex(comparison.baseline), comparison.design
    test = escape_latex(describe_test(comparison)) + _cite("test:randomization")
    units = f"{design.clusters:,} {design.unit}"
    yield f"Differences to {baseline} were tested on {units} ({design.name} design) by the {test}."
    if comparison.tests > 1:
        how = "Holm's method" if comparison.adjusted_for else "the minP method of Westfall and Young"
        how += _cite("test:holm" if comparison.adjusted_for else "test:minp")
        panel = escape_latex(_join(comparison.panel))
        yield f"P-values of {panel} were adjusted for {comparison.tests} tests by {how}."
    yield f"The significance level is {comparison.alpha:g}."


def _describe_raters(agreement: Agreement) -> Iterator[str]:
    """Yield the number of ratings, and the agreement of raters with its interval."""
    yield f"Human ratings of {escape_latex(agreement.quality)} cover {agreement.rated:,} responses."
    if agreement.ceiling.reason is None:
        level = f"{100 * agreement.bootstrap.confidence:g}\\% CI"
        alphas = (
            f"{value_level} {fmt.show_fixed(value, 2)} ({level} "
            f"{escape_latex(fmt.show_interval(agreement.ceiling.alpha_interval[value_level], 2))})"
            for value_level, value in agreement.ceiling.alpha.items()
        )
        yield f"Krippendorff's alpha is {_join(alphas)}{_cite('alpha')}."


def _join(names: Iterable[str]) -> str:
    """Return names in a sentence: `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
