"""Print the tables of docs/simulation-tables.md: coverage of estimates, rankings, agreement and sequential tests.

    python tools/simulate_people.py [--sets NUMBER] [--seed 1] [--only coverage,rank,agreement] [--ratings FOLDER]

`coverage`: data sets are drawn from a distribution whose truth is known. Dialogues have one to thirty turns, which
resemble each other (three tenths of the variance lie between dialogues); a judge has a correlation with people. Rows
are drawn as by `dialeval.sample` in each design, and estimated as by `dialeval.estimate_ratings`, without the files in
between. `alone` are rows that stand alone, for which the formula of the width holds: sqrt(1 - r^2 (1 - n / N)).

`rank`: pairs of three systems that raters compare. Their choices follow no Bradley-Terry model: qualities have gamma
noise and dialogues suit systems differently (`gamma`), or a quarter of the dialogues belongs to raters who click at
random (`clicks`). The truth is what the model gives for 40,000 dialogues. `agreement`: metrics and ratings from a
Gaussian copula with other marginals. `stars`: tables of five metrics that have nothing to do with the ratings.

`systems`: correlations of a metric with ratings over some systems of twelve dialogues each, which differ in what the
metric and what people say; the truth is over very many systems. `rank-raters`: raters with tastes of their own compare
two systems that are equal over all raters there could be. `position`: the response that is shown first is preferred,
and one of two equal systems is first in four fifths of its pairs. `one-rater`: raters who are stricter or milder rate
one of two equal systems each.

`ceiling`: k annotators whose errors have so many standard deviations of what they rate; the truth follows from both.

`yes-no`: shares of yes up to 99.7%, dialogues of unequal propensity, with a judge that knows something. `raters`:
ratings by some raters who are stricter or milder, who all rate every drawn row (`crossed`) or were dealt out, two a row
(`dealt`); the truth is over all raters there could be.

`ratings`: sets that people did rate. The mean of their ratings of all rows is the truth; a hundred are drawn, and the
shipped judge does the rest. `looks`: how often a confidence sequence misses at one of a thousand looks.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dialeval.analysis.agreement import Agreement, correlate_metrics
from dialeval.analysis.matching import RatedRows, collect_points
from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.human.estimate import FEWEST_RATERS
from dialeval.human.estimate import estimate_ratings as estimate_people
from dialeval.human.rank import Ranking, rank
from dialeval.human.sample import allocate, sample_systematically
from dialeval.human.sample import sample as draw
from dialeval.human.sample_files import Sample
from dialeval.io.ratings import OVERALL, Pairs, Ratings, read_ratings
from dialeval.stats.correlation import NAMES, Points, measure_ceiling, measure_highest_correlation
from dialeval.stats.independent import ClusterSums
from dialeval.stats.prediction_powered import RatedSystem, RatingScale, Target, estimate_mean
from dialeval.stats.sequences import FIRST, confidence_sequence

SETS = {
    "coverage": 500,
    "rank": 400,
    "agreement": 400,
    "stars": 400,
    "systems": 1000,
    "rank-raters": 400,
    "position": 400,
    "one-rater": 400,
    "ceiling": 400,
    "yes-no": 400,
    "raters": 400,
    "ratings": 500,
    "looks": 500,
}
"""Data sets of every case, unless another number is given."""
BETWEEN = 0.3
"""The share of the variance that lies between dialogues."""
MEAN = 3.0
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
DESIGNS = ("plain", "strata", "dialogues", "alone")
TARGETS: tuple[Target, ...] = ("dialogues", "run")
DRAWN = 200
DIALOGUES = 120
ALONE = 1000
RATED = 100
RATED_SETS = (
    *("abc_eval", "convai2_thumbs", "grade_convai2", "grade_empathetic"),
    *("gupta_dailydialog", "humod_test", "llmeval_dailydialog", "usr_topicalchat", "zhao_dailydialog"),
)
"""Sets of up to a few thousand single replies that the shipped judge was not trained on."""


def simulated(rng: np.random.Generator, lengths: Ints, r: float) -> tuple[Floats, Floats]:
    """What people say of every row, and a judge whose correlation with it is r."""
    rows = int(lengths.sum())

    def values() -> Floats:
        shared = np.repeat(rng.normal(size=len(lengths)), lengths)
        both: Floats = math.sqrt(BETWEEN) * shared + math.sqrt(1 - BETWEEN) * rng.normal(size=rows)
        return both

    people = values()
    judge: Floats = r * people + math.sqrt(1 - r * r) * values()
    return MEAN + people, judge


def rated(rng: np.random.Generator, design: str, lengths: Ints, people: Floats, judge: Floats, n: int) -> RatedSystem:
    """The rows of a system of which about n were drawn and rated."""
    rows = len(people)
    dialogue = np.repeat(np.arange(len(lengths)), lengths)
    unit = dialogue if design == "dialogues" else np.arange(rows)
    units = int(unit[-1]) + 1
    stratum = np.zeros(units, np.int64)
    if design == "strata":
        stratum = np.searchsorted(np.quantile(judge, [0.25, 0.5, 0.75]), judge)
    numbers = allocate(np.bincount(stratum), round(n * units / rows))
    probability, taken = np.zeros(units), np.zeros(units, np.bool_)
    for code, number in enumerate(numbers.tolist()):
        own = np.flatnonzero(stratum == code)
        probability[own] = number / len(own)
        taken[own] = sample_systematically(probability[own], rng)
    said = np.where(taken[unit], people, np.nan)
    return RatedSystem(said, judge[:, None], probability[unit], stratum[unit], unit, dialogue)


Found = list[tuple[bool, bool, float, float]]
"""Of each data set: whether the interval covered, whether that of ratings alone did, both standard errors."""


def coverage(seeds: Iterable[int], design: str, r: float, of: Target, n: int = DRAWN) -> Found:
    """What estimates do where the truth is known."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng([seed, round(100 * r)])
        alone = design == "alone"
        lengths = np.ones(ALONE, np.int64) if alone else rng.integers(1, 31, size=DIALOGUES)
        people, judge = simulated(rng, lengths, r)
        figure = estimate_mean(rated(rng, design, lengths, people, judge, n), target=of)
        found.append(_hit(figure, MEAN if of == "dialogues" else float(people.mean())))
    return found


