"""The section on people: what they would say of the systems, how far they agree, and how well metrics agree with them.

It shows what `dialeval.estimate`, `dialeval.agreement` and `dialeval.rank` found, in the words and tables that these
have in the terminal.
"""

from __future__ import annotations

import math
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
    parts: list[str] = []

    def add(title: str, document: Document, *captions: str) -> None:
        parts.append(f"<h3>{title}</h3>{markup.document(document, 'people', captions)}")

    if found is not None:
        shown = people.document(found)
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
