"""Values of a system under cluster counts: against evaluating the rows that were taken, and why some cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dialeval
from dialeval.analysis import values as module
from dialeval.analysis.values import NO_DIALOGUES, Values, find_metric, sum_known
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.stats.intervals import two_sided_t
from dialeval.stats.resampling import Influence, leave_out_clusters

TEXTS = ["the cat sat", "a dog", "the dog ran by", "", "a cat", "the the the"]


@pytest.fixture
def result() -> Result:
    rows = [{"dialog_id": f"d{number // 2}", "response": text} for number, text in enumerate(TEXTS)]
    return dialeval.evaluate(rows, metrics="length,distinct")["system"]


def test_counts_give_what_scoring_the_taken_dialogues_gives(result: Result) -> None:
    values = Values.of(result)
    assert (values.clusters, values.keys) == (3, ["length", "distinct-1", "distinct-2"])
    for counts in ([1, 1, 1], [2, 0, 1], [0, 3, 0]):
        taken = [text for cluster, times in enumerate(counts) for text in TEXTS[2 * cluster : 2 * cluster + 2] * times]
        anew = dialeval.evaluate(taken, metrics="length,distinct")["system"]
        found = values.compute([np.array([counts])])
        assert {key: each[0] for key, each in found.items()} == pytest.approx({key: anew[key].mean for key in anew})


def test_what_counts_kinds_cannot_be_found_from_repeated_clusters(result: Result) -> None:
    values = Values.of(result)
    assert [key for key in values.keys if key not in values.repeatable.keys] == ["distinct-1", "distinct-2"]
    assert Values.of(result, ["distinct-1"]).repeatable.compute([]) == {}


def test_nothing_drawn_gives_no_values(result: Result) -> None:
    assert [values.shape for values in Values.of(result).compute([]).values()] == [(0,)] * 3


def test_why_a_key_has_no_values(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    length = result["length"]
    changed = {
        "no items": replace(length, items=None),
        "other rows": replace(length, items=np.zeros(4)),
        "no signature": replace(result["distinct-1"], signature=None),
        "not installed": replace(result["distinct-1"], signature=Signature.of("nobody-s")),
    }
    reasons = Values.of(replace(result, estimates={**result, **changed})).reasons
    assert list(reasons) == list(changed)
    assert reasons["no items"] == "the run has no per-row scores of it"
    assert reasons["other rows"] == "it has 4 values for 6 rows"
    assert reasons["no signature"] == reasons["not installed"]
    assert "not installed here" in reasons["not installed"]
    bare = replace(result, contributions={})
    assert "score the responses again" in Values.of(bare).reasons["distinct-1"]
    monkeypatch.setattr(module, "KEPT_ROWS", 6)
    assert "score the responses again" in Values.of(bare).reasons["distinct-1"], "so many rows are kept"
    monkeypatch.setattr(module, "KEPT_ROWS", 5)
    assert "kept for up to 5 rows" in Values.of(bare).reasons["distinct-1"]


def test_items_are_of_rows_or_of_dialogues(result: Result) -> None:
    length = result["length"]
    sizes = {str(size): replace(length, items=np.arange(float(size))) for size in range(8)}
    values = Values.of(replace(result, estimates=sizes))
    assert list(values.items) == ["3", "6"]
    found = values.compute([np.array([[1, 0, 2], [0, 0, 0]])])
    np.testing.assert_array_equal(found["3"], [4 / 3, np.nan])
    np.testing.assert_array_equal(found["6"], [(0 + 1 + 2 * (4 + 5)) / 6, np.nan])


def test_values_are_the_same_however_the_resamples_are_cut(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    values = Values.of(result)
    counts = np.random.default_rng(0).integers(0, 3, (10, 3))
    single = [values.compute([row[None]]) for row in counts]
    expected = {key: np.concatenate([each[key] for each in single]) for key in values.keys}
    np.testing.assert_equal(values.compute([counts[:7], counts[7:]]), expected)
    monkeypatch.setattr(module, "_PART", 2)
    np.testing.assert_equal(values.compute([counts]), expected)


def test_joined_values_are_those_of_both_systems_one_after_the_other(result: Result) -> None:
    texts = ["x y", "the cat", "z", "z z", "", "a"]
    rows = [{"dialog_id": f"d{number // 2}", "response": text} for number, text in enumerate(texts)]
    other = dialeval.evaluate(rows, metrics="length,distinct-1")["system"]
    both = Values.of(result).join(Values.of(other))
    assert both.keys == ["length", "distinct-1"]
    assert both.rows.offsets.tolist() == [0, 2, 4, 6, 8, 10, 12]
    taken = [*TEXTS[2:4], *texts[:2], *texts[:2]]
    anew = dialeval.evaluate(taken, metrics="length,distinct-1")["system"]
    found = both.compute([np.array([[0, 1, 0, 2, 0, 0]])])
    assert {key: each[0] for key, each in found.items()} == pytest.approx({key: anew[key].mean for key in anew})


def test_a_metric_with_other_settings_is_not_joined(result: Result) -> None:
    values = Values.of(result)
    changed = replace(values, metrics={**values.metrics, "distinct-1": values.metrics["distinct-2"]})
    assert values.join(changed).keys == ["length", "distinct-2"]


def test_without_a_row_table_nothing_is_resampled_unless_rows_stand_alone() -> None:
    def estimate(size: int, level: Level) -> Estimate:
        return Estimate(0.0, 0.0, size, size, items=np.zeros(size), level=level)

    turns, dialogues = estimate(4, Level.TURN), estimate(9, Level.DIALOGUE)
    unknown = Values.of(Result({"t": turns}))
    assert (unknown.clusters, unknown.keys, unknown.reasons) == (0, [], {"t": NO_DIALOGUES})
    assert Values.of(Result({"t": turns}), alone=True).clusters == 4
    assert Values.of(Result({"d": dialogues}), alone=True).clusters == 9
    both = Values.of(Result({"t": turns, "d": dialogues}), alone=True)
    assert both.clusters == 4, "a turn is a row, a dialogue is not"
    assert Values.of(Result({"t": turns}, rows=RowTable(np.array([0, 1, 4])))).clusters == 2


def test_cluster_sums_leave_unknown_items_out() -> None:
    items = np.array([1.0, np.nan, 2.0, 4.0])
    assert sum_known(items, np.array([0, 2, 4])).tolist() == [[1, 1], [6, 2]]
    assert sum_known(items, np.arange(5)).tolist() == [[1, 1], [0, 0], [2, 1], [4, 1]]
    assert sum_known(items[:2], np.array([0, 3, 4])).tolist() == [[1, 1], [0, 0]], "a value per dialogue"


def test_the_metric_of_an_estimate_is_read_from_its_signature(result: Result) -> None:
    metric = find_metric(result["distinct-2"])
    assert str(metric) == "distinct-2"
    assert find_metric(replace(result["distinct-2"], signature=None)) is None


def test_rows_of_a_result_without_a_table() -> None:
    """As many as its values of turns, else as its values or statistics."""
    turns = Estimate(0.0, 0.0, 3, 3, items=np.zeros(3))
    dialogues = replace(turns, items=np.zeros(5), level=Level.DIALOGUE)
    assert Values.of(Result({"x": turns, "y": dialogues}), alone=True).clusters == 3
    longer = replace(turns, items=np.zeros(4))
    assert Values.of(Result({"x": turns, "z": longer, "y": dialogues}), alone=True).clusters == 4
    assert Values.of(Result({"x": turns, "z": longer}), alone=True).clusters == 4
    assert Values.of(Result({"y": dialogues}), alone=True).clusters == 5
    assert Values.of(Result({"x": replace(turns, items=None)}), alone=True).clusters == 0
    corpus = dialeval.evaluate(TEXTS, metrics="distinct-1")["system"]
    assert Values.of(replace(corpus, rows=None), alone=True).clusters == 6
    assert Values.of(replace(corpus, rows=None), alone=False).reasons == {"distinct-1": NO_DIALOGUES}


def test_intervals_by_formula_have_half_their_width_as_confidence() -> None:
    run = dialeval.evaluate(["a", "b", "d", "b", "c", "a"], ["a", "b", "c", "b", "c", "x"], metrics="rouge-l")
    (key,) = run["system"]
    made = dialeval.with_intervals(run, confidence=0.9, resamples=50)["system"][key]
    assert made.interval is not None
    low, high = made.interval
    assert made.confidence == (high - low) / 2
    assert (made.interval_by is not None and made.interval_by.method) == "wilson"


def test_parts_of_corpus_values_have_half_their_width_as_confidence(result: Result) -> None:
    part = module.cut(result, np.arange(4))["distinct-1"]
    assert part.interval is not None
    low, high = part.interval
    assert part.confidence == (high - low) / 2
    bare = module.cut(result, np.arange(4), intervals=False)["distinct-1"]
    assert (bare.interval, bare.interval_by, bare.mean, bare.scored) == (None, None, part.mean, part.scored)
    one = module.cut(result, np.arange(2))["distinct-1"]
    assert (one.interval, one.mean) == (None, 1.0)


def test_dialogues_that_count_once_and_those_that_are_rows(result: Result) -> None:
    whole = replace(result["length"], items=np.array([1.0, 2.0, 4.0]), level=Level.DIALOGUE, signature=None)
    bare = replace(result["length"], items=None)
    both = replace(result, estimates={**result, "whole": whole, "bare": bare})
    weighed = module.weigh_dialogues(both)
    assert weighed["length"].items is not None
    assert weighed["length"].items.tolist() == [2.5, 2, 2.5]
    assert (weighed["length"].level, weighed["length"].rows) == (Level.DIALOGUE, 3)
    assert [weighed[key] for key in ("whole", "bare", "distinct-1")] == [whole, bare, both["distinct-1"]]
    collapsed = module.collapse_dialogues(dialeval.Run({"a": both}, "0"))["a"]
    assert list(collapsed) == ["length", "whole"]
    assert [collapsed[key].items.tolist() for key in collapsed] == [[2.5, 2, 2.5], [1, 2, 4]]  # type: ignore[union-attr]
    assert {collapsed[key].level for key in collapsed} == {Level.TURN}
    assert collapsed.rows is not None
    assert (len(collapsed.rows), collapsed.contributions) == (3, {})


def timed(seed: int, rows: int = 30) -> dialeval.Run:
    seconds = np.random.default_rng(seed).exponential(size=rows)
    return dialeval.evaluate(
        [{"dialog_id": f"d{at}", "response": "a", "latency": float(each)} for at, each in enumerate(seconds)],
        metrics="latency-p50",
    )


def test_errors_of_percentiles_are_those_of_their_linear_part() -> None:
    """Without one dialogue a percentile is another or the same value: the plain jackknife is not consistent."""
    runs = {f"v{at}": timed(at) for at in range(3)}
    values = [Values.of(run["system"], ["latency-p50"]) for run in runs.values()]
    left_out = [np.concatenate(list(leave_out_clusters(30)))]
    plain, linear = (
        [each.compute(left_out, jackknife)["latency-p50"] for each in values] for jackknife in (False, True)
    )
    assert np.array_equal(values[0].compute(left_out)["latency-p50"], plain[0])
    latency = [run["system"]["latency-p50"].mean for run in runs.values()]
    errors = [Influence.of(at, each, np.ones(30)).error for at, each in zip(latency, linear, strict=True)]
    assert errors[0] != pytest.approx(Influence.of(latency[0], plain[0], np.ones(30)).error, rel=0.01)
    found = module.compute_influences(values[0], {"latency-p50": latency[0]})["latency-p50"]
    assert found.error == pytest.approx(errors[0])
    paired = dialeval.compare({key: runs[key] for key in ("v0", "v1")}, resamples=20, trials=20).rows[0]
    joint = Influence.of(latency[1] - latency[0], linear[1] - linear[0], np.ones(30))
    assert paired.error == pytest.approx(joint.error)
    trend = dialeval.trend(runs).rows[0]
    slope = Influence.of((latency[2] - latency[0]) / 2, (linear[2] - linear[0]) / 2, np.ones(30))
    assert trend.interval is not None
    assert trend.interval[1] - trend.slope == pytest.approx(two_sided_t(0.95, 30) * slope.error)