def _hit(figure: Any, truth: float) -> tuple[bool, bool, float, float]:
    (low, high), (alone_low, alone_high) = figure.interval, figure.alone_interval
    return low <= truth <= high, alone_low <= truth <= alone_high, figure.error, figure.alone_error


def ratio(found: Found) -> float:
    """How wide intervals are against those of ratings alone, over all data sets."""
    errors = np.array([each[2:] for each in found])
    return float(np.sqrt((errors[:, 0] ** 2).mean() / (errors[:, 1] ** 2).mean()))


def formula(r: float, n: int = DRAWN, rows: int = ALONE, of: Target = "dialogues") -> float:
    """The width against ratings alone, as theory has it for rows that stand alone."""
    return math.sqrt(1 - r * r * (1 - n / rows)) if of == "dialogues" else math.sqrt(1 - r * r)


def by_dialogue(ratings: Ratings, judge: Floats) -> tuple[Ints, Floats, Floats]:
    """The lengths of dialogues, what people said and what the judge says; rows without a rating are left out."""
    values = ratings.values[OVERALL]
    known = np.flatnonzero(~np.isnan(values) & ~np.isnan(judge))
    _, codes = np.unique(np.array(ratings.dialogues, object)[known], return_inverse=True)
    order = known[np.argsort(codes.ravel(), kind="stable")]
    return np.bincount(codes.ravel()).astype(np.int64), values[order], judge[order]


def judged(ratings: Ratings) -> Floats:
    """What the shipped judge says of every rated row."""
    from dialeval.analysis.matching import score_ratings
    from dialeval.engine.resources import Resources

    rows: Floats = score_ratings(ratings, OVERALL, Resources(None, None, None), ["judge"]).metrics["judge"]
    return rows


def of_ratings(lengths: Ints, people: Floats, judge: Floats, seeds: Iterable[int], of: Target = "run") -> Found:
    """What estimates of a rated set do with a hundred of its ratings."""
    truth = float(people.mean())
    systems = (rated(np.random.default_rng(seed), "plain", lengths, people, judge, RATED) for seed in seeds)
    return [_hit(estimate_mean(system, target=of), truth) for system in systems]


