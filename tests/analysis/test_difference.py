"""One system against a baseline: what is tested, what is not and why, and the effect over clusters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

import dialeval
from dialeval.analysis.difference import Baseline, Difference, Settings, exchange_means
from dialeval.analysis.values import Values, sort_clusters
from dialeval.analysis.verdict import decide, is_acceptable
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.stats import significance
from dialeval.stats.intervals import tango
from dialeval.stats.resampling import draw_resamples, draw_swaps

SETTINGS = Settings(resamples=200, trials=400)


def result(items: Floats | list[float], offsets: Ints | None = None, key: str = "bleu-4") -> Result:
    values = np.array(items, np.float64)
    known = values[~np.isnan(values)]
    mean = float(known.mean()) if len(known) else math.nan
    estimate = Estimate(mean, 0.0, len(values), len(known), scores=values, signature=Signature.of(key, n=4))
    return Result({key: estimate}, table=RowTable(np.arange(len(values) + 1) if offsets is None else offsets))


def difference(left: Result, right: Result, settings: Settings = SETTINGS) -> Difference:
    keys = list(left)
    (tested,) = Baseline("a", left, settings, keys).compare("b", right, keys)
    return tested.row


def test_one_cluster_cannot_be_tested_and_two_can() -> None:
    one = difference(result([1.0, 2.0], np.array([0, 2])), result([2.0, 4.0], np.array([0, 2])))
    assert (one.difference, one.reason, one.interval) == (1.5, "too few rows have a score", None)
    assert math.isnan(one.p)
    two = difference(result([1.0, 2.0]), result([2.0, 4.0]))
    assert two.reason is None
    assert two.interval == pytest.approx(stats.t.interval(0.95, 1, 1.5, 0.5))
    assert two.interval_by == "jackknife", "half of all resamples of two dialogues do not vary"
    assert 0 < two.p <= 1
    assert two.rough


def test_a_single_dialogue_that_differs_has_a_rough_interval() -> None:
    """A gate with a margin needs one: of many dialogues a small change of a system often touches a single one."""
    row = difference(result([2.0] * 20), result([1.0] + [2.0] * 19))
    assert row.interval == pytest.approx((-0.05 - 2.093 * 0.05, -0.05 + 2.093 * 0.05), abs=1e-4)
    assert (row.interval_by, row.rough) == ("jackknife", True)


@pytest.mark.parametrize("rows", [3, 10, 200])
def test_yes_no_values_without_a_difference_have_an_interval(rows: int) -> None:
    """Three equal dialogues prove nothing about a margin of 0.001."""
    row = difference(result([1.0] * rows), result([1.0] * rows))
    z = stats.norm.ppf(0.975)
    assert row.interval == pytest.approx((-(z**2) / (rows + z**2), z**2 / (rows + z**2)))
    assert (row.interval_by, row.p) == ("tango", 1)


def test_the_p_value_of_yes_no_values_is_mcnemars() -> None:
    left, right = np.repeat([1.0, 0.0, 1.0, 0.0], [10, 12, 1, 7]), np.repeat([1.0, 0.0, 0.0, 1.0], [10, 12, 1, 7])
    row = difference(result(left), result(right))
    assert row.p == pytest.approx(stats.chi2.sf((7 - 1) ** 2 / (7 + 1), 1)), "without a continuity correction"
    assert row.interval == pytest.approx(tango(7, 1, 30, stats.norm.ppf(0.975)))
    in_dialogues = difference(
        result(np.tile(left, 4), np.arange(0, 121, 4)), result(np.tile(right, 4), np.arange(0, 121, 4))
    )
    assert in_dialogues.interval_by == "tango"
    width, alone = (each.interval[1] - each.interval[0] for each in (in_dialogues, row) if each.interval)
    assert width < alone, "rows in other dialogues are more"


def compare_values(away: Floats, key: str = "latency", **given: Any) -> Difference:
    """Compare a system with a baseline of ones, as `compare` does."""
    sides = {"a": result(np.ones(len(away)), key=key), "b": result(1 + away, key=key)}
    (row,) = dialeval.compare(Run(sides, "0"), **given).differences
    return row


def find_rejected(kind: str, sign: float) -> list[tuple[Difference, float]]:
    """Return differences of ten rows that the permutation test rejects; negative: skewed to the other side of 0."""
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        away = rng.normal(size=10) + 0.8 if kind == "normal" else sign * (rng.lognormal(size=10) - 0.2)
        row = compare_values(away)
        (swaps,) = draw_swaps(10, 2000)
        sums = np.abs((1 - 2 * swaps) @ away)
        if (np.count_nonzero(sums >= abs(away.sum()) - 1e-12) + 1) / 1024 < 0.05:
            found.append((row, float(stats.skew(away) * away.mean())))
    return found


def test_the_permutation_test_decides_unless_differences_are_skewed_to_the_other_side() -> None:
    """With eight to ten dialogues the studentized interval is so wide that it would cost a tenth of the power."""
    rejected = [each for kind in ("normal", "skewed") for each in find_rejected(kind, 1.0)]
    assert len(rejected) > 60
    for row, skewed in rejected:
        assert row.interval is not None
        if skewed >= 0:
            assert row.significant
            assert 0 < row.interval[0] < row.difference < row.interval[1]
        assert row.significant == (row.interval[0] > 0)
    assert {row.significant for row, skewed in rejected if skewed < 0} == {True, False}


@pytest.mark.parametrize("rows", [4, 10, 200])
@pytest.mark.parametrize("key", ["rouge-l", "latency"])
@pytest.mark.parametrize("gain", [0.0, 0.5])
def test_rows_that_all_differ_alike_leave_a_difference_open(rows: int, key: str, gain: float) -> None:
    """Another row may differ by the range of the metric, or by the size of the values where that has no end."""
    sides = {"a": result(np.full(rows, 0.25), key=key), "b": result(np.full(rows, 0.25 + gain), key=key)}
    margin = 2.0 if rows < 10 else 0.6
    (row,) = dialeval.compare(Run(sides, "0"), margin=margin).differences
    part = stats.t.ppf(0.975, rows - 1) ** 2 / (rows + stats.t.ppf(0.975, rows - 1) ** 2)
    reach = 1.0 if key == "rouge-l" else 0.25 + gain
    ends = gain - part * (reach + gain), gain + part * (reach - gain)
    assert row.interval is not None
    assert row.interval[1] == pytest.approx(ends[1])
    assert row.interval[0] == pytest.approx(ends[0]) or row.significant
    assert row.interval_by == "constant"
    assert row.significant == (gain > 0 and rows > 4)
    assert (row.interval[0] > 0) == row.significant


def test_identical_outputs_of_few_dialogues_are_not_equivalent() -> None:
    few, many = (compare_values(np.zeros(rows), "rouge-l", margin=0.01) for rows in (10, 1000))
    assert (decide(few), is_acceptable(few)) == ("inconclusive", False)
    assert (decide(many), is_acceptable(many)) == ("equivalent", True)


def test_rows_that_one_side_lacks_count_on_neither() -> None:
    row = difference(result([1.0, math.nan, 3.0, 5.0]), result([2.0, 9.0, math.nan, 5.0]))
    assert (row.baseline_mean, row.mean, row.units, row.of) == (3.0, 3.5, 2, 4)
    assert (row.wins, row.ties, row.losses) == (1, 1, 0)
    nothing = difference(result([math.nan, 1.0, 2.0]), result([1.0, math.nan, math.nan]))
    assert nothing.units == 0
    assert nothing.reason == "too few rows have a score"


def test_dialogues_win_under_metrics_of_the_corpus_too() -> None:
    answers = [{"dialog_id": f"d{n // 3}", "response": f"tea {n}", "reference": f"tea {n % 4}"} for n in range(30)]
    others = [{**row, "response": "coffee"} for row in answers]
    (row,) = dialeval.compare(dialeval.evaluate({"a": answers, "b": others}, metrics="sacrebleu")).differences
    assert (row.wins or 0) + (row.ties or 0) + (row.losses or 0) == 10


def test_where_lower_is_better_the_lower_value_wins() -> None:
    row = difference(result([1.0, 2.0, 3.0], key="jsd-o-t-x"), result([0.0, 2.0, 4.5], key="jsd-o-t-x"))
    assert (row.better, row.wins, row.ties, row.losses) == ("lower", 1, 1, 1)
    assert row.worse
    assert not replace(row, difference=-0.1).worse
    assert not replace(row, better=None).worse
    for better in ("higher", "lower"):
        assert not replace(row, better=better, difference=0.0).worse, "equal is not worse"
    assert replace(row, better="higher", difference=-0.1).worse


def test_the_effect_of_single_rows_is_cohens_d() -> None:
    away = np.array([2.0, 5.0, 3.0, 0.5])
    row = difference(result([0.0] * 4, np.arange(5)), result(away, np.arange(5)))
    assert row.effect == pytest.approx(away.mean() / away.std(ddof=1))


def test_the_effect_weighs_rows_as_the_difference_does() -> None:
    """Three long dialogues lose and many short ones win: the mean over rows and the effect agree on the sign."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        sizes = np.where(rng.random(12) < 0.3, 20, 1)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        away = np.repeat(np.where(sizes > 1, -1.0, 0.6), sizes) + rng.normal(size=offsets[-1])
        row = difference(result(np.zeros(offsets[-1]), offsets), result(away, offsets))
        assert math.copysign(1, row.effect) == math.copysign(1, row.difference)
        assert row.effect == pytest.approx(row.difference / (row.error * math.sqrt(12)))


