"""Agreement of judges about labels and pairs as tables, in every format."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from dialeval.reports.documents import Document, Printer, Table
from dialeval.reports.formatting import plain, shorten, show_fixed, show_interval
from dialeval.stats.labels import STATISTICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval.analysis.labels import LabelAgreement, RateEstimate

_HEADS = ("agreement", "Cohen's kappa", "Gwet's AC1", "alpha", "ordinal alpha")
"""Of the statistics, in order."""


def to_document(found: LabelAgreement) -> Document:
    """Return a table of statistics, and a confusion matrix per metric."""
    rows = [
        [shorten(key), f"{fit.n:,}", *(_show(fit.statistics[name]) for name in STATISTICS)]
        for key, fit in found.metrics.items()
    ]
    tables, titles = [Table(["metric", "rows", *_HEADS], rows)], [f"Labels of {plain(found.quality)}"]
    names = [f"{label:g}" for label in found.labels]
    for key, fit in found.metrics.items():
        lines = [[name, *map(str, line)] for name, line in zip(names, fit.confusion, strict=True)]
        tables.append(Table(["human label", *names], lines))
        titles.append(f"Confusion matrix of {shorten(key)}: rows are human labels, columns the metric")
    notes = [f"{100 * found.level:g}% intervals over dialogues (jackknife, Student); alpha is Krippendorff's."]
    if found.split:
        notes.append(f"{found.split:,} rows without a majority of annotators are left out.")
    if found.excluded:
        notes.append(f"Not on the scale of the labels: {', '.join(map(shorten, found.excluded))}.")
    if found.panel is not None:
        notes.append(
            f"The {len(found.judges)} judges have an effective number of {_show(found.panel)} independent judges "
            f"({', '.join(map(shorten, found.judges))})."
        )
    return Document([], tables, notes, titles=titles)


LABELS = Printer(to_document)


def describe_preferences(found: Any) -> Document:
    """Return what a language model prefers, how far that depends on the order, and the ranking, if there is one."""
    missing = sum(found.missing.values())
    lines = {"verdict depends on the order (counted as a tie)": found.flips}
    notes = [f"{found.asked:,} pairs, each asked in both orders, by {plain(found.judge)}."]
    notes += [f"no verdict: {plain(reason)} ({count:,})" for reason, count in found.missing.items()]
    if found.agreement is not None:
        lines |= {
            "judge agrees with the human preference": found.agreement.judge,
            "longer response agrees with it": found.agreement.longer,
            "difference of the two": found.agreement.difference,
        }
        notes.append(f"{found.agreement.pairs:,} pairs with a human preference; a tie of the judge counts half.")
    rows = [[name, _show_percent(each)] for name, each in lines.items() if each is not None]
    rows.append(["pairs without a verdict", f"{missing:,} of {found.asked:,} ({100 * missing / found.asked:.1f}%)"])
    tables = [Table(["judge", plain(found.judge)], rows)]
    if found.ranking is not None:
        ranked = resolve_name(found.ranking.document_maker)(found.ranking)
        tables, notes = [*tables, *ranked.tables], [*notes, *ranked.notes]
    return Document([plain(line) for line in found.warnings], tables, notes)


JUDGED = Printer(describe_preferences)


def make_attack_rows(attacks: Sequence[Any]) -> list[list[str]]:
    """Return a head and a row per attack on a language model."""
    lines = []
    for each in attacks:
        raised = "-" if each.raised is None else _show_percent(each.raised)
        lines.append([each.name, f"{each.rows:,}", _show_percent(each.changed), raised, _show(each.change)])
    return [["attack", "rows", "grade changed", "raised", "mean change"], *lines]


def _show(each: RateEstimate | None) -> str:
    return "-" if each is None else f"{show_fixed(each.value, 2)} {show_interval(each.interval, 2)}"


def _show_percent(each: RateEstimate) -> str:
    low, high = (100 * end for end in each.interval)
    return f"{100 * each.value:.1f}% [{low:.1f}, {high:.1f}]"