def looks(seeds: Iterable[int], kind: str, number: int = 1000) -> tuple[list[bool], list[bool]]:
    """Whether a sequence, and an ordinary interval, miss the truth at one of so many looks."""
    missed, ordinary = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        values, bounds = _differences(rng, kind, number)
        ones = np.ones(number)
        low, high, _ = confidence_sequence(ClusterSums(0 * ones, ones), ClusterSums(values, ones), bounds, 0.05)
        missed.append(bool(((low > 0) | (high < 0)).any()))
        times = np.arange(1, number + 1)
        means = np.cumsum(values) / times
        spread = np.sqrt(np.maximum(np.cumsum(values**2) / times - means**2, 0))
        ordinary.append(bool((np.abs(means) > 1.96 * spread / np.sqrt(times))[FIRST:].any()))
    return missed, ordinary


def _differences(rng: np.random.Generator, kind: str, number: int) -> tuple[Floats, tuple[float, float]]:
    if kind == "yes/no":
        return rng.choice([-1.0, 0.0, 1.0], p=[0.15, 0.7, 0.15], size=number), (0.0, 1.0)
    if kind == "normal":
        return rng.normal(size=number), (-math.inf, math.inf)
    return rng.exponential(size=number) - 1, (-math.inf, math.inf)


KINDS = ("yes/no", "normal", "skewed")


QUALITY = (0.7, 0.2, -0.9)
"""Of three systems; those of null cases are equal."""
RANKED = (("gamma", QUALITY), ("clicks", QUALITY), ("gamma", (0.0, 0.0, 0.0)), ("clicks", (0.0, 0.0, 0.0)))
COMPARED_DIALOGUES = (6, 10, 20, 50)
TRUE_DIALOGUES = 40_000


def compared(rng: np.random.Generator, kind: str, quality: Sequence[float], dialogues: int) -> Pairs:
    """Pairs of systems that raters compare in dialogues of one to many pairs."""
    sizes = 1 + rng.geometric(0.2, size=dialogues)
    dialogue = np.repeat(np.arange(dialogues), sizes)
    number = len(dialogue)
    left = rng.integers(len(quality), size=number)
    right = (left + rng.integers(1, len(quality), size=number)) % len(quality)
    suits = rng.uniform(-1, 1, size=(dialogues, len(quality)))  # what a dialogue is about suits some systems
    own = np.array(quality) + suits
    noise = rng.gamma(2.0, 0.6, size=(2, number))
    ahead = own[dialogue, left] + noise[0] - own[dialogue, right] - noise[1]
    outcome = np.where(np.abs(ahead) < 0.2, 0, np.sign(ahead)).astype(np.int64)
    if kind == "clicks":
        careless = (rng.random(dialogues) < 0.25)[dialogue]
        outcome = np.where(careless, rng.choice([-1, 1], size=number), outcome)
    names = [f"system {place}" for place in range(len(quality))]
    return Pairs(names, left, right, outcome, dialogue, np.full(number, np.nan), named=True)


@lru_cache
def true_ranking(kind: str, quality: tuple[float, ...]) -> Ranking:
    """What the model gives for very many dialogues."""
    return rank(compared(np.random.default_rng(0), kind, quality, TRUE_DIALOGUES))


def rank_coverage(
    seeds: Iterable[int], kind: str, quality: tuple[float, ...], dialogues: int
) -> tuple[list[bool], list[bool], list[bool]]:
    """Whether intervals of strengths and scores cover, and whether equal systems are told apart."""
    truth = {each.system: each for each in true_ranking(kind, quality).systems}
    strengths, scores, apart = [], [], []
    for seed in seeds:
        try:
            found = rank(compared(np.random.default_rng([seed, dialogues]), kind, quality, dialogues))
        except SettingError:  # a system that never lost, which `rank` refuses
            continue
        for each in found.systems:
            wanted = truth[each.system]
            strengths.append(each.interval[0] <= wanted.strength <= each.interval[1])
            scores.append(each.score_interval[0] <= wanted.score <= each.score_interval[1])
        apart.append(len(found.groups) > 1)
    return strengths, scores, apart


MARGINALS = ("uniform", "stars", "gamma", "rare", "cubed", "pareto")
"""Of a metric: bounded; five values; skewed; mostly 0; cubes of normal values; a tail that has hardly a variance."""
HEAVY = ("rare", "cubed", "pareto")
COPULA_CORRELATIONS = (0.0, 0.8)
RATED_DIALOGUES = ((10, 3), (30, 1), (100, 1), (30, 8))
"""Dialogues, and rated turns of each."""
TRUE_POINTS = 200_000


