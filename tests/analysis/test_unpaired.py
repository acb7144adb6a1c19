"""Differences of independent systems, against SciPy and direct computations; `tools/simulate_designs.py` has rates."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict
from scipy import stats

import dialeval
from dialeval.analysis import unpaired as module
from dialeval.analysis.comparison import compare
from dialeval.analysis.difference import Difference, Settings
from dialeval.analysis.values import Values, compute_influences, sort_clusters
from dialeval.core.arrays import Floats
from dialeval.core.exact import Moments
from dialeval.core.fold import Estimate, Level, compute_interval
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.stats.independent import (
    ClusterSums,
    Resampled,
    Spread,
    join_changes,
    newcombe,
    permute,
    rank_first,
    reassign,
    spread_stratified,
    welch,
)
from dialeval.stats.intervals import t_factor
from dialeval.stats.resampling import Influence, absolute_quantile, draw_resamples, make_interval, studentize
from dialeval.stats.significance import count_needed_clusters, minimum_detectable_difference, tail_p


def result(values: Floats, sizes: list[int] | None = None, key: str = "length") -> Result:
    offsets = np.arange(len(values) + 1) if sizes is None else np.concatenate([[0], np.cumsum(sizes)])
    known = values[~np.isnan(values)]
    estimate = Estimate(float(known.mean()), 0.0, len(values), len(known), items=values, signature=Signature.of(key))
    return Result({key: estimate}, rows=RowTable(offsets.astype(np.int64)))


def compare_unpaired(*given: Any) -> list[Difference]:
    return [tested.row for tested in module.compare_unpaired(*given)]


def test_single_rows_are_welchs_t_test() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(0, 1, 25), rng.normal(0.4, 3, 60)
    (row,) = compare_unpaired("a", "b", result(left), result(right), ["length"], Settings(trials=10))
    welch_test = stats.ttest_ind(right, left, equal_var=False)
    low, high = welch_test.confidence_interval(0.95)
    assert row.interval == pytest.approx((low, high), rel=1e-2)  # degrees of freedom are Kish's less one
    spreads = ClusterSums(left, np.ones(25)).spread, ClusterSums(right, np.ones(60)).spread
    assert math.sqrt(spreads[0].variance + spreads[1].variance) == pytest.approx(
        math.sqrt(left.var(ddof=1) / 25 + right.var(ddof=1) / 60)
    )
    assert welch(*spreads) == pytest.approx(welch_test.df)
    assert row.difference == pytest.approx(right.mean() - left.mean())
    deviation = math.sqrt((left.var(ddof=1) + right.var(ddof=1)) / 2)
    assert row.effect == pytest.approx((right.mean() - left.mean()) / deviation)  # Cohen's d, both systems equally


def test_few_clusters_are_reassigned_in_every_way() -> None:
    left, right = np.array([1.0, 2.0, 2.5]), np.array([2.2, 3.5, 4.0, 5.0])
    (row,) = compare_unpaired("a", "b", result(left), result(right), ["length"], Settings(trials=100))
    both = np.concatenate([left, right])

    def studentized(chosen: tuple[int, ...]) -> float:
        second = both[list(chosen)]
        first = np.delete(both, list(chosen))
        return float((second.mean() - first.mean()) / math.sqrt(second.var(ddof=1) / 4 + first.var(ddof=1) / 3))

    observed = abs(studentized((3, 4, 5, 6)))
    every = [abs(studentized(chosen)) for chosen in combinations(range(7), 4)]
    assert row.p == pytest.approx(np.mean([value >= observed - 1e-9 for value in every]))


def test_reassignments_are_of_the_right_sizes() -> None:
    for chosen in reassign(30, 20, 500, 1):
        assert chosen.shape[1] == 50
        assert (chosen.sum(axis=1) == 20).all()


def test_proportions_have_newcombes_interval() -> None:
    left, right = np.repeat([1.0, 0.0], [56, 14]), np.repeat([1.0, 0.0], [48, 32])
    (row,) = compare_unpaired(
        "a", "b", result(left, key="accuracy"), result(right, key="accuracy"), ["accuracy"], Settings(trials=200)
    )
    # Newcombe 1998, table II, example (a): 56/70 - 48/80 = 0.2 [0.0524, 0.3339]
    assert row.interval_by == "newcombe"
    assert row.interval == pytest.approx((-0.3339, -0.0524), abs=5e-5)


def test_all_rows_alike_leave_an_interval_of_some_width() -> None:
    ones = result(np.ones(12), key="accuracy")
    (row,) = compare_unpaired("a", "b", ones, result(np.ones(9), key="accuracy"), ["accuracy"], Settings(trials=99))
    assert row.p == 1.0
    assert row.interval is not None
    assert row.interval[0] < -0.1 < 0.1 < row.interval[1]


def texts(seed: int, rows: int, words: int = 30) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{n}" for n in rng.integers(0, words, 6)) for _ in range(rows)]


def test_distinct_is_compared_at_equal_numbers_of_rows() -> None:
    """The larger log has fewer distinct words per word by its size alone."""
    run = dialeval.evaluate({"a": texts(1, 200)}, metrics="distinct-1") + dialeval.evaluate(
        {"b": texts(2, 40)}, metrics="distinct-1"
    )
    (row,) = compare(run, design="unpaired").rows
    assert run["a"]["distinct-1"].mean < 0.5 * run["b"]["distinct-1"].mean
    assert row.baseline_mean == pytest.approx(row.mean, rel=0.1)
    assert not row.significant
    assert str(row.note).startswith("compared at 40 dialogues or rows of each system")


def test_corpus_values_are_resampled_independently() -> None:
    references = texts(3, 120)
    near = [text if at % 2 else f"{text} x" for at, text in enumerate(references)]
    runs = [
        dialeval.evaluate({name: said}, given, metrics="bleu(per=corpus)")
        for name, said, given in (("a", texts(4, 120), references), ("b", near, references))
    ]
    (row,) = compare(runs, design="unpaired").rows
    assert row.interval_by == "studentized"
    assert row.significant
    assert row.interval is not None
    assert row.interval[0] < row.difference < row.interval[1]
    same = compare([runs[0], dialeval.evaluate({"c": texts(5, 120)}, texts(6, 120), metrics="bleu(per=corpus)")])
    assert same.rows[0].p > 0.01


def test_post_stratification_weighs_strata_alike() -> None:
    left = result(np.array([1.0, 2.0, 3.0, 11.0, 13.0]))
    right = result(np.array([2.0, 4.0, 10.0, 12.0, 14.0, 16.0, 50.0]))
    strata = list("xxxyy"), [*"xxyyyy", "z"]
    (row,) = compare_unpaired("a", "b", left, right, ["length"], Settings(trials=50), strata)
    weights = {"x": 5 / 11, "y": 6 / 11}  # of the rows of both logs in the strata that both have
    first = weights["x"] * 2.0 + weights["y"] * 12.0
    second = weights["x"] * 3.0 + weights["y"] * 13.0
    assert (row.baseline_mean, row.mean, row.difference) == pytest.approx((first, second, 1.0))
    assert row.unadjusted == pytest.approx(108 / 7 - 6.0)
    assert "8% of the rows are in strata that only one log has" in str(row.note)


def test_the_only_cluster_of_a_stratum_has_the_variance_of_the_others() -> None:
    left, right = result(np.array([1.0, 3.0, 9.0])), result(np.array([2.0, 4.0, 12.0]))
    (row,) = compare_unpaired("a", "b", left, right, ["length"], Settings(trials=50), (list("xxy"), list("xxy")))
    assert row.difference == pytest.approx(2 / 3 * 1.0 + 1 / 3 * 3.0)
    # In both logs the jackknife's variance of the two rows, and the variance of these (2) for the third row.
    assert row.error == pytest.approx(math.sqrt(2 * (2 / 3 * 2 * (2 / 3) ** 2 + 2 * (1 / 3) ** 2)))
    (row,) = compare_unpaired("a", "b", left, right, ["length"], Settings(trials=50), (list("xyz"), list("xyz")))
    assert row.reason == "no stratum of both logs has two dialogues of each system"
    assert math.isnan(row.difference)


def test_one_cluster_has_no_error() -> None:
    (row,) = compare_unpaired("a", "b", result(np.ones(1)), result(np.ones(5)), ["length"], Settings())
    assert "at least two dialogues or rows of each" in str(row.reason)
    assert math.isnan(ClusterSums(np.ones(1), np.ones(1)).spread.variance)
    assert welch(Spread(0.0, 3.0, 4), Spread(0.0, 5.0, 6)) == 8.0


SIZES = [1, 3, 2, 1, 4], [2, 1, 1, 3, 1, 2, 5]
SETTINGS = Settings(trials=60, resamples=80, alpha=0.1, confidence=0.9, detect=0.4, seed=7)


def two_logs() -> tuple[tuple[Result, ClusterSums], tuple[Result, ClusterSums]]:
    """Dialogues of unequal length, with a row that was not scored; the second log has more of them."""
    rng = np.random.default_rng(8)
    made = []
    for sizes, mean in zip(SIZES, (1.0, 2.0), strict=True):
        values = rng.normal(mean, 1, sum(sizes))
        values[4] = math.nan
        log = result(values, sizes)
        order = sort_clusters(log)
        parts = [np.split(values, np.cumsum(sizes)[:-1])[at] for at in order]
        sums = ClusterSums(
            np.array([np.nansum(part) for part in parts]),
            np.array([np.count_nonzero(~np.isnan(part)) for part in parts], float),
        )
        made.append((log, sums))
    return made[0], made[1]


def assert_fields(found: Difference, **expected: object) -> None:
    plain = asdict(found)
    for name, value in expected.items():
        assert plain[name] == pytest.approx(value, nan_ok=True), name


def student_fields(difference: float, spreads: tuple[Spread, Spread], settings: Settings) -> dict[str, object]:
    """What Welch's test says of a difference, written out."""
    here, there = spreads
    error, freedom = math.sqrt(here.variance + there.variance), welch(here, there)
    clusters = here.clusters + there.clusters
    half = stats.t.ppf((1 + settings.confidence) / 2, freedom) * error
    deviation = math.sqrt((here.clusters * here.variance + there.clusters * there.variance) / 2)
    critical = t_factor(1 - settings.alpha, freedom)
    return {
        "difference": difference,
        "interval": (difference - half, difference + half),
        "interval_by": "welch",
        "error": error,
        "p": max(2 * stats.t.sf(abs(difference) / error, freedom), 2 / math.comb(clusters, here.clusters)),
        "effect": difference / deviation,
        "detectable": minimum_detectable_difference(error, max(2, round(freedom) + 1), critical),
        "needed": count_needed_clusters(clusters, error, settings.alpha, settings.detect),
        "rough": True,
    }


