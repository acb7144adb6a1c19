"""What people would say of every system, and of the differences: ratings of a few rows, joined with a judge's of all.

The formulas are in `prediction_powered`; here ratings are joined with the rows that were drawn (`sample_folder`) and
with the run, and figures are made for each system and for each difference to the baseline. The p of the differences are
adjusted as one family (Holm).

Raters are taken as fixed: intervals are for what these raters would say of other dialogues. With few raters that is
narrower than what any raters would say (in simulations with three to five raters a mean covers 59 to 75%; differences
hold, since a strict rater is strict to both systems). `raters="random"` gives intervals for other raters as well, from
`FEWEST_RATERS` raters on.

A judge that learned from the ratings it is corrected by says of them what it learned, and intervals cover nothing. A
run knows which rated rows its judges learned from (`core.result.TRAINED_ON`); ratings of which more than `MOST_KNOWN`
are among them are refused.

Ratings that were not drawn at random with known probabilities are refused: who chooses which rows to rate chooses the
answer. `as_if_random` takes them for a simple random sample of each system's rows, and the result says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from dialeval.analysis import significance
from dialeval.analysis.matching import on_one_scale, rows_of_ratings
from dialeval.analysis.pairing import chosen
from dialeval.analysis.prediction_powered import (
    RARE,
    Powered,
    RatedSystem,
    RatingScale,
    Target,
    combined,
    over_raters,
    powered,
)
from dialeval.analysis.resampling import DEFAULT_LEVEL, DEFAULT_SEED, check_resampling
from dialeval.analysis.sample_folder import Sample, check_same_run, read_sample, sample_beside
from dialeval.analysis.sampling import row_values, strata_of_rows
from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats, Ints
from dialeval.core.display import Shown, listed
from dialeval.core.errors import SettingError
from dialeval.core.jsondata import null_for_nan
from dialeval.core.plain_text import plain as shown
from dialeval.core.result import TRAINED_ON, Result, Run, load
from dialeval.core.rowtable import RowTable
from dialeval.core.version import __version__
from dialeval.data.rows.ratings import DIALOGUE, OVERALL, Ratings, read_ratings, row_digests
from dialeval.metrics.registry import split_names

ALPHA = 0.05
FEW = 20
"""Rated clusters below which a warning says that intervals rest on little."""
FEWEST_RATERS = 5
"""Raters without which nothing is said of other raters."""
MOST_KNOWN = 0.05
"""The share of rated rows that a judge may have learned from: some rows, such as greetings, are in every set."""

Raters = Literal["fixed", "random"]


@dataclass(frozen=True)
class PeopleFigure:
    """What people would say of a system on average, or by how much more than of the baseline."""

    system: str
    baseline: str | None
    """None: the figure is the system's own."""
    figure: Powered
    agreement: float
    """The correlation of judge and people over the rated rows; NaN for a difference, and where one does not vary."""
    adjusted_p: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN is null."""
        figure = asdict(self.figure)
        plain: dict[str, Any] = null_for_nan(
            {
                "system": self.system,
                "baseline": self.baseline,
                **figure,
                "agreement": self.agreement,
                "adjusted_p": self.adjusted_p,
            }
        )
        return plain


@dataclass(frozen=True)
class People(Shown):
    """What `dialeval.estimate` gives: `people["damd"].figure.interval`."""

    quality: str
    by: Sequence[str]
    target: Target
    """`dialogues`: of other dialogues of the same kind; `run`: of the rows of the run."""
    level: float
    baseline: str
    figures: Sequence[PeopleFigure]
    differences: Sequence[PeopleFigure]
    unit: str
    """What intervals are over: `dialogues`, or `rows` where rows stand alone."""
    seed: int
    at_random: bool
    """Whether the rated rows were drawn with known probabilities; if not, they were taken for a random sample."""
    raters: Raters = "fixed"
    """Whether intervals are for these raters (`fixed`) or for others as well (`random`)."""
    named_raters: int = 0
    """How many raters the ratings name."""
    warnings: Sequence[str] = ()
    version: str = __version__

    def __repr__(self) -> str:
        names = listed([each.system for each in self.figures], "system")
        ratings = sum(each.figure.ratings for each in self.figures)
        return f"<People: {shown(self.quality)} of {names}, {ratings:,} ratings, by {listed(self.by, 'judge')}>"

    def __getitem__(self, system: str) -> PeopleFigure:
        return next(figure for figure in self.figures if figure.system == system)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; NaN is null."""
        return {
            "dialeval": self.version,
            "quality": self.quality,
            "by": list(self.by),
            "of": self.target,
            "level": self.level,
            "unit": self.unit,
            "seed": self.seed,
            "at_random": self.at_random,
            "raters": self.raters,
            "named_raters": self.named_raters,
            "baseline": self.baseline,
            "systems": [each.to_dict() for each in self.figures],
            "differences": [each.to_dict() for each in self.differences],
            "warnings": list(self.warnings),
        }