def correlated(
    rng: np.random.Generator, marginal: str, r: float, dialogues: int, turns: int
) -> tuple[Floats, Floats, Ints]:
    """A metric, ratings from 1 to 5 and the dialogue of each; r is the correlation of the copula."""
    dialogue = np.repeat(np.arange(dialogues), turns)
    between = math.sqrt(BETWEEN) if turns > 1 else 0.0
    shared, own = rng.normal(size=(2, dialogues))[:, dialogue], rng.normal(size=(2, len(dialogue)))
    first, other = between * shared + math.sqrt(1 - between**2) * own
    second = r * first + math.sqrt(1 - r * r) * other
    ratings = 1.0 + np.digitize(second, [-1.4, -0.5, 0.3, 1.1])
    return _metric(first, marginal), ratings, dialogue


def _metric(normal: Floats, marginal: str) -> Floats:
    """Normal values as those of a metric with other marginals."""
    if marginal == "uniform":
        return np.arctan(normal)
    if marginal == "stars":
        return np.digitize(normal, [-1.0, -0.2, 0.6, 1.2]).astype(np.float64)
    if marginal == "gamma":
        return np.log1p(np.exp(1.7 * normal))
    if marginal == "rare":
        return np.where(normal > 1.2, np.exp(0.5 * normal), 0.0)
    if marginal == "cubed":
        return normal**3
    above = np.array([math.erfc(each / math.sqrt(2)) for each in normal.tolist()])
    tail: Floats = above ** (-1 / 2.5)
    return tail