def test_all_figures_of_a_difference_of_means(monkeypatch: pytest.MonkeyPatch) -> None:
    (left, first), (right, second) = two_logs()
    expected = student_fields(second.mean - first.mean, (first.spread, second.spread), SETTINGS)
    counts = {"rows": 10 + 14, "of": 11 + 15, "corpus": False, "better": None, "evidence": False, "reason": None}
    means = {"baseline_mean": first.mean, "mean": second.mean, "wins": None, "unadjusted": math.nan, "note": None}
    p = rank_first(permute(first, second, 60, 7))
    assert expected["p"] != pytest.approx(p)
    monkeypatch.setattr(module, "MOST_PERMUTED", 12)
    (row,) = compare_unpaired("a", "b", left, right, ["length"], SETTINGS)
    assert (row.key, row.baseline, row.system) == ("length", "a", "b")
    assert_fields(row, **{**expected, "p": p}, **counts, **means)
    monkeypatch.setattr(module, "MOST_PERMUTED", 11)
    (row,) = compare_unpaired("a", "b", left, right, ["length"], SETTINGS)
    assert_fields(row, **expected, **counts, **means)


def test_the_bootstrap_resamples_both_systems_with_seeds_of_their_own() -> None:
    (left, first), (right, second) = two_logs()
    settings = Settings(test="bootstrap", resamples=80, alpha=0.1, confidence=0.9, seed=7)
    (row,) = compare_unpaired("a", "b", left, right, ["length"], settings)
    error = math.sqrt(first.spread.variance + second.spread.variance)
    changes = join_changes(first.resample(80, 7), second.resample(80, 8), error)
    difference = second.mean - first.mean
    joint = Influence(difference, np.array([-error, error]), np.ones(2))
    interval, by = make_interval(joint, changes, 0.9, 5)
    p = tail_p(difference, changes, 2.0)
    assert p > 2 / math.comb(12, 5)
    detectable = minimum_detectable_difference(error, 5, absolute_quantile(changes, 0.9) / error)
    assert_fields(row, difference=difference, interval=interval, interval_by=by, p=p, detectable=detectable)
    assert by == "studentized"
    far = result(np.asarray(right["length"].items) + 100, SIZES[1])
    (row,) = compare_unpaired("a", "b", left, far, ["length"], settings)
    assert row.p == 1 / 81
    few = Settings(test="bootstrap", resamples=900)
    (row,) = compare_unpaired(
        "a", "b", result(np.array([1.0, 2.0, 4.0])), result(np.array([91.0, 92.0])), ["length"], few
    )
    assert row.p == 2 / math.comb(5, 3), "the least that an exact test can give"


