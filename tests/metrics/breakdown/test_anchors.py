"""Floors and ceilings: hand-made cases, and alpha against nltk."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask

from dialeval.core.errors import SettingError
from dialeval.metrics.breakdown.agreement import annotators, krippendorff_alpha, oracle
from dialeval.metrics.breakdown.floors import best_constant, constant, floors, mean_distribution

COUNTS = np.array([[4.0, 0.0, 0.0], [1.0, 3.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 0.0]])


def test_floors_by_hand() -> None:
    assert best_constant(COUNTS, 0.0) == 1
    assert best_constant(COUNTS, 0.9) == 0
    assert mean_distribution(COUNTS) == pytest.approx([5 / 12, 6 / 12, 1 / 12])
    found = floors(COUNTS, [0.0, 0.9])
    names = ["floor/best-constant-T", "floor/best-constant-O", "floor/always-X", "floor/mean-of-test-set"]
    assert list(found) == names
    assert found["floor/always-X"].tolist() == [[2.0, 0.0, 0.0, 1.0]] * 4
    assert found["floor/mean-of-test-set"][0] == pytest.approx([1.0, 5 / 12, 6 / 12, 1 / 12])
    known = floors(COUNTS, [0.0], np.array([[0.0, 0.0, 2.0]]))
    assert known["floor/mean-of-development-set"][0].tolist() == [2.0, 0.0, 0.0, 1.0]
    assert constant(1, 1).tolist() == [[1.0, 0.0, 1.0, 0.0]]


def test_each_annotator_is_held_out_once() -> None:
    rows, labels, rest = annotators(COUNTS)
    assert rows.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert labels[:, 0].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2]
    assert rest[4].tolist() == [0.0, 3.0, 0.0]
    assert (rest.sum(axis=1) == 3).all()
    np.testing.assert_array_equal(rest + labels[:, 1:], COUNTS[rows])


def test_the_oracle_knows_the_shares_and_new_annotators_judge_it() -> None:
    counts = np.tile([[15.0, 10.0, 5.0]], (4000, 1))
    rows, labels, drawn = oracle(counts)
    assert len(rows) == 4000
    assert labels[0] == pytest.approx([0.0, 1 / 2, 1 / 3, 1 / 6])
    assert (drawn.sum(axis=1) == 30).all()
    assert drawn.mean(axis=0) == pytest.approx([15, 10, 5], abs=0.2)
    np.testing.assert_array_equal(oracle(counts)[2], drawn)


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3).filter(lambda row: sum(row) >= 2), min_size=2, max_size=6))
def test_alpha_is_that_of_nltk(rows: list[tuple[int, int, int]]) -> None:
    counts = np.array(rows, np.float64)
    found = krippendorff_alpha(counts)
    if (counts.sum(axis=0) > 0).sum() < 2:
        assert math.isnan(found)
        return
    said = [
        (annotator, item, label)
        for item, row in enumerate(rows)
        for annotator, label in enumerate("O" * row[0] + "T" * row[1] + "X" * row[2])
    ]
    assert found == pytest.approx(AnnotationTask(said).alpha(), abs=1e-9)


def test_alpha_at_its_ends() -> None:
    agreed = np.array([[5.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    assert krippendorff_alpha(agreed) == krippendorff_alpha(agreed, "ordinal") == 1.0
    assert krippendorff_alpha(np.array([[1.0, 0.0, 1.0]] * 9)) < 0
    near, far = np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 3.0]]), np.array([[3.0, 0.0, 1.0], [1.0, 0.0, 3.0]])
    assert krippendorff_alpha(near, "ordinal") > krippendorff_alpha(far, "ordinal")
    with pytest.raises(SettingError, match="nominal or ordinal"):
        krippendorff_alpha(near, "interval")  # type: ignore[arg-type]
