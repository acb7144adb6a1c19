"""Where systems stand between floor and ceiling: 0% is the best floor, 100% the gold replies.

As a table below that of a run, and as a section of the report, both from the shares that a run with anchors holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dialeval.reports import markup
from dialeval.reports.figures import MISSING, plain, shorten
from dialeval.reports.formats import Table, latex, latex_lines, markdown, markdown_table, rich_table
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Group

    from dialeval.core.result import Run

TITLE = "between floor (0%) and ceiling (100%)"
WIDTH, HEIGHT = 90, 10


def table(run: Run) -> Group:
    """The shares for a rich console."""
    from rich.console import Group
    from rich.text import Text

    head, *lines = lines_of(run)
    return Group(Text(f"\n{TITLE}"), rich_table(zip(map(shorten, head), *lines, strict=True)))


def lines_of(run: Run) -> list[list[str]]:
    """A head with the systems, and a line per metric; nothing where the run has no anchors."""
    shares = run.details.get("anchors", {}).get("standing", {})
    rows = _rows(run, shares)
    lines = [
        [plain(key), *(MISSING if share is None else _percent(share) for share in row)] for key, row in rows.items()
    ]
    return [["metric", *map(plain, shares)], *lines] if rows else []


def to_markdown(run: Run) -> str:
    """The shares as a table of their own."""
    return "\n" + markdown_table(_titled(run), markdown)


def to_latex(run: Run) -> str:
    """The shares as a tabular of their own."""
    titled = _titled(run)
    return "\n".join(["", *latex_lines(len(titled.head), titled, figure=latex), ""])


FORMATS: Mapping[str, Callable[[Run], str]] = {"md": to_markdown, "latex": to_latex}
"""The formats in which the shares stand below the table of a run; JSON holds them among its details."""


def standing(run: Run) -> Section | None:
    """The section of the report; None for a run without anchors."""
    shares = run.details.get("standing", {})
    rows = _rows(run, shares)
    if not rows:
        return None
    lines = [markup.row(markup.name(key), markup.cells(*map(_bar, row))) for key, row in rows.items()]
    caption = "How far a system is on the way from the best floor (0%) to the gold replies (100%)."
    drawn = markup.table("standing", caption, markup.heads("Metric", *map(markup.name, shares)), lines)
    return Section("standing", "Between floor and ceiling", drawn)


def _rows(run: Run, shares: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, list[float | None]]:
    """The share of every system, or None, under each key that some system has a share for."""
    keys = [key for key in run.keys_in_order if any(key in by_key for by_key in shares.values())]
    return {key: [float(by_key[key]["share"]) if key in by_key else None for by_key in shares.values()] for key in keys}


def _titled(run: Run) -> Table:
    head, *lines = lines_of(run)
    return Table([f"{head[0]}, {TITLE}", *head[1:]], lines)


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{round(100 * share)}%"


def _bar(share: float | None) -> str:
    if share is None:
        return MISSING
    filled = round(WIDTH * min(max(share, 0.0), 1.0), 1)
    kind = "bar below" if share < 0 else "bar"
    return (
        f'<span class="share">{_percent(share)}</span><svg aria-hidden="true" width="{WIDTH}" height="{HEIGHT}">'
        f'<rect class="trough" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<rect class="{kind}" width="{filled}" height="{HEIGHT}"/></svg>'
    )
