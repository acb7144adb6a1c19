"""Values of a system under cluster counts: against evaluating the rows that were taken, and why some cannot be."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import dialeval
from dialeval.analysis import values as module
from dialeval.analysis.values import NO_DIALOGUES, Values, find_metric
from dialeval.core.contributions import ClusteredRows
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature

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
        "no items": replace(length, scores=None),
        "other rows": replace(length, scores=np.zeros(4)),
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
    sizes = {str(size): replace(length, scores=np.arange(float(size))) for size in range(8)}
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


@pytest.mark.parametrize("groups", [1000, 4])
def test_exchanged_dialogues_are_scored_as_if_they_were_the_other_systems(
    groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """70 trials of 9 dialogues of 1 to 3 replies, some of them failed; or of 4 groups of dialogues."""
    monkeypatch.setattr(module, "GROUPS", groups)
    rng = np.random.default_rng(1)
    turns = np.repeat(np.arange(9), [1, 2, 3] * 3)
    words = rng.choice(list("abcdefg"), (3, len(turns), 5))
    left, right, references = ([" ".join(line[: rng.integers(6)]) for line in side] for side in words.tolist())
    metrics = "length,distinct-1,distinct-2,sacrebleu,chrf,rouge-l"

    def evaluate(texts: list[str]) -> Result:
        rows = [{"dialog_id": f"d{turn}", "response": text} for turn, text in zip(turns, texts, strict=True)]
        return dialeval.evaluate(rows, references, metrics=metrics)["system"]

    one, other = (Values.of(evaluate(texts)) for texts in (left, right))
    swaps = rng.integers(2, size=(70, min(groups, 9)))
    found = one.group().exchange(other.group(), [swaps[:66], swaps[66:]])
    bounds = np.arange(len(swaps[0]) + 1) * 9 // len(swaps[0])
    of_dialogue = np.repeat(np.arange(len(swaps[0])), np.diff(bounds))
    for at in (0, 1, 63, 64, 69):
        swapped = swaps[at][of_dialogue][turns]
        first = evaluate([b if swap else a for a, b, swap in zip(left, right, swapped, strict=True)])
        second = evaluate([a if swap else b for a, b, swap in zip(left, right, swapped, strict=True)])
        expected = {key: second[key].mean - first[key].mean for key in found}
        assert {key: float(values[at]) for key, values in found.items()} == pytest.approx(expected, abs=1e-12)


def test_groups_hold_the_values_of_dialogues_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROUPS", 3)
    rows = ClusteredRows({}, np.array([0, 2, 3, 6, 7, 9]))
    values = Values(rows, {"turn": np.arange(9.0), "dialogue": np.array([1.0, 2.0, math.nan, 8.0, 16.0])}).group()
    assert values.clusters == 3
    found = values.compute([np.eye(3, dtype=np.int8)])
    assert found["turn"].tolist() == [0.5, 3.5, 7.0]
    assert found["dialogue"].tolist() == [1.0, 2.0, 12.0]


def test_a_metric_with_other_settings_is_not_joined(result: Result) -> None:
    values = Values.of(result)
    changed = replace(values, metrics={**values.metrics, "distinct-1": values.metrics["distinct-2"]})
    assert values.join(changed).keys == ["length", "distinct-2"]


def test_without_a_row_table_nothing_is_resampled_unless_rows_stand_alone() -> None:
    def estimate(size: int, level: Level) -> Estimate:
        return Estimate(0.0, 0.0, size, size, scores=np.zeros(size), level=level)

    turns, dialogues = estimate(4, Level.TURN), estimate(9, Level.DIALOGUE)
    unknown = Values.of(Result({"t": turns}))
    assert (unknown.clusters, unknown.keys, unknown.reasons) == (0, [], {"t": NO_DIALOGUES})
    assert Values.of(Result({"t": turns}), alone=True).clusters == 4
    assert Values.of(Result({"d": dialogues}), alone=True).clusters == 9
    both = Values.of(Result({"t": turns, "d": dialogues}), alone=True)
    assert both.clusters == 4, "a turn is a row, a dialogue is not"
    assert Values.of(Result({"t": turns}, table=RowTable(np.array([0, 1, 4])))).clusters == 2


def test_the_metric_of_an_estimate_is_read_from_its_signature(result: Result) -> None:
    metric = find_metric(result["distinct-2"])
    assert str(metric) == "distinct-2"
    assert find_metric(replace(result["distinct-2"], signature=None)) is None