@lru_cache
def true_correlations(marginal: str, r: float, turns: int) -> Floats:
    """The coefficients of very many points."""
    metric, ratings, dialogue = correlated(np.random.default_rng(0), marginal, r, TRUE_POINTS // turns, turns)
    return Points(metric, ratings, dialogue).correlate()


def agreed(metrics: dict[str, Floats], ratings: Floats, dialogue: Ints) -> Agreement:
    """The agreement of some metrics with ratings of turns."""
    none = np.zeros(len(ratings), np.int64)
    rows = RatedRows(["a"], none, dialogue, ratings, none.astype(np.bool_), metrics)
    return correlate_metrics(rows, [np.empty(0)] * len(ratings), OVERALL, levels=["turn"], resamples=2, threads=1)


def agreement_coverage(
    seeds: Iterable[int], marginal: str, r: float, dialogues: int, turns: int
) -> tuple[list[list[bool]], list[bool]]:
    """Whether the intervals of each coefficient cover, and whether a warning says that tails are heavy."""
    truth = dict(zip(NAMES, true_correlations(marginal, r, turns).tolist(), strict=True))
    covered, warned = [], []
    for seed in seeds:
        metric, ratings, dialogue = correlated(np.random.default_rng([seed, dialogues]), marginal, r, dialogues, turns)
        found = agreed({"metric": metric}, ratings, dialogue)
        each = found["metric"]["turn"]
        ends = {name: getattr(each, f"{name}_interval") for name in NAMES}
        if each.reason is None and not math.isnan(
            ends["pearson"][0]
        ):  # a metric that is 0 nearly everywhere has no interval
            covered.append([ends[name][0] <= truth[name] <= ends[name][1] for name in NAMES])
            warned.append(any("heavy tails" in warning for warning in found.warnings))
    return covered, warned


def starred(seeds: Iterable[int], dialogues: int, turns: int) -> tuple[list[bool], list[bool]]:
    """Whether one of five unrelated metrics has a star, and whether one has a p below 5% without the correction."""
    corrected, plain = [], []
    for seed in seeds:
        rng = np.random.default_rng([seed, dialogues])
        _, ratings, dialogue = correlated(rng, "uniform", 0.0, dialogues, turns)
        metrics = {name: correlated(rng, name, 0.0, dialogues, turns)[0] for name in MARGINALS[:5]}
        found = [each["turn"] for each in agreed(metrics, ratings, dialogue).metrics.values()]
        corrected.append(any(getattr(each, f"{name}_adjusted_p") < 0.05 for each in found for name in NAMES))
        plain.append(any(getattr(each, f"{name}_p") < 0.05 for each in found for name in NAMES))
    return corrected, plain


SYSTEMS = (6, 8, 12, 20)


def system_rows(rng: np.random.Generator, r: float, systems: int) -> RatedRows:
    """Ratings of systems, and a metric; what is true of both systems has a Gaussian copula with correlation r."""
    dialogues = 12
    first, other = rng.normal(size=(2, systems))
    second = r * first + math.sqrt(1 - r * r) * other
    system, dialogue = np.divmod(np.arange(systems * dialogues), dialogues)
    hard = rng.uniform(-1, 1, size=dialogues)[dialogue]
    metric = np.exp(0.5 * first)[system] + hard + rng.gamma(2.0, 0.4, size=len(system))
    ratings = 3 + second[system] + hard + rng.laplace(size=len(system))
    whole = np.zeros(len(system), np.bool_)
    return RatedRows([f"s{number}" for number in range(systems)], system, dialogue, ratings, whole, {"m": metric})


@lru_cache
def true_system_correlations(r: float) -> Floats:
    """The coefficients over very many systems."""
    rows = system_rows(np.random.default_rng(0), r, 20_000)
    return collect_points(rows, "m", np.arange(len(rows)), "system").correlate()


def system_coverage(seeds: Iterable[int], r: float, systems: int) -> list[list[bool]]:
    """Whether the intervals of each coefficient cover; one that is not known does."""
    truth, covered = true_system_correlations(r), []
    for seed in seeds:
        rows = system_rows(np.random.default_rng([seed, systems]), r, systems)
        each = correlate_metrics(rows, [np.empty(0)] * len(rows), OVERALL, levels=["system"], resamples=2, threads=1)[
            "m"
        ]["system"]
        ends = [getattr(each, f"{name}_interval") for name in NAMES]
        covered.append([not (high < value or low > value) for (low, high), value in zip(ends, truth, strict=True)])
    return covered


def preferred(rng: np.random.Generator, raters: int, place: float = 0.0, first: float = 0.5) -> Pairs:
    """Preferences of raters with tastes of their own between two systems that are equal over all raters."""
    dialogues = 60
    taste, suits = 0.5 * rng.standard_t(6, size=raters), 0.7 * rng.laplace(size=dialogues)
    rater, dialogue = np.divmod(np.arange(raters * dialogues), dialogues)
    ahead = taste[rater] + suits[dialogue] + rng.logistic(size=len(rater))
    left = (rng.random(len(rater)) >= first).astype(np.int64)  # 0: the first system is shown first
    seen = np.where(left == 0, ahead, -ahead) + place
    outcome = np.where(np.abs(seen) < 0.3, 0, np.sign(seen)).astype(np.int64)
    unknown, who = np.full(len(rater), np.nan), [f"rater {number}" for number in rater.tolist()]
    return Pairs(["one", "two"], left, 1 - left, outcome, dialogue, unknown, named=True, rater=who)


def told_apart(seeds: Iterable[int], number: int, place: float, first: float, **settings: Any) -> list[bool]:
    """Whether two equal systems are told apart."""
    return [
        len(rank(preferred(np.random.default_rng([seed, number]), number, place, first), **settings).groups) > 1
        for seed in seeds
    ]


def one_rater(seeds: Iterable[int], raters: int, how: Literal["fixed", "random"]) -> tuple[list[bool], list[bool]]:
    """Whether equal systems differ if each is rated by other raters, and whether there is a warning."""
    differ, warned = [], []
    for seed in seeds:
        run, lines, sample = rated_by(np.random.default_rng([seed, raters]), "crossed", 2 * raters)
        system = {row.id: row.system for row in sample.responses}
        own = [
            each
            for each in lines
            if (int(str(each["rater"]).split()[1]) < raters) == (system[str(each["id"])] == "one")
        ]
        found = estimate_people(run, own, judge="judge", sample=sample, raters=how)
        low, high = found.differences[0].interval
        differ.append(low > 0 or high < 0)
        warned.append(any("different raters" in warning for warning in found.warnings))
    return differ, warned


ANNOTATED = ((40, 2, 1.0), (40, 3, 2.0), (150, 3, 1.5), (150, 9, 3.0), (600, 3, 2.0))
"""Rated rows in dialogues of two, annotators of each, and the standard deviation of their errors."""


def ceiling_coverage(seeds: Iterable[int], rows: int, k: int, error: float) -> tuple[list[bool], list[bool]]:
    """Whether the intervals of the ceiling and of alpha (interval) cover."""
    highest, alphas = [], []
    dialogue = np.arange(rows) // 2
    for seed in seeds:
        rng = np.random.default_rng([seed, rows, k])
        meant = math.sqrt(BETWEEN) * rng.normal(size=rows)[dialogue]
        meant += math.sqrt(1 - BETWEEN) * rng.laplace(size=rows) / math.sqrt(2)
        said = list(meant[:, None] + error * rng.standard_t(6, size=(rows, k)) / math.sqrt(1.5))
        _, (low, high) = measure_highest_correlation(said, np.arange(rows), dialogue, same_raters=False)
        highest.append(low <= math.sqrt(1 / (1 + error**2 / k)) <= high)
        rounded = [np.round(2 * values) / 2 for values in said]  # which adds 1 / 48 to the variance of errors
        low, high = measure_ceiling(rounded, dialogue).alpha_interval["interval"]
        alphas.append(low <= 1 / (1 + error**2 + 1 / 48) <= high)
    return highest, alphas


SHARES = (0.5, 0.9, 0.97, 0.99, 0.997)
ANSWERS = (20, 40, 100, 200)
YES_NO = RatingScale((0.0, 1.0), yes_no=True)


def answered(rng: np.random.Generator, yes: float, lengths: Ints) -> tuple[Floats, Floats]:
    """Yes/no answers to every row, whose propensity depends on the dialogue, and what a judge says."""
    shift = math.log(yes / (1 - yes))
    drift = np.repeat(0.8 * (rng.exponential(size=len(lengths)) - 1), lengths)
    propensity = np.exp(shift + drift) / (1 + np.exp(shift + drift))
    people = (rng.random(len(drift)) < propensity).astype(np.float64)
    return people, people + 0.6 * rng.standard_t(5, size=len(people))


@lru_cache
def true_share(yes: float) -> float:
    """The share of yes over very many dialogues; all are of one length here, which does not matter for it."""
    return float(answered(np.random.default_rng(0), yes, np.ones(2_000_000, np.int64))[0].mean())


def share_coverage(seeds: Iterable[int], yes: float, n: int, of: Target) -> tuple[Found, list[bool]]:
    """What estimates of a share do, and whether the interval of the difference of two equal systems covers 0."""
    found, differences = [], []
    for seed in seeds:
        rng = np.random.default_rng([seed, n])
        lengths = rng.integers(1, 13, size=DIALOGUES)
        (people, judge), (others, other_judge) = answered(rng, yes, lengths), answered(rng, yes, lengths)
        system = rated(rng, "plain", lengths, people, judge, n)
        baseline = replace(
            system, people=np.where(np.isnan(system.people), np.nan, others), judges=other_judge[:, None]
        )
        figure = estimate_mean(system, target=of, scale=YES_NO)
        found.append(_hit(figure, true_share(yes) if of == "dialogues" else float(people.mean())))
        low, high = estimate_mean(system, baseline, of, scale=YES_NO).interval
        truth = 0.0 if of == "dialogues" else float(people.mean() - others.mean())
        differences.append(low <= truth <= high)
    return found, differences


RATER_SPREAD = 0.5
"""Standard deviation of how strict raters are, on a scale on which the ratings of a row have about 1."""
RATERS = (3, 5, 8, 15)
DEALT = ("crossed", "dealt")


def rated_by(rng: np.random.Generator, design: str, raters: int) -> tuple[Run, list[dict[str, object]], Sample]:
    """A run of two equal systems, and lines of raters who are strict or mild, about rows that were drawn."""
    dialogues, turns = 60, 3
    hard = np.repeat(rng.uniform(-1, 1, size=dialogues), turns)
    results, people = {}, {}
    for name in ("one", "two"):
        people[name] = MEAN + hard + 0.7 * rng.laplace(size=len(hard))
        offsets = np.arange(dialogues + 1) * turns
        texts = {"response": TextColumn.from_strings([f"{name} {row}" for row in range(len(hard))])}
        judge = people[name] + rng.normal(size=len(hard))
        estimate = Estimate(0.0, 0.0, len(judge), len(judge), corpus=False, scores=judge, level=Level.TURN)
        results[name] = Result({"judge": estimate}, table=RowTable(offsets, texts=texts))
    run = Run(results, "0")
    sample = draw(run, 120, seed=int(rng.integers(10**6)))
    strict = RATER_SPREAD * rng.standard_t(6, size=raters) / math.sqrt(1.5)
    lines: list[dict[str, object]] = []
    for row in sample.responses:
        own = range(raters) if design == "crossed" else rng.choice(raters, size=2, replace=False).tolist()
        for rater in own:
            score = float(people[row.system][row.place] + strict[rater] + 0.6 * rng.normal())
            lines.append({"id": row.id, "rater": f"rater {rater}", "scores": {"overall": score}})
    return run, lines, sample


def rater_coverage(
    seeds: Iterable[int], design: str, raters: int, how: Literal["fixed", "random"]
) -> tuple[list[bool], list[bool]]:
    """Whether intervals of a mean, and of the difference of two equal systems, cover the truth over all raters."""
    means, differences = [], []
    for seed in seeds:
        run, lines, sample = rated_by(np.random.default_rng([seed, raters]), design, raters)
        found = estimate_people(run, lines, judge="judge", sample=sample, raters=how)
        low, high = found.systems[0].interval
        means.append(low <= MEAN <= high)
        low, high = found.differences[0].interval
        differences.append(low <= 0 <= high)
    return means, differences


def share(hits: Iterable[bool]) -> str:
    """Hits in percent."""
    return f"{100 * float(np.mean(list(hits))):.1f}"


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows) + "\n"


