"""Intervals that one may look at as often as one likes: they cover at all looks together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

import dialeval
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.stats.independent import ClusterSums
from dialeval.stats.sequences import (
    BEST,
    FIRST,
    SKEWED,
    asymptotic_sequence,
    betting_sequence,
    confidence_sequence,
    has_enough,
    unpaired_confidence_sequence,
)
from human.rated_runs import run_of


def single(values: Any) -> ClusterSums:
    """Dialogues of one row each."""
    return ClusterSums(np.asarray(values), np.ones(len(values)))


def watched(values: Any, bounds: tuple[float, float]) -> tuple[Any, Any, str]:
    """The sequence of differences to a system that is always 0."""
    return confidence_sequence(single(np.zeros(len(values))), single(values), bounds, 0.05)


def hedged(values: np.ndarray, alpha: float, mean: float) -> np.ndarray:
    """Whether a mean is still possible after each value: the two gamblers, written out one bet at a time."""
    up = down = 1.0
    total, squares, inside = 0.5, 0.25, []
    variance = 0.25
    for time, value in enumerate(values, 1):
        bet = math.sqrt(2 * math.log(2 / alpha) / (variance * time * math.log(1 + time)))
        up *= 1 + min(bet, 0.5 / mean) * (value - mean)
        down *= 1 - min(bet, 0.5 / (1 - mean)) * (value - mean)
        inside.append(max(up, down) / 2 < 1 / alpha)
        total += value
        squares += (value - total / (time + 1)) ** 2
        variance = squares / (time + 1)
    return np.array(inside)


def test_betting_is_what_the_formula_says() -> None:
    values = np.random.default_rng(1).beta(2, 3, size=700)
    low, high = betting_sequence(values, 0.05)
    for mean in (0.2, 0.35, 0.4, 0.45, 0.7):
        inside = hedged(values, 0.05, mean)
        clear = (np.abs(low - mean) > 1e-3) & (np.abs(high - mean) > 1e-3)
        assert ((low < mean) & (mean < high))[clear].tolist() == inside[clear].tolist()
    assert low[-1] < 0.4 < high[-1]
    assert high[-1] - low[-1] < 0.1


def test_asymptotic_is_what_the_formula_says() -> None:
    values = np.random.default_rng(2).normal(5, 2, size=300)
    low, high = asymptotic_sequence([(single(values), 1.0)], 0.05)
    assert np.isinf(low[: FIRST - 1]).all()
    rho = (-2 * math.log(0.05) + math.log(-2 * math.log(0.05) + 1)) / BEST
    for time in (FIRST, 200, 300):
        mixed = time * rho + 1
        half = values[:time].std(ddof=1) * math.sqrt(2 * mixed / (time**2 * rho) * math.log(math.sqrt(mixed) / 0.05))
        assert (low[time - 1], high[time - 1]) == pytest.approx(
            (values[:time].mean() - half, values[:time].mean() + half)
        )


def bet_on_the_grid(values: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """The ends after each value, one value at a time: a step of the grid beyond the means that are left."""
    grid = np.linspace(0, 1, 2001)
    up, down = np.zeros(2001), np.zeros(2001)
    total, squares, variance, ends = 0.5, 0.25, 0.25, []
    for time, value in enumerate(values, 1):
        bet = math.sqrt(2 * math.log(2 / alpha) / (variance * time * math.log(1 + time)))
        up += np.log1p(np.minimum(bet, 0.5 / np.maximum(grid, 1e-300)) * (value - grid))
        down += np.log1p(-np.minimum(bet, 0.5 / np.maximum(1 - grid, 1e-300)) * (value - grid))
        against = np.maximum(up, down)
        left = np.flatnonzero(against < math.log(2 / alpha))
        left = left if len(left) else np.array([against.argmin()])
        ends.append((max(grid[left[0]] - 1 / 2000, 0), min(grid[left[-1]] + 1 / 2000, 1)))
        total += value
        squares += (value - total / (time + 1)) ** 2
        variance = squares / (time + 1)
    low, high = np.array(ends).T
    return low, high


DRIFT = np.concatenate([np.random.default_rng(2).beta(2, 8, 300), np.random.default_rng(3).beta(8, 2, 400)])
"""The mean changes, until none is left that has been possible all along."""


@pytest.mark.parametrize(
    "values", [np.random.default_rng(1).beta(2, 3, 530), DRIFT, np.ones(40), np.zeros(40), np.array([0.3])], ids=len
)
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_bets_on_every_possible_mean(values: np.ndarray, alpha: float) -> None:
    low, high = betting_sequence(values, alpha)
    expected_low, expected_high = bet_on_the_grid(values, alpha)
    np.testing.assert_allclose(low, expected_low, atol=1e-12)
    np.testing.assert_allclose(high, expected_high, atol=1e-12)


def intersected(low: np.ndarray, high: np.ndarray) -> tuple[list[float], list[float]]:
    """Each interval with all before it; where nothing is left, the interval itself."""
    made = []
    for look in range(len(low)):
        inner = max(low[: look + 1]), min(high[: look + 1])
        made.append(inner if inner[0] <= inner[1] else (low[look], high[look]))
    return [each[0] for each in made], [each[1] for each in made]


def test_bets_on_differences_of_other_bounds() -> None:
    """Values of dialogues with two and with three rows, on a scale from 1 to 5."""
    left, right = 1 + 4 * DRIFT[::-1], 1 + 4 * DRIFT
    found = confidence_sequence(
        ClusterSums(2 * left, np.full(700, 2.0)), ClusterSums(3 * right, np.full(700, 3.0)), (1.0, 5.0), 0.1
    )
    low, high = (8 * end - 4 for end in betting_sequence((right - left + 4) / 8, 0.1))
    assert found[2] == "betting"
    expected = intersected(low, high)
    assert found[0] == pytest.approx(expected[0])
    assert found[1] == pytest.approx(expected[1])
    inner = np.maximum.accumulate(low), np.minimum.accumulate(high)
    assert (inner[0] > inner[1]).any(), "in the end nothing has been possible all along"


def mix(parts: list[tuple[ClusterSums, float]], alpha: float) -> tuple[list[float], list[float]]:
    """Ends of the normal mixture by its formula, look by look."""
    rho = (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / 500
    dialogues = len(parts[0][0].sums)
    low, high = [], []
    first = np.zeros(dialogues)
    for sample, sign in parts:
        early = min(50, dialogues)
        rows = sample.counts[:early].sum()
        ratio = sample.sums[:early].sum() / rows
        first += sign * (sample.sums - ratio * sample.counts) / (rows / early)
    for time in range(1, dialogues + 1):
        value, added = 0.0, np.zeros(time)
        for sample, sign in parts:
            sums, counts = sample.sums[:time], sample.counts[:time]
            ratio = sums.sum() / counts.sum()
            value += sign * ratio
            added += sign * (sums - ratio * counts) / (counts.sum() / time)
        enough = time >= 50 and time >= 40 * scipy.stats.skew(first[:time]) ** 2
        mixed = time * rho + 1
        half = math.inf
        if enough:
            half = added.std(ddof=1) * math.sqrt(2 * mixed / (time**2 * rho) * math.log(math.sqrt(mixed) / alpha))
        low.append(value - half)
        high.append(value + half)
    return low, high


@pytest.mark.parametrize("center", [0.0, 1e7])
def test_the_mixture_of_a_difference_of_unequal_dialogues(center: float) -> None:
    random = np.random.default_rng(4)
    counts, others = random.integers(1, 5, (2, 130)).astype(float)
    left = ClusterSums(random.normal(size=130) * counts + center * counts, counts)
    right = ClusterSums(random.exponential(size=130) * others + center * others, others)
    parts = [(left, -1.0), (right, 1.0)]
    low, high = asymptotic_sequence(parts, 0.1)
    plain = [(ClusterSums(each.sums - center * each.counts, each.counts), sign) for each, sign in parts]
    expected_low, expected_high = mix(plain, 0.1)
    assert np.isinf(low).any()
    assert not np.isinf(low).all()
    np.testing.assert_allclose(low, expected_low, atol=1e-6)
    np.testing.assert_allclose(high, expected_high, atol=1e-6)
    found = confidence_sequence(left, right, (0.0, 1.0), 0.1)
    assert (found[0][-1], found[1][-1]) == pytest.approx((max(low), min(high)))


def test_no_dialogue_has_no_interval() -> None:
    none = single(np.zeros(0))
    for bounds, kind in (((0.0, 1.0), "betting"), ((0.0, math.inf), "asymptotic")):
        for compute in (confidence_sequence, unpaired_confidence_sequence):
            low, high, by = compute(none, none, bounds, 0.05)
            assert (len(low), len(high), by) == (0, 0, kind)
    low, high = asymptotic_sequence([(single(np.array([2.0])), 1.0)], 0.05)
    assert (low.tolist(), high.tolist()) == ([-math.inf], [math.inf])


def test_sequences_of_independent_systems_on_other_bounds() -> None:
    random = np.random.default_rng(6)
    left, right = 1 + 4 * random.beta(2, 3, 90), 1 + 4 * random.beta(3, 2, 70)
    sums = ClusterSums(2 * left, np.full(90, 2.0)), single(right)
    ends = [[1 + 4 * end for end in betting_sequence((values - 1) / 4, 0.05)] for values in (left, right)]
    inner = [(np.maximum.accumulate(low), np.minimum.accumulate(high)) for low, high in ends]
    low, high, by = unpaired_confidence_sequence(*sums, (1.0, 5.0), 0.1)
    assert by == "betting"
    assert low == pytest.approx(inner[1][0] - np.append(inner[0][1][:69], inner[0][1][-1]))
    assert high == pytest.approx(inner[1][1] - np.append(inner[0][0][:69], inner[0][0][-1]))
    turned = unpaired_confidence_sequence(sums[1], sums[0], (1.0, 5.0), 0.1)
    assert turned[0] == pytest.approx(-high)
    assert turned[1] == pytest.approx(-low)


@pytest.mark.parametrize("uneven", [0, 1])
def test_independent_systems_of_unequal_dialogues_have_two_mixtures(uneven: int) -> None:
    random = np.random.default_rng(7)
    counts = [np.ones(80), np.ones(60)]
    counts[uneven][3] = 2
    systems = [ClusterSums(random.random(len(each)) * each, each) for each in counts]
    low, high, by = unpaired_confidence_sequence(systems[0], systems[1], (0.0, 1.0), 0.1)
    assert by == "asymptotic"
    ends = [intersected(*asymptotic_sequence([(each, 1.0)], 0.05)) for each in systems]
    assert len(low) == 60
    assert low[-1] == pytest.approx(ends[1][0][-1] - ends[0][1][-1])
    assert high[-1] == pytest.approx(ends[1][1][-1] - ends[0][0][-1])
    assert high[54] == pytest.approx(ends[1][1][54] - ends[0][0][54])
    paired = confidence_sequence(systems[0], ClusterSums(np.ones(80), np.ones(80)), (0.0, 1.0), 0.1)
    assert paired[2] == ("betting" if uneven else "asymptotic")


def test_how_many_dialogues_are_enough_at_every_look() -> None:
    values = np.random.default_rng(8).exponential(size=300) ** 2
    expected = [
        time >= 50 and time >= 40 * float(scipy.stats.skew(values[:time])) ** 2 for time in range(1, len(values) + 1)
    ]
    assert 0 < sum(expected) < 250 or not any(expected)
    for shifted in (values, -values, 1e-200 * values, 1e5 + values):
        assert has_enough(shifted).tolist() == expected
    rising = np.arange(120.0)
    assert has_enough(rising).tolist() == [False] * 49 + [True] * 71


def missed(kind: str, seeds: int, looks: int = 1000) -> float:
    """In how many cases the truth was outside at one of the looks."""
    wrong = 0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        if kind == "bounded":
            low, high, by = watched(rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=looks), (0.0, 1.0))
            assert by == "betting"
        else:
            low, high, by = watched(rng.normal(size=looks), (-math.inf, math.inf))
            assert by == "asymptotic"
        wrong += bool(((low > 0) | (high < 0)).any())
    return wrong / seeds


@pytest.mark.parametrize("kind", ["bounded", "unbounded"])
def test_a_thousand_looks(kind: str) -> None:
    assert missed(kind, 40 if kind == "bounded" else 200) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


@pytest.mark.parametrize("sigma", [1.0, 1.5])
def test_a_thousand_looks_at_skewed_differences(sigma: float) -> None:
    """Lognormal differences with mean 0: without a rule for skewed ones 12 and 24% were outside at one of the looks."""
    wrong = 0
    for seed in range(300):
        drawn = np.exp(sigma * np.random.default_rng(seed).normal(size=1000)) - math.exp(sigma**2 / 2)
        low, high, _ = watched(drawn, (-math.inf, math.inf))
        wrong += bool(((low > 0) | (high < 0)).any())
    assert wrong / 300 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


def test_skewed_differences_need_more_dialogues() -> None:
    values = np.random.default_rng(1).normal(size=400) ** 4
    for time in (FIRST - 1, FIRST, 120, 400):
        enough = time >= max(FIRST, SKEWED * scipy.stats.skew(values[:time]) ** 2)
        assert has_enough(values)[time - 1] == enough
        assert has_enough(-1e6 * values)[time - 1] == enough
    assert has_enough(np.full(60, 0.3)).tolist() == [False] * 49 + [True] * 11
    assert not len(has_enough(np.zeros(0)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bounded", "unbounded"])
def test_a_thousand_looks_in_many_cases(kind: str) -> None:
    assert missed(kind, 1000) <= 0.05


def test_looking_every_day_at_an_ordinary_interval_is_wrong_far_too_often() -> None:
    wrong = 0
    for seed in range(100):
        values = np.random.default_rng(seed).normal(size=1000)
        times = np.arange(1, 1001)
        means = np.cumsum(values) / times
        wrong += bool((np.abs(means) > 1.96 / np.sqrt(times))[FIRST:].any())
    assert wrong > 30


def test_intervals_never_grow() -> None:
    values = np.random.default_rng(3).normal(0.3, 1, size=400)
    low, high, _ = watched(values, (-math.inf, math.inf))
    assert (np.diff(low[FIRST:]) >= 0).all()
    assert (np.diff(high[FIRST:]) <= 0).all()


def test_a_run_is_watched_in_the_order_of_its_dialogues() -> None:
    run, _ = run_of(dialogues=300, systems={"a": 3.0, "b": 3.0})
    found = dialeval.sequential(run)
    assert found.tests == 2
    assert (found.baseline, list(found.systems), found.unit) == ("a", ["b"], "dialogues")
    length, judge = found.rows
    assert (length.key, judge.key) == ("length", "judge")
    assert judge.by == "asymptotic"
    assert judge.dialogues == 300
    assert judge.interval is not None
    assert judge.interval[0] < 0 < judge.interval[1]
    assert judge.decided is None
    both = [run[name]["judge"].items for name in "ab"]
    assert judge.difference == pytest.approx(np.mean(both[1]) - np.mean(both[0]))  # type: ignore[arg-type]
    assert found.to_dict()["differences"][1]["key"] == "judge"


def test_a_difference_is_decided_and_stays_so() -> None:
    texts = [{"dialog_id": f"d{n}", "response": "yes " * (1 + n % 3), "reference": "yes yes yes"} for n in range(200)]
    good = [{**row, "response": "yes yes yes"} for row in texts]
    run = Run({"bad": dialeval.evaluate(texts, metrics="rouge-l")["system"]}, "0")
    run = Run({**run.systems, "good": dialeval.evaluate(good, metrics="rouge-l")["system"]}, "0")
    (row,) = dialeval.sequential(run).rows
    assert row.by == "betting"
    assert row.better is True
    assert row.decided is not None
    assert row.decided < 100
    (fewer,) = dialeval.sequential(Run(dict(reversed(list(run.systems.items()))), "0")).rows
    assert fewer.better is False


def test_every_difference_has_its_share_of_alpha() -> None:
    """Each row is the confidence sequence of its dialogues' sums; panel and other metrics are two families."""
    random = np.random.default_rng(9)
    rows = [f"w{number} " * int(random.integers(1, 4)) + "yes" for number in range(150)]
    texts = {
        "a": rows,
        "b": [f"{text} x" if at % 2 else text.removesuffix(" yes") for at, text in enumerate(rows)],
        "c": ["no no" if at % 2 == 0 else text for at, text in enumerate(rows)],
    }
    run = dialeval.evaluate(texts, [f"{text} yes" for text in rows], metrics="rouge-l,length,distinct-1")
    found = dialeval.sequential(run, alpha=0.2)
    assert found.panel == ("rouge-l",)
    assert (found.tests, found.alpha, found.unit) == (2, 0.2, "rows")
    assert [(row.system, row.key) for row in found.rows] == [
        (system, key) for system in "bc" for key in run["a"].estimates
    ]
    decided = 0
    for row in found.rows:
        if row.key == "distinct-1":
            assert (row.dialogues, row.interval, row.by, row.decided, row.better) == (0, None, None, None, None)
            assert math.isnan(row.difference)
            assert row.reason == "it is a corpus-level value, without values per dialogue"
            continue
        left, right = (single(run[name][row.key].items) for name in ("a", row.system))
        bounds = (0.0, 1.0) if row.key == "rouge-l" else (0.0, math.inf)
        low, high, by = confidence_sequence(left, right, bounds, 0.1)
        assert (row.dialogues, row.by, row.reason) == (150, by, None)
        assert row.difference == pytest.approx(right.mean - left.mean)
        assert row.interval == (low[-1], high[-1])
        looks = [look for look in range(150) if low[look] > 0 or high[look] < 0]
        assert row.decided == (looks[0] + 1 if looks else None)
        higher = None if not looks or row.key == "length" else bool(low[looks[0]] > 0)
        assert row.better is higher
        decided += bool(looks)
    assert 0 < decided < 4
    assert repr(found) == f"<SequentialTest: 2 systems (b, c) with a, 6 differences, {decided} decided>"
    line = found.lines()[0]
    assert (line["low"], line["high"]) == found.rows[0].interval
    assert "interval" not in line
    one = dialeval.sequential(run, systems=["a", "c"], metrics=["length"], alpha=0.2).rows[0]
    sides = [single(run[name]["length"].items) for name in "ac"]
    low, high, _ = confidence_sequence(sides[0], sides[1], (0.0, math.inf), 0.2)
    assert one.interval == (low[-1], high[-1])


