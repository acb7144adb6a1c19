"""Agreement of judges about labels and pairs as tables, in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dialeval.reports.documents import Document, Printer, Table, describe_result
from dialeval.reports.formatting import plain, shorten, show_fixed, show_interval
from dialeval.stats.labels import STATISTICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval.analysis.labels import LabelAgreement, LabelFit, RateEstimate

_HEADS = ("agreement", "Cohen's kappa", "Gwet's AC1", "alpha", "ordinal alpha")
"""Of the statistics, in order."""


def to_document(agreement: LabelAgreement) -> Document:
    """Return a table of statistics, and a confusion matrix per metric."""
    rows = [
        [shorten(key), f"{scores.n:,}", *(show_rate(scores.statistics[name]) for name in STATISTICS)]
        for key, scores in agreement.metrics.items()
    ]
    tables, titles = [Table(["metric", "rows", *_HEADS], rows)], [f"Labels of {plain(agreement.quality)}"]
    names = [f"{label:g}" for label in agreement.labels]
    for key, scores in agreement.metrics.items():
        lines = [[name, *map(str, line)] for name, line in zip(names, scores.confusion, strict=True)]
        tables.append(Table(["human label", *names], lines))
        titles.append(f"Confusion matrix of {shorten(key)}: rows are human labels, columns the metric")
        if "tpr" in scores.statistics:
            tables.append(_make_rate_table(scores))
            titles.append(f"Errors of {shorten(key)}, and rates of yes without them")
        if scores.bias:
            tables.append(
                Table(["reply with", "change"], [[name, show_rate(each)] for name, each in scores.bias.items()])
            )
            titles.append(f"Bias of {shorten(key)}: change of its value less the human label, by one regression")
    notes = [f"{100 * agreement.level:g}% intervals over dialogues (jackknife, Student); alpha is Krippendorff's."]
    if agreement.split:
        notes.append(f"{agreement.split:,} rows without a majority of annotators are left out.")
    if agreement.excluded:
        notes.append(f"Not on the scale of the labels: {', '.join(map(shorten, agreement.excluded))}.")
    if agreement.panel is not None:
        size, judges = show_rate(agreement.panel), ", ".join(map(shorten, agreement.judges))
        what = f"an effective number of {size} independent judges ({judges})"
        notes.append(f"The {len(agreement.judges)} judges have {what}.")
    if any(scores.rates for scores in agreement.metrics.values()):
        notes.append(
            "Corrected rates (Rogan-Gladen) hold if the judge errs alike on all systems; `dialeval estimate` needs no "
            "such assumption (PPI++), but ratings of each system."
        )
    return Document([], tables, notes, titles=titles)


def _make_rate_table(scores: LabelFit) -> Table:
    lines = [
        [name, f"{scores.statistics[key].n:,}", show_rate(scores.statistics[key])]
        for key, name in (("tpr", "true positive rate (TPR)"), ("tnr", "true negative rate (TNR)"))
    ]
    for system, rates in scores.rates.items():
        for how, rate in (("as judged", rates.judged), ("corrected", rates.corrected)):
            lines.append([f"yes of {plain(system)}, {how}", f"{rate.n:,}", show_rate(rate)])
    return Table(["rate", "rows", "value"], lines)


LABELS = Printer(to_document)


def describe_preferences(preferences: Any) -> Document:
    """Return what a language model prefers, how far that depends on the order, and the ranking, if there is one."""
    missing = sum(preferences.missing.values())
    lines = {"verdict depends on the order (counted as a tie)": preferences.flips}
    notes = [f"{preferences.asked:,} pairs, each asked in both orders, by {plain(preferences.judge)}."]
    notes += [f"no verdict: {plain(reason)} ({count:,})" for reason, count in preferences.missing.items()]
    if preferences.agreement is not None:
        lines |= {
            "judge agrees with the human preference": preferences.agreement.judge,
            "longer response agrees with it": preferences.agreement.longer,
            "difference of the two": preferences.agreement.difference,
        }
        notes.append(f"{preferences.agreement.pairs:,} pairs with a human preference; a tie of the judge counts half.")
    rows = [[name, _show_percent(rate)] for name, rate in lines.items() if rate is not None]
    part = f"{missing:,} of {preferences.asked:,} ({100 * missing / preferences.asked:.1f}%)"
    rows.append(["pairs without a verdict", part])
    tables = [Table(["judge", plain(preferences.judge)], rows)]
    if preferences.ranking is not None:
        ranked = describe_result(preferences.ranking)
        tables, notes = [*tables, *ranked.tables], [*notes, *ranked.notes]
    return Document([plain(line) for line in preferences.warnings], tables, notes)


JUDGED = Printer(describe_preferences)


def make_attack_rows(attacks: Sequence[Any]) -> list[list[str]]:
    """Return a head and a row per attack on a language model."""
    rows = (
        [each.name, f"{each.rows:,}", *map(_show_percent, (each.changed, each.raised)), show_rate(each.change)]
        for each in attacks
    )
    return [["attack", "rows", "grade changed", "raised", "mean change"], *rows]


def show_rate(rate: RateEstimate | None) -> str:
    """Return a value with its interval."""
    return "-" if rate is None else f"{show_fixed(rate.value, 2)} ({show_interval(rate.interval, 2)})"


def _show_percent(rate: RateEstimate | None) -> str:
    if rate is None:
        return "-"
    low, high = (100 * end for end in rate.interval)
    return f"{100 * rate.value:.1f}% ({show_interval((low, high), 1)})"