def coverage_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of coverage."""
    for of in TARGETS:
        for design in DESIGNS:
            for r in CORRELATIONS:
                found = coverage(seeds, design, r, of)
                covered, alone = (share(bool(each[column]) for each in found) for column in (0, 1))
                theory = f"{formula(r, of=of):.3f}" if design == "alone" else "–"
                yield [of, design, r, covered, alone, f"{ratio(found):.3f}", theory]


def rank_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of rankings."""
    for kind, quality in RANKED:
        for dialogues in COMPARED_DIALOGUES:
            strengths, scores, apart = rank_coverage(seeds, kind, quality, dialogues)
            equal = not any(quality)
            sets = f"{100 * len(apart) / len(seeds):.0f}"
            yield [
                *(kind, "equal" if equal else "different", dialogues, sets, share(strengths), share(scores)),
                share(apart) if equal else "–",
            ]


def agreement_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of agreement."""
    for marginal in MARGINALS:
        for r in COPULA_CORRELATIONS:
            for dialogues, turns in RATED_DIALOGUES:
                covered, warned = agreement_coverage(seeds, marginal, r, dialogues, turns)
                yield [marginal, r, f"{dialogues} x {turns}", *map(share, zip(*covered, strict=True)), share(warned)]


def stars_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of stars."""
    for dialogues, turns in RATED_DIALOGUES:
        corrected, plain = starred(seeds, dialogues, turns)
        yield [f"{dialogues} x {turns}", share(corrected), share(plain)]


