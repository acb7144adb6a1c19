"""What people would say, as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["md"](people)            json, csv, md, latex, each a str
    console.print(table(people))     the terminal

A line per system and a line per difference: the estimate with its interval, the one from ratings alone, and what the
judge was worth in ratings. JSON and CSV hold every digit. `plan_table` shows how many ratings a width takes.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from dialeval.analysis.people import ALPHA, People, PeopleFigure
from dialeval.reports import formats
from dialeval.reports.documents import Document, laid_out, text_formats
from dialeval.reports.figures import MISSING, plain, shorten, show_fixed, show_p, show_rounded
from dialeval.reports.formats import LaidOut, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from dialeval.analysis.rating_plan import RatingPlan

_CSV = (
    *("system", "baseline", "value", "low", "high", "error", "alone", "alone_low", "alone_high", "alone_error"),
    *("ratings", "clusters", "freedom", "worth", "agreement", "factor", "baseline_factor", "p", "adjusted_p"),
)


def document(people: People) -> Document:
    """Verdict, a line per system and per difference, and what the figures are."""
    return Document(verdict(people), list(tables(people)), notes(people))


def table(people: People) -> LaidOut:
    """The estimates for a rich console."""
    return laid_out(document(people))


def to_csv(people: People) -> str:
    """A line per system and per difference."""
    rows = []
    for each in (*people.figures, *people.differences):
        made = each.figure
        factors = [*made.factors, None, None][:2]
        rows.append(
            [
                *(each.system, each.baseline, made.value, *made.interval, made.error),
                *(made.alone, *made.alone_interval, made.alone_error, made.ratings, made.clusters, made.freedom),
                *(made.worth, each.agreement, *factors, made.p, each.adjusted_p),
            ]
        )
    return formats.csv_text(_CSV, rows)


FORMATS = text_formats(document, to_csv)


def verdict(people: People) -> list[str]:
    """What the differences say, in a sentence; none where there are no differences."""
    if not people.differences:
        return []
    ways: dict[str, list[str]] = {"more": [], "less": [], "cannot": []}
    for each in people.differences:
        sure = each.adjusted_p < ALPHA
        ways[("more" if each.figure.value > 0 else "less") if sure else "cannot"].append(plain(each.system))
    said = {
        "more": ("people would rate ", " higher than "),
        "less": ("people would rate ", " lower than "),
        "cannot": ("people do not tell ", " from "),
    }
    baseline = plain(people.baseline)
    parts = [f"{said[way][0]}{', '.join(names)}{said[way][1]}{baseline}" for way, names in ways.items() if names]
    tests = len(people.differences)
    how = f"{plain(people.quality)}, 5% level" + (f", corrected for {tests} tests" if tests > 1 else "")
    return [f"P{'; '.join(parts)[1:]} ({how})."]


def notes(people: People) -> list[str]:
    """What the figures are, a line each."""
    level = f"{100 * people.level:g}%"
    judge = " and ".join(plain(key) for key in people.by)
    whom = {
        "dialogues": f"other {people.unit} of the same kind",
        "run": "just the rows of this run",
    }[people.target]
    lines = [
        f"Quality {plain(people.quality)}; {level} intervals for what people would say of {whom}.",
    ]
    if judge:
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


def _head(people: People) -> list[str]:
    judged = ["estimate"] if people.by else []
    more = ["worth", "r"] if people.by else []
    return ["system", *judged, "ratings alone", "ratings", *more]


def tables(people: People) -> Iterator[Table]:
    """The systems, and the differences if there are any."""
    yield Table(_head(people), [_cells(each, people) for each in people.figures])
    if people.differences:
        head = ["difference", *_head(people)[1:-1], "p adjusted"] if people.by else ["difference", *_head(people)[1:]]
        yield Table(head, [_cells(each, people) for each in people.differences])


def _cells(each: PeopleFigure, people: People) -> list[str]:
    made, signed = each.figure, each.baseline is not None
    name = shorten(plain(each.system))
    cells = [name if each.baseline is None else f"{name} - {shorten(plain(each.baseline))}"]
    if people.by:
        cells.append(_figure(made.value, made.interval, signed))
    cells += [_figure(made.alone, made.alone_interval, signed), str(made.ratings)]
    if people.by:
        last = show_fixed(each.agreement, 2) if each.baseline is None else show_p(each.adjusted_p)
        cells += [MISSING if math.isnan(made.worth) else f"{made.worth:.0f}", last]
    return cells


def _figure(value: float, interval: tuple[float, float], signed: bool) -> str:
    if not all(map(math.isfinite, interval)):
        return show_rounded(value, None, signed)
    return show_rounded(value, interval, signed)


def plan_table(plan: RatingPlan) -> LaidOut:
    """How many ratings a width takes, for a rich console."""
    return LaidOut(partial(_plan_laid_out, plan))


def _plan_laid_out(plan: RatingPlan, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    head = ["system", "with the judge", "ratings alone", "of"]
    rows = [
        [shorten(plain(each.what)), _count(each.with_judge), _count(each.alone), f"{each.of:,}"] for each in plan.needed
    ]
    names, *columns = zip(head, *rows, strict=True)
    yield Text(f"Ratings for a {100 * plan.level:g}% interval of width {plan.width:g}:")
    yield Text()
    yield from formats.fitting_tables(names, columns, width)
    yield Text()
    yield Text(f"This holds if {'; '.join(plan.assumptions)}.")
    if any(each.with_judge is None for each in plan.needed):
        yield Text("more dialogues: ratings of all rows would not give that width.")


def _count(number: int | None) -> str:
    return "more dialogues" if number is None else f"{number:,}"
