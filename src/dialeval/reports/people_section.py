"""The section on people: what they would say of the systems, how far they agree, and how well metrics agree with them.

It shows what `dialeval.estimate`, `dialeval.agreement` and `dialeval.rank` found, in the words and tables that these
have in the terminal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dialeval.reports import agreement as agreements
from dialeval.reports import markup, people, rankings
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement
    from dialeval.analysis.annotators import Ceiling
    from dialeval.analysis.people import People
    from dialeval.analysis.ranking import Ranking
    from dialeval.reports.formats import Table


def people_section(found: People | None, agreement: Agreement | None, ranking: Ranking | None) -> Section | None:
    """The section; None where nobody was asked."""
    parts = []
    if found is not None:
        parts.append("<h3>What people would say</h3>")
        parts += [f"<p>{markup.text(line)}</p>" for line in people.verdict(found)]
        captions = ("Mean rating with its interval: ratings and judge together, and ratings alone.", "Differences.")
        parts += [_drawn(each, caption) for each, caption in zip(people.tables(found), captions, strict=False)]
        parts += _notes([*people.notes(found), *found.warnings])
    if agreement is not None:
        parts += ["<h3>How far raters agree</h3>", f"<p>{_agreement_of(agreement.ceiling)}</p>"]
        parts.append("<h3>How far metrics agree with them</h3>")
        parts += [_drawn(each, "Correlation with people, with its interval.") for each in agreements.titled(agreement)]
        parts += _notes(agreements.notes(agreement))
    if ranking is not None:
        parts.append("<h3>Which one is preferred</h3>")
        captions = ("Strengths, with their intervals.", "Wins between all pairs.")
        parts += [_drawn(each, caption) for each, caption in zip(rankings.tables(ranking), captions, strict=True)]
        parts += _notes(rankings.notes(ranking))
    return Section("people", "People", "".join(parts)) if parts else None


def _drawn(table: Table, caption: str) -> str:
    lines = [
        markup.row(markup.text(name), markup.cells(*map(markup.text, cells), kind="figure"))
        for name, *cells in table.rows
    ]
    heads = markup.heads(*map(markup.text, table.head))
    return markup.table("people", markup.text(caption), heads, lines)


def _notes(lines: Iterable[str]) -> list[str]:
    return [markup.note(markup.text(line)) for line in lines]


def _agreement_of(ceiling: Ceiling) -> str:
    if ceiling.reason is not None:
        return markup.text(f"That cannot be said: {ceiling.reason}.")
    alpha, one = ceiling.alpha["ordinal"], ceiling.one_against_others.get("pearson", math.nan)
    others = "" if math.isnan(one) else f"; one rater against the mean of the others, r = {one:.2f}"
    return f"Krippendorff's alpha is {alpha:.2f} over {ceiling.n:,} rows with two raters or more{others}."