def test_the_least_p_is_that_of_an_exact_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PERMUTED", 0)
    left, right = result(np.array([1.0, 1.1, 1.2])), result(np.array([9.0, 9.1, 9.2, 9.3]))
    (row,) = compare_unpaired("a", "b", left, right, ["length"], SETTINGS)
    assert row.p == 2 / math.comb(7, 3)
    (row,) = compare_unpaired("a", "b", result(np.ones(4)), result(np.full(9, 2.0)), ["length"], SETTINGS)
    assert row.p == 2 / math.comb(13, 4)
    assert math.isnan(row.effect)
    assert (row.error, row.detectable) == (0, 0)
    large = 1e6 + np.array([-1e-7, 1e-7, 0.0, 0.0])
    (row,) = compare_unpaired("a", "b", result(large), result(large + 1e-6), ["length"], SETTINGS)
    assert row.p == 1, "equal but for rounding"
    assert row.effect > 1
    small = 1e-6 * np.array([1.0, 1.001, 1.002, 0.999])
    (row,) = compare_unpaired("a", "b", result(small), result(2 * small), ["length"], SETTINGS)
    assert row.p == 2 / math.comb(8, 4)
    for value in (0.0, 1.0):
        same = result(np.full(4, value)), result(np.full(9, value))
        (row,) = compare_unpaired("a", "b", same[0], same[1], ["length"], SETTINGS)
        assert (row.p, row.effect) == (1, 0)


