"""Mean human ratings of systems and their differences, from ratings of some rows and a judge's scores of all.

The formulas are in `prediction_powered`; here ratings are joined with the rows that were sampled (`sample`) and with
the run, and estimates are computed for each system and for each difference to the baseline. The p-values of the
differences are adjusted as one family (Holm).

Raters are fixed: intervals are for the ratings by these raters of other dialogues. With few raters that is narrower
than for any raters (in simulations with three to five raters a mean covers 59 to 75%; differences hold, since a strict
rater is strict to both systems). `raters="random"` gives intervals for other raters as well, from
`FEWEST_RATERS` raters on.

A judge that was trained on the ratings it is corrected by repeats them, and intervals are invalid. A run knows which
rated rows its judges learned from (`core.result.TRAINED_ON`); ratings are refused if more than `MOST_KNOWN` of them are
among these.

Ratings of rows that were not sampled at random with known probabilities are refused: a selection biases the estimate.
`assume_random` treats them as a simple random sample of each system's rows, and the result states it.

Planning: how many ratings give an interval of a certain width, from assumptions that are printed.

The variance of an estimate (`prediction_powered`) of n of N responses has a part that falls with n and one that only
more dialogues would make smaller:

    V(n) = a (1 / n - 1 / N) + b

With a standard deviation s of ratings, a correlation r of judge and ratings, and independent rows, a = s^2 (1 - r^2)
and b = s^2 / N; then V(n) = s^2 / n (1 - r^2 (1 - n / N)). The width is that of the whole interval, from its lower to
its upper end. A width that ratings of all rows would not give is reported to need more dialogues.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from os import PathLike
from statistics import NormalDist
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from msgspec import Struct

from dialeval.analysis.matching import bring_to_one_scale, find_rated_rows, find_training_rows
from dialeval.analysis.pairing import choose_systems
from dialeval.analysis.values import collapse_dialogues
from dialeval.core.arrays import Floats, Ints
from dialeval.core.display import Displayable, Tabular, count_names, flatten_intervals
from dialeval.core.errors import SettingError
from dialeval.core.errors import escape_controls as shown
from dialeval.core.fold import Level
from dialeval.core.result import JUDGE_SAMPLING, Run, load
from dialeval.core.rowtable import RowTable
from dialeval.core.run_schema import Record
from dialeval.core.version import __version__
from dialeval.human.sample import collect_row_values, find_strata, number_clusters
from dialeval.human.sample_files import Sample, check_same_run, find_sample, read_sample
from dialeval.io.ratings import DIALOGUE, OVERALL, Ratings, digest_ratings, read_ratings
from dialeval.metrics.registry import split_names
from dialeval.stats import significance
from dialeval.stats.intervals import DEFAULT_LEVEL
from dialeval.stats.prediction_powered import (
    RARE,
    RatedSystem,
    RatingEstimate,
    RatingScale,
    Target,
    combine_judges,
    estimate_mean,
    generalize_to_raters,
)
from dialeval.stats.resampling import DEFAULT_SEED, check_resampling

ALPHA = 0.05
FEW = 20
"""Rated clusters below which there is a warning about the intervals."""
FEWEST_RATERS = 5
"""The fewest raters for intervals that generalize to other raters."""
MOST_KNOWN = 0.05
"""The fraction of rated rows that a judge may have learned from: some rows, such as greetings, are in every set."""
ASSUMED_STD = 1.0
"""The standard deviation of ratings, as on a scale from 1 to 5."""
ASSUMED_CORRELATION = 0.5
"""The correlation of a good judge with human ratings."""

Raters = Literal["fixed", "random"]
_MOST_UNITS = 10**9
"""More units than a system has: those of the next system are numbered from here on."""


class HumanEstimate(RatingEstimate, frozen=True, kw_only=True):
    """The mean human rating of a system, or its difference to that of the baseline.

    Attributes:
        value: The estimate, from ratings and judge together.
        error: Its standard error.
        interval: Its confidence interval.
        alone: The estimate from ratings alone.
        alone_error: Its standard error.
        alone_interval: Its confidence interval.
        factors: How much of the judge counts: one factor for each system.
        ratings: The number of rated rows.
        clusters: The number of dialogues, or units of the design, with a rating.
        freedom: The degrees of freedom of the interval.
        effective_ratings: The effective sample size: as many ratings alone would have the same variance.
        p: The p-value of the hypothesis that the value is 0.
        system: The system.
        baseline: The system that is compared with; None: the estimate is of the system itself.
        agreement: The correlation of judge and ratings over the rated rows; NaN for a difference.
        adjusted_p: The p-value of a difference, adjusted by Holm's method.

    Examples:
        >>> import dialeval
        >>> systems = {"old": ["no"] * 40, "new": ["yes please"] * 40}
        >>> run = dialeval.evaluate(systems, contexts=[[f"tea {n} ?"] for n in range(40)], metrics="length")
        >>> drawn = dialeval.sample(run, 40)
        >>> ratings = [
        ...     {"id": row.id, "rater": "ann", "scores": {"overall": (4 if row.system == "new" else 2) + row.row % 2}}
        ...     for row in drawn.responses
        ... ]
        >>> found = dialeval.estimate_ratings(run, ratings, sample=drawn)
        >>> found["new"].ratings, found["new"].value == found["new"].alone
        (20, True)
    """

    system: str
    baseline: str | None
    agreement: float
    adjusted_p: float


_COLUMNS = (
    *("system", "baseline", "value", "low", "high", "error", "alone", "alone_low", "alone_high", "alone_error"),
    *("ratings", "clusters", "freedom", "effective_ratings", "agreement", "factor", "baseline_factor"),
    *("p", "adjusted_p"),
)


class HumanEstimates(Tabular, Displayable, Record, frozen=True, kw_only=True, rename={"version": "dialeval"}):
    """The result of `dialeval.estimate_ratings`: `estimates["new"].interval`.

    Attributes:
        version: The version of dialeval.
        quality: The quality that was rated.
        judge: The metrics that were used as judges.
        population: What the estimates are for, `dialogues` of the same kind or just the `run`.
        confidence: The confidence level of the intervals.
        unit: What intervals are over, `dialogues` or `rows`.
        at_random: Whether the rated rows were sampled with known probabilities.
        raters: Whether intervals are for these raters (`fixed`) or for others as well (`random`).
        named_raters: The number of raters that the ratings name.
        baseline: The system that the others are compared with.
        systems: The estimate of each system.
        differences: The difference of each other system to the baseline.
        warnings: Remarks about the ratings and the estimates.

    Examples:
        >>> import dialeval
        >>> systems = {"old": ["no"] * 40, "new": ["yes please"] * 40}
        >>> run = dialeval.evaluate(systems, contexts=[[f"tea {n} ?"] for n in range(40)], metrics="length")
        >>> drawn = dialeval.sample(run, 40)
        >>> ratings = [
        ...     {"id": row.id, "rater": "ann", "scores": {"overall": (4 if row.system == "new" else 2) + row.row % 2}}
        ...     for row in drawn.responses
        ... ]
        >>> found = dialeval.estimate_ratings(run, ratings, sample=drawn)
        >>> found
        <HumanEstimates: overall of 2 systems (old, new), 40 ratings, by 0 judges>
        >>> found.to_pandas()[["system", "ratings"]].values.tolist()
        [['old', 20], ['new', 20], ['new', 40]]
    """

    version: str
    quality: str
    judge: Sequence[str]
    population: Target
    confidence: float
    unit: str
    at_random: bool
    raters: Raters
    named_raters: int
    baseline: str
    systems: Sequence[HumanEstimate]
    differences: Sequence[HumanEstimate]
    warnings: Sequence[str]

    def __repr__(self) -> str:
        names = count_names([estimate.system for estimate in self.systems], "system")
        ratings = sum(estimate.ratings for estimate in self.systems)
        judges = count_names(self.judge, "judge")
        return f"<HumanEstimates: {shown(self.quality)} of {names}, {ratings:,} ratings, by {judges}>"

    def __getitem__(self, system: str) -> HumanEstimate:
        return {estimate.system: estimate for estimate in self.systems}[system]

    def lines(self) -> list[dict[str, object]]:
        """Return a line per system, then one per difference to the baseline.

        Returns:
            The lines, as `to_pandas` has them.
        """
        rows = []
        for estimate in (*self.systems, *self.differences):
            factor, baseline_factor, *_ = (*estimate.factors, None, None)
            line = flatten_intervals(msgspec.structs.asdict(estimate))
            line |= {"factor": factor, "baseline_factor": baseline_factor}
            rows.append({name: line[name] for name in _COLUMNS})
        return rows


def estimate_ratings(
    run: Run | str | PathLike[str],
    human: object,
    *,
    judge: str | Sequence[str] = (),
    sample: Sample | str | PathLike[str] | None = None,
    quality: str = OVERALL,
    population: Target = "dialogues",
    confidence: float = DEFAULT_LEVEL,
    baseline: str | None = None,
    assume_random: bool = False,
    fields: Mapping[str, str] | None = None,
    raters: Raters = "fixed",
    cluster: str | None = None,
) -> HumanEstimates:
    """Estimate the mean human rating of every system, from ratings of some rows and a judge's scores of all rows.

    The estimate is prediction-powered: ratings of a random sample correct the judge, so that the interval holds however
    good the judge is, and a good judge makes it narrower.

    Args:
        run: The run, or the folder of a saved one.
        human: The ratings: files, or a list of objects with `id` (or the rated row), `rater` and `scores`.
        judge: The judge, a metric of the run; several are combined; none: ratings alone.
        sample: The sample that was rated, or its folder; found by itself next to a file of ratings.
        quality: Quality (score name) to use.
        population: `"dialogues"`, for other dialogues of the same kind, or `"run"`, for just the rows of the run.
        confidence: The confidence level of the intervals.
        baseline: The system that the others are compared with; None: the first.
        assume_random: Treat ratings of rows that were not sampled as a random sample; the result states it.
        fields: The names of fields in the ratings, by ours.
        raters: `"fixed"`, for ratings by these raters, or `"random"`, for other raters as well.
        cluster: A field that the run kept, such as the user, whose values intervals are over; None: dialogues.

    Returns:
        An estimate for each system, and for each difference to the baseline.

    Raises:
        DataError: The ratings cannot be read, or are not of this sample.
        SettingError: The rated rows were not sampled at random, the judge learned from them, or a name does not exist.

    Examples:
        >>> import dialeval
        >>> systems = {"old": ["no"] * 40, "new": ["yes please"] * 40}
        >>> run = dialeval.evaluate(systems, contexts=[[f"tea {n} ?"] for n in range(40)], metrics="length")
        >>> drawn = dialeval.sample(run, 40)
        >>> ratings = [
        ...     {"id": row.id, "rater": "ann", "scores": {"overall": (4 if row.system == "new" else 2) + row.row % 2}}
        ...     for row in drawn.responses
        ... ]
        >>> found = dialeval.estimate_ratings(run, ratings, sample=drawn)
        >>> found.differences[0].value, found.differences[0].adjusted_p < 0.05
        (2.0, True)
    """
    if raters not in get_args(Raters):
        raise SettingError(f"raters are {' or '.join(get_args(Raters))}, not {raters!r}")
    if population not in get_args(Target):
        raise SettingError(f"the population is dialogues or run, not {population!r}")
    check_resampling(confidence, 1)
    loaded = run if isinstance(run, Run) else load(run)
    keys = split_names(judge) if isinstance(judge, str) else list(judge)
    drawn, ratings = _read_inputs(human, sample, assume_random, fields)
    if quality not in ratings.values:
        raise SettingError(f"no ratings of {quality!r}; there are ratings of {', '.join(ratings.values)}")
    if bring_to_one_scale(ratings, quality)[1] is not None:
        raise SettingError("ratings on different scales have no common mean; estimate each scale separately")
    overlap = _check_unseen(loaded, keys, ratings, quality)
    levels = set(ratings.levels) if drawn is None else {drawn.design.level}
    if len(levels) > 1:
        raise SettingError("some ratings are of whole dialogues and others of responses; estimate each level by itself")
    loaded = collapse_dialogues(loaded) if levels & {DIALOGUE, "dialogue"} else loaded
    if cluster is not None and population == "run":
        raise SettingError("the rows of a run are no sample of users; cluster is for the population of dialogues")
    study = _Study(loaded, drawn, ratings, quality, keys)
    if cluster is not None:
        study.dialogues = number_clusters(study.tables, cluster)
    systems, scale = study.make_systems(ratings.values[quality]), _find_scale(ratings, quality)
    first, others = _choose_baseline(loaded, systems, baseline)
    targets = [*((name, None) for name in (first, *others)), *((name, first) for name in others)]
    single = 1 + len(others)

    def estimate_all(rated: Mapping[str, RatedSystem]) -> list[RatingEstimate]:
        return [
            estimate_mean(rated[name], None if base is None else rated[base], population, confidence, scale)
            for name, base in targets
        ]

    names = list(dict.fromkeys(name for row in ratings.raters.get(quality, ()) for name in row))
    if raters == "random":
        bounds = [None if scale is None or base is not None else scale.bounds for _, base in targets]
        values = _generalize_to_raters(study, names, systems, estimate_all, bounds, confidence)
    else:
        values = estimate_all(systems)
    adjusted = [math.nan] * single + significance.holm([value.p for value in values[single:]])
    estimates = []
    for value, (name, base), p in zip(values, targets, adjusted, strict=True):
        r = _correlate_judge(systems[name]) if base is None else math.nan
        plain = msgspec.structs.asdict(value)
        estimates.append(HumanEstimate(**plain, system=name, baseline=base, agreement=r, adjusted_p=p))
    unit = "dialogues" if any(len(table.offsets) - 1 < len(table) for table in study.tables.values()) else "rows"
    return HumanEstimates(
        version=__version__,
        quality=quality,
        judge=keys,
        population=population,
        confidence=confidence,
        unit=unit if cluster is None else f"clusters by {cluster}",
        at_random=drawn is not None,
        raters=raters,
        named_raters=len(names),
        baseline=first,
        systems=estimates[:single],
        differences=estimates[single:],
        warnings=[
            *study.list_warnings(),
            *overlap,
            *(study.find_confounding(first, others) if names and raters == "fixed" else ()),
            *_warn_about_estimates(estimates[:single], keys, scale),
        ],
    )


def _read_inputs(
    human: Any, sample: Sample | str | PathLike[str] | None, assume_random: bool, fields: Mapping[str, str] | None
) -> tuple[Sample | None, Ratings]:
    """Return the sample, None if ratings are taken as if they were random, and the ratings."""
    drawn = read_sample(sample) if isinstance(sample, str | PathLike) else sample
    if drawn is None and not assume_random:
        files = human if isinstance(human, list | tuple) else [human]
        match = find_sample(files, fields) if all(isinstance(file, str | PathLike) for file in files) else None
        if match is None:
            what = "ratings of rows that were not sampled at random do not generalize to the others"
            remedy = "treat them as a random sample, as every table states (--assume-random)"
            raise SettingError(f"{what}; name the folder of the sample (--sample), or {remedy}")
        return match
    if isinstance(human, Ratings):
        return drawn, human
    return drawn, read_ratings(human, fields, None if drawn is None else drawn.by_id())


def _number_strata(run: Run, sample: Sample) -> dict[str, Ints]:
    """Return the number of the stratum of every row of the run, by system; refuse a run that was not drawn from."""
    check_same_run(sample, run)
    codes = {name: code for code, name in enumerate(sample.design.strata)}
    names = find_strata(run, sample)
    other = next((row for row in sample.responses if names[row.system][row.place] != row.stratum), None)
    if other is not None or any(name not in codes for labels in names.values() for name in labels):
        remedy = "give the run that was sampled, with the same fields"
        raise SettingError(f"the strata of the run are not those of the sample; {remedy}")
    return {system: np.array([codes[name] for name in labels], np.int64) for system, labels in names.items()}


class _Study:
    """The ratings of a quality, with the run and the sample that they are of.

    Without a sample the rated rows are taken for a simple random sample of each system's rows.
    """

    def __init__(self, run: Run, sample: Sample | None, ratings: Ratings, quality: str, keys: Sequence[str]) -> None:
        self.run, self.sample, self.ratings, self.quality, self.keys = run, sample, ratings, quality, keys
        if sample is None:
            self.places = find_rated_rows(run, ratings)
            """By system: which ratings are of its rows, and of which rows."""
        else:
            self.strata = _number_strata(run, sample)
            self.places = _locate_ratings(sample, ratings)
        self.tables = {name: table for name in self.places if (table := run[name].table) is not None}
        self.dialogues = _number_dialogues(self.tables)

    def make_systems(self, values: Floats) -> dict[str, RatedSystem]:
        """Return the rows of every system with ratings and judges; `values`: a mean rating for each rated row."""
        people: dict[str, Floats] = {}
        apart, answered = False, dict[int, float]()
        for name, (rated, rows) in self.places.items():
            people[name] = np.full(len(self.tables[name]), np.nan)
            people[name][rows] = values[rated]
        if self.sample is None:
            people = {name: means for name, means in people.items() if not np.isnan(means).all()}
            if not people:
                raise SettingError(f"no row of the run has a rating of {self.quality}")
            apart = len({np.flatnonzero(~np.isnan(means)).tobytes() for means in people.values()}) > 1
        else:
            strata = list(self.sample.design.strata.values())
            codes = np.concatenate([self.strata[name][~np.isnan(means)] for name, means in people.items()])
            rated_of = np.bincount(codes, minlength=len(strata)).tolist()
            answered = {code: rated_of[code] / max(part.drawn_responses, 1) for code, part in enumerate(strata)}
        systems = {}
        for number, (name, means) in enumerate(people.items()):
            columns = [collect_row_values(self.run[name], self.tables[name], key, name) for key in self.keys]
            judges = np.column_stack(columns) if columns else np.zeros((len(means), 0))
            probability, stratum, unit = self._describe_design(name, means)
            unit = unit + number * _MOST_UNITS if apart else unit
            systems[name] = RatedSystem(means, judges, probability, stratum, unit, self.dialogues[name], answered)
        if len(self.keys) > 1:
            combined = combine_judges(list(systems.values()), DEFAULT_SEED)
            columns_of = zip(systems.items(), combined, strict=True)
            systems = {name: replace(system, judges=judges) for (name, system), judges in columns_of}
        return systems

    def _describe_design(self, name: str, means: Floats) -> tuple[Floats, Ints, Ints]:
        """Return the probability, stratum and unit of each row of a system."""
        rows = np.arange(len(means))
        if self.sample is None:  # taken for a simple random sample
            return np.full(len(means), (~np.isnan(means)).mean()), np.zeros(len(means), np.int64), rows
        probability = np.ones(len(means))
        for row in self.sample.responses:
            if row.system == name:
                probability[row.place] = row.probability
        unit = self.tables[name].clusters if self.sample.design.unit == "dialogues" else rows
        return probability, self.strata[name], unit

    def find_confounding(self, baseline: str, others: Sequence[str]) -> list[str]:
        """Return warnings about differences of systems that were mostly rated by different raters."""
        raters = self.ratings.raters.get(self.quality, ())
        rated_by = {
            name: [who for row in rows.tolist() for who in raters[row]] for name, (rows, _) in self.places.items()
        }
        pairs = {name: permutations((rated_by[name], rated_by[baseline])) for name in others}
        shares = {name: min(np.isin(one, other).mean() for one, other in both) for name, both in pairs.items()}
        apart = [shown(name) for name, share in shares.items() if share < 0.5]
        different = f"{', '.join(apart)} and {shown(baseline)} were mostly rated by different raters: their difference"
        return [f"{different} contains that of the raters; let the same raters rate both systems"] if apart else []

    def list_warnings(self) -> list[str]:
        """Return warnings about the choice of the rated rows."""
        values = self.ratings.values[self.quality]
        if self.sample is not None:
            rated = {name for name, value in zip(self.ratings.ids, values, strict=True) if not math.isnan(value)}
            missing, drawn = sum(row.id not in rated for row in self.sample.responses), len(self.sample.responses)
            chance = f"have no rating of {self.quality}; they are assumed to be missing at random"
            return [f"{missing} of {drawn} sampled rows {chance}"] if missing else []
        warnings = ["the rated rows are not known to be a random sample: estimates assume that they are"]
        used, total = sum(len(rows) for _, rows in self.places.values()), len(values)
        if used < total:
            warnings.append(f"{total - used} of {total} rated rows are not in the run and are left out")
        return warnings


def _locate_ratings(sample: Sample, ratings: Ratings) -> dict[str, tuple[Ints, Ints]]:
    """Return, by system that was sampled, which ratings are of its rows, and of which rows."""
    numbers = {identity: number for number, identity in enumerate(ratings.ids)}
    places = {}
    for name in sample.design.systems:
        located = [(numbers[row.id], row.place) for row in sample.responses if row.system == name and row.id in numbers]
        rated, rows = np.array(located, np.int64).reshape(-1, 2).T
        places[name] = rated, rows
    return places


def _number_dialogues(tables: Mapping[str, RowTable]) -> dict[str, Ints]:
    """Return the number of each row's dialogue, the same for all systems: by its name, or by its place if it has none.

    Where systems have the same dialogues in the same order, they are numbered by their places.
    """
    alike = len({table.offsets.tobytes() for table in tables.values()}) < 2
    numbers: dict[Hashable, int] = {}
    dialogues = {}
    for name, table in tables.items():
        keys: list[Hashable] = [("" if alike else name, cluster) for cluster in range(len(table.offsets) - 1)]
        if not alike and table.dialogues is not None:
            keys = [title or key for title, key in zip(table.dialogues, keys, strict=True)]
        codes = np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)
        dialogues[name] = codes[table.clusters]
    return dialogues


def _find_scale(ratings: Ratings, quality: str) -> RatingScale | None:
    """Return the scale of the ratings: that of yes/no answers, or the one that all rows state."""
    values = np.unique(np.concatenate([[], *ratings.annotations[quality]]))
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
    rated = set(digest_ratings(ratings.take(~np.isnan(ratings.values[quality]))))
    warnings = []
    for key in keys:
        seen = find_training_rows(run, key) & rated
        learned = f"{key} learned from {len(seen)} of the {len(rated)} rated rows"
        if len(seen) > MOST_KNOWN * len(rated):
            what = "so it has seen these ratings and the confidence interval would be invalid"
            raise SettingError(f"{learned}, {what}; use a judge that was trained on other ratings, or rate others")
        warnings += [learned] if seen else []
    return warnings


def _choose_baseline(run: Run, systems: Mapping[str, RatedSystem], baseline: str | None) -> tuple[str, list[str]]:
    """Return the baseline and the others; a single system is its own."""
    here = {name: run[name] for name in run if name in systems}
    if len(here) == 1 and baseline in (None, *here):
        return next(iter(here)), []
    return choose_systems(here, baseline, here)


def _correlate_judge(system: RatedSystem) -> float:
    """Return the weighted correlation of judge and ratings over the rated rows."""
    if not system.judges.shape[1]:
        return math.nan
    rated = system.rated[~np.isnan(system.judges[system.rated, 0])]
    judge, people, weights = system.judges[rated, 0], system.people[rated], 1 / system.probability[rated]
    if len(rated) < 2 or not np.ptp(judge) or not np.ptp(people):
        return math.nan
    judge, people = (column - np.average(column, weights=weights) for column in (judge, people))
    squares = float((weights * judge * judge).sum()) * float((weights * people * people).sum())
    return float((weights * judge * people).sum()) / math.sqrt(squares)


def _warn_about_estimates(
    systems: Sequence[HumanEstimate], keys: Sequence[str], scale: RatingScale | None
) -> list[str]:
    """Return warnings about few clusters, and about judges that were not used."""
    warnings = []
    if (least := min(estimate.clusters for estimate in systems)) < FEW:
        warnings.append(f"ratings of only {least} dialogues or contexts: confidence intervals may be too narrow")
    names = ", ".join(shown(estimate.system) for estimate in systems if not any(estimate.factors))
    if keys and scale is not None and scale.yes_no and names:
        few = f"fewer than {RARE} answers of the rarer kind for {names}"
        warnings.append(f"{few}: estimates are those of ratings alone")
    return warnings


# Generalization to other raters: the estimates without each rater in turn, and over rows as clusters.


def require_raters(number: int, named: bool) -> None:
    """Raise a SettingError for too few raters, or nameless ones, for intervals that hold for other raters."""
    if number < FEWEST_RATERS or not named:
        what = f"intervals for other raters need ratings of at least {FEWEST_RATERS} raters, each with a name"
        raise SettingError(f"{what}; there are {number}: take raters as fixed")


def _generalize_to_raters(
    study: _Study,
    raters: Sequence[str],
    systems: Mapping[str, RatedSystem],
    estimate_all: Callable[[Mapping[str, RatedSystem]], list[RatingEstimate]],
    bounds: Sequence[tuple[float, float] | None],
    confidence: float,
) -> list[RatingEstimate]:
    """Return estimates with intervals that hold for other raters, too."""
    annotations, names_of = study.ratings.annotations[study.quality], study.ratings.raters.get(study.quality, ())
    rows = list(zip(annotations, names_of, strict=True))
    require_raters(len(raters), all(len(values) == len(who) for values, who in rows))
    without = []
    for name in raters:
        kept = [values[[other != name for other in who]] for values, who in rows]
        rest = study.make_systems(np.array([float(values.mean()) if len(values) else math.nan for values in kept]))
        if rest.keys() != systems.keys() or not all(len(rated.rated) for rated in rest.values()):
            raise SettingError(f"without {name!r} a system has no ratings; take raters as fixed")
        without.append(estimate_all(rest))
    by_row = {}
    for number, (name, system) in enumerate(systems.items()):
        units = np.arange(len(system.people)) + number * _MOST_UNITS
        by_row[name] = replace(system, dialogue=units, unit=units)
    ratings_of_a_row = float(np.mean([len(values) for values in annotations if len(values)]))
    columns = zip(estimate_all(systems), zip(*without, strict=True), estimate_all(by_row), bounds, strict=True)
    return [
        generalize_to_raters(value, rest, over_rows, ratings_of_a_row, confidence, ends)
        for value, rest, over_rows, ends in columns
    ]


# Planning.


class NeededRatings(Struct, frozen=True):
    """How many ratings of a system; None: more dialogues are needed."""

    system: str
    of: int
    """Responses that could be rated."""
    with_judge: int | None
    alone: int | None


class RatingPlan(Record, frozen=True):
    """How many ratings an interval of some width takes."""

    width: float
    confidence: float
    needed: list[NeededRatings]
    assumptions: list[str]
    """What the numbers rest on, in sentences."""
    judges: Sequence[str] = ()
    """What more answers of a judge do, in sentences."""

    @property
    def detectable(self) -> float:
        """The difference of two systems with such intervals, rated independently, that is found with 80% power."""
        z = NormalDist().inv_cdf((1 + self.confidence) / 2)
        return math.sqrt(2) * (z + NormalDist().inv_cdf(significance.POWER)) * self.width / 2 / z


def plan_ratings(
    rows: dict[str, int],
    width: float,
    confidence: float = DEFAULT_LEVEL,
    std: float = ASSUMED_STD,
    correlation: float = ASSUMED_CORRELATION,
    judges: Sequence[str] = (),
) -> RatingPlan:
    """Plan ratings of each system for a width, from assumptions; `rows`: the responses of each."""
    if not std > 0 or not -1 <= correlation <= 1:
        raise SettingError("a standard deviation is above 0, and a correlation between -1 and 1")
    wanted = _find_variance(width, confidence)
    needed = []
    for name, number in rows.items():
        floor = std**2 / number
        judged = _count_needed(std**2 * (1 - correlation**2), floor, number, wanted)
        needed.append(NeededRatings(name, number, judged, _count_needed(std**2, floor, number, wanted)))
    assumptions = [
        f"ratings have a standard deviation of {std:g} (--std)",
        f"the judge's correlation with human ratings is {correlation:g} (--correlation)",
        "rows are independent: no correlation between ratings of the same dialogue",
    ]
    return RatingPlan(width, confidence, needed, assumptions, judges)


def plan_answers(run: Run, systems: Iterable[str]) -> list[str]:
    """Return what more answers or dialogues do for the grades of each judge that answered repeatedly."""
    lines = []
    for name, splits in run.details.get(JUDGE_SAMPLING, {}).items():
        for key, split in splits.items() if name in systems else ():
            estimate, rows = run[name][key], run[name].table
            if estimate.scores is None or rows is None or estimate.scored < 2 or not estimate.std:
                continue
            there = ~np.isnan(estimate.scores)
            clusters = rows.clusters[there] if estimate.level is Level.TURN else np.flatnonzero(there)
            sums = np.bincount(np.unique(clusters, return_inverse=True)[1], estimate.scores[there] - estimate.mean)
            error = float((sums**2).sum()) * len(sums) / max(len(sums) - 1, 1)
            of_mean = min(split["variance"] * estimate.scored / error, 1.0) if error else 1.0
            of_grades = min(split["variance"] * (1 - 1 / estimate.scored) / estimate.std**2, 1.0)
            narrower = [f"{100 * (1 - math.sqrt(1 - part)):.0f}%" for part in (of_mean / 2, of_mean, 0.5)]
            factor = 1 / math.sqrt(1 - of_grades / 2)
            part = f"{100 * of_mean:.0f}% of the squared error of its mean is the sampling of the judge"
            lines.append(f"{shown(key)} of {shown(name)}, {split['answers']:g} answers per grade: {part}.")
            more = f"{narrower[0]}, any number by at most {narrower[1]}, and twice the dialogues by {narrower[2]}"
            lines.append(f"Twice the answers narrow the interval by {more}.")
            lines.append(f"Twice the answers multiply the correlation with ratings by {factor:.2f}.")
    return lines


def _find_variance(width: float, confidence: float) -> float:
    """Return the variance that gives an interval of a width."""
    if not (math.isfinite(width) and width > 0):
        raise SettingError(f"the width of an interval is a number above 0, not {width}")
    return (width / 2 / NormalDist().inv_cdf((1 + confidence) / 2)) ** 2


def _count_needed(falling: float, floor: float, rows: int, wanted: float) -> int | None:
    """Return the least n with falling (1 / n - 1 / rows) + floor <= wanted; None if all rows do not give it."""
    if floor > wanted:
        return None
    return min(rows, max(2, math.ceil(1 / ((wanted - floor) / falling + 1 / rows)))) if falling else 2
