"""Tests against scipy and sacreBLEU on the same exchanges and resamples; Holm and powers by hand."""

from __future__ import annotations

import math
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from dialeval.analysis.values import Values
from dialeval.core.arrays import Floats, Ints
from dialeval.core.contributions import ClusteredRows, RowSums
from dialeval.stats import significance
from dialeval.suites.multiwoz.metrics import TaskBleu

ps = st.lists(st.floats(0, 1) | st.just(math.nan), max_size=12)


def holm_by_hand(values: list[float]) -> list[float]:
    known = sorted(value for value in values if not math.isnan(value))
    steps = [min(1.0, (len(known) - rank) * value) for rank, value in enumerate(known)]
    return [
        math.nan if math.isnan(v) else max(steps[: max(i for i, k in enumerate(known) if k <= v) + 1]) for v in values
    ]


@given(ps)
def test_holm(values: list[float]) -> None:
    assert significance.holm(values) == pytest.approx(holm_by_hand(values), nan_ok=True)


def test_holm_of_a_textbook() -> None:
    assert significance.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def joined(left: Floats, right: Floats) -> Values:
    both = [Values(ClusteredRows({}, np.arange(len(items) + 1)), {"x": items}) for items in (left, right)]
    return both[0].join(both[1])


def test_randomization_is_the_permutation_test_of_scipy() -> None:
    rng = np.random.default_rng(7)
    left, right = rng.normal(size=11), rng.normal(0.5, size=11)
    every = np.array([[(number >> bit) & 1 for bit in range(11)] for number in range(2**11)])
    both = joined(left, right)
    found = both.compute([np.hstack([every, 1 - every])])["x"] - both.compute([np.hstack([1 - every, every])])["x"]
    difference = float(right.mean() - left.mean())
    oracle = scipy.stats.permutation_test(
        (right, left), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    p = significance.tail_p(difference, found[1:], 1.0)  # all but the exchange of nothing
    assert p == pytest.approx(oracle.pvalue, abs=1e-12)


def sentences(seed: int) -> list[str]:
    """Sentences of which no two are alike, so that no exchange leaves a score as it was."""
    rng = np.random.default_rng(seed)
    words = [f"w{number}" for number in range(40)]
    return [" ".join(rng.choice(words, size=rng.integers(8, 20))) for _ in range(60)]


REFERENCES = sentences(0)


def changed(seed: int) -> list[str]:
    """Responses with some words replaced."""
    rng = np.random.default_rng(seed)
    return [" ".join("x" if rng.random() < 0.12 else word for word in text.split()) for text in REFERENCES]


def bleu_sums(responses: list[str]) -> RowSums:
    """The counts of sacreBLEU in our order: scored, matches, totals, lengths."""
    counts = np.array(BLEU()._extract_corpus_statistics(responses, [REFERENCES]), float)
    return RowSums(np.column_stack([np.ones(len(counts)), counts[:, 2:6], counts[:, 6:10], counts[:, :2]]))


def bleu_values(responses: list[str]) -> Values:
    rows = ClusteredRows({"task-bleu/mwz22/ignored": bleu_sums(responses)}, np.arange(len(responses) + 1))
    return Values(rows, metrics={"bleu": TaskBleu()})


def oracle(kind: str, samples: int) -> tuple[float, float, float]:
    """The two scores and p of sacreBLEU's paired test."""
    systems = [("a", changed(1)), ("b", changed(2))]
    _, scores = PairedTest(systems, {"BLEU": BLEU()}, [REFERENCES], kind, samples)()
    first, second = scores["BLEU"]
    return first.score, second.score, second.p_value


def test_randomization_of_bleu_is_that_of_sacrebleu() -> None:
    first, second, p = oracle("ar", 800)
    both = bleu_values(changed(1)).join(bleu_values(changed(2)))
    kept = np.random.default_rng(12345).integers(2, size=(800, 60), dtype=bool).astype(np.int64)
    found = both.compute([np.hstack([kept, 1 - kept])])["bleu"] - both.compute([np.hstack([1 - kept, kept])])["bleu"]
    assert significance.tail_p(second - first, found, 100.0) == pytest.approx(p, abs=1e-12)


def test_bootstrap_of_bleu_is_that_of_sacrebleu() -> None:
    first, second, p = oracle("bs", 500)
    taken: Ints = np.random.default_rng(12345).choice(60, size=(500, 60), replace=True)
    counts = np.array([np.bincount(row, minlength=60) for row in taken])
    drawn = bleu_values(changed(2)).compute([counts])["bleu"] - bleu_values(changed(1)).compute([counts])["bleu"]
    # sacreBLEU's p is one of absolute differences, without the other tail.
    sizes = np.abs(drawn) - np.abs(drawn).mean()
    assert (np.count_nonzero(sizes > abs(second - first)) + 1) / 501 == pytest.approx(p, abs=1e-12)
    assert significance.tail_p(second - first, drawn - drawn.mean(), 100.0) >= p


def test_equal_systems_are_never_different() -> None:
    zeros = np.zeros(50)
    assert significance.tail_p(0.0, zeros, 1.0) == 1.0
    assert significance.student_p(0.0, 0.0, 50, 1.0) == 1.0
    assert significance.student_p(1e-17, 0.1, 50, 1.0) == 1.0


def test_p_is_unknown_without_values() -> None:
    nothing = np.full(5, math.nan)
    assert math.isnan(significance.tail_p(0.5, nothing, 1.0))
    assert math.isnan(significance.tail_p(math.nan, np.zeros(3), 1.0))
    assert significance.student_p(0.5, 0.0, 9, 1.0) == 0.0
    assert significance.least_p(9) == 2 / 2**9


def test_p_of_an_error_is_students() -> None:
    assert significance.student_p(-0.5, 0.2, 9, 1.0) == pytest.approx(2 * scipy.stats.t.sf(2.5, 8))


def test_power_is_that_of_the_noncentral_t() -> None:
    """With a pilot so large that the error is known, the power is the textbook's."""
    for freedom, ratio in ((1, 20.0), (4, 3.0), (9, 2.5), (200, 2.8)):
        critical = scipy.stats.t.ppf(0.975, freedom)
        far = scipy.stats.nct.sf(critical, freedom, ratio) + scipy.stats.nct.cdf(-critical, freedom, ratio)
        assert significance.power_of(ratio, freedom, critical, 10**6) == pytest.approx(far, abs=2e-3)


@pytest.mark.parametrize("clusters", [8, 30, 100])
def test_the_least_difference_is_found_in_four_of_five_cases(clusters: int) -> None:
    """One data set says what could be found; in the next one it is found."""
    rng = np.random.default_rng(clusters)
    pilots, tests = rng.normal(size=(2, 20_000, clusters))
    critical = scipy.stats.t.ppf(0.975, clusters - 1)
    errors = pilots.std(axis=1, ddof=1) / math.sqrt(clusters)
    least = significance.minimum_detectable_difference(1.0, clusters, critical) * errors
    ps = scipy.stats.ttest_1samp(tests + least[:, None], 0, axis=1).pvalue
    assert (ps < 0.05).mean() == pytest.approx(significance.POWER, abs=0.012)


def test_what_is_needed_is_what_finds_it() -> None:
    critical = scipy.stats.t.ppf(0.975, 99)
    least = significance.minimum_detectable_difference(0.1, 100, critical)
    assert significance.count_needed_clusters(100, 0.1, 0.05, least * 1.0001) == 100
    assert significance.count_needed_clusters(100, 0.1, 0.05, least / 2) == pytest.approx(400, abs=6)
    assert significance.count_needed_clusters(100, 0.0, 0.05, 1.0) == 2
    assert significance.count_needed_clusters(100, math.nan, 0.05, 1.0) is None
    assert significance.count_needed_clusters(100, 0.1, 0.05, 0.0) is None
    assert significance.count_needed_clusters(100, 0.1, 0.05, 1e-9) is None, "no number of dialogues finds that"
    assert math.isnan(significance.minimum_detectable_difference(math.nan, 9, 2.0))
    assert math.isnan(significance.minimum_detectable_difference(0.1, 9, math.inf))


@pytest.mark.parametrize(
    ("ratio", "freedom", "critical", "pilot"), [(3.1, 7, 2.36, 7), (2.0, 4, 2.8, 30), (1.0, 2, 4.3, 1)]
)
def test_power_summed_over_the_relative_errors_of_both_samples(
    ratio: float, freedom: int, critical: float, pilot: int
) -> None:
    """Midpoints of 40 steps within six standard deviations of a root of a chi-square over its degrees of freedom."""

    def errors(freedom: int) -> list[tuple[float, float]]:
        low = max(0.0, 1 - 6 / math.sqrt(2 * freedom))
        width = (1 + 6 / math.sqrt(2 * freedom) - low) / 40
        values = [low + (step + 0.5) * width for step in range(40)]
        densities = scipy.stats.chi.pdf(np.array(values) * math.sqrt(freedom), freedom).tolist()
        return [(value, density / sum(densities)) for value, density in zip(values, densities, strict=True)]

    cdf = NormalDist().cdf
    expected = sum(
        share * first_share * (cdf(ratio * first - critical * own) + cdf(-critical * own - ratio * first))
        for (own, share), (first, first_share) in product(errors(freedom), errors(pilot))
    )
    assert significance.power_of(ratio, freedom, critical, pilot) == pytest.approx(expected, rel=1e-9)
    assert significance.power_of(math.inf, freedom, critical, pilot) == 1


def test_needed_clusters_are_the_fewest_with_the_power() -> None:
    for clusters, error, difference in ((10, 0.5, 1.0), (50, 0.1, 0.2), (200, 0.03, 0.05)):
        found = significance.count_needed_clusters(clusters, error, 0.05, difference)
        assert found is not None
        powers = []
        for number in (found - 1, found):
            critical = float(scipy.stats.t.ppf(0.975, number - 1))
            ratio = difference / error * math.sqrt(number / clusters)
            powers.append(significance.power_of(ratio, number - 1, critical, clusters - 1))
        assert powers[0] < 0.8 <= powers[1]
    assert significance.count_needed_clusters(10, 0.1, 0.05, None) is None
    assert significance.count_needed_clusters(10, -0.1, 0.05, 1.0) is None
    # Of 100 dialogues with an error of 0.1: 300 million are a number, 700 million are not searched for.
    assert significance.count_needed_clusters(100, 0.1, 0.05, 2.8016 * 0.1 * math.sqrt(100 / 3e8)) == pytest.approx(
        305e6, rel=0.01
    )
    assert significance.count_needed_clusters(100, 0.1, 0.05, 2.8016 * 0.1 * math.sqrt(100 / 7e8)) is None


@given(st.integers(1, 6), st.integers(0, 2**32), st.integers(20, 80))
def test_westfall_young_is_the_definition(tests: int, seed: int, draws: int) -> None:
    """Of each test the share of permutations in which any test that is not rejected before has so small a p."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(-9, 9, (draws, tests)) + 3.0 * rng.normal(size=(draws, 1))
    ranks = np.array([[np.mean(abs(column) >= abs(value)) for value in column] for column in drawn.T])
    ps = ranks[:, 0].tolist()
    found = significance.westfall_young(ps, [("swaps", column) for column in drawn.T])
    order, largest = sorted(range(tests), key=lambda at: ps[at]), 0.0
    for place, at in enumerate(order):
        least = ranks[order[place:]].min(axis=0)
        largest = max(largest, float(np.mean(least <= ps[at])), ps[at])
        assert found[at] == pytest.approx(largest)
    assert significance.westfall_young(ps, [None] * tests) == pytest.approx(significance.holm(ps))
    apart = significance.westfall_young(ps, [(at, column) for at, column in enumerate(drawn.T)])
    assert apart == pytest.approx(significance.holm(ps)), "permutations that are not shared add up"
    assert significance.westfall_young([math.nan, 0.01], [None, None])[1] == 0.01
