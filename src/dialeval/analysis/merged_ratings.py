"""What several raters said, put together: how far they agree, who stands apart, and what to look at once more.

- Per quality: Krippendorff's alpha and one rater against the others (`annotators`).
- Per rater and quality: with oneself (rows that came twice: how often the same answer, how far apart on average), and
  with the others (the correlation with their mean, and by how much higher or lower on average).
- To adjudicate: rows of two raters or more, by spread: the largest difference of two raters as a share of the range of
  the quality, of the quality where it is largest.

A rater's first answer counts; the second one is there for consistency only. Where files hold one answer twice, the one
that comes last counts, and a warning says so. `estimate --human` has the same rule (`data.rows.ratings`). Adjudicated
rows have the answers of the adjudicator and no others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.analysis.annotators import Ceiling, ceiling
from dialeval.analysis.rating_store import SUFFIXES, stored_lines
from dialeval.core.display import Shown, listed
from dialeval.core.errors import SettingError
from dialeval.core.jsondata import null_for_nan
from dialeval.core.version import __version__
from dialeval.data.formats.records import Records
from dialeval.data.rows.pairs import TIE, possible_outcomes
from dialeval.data.rows.rating_lines import RatingLine, ScoreCheck, read_rating_lines

if TYPE_CHECKING:
    from dialeval.analysis.sampling import Sample

MOST = 20
"""Rows to adjudicate."""
_FEWEST = 3
"""Rows without which a correlation says nothing."""


@dataclass(frozen=True)
class RaterQuality:
    """What is known of a rater's answers to a question; NaN where nothing is."""

    rater: str
    quality: str
    rows: int
    twice: int
    """Rows that came twice."""
    same: float
    """The share of these with the same answer."""
    apart: float
    """The mean distance of the two answers."""
    shared: int
    """Rows that others rated, too."""
    correlation: float
    """Pearson's, with the mean of the others."""
    higher: float
    """Mean of the answers minus that of the others."""


@dataclass(frozen=True)
class Disputed:
    """A row on which raters differ."""

    id: str
    quality: str
    spread: float
    answers: Mapping[str, float]
    """By rater."""


@dataclass(frozen=True)
class MergedRatings(Shown):
    """What raters said, and how far they agree."""

    lines: Sequence[RatingLine]
    """The answers that count: one a rater and row."""
    ceilings: Mapping[str, Ceiling]
    """By quality."""
    raters: Sequence[RaterQuality]
    disputed: Sequence[Disputed]
    """Those with the largest spread first."""
    seconds: Mapping[str, float]
    """Median time of a rater for a row."""
    warnings: Sequence[str] = ()

    def __repr__(self) -> str:
        raters = sorted({line.rater for line in self.lines})
        return f"<MergedRatings: {len(self.lines):,} ratings by {listed(raters, 'rater')}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN is null."""
        plain: dict[str, Any] = null_for_nan(
            {
                "dialeval": __version__,
                "ratings": len(self.lines),
                "rows": len({line.id for line in self.lines}),
                "qualities": {name: asdict(each) for name, each in self.ceilings.items()},
                "raters": [asdict(each) for each in self.raters],
                "seconds": dict(self.seconds),
                "adjudicate": [asdict(each) for each in self.disputed],
                "warnings": list(self.warnings),
            }
        )
        return plain


def merge_ratings(
    files: Iterable[str | PathLike[str]],
    sample: Sample | None = None,
    adjudicated: Iterable[str | PathLike[str]] = (),
    most: int = MOST,
    check: ScoreCheck | None = None,
) -> MergedRatings:
    """The ratings in files of raters and databases of servers.

    With a `sample`, all of them are of its rows, or of the pairs that were shown; `check` is what their scores pass.
    """
    lines = _read(files, sample, check)
    final = [line for line in _read(adjudicated, sample, check) if not line.again]
    if not lines:
        raise SettingError("no ratings were given; name at least one file that a rater sent back")
    last: dict[tuple[str, str, bool], RatingLine] = {}
    twice: dict[str, int] = {}
    for line in lines:
        key = (line.id, line.rater, line.again)
        before = last[key].scores if key in last else {}
        if before and {**before, **line.scores} != {**line.scores, **before}:
            twice[line.rater] = twice.get(line.rater, 0) + 1
        last[key] = line._replace(scores={**before, **line.scores})
    warnings = [
        f"{rater} has {number} rating{'s'[: number != 1]} with other scores in a later line; the last one counts"
        for rater, number in twice.items()
    ]
    first = [line for line in last.values() if not line.again]
    alone = [line for line in last.values() if line.again and (line.id, line.rater, False) not in last]
    first += [line._replace(again=False) for line in alone]
    answers = _by_quality(first)
    raters = [each for quality in answers for each in _raters(quality, answers[quality], last)]
    settled = {line.id for line in final}
    times: dict[str, list[float]] = {}
    for line in lines:
        times.setdefault(line.rater, []).extend([] if line.seconds is None else [line.seconds])
    return MergedRatings(
        [*(line for line in first if line.id not in settled), *final],
        {quality: ceiling([np.array([*row.values()]) for row in rows.values()]) for quality, rows in answers.items()},
        raters,
        [each for each in _disputed(answers) if each.id not in settled][:most],
        {rater: float(np.median(own)) if own else math.nan for rater, own in times.items()},
        warnings,
    )


