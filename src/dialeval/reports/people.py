"""Mean human ratings as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["md"](people)            json, csv, md, latex, each a str
    console.print(table(people))     the terminal

A line per system and a line per difference: the estimate with its interval, the one from ratings alone, and what the
judge was worth in ratings. JSON and CSV hold every digit. `plan_table` shows how many ratings a width takes.
`people_section` is the section of the report on human evaluation: what `dialeval.estimate`, `dialeval.agreement` and
`dialeval.rank` found, in the words and tables that these have in the terminal.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from dialeval.analysis.people import ALPHA, People, PeopleFigure, RatingPlan
from dialeval.reports import agreement as agreements
from dialeval.reports import formats, markup, rankings
from dialeval.reports.documents import Document, laid_out, text_formats
from dialeval.reports.figures import MISSING, plain, shorten, show_fixed, show_p, show_rounded
from dialeval.reports.formats import LaidOut, Table
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement
    from dialeval.analysis.correlation import Ceiling
    from dialeval.analysis.ranking import Ranking

_CSV = (
    *("system", "baseline", "value", "low", "high", "error", "alone", "alone_low", "alone_high", "alone_error"),
    *("ratings", "clusters", "freedom", "worth", "agreement", "factor", "baseline_factor", "p", "adjusted_p"),
)


def document(people: People) -> Document:
    """Return the verdict, a line per system and per difference, and what the estimates are."""
    head = ["system", "estimate", "ratings alone", "ratings", "worth", "r"]
    if not people.by:
        head = ["system", "ratings alone", "ratings"]
    tables = [Table(head, [_cells(each, people) for each in people.figures])]
    if people.differences:
        head = ["difference", *head[1:-1], "p adjusted" if people.by else head[-1]]
        tables.append(Table(head, [_cells(each, people) for each in people.differences]))
    return Document(verdict(people), tables, _notes(people))


def table(people: People) -> LaidOut:
    """Lay the estimates out for a rich console."""
    return laid_out(document(people))


def to_csv(people: People) -> str:
    """Return a line per system and per difference."""
    rows = [
        [
            *(each.system, each.baseline, each.value, *each.interval, each.error),
            *(each.alone, *each.alone_interval, each.alone_error, each.ratings, each.clusters, each.freedom),
            *(each.worth, each.agreement, *[*each.factors, None, None][:2], each.p, each.adjusted_p),
        ]
        for each in (*people.figures, *people.differences)
    ]
    return formats.csv_text(_CSV, rows)


FORMATS = text_formats(document, to_csv)


def verdict(people: People) -> list[str]:
    """Return what the differences say, in a sentence; none where there are no differences."""
    sentences = {
        "higher": "people would rate {} higher than {}",
        "lower": "people would rate {} lower than {}",
        "equal": "people do not tell {} from {}",
    }
    names: dict[str, list[str]] = {way: [] for way in sentences}
    for each in people.differences:
        way = ("higher" if each.value > 0 else "lower") if each.adjusted_p < ALPHA else "equal"
        names[way].append(plain(each.system))
    baseline = plain(people.baseline)
    parts = [sentences[way].format(", ".join(own), baseline) for way, own in names.items() if own]
    tests = len(people.differences)
    how = f"{plain(people.quality)}, 5% level" + (f", corrected for {tests} tests" if tests > 1 else "")
    return [f"P{'; '.join(parts)[1:]} ({how})."] if parts else []


def _notes(people: People) -> list[str]:
    """Return what the estimates are, a line each."""
    whom = f"other {people.unit} of the same kind" if people.target == "dialogues" else "just the rows of this run"
    intervals = f"{100 * people.level:g}% intervals for what people would say of {whom}"
    lines = [f"Quality {plain(people.quality)}; {intervals}."]
    if people.by:
        judge = " and ".join(plain(key) for key in people.by)
        lines.append(
            f"estimate: ratings, and {judge} on all rows (prediction-powered). worth: as many ratings alone would give "
            "the same precision. r: correlation of judge and people."
        )
    if people.raters == "random":
        lines.append(f"Intervals are for other raters as well, by {people.named_raters} raters taken as random.")
    elif people.named_raters:
        count = f"these {people.named_raters} raters" if people.named_raters > 1 else "this one rater"
        lines.append(f"Raters are fixed: intervals are for what {count} would say, and not for other raters.")
    if not people.at_random:
        lines.append("NOT DRAWN AT RANDOM: figures are as if the rated rows were a random sample, which nobody knows.")
    return lines


def _cells(each: PeopleFigure, people: People) -> list[str]:
    name, signed = shorten(plain(each.system)), each.baseline is not None
    cells = [name if each.baseline is None else f"{name} - {shorten(plain(each.baseline))}"]
    if people.by:
        cells.append(_show(each.value, each.interval, signed))
    cells += [_show(each.alone, each.alone_interval, signed), str(each.ratings)]
    if people.by:
        last = show_p(each.adjusted_p) if signed else show_fixed(each.agreement, 2)
        cells += [MISSING if math.isnan(each.worth) else f"{each.worth:.0f}", last]
    return cells


def _show(value: float, interval: tuple[float, float], signed: bool) -> str:
    return show_rounded(value, interval if all(map(math.isfinite, interval)) else None, signed)


def plan_table(plan: RatingPlan) -> LaidOut:
    """Lay out for a rich console how many ratings a width takes."""
    rows = [
        [shorten(plain(each.what)), _count(each.with_judge), _count(each.alone), f"{each.of:,}"] for each in plan.needed
    ]
    notes = [f"This holds if {'; '.join(plan.assumptions)}."]
    if any(each.with_judge is None for each in plan.needed):
        notes.append("more dialogues: ratings of all rows would not give that width.")
    title = f"Ratings for a {100 * plan.level:g}% interval of width {plan.width:g}:"
    return laid_out(Document([title], [Table(["system", "with the judge", "ratings alone", "of"], rows)], notes))


def _count(number: int | None) -> str:
    return "more dialogues" if number is None else f"{number:,}"


def people_section(found: People | None, agreement: Agreement | None, ranking: Ranking | None) -> Section | None:
    """Return the section; None where nobody was asked."""
    parts: list[str] = []

    def add(title: str, shown: Document, *captions: str) -> None:
        parts.append(f"<h3>{title}</h3>{markup.document(shown, 'people', captions)}")

    if found is not None:
        shown = document(found)
        shown = replace(shown, notes=[*shown.notes, *found.warnings])
        mean = "Mean rating with its interval: ratings and judge together, and ratings alone."
        add("What people would say", shown, mean, "Differences.")
    if agreement is not None:
        parts.append(f"<h3>How far raters agree</h3><p>{_agreement_of(agreement.ceiling)}</p>")
        shown = replace(agreements.document(agreement), said=[])
        add("How far metrics agree with them", shown, "Correlation with people, with its interval.")
    if ranking is not None:
        strengths = "Strengths, with their intervals."
        add("Which one is preferred", rankings.document(ranking), strengths, "Wins between all pairs.")
    return Section("people", "People", "".join(parts)) if parts else None


def _agreement_of(ceiling: Ceiling) -> str:
    if ceiling.reason is not None:
        return markup.text(f"That cannot be said: {ceiling.reason}.")
    alpha, one = ceiling.alpha["ordinal"], ceiling.one_against_others.get("pearson", math.nan)
    others = "" if math.isnan(one) else f"; one rater against the mean of the others, r = {one:.2f}"
    return f"Krippendorff's alpha is {alpha:.2f} over {ceiling.n:,} rows with two raters or more{others}."