def test_skewed_differences_and_unpaired_runs_are_watched() -> None:
    def evaluate(lengths: list[int]) -> Run:
        return dialeval.evaluate([" ".join(["w"] * length) for length in lengths], metrics="length")

    plain, skewed = [3] * 60, [3] * 59 + [900]
    (row,) = dialeval.sequential({"a": evaluate(plain), "b": evaluate(skewed)}).rows
    assert (row.interval, row.dialogues) == (None, 60)
    assert row.reason == "too few dialogues for such skewed differences"
    (few,) = dialeval.sequential({"a": evaluate(plain[:49]), "b": evaluate(skewed[-49:])}).rows
    assert few.reason == "fewer than 50 dialogues"
    (enough,) = dialeval.sequential({"a": evaluate(plain[:50]), "b": evaluate([4, 5] * 25)}).rows
    assert (enough.reason, enough.dialogues, enough.decided, enough.better) == (None, 50, 50, None)
    assert enough.difference == 1.5
    (equal,) = dialeval.sequential({"a": evaluate(plain), "b": evaluate(plain)}).rows
    assert (equal.interval, equal.decided, equal.better, equal.reason) == ((0, 0), None, None, None)
    left, right = [3, 4, 5] * 30, [5, 6] * 40
    (row,) = dialeval.sequential({"a": evaluate(left), "b": evaluate(right)}, design="unpaired", alpha=0.1).rows
    low, high, _ = unpaired_confidence_sequence(
        single(np.array(left, float)), single(np.array(right, float)), (0.0, math.inf), 0.1
    )
    assert row.interval == (low[-1], high[-1])
    assert row.dialogues == 80
    for alpha in (0.0, 1.0):
        with pytest.raises(SettingError, match=f"alpha must be between 0 and 1, such as 0.05; it is not {alpha}"):
            dialeval.sequential(evaluate(plain), alpha=alpha)


