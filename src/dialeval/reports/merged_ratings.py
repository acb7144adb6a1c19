"""What raters said, as tables: how far they agree, each rater, and the rows on which they differ.

FORMATS["md"](merged)            json, md, each a str
console.print(table(merged))     the terminal
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from dialeval.reports import formats
from dialeval.reports.documents import Document, laid_out, to_markdown
from dialeval.reports.figures import MISSING, plain, shorten, show_fixed
from dialeval.reports.formats import LaidOut, Table

if TYPE_CHECKING:
    from dialeval.analysis.merged_ratings import MergedRatings

_NOTES = (
    "alpha: Krippendorff's, of ordered values (ordinal); 1 is perfect, 0 is chance. r: one rater against the mean of "
    "the others. same, apart: rows that came twice, with the same answer, and how far apart on average. higher: than "
    "the others, on average."
)


def document(merged: MergedRatings) -> Document:
    """Return how much was rated, the tables, and what the columns are."""
    raters, rows = ({getattr(line, name) for line in merged.lines} for name in ("rater", "id"))
    said = f"{len(merged.lines)} ratings of {len(rows)} rows by {len(raters)} raters."
    return Document([said], list(_tables(merged)), [_NOTES])


def table(merged: MergedRatings) -> LaidOut:
    """Lay the tables out for a rich console."""
    return laid_out(document(merged))


FORMATS: Mapping[str, Callable[[MergedRatings], str]] = {
    "json": formats.to_json,
    "md": lambda merged: to_markdown(document(merged)),
}


def _tables(merged: MergedRatings) -> Iterator[Table]:
    ceilings = [
        [
            _name(quality),
            _show(each.alpha.get("ordinal", math.nan)),
            _show(each.one_against_others.get("pearson", math.nan)),
            str(each.n),
            "-".join(map(str, dict.fromkeys(each.annotators))) if each.n else MISSING,
        ]
        for quality, each in merged.ceilings.items()
    ]
    yield Table(["quality", "alpha", "r", "rows with two or more", "raters a row"], ceilings)
    several = len(merged.ceilings) > 1
    raters = [
        [
            _name(each.rater),
            *([_name(each.quality)] if several else []),
            str(each.rows),
            str(each.twice),
            MISSING if math.isnan(each.same) else f"{100 * each.same:.0f}%",
            _show(each.apart),
            _show(each.correlation),
            MISSING if math.isnan(each.higher) else f"{each.higher:+.2f}",
            _show(merged.seconds.get(each.rater, math.nan), 0),
        ]
        for each in merged.raters
    ]
    columns = ["rows", "twice", "same", "apart", "r", "higher", "seconds"]
    yield Table(["rater", *(["quality"] if several else []), *columns], raters)
    if merged.disputed:
        disputed = [
            [_name(each.id), _name(each.quality), ", ".join(f"{_name(r)} {v:g}" for r, v in each.answers.items())]
            for each in merged.disputed
        ]
        yield Table(["to adjudicate", "quality", "answers"], disputed)


def _name(name: str) -> str:
    return shorten(plain(name))


def _show(value: float, decimals: int = 2) -> str:
    return MISSING if math.isnan(value) else show_fixed(value, decimals)