def test_proportions_in_dialogues_have_newcombes_interval_of_clustered_intervals() -> None:
    rng = np.random.default_rng(3)
    logs, ends = [], []
    for sizes in SIZES:
        values = np.repeat(rng.integers(0, 2, len(sizes)), sizes).astype(np.float64)
        values[0], values[-1] = 1 - values[1], 0.0
        logs.append(result(values, sizes, key="rouge-l"))
        estimate = Estimate.of_moments(Moments.of(values, np.concatenate([[0], np.cumsum(sizes)])), (0.0, 1.0))
        found = compute_interval(estimate, (0.0, 1.0), 0.9)
        assert found is not None
        assert found[1].method == "wilson"
        ends.append(found[0])
    (row,) = compare_unpaired("a", "b", logs[0], logs[1], ["rouge-l"], SETTINGS)
    first, second = (log["rouge-l"].mean for log in logs)
    assert row.interval_by == "newcombe"
    assert row.interval == pytest.approx(newcombe(first, second, ends[0], ends[1]))


@pytest.mark.parametrize("missing", [0, 1])
def test_what_one_system_lacks_is_the_reason(missing: int) -> None:
    logs = [result(np.arange(4.0)), result(np.arange(5.0))]
    estimate = logs[missing]["length"]
    bare = Estimate(estimate.mean, 0.0, 4, 4, signature=estimate.signature)
    logs[missing] = Result({"length": bare}, rows=logs[missing].rows)
    (row,) = compare_unpaired("a", "b", logs[0], logs[1], ["length"], SETTINGS)
    assert row.reason == "the run has no per-row scores of it"
    assert row.interval is None
    logs[missing] = result(np.array([1.0, math.nan, math.nan]))
    (row,) = compare_unpaired("a", "b", logs[0], logs[1], ["length"], SETTINGS)
    assert row.reason == "too few rows have a score"