def test_randomization_exchanges_whole_dialogues() -> None:
    offsets = np.array([0, 2, 3, 4, 6])
    left, right = np.array([1.0, 4.0, 2.0, 0.5, 3.0, 1.0]), np.array([2.0, 4.5, 1.0, 3.0, 3.5, 2.0])
    row = difference(result(left, offsets), result(right, offsets))
    (swap,) = draw_swaps(4, SETTINGS.trials, SETTINGS.seed)
    trials = ((1 - 2 * np.repeat(swap, np.diff(offsets), axis=1)) * (right - left)).mean(axis=1)
    reached = np.count_nonzero(abs(trials) >= abs(row.difference) - 1e-12)
    assert row.difference == pytest.approx((right - left).mean())
    assert row.p == (reached + 1) / 16, "four dialogues can be exchanged in sixteen ways"
    assert 0.1 < row.p < 0.5


def test_the_bootstrap_takes_both_systems_in_the_same_resamples() -> None:
    left, right = np.array([1.0, 4.0, 2.0, 0.5, 3.0]), np.array([2.0, 4.5, 1.0, 3.0, 3.5])
    settings = Settings(resamples=300, confidence=0.9, detect=0.25, alpha=0.1)
    row = difference(result(left), result(right), settings)
    order = sort_clusters(result(left))
    away = (right - left)[order]
    error = away.std(ddof=1) / math.sqrt(5)
    changes = []
    for times in np.concatenate(list(draw_resamples(5, 300, settings.seed))):
        taken = np.repeat(away, times)
        own = taken.std(ddof=1) / math.sqrt(5)
        change = abs(taken.mean() - away.mean())
        changes.append(change * error / own if own > 1e-12 else math.inf if change > 1e-12 else 0.0)
    half = sorted(changes)[math.ceil(0.9 * 301) - 1]
    assert row.interval == pytest.approx((away.mean() - half, away.mean() + half))
    assert row.interval_by == "studentized"
    assert row.needed == significance.count_needed_clusters(5, error, 0.1, 0.25)