def _read(files: Iterable[str | PathLike[str]], sample: Sample | None, check: ScoreCheck | None) -> list[RatingLine]:
    sources: list[Any] = [
        Records(fspath(file), stored_lines(file)) if Path(file).suffix in SUFFIXES else file for file in files
    ]
    known = None if sample is None else {row.id for row in sample.rows} | sample.pairs().keys()
    return read_rating_lines(sources, known, check)


_Answers = dict[str, dict[str, dict[str, float]]]
"""By quality, row and rater."""


def _by_quality(lines: Iterable[RatingLine]) -> _Answers:
    answers: _Answers = {}
    for line in lines:
        for quality, value in line.scores.items():
            answers.setdefault(quality, {}).setdefault(line.id, {})[line.rater] = value
    return answers


def _raters(
    quality: str, rows: Mapping[str, Mapping[str, float]], lines: Mapping[tuple[str, str, bool], RatingLine]
) -> Iterable[RaterQuality]:
    for rater in dict.fromkeys(rater for row in rows.values() for rater in row):
        own = {identity: row[rater] for identity, row in rows.items() if rater in row}
        again = [
            abs(value - lines[identity, rater, True].scores[quality])
            for identity, value in own.items()
            if quality in getattr(lines.get((identity, rater, True)), "scores", {})
            and (identity, rater, False) in lines
        ]
        shared = {
            identity: [value for other, value in rows[identity].items() if other != rater]
            for identity in own
            if len(rows[identity]) > 1
        }
        mine = np.array([own[identity] for identity in shared])
        theirs = np.array([np.mean(values) for values in shared.values()])
        varies = len(mine) >= _FEWEST and np.ptp(mine) > 0 and np.ptp(theirs) > 0
        yield RaterQuality(
            rater,
            quality,
            len(own),
            len(again),
            float(np.mean(np.array(again) == 0)) if again else math.nan,
            float(np.mean(again)) if again else math.nan,
            len(shared),
            float(np.corrcoef(mine, theirs)[0, 1]) if varies else math.nan,
            float((mine - theirs).mean()) if shared else math.nan,
        )


def _disputed(answers: _Answers) -> list[Disputed]:
    """Rows on which raters differ, those where they differ most first."""
    found: dict[str, Disputed] = {}
    for quality, rows in answers.items():
        values = [value for row in rows.values() for value in row.values()]
        whole = max(values) - min(values)
        for identity, row in rows.items():
            spread = (max(row.values()) - min(row.values())) / whole if whole else 0.0
            if spread and (identity not in found or found[identity].spread < spread):
                found[identity] = Disputed(identity, quality, spread, dict(row))
    return sorted(found.values(), key=lambda each: -each.spread)


def rated_rows(merged: MergedRatings, sample: Sample | None, quality: str) -> list[dict[str, Any]]:
    """The ratings as rows that `meta`, `estimate` and `adem train` read, or, of pairs, as `rank` does.

    With a `sample` a row has its texts and its system. Of pairs the answers to one question are taken, `quality`.
    """
    known, pairs = ({}, {}) if sample is None else (sample.by_id(), sample.pairs())
    made = []
    for line in merged.lines:
        if sample is None or line.id in known:
            made.append({**known.get(line.id, {"id": line.id}), "rater": line.rater, "scores": line.scores})
            continue
        if quality not in line.scores:
            raise SettingError(f"{line.rater} did not compare {line.id} by {quality!r}; there is {list(line.scores)}")
        left, right = (known[row.id] for row in pairs[line.id])
        made.append(_pair_row(line, left, right, int(np.sign(line.scores[quality]))))
    return made


def _pair_row(line: RatingLine, left: Mapping[str, Any], right: Mapping[str, Any], outcome: int) -> dict[str, Any]:
    """Return a compared pair as a row for `rank`, with the name of the better system.

    A system that is called `a` or `b` is put on the side of its name, so that name and side mean the same.
    """
    if left["system"] in ("b", "B") or right["system"] in ("a", "A"):
        left, right, outcome = right, left, -outcome
    better = {1: left["system"], 0: TIE, -1: right["system"]}[outcome]
    if possible_outcomes(better, left["system"], right["system"]) != {outcome}:
        raise SettingError(
            f"the systems {left['system']!r} and {right['system']!r} cannot be told from sides and ties in a file of "
            "pairs; rename them and sample again"
        )
    return {
        "id": line.id,
        "dialog_id": left.get("dialog_id"),
        "a": left["system"],
        "b": right["system"],
        "better": better,
        "response_a": left["response"],
        "response_b": right["response"],
        "rater": line.rater,
    }
