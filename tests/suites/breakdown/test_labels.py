"""Accuracy, precision, recall and F against counting by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.metrics.breakdown import BreakdownDetection, DetectionCounts, LabelAccuracy
from laws.breakdown import WORLD, Row
from laws.worlds import Place
from suites.breakdown.naive import references

rows = st.lists(
    st.builds(
        Row,
        st.sampled_from([0.0, 1.0, 2.0, 3.0]),
        st.just((0.2, 0.3, 0.5)),
        st.tuples(*[st.integers(0, 9)] * 3).filter(any),
    ),
    min_size=1,
)


@given(rows, st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_figures_are_those_of_counting(made: list[Row], threshold: float) -> None:
    hard: Counter[tuple[int, int]] = Counter()
    lenient: Counter[tuple[int, int]] = Counter()
    for row in made:
        one, other = references(row.counts, threshold)
        hard[int(row.label), one] += 1
        lenient[int(row.label), other] += 1
    place = Place(WORLD, made)

    def value(metric: LabelAccuracy | BreakdownDetection) -> float:
        (estimate,) = metric.finish(place.scored(metric, made).state).values()
        return estimate.mean

    assert value(LabelAccuracy(threshold)) == pytest.approx(sum(hard[code, code] for code in range(3)) / len(made))
    for of, table, labeled in (("x", hard, [2]), ("tx", lenient, [1, 2])):
        found = sum(table[code, 2] for code in labeled)
        said = sum(table[code, reference] for code in labeled for reference in range(3))
        real = sum(table[code, 2] for code in range(3))
        expected = {
            "precision": found / said if said else 0,
            "recall": found / real if real else 0,
            "f1": 2 * found / (said + real) if found else 0,
        }
        for figure, number in expected.items():
            metric = BreakdownDetection(figure, of, threshold)  # type: ignore[arg-type]
            assert value(metric) == pytest.approx(number)


def test_undefined_figures_are_zero_as_in_the_original() -> None:
    nothing = DetectionCounts()
    assert (nothing.precision, nothing.recall, nothing.f1) == (0.0, 0.0, 0.0)
    some = DetectionCounts(found=2, labeled=4, real=8)
    assert (some.precision, some.recall, some.f1) == (0.5, 0.25, 1 / 3)