def test_two_dialogues_of_each_system_are_enough() -> None:
    (row,) = compare_unpaired(
        "a", "b", result(np.array([1.0, 2.0])), result(np.array([3.0, 5.0])), ["length"], SETTINGS
    )
    assert row.reason is None
    assert row.error == pytest.approx(math.sqrt(0.25 + 1))
    for sizes in ((1, 2), (2, 1)):
        left, right = (result(np.arange(float(size))) for size in sizes)
        (row,) = compare_unpaired("a", "b", left, right, ["length"], SETTINGS)
        assert row.reason == "a comparison of independent systems needs at least two dialogues or rows of each"


def test_all_figures_of_adjusted_means() -> None:
    """Dialogues that are in several strata, and one stratum that only one log has."""
    (left, _), (right, _) = two_logs()
    labels = list("xyxyyzxxyyx"), list("xxyxyxyyyxxyyxy")
    (row,) = compare_unpaired("a", "b", left, right, ["length"], SETTINGS, (labels[0], labels[1]))
    tables = []
    for log, sizes, names in ((left, SIZES[0], labels[0]), (right, SIZES[1], labels[1])):
        values, cluster = np.asarray(log["length"].items), np.repeat(np.arange(len(sizes)), sizes)
        sums, numbers = np.zeros((2, len(sizes), 2))
        for value, at, name in zip(values, cluster, names, strict=True):
            if name != "z" and not math.isnan(value):
                sums[at, "xy".index(name)] += value
                numbers[at, "xy".index(name)] += 1
        tables.append((sums, numbers))
    used = tables[0][1].sum(axis=0) + tables[1][1].sum(axis=0)
    weights = used / used.sum()
    by_stratum = [sums.sum(axis=0) / numbers.sum(axis=0) for sums, numbers in tables]
    means = [float(weights @ each) for each in by_stratum]
    spreads = [spread_stratified(*table, each, weights) for table, each in zip(tables, by_stratum, strict=True)]
    expected = student_fields(means[1] - means[0], (spreads[0], spreads[1]), SETTINGS)
    assert_fields(row, **{**expected, "interval_by": "post-stratified"}, baseline_mean=means[0], mean=means[1])
    (plain,) = compare_unpaired("a", "b", left, right, ["length"], SETTINGS)
    assert_fields(row, unadjusted=plain.difference, unadjusted_interval=plain.interval)
    assert row.note == "4% of the rows are in strata that only one log has"
    same = [each.replace("z", "y") for each in labels[0]], labels[1]
    (row,) = compare_unpaired("a", "b", left, right, ["length"], SETTINGS, same)
    assert row.note is None


def test_dialogues_are_in_the_stratum_of_their_first_row() -> None:
    def log(values: list[float]) -> Result:
        estimate = Estimate(
            float(np.mean(values)),
            0.0,
            len(values),
            len(values),
            items=np.array(values),
            signature=Signature.of("length"),
            level=Level.DIALOGUE,
        )
        return Result({"length": estimate}, rows=RowTable(2 * np.arange(len(values) + 1)))

    strata = list("xxxyyyyx"), list("xyxxyyyyyx")
    (row,) = compare_unpaired("a", "b", log([1, 2, 10, 12]), log([3, 5, 11, 15, 16]), ["length"], SETTINGS, strata)
    weights = {"x": 4 / 9, "y": 5 / 9}
    assert row.baseline_mean == pytest.approx(weights["x"] * 1.5 + weights["y"] * 11)
    assert row.mean == pytest.approx(weights["x"] * 4 + weights["y"] * 14)