def test_what_randomization_can_detect_is_students() -> None:
    left, right = np.random.default_rng(1).normal(size=(2, 30))
    row = difference(result(left), result(right))
    error = (right - left).std(ddof=1) / math.sqrt(30)
    assert row.detectable == pytest.approx(
        significance.minimum_detectable_difference(error, 30, stats.t.ppf(0.975, 29))
    )
    assert not row.rough


def test_systems_that_differ_in_one_dialogue_have_an_interval() -> None:
    changed = np.where(np.arange(20) == 7, 0.5, 1.0)
    row = difference(result(np.ones(20)), result(changed))
    assert row.interval_by == "jackknife"
    assert row.interval == pytest.approx(stats.t.interval(0.95, 19, -0.025, 0.025))
    assert row.rough


@pytest.mark.parametrize("worth", [0.6062111801242236, 0.1, 1 / 3, 0.5])
def test_dialogues_that_differ_alike_have_an_interval_of_their_size(worth: float) -> None:
    """In a resample without any of them nothing varies; what rounding leaves of that is no spread."""
    before = np.full(20, 0.8714285714285713)
    after = np.where(np.isin(np.arange(20), (2, 3)), before - worth, before)
    row = difference(result(before), result(after), replace(SETTINGS, resamples=1000))
    assert row.interval is not None
    assert np.abs(row.interval).max() < worth
    assert row.rough


