"""Merge the ratings of several raters: inter-annotator agreement, each rater, and the rows to adjudicate.

- Per quality: Krippendorff's alpha (`correlation.measure_ceiling`).
- Per rater and quality: intra-rater agreement over repeated rows (the fraction of the same answers), the correlation
  with the mean of the other raters, and the mean difference to it.
- To adjudicate: rows of two raters or more, by spread: the largest difference of two raters as a fraction of the range
  of the quality, of the quality where it is largest.

A rater's first answer counts; the second one is there for consistency only. Where files hold one answer twice, the one
that comes last counts, with a warning. `estimate --human` has the same rule (`io.ratings`). Adjudicated
rows have the answers of the adjudicator and no others.

Answers to the gold questions of the `form` only decide whose ratings count: those of a rater below the pass mark are
left out, with a warning.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from dialeval.core.display import Displayable, count_names
from dialeval.core.errors import SettingError
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.human.form import Form
from dialeval.human.store import SUFFIXES, read_stored_lines
from dialeval.io.opening import PathSource
from dialeval.io.ratings import TIE, RatingLine, ScoreCheck, list_outcomes, read_rating_lines
from dialeval.io.rows import Records
from dialeval.stats.correlation import Ceiling, measure_ceiling

if TYPE_CHECKING:
    from dialeval.human.sample_files import Sample


MOST = 20
"""Rows to adjudicate."""
_FEWEST = 3
"""The fewest rows for a correlation."""


class RaterQuality(Struct, frozen=True, kw_only=True):
    """The consistency of a rater's answers to a question; NaN where it is not known."""

    rater: str
    quality: str
    rows: int
    repeated: int
    """Rows that the rater rated twice."""
    intra_rater_agreement: float
    """The fraction of these with the same answer."""
    shared: int
    """Rows that others rated, too."""
    correlation: float
    """Pearson's, with the mean of the others."""
    higher: float
    """Mean of the answers minus that of the others."""


class DisputedRow(Struct, frozen=True):
    """A row on which raters differ."""

    id: str
    quality: str
    spread: float
    answers: Mapping[str, float]
    """By rater."""


class MergedRatings(
    Displayable,
    Record,
    frozen=True,
    kw_only=True,
    rename={"version": "dialeval", "ceilings": "qualities", "disputed": "adjudicate"},
):
    """The ratings that count, and how far raters agree."""

    version: str = __version__
    lines: Sequence[RatingLine]
    """One for each rater and row."""
    ceilings: Mapping[str, Ceiling]
    """By quality."""
    raters: Sequence[RaterQuality]
    seconds: Mapping[str, float]
    """Median time of a rater for a row."""
    uncertain: Mapping[str, int]
    """Answers "uncertain" by rater, which give no score."""
    gold: Mapping[str, tuple[int, int]]
    """By rater: gold questions with a right answer, and all that were answered."""
    disputed: Sequence[DisputedRow]
    """Those with the largest spread first."""
    warnings: Sequence[str]

    def __repr__(self) -> str:
        raters = sorted({line.rater for line in self.lines})
        return f"<MergedRatings: {len(self.lines):,} ratings by {count_names(raters, 'rater')}>"

    def to_dict(self) -> JsonObject:
        """Return plain data for JSON, with the numbers of ratings and rows instead of the ratings."""
        plain = super().to_dict()
        del plain["lines"]
        return {**plain, "ratings": len(self.lines), "rows": len({line.id for line in self.lines})}


_Lines = dict[tuple[str, str, bool], RatingLine]
"""By row, rater and whether it is a second answer."""


