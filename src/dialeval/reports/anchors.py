"""Where systems stand between floor and ceiling, as a table: 0% is the best floor, 100% the gold replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.reports.figures import MISSING, plain, shorten
from dialeval.reports.tables import _latex, _markdown, _table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Group

    from dialeval.core.result import Run

TITLE = "between floor (0%) and ceiling (100%)"


def table(run: Run) -> Group:
    """The shares for a rich console."""
    from rich.console import Group
    from rich.text import Text

    head, *lines = lines_of(run)
    shown = [list(map(shorten, head)), *lines]
    return Group(Text(f"\n{TITLE}"), _table(list(zip(*shown, strict=True))))


def lines_of(run: Run) -> list[list[str]]:
    """A head with the systems, and a line per metric; nothing where the run has no anchors."""
    shares = run.details.get("anchors", {}).get("standing", {})
    keys = [key for key in run.keys_in_order if any(key in by for by in shares.values())]
    if not keys:
        return []
    cells = [[plain(key), *(_percent(by.get(key)) for by in shares.values())] for key in keys]
    return [["metric", *map(plain, shares)], *cells]


def to_markdown(run: Run) -> str:
    """The shares as a table of their own."""
    head, *lines = lines_of(run)
    rows = [[f"{head[0]}, {TITLE}", *head[1:]], *lines]
    drawn = [f"| {' | '.join(map(_markdown, cells))} |\n" for cells in rows]
    return "".join(["\n", drawn[0], f"| --- |{' ---: |' * (len(head) - 1)}\n", *drawn[1:]])


def to_latex(run: Run) -> str:
    """The shares as a tabular of their own."""
    head, *lines = lines_of(run)
    drawn = [" & ".join(map(_latex, cells)) + r" \\" for cells in ([f"{head[0]}, {TITLE}", *head[1:]], *lines)]
    frame = (r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}", r"\toprule"), (r"\bottomrule", r"\end{tabular}")
    return "\n".join(["", *frame[0], drawn[0], r"\midrule", *drawn[1:], *frame[1], ""])


FORMATS: Mapping[str, Callable[[Run], str]] = {"md": to_markdown, "latex": to_latex}
"""The formats in which the shares stand below the table of a run; JSON holds them among its details."""


def _percent(found: Mapping[str, float] | None) -> str:
    return MISSING if found is None else f"{round(100 * found['share'])}%"