@checked
def estimate(
    run: Run | str | PathLike[str],
    human: Any,
    *,
    by: str | Sequence[str] = (),
    sample: Sample | str | PathLike[str] | None = None,
    quality: str = OVERALL,
    of: Target = "dialogues",
    level: float = DEFAULT_LEVEL,
    baseline: str | None = None,
    as_if_random: bool = False,
    fields: Mapping[str, str] | None = None,
    seed: int = DEFAULT_SEED,
    raters: Raters = "fixed",
) -> People:
    """What people would say on average of the systems of a run, from ratings of some rows and a judge's of all.

    `human`: the ratings, as in `dialeval.agreement`. `by`: the judge, a metric of the run; several are combined; none
    gives the ratings alone. `sample`: the folder that the rated rows were drawn into (`dialeval.draw`); it is found by
    itself beside the file of ratings. Without it ratings are refused, unless `as_if_random`. `of`: `dialogues`, for
    other dialogues of the same kind, or `run`, for just the rows of the run. `seed`: of the folds that several judges
    are combined by. `raters`: `fixed`, for what these raters would say, or `random`, for other raters as well.
    """
    if raters not in get_args(Raters):
        raise SettingError(f"raters are {' or '.join(get_args(Raters))}, not {raters!r}")
    if of not in ("dialogues", "run"):
        raise SettingError(f"people's opinion is estimated of dialogues or of run, not of {of!r}")
    check_resampling(level, 1)
    known = run if isinstance(run, Run) else load(run)
    keys = split_names(by) if isinstance(by, str) else list(by)
    drawn = read_sample(sample) if isinstance(sample, str | PathLike) else sample
    if drawn is None and not as_if_random:
        drawn = sample_beside(_files(human))
    if drawn is None and not as_if_random:
        raise SettingError(
            "ratings of rows that were not drawn at random say nothing about the others; name the folder that they "
            "were drawn into (--sample), or take them for a random sample and have it said (--as-if-random)"
        )
    ratings = (
        human if isinstance(human, Ratings) else read_ratings(human, fields, None if drawn is None else drawn.by_id())
    )
    if quality not in ratings.values:
        raise SettingError(f"nobody rated {quality!r}; there is {', '.join(ratings.values)}")
    if on_one_scale(ratings, quality)[1] is not None:
        raise SettingError("ratings on different scales have no mean; estimate those of each scale for themselves")
    overlap = _check_unseen(known, keys, ratings, quality)
    if drawn is not None:
        check_same_run(drawn, known)
    systems, warnings = _systems(known, drawn, ratings, quality, keys, seed)
    first, others = _order(known, systems, baseline)
    how = _How(of, level, _scale(ratings, quality))
    names = list(dict.fromkeys(name for row in ratings.raters.get(quality, ()) for name in row))
    without = []
    if raters == "random":
        without = list(_without_each_rater(known, drawn, ratings, quality, keys, seed, names))
    figures = [
        PeopleFigure(
            name, None, _figure(systems, without, name, None, how, ratings, quality), _agreement(systems[name])
        )
        for name in (first, *others)
    ]
    differences = [
        PeopleFigure(name, first, _figure(systems, without, name, first, how, ratings, quality), math.nan)
        for name in others
    ]
    adjusted = significance.holm([each.figure.p for each in differences])
    alone = all(len(_table(known[name]).offsets) - 1 == len(_table(known[name])) for name in systems)
    return People(
        quality,
        keys,
        of,
        level,
        first,
        figures,
        [replace(each, adjusted_p=p) for each, p in zip(differences, adjusted, strict=True)],
        "rows" if alone else "dialogues",
        seed,
        drawn is not None,
        raters,
        len(names),
        [*warnings, *overlap, *_doubts(figures), *_unused_judges(figures, keys, how.scale)],
    )


