"""Agreement about labels, against other implementations and by hand."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import Ints
from dialeval.stats.labels import (
    STATISTICS,
    compare_labels,
    correct_rate,
    count_confusions,
    estimate_rate_size,
    label_statistics,
    plan_pairs,
)

labels = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=3, max_size=40)


def columns(pairs: list[tuple[int, int]]) -> tuple[Ints, Ints]:
    first, second = np.array(pairs, np.int64).T
    return first, second


def statistics(first: Ints, second: Ints, number: int = 4) -> dict[str, float]:
    tables = count_confusions(first, second, number, np.zeros(len(first), np.int64))
    return {name: float(value[0]) for name, value in label_statistics(tables).items()}


@given(labels)
def test_alpha_is_that_of_krippendorff(pairs: list[tuple[int, int]]) -> None:
    first, second = columns(pairs)
    found = statistics(first, second)
    if len(np.unique(pairs)) < 2:
        assert np.isnan(found["alpha"])
        return
    data = np.array([first, second], np.float64)
    nominal = krippendorff.alpha(reliability_data=data, level_of_measurement="nominal", value_domain=[0, 1, 2, 3])
    ordinal = krippendorff.alpha(reliability_data=data, level_of_measurement="ordinal", value_domain=[0, 1, 2, 3])
    assert found["alpha"] == pytest.approx(nominal)
    assert found["ordinal_alpha"] == pytest.approx(ordinal)


@given(labels)
def test_kappa_and_ac1_are_those_of_their_definitions(pairs: list[tuple[int, int]]) -> None:
    first, second = columns(pairs)
    agreed = np.mean(first == second)
    fractions = [(np.mean(first == label), np.mean(second == label)) for label in range(4)]
    kappa_chance = sum(one * two for one, two in fractions)
    means = [(one + two) / 2 for one, two in fractions]
    ac1_chance = sum(mean * (1 - mean) for mean in means) / 3
    found = statistics(first, second)
    assert found["agreement"] == pytest.approx(agreed)
    if kappa_chance < 1:
        assert found["kappa"] == pytest.approx((agreed - kappa_chance) / (1 - kappa_chance))
    assert found["ac1"] == pytest.approx((agreed - ac1_chance) / (1 - ac1_chance))


def test_published_examples() -> None:
    """Cohen's kappa of 0.4 for 20, 5, 10 and 15; AC1 stays high where nearly all labels are equal."""
    table = np.array([[20.0, 5.0], [10.0, 15.0]])
    assert float(label_statistics(table)["kappa"]) == pytest.approx(0.4)
    skewed = np.array([[118.0, 5.0], [2.0, 0.0]])
    found = label_statistics(skewed)
    assert float(found["kappa"]) == pytest.approx(-0.0234, abs=1e-3)
    assert float(found["ac1"]) == pytest.approx(0.9408, abs=1e-3)


def rated(rng: np.random.Generator, dialogues: int, error: float) -> tuple[Ints, Ints, Ints]:
    """Three-valued labels in dialogues of five rows; whole dialogues are hard, in which a judge guesses."""
    cluster = np.repeat(np.arange(dialogues), 5)
    hard = rng.random(dialogues)[cluster] < error
    human = rng.integers(0, 3, len(cluster))
    return human, np.where(hard, rng.integers(0, 3, len(cluster)), human), cluster


def test_intervals_over_dialogues_cover() -> None:
    """The true kappa is 1 - error: guessing agrees as by chance. 95% intervals contain it in 90% to 99% of samples."""
    rng = np.random.default_rng(5)
    covered = dict.fromkeys(("kappa", "ac1", "alpha"), 0)
    for _ in range(300):
        found = compare_labels(*_arguments(rated(rng, 60, 0.3)), 0.95)
        for name in covered:
            low, high = found[name][1]
            covered[name] += low <= 0.7 <= high
    assert all(270 <= number <= 297 for number in covered.values()), covered


def _arguments(sample: tuple[Ints, Ints, Ints]) -> tuple[Ints, Ints, int, Ints]:
    human, judge, cluster = sample
    return human, judge, 3, cluster


def test_dialogues_widen_intervals() -> None:
    human, judge, cluster = rated(np.random.default_rng(1), 60, 0.3)
    over_rows = compare_labels(human, judge, 3, np.arange(len(cluster)), 0.95)
    over_dialogues = compare_labels(human, judge, 3, cluster, 0.95)
    for name in STATISTICS:
        assert over_rows[name][0] == over_dialogues[name][0]
        assert np.diff(over_dialogues[name][1]) > 1.3 * np.diff(over_rows[name][1])


@pytest.mark.parametrize(
    ("rate", "tpr", "tnr"), [(0.5, 0.9, 0.8), (0.8, 0.95, 0.7), (0.95, 0.95, 0.8), (0.02, 0.9, 0.95)]
)
@pytest.mark.parametrize("labels", [60, 200])
def test_corrected_rates_cover_the_rate_with_few_labels(rate: float, tpr: float, tnr: float, labels: int) -> None:
    """Rows whose labels people gave at random, and 1,000 others that a judge with known errors labeled."""
    chance, covered, drawn = np.random.default_rng(1), 0, 0
    while drawn < 1000:
        yes = int(chance.binomial(labels, rate))
        if not 0 < yes < labels:
            continue
        drawn += 1
        judged = chance.binomial(1000, rate * tpr + (1 - rate) * (1 - tnr)) / 1000
        known = [(chance.binomial(n, p) / n, float(n)) for n, p in ((yes, tpr), (labels - yes, tnr))]
        value, (low, high) = correct_rate((judged, 1000.0), known[0], known[1], 0.95)
        assert np.isnan(value) or low <= value <= high
        covered += low <= rate <= high
    assert covered >= 930


def test_a_corrected_rate_by_hand() -> None:
    value, (low, high) = correct_rate((0.6, 1e9), (0.9, 1e9), (0.8, 1e9), 0.95)
    assert value == pytest.approx((0.6 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert high - low < 1e-3
    assert np.isnan(correct_rate((0.6, 100.0), (0.5, 50.0), (0.5, 50.0), 0.95)[0])
    # Rows of a dialogue that are all alike count as one.
    hits = np.repeat([1.0, 0.0, 1.0, 1.0], 5)
    assert estimate_rate_size(hits, np.repeat(np.arange(4), 5)) == pytest.approx(3)
    assert estimate_rate_size(np.ones(20), np.repeat(np.arange(4), 5)) == 4


def test_planned_pairs_have_the_power_that_they_are_planned_for() -> None:
    """Wins, losses and ties of so many pairs, 4,000 times: the interval of wins less losses excludes 0 in 80%."""
    for decided in (0.9, 0.4):
        pairs = plan_pairs(decided, 0.6)
        counts = np.random.default_rng(2).multinomial(pairs, [0.6 * decided, 0.4 * decided, 1 - decided], 4000)
        mean = (counts[:, 0] - counts[:, 1]) / pairs
        error = np.sqrt(((counts[:, 0] + counts[:, 1]) / pairs - mean**2) / pairs)
        assert 0.77 < np.mean(mean > 1.96 * error) < 0.83
