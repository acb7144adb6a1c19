"""Breakdown detection: references, tables, floors and ceilings, on arrays small enough to be read."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dialeval.metrics.breakdown import (
    BreakdownDetection,
    BreakdownDistance,
    Codes,
    DetectionCounts,
    LabelAccuracy,
    Tables,
    count_tables,
    find_best_constant,
    hard_reference,
    lenient_reference,
    make_annotators,
    make_floors,
    make_oracle,
    mean_distribution,
    repeat_label,
    shares,
)
from dialeval.metrics.registry import registry
from laws.breakdown import WORLD, Row
from laws.worlds import Place

NAN = math.nan
COUNTS = np.array([[2, 1, 1], [1, 1, 2], [0, 0, 0], [2, 2, 0], [0, 3, 1]], float)
SHARES = [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [NAN] * 3, [0.5, 0.5, 0.0], [0.0, 0.75, 0.25]]


def test_shares() -> None:
    np.testing.assert_array_equal(shares(COUNTS), SHARES)


@pytest.mark.parametrize(
    ("threshold", "hard", "lenient"),
    [
        (0.0, [0, 2, NAN, 0, 1], [0, 2, NAN, 0, 2]),  # of equal labels the first; no more breakdowns than O are O
        (0.5, [0, 2, NAN, 0, 1], [0, 2, NAN, 0, 2]),
        (0.51, [0, 0, NAN, 0, 1], [0, 2, NAN, 0, 2]),
        (0.75, [0, 0, NAN, 0, 1], [0, 2, NAN, 0, 2]),
        (0.76, [0, 0, NAN, 0, 0], [0, 0, NAN, 0, 2]),
        (1.0, [0, 0, NAN, 0, 0], [0, 0, NAN, 0, 2]),
        (1.01, [0, 0, NAN, 0, 0], [0, 0, NAN, 0, 0]),
    ],
)
def test_references(threshold: float, hard: list[float], lenient: list[float]) -> None:
    np.testing.assert_array_equal(hard_reference(shares(COUNTS), threshold), hard)
    np.testing.assert_array_equal(lenient_reference(shares(COUNTS), threshold), lenient)


def test_tables() -> None:
    label = np.array([0, 1, 2, 2, 1, 0, 3, NAN, 2, 2, 1], float)
    hard = np.array([0, 0, 1, 2, 2, 2, 2, 2, NAN, 2, 1], float)
    lenient = np.array([0, 0, 2, 2, 2, 2, 2, 2, NAN, 0, 2], float)
    tables = count_tables(Codes(label, hard, lenient), 4, 0.5)
    assert tables == Tables(
        threshold=0.5,
        dialogues=4,
        turns=11,
        scored=9,
        correct=4,
        references={"O": 2, "T": 2, "X": 4},
        confusion={"O": {"O": 1, "T": 0, "X": 1}, "T": {"O": 1, "T": 1, "X": 1}, "X": {"O": 0, "T": 1, "X": 2}},
        confusion_lenient={"O": {"O": 1, "X": 1}, "T": {"O": 1, "X": 2}, "X": {"O": 1, "X": 2}},
    )
    assert tables.x == DetectionCounts(2, 3, 4)
    assert tables.tx == DetectionCounts(4, 6, 5)
    nothing = count_tables(Codes(label[:0], hard[:0], lenient[:0]), 0, 0.0)
    assert (nothing.turns, nothing.x, nothing.tx) == (0, DetectionCounts(), DetectionCounts(0, 0, 0))


def test_floors() -> None:
    np.testing.assert_array_equal(repeat_label(1, 2), [[1, 0, 1, 0]] * 2)
    mean = [1.25 / 4, 1.75 / 4, 1 / 4]
    np.testing.assert_array_equal(mean_distribution(COUNTS), mean)
    np.testing.assert_array_equal(mean_distribution(np.zeros((2, 3))), [1 / 3] * 3)
    assert [find_best_constant(COUNTS, threshold) for threshold in (0.0, 0.5, 0.76)] == [0, 0, 0]
    assert find_best_constant(COUNTS[[1, 4, 4]], 0.0) == 1
    assert find_best_constant(COUNTS[[1, 4]], 0.0) == 1, "T before X"
    assert find_best_constant(COUNTS[[1, 4]], 0.75) == 0, "O before T"
    assert find_best_constant(COUNTS[2:3], 0.0) == 0
    floors = make_floors(COUNTS[[1, 4, 1]], [0.0, 1.0])
    assert list(floors) == [
        *("floor/best-constant-X", "floor/best-constant-O", "floor/always-X", "floor/mean-of-test-set")
    ]
    np.testing.assert_array_equal(floors["floor/best-constant-X"], [[2, 0, 0, 1]] * 3)
    np.testing.assert_array_equal(floors["floor/best-constant-O"], [[0, 1, 0, 0]] * 3)
    np.testing.assert_array_equal(floors["floor/always-X"], [[2, 0, 0, 1]] * 3)
    np.testing.assert_allclose(floors["floor/mean-of-test-set"], [[1, 0.5 / 3, 1.25 / 3, 1.25 / 3]] * 3)
    developed = make_floors(COUNTS[:1], [0.0], COUNTS)
    assert list(developed) == ["floor/best-constant-O", "floor/always-X", "floor/mean-of-development-set"]
    np.testing.assert_array_equal(developed["floor/mean-of-development-set"], [[1, *mean]])


def test_each_annotator_is_a_detector() -> None:
    rows, labels, left = make_annotators(np.array([[1, 0, 0], [1, 0, 2], [0, 1, 1], [0, 0, 0]], float))
    assert rows.tolist() == [1, 1, 1, 2, 2]
    assert labels.tolist() == [[0, 1, 0, 0], [2, 0, 0, 1], [2, 0, 0, 1], [1, 0, 1, 0], [2, 0, 0, 1]]
    assert left.tolist() == [[0, 0, 2], [1, 0, 1], [1, 0, 1], [0, 0, 1], [0, 1, 0]]


def test_the_oracle_knows_the_shares() -> None:
    rows, labels, drawn = make_oracle(np.array([[0, 0, 0], [0, 0, 1], [2, 6, 0], [30, 40, 30]], float))
    assert rows.tolist() == [1, 2, 3]
    assert labels.tolist() == [[2, 0, 0, 1], [1, 0.25, 0.75, 0], [1, 0.3, 0.4, 0.3]]
    expected = np.random.default_rng(6).multinomial([1, 8, 100], np.array(labels)[:, 1:])
    assert drawn.tolist() == expected.tolist()


def test_the_largest_number_that_is_taken_for_a_probability() -> None:
    rows = [Row(0.0, (1e9, 0.0, 0.0)), Row(0.0, (0.0, 1.0000001e9, 0.0)), Row(0.0, (0.0, 0.0, 0.0))]
    found = Place(WORLD, rows).scored(BreakdownDistance("mse"), rows).items["mse-o-t-x"]
    assert np.isnan(found).tolist() == [False, True, False]


def test_what_is_declared() -> None:
    assert LabelAccuracy() == LabelAccuracy(0.0)
    assert BreakdownDetection() == BreakdownDetection("f1", "x", 0.0)
    assert BreakdownDistance() == BreakdownDistance("jsd", "o-t-x")
    assert (LabelAccuracy().bounds, BreakdownDetection().bounds, BreakdownDistance().bounds) == (
        *((0.0, 1.0), (0.0, 1.0), (0.0, math.inf)),
    )
    assert (BreakdownDetection().has_items, BreakdownDetection().width) == (False, 3)
    assert [str(metric) for metric in registry().select("breakdown-detection,breakdown-distance")] == [
        *("precision-x", "recall-x", "f1-x", "precision-tx", "recall-tx", "f1-tx"),
        *("jsd-o-t-x", "jsd-o-tx", "jsd-ot-x", "mse-o-t-x", "mse-o-tx", "mse-ot-x"),
    ]
    assert LabelAccuracy(-0.5).threshold == -0.5
    assert DetectionCounts() == DetectionCounts(0, 0, 0)


def test_distances_of_opposite_and_equal_distributions() -> None:
    rows = [
        Row(0.0, (1.0, 0.0, 0.0), (0, 0, 4)),
        Row(0.0, (0.25, 0.25, 0.5), (1, 1, 2)),
        Row(0.0, (0.0, 1.0, 0.0), (0, 0, 4)),
    ]
    expected = {
        "jsd-o-t-x": [1, 0, 1],
        "jsd-o-tx": [1, 0, 0],
        "jsd-ot-x": [1, 0, 1],
        "mse-o-t-x": [2 / 3, 0, 2 / 3],
        "mse-o-tx": [1, 0, 0],
        "mse-ot-x": [1, 0, 1],
    }
    for name, values in expected.items():
        metric = registry().parse(name)
        assert Place(WORLD, rows).scored(metric, rows).items[name].tolist() == values
