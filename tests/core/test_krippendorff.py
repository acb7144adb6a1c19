"""Krippendorff's alpha against nltk's, and at its ends."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.metrics.agreement import AnnotationTask
from nltk.metrics.distance import interval_distance

from dialeval.core.errors import SettingError
from dialeval.core.krippendorff import Distance, krippendorff_alpha


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
    with pytest.raises(SettingError, match="nominal, ordinal or interval"):
        krippendorff_alpha(near, "ratio")  # type: ignore[arg-type]


@given(st.lists(st.lists(st.sampled_from([1.0, 2.0, 4.5, 5.0]), min_size=2, max_size=5), min_size=2, max_size=6))
def test_interval_alpha_is_that_of_nltk(said: list[list[float]]) -> None:
    values = np.unique([value for row in said for value in row])
    counts = np.array([[row.count(value) for value in values] for row in said], np.float64)
    found = krippendorff_alpha(counts, "interval", values)
    if len(values) < 2:
        assert math.isnan(found)
        return
    triples = [(annotator, unit, value) for unit, row in enumerate(said) for annotator, value in enumerate(row)]
    assert found == pytest.approx(AnnotationTask(triples, distance=interval_distance).alpha(), abs=1e-9)


@pytest.mark.parametrize(("distance", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_the_example_of_the_paper(distance: Distance, expected: float) -> None:
    """Four observers and twelve units, with values that are missing."""
    observers = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
    units = [[int(value) for value in unit if value != "."] for unit in zip(*observers, strict=True)]
    counts = np.array([[unit.count(value) for value in range(1, 6)] for unit in units], np.float64)
    assert krippendorff_alpha(counts, distance) == pytest.approx(expected, abs=0.0005)