class _How(NamedTuple):
    """What is estimated, and on which scale."""

    target: Target
    level: float
    scale: RatingScale | None


def _systems(
    run: Run, drawn: Sample | None, ratings: Ratings, quality: str, keys: Sequence[str], seed: int
) -> tuple[dict[str, RatedSystem], list[str]]:
    """Return the rows of every system with ratings and judges, and warnings."""
    found, warnings = _as_if_random(run, ratings, quality) if drawn is None else _as_drawn(run, drawn, ratings, quality)
    return _with_judges(run, found, keys, seed), warnings


def _figure(
    systems: Mapping[str, RatedSystem],
    without: Sequence[Mapping[str, RatedSystem]],
    name: str,
    baseline: str | None,
    how: _How,
    ratings: Ratings,
    quality: str,
) -> Powered:
    """Return the estimate of a system or a difference; `without`: the systems without one rater each."""

    def estimated(here: Mapping[str, RatedSystem]) -> Powered:
        other = None if baseline is None else here[baseline]
        return powered(here[name], other, how.target, how.level, how.scale)

    found = estimated(systems)
    if not without:
        return found
    alone = {}
    for number, (system, each) in enumerate(systems.items()):
        places = np.arange(len(each.people)) + number * 10**9
        alone[system] = replace(each, dialogue=places, unit=places)
    sizes = [len(values) for values in ratings.annotations[quality] if len(values)]
    bounds = None if how.scale is None or baseline is not None else how.scale.bounds
    parts = [estimated(each) for each in without]
    return over_raters(found, parts, estimated(alone), float(np.mean(sizes)), how.level, bounds)


def _without_each_rater(
    run: Run,
    drawn: Sample | None,
    ratings: Ratings,
    quality: str,
    keys: Sequence[str],
    seed: int,
    names: Sequence[str],
) -> Iterator[dict[str, RatedSystem]]:
    """Yield the systems without the ratings of each rater in turn."""
    annotations, raters = ratings.annotations[quality], ratings.raters.get(quality, ())
    if len(names) < FEWEST_RATERS or any(len(row) != len(who) for row, who in zip(annotations, raters, strict=True)):
        raise SettingError(
            f"intervals for other raters need ratings of at least {FEWEST_RATERS} raters, each with a name; there are "
            f"{len(names)}: take raters as fixed"
        )
    for name in names:
        kept = [values[[other != name for other in who]] for values, who in zip(annotations, raters, strict=True)]
        means = np.array([float(values.mean()) if len(values) else math.nan for values in kept])
        fewer = replace(ratings, values={**ratings.values, quality: means})
        try:
            yield _systems(run, drawn, fewer, quality, keys, seed)[0]
        except SettingError as error:
            raise SettingError(f"without {name!r} nothing can be estimated ({error}); take raters as fixed") from None


def _scale(ratings: Ratings, quality: str) -> RatingScale | None:
    """Return the scale of the ratings: that of yes/no answers, or the one that all rows state."""
    values = np.unique(np.concatenate([np.empty(0), *ratings.annotations[quality]]))
    if np.isin(values, (0.0, 1.0)).all():
        return RatingScale((0.0, 1.0), yes_no=True)
    scales = np.unique(ratings.scales, axis=0)
    if quality != OVERALL or len(scales) != 1 or np.isnan(scales).any():
        return None
    low, high = scales[0].tolist()
    if values[0] < low or values[-1] > high:
        return None
    return RatingScale((low, high), yes_no=bool(np.isin(values, (low, high)).all()))


