"""The section that shows where systems stand between floor and ceiling, for runs with anchors.

It is made from the shares that a run holds under `anchors`: 0% is the best floor, 100% the gold replies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dialeval.reports import markup
from dialeval.reports.figures import MISSING
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from dialeval.core.result import Run

WIDTH, HEIGHT = 90, 10


def standing(run: Run) -> Section | None:
    """The section; None for a run without anchors."""
    shares: Mapping[str, Mapping[str, Mapping[str, Any]]] = run.details.get("standing", {})
    keys = [key for key in run.keys_in_order if any(key in mine for mine in shares.values())]
    if not keys:
        return None
    lines = [
        f'<tr><th scope="row">{markup.name(key)}</th>'
        + "".join(_cell(mine.get(key)) for mine in shares.values())
        + "</tr>"
        for key in keys
    ]
    caption = "How far a system is on the way from the best floor (0%) to the gold replies (100%)."
    table = markup.table("standing", caption, markup.heads("Metric", *map(markup.name, shares)), lines)
    return Section("standing", "Between floor and ceiling", table)


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return f"<td>{MISSING}</td>"
    share = float(found["share"])
    filled = round(WIDTH * min(max(share, 0.0), 1.0), 1)
    kind = "bar below" if share < 0 else "bar"
    drawing = (
        f'<svg aria-hidden="true" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect class="trough" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<rect class="{kind}" width="{filled}" height="{HEIGHT}"/></svg>'
    )
    return f'<td><span class="share">{round(100 * share)}%</span>{drawing}</td>'