def test_corpus_values_are_compared_by_both_logs_resamples() -> None:
    references = texts(3, 30)
    logs = []
    for seed, size in ((4, 14), (5, 18)):
        given = references[:size]
        said = [f"{given[at]} {other}" if at % 3 else given[at] for at, other in enumerate(texts(seed, size))]
        logs.append(dialeval.evaluate({"s": said}, given, metrics="bleu(per=corpus)")["s"])
    (key,) = logs[0]
    settings = Settings(resamples=60, alpha=0.1, confidence=0.9, seed=3)
    (row,) = compare_unpaired("a", "b", logs[0], logs[1], [key], settings)
    sides = []
    for at, log in enumerate(logs):
        values = Values.sort(log, [key], alone=True)
        influence = compute_influences(values, {key: log[key].mean})[key]
        drawn = list(draw_resamples(values.clusters, 60, 3 + at))
        resampled = values.compute(drawn)
        sides.append(Resampled(influence, resampled[key], studentize({key: influence}, resampled, drawn)[key]))
    spreads = [Spread.of_influence(side.influence, size) for side, size in zip(sides, (14, 18), strict=True)]
    error = math.sqrt(spreads[0].variance + spreads[1].variance)
    changes = join_changes(sides[0], sides[1], error)
    difference = logs[1][key].mean - logs[0][key].mean
    joint = Influence(difference, np.array([-error, error]), np.ones(2))
    interval, by = make_interval(joint, changes, 0.9, 14)
    assert_fields(row, difference=difference, error=error, interval=interval, interval_by=by, note=None)
    assert row.p == pytest.approx(tail_p(difference, changes, 100.0))
    (row,) = compare_unpaired("a", "b", logs[0], logs[1], [key], settings, (["x"] * 14, ["x"] * 18))
    assert row.note == "not adjusted, since it is a corpus value"


def test_distinct_is_thinned_to_the_smaller_log() -> None:
    def distinct(rows: list[str]) -> float:
        words = " ".join(rows).split()
        return len(set(words)) / len(words)

    small, large = texts(1, 7), texts(2, 12)
    logs = [dialeval.evaluate({"s": said}, metrics="distinct-1")["s"] for said in (small, large)]
    large = [large[at] for at in sort_clusters(logs[1])]
    generator = np.random.default_rng(SETTINGS.seed)
    subsets = [np.sort(generator.choice(12, 7, replace=False)) for _ in range(50)]
    mean = float(np.mean([distinct([large[at] for at in subset]) for subset in subsets]))
    spreads = []
    for rows in (small, [large[at] for at in subsets[0]]):
        without = np.array([distinct(rows[:at] + rows[at + 1 :]) for at in range(7)])
        spreads.append(Spread.of_influence(Influence.of(distinct(rows), without, np.ones(7)), 7))
    for turned in (False, True):
        order = logs[::-1] if turned else logs
        (row,) = compare_unpaired("a", "b", order[0], order[1], ["distinct-1"], SETTINGS)
        pair = (spreads[1], spreads[0]) if turned else (spreads[0], spreads[1])
        difference = (distinct(small) - mean) * (1 if turned else -1)
        expected = student_fields(difference, pair, SETTINGS)
        assert_fields(row, **{**expected, "interval_by": "jackknife"})
        assert row.note == "compared at 7 dialogues or rows of each system, since it depends on the amount of text"
    (row,) = compare_unpaired("a", "b", logs[0], logs[0], ["distinct-1"], SETTINGS)
    assert (row.difference, row.p, row.note) == (0, 1, None)