def _check_unseen(run: Run, keys: Sequence[str], ratings: Ratings, quality: str) -> list[str]:
    """Refuse ratings that a judge of the run learned from; return warnings about a few."""
    known = run.details.get(TRAINED_ON)
    if not isinstance(known, Mapping):
        return []
    rated = set(row_digests(ratings.take(~np.isnan(ratings.values[quality]))))
    warnings = []
    for key in keys:
        signatures = [run[name][key].signature for name in run if key in run[name]]
        judges = {value for signature in signatures if signature is not None for value in signature.values()}
        seen = {row for judge in judges for row in known.get(judge, ())} & rated
        if len(seen) > MOST_KNOWN * len(rated):
            raise SettingError(
                f"{key} learned from {len(seen)} of the {len(rated)} rated rows, so that it says of them what people "
                "said and no interval would hold; estimate by a judge that was trained on other ratings, or rate others"
            )
        if seen:
            warnings.append(f"{key} learned from {len(seen)} of the {len(rated)} rated rows")
    return warnings


def _unused_judges(figures: Sequence[PeopleFigure], keys: Sequence[str], scale: RatingScale | None) -> list[str]:
    """Return a warning where too few yes/no answers of one kind let no judge be fitted."""
    names = [shown(each.system) for each in figures if not any(each.figure.factors)]
    if not keys or scale is None or not scale.yes_no or not names:
        return []
    return [f"fewer than {RARE} answers of the rarer kind for {', '.join(names)}: estimates are those of ratings alone"]


def _files(human: Any) -> list[str | PathLike[str]]:
    """The files that ratings are in, if they are in files."""
    given = human if isinstance(human, list | tuple) else [human]
    return list(given) if all(isinstance(each, str | PathLike) for each in given) else []


def _order(run: Run, systems: Mapping[str, RatedSystem], baseline: str | None) -> tuple[str, list[str]]:
    """The baseline and the others; a single system is its own."""
    here = {name: run[name] for name in run if name in systems}
    if len(here) == 1 and baseline in (None, *here):
        return next(iter(here)), []
    return chosen(here, baseline, here)


def _table(result: Result) -> RowTable:
    if result.rows is None:
        raise SettingError("the run does not say what its rows are; score again and save it with items")
    return result.rows


def _dialogues(tables: Mapping[str, RowTable]) -> dict[str, Ints]:
    """The number of each row's dialogue, the same for all systems: by its name, or by its place where it has none."""
    first = next(iter(tables.values()))
    alike = all(np.array_equal(first.offsets, table.offsets) for table in tables.values())
    numbers: dict[Hashable, int] = {}
    found = {}
    for name, table in tables.items():
        keys: list[Hashable] = [(name if not alike else "", cluster) for cluster in range(len(table.offsets) - 1)]
        if not alike and table.dialogues is not None:
            keys = [title or key for title, key in zip(table.dialogues, keys, strict=True)]
        codes = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
        found[name] = codes[table.clusters]
    return found


def _as_drawn(run: Run, sample: Sample, ratings: Ratings, quality: str) -> tuple[dict[str, RatedSystem], list[str]]:
    """The rows of every system that was drawn from, with their ratings, and warnings."""
    said = dict(zip(ratings.ids, ratings.values[quality].tolist(), strict=True))
    design = sample.design
    strata = {name: code for code, name in enumerate(design.strata)}
    tables = {name: _table(run[name]) for name in design.systems}
    dialogues = _dialogues(tables)
    stratum_of = _strata_of_all(run, sample, strata)
    answered = {
        code: sum(row.stratum == name and not math.isnan(said.get(row.id, math.nan)) for row in sample.rows)
        / max(design.strata[name].drawn_responses, 1)
        for name, code in strata.items()
    }
    found = {}
    before = 0
    for name, table in tables.items():
        own = [row for row in sample.rows if row.system == name]
        places = np.array([row.place for row in own], np.int64)
        people, probability = np.full(len(table), np.nan), np.ones(len(table))
        people[places] = [said.get(row.id, math.nan) for row in own]
        probability[places] = [row.probability for row in own]
        unit = table.clusters if design.unit == "dialogues" else np.arange(len(table))
        if design.apart:
            unit = unit + before
        before += len(table)
        found[name] = RatedSystem(
            people, np.zeros((len(table), 0)), probability, stratum_of[name], unit, dialogues[name], answered
        )
    missing = sum(math.isnan(said.get(row.id, math.nan)) for row in sample.rows)
    warnings = []
    if missing:
        warnings.append(
            f"{missing} of {len(sample.rows)} drawn rows have no rating of {quality}; they are taken for missing by "
            "chance"
        )
    return found, warnings