def test_figures_are_rough_where_few_dialogues_decide() -> None:
    away = np.random.default_rng(1).normal(size=30)
    assert not difference(result(np.zeros(30)), result(away)).rough
    assert difference(result(np.zeros(19)), result(away[:19])).rough
    far = np.where(np.arange(30) < 2, [50.0, -50.0] * 15, away)  # not skewed, but two dialogues are all that counts
    assert difference(result(np.zeros(30)), result(far)).rough


def test_the_effect_of_a_corpus_value_is_over_its_standard_error() -> None:
    texts = [["a b", "a c d", "e", "a a"], ["a b c", "d e f", "g g", "h i"]]
    both = dialeval.evaluate(dict(zip("xy", texts, strict=True)), metrics="distinct-1")
    row = difference(both["x"], both["y"])
    assert (row.corpus, row.interval_by) == (True, "jackknife")
    assert row.interval is not None
    error = (row.interval[1] - row.difference) / stats.t.ppf(0.975, 3)
    assert row.effect == pytest.approx(row.difference / error / math.sqrt(4))


def test_where_no_dialogue_changes_a_difference_p_is_the_least_there_is() -> None:
    both = dialeval.evaluate({"x": ["a b", "c d", "e f"], "y": ["a a", "c c", "e e"]}, metrics="distinct-1,length")
    found = list(Baseline("x", both["x"], SETTINGS, list(both["x"])).compare("y", both["y"], list(both["x"])))
    assert {row.key: (row.p, row.interval) for row, *_ in found} == {
        "distinct-1": (0.25, (-0.5, -0.5)),
        "length": (1.0, (0.0, 0.0)),
    }
    longer = difference(result([1.0, 2.0, 3.0, 4.0]), result([2.0, 3.0, 4.0, 5.0]))
    assert (longer.p, longer.interval) == (0.125, (1.0, 1.0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": 1e-300},
        {"alpha": 1.0},
        {"trials": 0},
        {"resamples": 0},
        {"confidence": 1.0},
        {"detect": 0.0},
        {"detect": math.inf},
    ],
)
def test_settings_are_checked_one_by_one(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Settings(**wrong)
    Settings(trials=1, resamples=1, detect=1e-9)


def test_small_differences_of_rows_are_wins_and_losses_too() -> None:
    row = difference(result([0.5, 0.5, 0.5, 0.5]), result([0.6, 0.5, 0.4, 0.9]))
    assert (row.wins, row.ties, row.losses) == (2, 1, 1)


def test_json_has_null_for_what_is_unknown() -> None:
    plain = difference(result([1.0]), result([2.0])).to_dict()
    assert plain["p"] is None
    assert plain["interval"] is None
    assert plain["mean"] == 2.0


def test_pairs_of_systems_with_one_scored_dialogue_are_not_tested() -> None:
    offsets = np.array([0, 2, 3, 4])
    a = result([1.0, 2.0, math.nan, math.nan], offsets)
    b = result([2.0, 4.0, 5.0, math.nan], offsets)
    c = result([2.0, math.nan, 6.0, math.nan], offsets)
    d = result([math.nan] * 4, offsets)
    known = {"a": a, "b": b, "c": c, "d": d}
    values = {name: Values.of(each, ["bleu-4"], alone=True) for name, each in known.items()}
    found = exchange_means(
        values, {name: each["bleu-4"] for name, each in known.items()}, "bleu-4", SETTINGS, np.arange(3)
    )
    by_pair = {row.baseline + row.system: row for row, *_ in found}
    assert {pair for pair, row in by_pair.items() if row.reason is None} == {"bc"}
    assert {row.reason for pair, row in by_pair.items() if pair != "bc"} == {"too little could be scored"}
    assert math.isnan(by_pair["ab"].p)
    assert (by_pair["ab"].baseline_mean, by_pair["ab"].mean, by_pair["ab"].difference) == (1.5, 3, 1.5)
    assert (by_pair["ad"].baseline_mean, by_pair["ad"].difference) == (0, 0)
    assert by_pair["bc"].p == 1
