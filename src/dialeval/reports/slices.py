"""Reports of slices: in which parts of the rows a system is good or bad, for the terminal, papers and the report.

    FORMATS["md"](slices)           json, csv, md, latex, each a str
    console.print(lay_out(slices))  the terminal: for each field and metric a table of slices by systems
    write_where(block)              the section of the page: a line per slice that leads to its dialogues

The slices in which a system loses most come first. Marks are those of the summary, corrected for the tests of all
slices. `state_losses` has a sentence on where each system loses most, significant losses only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dialeval.analysis.alignment import align_dialogues
from dialeval.analysis.difference import Difference
from dialeval.analysis.slices import LEAST_DIALOGUES, Slice, Slices
from dialeval.analysis.values import find_better, find_metric
from dialeval.analysis.verdict import decide
from dialeval.core.fold import Estimate, Level
from dialeval.reports import formatting as fmt
from dialeval.reports import markup
from dialeval.reports.comparisons import choose_mark, run_to_percent
from dialeval.reports.comparisons import to_percent as scale
from dialeval.reports.documents import Document, Layout, Table, make_formats
from dialeval.reports.marks import Line, draw_slice_rows
from dialeval.reports.summary import Block
from dialeval.reports.tables import ARROWS, choose_decimals

ALL = "all rows"
MOST_TESTS = 100
"""Tests of slices that are made without being asked for; `dialeval compare --by` makes any number."""
_MOST_KEYS = 3
"""Metrics that are shown at once where none were named: those that differ most surely in some slice."""
_MOST_NAMED = 5


def to_percent(slices: Slices) -> Slices:
    """Return slices to be shown, with scores from 0 to 1 times 100."""
    shown = [
        replace(part, run=run_to_percent(part.run), comparison=part.comparison and scale(part.comparison))
        for part in slices.slices
    ]
    return replace(slices, whole=run_to_percent(slices.whole), slices=shown)


def to_document(slices: Slices, keys: Sequence[str] | None = None) -> Document:
    """Describe slices: where systems lose most, a table for each field and metric, and notes."""
    tables = [_make_table(slices, field, key) for field in slices.by for key in (slices.keys if keys is None else keys)]
    return Document(state_losses(slices), tables, list(list_notes(slices)))


def to_brief_document(slices: Slices) -> Document:
    """Describe slices by the metrics that differ most surely in some slice."""
    keys = choose_keys(slices)
    shown, more = to_document(slices, keys), [key for key in slices.keys if key not in keys]
    others = [f"Also in -f csv, -f json and to_pandas(): {fmt.list_some_names(more, _MOST_NAMED)}."] if more else []
    return Document(shown.sentences, shown.tables, [*others, *shown.notes])


def lay_out(slices: Slices) -> Layout:
    """Lay out the slices for a rich console, with the metrics that differ most surely in some slice."""
    return Layout(to_brief_document(slices))


FORMATS = make_formats(to_document)


def state_losses(slices: Slices) -> list[str]:
    """Return a sentence for each system on the slice in which it loses most; none without a significant loss.

    It is about the first metric of the panel with a loss, outcomes of whole dialogues first.
    """
    sentences = []
    outcomes = [key for key in slices.keys if is_outcome(slices, key)]
    for system in slices.whole:
        order = sorted(slices.keys, key=lambda key: key not in outcomes)
        if loss := next(filter(None, (slices.worst(system, [key]) for key in order)), None):
            names = [fmt.shorten(name) for name in (system, loss.by.baseline, loss.where.field, loss.where.label)]
            figure = f"{fmt.shorten(loss.by.key)} {fmt.show_rounded(loss.by.difference, loss.by.interval, signed=True)}"
            where = f"{names[0]} loses most to {names[1]} where {names[2]} is {names[3]}"
            sentences.append(f"{where}: {figure} ({describe_tests(slices)}).")
    return sentences


def describe_tests(slices: Slices) -> str:
    """Return the significance level, and the number of tests it was corrected for."""
    alpha, tests = slices.comparisons[0].alpha, slices.tests
    return f"significance level {alpha:g}, corrected for {markup.count(tests, 'test')} in all slices"


def list_notes(slices: Slices) -> Iterator[str]:
    """Yield what the marks mean, what was not tested and why, and which values depend on other rows."""
    if slices.comparisons:
        first = slices.comparisons[0]
        baseline = fmt.shorten(first.baseline)
        if any(row.significant for row in slices.differences):
            yield f"Against {baseline}: {fmt.MARKS} ({describe_tests(slices)})."
        else:
            yield f"No slice differs significantly from {baseline} ({describe_tests(slices)})."
        if first.untested:
            untested = fmt.list_some_names(first.untested, _MOST_NAMED)
            yield f"Not tested: {untested}; so many tests take long. `dialeval compare --by` tests all."
        yield "Sorted by loss: slices with the largest losses come first."
    reasons: dict[str, list[str]] = {}
    for part in slices.slices:
        if part.reason is not None:
            reasons.setdefault(part.reason, []).append(f"{part.field} {part.label}")
    for reason, where in reasons.items():
        yield f"Not tested: {fmt.list_some_names(where, _MOST_NAMED)} ({fmt.plain(reason)})."
    estimates = {key: next(result[key] for result in slices.whole.values() if key in result) for key in slices.keys}
    metrics = {key: find_metric(estimate) for key, estimate in estimates.items()}
    if conditioned := [key for key, metric in metrics.items() if metric is not None and metric.facts]:
        yield f"{fmt.list_some_names(conditioned, _MOST_NAMED)}: uses statistics of all rows, also within a slice."
    dialogue_keys = [key for key, estimate in estimates.items() if estimate.level is Level.DIALOGUE]
    if any(part.cuts_dialogues for part in slices.slices) and dialogue_keys:
        yield f"{fmt.list_some_names(dialogue_keys, _MOST_NAMED)}: of whole dialogues, those with a row in the slice."


def choose_keys(slices: Slices) -> list[str]:
    """Return the metrics that are shown at once: outcomes of whole dialogues, then the least p-values in some slice."""
    tested = [row for row in slices.differences if not math.isnan(row.adjusted_p)]
    least = {key: min((row.adjusted_p for row in tested if row.key == key), default=1.0) for key in slices.keys}
    first = sorted(slices.keys, key=lambda key: (not is_outcome(slices, key), least[key]))[:_MOST_KEYS]
    return sorted(first, key=lambda key: (not is_outcome(slices, key), slices.keys.index(key)))


def is_outcome(slices: Slices, key: str) -> bool:
    """Return whether a key is an outcome of whole dialogues, such as success."""
    estimates = [result[key] for result in slices.whole.values() if key in result]
    return find_better(slices.whole, key) is not None and any(est.level is Level.DIALOGUE for est in estimates)


def _make_table(slices: Slices, field: str, key: str) -> Table:
    """Return the table of a field and a metric: all rows, and a line per slice, worst first."""
    whole, decimals = slices.whole, choose_decimals(slices.whole, key)
    unit = next((part.unit for part in slices.slices), "rows")
    title = f"{fmt.shorten(key)}{ARROWS[find_better(whole, key)]} by {fmt.shorten(field)}"
    table = next(iter(whole.values())).table
    dialogues = 0 if table is None else len(table.offsets) - 1
    lines = [[ALL, f"{dialogues:,}", *(_make_cell(result.get(key), decimals, None) for result in whole.values())]]
    for part in slices.worst_first(field, key):
        cells = (_make_cell(part.estimate(name, key), decimals, part.difference(name, key)) for name in whole)
        lines.append([fmt.shorten(part.label), f"{part.dialogues:,}", *cells])
    return Table([title, unit, *map(fmt.shorten, whole)], lines)


def _make_cell(estimate: Estimate | None, decimals: int, row: Difference | None) -> str:
    if estimate is None:
        return fmt.MISSING
    mark = "" if row is None else choose_mark(row)
    spread = fmt.show_spread(estimate, decimals)
    return " ".join(filter(None, (fmt.show(estimate.mean, decimals), mark, f"({spread})" if spread else "")))


# Slices on the page: where a system lost, a line per slice that leads to its dialogues.


def write_where(block: Block) -> str:
    """Return the section of slices: the difference of each to the baseline with its interval, largest loss first."""
    slices, alone, content = block.slices, len(block.systems) == 1, ""
    key = "" if slices is None else next((key for key in (block.dialogue_key, *slices.keys) if key in slices.keys), "")
    if slices is None or not key:
        return ""
    decimals, sign = choose_decimals(slices.whole, key), -1.0 if find_better(slices.whole, key) == "lower" else 1.0
    kinds = []
    for field in slices.by:
        lines = []
        for number, part in enumerate(slices.slices):
            row, estimate = part.difference(block.system, key), part.estimate(block.systems[0], key)
            if part.field != field or estimate is None:
                continue
            if alone:
                value, interval, kind, dialogues = estimate.mean, None, "k", part.dialogues
            elif row is not None and not math.isnan(row.p) and part.comparison is not None:
                kind = {"better": "g", "worse": "b"}.get(decide(row), "k")
                dialogues = part.comparison.designs[block.system].clusters
                value, interval = row.difference, row.interval
            else:
                interval, kind, (value, dialogues) = None, "n", _measure_slice(part, block, key)
            if not math.isnan(value):
                sign_shown = "+" if not alone and value > 0 else ""
                shown = fmt.show_value(value, interval, True) if interval else sign_shown + fmt.show(value, decimals)
                line = Line(markup.name(part.label), value, interval, shown, f"#dialogues?slice={number}", kind)
                lines.append((line, markup.count(dialogues, part.unit.removesuffix("s"))))
                kinds.append(kind)
        lines = sorted(lines, key=lambda pair: sign * pair[0].value)
        content += f"<h3>{markup.name(field)}</h3>{draw_slice_rows(lines, drawn=not alone)}" if lines else ""
    about, note = f"{fmt.shorten(key)} of each part", ""
    if not alone:
        about = f"{fmt.shorten(block.system)} minus {fmt.shorten(block.systems[0])} on {fmt.shorten(key)}, likely range"
        clear, small = kinds.count("b") + kinds.count("g"), kinds.count("n")
        what = "No part is clear on its own" if not clear else f"{clear} clear" if clear > 1 else "One is clear"
        note = (
            f"{what} after correction for {markup.count(slices.tests, 'test')} in all parts. " if slices.tests else ""
        )
        few = f"with fewer than {LEAST_DIALOGUES} dialogues: not tested."
        note += f"{markup.count(small, 'part')} {few}" if small else ""
    below = markup.note(markup.text(note.strip())) if note else ""
    return markup.section("where", "Where", content + below, markup.text(about)) if content else ""


def _measure_slice(part: Slice, block: Block, key: str) -> tuple[float, int]:
    """Return the difference of a slice that is too small to be tested, and its dialogues."""
    first, system = block.systems[0], block.system
    if part.estimate(system, key) is None:
        return math.nan, 0
    if block.comparison is not None and block.comparison.designs[system].name == "unpaired":
        return part.run[system][key].mean - part.run[first][key].mean, part.dialogues
    values, counts = align_dialogues({name: part.run[name] for name in (first, system)}).measure(system, key)
    known = np.isfinite(values)
    return float(np.average(values[known], weights=counts[known])) if known.any() else math.nan, int(known.sum())