def merge_ratings(
    files: Iterable[str | PathLike[str]],
    sample: Sample | None = None,
    adjudicated: Iterable[str | PathLike[str]] = (),
    most: int = MOST,
    check: ScoreCheck | None = None,
    form: Form | None = None,
) -> MergedRatings:
    """Merge the ratings in files of raters and databases of servers.

    With a `sample`, all of them are of its rows, of the pairs that were shown, or of gold questions of the `form`;
    `check` is what their scores pass.
    """
    form = form or Form()
    ids = None if sample is None else {row.id for row in sample.responses} | sample.pairs().keys()
    lines = _read(files, ids if ids is None else ids | {gold.id for gold in form.gold}, check)
    final = [line for line in _read(adjudicated, ids, check) if not line.again]
    if not lines:
        raise SettingError("no ratings were given; name at least one file that a rater sent back")
    lines, graded, failed = _grade(lines, form)
    last, warnings = _keep_last(lines)
    first = [line for line in last.values() if not line.again]
    first += [line._replace(again=False) for (*key, again), line in last.items() if again and (*key, False) not in last]
    answers: _Answers = {}
    for line in first:
        for quality, value in line.scores.items():
            answers.setdefault(quality, {}).setdefault(line.id, {})[line.rater] = value
    settled = {line.id for line in final}
    times: dict[str, list[float]] = {line.rater: [] for line in lines}
    for line in lines:
        times[line.rater] += [] if line.seconds is None else [line.seconds]
    return MergedRatings(
        lines=[*(line for line in first if line.id not in settled), *final],
        ceilings={
            name: measure_ceiling([np.array([*row.values()]) for row in rows.values()])
            for name, rows in answers.items()
        },
        raters=[each for quality, rows in answers.items() for each in _measure_raters(quality, rows, last)],
        seconds={rater: float(np.median(waits)) if waits else math.nan for rater, waits in times.items()},
        uncertain=Counter(line.rater for line in first for _ in line.uncertain),
        gold=graded,
        disputed=[each for each in _find_disputed(answers) if each.id not in settled][:most],
        warnings=[*failed, *warnings],
    )


def _keep_last(lines: Sequence[RatingLine]) -> tuple[_Lines, list[str]]:
    """Return the last of equal answers, with the qualities that only an earlier one has, and warnings."""
    last: _Lines = {}
    changed: Counter[str] = Counter()
    for line in lines:
        key = (line.id, line.rater, line.again)
        before = last[key].scores if key in last else {}
        changed[line.rater] += any(before.get(quality, value) != value for quality, value in line.scores.items())
        last[key] = line._replace(scores={**before, **line.scores})
    counted = {rater: "1 rating" if number == 1 else f"{number} ratings" for rater, number in changed.items() if number}
    later = "with other scores in a later line; the last one counts"
    return last, [f"{rater} has {ratings} {later}" for rater, ratings in counted.items()]


def _grade(lines: Sequence[RatingLine], form: Form) -> tuple[list[RatingLine], dict[str, tuple[int, int]], list[str]]:
    """Return the lines that count, by rater the gold questions with a right answer and all of them, and warnings."""
    gold = {question.id: question for question in form.gold}
    right: dict[str, dict[str, bool]] = {}
    for line in lines:
        if line.id in gold and not line.again:
            right.setdefault(line.rater, {})[line.id] = gold[line.id].is_right(line.scores)
    graded = {rater: (sum(answers.values()), len(answers)) for rater, answers in right.items()}
    failed = {rater for rater, (passed, asked) in graded.items() if passed < form.pass_mark * asked}
    rated = Counter(line.rater for line in lines if line.id not in gold)
    warnings = [
        f"{rater} answered {graded[rater][0]} of {graded[rater][1]} gold questions right, below the pass mark of "
        f"{form.pass_mark:.0%}; {rated[rater]} ratings are left out"
        for rater in sorted(failed)
    ]
    if gold and (ungraded := sorted(rated.keys() - graded.keys())):
        warnings.append(f"{', '.join(ungraded)} answered no gold question; the ratings count")
    return [line for line in lines if line.id not in gold and line.rater not in failed], graded, warnings


def _read(
    files: Iterable[str | PathLike[str]], ids: Collection[str] | None, check: ScoreCheck | None
) -> list[RatingLine]:
    sources: list[PathSource | Records] = [
        Records(fspath(file), read_stored_lines(file)) if Path(file).suffix in SUFFIXES else file for file in files
    ]
    return read_rating_lines(sources, ids, check)


_Answers = dict[str, dict[str, dict[str, float]]]
"""By quality, row and rater."""


