"""Intervals by a formula: against formulas by hand, at the edges, and how often they contain the truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import Floats, Ints, offsets_of
from dialeval.core.errors import SettingError
from dialeval.core.exact import ClusterError, Moments
from dialeval.core.fold import ANY_NUMBER, Analytic, Bounds, Estimate, Level
from dialeval.engine.intervals import IntervalChoice, compute_interval
from dialeval.stats import intervals
from dialeval.stats.intervals import gaffke, student, wilson

UNIT = (0.0, 1.0)


def estimate_of(items: Floats, dialogues: Ints | None = None, bounds: Bounds = ANY_NUMBER) -> Estimate:
    """The mean of a column with the default interval."""
    plain = Estimate.of_moments(Moments.of(items, dialogues), bounds)
    return IntervalChoice().add_interval(plain, bounds)


def test_rows_that_stand_alone_have_students_interval() -> None:
    made = estimate_of(np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0]))
    half = 2.570582 * np.array([3, 1, 4, 1, 5, 9]).std(ddof=1) / math.sqrt(6)
    assert made.interval == pytest.approx((made.mean - half, made.mean + half), rel=1e-6)
    assert made.half_width == pytest.approx(half, rel=1e-6)
    how = made.interval_by
    assert isinstance(how, Analytic)
    assert (how.method, how.over, how.clusters, how.level, how.freedom) == ("student", "rows", 6, 0.95, 5.0)


def test_yes_and_no_that_stand_alone_have_wilsons_interval() -> None:
    made = estimate_of(np.array([1.0] * 3 + [0.0] * 7), bounds=UNIT)
    assert made.interval == pytest.approx((0.107791, 0.603222), abs=1e-6)  # Wilson's, 3 of 10
    percent = estimate_of(np.array([100.0] * 3 + [0.0] * 7), bounds=(0.0, 100.0))
    assert percent.interval == pytest.approx((10.7791, 60.3222), abs=1e-4)
    nothing = estimate_of(np.zeros(10), bounds=UNIT)
    assert nothing.interval == pytest.approx((0.0, 0.277533), abs=1e-6)
    other = estimate_of(np.array([1.0, 0.0, 0.5]), bounds=UNIT)
    assert other.interval_by is not None
    assert other.interval_by.method == "student"


def test_dialogues_of_equal_turns_count_once() -> None:
    """Ten dialogues of equal turns say what ten rows say, and not what fifty do."""
    said = np.array([3.0, 1, 4, 1, 5, 9, 2, 6, 5, 3])
    alone, turns = estimate_of(said), estimate_of(np.repeat(said, 5), np.arange(0, 51, 5))
    assert turns.interval == pytest.approx(alone.interval, rel=1e-12)
    assert isinstance(turns.interval_by, Analytic)
    assert (turns.interval_by.over, turns.interval_by.clusters) == ("dialogues", 10)


def test_a_single_row_or_dialogue_has_no_interval() -> None:
    for made in (
        estimate_of(np.array([2.0])),
        estimate_of(np.array([2.0, np.nan])),
        estimate_of(np.array([2.0, 3.0, 4.0]), np.array([0, 3])),
        estimate_of(np.array([1.0]), bounds=UNIT),
        estimate_of(np.zeros(0)),
    ):
        assert made.interval is None
        assert made.interval_by is None
        assert math.isnan(made.half_width)
    rows = IntervalChoice("rows").add_interval(Estimate.of_moments(Moments.of(np.array([2.0]))), ANY_NUMBER)
    assert (rows.half_width, rows.interval, rows.interval_by) == (0.0, None, None), "dialog-eval prints 0"


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 4)), min_size=2, max_size=20),
    st.sampled_from([0.5, 0.95, 0.999]),
    st.booleans(),
)
def test_intervals_stay_inside_the_range_and_hold_the_value(
    made: list[tuple[float, int]], level: float, corpus: bool
) -> None:
    values, sizes = zip(*made, strict=True)
    items = np.repeat(values, sizes)
    plain = Estimate.of_moments(Moments.of(items, offsets_of(sizes)), UNIT)
    found = IntervalChoice(level=level).add_interval(replace(plain, corpus=corpus), UNIT)
    assert found.interval is not None
    low, high = found.interval
    assert 0 <= low <= found.mean <= high <= 1


def test_all_at_one_end_is_not_certain() -> None:
    """Nothing is known of the spread within dialogues: each counts as one value."""
    made = estimate_of(np.ones(40), np.arange(0, 41, 4), UNIT)
    assert made.interval == pytest.approx((0.722467, 1.0), abs=1e-6)  # Wilson's, 10 of 10
    error = ClusterError(0.0, 10, 9.0, 40)
    corpus = compute_interval(Estimate(1.0, 0.0, 40, 40, corpus=True, error=error), UNIT, 0.95)
    assert corpus is not None
    assert corpus[0] == pytest.approx((0.722467, 1.0), abs=1e-6)


def test_yes_and_no_are_never_worth_more_than_there_are() -> None:
    """Two dialogues with the same share have no error between them, but four values are four values."""
    made = estimate_of(np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 2, 4]), UNIT)
    assert made.interval is not None
    assert made.interval == pytest.approx(wilson(0.5, 4, UNIT, 12.7062), rel=1e-4)


def test_a_corpus_value_has_wilsons_interval_where_its_range_has_two_ends() -> None:
    error = ClusterError(0.05, 20, 12.0, 90)
    corpus = Estimate(0.2, 0.0, 90, 90, corpus=True, error=error)
    (low, high), how = compute_interval(corpus, UNIT, 0.95) or ((0.0, 0.0), None)
    assert how is not None
    assert (how.method, how.freedom, how.error) == ("wilson", 12.0, 0.05)
    assert (low, high) == pytest.approx(wilson(0.2, 0.2 * 0.8 / 0.05**2, UNIT, 2.178813), rel=1e-6)
    assert high - 0.2 > 0.2 - low, "wider on the side that has room"
    (low, high), how = compute_interval(corpus, (0.0, math.inf), 0.95) or ((0.0, 0.0), None)
    assert how is not None
    assert how.method == "student"
    assert (low, high) == pytest.approx(student(0.2, 0.05, ANY_NUMBER, 2.178813), rel=1e-6)
    assert compute_interval(replace(corpus, error=None), UNIT, 0.95) is None


@pytest.mark.parametrize(("clusters", "passed"), [(2, 1), (5, 0), (10, 9), (50, 1), (50, 50), (2000, 700)])
def test_gaffkes_interval_of_yes_and_no_is_clopper_and_pearsons(clusters: int, passed: int) -> None:
    for level in (0.8, 0.95, 0.999):
        oracle = scipy.stats.binomtest(passed, clusters).proportion_ci(level, "exact")
        found = gaffke([(0.0, clusters - passed), (1.0, passed)], UNIT, level)
        assert found == pytest.approx((oracle.low, oracle.high), abs=1e-10)
        percent = gaffke([(0.0, clusters - passed), (100.0, passed)], (0.0, 100.0), level)
        assert percent == pytest.approx((100 * oracle.low, 100 * oracle.high), abs=1e-8)


def test_gaffkes_interval_is_the_quantile_of_dirichlet_weights() -> None:
    values, counts = np.array([0.0, 1 / 70, 0.2, 0.5, 1.0]), np.array([30, 5, 6, 4, 3])
    drawn = np.random.default_rng(1).dirichlet([*counts, 1], size=400_000)
    low, high = gaffke(list(zip(values.tolist(), counts.tolist(), strict=True)), UNIT, 0.9)
    assert low == pytest.approx(np.quantile(drawn[:, :-1] @ values, 0.05), abs=3e-4)
    assert high == pytest.approx(np.quantile(drawn @ [*values, 1.0], 0.95), abs=3e-4)


@pytest.mark.parametrize(("passed", "size"), [(0, 4), (1, 4), (4, 4), (30, 100), (2, 5)])
@pytest.mark.parametrize(("least", "width"), [(0.0, 1.0), (-1.0, 2.0), (1.0, 4.0)])
def test_wilsons_interval_as_scipys(passed: int, size: int, least: float, width: float) -> None:
    oracle = scipy.stats.binomtest(passed, size).proportion_ci(0.95, "wilson")
    found = wilson(least + width * passed / size, size, (least, least + width), 1.959963984540054)
    assert found == pytest.approx((least + width * oracle.low, least + width * oracle.high), rel=1e-12, abs=1e-12)


def test_values_of_dialogues_are_over_dialogues() -> None:
    plain = Estimate.of_moments(Moments.of(np.array([0.0, 100.0, 100.0])), (0.0, 100.0))
    made = IntervalChoice().add_interval(replace(plain, level=Level.DIALOGUE), (0.0, 100.0))
    assert isinstance(made.interval_by, Analytic)
    assert made.interval_by.over == "dialogues"


def test_other_intervals_on_request() -> None:
    items, dialogues = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 2, 4])
    plain = Estimate.of_moments(Moments.of(items, dialogues))
    none = IntervalChoice("none").add_interval(plain, ANY_NUMBER)
    assert (none.interval, none.interval_by) == (None, None)
    half = 1.97 * items.std() / 2
    for choice in (IntervalChoice("rows"), IntervalChoice(t=1.97), IntervalChoice("rows", t=1.97)):
        rows = choice.add_interval(plain, ANY_NUMBER)
        assert rows.half_width == half, "dialog-eval's, to the last digit"
        assert rows.interval == (2.5 - half, 2.5 + half)
        assert rows.interval_by == Analytic("rows", None, "rows", 4, 1.97)
    level = IntervalChoice("rows", level=0.9).add_interval(plain, ANY_NUMBER)
    assert level.half_width == pytest.approx(2.353363 * items.std() / 2, rel=1e-6)
    assert (
        IntervalChoice(level=0.5).add_interval(plain, ANY_NUMBER).half_width
        < IntervalChoice().add_interval(plain, ANY_NUMBER).half_width
    )


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"kind": "bca"}, "clustered, rows, none"),
        ({"t": 0.0}, "above 0"),
        ({"t": 2.0, "level": 0.9}, "not both"),
        ({"t": 2.0, "kind": "clustered"}, "intervals over rows"),
        ({"level": 95.0}, "between 0 and 1"),
    ],
)
def test_choices_that_make_no_interval(choice: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        IntervalChoice(**choice)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["mean", "yes/no"])
def test_intervals_contain_the_truth_about_as_often_as_they_say(kind: str) -> None:
    """Twenty dialogues of unequal length whose turns are alike: those over rows contain it less than half as often."""
    random = np.random.default_rng(5)
    hits = {"clustered": 0, "rows": 0}
    for _ in range(400):
        sizes = random.geometric(1 / 8, 20)
        own = np.repeat(random.normal(0, 2, 20), sizes) if kind == "mean" else np.repeat(random.beta(1, 1, 20), sizes)
        noise = random.normal(size=len(own)) if kind == "mean" else random.random(len(own))
        items = own + noise if kind == "mean" else (noise < own).astype(np.float64)
        bounds, truth = (ANY_NUMBER, 0.0) if kind == "mean" else (UNIT, 0.5)
        plain = Estimate.of_moments(Moments.of(items, offsets_of(sizes)), bounds)
        for name in hits:
            interval = IntervalChoice(name).add_interval(plain, bounds).interval  # type: ignore[arg-type]
            assert interval is not None
            hits[name] += interval[0] <= truth <= interval[1]
    assert 0.92 <= hits["clustered"] / 400 <= 0.98, hits
    assert hits["rows"] / 400 < 0.75, hits


def test_tango_is_the_published_example() -> None:
    """Airway hyper-responsiveness of 21 children (Bentur et al. 2009), as in Fagerland, Lydersen and Laake 2014."""
    low, high = intervals.tango(1, 7, 21, 1.959963984540054)
    assert (round(low, 3), round(high, 3)) == (-0.517, -0.026)


@pytest.mark.parametrize(("more", "fewer", "size"), [(3, 9, 40), (0, 5, 30), (12, 12, 80)])
def test_tango_has_the_differences_that_its_score_test_does_not_reject(more: int, fewer: int, size: int) -> None:
    def reject(at: float) -> bool:
        """Search the constrained maximum likelihood on a grid, instead of the closed form."""
        only_fewer = np.linspace(max(0.0, -at), (1 - at) / 2, 200_001)[1:-1]
        with np.errstate(divide="ignore", invalid="ignore"):
            fits = more * np.log(only_fewer + at) + fewer * np.log(only_fewer)
            fits += (size - more - fewer) * np.log(1 - 2 * only_fewer - at)
        spread = 2 * only_fewer[np.nanargmax(fits)] + at - at**2
        return bool(abs(more - fewer - size * at) > 1.96 * math.sqrt(size * spread))

    low, high = intervals.tango(more, fewer, size, 1.96)
    for end, inside in ((low, 1), (high, -1)):
        assert reject(end - inside * 1e-3)
        assert not reject(end + inside * 1e-3)