def test_what_cannot_be_watched() -> None:
    run, _ = run_of(dialogues=10)
    judge = dialeval.sequential(run, metrics=["judge"]).rows[0]
    assert judge.interval is None
    assert judge.reason == "fewer than 50 dialogues"
    with pytest.raises(SettingError, match="alpha must be between 0 and 1"):
        dialeval.sequential(run, alpha=2.0)
    texts = {"x": ["a b", "c"], "y": ["a", "d"]}
    corpus = dialeval.evaluate(texts, metrics="distinct-1")
    assert "a corpus-level value" in str(dialeval.sequential(corpus).rows[0].reason)


def test_independent_systems_have_two_sequences() -> None:
    rng = np.random.default_rng(5)
    left, right = rng.beta(2, 3, 300), rng.beta(3, 2, 200)
    low, high, by = unpaired_confidence_sequence(single(left), single(right), (0.0, 1.0), 0.1)
    ends = [betting_sequence(values, 0.05) for values in (left, right)]
    assert by == "betting"
    assert len(low) == 200
    assert (low[99], high[99]) == (
        pytest.approx(ends[1][0][:100].max() - ends[0][1][:100].min()),
        pytest.approx(ends[1][1][:100].min() - ends[0][0][:100].max()),
    )
    assert low[-1] == pytest.approx(ends[1][0].max() - ends[0][1].min()), "the last look has all dialogues"
    wrong = 0
    for _ in range(200):
        low, high, _by = unpaired_confidence_sequence(
            single(rng.beta(2, 2, 80)), single(rng.beta(2, 2, 60)), (0.0, 1.0), 0.1
        )
        wrong += bool((low > 0).any() or (high < 0).any())
    assert wrong <= 20 + 3 * math.sqrt(18)