def _strata_of_all(run: Run, sample: Sample, strata: Mapping[str, int]) -> dict[str, Ints]:
    """The number of the stratum of every row of the run."""
    names = strata_of_rows(run, sample)
    other = next((row for row in sample.rows if names[row.system][row.place] != row.stratum), None)
    if other is not None or any(name not in strata for own in names.values() for name in own):
        raise SettingError(
            "the strata of the run are not those that the rows were drawn by; give the run that they were drawn from, "
            "with the same values of its metrics"
        )
    return {system: np.array([strata[name] for name in own], np.int64) for system, own in names.items()}


def _as_if_random(run: Run, ratings: Ratings, quality: str) -> tuple[dict[str, RatedSystem], list[str]]:
    """Rated rows that are looked up in the run, each system's taken for a simple random sample of its rows."""
    if DIALOGUE in ratings.levels:
        raise SettingError("whole dialogues were rated and not responses; give ratings of single responses")
    places = rows_of_ratings(run, ratings)
    tables = {name: _table(run[name]) for name in places}
    dialogues = _dialogues(tables)
    found: dict[str, RatedSystem] = {}
    used = 0
    for name, (rated, rows) in places.items():
        people = np.full(len(tables[name]), np.nan)
        people[rows] = ratings.values[quality][rated]
        used += len(rows)
        number = int((~np.isnan(people)).sum())
        if number:
            probability = np.full(len(people), number / len(people))
            nothing = np.zeros(len(people), np.int64)
            judges = np.zeros((len(people), 0))
            found[name] = RatedSystem(people, judges, probability, nothing, np.arange(len(people)), dialogues[name], {})
    if not found:
        raise SettingError(f"no row of the run has a rating of {quality}")
    alike = len({tuple(each.rated.tolist()) for each in found.values()}) == 1
    if not alike:
        found = {
            name: replace(each, unit=each.unit + number * 10**9) for number, (name, each) in enumerate(found.items())
        }
    warnings = ["the rated rows were not drawn at random, as far as anybody knows: figures are as if they had been"]
    if used < len(ratings):
        warnings.append(f"{len(ratings) - used} of {len(ratings)} rated rows are not in the run and are left out")
    return found, warnings


def _with_judges(
    run: Run, systems: Mapping[str, RatedSystem], keys: Sequence[str], seed: int
) -> dict[str, RatedSystem]:
    """The systems with what the judges say of their rows, as one column; none where no judge is named."""
    if not keys:
        return dict(systems)
    made = {}
    for name, system in systems.items():
        columns = [row_values(run[name], _table(run[name]), key, name) for key in keys]
        made[name] = replace(system, judges=np.column_stack(columns))
    if len(keys) == 1:
        return made
    joined = combined(list(made.values()), seed)
    return {name: replace(system, judges=values) for (name, system), values in zip(made.items(), joined, strict=True)}


def _agreement(system: RatedSystem) -> float:
    """The weighted correlation of judge and people over the rated rows."""
    if not system.judges.shape[1]:
        return math.nan
    rated = system.rated
    judge, people, weights = system.judges[rated, 0], system.people[rated], 1 / system.probability[rated]
    known = ~np.isnan(judge)
    return _correlation(judge[known], people[known], weights[known])


def _correlation(left: Floats, right: Floats, weights: Floats) -> float:
    if len(left) < 2 or not np.ptp(left) or not np.ptp(right):
        return math.nan
    left, right = (each - np.average(each, weights=weights) for each in (left, right))
    products = [float((weights * one * other).sum()) for one, other in ((left, right), (left, left), (right, right))]
    return products[0] / math.sqrt(products[1] * products[2])


def _doubts(figures: Sequence[PeopleFigure]) -> list[str]:
    few = Counter(each.figure.clusters < FEW for each in figures)[True]
    if few:
        least = min(each.figure.clusters for each in figures)
        return [f"ratings of only {least} dialogues or contexts: intervals rest on little, and may be too narrow"]
    return []