def _measure_raters(quality: str, rows: Mapping[str, Mapping[str, float]], lines: _Lines) -> Iterable[RaterQuality]:
    """Yield the consistency of each rater's answers to a question."""
    for rater in dict.fromkeys(rater for row in rows.values() for rater in row):
        answered = {identity: row[rater] for identity, row in rows.items() if rater in row}
        repeated = [row for row in answered if (row, rater, False) in lines and (row, rater, True) in lines]
        seconds = {row: lines[row, rater, True].scores.get(quality) for row in repeated}
        again = np.array([abs(answered[row] - second) for row, second in seconds.items() if second is not None])
        shared = [identity for identity in answered if len(rows[identity]) > 1]
        mine = np.array([answered[identity] for identity in shared])
        others = ([value for name, value in rows[identity].items() if name != rater] for identity in shared)
        theirs = np.array([np.mean(values) for values in others])
        varies = len(mine) >= _FEWEST and np.ptp(mine) > 0 and np.ptp(theirs) > 0
        yield RaterQuality(
            rater=rater,
            quality=quality,
            rows=len(answered),
            repeated=len(again),
            intra_rater_agreement=float(np.mean(again == 0)) if len(again) else math.nan,
            shared=len(shared),
            correlation=float(np.corrcoef(mine, theirs)[0, 1]) if varies else math.nan,
            higher=float((mine - theirs).mean()) if shared else math.nan,
        )


def _find_disputed(answers: _Answers) -> list[DisputedRow]:
    """Return rows on which raters differ, those where they differ most first."""
    disputed: dict[str, DisputedRow] = {}
    for quality, rows in answers.items():
        values = [value for row in rows.values() for value in row.values()]
        whole = max(values) - min(values)
        for identity, row in rows.items():
            spread = (max(row.values()) - min(row.values())) / whole if whole else 0.0
            if spread and (identity not in disputed or disputed[identity].spread < spread):
                disputed[identity] = DisputedRow(identity, quality, spread, dict(row))
    return sorted(disputed.values(), key=lambda dispute: -dispute.spread)


def make_rated_rows(merged: MergedRatings, sample: Sample | None, quality: str) -> list[JsonObject]:
    """Return the ratings as rows that `agreement`, `estimate` and `adem train` read, or, of pairs, as `rank` does.

    With a `sample` a row has its texts and its system. Of pairs the answers to one question are taken, `quality`.
    """
    rows, pairs = ({}, {}) if sample is None else (sample.by_id(), sample.pairs())
    rated = []
    for line in merged.lines:
        if sample is None or line.id in rows:
            row = {**rows.get(line.id, {"id": line.id}), "rater": line.rater, "scores": line.scores}
            rated.append({**row, "marked": list(line.marked)} if line.marked else row)
            continue
        if quality in line.uncertain:
            continue
        if quality not in line.scores:
            raise SettingError(f"{line.rater} did not compare {line.id} by {quality!r}; there is {list(line.scores)}")
        left, right = (rows[row.id] for row in pairs[line.id])
        pair = _make_pair_row(line, left, right, int(np.sign(line.scores[quality])))
        rated.append({**pair, "both_bad": True} if quality in line.both_bad else pair)
    return rated


def _make_pair_row(line: RatingLine, left: Mapping[str, Any], right: Mapping[str, Any], outcome: int) -> JsonObject:
    """Return a compared pair as a row for `rank`, with the name of the better system.

    A system that is called `a` or `b` is put on the side of its name, so that name and side mean the same.
    """
    if left["system"] in ("b", "B") or right["system"] in ("a", "A"):
        left, right, outcome = right, left, -outcome
    better = {1: left["system"], 0: TIE, -1: right["system"]}[outcome]
    if list_outcomes(better, left["system"], right["system"]) != {outcome}:
        systems = f"the systems {left['system']!r} and {right['system']!r}"
        raise SettingError(f"{systems} have names that are ambiguous in a file of pairs; rename them and sample again")
    compared = {"a": left["system"], "b": right["system"], "better": better}
    responses = {"response_a": left["response"], "response_b": right["response"]}
    return {"id": line.id, "dialog_id": left.get("dialog_id"), **compared, **responses, "rater": line.rater}