def unequal(seed: int, dialogues: int) -> tuple[ClusterSums, ClusterSums]:
    """Systems with equal means over rows: both lose in long dialogues what they win in short ones."""
    rng = np.random.default_rng(seed)
    counts = rng.choice([1.0, 9.0], p=[0.7, 0.3], size=dialogues)
    away = np.where(counts > 1, -0.7, 2.7) * counts + rng.normal(size=dialogues) * np.sqrt(counts)
    return ClusterSums(np.zeros(dialogues), counts), ClusterSums(away, counts)


def test_rows_of_unequal_dialogues_are_weighed_as_in_a_comparison() -> None:
    left, right = unequal(1, 400)
    low, high, by = confidence_sequence(left, right, (0.0, 1.0), 0.05)
    assert by == "asymptotic", "bets are on means of dialogues"
    middle = (low[-1] + high[-1]) / 2
    assert abs(middle - right.mean) < 0.3
    assert right.mean < 0.5 < float((right.sums / right.counts).mean()), "dialogues that count once say something else"
    wrong = sum(
        bool(((low > 0) | (high < 0)).any())
        for low, high, _ in (
            confidence_sequence(*unequal(seed, 500), (-math.inf, math.inf), 0.05) for seed in range(200)
        )
    )
    assert wrong / 200 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_compare_and_watch_have_one_estimand() -> None:
    rng = np.random.default_rng(2)
    rows = [
        {"dialog_id": f"d{n}", "response": "w " * int(1 + rng.integers(4) + (n % 5 == 0))}
        for n in range(120)
        for _ in range(9 if n % 5 == 0 else 1)
    ]
    other = [{**row, "response": str(row["response"]) + "w" * (n % 3)} for n, row in enumerate(rows)]
    run = dialeval.evaluate({"a": rows, "b": other}, metrics="length")
    for weight in ("rows", "dialogues"):
        (compared,) = dialeval.compare(run, weight=weight).rows
        (looked,) = dialeval.sequential(run, weight=weight).rows
        assert looked.difference == pytest.approx(compared.difference)
    with pytest.raises(SettingError, match="means are over rows or dialogues"):
        dialeval.compare(run, weight="turns")  # type: ignore[arg-type]