def systems_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of systems."""
    for r in COPULA_CORRELATIONS:
        for systems in SYSTEMS:
            yield [r, systems, *map(share, zip(*system_coverage(seeds, r, systems), strict=True))]


def rank_raters_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of raters who compare."""
    for raters in RATERS:
        random = share(told_apart(seeds, raters, 0.0, 0.5, raters="random")) if raters >= FEWEST_RATERS else "–"
        yield [raters, share(told_apart(seeds, raters, 0.0, 0.5)), random]


def position_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of positions."""
    for place in (0.0, 0.5):
        for first in (0.5, 0.8):
            found = [told_apart(seeds, 8, place, first, raters="random", position=own) for own in (False, True)]
            yield [place, f"{first:.0%}", *map(share, found)]


def one_rater_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of systems with raters of their own."""
    for raters in (1, 3, 5):
        differ, warned = one_rater(seeds, raters, "fixed")
        random = share(one_rater(seeds, raters, "random")[0]) if raters > 2 else "–"
        yield [raters, share(differ), share(warned), random]


def ceiling_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of ceilings."""
    for rows, k, error in ANNOTATED:
        yield [rows, k, error, *map(share, ceiling_coverage(seeds, rows, k, error))]


def yes_no_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of yes/no answers."""
    for of in TARGETS:
        for yes in SHARES:
            for n in ANSWERS:
                found, differences = share_coverage(seeds, yes, n, of)
                covered, alone = (share(bool(each[column]) for each in found) for column in (0, 1))
                yield [of, yes, n, covered, alone, share(differences)]


