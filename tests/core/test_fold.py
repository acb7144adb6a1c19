"""The fold: settings that are checked by their types, and estimates without an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_origin, get_type_hints

import numpy as np
import pytest

import dialeval
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.exact import ClusterError, Moments
from dialeval.core.fold import (
    Analytic,
    Estimate,
    Fact,
    IntervalChoice,
    Level,
    Reduction,
    RowMetric,
    check_column,
    compute_interval,
)
from dialeval.core.version import __version__
from dialeval.metrics.registry import registry
from dialeval.stats import intervals
from dialeval.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from nowhere import Unseen  # type: ignore[import-not-found]


@dataclass(frozen=True)
class Ends(RowMetric):
    family = "ends"
    presets = {"ends": {}}
    needs = frozenset({inputs.RESPONSE})

    side: Literal["left", "right"] = "left"
    width: Literal[1, 2] = 1

    def score(self, batch: Batch) -> Floats:
        return np.zeros(len(batch))


@dataclass(frozen=True)
class Checked(Ends):
    limit: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit < 0:
            raise SettingError("below 0")


@dataclass(frozen=True)
class Unresolved(Ends):
    more: Unseen | None = None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"side": "top"}, r"^ends has side=left\|right, not 'top'$"),
        ({"width": 3}, r"^ends has width=1\|2, not 3$"),
        ({"width": "1"}, r"^ends has width=1\|2, not '1'$"),
    ],
)
def test_other_values_than_those_of_the_type_are_refused(settings: dict[str, Any], message: str) -> None:
    for metric in (Ends, Checked):
        with pytest.raises(SettingError, match=message):
            metric(**settings)
    assert Ends("right", 2).width == 2


def test_a_subclass_may_check_more() -> None:
    with pytest.raises(SettingError, match="below 0"):
        Checked(limit=-1)


def test_a_type_that_cannot_be_looked_up_is_no_error() -> None:
    assert Unresolved().more is None


@pytest.mark.parametrize("family", registry().families)
def test_every_built_in_metric_checks_its_choices(family: str) -> None:
    metric = registry().families[family]
    hints = get_type_hints(metric)
    for name in metric.setting_names():
        if get_origin(hints[name]) is Literal:
            with pytest.raises(SettingError, match=f"^{family} has {name}=.*, not 'nonsense'$"):
                metric(**{name: "nonsense"})


def test_a_corpus_value_has_no_confidence_and_nothing_has_an_unknown_one() -> None:
    corpus = Estimate(0.5, 0.0, 3, 3, corpus=True)
    assert corpus.with_confidence(1.97) == corpus
    assert corpus.confidence == 0
    nothing = Estimate(math.nan, math.nan, 3, 0).with_confidence(1.97)
    assert math.isnan(nothing.confidence)
    assert nothing.interval is None


@pytest.mark.parametrize(
    ("values", "given"),
    [
        (np.zeros(2), r"an array of float64 of the shape \(2,\)"),
        (np.zeros((3, 1)), r"an array of float64 of the shape \(3, 1\)"),
        (np.zeros(3, np.int64), r"an array of int64 of the shape \(3,\)"),
        ([1.0, 2.0, 3.0], "a list"),
        (None, "a NoneType"),
    ],
)
def test_what_is_not_one_number_for_each_row_names_the_metric(values: Any, given: str) -> None:
    check_column("polite", np.zeros(3), 3)
    with pytest.raises(SettingError, match=f"the metric polite gave {given} for 3 rows; an array of 3 float64"):
        check_column("polite", values, 3)


def test_a_row_metric_that_gives_too_few_values_is_named() -> None:
    @dataclass(frozen=True)
    class Short(Ends):
        def score(self, batch: Batch) -> Floats:
            return np.zeros(len(batch) - 1)

    with pytest.raises(SettingError, match=r"the metric ends gave an array of float64 of the shape \(2,\) for 3 rows"):
        dialeval.evaluate(["a", "b", "c"], metrics=[Short()])


def test_the_printed_form_of_an_estimate() -> None:
    assert repr(Estimate(0.123456, 0.0, 1, 1)) == "<Estimate 0.1235, 1 turn>"
    assert repr(Estimate(2.0, 0.0, 1, 1, interval=(math.nan, math.nan))) == "<Estimate 2, 1 turn>"
    assert repr(Estimate(2.0, 0.0, 1234, 1234, interval=(1.0, 3.00004))) == "<Estimate 2 [1, 3], 1,234 turns>"
    assert repr(Estimate(2.0, 0.0, 3, 2, level=Level.DIALOGUE)) == "<Estimate 2, 2 of 3 dialogues>"
    assert repr(Estimate(2.0, 0.0, 1, 0)) == "<Estimate 2, 0 of 1 turn>"
    plain = Estimate(2.0, 1.0, 3, 2)
    assert (plain.corpus, plain.confidence, plain.interval, plain.level) == (False, 0.0, None, Level.TURN)


def test_the_interval_of_dialog_eval() -> None:
    estimate = Estimate(5.0, 3.0, 5, 4).with_confidence(2.0, 0.9)
    assert (estimate.confidence, estimate.interval) == (3.0, (2.0, 8.0))
    assert estimate.interval_by == Analytic("rows", 0.9, "rows", 4, 2.0)
    two = Estimate(5.0, 3.0, 2, 2).with_confidence(2.0)
    assert two.interval == (5 - 6 / math.sqrt(2), 5 + 6 / math.sqrt(2))
    one = Estimate(5.0, 0.0, 1, 1).with_confidence(2.0)
    assert (one.confidence, one.interval, one.interval_by) == (0.0, None, None)


@pytest.mark.parametrize(
    ("values", "bounds", "is_at_ends"),
    [
        ([0.0, 1.0, 1.0], (0.0, 1.0), True),
        ([0.0, 0.5, 1.0], (0.0, 1.0), False),
        ([1.0, 1.0], (0.0, 1.0), True),
        ([-1.0, 3.0, 3.0], (-1.0, 3.0), True),
        ([-1.0, 1.0, 3.0], (-1.0, 3.0), False),
        ([2.0, 3.0], (2.0, 3.0), True),
        ([0.0, 1.0], (0.0, math.inf), False),
        ([0.0, 1.0], (-math.inf, 1.0), False),
    ],
)
def test_values_at_the_ends_of_their_range(values: list[float], bounds: tuple[float, float], is_at_ends: bool) -> None:
    error = Estimate.of_moments(Moments.of(np.array(values)), bounds).error
    assert error is not None
    assert error.yes_no == is_at_ends
    unbounded = Estimate.of_moments(Moments.of(np.array(values))).error
    assert unbounded is not None
    assert not unbounded.yes_no


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "wide"}, "intervals are clustered, rows, none, not 'wide'"),
        ({"t": 0.0}, "t is the factor of a confidence and above 0, not 0.0"),
        ({"t": -1.0}, "t is the factor of a confidence and above 0, not -1.0"),
        ({"t": math.nan}, "t is the factor of a confidence and above 0, not nan"),
        ({"t": 2.0, "level": 0.9}, "give t or a confidence level, not both"),
        ({"t": 2.0, "kind": "none"}, "t is the factor of intervals over rows; intervals that are none have none"),
        ({"level": 0.0}, "a confidence level must be between 0 and 1, such as 0.95; it is not 0.0"),
        ({"level": 1.0}, "a confidence level must be between 0 and 1, such as 0.95; it is not 1.0"),
    ],
)
def test_intervals_that_cannot_be_chosen(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        IntervalChoice(**given)
    assert str(caught.value) == message


def test_intervals_that_are_chosen() -> None:
    bounds = (0.0, math.inf)
    estimate = Estimate.of_moments(Moments.of(np.array([1.0, 2.0, 3.0, 6.0])), bounds)
    error = estimate.error
    assert error is not None

    def interval(**given: Any) -> tuple[tuple[float, float] | None, Any]:
        found = IntervalChoice(**given).add_interval(estimate, bounds)
        assert found.error is None
        if found.interval is not None:
            assert found.confidence == pytest.approx((found.interval[1] - found.interval[0]) / 2, rel=1e-15)
        return found.interval, found.interval_by

    given: dict[str, Any]
    for given, level in (({}, 0.95), ({"kind": "clustered"}, 0.95), ({"level": 0.8}, 0.8)):
        t = intervals.t_factor(level, 3.0)
        how = Analytic("student", level, "rows", 4, t, 3.0, error.error)
        assert interval(**given) == ((max(0.0, 3 - t * error.error), 3 + t * error.error), how)
    around = estimate.std / 2
    factors: list[tuple[dict[str, Any], float]] = [
        ({"kind": "rows"}, 1.97),
        ({"t": 0.5}, 0.5),
        ({"t": 0.5, "kind": "rows"}, 0.5),
        ({"kind": "rows", "level": 0.9}, intervals.two_sided_t(0.9, 4)),
    ]
    for given, t in factors:
        found, how = interval(**given)
        assert found == pytest.approx((3 - t * around, 3 + t * around), rel=1e-15)
        assert how == Analytic("rows", given.get("level"), "rows", 4, t)
    assert interval(kind="none") == (None, None)
    assert math.isnan(IntervalChoice("none").add_interval(estimate, bounds).confidence)


@pytest.mark.parametrize(
    ("changes", "error", "method", "size", "freedom"),
    [
        # Rows that are independent: their number, and nothing about the spread is estimated.
        ({}, ClusterError(0.1, 10, 9.0, 10, yes_no=True), "wilson", 10, math.inf),
        # Dialogues: the size that has this error, at most the number of rows.
        ({}, ClusterError(0.1, 10, 7.0, 30, yes_no=True), "wilson", 0.24 / 0.01, 7.0),
        ({}, ClusterError(0.05, 10, 7.0, 30, yes_no=True), "wilson", 30, 7.0),
        ({}, ClusterError(0.0, 10, 7.0, 30, yes_no=True), "wilson", 30, 7.0),
        # A corpus value within bounds.
        ({"corpus": True}, ClusterError(0.05, 10, 7.0, 30), "wilson", 0.24 / 0.0025, 7.0),
        ({"corpus": True, "mean": 1.0}, ClusterError(0.05, 10, 7.0, 30), "wilson", 10, math.inf),
        # Any other value.
        ({}, ClusterError(0.05, 10, 7.0, 30), "student", None, 7.0),
    ],
)
def test_the_method_of_an_interval(
    changes: dict[str, Any], error: ClusterError, method: str, size: float | None, freedom: float
) -> None:
    bounds = (0.0, 1.0)
    estimate = replace(Estimate(0.6, 0.4, 30, 30, error=error), **changes)
    found = compute_interval(estimate, bounds, 0.9)
    assert found is not None
    ends, how = found
    t = intervals.t_factor(0.9, freedom)
    over = "dialogues" if error.scored == 30 else "rows"
    known = freedom if math.isfinite(freedom) else None
    assert how == Analytic(method, 0.9, over, 10, t, known, error.error)  # type: ignore[arg-type]
    if size is None:
        assert ends == intervals.student(estimate.mean, error.error, bounds, t)
    else:
        assert ends == pytest.approx(intervals.wilson(estimate.mean, size, bounds, t), rel=1e-12)
    doubled = replace(estimate, mean=2 * estimate.mean - 1, error=replace(error, error=2 * error.error))
    twice = compute_interval(doubled, (-1.0, 1.0), 0.9)
    assert twice is not None
    assert twice[0] == pytest.approx([2 * end - 1 for end in ends], rel=1e-12)


def test_where_there_is_no_interval() -> None:
    error = ClusterError(0.1, 2, 1.0, 2)
    estimate = Estimate(0.6, 0.4, 2, 2, error=error)
    found = compute_interval(estimate, (0.0, 1.0), 0.9)
    assert found is not None
    assert found[1].over == "rows"
    dialogues = compute_interval(replace(estimate, level=Level.DIALOGUE), (0.0, 1.0), 0.9)
    assert dialogues is not None
    assert dialogues[1].over == "dialogues"
    for changes in ({"error": None}, {"error": replace(error, clusters=1)}, {"mean": math.nan}):
        assert compute_interval(replace(estimate, **changes), (0.0, 1.0), 0.9) is None
    at_ends: list[Estimate] = [replace(estimate, corpus=True), replace(estimate, error=replace(error, yes_no=True))]
    for bounds in ((0.0, math.inf), (-math.inf, 1.0)):
        for each in at_ends:
            open_ended = compute_interval(each, bounds, 0.9)
            assert open_ended is not None
            assert open_ended[1].method == "student"
    values = ((0.5, 1), (0.7, 1))
    gaffke = compute_interval(replace(estimate, error=replace(error, values=values)), (0.0, 1.0), 0.9)
    how = Analytic("gaffke", 0.9, "rows", 2, None, None, 0.1)
    assert gaffke == (intervals.gaffke(values, (0.0, 1.0), 0.9), how)


@dataclass(frozen=True)
class Limited(Ends):
    limits = {"least": (1, 5), "open": (0, math.inf), "free": (-math.inf, math.inf)}

    least: float = 1
    open: float = 0
    free: float = 0
    exact: bool = False


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"least": 0.5}, "least of ends must be between 1 and 5, not 0.5"),
        ({"least": 6}, "least of ends must be between 1 and 5, not 6"),
        ({"open": -1}, "open of ends must be finite and at least 0, not -1"),
        ({"open": math.inf}, "open of ends must be finite and at least 0, not inf"),
        ({"free": math.nan}, "free of ends must be a finite number, not nan"),
        ({"free": -math.inf}, "free of ends must be a finite number, not -inf"),
    ],
)
def test_settings_beyond_their_limits(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        Limited(**settings)
    assert str(caught.value) == message


def test_the_name_of_a_metric_has_what_is_not_its_default() -> None:
    for settings, name in (
        ({}, "ends"),
        ({"least": 1, "open": 0}, "ends"),
        ({"least": 5, "free": -2.5}, "ends(least=5,free=-2.5)"),
        ({"exact": True, "side": "right"}, "ends(side=right,exact=true)"),
    ):
        assert str(Limited(**settings)) == name


def test_what_metrics_are_unless_they_say_otherwise() -> None:
    metric = Ends()
    assert (metric.better, metric.bounds, metric.facts, metric.wants) == (None, (-math.inf, math.inf), (), frozenset())
    assert (metric.grows, metric.definition, metric.costly, metric.costly_rows) == (False, 1, False, 128)
    assert (metric.counts_kinds, metric.whole_dialogues, metric.descriptive) == (False, False, False)
    assert metric.bounds_of("ends") == (-math.inf, math.inf)
    assert metric.merge(Moments(1, 1, 2, 4), Moments(2, 1, 3, 9)) == Moments(3, 2, 5, 13)
    assert metric.close_part(Moments(1)) == Moments(1)
    assert metric.empty() == Moments()
    assert dict(metric.signature()) == {"side": "left", "width": "1", "definition": "1", "dialeval": __version__}

    class Texts(Fact[tuple[str, ...], Any]):
        def empty(self) -> tuple[str, ...]:
            return ()

        def gather(self, batch: Batch) -> tuple[str, ...]:
            return tuple(batch.texts(inputs.RESPONSE))

    fact = Texts()
    assert (fact.finish(("a",)), fact.merge(("a",), ("b",)), fact.grows) == (("a",), ("a", "b"), False)
    assert (list(metric.find_warnings([])), metric.list_other_signatures(Moments())) == ([], {})
    with pytest.raises(NotImplementedError, match="ends has no state that grows"):
        metric.split_state(Moments(), 2)
    sample: Any = None
    for score in (metric.score_resamples, metric.score_jackknife):
        with pytest.raises(NeedError, match="ends has no per-row statistics, so it cannot be resampled"):
            score(sample)


def test_a_metric_of_dialogues_gives_a_value_for_each() -> None:
    @dataclass(frozen=True)
    class Turns(Ends):
        level = Level.DIALOGUE
        untestable = "for tests"

        def score(self, batch: Batch) -> Floats:
            return np.diff(batch.dialogues).astype(np.float64)

    column = TextColumn.from_strings(["a", "b", "c"])
    batch = Batch(3, {inputs.RESPONSE: column}, Vocabulary(), np.array([0, 2, 3]))
    partial = Turns().partial(batch)
    assert partial.items["ends"].tolist() == [2.0, 1.0]
    assert partial.state == Moments.of(np.array([2.0, 1.0]))
    (estimate,) = Turns().finish(partial.state).values()
    assert (estimate.mean, estimate.error) == (1.5, None), "it has no test"
    (tested,) = Ends().finish(partial.state).values()
    assert tested.error is not None
    with pytest.raises(SettingError, match=r"\(3,\) for 2 rows; an array of 2 float64 is expected$"):
        type("Wrong", (Turns,), {"score": lambda _, batch: np.zeros(len(batch))})().partial(batch)
    with pytest.raises(
        SettingError, match=r"^the metric x gave a list for 2 turns; an array of 2 float64 is expected$"
    ):
        check_column("x", [1.0, 2.0], 2, "turns")


@pytest.mark.parametrize("count", range(10))
def test_pairs_of_equal_rank_are_merged_first(count: int) -> None:
    """As the bits of a binary counter: eight states are a tree of depth three."""
    merged: list[str] = []

    def merge(left: str, right: str) -> str:
        merged.append(f"({left}{right})")
        return merged[-1]

    sums = Reduction(merge, lambda: "none")
    for number in range(count):
        sums.add(str(number))
    expected = ["none", "0", "(01)", "((01)2)", "((01)(23))", "(((01)(23))4)", "(((01)(23))(45))"]
    expected += ["(((01)(23))((45)6))", "(((01)(23))((45)(67)))", "((((01)(23))((45)(67)))8)"]
    assert sums.result() == expected[count]
    assert sums.result() == expected[count], "it may be asked for again"
    assert len(merged) == max(0, count - 1)


def test_states_may_follow_a_result() -> None:
    sums = Reduction(lambda left, right: f"({left}{right})", str)
    for number in range(3):
        sums.add(str(number))
    assert sums.result() == "((01)2)"
    for number in range(3, 7):
        sums.add(str(number))
    assert sums.result() == "(((01)2)((34)(56)))", "it has the rank of four"
