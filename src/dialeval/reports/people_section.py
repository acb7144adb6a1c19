"""The section on people: what they would say of the systems, how far they agree, and how well metrics agree with them.

It shows what `dialeval.estimate`, `dialeval.agreement` and `dialeval.rank` found, in the words and tables that these
have in the terminal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dialeval.reports import agreement as agreements
from dialeval.reports import markup, people, rankings
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement
    from dialeval.analysis.annotators import Ceiling
    from dialeval.analysis.people import People
    from dialeval.analysis.ranking import Ranking
    from dialeval.reports.documents import Document


def people_section(found: People | None, agreement: Agreement | None, ranking: Ranking | None) -> Section | None:
    """Return the section; None where nobody was asked."""
    parts = []
    if found is not None:
        captions = ("Mean rating with its interval: ratings and judge together, and ratings alone.", "Differences.")
        shown = people.document(found)
        parts.append(_draw("What people would say", replace(shown, notes=[*shown.notes, *found.warnings]), captions))
    if agreement is not None:
        parts += ["<h3>How far raters agree</h3>", f"<p>{_agreement_of(agreement.ceiling)}</p>"]
        shown = replace(agreements.document(agreement), said=[])
        parts.append(_draw("How far metrics agree with them", shown, ["Correlation with people, with its interval."]))
    if ranking is not None:
        captions = ("Strengths, with their intervals.", "Wins between all pairs.")
        parts.append(_draw("Which one is preferred", rankings.document(ranking), captions))
    return Section("people", "People", "".join(parts)) if parts else None


def _draw(title: str, document: Document, captions: Sequence[str]) -> str:
    """Return a document as markup; the last of the captions is that of all further tables."""
    parts = [f"<h3>{title}</h3>", *(f"<p>{markup.text(line)}</p>" for line in document.said)]
    for number, table in enumerate(document.tables):
        lines = [
            markup.row(markup.text(name), markup.cells(*map(markup.text, cells), kind="figure"))
            for name, *cells in table.rows
        ]
        caption = markup.text(captions[min(number, len(captions) - 1)])
        parts.append(markup.table("people", caption, markup.heads(*map(markup.text, table.head)), lines))
    return "".join([*parts, *(markup.note(markup.text(line)) for line in document.notes)])


def _agreement_of(ceiling: Ceiling) -> str:
    if ceiling.reason is not None:
        return markup.text(f"That cannot be said: {ceiling.reason}.")
    alpha, one = ceiling.alpha["ordinal"], ceiling.one_against_others.get("pearson", math.nan)
    others = "" if math.isnan(one) else f"; one rater against the mean of the others, r = {one:.2f}"
    return f"Krippendorff's alpha is {alpha:.2f} over {ceiling.n:,} rows with two raters or more{others}."
