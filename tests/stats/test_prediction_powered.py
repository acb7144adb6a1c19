"""Estimates from ratings and a judge: equal to the textbook where there is one, and never worse than ratings alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from msgspec import structs

from dialeval.core.errors import SettingError
from dialeval.stats.intervals import Bounds, t_factor
from dialeval.stats.prediction_powered import (
    RatedSystem,
    RatingEstimate,
    RatingScale,
    Target,
    combine_judges,
    estimate_mean,
    generalize_to_raters,
)


def drawn(
    rows: int = 400, n: int = 100, r: float = 0.8, seed: int = 1, dialogues: int | None = None, mean: float = 3.0
) -> tuple[RatedSystem, np.ndarray]:
    """Rows of which some are rated at random, and what people would say of all."""
    rng = np.random.default_rng(seed)
    people = mean + rng.normal(size=rows)
    judge = r * (people - mean) + math.sqrt(1 - r * r) * rng.normal(size=rows)
    taken = rng.permutation(rows) < n
    dialogue = np.arange(rows) if dialogues is None else np.sort(rng.integers(dialogues, size=rows))
    made = RatedSystem(
        np.where(taken, people, np.nan),
        judge[:, None],
        np.full(rows, n / rows),
        np.zeros(rows, np.int64),
        np.arange(rows),
        dialogue,
    )
    return made, people


def test_ratings_alone_are_students_interval() -> None:
    system, people = drawn()
    found = estimate_mean(replace(system, judges=np.zeros((400, 0))))
    rated = people[system.rated]
    error = rated.std(ddof=1) / 10
    assert found.value == found.alone == pytest.approx(rated.mean())
    assert found.error == pytest.approx(error)
    half = t_factor(0.95, 99) * error
    assert found.interval == pytest.approx((rated.mean() - half, rated.mean() + half))
    assert (found.ratings, found.clusters) == (100, 100)
    assert found.freedom == pytest.approx(99)


def test_of_the_run_ratings_alone_are_sampled_without_replacement() -> None:
    system, people = drawn()
    found = estimate_mean(system, target="run")
    assert found.alone_error == pytest.approx(people[system.rated].std(ddof=1) / 10 * math.sqrt(1 - 100 / 400))


def test_ratings_of_all_rows_leave_nothing_open_of_the_run() -> None:
    system, people = drawn(n=400)
    found = estimate_mean(system, target="run")
    assert found.value == pytest.approx(people.mean())
    assert found.error == 0
    assert estimate_mean(system).error == pytest.approx(people.std(ddof=1) / 20, rel=0.01)


def test_the_estimate_is_that_of_ppi() -> None:
    """Independent rows: the formula of the PPI++ paper, with the mean over all rows."""
    system, people = drawn()
    judge, rated = system.judges[:, 0], system.rated
    found = estimate_mean(system)
    (factor,) = found.factors
    assert found.value == pytest.approx(people[rated].mean() - factor * (judge[rated].mean() - judge.mean()))
    slope = np.cov(people[rated], judge[rated])[0, 1] / np.var(judge[rated], ddof=1)
    assert factor == pytest.approx(slope, rel=0.12)  # by the variance in the rated rows and in all rows together
    residual = people[rated] - slope * judge[rated]
    variance = residual.var(ddof=2) / 100 * (1 - 100 / 400) + people[rated].var(ddof=1) / 400
    assert found.error**2 == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize("r", [0.0, 0.3, 0.6, 0.9])
def test_the_width_is_that_of_the_formula(r: float) -> None:
    ratios = []
    for seed in range(60):
        system, _ = drawn(rows=1000, n=100, r=r, seed=seed)
        found = estimate_mean(system)
        ratios.append((found.error / found.alone_error) ** 2)
    assert math.sqrt(np.mean(ratios)) == pytest.approx(math.sqrt(1 - r * r * 0.9), rel=0.03)


def test_a_judge_that_is_worth_nothing_costs_nothing() -> None:
    constant, _ = drawn()
    constant = replace(constant, judges=np.full((400, 1), 0.1) * 3)
    found = estimate_mean(constant)
    assert found.factors == (0.0,)
    assert found.interval == found.alone_interval
    assert found.effective_ratings == found.ratings
    widths = [estimate_mean(drawn(r=0.0, seed=seed)[0]) for seed in range(40)]
    assert np.mean([each.error / each.alone_error for each in widths]) < 1.01
    assert max(each.error / each.alone_error for each in widths) < 1.02


def test_a_judge_that_is_biased_and_on_another_scale_is_as_good() -> None:
    system, _ = drawn()
    other = replace(system, judges=1000 - 50 * system.judges)
    assert estimate_mean(other).interval == pytest.approx(estimate_mean(system).interval)


def test_what_the_judge_was_worth() -> None:
    system, _ = drawn(rows=2000, r=0.9)
    found = estimate_mean(system)
    assert found.effective_ratings == pytest.approx(100 * (found.alone_error / found.error) ** 2)
    assert 300 < found.effective_ratings < 600
    perfect = replace(system, judges=np.where(np.isnan(system.people), 3.0, system.people)[:, None])
    assert estimate_mean(replace(perfect, people=perfect.judges[:, 0])).effective_ratings <= 2000


def test_rows_that_the_judge_cannot_score_have_its_mean() -> None:
    system, _ = drawn()
    gaps = system.judges.copy()
    gaps[::7] = np.nan
    mean = np.nanmean(gaps)
    filled = np.where(np.isnan(gaps), mean, gaps)
    assert estimate_mean(replace(system, judges=gaps)).value == pytest.approx(
        estimate_mean(replace(system, judges=filled)).value
    )


def test_turns_of_a_dialogue_count_together() -> None:
    system, _ = drawn(dialogues=40)
    # Ratings of a dialogue that are all the same say no more than one of them.
    same = np.repeat(np.random.default_rng(3).normal(size=40), 10)
    by_dialogue = replace(
        system, people=same, judges=np.zeros((400, 0)), dialogue=np.repeat(np.arange(40), 10), probability=np.ones(400)
    )
    found = estimate_mean(by_dialogue)
    assert found.error == pytest.approx(same[::10].std(ddof=1) / math.sqrt(40))
    assert found.freedom == pytest.approx(39)
    assert estimate_mean(by_dialogue, target="run").error == 0


def test_strata_count_by_their_share_of_all_rows() -> None:
    rng = np.random.default_rng(4)
    stratum = np.repeat([0, 1], [300, 100])
    people = np.where(stratum == 0, 1.0, 5.0) + 0.1 * rng.normal(size=400)
    taken = np.zeros(400, bool)
    taken[:20] = taken[300:320] = True
    system = RatedSystem(
        np.where(taken, people, np.nan),
        np.zeros((400, 0)),
        np.where(stratum == 0, 20 / 300, 20 / 100),
        stratum,
        np.arange(400),
        np.arange(400),
    )
    found = estimate_mean(system, target="run")
    first, second = people[:20], people[300:320]
    assert found.value == pytest.approx(0.75 * first.mean() + 0.25 * second.mean())
    variance = 0.75**2 * first.var(ddof=1) / 20 * (1 - 20 / 300) + 0.25**2 * second.var(ddof=1) / 20 * (1 - 20 / 100)
    assert found.error**2 == pytest.approx(variance)
    assert found.freedom == pytest.approx(40**2 / (20 * 0.75**2 + 20 * 0.25**2) / 4 - 2)
    # Over other dialogues, which strata they fall into is chance as well.
    assert estimate_mean(system).error ** 2 == pytest.approx(variance + people.var() / 400, rel=0.1)
    with pytest.raises(SettingError, match="a stratum has no rating"):
        estimate_mean(replace(system, people=np.where(stratum == 0, system.people, np.nan)))


def test_unequal_probabilities_are_made_up_for() -> None:
    rng = np.random.default_rng(5)
    rows = 3000
    people = rng.normal(size=rows) + np.linspace(0, 4, rows)
    probability = np.linspace(0.02, 0.2, rows)
    values = []
    for _ in range(200):
        taken = rng.random(rows) < probability
        nothing = np.zeros((rows, 0))
        made = RatedSystem(
            np.where(taken, people, np.nan), nothing, probability, np.zeros(rows, int), np.arange(rows), np.arange(rows)
        )
        values.append(estimate_mean(made, target="run"))
    assert np.mean([each.value for each in values]) == pytest.approx(people.mean(), abs=0.02)
    spread = np.std([each.value for each in values])
    assert np.mean([each.error for each in values]) == pytest.approx(spread, rel=0.12)


def test_a_difference_on_the_same_contexts_is_paired() -> None:
    rng = np.random.default_rng(6)
    hard = 3 * rng.normal(size=400)
    taken = rng.permutation(400) < 100
    systems = []
    for mean in (3.0, 3.5):
        people = mean + hard + 0.3 * rng.normal(size=400)
        judge = hard + rng.normal(size=400)
        systems.append(
            RatedSystem(
                np.where(taken, people, np.nan),
                judge[:, None],
                np.full(400, 0.25),
                np.zeros(400, int),
                np.arange(400),
                np.arange(400),
            )
        )
    first, second = systems
    for target in ("dialogues", "run"):
        found = estimate_mean(second, first, target=target)
        rated = (second.people - first.people)[first.rated]
        left = 1 - 0.25 * (target == "run")
        assert found.alone == pytest.approx(rated.mean())
        assert found.alone_error == pytest.approx(rated.std(ddof=1) / 10 * math.sqrt(left))
        # What is hard cancels already: the judge must not bring it back.
        assert found.error < 1.03 * found.alone_error
        assert found.value == pytest.approx(0.5, abs=0.15)
        assert found.p < 1e-6


def test_several_judges_are_combined_by_what_other_dialogues_say() -> None:
    rng = np.random.default_rng(7)
    rows = 2000
    parts = rng.normal(size=(rows, 2))
    people = parts.sum(axis=1) + 0.3 * rng.normal(size=rows)
    taken = rng.permutation(rows) < 200
    noise = rng.normal(size=(rows, 1))
    made = RatedSystem(
        np.where(taken, people, np.nan),
        np.column_stack([parts, noise]),
        np.full(rows, 0.1),
        np.zeros(rows, int),
        np.arange(rows),
        np.repeat(np.arange(rows // 2), 2),
    )
    (one,) = combine_judges([made], seed=1)
    both = estimate_mean(replace(made, judges=one))
    single = estimate_mean(replace(made, judges=parts[:, :1]))
    assert both.error < 0.7 * single.error
    assert np.corrcoef(one[:, 0], people)[0, 1] > 0.9
    # A rating is never predicted by itself: the fit to noise alone must not look good.
    (nothing,) = combine_judges([replace(made, judges=rng.normal(size=(rows, 20)))], seed=1)
    useless = estimate_mean(replace(made, judges=nothing))
    assert useless.error > 0.97 * useless.alone_error


def test_one_dialogue_has_no_interval() -> None:
    system, _ = drawn(rows=10, n=5)
    found = estimate_mean(replace(system, dialogue=np.zeros(10, np.int64)))
    assert math.isnan(found.error)
    assert math.isnan(found.interval[0])
    with pytest.raises(SettingError, match="no row"):
        estimate_mean(replace(system, people=np.full(10, np.nan)))


def test_what_was_not_answered_is_taken_for_chance() -> None:
    system, _ = drawn()
    kept = system.people.copy()
    kept[system.rated[:50]] = np.nan
    found = estimate_mean(replace(system, people=kept, answered={0: 0.5}), target="run")
    rated = kept[~np.isnan(kept)]
    assert found.alone == pytest.approx(rated.mean())
    assert found.alone_error == pytest.approx(rated.std(ddof=1) / math.sqrt(50) * math.sqrt(1 - 50 / 400))


def test_intervals_for_other_raters_end_where_the_scale_does() -> None:
    """The variance of raters is that of the jackknife; what dialogues and raters have in common counts once."""

    def estimate(value: float, alone: float) -> RatingEstimate:
        return RatingEstimate(value, 0.3, (0.0, 9.0), alone, 0.4, (0.0, 9.0), (), 50, 40, 39.0, 50.0, 0.5)

    without = [estimate(4 + shift, 3 + shift) for shift in (-0.4, -0.2, 0.0, 0.2, 0.4)]
    rows = structs.replace(estimate(4.0, 3.0), error=0.2, alone_error=0.1)
    of_raters = 4 / 5 * 0.4
    errors = [math.sqrt(0.3**2 + of_raters - 0.2**2 / 5), math.sqrt(0.4**2 + of_raters - 0.1**2 / 5)]
    for bounds in (None, (2.5, 4.5), (-1.0, 9.0)):
        found = generalize_to_raters(estimate(4.0, 3.0), without, rows, 5.0, bounds=bounds)
        assert [found.error, found.alone_error] == pytest.approx(errors)
        assert found.freedom == 4
        low, high = bounds or (-math.inf, math.inf)
        for value, error, interval in zip((4.0, 3.0), errors, (found.interval, found.alone_interval), strict=True):
            half = t_factor(0.95, 4) * error
            assert interval == pytest.approx((max(value - half, low), min(value + half, high)))


def contributions(system: RatedSystem, target: Target) -> tuple[float, list[float], list[list[float]], list[float]]:
    """Value, shifts of judges, contributions and weights of rows: the formulas of the module, row by row."""
    rows = len(system.people)
    strata = system.stratum.tolist()
    rated = [not math.isnan(value) for value in system.people]
    weights = [0.0] * rows
    for row in range(rows):
        if rated[row]:
            others = [k for k in range(rows) if strata[k] == strata[row]]
            total = sum(1 / system.probability[k] for k in others if rated[k])
            weights[row] = len(others) / system.probability[row] / total
    columns = [[value if rated[row] else 0.0 for row, value in enumerate(system.people.tolist())]]
    for judge in system.judges.T:
        mean = np.nanmean(judge)
        columns.append([mean if math.isnan(value) else float(value) for value in judge])
    made, means = [], []
    for number, column in enumerate(columns):
        within = {}
        for name in set(strata):
            here = [k for k in range(rows) if strata[k] == name]
            within[name] = sum(weights[k] * column[k] for k in here) / len(here)
        mean = sum(within[name] for name in strata) / rows
        everywhere = sum(column) / rows
        means.append(mean if number == 0 else mean - everywhere)
        added = []
        for row in range(rows):
            psi = weights[row] * (column[row] - within[strata[row]])
            if target == "dialogues":
                psi += within[strata[row]] - mean
                psi -= column[row] - everywhere if number else 0.0
            added.append(psi / rows)
        made.append(added)
    return means[0], means[1:], made, weights


def estimate_by_hand(systems: list[RatedSystem], target: Target, level: float) -> RatingEstimate:
    """The estimate without a scale."""
    value, shifts, weights = 0.0, list[float](), list[float]()
    judges = sum(each.judges.shape[1] for each in systems)
    table: list[list[float]] = []
    for each, sign in zip(systems, (1, -1), strict=False):
        alone, own_shifts, columns, own_weights = contributions(each, target)
        value += sign * alone
        place = 1 + len(shifts)
        for row in range(len(own_weights)):
            line = [0.0] * (1 + judges)
            line[0] = sign * columns[0][row]
            for number, column in enumerate(columns[1:]):
                line[place + number] = sign * column[row]
            table.append(line)
        shifts += [sign * shift for shift in own_shifts]
        weights += own_weights
    lines = np.array(table)
    dialogue, unit, stratum, probability = (
        np.concatenate([getattr(each, name) for each in systems])
        for name in ("dialogue", "unit", "stratum", "probability")
    )
    held = np.array(weights)
    if target == "dialogues":
        names = np.unique(dialogue)
        sums = np.array([lines[dialogue == name].sum(axis=0) for name in names])
        own = np.array([held[dialogue == name].sum() for name in names])
        clusters = int((own > 0).sum())
        strata = max(len(set(each.stratum.tolist())) for each in systems)
        factor = (clusters - 1) ** 2 / (clusters * (clusters - strata)) if clusters > strata else math.nan
        sums *= np.array([math.sqrt(factor) / (1 - share if share < 1 else 1) for share in own / own.sum()])[:, None]
    else:
        names = np.unique(unit[held > 0])
        sums = np.zeros((len(names), lines.shape[1]))
        own = np.array([held[unit == name].sum() for name in names])
        clusters = len(names)
        first = [int(np.flatnonzero((unit == name) & (held > 0))[0]) for name in names]
        strata = len({int(stratum[row]) for row in first})
        for code in set(stratum[first].tolist()):
            here = [k for k, row in enumerate(first) if stratum[row] == code]
            totals = np.array([lines[(unit == names[k]) & (held > 0)].sum(axis=0) for k in here])
            left = np.array([1 - probability[first[k]] for k in here])
            away = totals - (left @ totals / left.sum() if left.sum() > 0 else 0.0)
            factor = (len(here) - 1) / len(here) if len(here) > 1 else math.nan if left.sum() > 0 else 0.0
            total = sum(own[k] for k in here)
            for k, share, deviation in zip(here, left, away, strict=True):
                remaining = 1 - own[k] / total
                sums[k] = deviation * math.sqrt(factor * share) / (remaining if remaining > 0 else 1)
    freedom = own.sum() ** 2 / (own**2).sum() - strata
    enough = freedom - judges >= 1 and judges > 0 and not np.isnan(sums).any()
    factors = np.zeros(judges)
    leverage = np.zeros(len(sums))
    if enough:
        design = sums[:, 1:]
        inverse = np.linalg.pinv(design.T @ design)
        factors = inverse @ design.T @ sums[:, 0]
        leverage = np.minimum(np.diag(design @ inverse @ design.T), 0.9)
    error = math.sqrt((((sums[:, 0] - sums[:, 1:] @ factors) / (1 - leverage)) ** 2).sum())
    alone_error = math.sqrt((sums[:, 0] ** 2).sum())
    ratings, rows = int((held > 0).sum()), len(held)
    freedom_left = max(freedom - judges * enough, 1.0)
    estimate = value - float(factors @ shifts)
    half, alone_half = (
        float(scipy.stats.t.ppf((1 + level) / 2, free)) * each
        for each, free in ((error, freedom_left), (alone_error, max(freedom, 1.0)))
    )
    if target == "dialogues":
        effective = min(ratings * alone_error**2 / error**2, rows)
    else:
        effective = 1 / (1 / rows + error**2 / alone_error**2 * (1 / ratings - 1 / rows))
    return RatingEstimate(
        estimate,
        error,
        (estimate - half, estimate + half),
        value,
        alone_error,
        (value - alone_half, value + alone_half),
        tuple(factors.tolist()),
        ratings,
        clusters,
        freedom_left,
        effective,
        float(2 * scipy.stats.t.sf(abs(estimate) / error, freedom_left)),
    )


def rated_system(seed: int, rows: int = 40, judges: int = 1, per_dialogue: int = 3, strata: int = 2) -> RatedSystem:
    """Rows with unequal probabilities in strata, units and dialogues of several rows, and gaps of the judges."""
    random = np.random.default_rng(seed)
    dialogue = np.arange(rows) // per_dialogue
    stratum = (np.arange(rows) // (2 * per_dialogue)) % strata
    probability = random.uniform(0.2, 0.9, size=int(dialogue.max()) + 1)[dialogue]
    people = random.normal(3, 1, size=rows)
    scores = 2 * people[:, None] + random.normal(size=(rows, judges)) + 5
    scores[random.random((rows, judges)) < 0.1] = np.nan
    rated = (random.random(rows) < 0.6) | (np.arange(rows) < 4 * per_dialogue)
    return RatedSystem(np.where(rated, people, np.nan), scores, probability, stratum, dialogue, dialogue)


def assert_equal(found: RatingEstimate, expected: RatingEstimate) -> None:
    for name, value in structs.asdict(expected).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-7, abs=1e-9, nan_ok=True), name


@pytest.mark.parametrize("target", ["dialogues", "run"])
@pytest.mark.parametrize(
    ("rows", "judges", "per_dialogue", "strata"),
    [(40, 1, 1, 1), (40, 1, 3, 2), (60, 2, 2, 3), (30, 0, 2, 2), (12, 1, 2, 1), (15, 2, 3, 2)],
)
def test_the_estimate_is_that_of_the_formulas_row_by_row(
    rows: int, judges: int, per_dialogue: int, strata: int, target: Target
) -> None:
    for seed in range(3):
        one, two = (rated_system(seed + shift, rows, judges, per_dialogue, strata) for shift in (10, 20))
        with np.errstate(invalid="ignore"):
            assert_equal(estimate_mean(one, None, target, 0.9), estimate_by_hand([one], target, 0.9))
            assert_equal(estimate_mean(one, two, target, 0.8), estimate_by_hand([one, two], target, 0.8))
            fewer = replace(two, stratum=np.zeros(rows, np.int64))
            if target == "dialogues":
                assert_equal(estimate_mean(fewer, one), estimate_by_hand([fewer, one], target, 0.95))
            gap = replace(one, stratum=3 * one.stratum)
            assert_equal(estimate_mean(gap, None, target), estimate_mean(one, None, target))


YES_NO: Bounds = (0.0, 1.0)


def yes_no(yes: int, no: int, rows: int, seed: int = 1, quality: float = 0.5) -> RatedSystem:
    """Answers of the first rows, every row a dialogue, and a judge that has some idea of them."""
    random = np.random.default_rng(seed)
    answers = random.permutation(np.repeat([1.0, 0.0], [yes, no]))
    people = np.append(answers, np.full(rows - yes - no, np.nan))
    truth = np.append(answers, random.integers(0, 2, rows - yes - no))
    judge = quality * truth + random.normal(0, 0.3, rows)
    places = np.arange(rows)
    return RatedSystem(
        people, judge[:, None], np.full(rows, (yes + no) / rows), np.zeros(rows, np.int64), places, places
    )


def clopper_pearson(share: float, size: float, level: float) -> tuple[float, float]:
    yes, no, tail = share * size, (1 - share) * size, (1 - level) / 2
    low = float(scipy.stats.beta.ppf(tail, yes, no + 1)) if yes else 0.0
    return low, float(scipy.stats.beta.ppf(1 - tail, yes + 1, no)) if no else 1.0


@pytest.mark.parametrize("target", ["dialogues", "run"])
def test_fractions_have_the_interval_of_clopper_and_pearson(target: Target) -> None:
    system = yes_no(30, 20, 200)
    plain = estimate_mean(system, None, target, 0.9)
    found = estimate_mean(system, None, target, 0.9, RatingScale(YES_NO, yes_no=True))
    shrink = (scipy.stats.norm.ppf(0.95) / scipy.stats.t.ppf(0.95, plain.freedom)) ** 2
    worth = 50 * (plain.alone_error / plain.error) ** 2 if target == "dialogues" else math.inf
    most = 50 if target == "dialogues" else math.inf
    size = min(plain.value * (1 - plain.value) / plain.error**2, worth) * shrink
    alone = min(0.6 * 0.4 / plain.alone_error**2, most) * shrink
    assert min(size - 60, alone - 45) > 0
    assert found.interval == pytest.approx(clopper_pearson(plain.value, size, 0.9), abs=1e-9)
    assert found.alone_interval == pytest.approx(clopper_pearson(0.6, alone, 0.9), abs=1e-9)
    assert structs.replace(found, interval=plain.interval, alone_interval=plain.alone_interval) == plain
    # The same answers as 2 and 6 on a scale from 2 to 6.
    wide = estimate_mean(
        replace(system, people=2 + 4 * system.people), None, target, 0.9, RatingScale((2.0, 6.0), yes_no=True)
    )
    assert wide.interval == pytest.approx([2 + 4 * end for end in found.interval])
    assert wide.alone_interval == pytest.approx([2 + 4 * end for end in found.alone_interval])


def test_errors_for_other_raters_are_at_least_those_of_dialogues_and_of_raters() -> None:
    def estimate(value: float, error: float, p: float = 0.001, freedom: float = 9.0) -> RatingEstimate:
        return RatingEstimate(value, error, (0, 0), value / 2, error / 2, (0, 0), (), 50, 40, freedom, 50.0, p)

    without = [estimate(2 + shift, 0.1) for shift in (-0.3, 0.0, 0.1, 0.2)]
    of_raters = 3 / 4 * sum((each.value - 2) ** 2 for each in without)
    for error, row_error, ratings_per_row, expected in (
        (0.5, 0.1, 2.0, math.sqrt(0.25 + of_raters - 0.01 / 2)),
        (0.5, 0.9, 1.0, 0.5),
        (0.01, 0.9, 3.0, math.sqrt(of_raters)),
    ):
        found = generalize_to_raters(
            estimate(2.0, error), without, estimate(2.0, row_error), ratings_per_row, 0.9, (1.9, 9.0)
        )
        half = float(scipy.stats.t.ppf(0.95, 3)) * expected
        assert (found.error, found.alone_error) == pytest.approx((expected, expected / 2))
        assert found.interval == pytest.approx((max(2 - half, 1.9), 2 + half))
        assert found.alone_interval == pytest.approx((1.9, 1 + half / 2))
        assert found.freedom == 3
        assert found.p == pytest.approx(2 * scipy.stats.t.sf(2 / expected, 3))
    assert generalize_to_raters(estimate(2.0, 0.5, p=0.9), without, estimate(2.0, 0.1), 2.0).p == 0.9
    few = generalize_to_raters(estimate(2.0, 0.5, freedom=1.5), without, estimate(2.0, 0.1), 2.0)
    assert few.freedom == 1.5
    one = generalize_to_raters(estimate(2.0, 0.5, freedom=0.5), without, estimate(2.0, 0.1), 2.0)
    assert one.freedom == 1
    certain = generalize_to_raters(estimate(2.0, 0.0, p=0.3), [estimate(2.0, 0.0)] * 3, estimate(2.0, 0.0), 1.0)
    assert (certain.error, certain.p, certain.interval) == (0, 0.3, (2, 2))
    zero = structs.replace(estimate(2.0, 0.0, p=0.3), alone_error=0.5)
    assert generalize_to_raters(zero, [zero] * 3, zero, 1.0).p == 0.3
    other = structs.replace(estimate(2.0, 0.5, p=0.0), alone_error=0.0)
    assert generalize_to_raters(other, [other] * 3, other, 1.0).p == pytest.approx(2 * scipy.stats.t.sf(4, 2))
