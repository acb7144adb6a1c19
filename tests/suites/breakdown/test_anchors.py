"""Floors and ceilings: hand-made cases."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.metrics.breakdown import (
    find_best_constant,
    make_annotators,
    make_floors,
    make_oracle,
    mean_distribution,
    repeat_label,
)

COUNTS = np.array([[4.0, 0.0, 0.0], [1.0, 3.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 0.0]])


def test_floors_by_hand() -> None:
    assert find_best_constant(COUNTS, 0.0) == 1
    assert find_best_constant(COUNTS, 0.9) == 0
    assert mean_distribution(COUNTS) == pytest.approx([5 / 12, 6 / 12, 1 / 12])
    found = make_floors(COUNTS, [0.0, 0.9])
    names = ["floor/best-constant-T", "floor/best-constant-O", "floor/always-X", "floor/mean-of-test-set"]
    assert list(found) == names
    assert found["floor/always-X"].tolist() == [[2.0, 0.0, 0.0, 1.0]] * 4
    assert found["floor/mean-of-test-set"][0] == pytest.approx([1.0, 5 / 12, 6 / 12, 1 / 12])
    known = make_floors(COUNTS, [0.0], np.array([[0.0, 0.0, 2.0]]))
    assert known["floor/mean-of-development-set"][0].tolist() == [2.0, 0.0, 0.0, 1.0]
    assert repeat_label(1, 1).tolist() == [[1.0, 0.0, 1.0, 0.0]]


def test_each_annotator_is_held_out_once() -> None:
    rows, labels, rest = make_annotators(COUNTS)
    assert rows.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert labels[:, 0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2]
    assert rest[4].tolist() == [0.0, 3.0, 0.0]
    assert (rest.sum(axis=1) == 3).all()
    np.testing.assert_array_equal(rest + labels[:, 1:], COUNTS[rows])


def test_the_oracle_knows_the_shares_and_new_annotators_judge_it() -> None:
    counts = np.tile([[15.0, 10.0, 5.0]], (4000, 1))
    rows, labels, drawn = make_oracle(counts)
    assert len(rows) == 4000
    assert labels[0] == pytest.approx([0.0, 1 / 2, 1 / 3, 1 / 6])
    assert (drawn.sum(axis=1) == 30).all()
    assert drawn.mean(axis=0) == pytest.approx([15, 10, 5], abs=0.2)
    np.testing.assert_array_equal(make_oracle(counts)[2], drawn)