def raters_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of raters."""
    for design in DEALT:
        for raters in RATERS:
            fixed = rater_coverage(seeds, design, raters, "fixed")
            enough = raters >= FEWEST_RATERS
            random = map(share, rater_coverage(seeds, design, raters, "random")) if enough else ("–", "–")
            yield [design, raters, *map(share, fixed), *random]


def ratings_lines(seeds: range, folder: Path) -> Iterator[Sequence[object]]:
    """The lines of the table of rated sets."""
    for name in RATED_SETS:
        ratings = read_ratings(folder / f"{name}.jsonl.gz")
        lengths, people, judge = by_dialogue(ratings, judged(ratings))
        found = of_ratings(lengths, people, judge, seeds)
        r = float(np.corrcoef(judge, people)[0, 1])
        covered, alone = (share(bool(each[column]) for each in found) for column in (0, 1))
        worth = 1 / (1 / len(people) + ratio(found) ** 2 * (1 / RATED - 1 / len(people)))
        yield [name, len(people), f"{r:.2f}", covered, alone, f"{ratio(found):.3f}", f"{worth:.0f}"]


def looks_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of looks."""
    for kind in KINDS:
        missed, ordinary = looks(seeds, kind)
        yield [kind, "betting" if kind == "yes/no" else "asymptotic", share(missed), share(ordinary)]


TABLES: dict[str, tuple[str, list[str], Callable[[range], Iterator[Sequence[object]]]]] = {
    "coverage": ("Estimates", ["of", "design", "r", "covers", "alone covers", "width", "formula"], coverage_lines),
    "rank": (
        "Rankings",
        ["choices", "systems", "dialogues", "ranked", "strength covers", "score covers", "told apart"],
        rank_lines,
    ),
    "agreement": (
        "Agreement",
        ["metric", "r", "dialogues x turns", "Pearson covers", "Spearman covers", "Kendall covers", "warned"],
        agreement_lines,
    ),
    "stars": ("Unrelated metrics", ["dialogues x turns", "a star", "a p below 5%"], stars_lines),
    "systems": (
        "Agreement over systems",
        ["r", "systems", "Pearson covers", "Spearman covers", "Kendall covers"],
        systems_lines,
    ),
    "rank-raters": ("Raters who compare", ["raters", "fixed: told apart", "random: told apart"], rank_raters_lines),
    "position": ("Position", ["effect of the position", "first", "told apart", "with --position"], position_lines),
    "one-rater": (
        "Other raters for each system",
        ["raters of each system", "fixed: differ", "warned", "random: differ"],
        one_rater_lines,
    ),
    "ceiling": ("Ceiling", ["rows", "annotators", "error", "ceiling covers", "alpha covers"], ceiling_lines),
    "yes-no": (
        "Yes/no answers",
        ["of", "proportion of yes", "ratings", "covers", "alone covers", "difference covers"],
        yes_no_lines,
    ),
    "raters": ("Raters", ["design", "raters", "fixed: mean", "difference", "random: mean", "difference"], raters_lines),
    "looks": ("Interim looks", ["differences", "sequence", "misses", "ordinary interval misses"], looks_lines),
}
"""The title, the head and the lines of each table but that of rated sets."""


def table_named(name: str, sets: int, seed: int, folder: Path) -> str:
    """A table with its title."""
    seeds = range(seed * 10**6, seed * 10**6 + sets)
    if name == "ratings":
        head = ["set", "rows", "r", "covers", "alone covers", "width", "effective sample size"]
        title, table = "Public data sets", markdown(head, ratings_lines(seeds, folder))
    else:
        title, head, lines = TABLES[name]
        table = markdown(head, lines(seeds))
    return f"### {title}\n\n{sets} data sets per case.\n\n{table}"


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", type=int, help=f"data sets of every case, instead of {SETS}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(SETS), help="some of the tables, by commas")
    parser.add_argument("--ratings", type=Path, default=Path("../shared/data/ratings"), help="folder of rated sets")
    given = parser.parse_args()
    for name in given.only.split(","):
        print(table_named(name, given.sets or SETS[name], given.seed, given.ratings), flush=True)


if __name__ == "__main__":
    main()
