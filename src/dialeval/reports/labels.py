"""Agreement of judges about labels and pairs as tables, in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dialeval.reports.documents import Document, LaidOut, Printer, Table, csv_text, laid_out, text_formats
from dialeval.reports.figures import plain, shorten, show_fixed, show_interval
from dialeval.stats.labels import STATISTICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dialeval.analysis.labels import LabelAgreement, PairAgreement, Rate

_HEADS = {
    "agreement": "agreement",
    "kappa": "Cohen's kappa",
    "ac1": "Gwet's AC1",
    "alpha": "alpha",
    "ordinal_alpha": "ordinal alpha",
}
_LISTED = 10
_LONGEST = 60


def document(found: LabelAgreement) -> Document:
    """Return a table of statistics, a confusion matrix per metric, and the strongest disagreements."""
    rows = [
        [shorten(key), f"{fit.n:,}", *(_show(fit.statistics[name]) for name in STATISTICS)]
        for key, fit in found.metrics.items()
    ]
    tables, titles = [Table(["metric", "rows", *_HEADS.values()], rows)], [f"Labels of {plain(found.quality)}"]
    names = [f"{label:g}" for label in found.labels]
    for key, fit in found.metrics.items():
        lines = [[name, *map(str, line)] for name, line in zip(names, fit.confusion, strict=True)]
        tables.append(Table(["human label", *names], lines))
        titles.append(f"Confusion matrix of {shorten(key)}: rows by people, columns by the metric")
    if found.disputes:
        lines = [
            [
                shorten(each.metric),
                *(f"{value:.2f}" for value in (each.human, each.value)),
                f"{each.gap:+.1f}",
                plain(each.system),
                plain(each.response)[:_LONGEST],
            ]
            for each in found.disputes[:_LISTED]
        ]
        tables.append(Table(["metric", "human", "metric value", "gap (sd)", "system", "response"], lines))
        titles.append("Strongest disagreements")
    notes = [f"{100 * found.level:g}% intervals over dialogues (jackknife, Student); alpha is Krippendorff's."]
    if found.split:
        notes.append(f"{found.split:,} rows without a majority of annotators are left out.")
    if found.excluded:
        notes.append(f"Not on the scale of the labels: {', '.join(map(shorten, found.excluded))}.")
    if found.panel is not None:
        notes.append(
            f"The {len(found.judges)} judges are worth {_show(found.panel)} judges with independent errors "
            f"({', '.join(map(shorten, found.judges))})."
        )
    return Document([], tables, notes, titles=titles)


def to_csv(found: LabelAgreement) -> str:
    """Return one line per metric and statistic."""
    lines = [
        (key, name, each.n, each.value, *each.interval)
        for key, fit in found.metrics.items()
        for name, each in fit.statistics.items()
    ]
    return csv_text(["metric", "statistic", "rows", "value", "low", "high"], lines)


def table(found: LabelAgreement) -> LaidOut:
    """Lay the agreement out for a rich console."""
    return laid_out(document(found))


FORMATS = text_formats(document, to_csv)


def pair_document(found: PairAgreement) -> Document:
    """Return how far a judge prefers what people prefer."""
    rows = [
        ["judge", _percent(found.judge)],
        ["longer response", _percent(found.longer)],
        ["judge less longer", _percent(found.difference)],
    ]
    notes = [f"{found.pairs:,} pairs of which people prefer one; a tie of the judge counts a half."]
    return Document([], [Table(["prefers what people prefer", "fraction"], rows)], notes)


def judged_document(found: Any) -> Document:
    """Return what a language model prefers, and how far that depends on the order."""
    rows = []
    if found.flips is not None:
        rows.append(["verdict depends on the order (counted as a tie)", _percent(found.flips)])
    if found.first is not None:
        rows.append(["single verdicts for the first place", _percent(found.first)])
    missing = sum(found.missing.values())
    rows.append(["pairs without a verdict", f"{missing:,} of {found.asked:,} ({100 * missing / found.asked:.1f}%)"])
    notes = [f"{found.asked:,} pairs, each asked in both orders, by {plain(found.judge)}."]
    notes += [f"no verdict: {plain(reason)} ({count:,})" for reason, count in found.missing.items()]
    tables = [Table(["judge", plain(found.judge)], rows)]
    if found.agreement is not None:
        agreed = pair_document(found.agreement)
        tables, notes = [*tables, *agreed.tables], [*notes, *agreed.notes]
    return Document([plain(line) for line in found.warnings], tables, notes)


def _judged_csv(found: Any) -> str:
    lines = [(pair.a, pair.b, pair.better, pair.flipped, pair.dialog_id) for pair in found.pairs]
    return csv_text(["a", "b", "better", "flipped", "dialog_id"], lines)


JUDGED = Printer(judged_document, _judged_csv)


def attack_rows(attacks: Sequence[Any]) -> list[list[str]]:
    """Return a head and a row per attack on a language model."""
    lines = [
        [
            each.name,
            f"{each.rows:,}",
            _percent(each.changed),
            "-" if each.raised is None else _percent(each.raised),
            "-" if each.change is None else f"{each.change.value:+.2f} {show_interval(each.change.interval, 2)}",
        ]
        for each in attacks
    ]
    return [["attack", "rows", "grade changed", "raised", "mean change"], *lines]


def _show(each: Rate) -> str:
    return f"{show_fixed(each.value, 2)} {show_interval(each.interval, 2)}"


def _percent(each: Rate) -> str:
    low, high = (100 * end for end in each.interval)
    return f"{100 * each.value:.1f}% [{low:.1f}, {high:.1f}]"
