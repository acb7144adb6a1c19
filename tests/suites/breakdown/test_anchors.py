"""Floors and ceilings: hand-made cases."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.metrics.breakdown import find_best_constant, make_floors, mean_distribution, repeat_label

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
