"""Rating lines: what single raters said of rows that were drawn, as it comes back from them.

    {"id": "k3fq8w2a", "rater": "ann", "scores": {"overall": 4, "fluent": 5}, "seconds": 12.3, "comment": "..."}

`id`, `rater` and `scores` are there; `again` is true where the rater met the row for the second time. A rater gives one
value for each quality. The first answer counts and one with `again` only shows how consistent the rater is; where an
answer was given several times, the last one counts (`merged_ratings`, `data.rows.ratings`). Files are those of
`data.rows.reading`. Every fault of every file is found before one is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

from dialeval.data.formats.opening import PathSource
from dialeval.data.formats.records import FieldNames, Records, kind_of
from dialeval.data.rows.fields import FieldReader
from dialeval.data.rows.ratings import is_again, scores_of
from dialeval.data.rows.reading import read_objects

_REMEDY = "give what raters sent back: .jsonl, .json, .csv, .tsv, or the .sqlite of `dialeval rate serve`"

ScoreCheck: TypeAlias = Callable[[str, Mapping[str, float]], Sequence[str]]
"""Returns what is wrong with the scores of the row with an id."""


class RatingLine(NamedTuple):
    """What one rater said of one row."""

    id: str
    rater: str
    scores: dict[str, float]
    again: bool = False
    comment: str = ""
    seconds: float | None = None


def read_rating_lines(
    sources: Iterable[PathSource | Records], known: Collection[str] | None = None, check: ScoreCheck | None = None
) -> list[RatingLine]:
    """Return the ratings in files, or in lists that were read already.

    Args:
        sources: The files or lists.
        known: The ids of what was to be rated; None: any.
        check: What scores must pass; None: any numbers will do.
    """
    read = partial(_read_lines, known=known, check=check)
    return read_objects(sources, "ratings", FieldNames(), read, _REMEDY)


def _read_lines(
    source: Records, _name: str, known: Collection[str] | None, check: ScoreCheck | None
) -> list[RatingLine]:
    reader = FieldReader(source.where, FieldNames(), source.faults)
    lines = []
    for reader.line, row in source.rows:
        if not isinstance(row, dict):
            reader.fault(f"the line is {kind_of(row)}", "make it an object with id, rater and scores")
            continue
        before = len(reader.faults)
        identity, rater = reader.identifier(row, "id"), reader.identifier(row, "rater")
        scores = scores_of(reader, row, "scores")
        if identity is None or rater is None:
            reader.fault("has no id" if identity is None else "has no rater", "say what was rated, and by whom")
            continue
        if known is not None and identity not in known:
            reader.fault(f"the id {identity!r:.40} is of no row that was drawn", "give the ratings of this sample")
        if not scores and len(reader.faults) == before:
            reader.fault("has no scores", 'add them: "scores": {"overall": 4}')
        for quality, values in scores.items():
            if len(values) > 1:
                reader.fault(f"scores.{quality} holds {len(values)} values", "give one; a line is of one rater")
        given = {quality: float(values[0]) for quality, values in scores.items()}
        if check is not None and len(reader.faults) == before:
            for what in check(identity, given):
                reader.fault(what, "name the form that was asked (--form), or accept any numbers (--any-scores)")
        comment, seconds = (row.get(name) for name in ("comment", "seconds"))
        lines.append(
            RatingLine(
                identity,
                rater,
                given,
                is_again(row),
                comment if isinstance(comment, str) else "",
                float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e9 else None,
            )
        )
    source.raise_faults()
    return lines
