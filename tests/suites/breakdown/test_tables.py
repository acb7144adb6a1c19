"""Confusion tables against counting turn by turn, and the figures read from them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialeval.metrics.breakdown import BreakdownDetection, Codes, count_tables, shares
from laws.breakdown import WORLD, Row
from laws.worlds import Place
from suites.breakdown.naive import references

PROBABILITIES = (0.2, 0.3, 0.5)
rows = st.lists(
    st.builds(
        Row,
        st.sampled_from([0.0, 1.0, 2.0, 3.0]),
        st.just(PROBABILITIES),
        st.tuples(*[st.integers(0, 9)] * 3).filter(any),
    ),
    min_size=1,
)


@given(rows, st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_as_counted_turn_by_turn(made: list[Row], threshold: float) -> None:
    hard: Counter[tuple[int, int]] = Counter()
    lenient: Counter[tuple[int, int]] = Counter()
    for row in made:
        one, other = references(row.counts, threshold)
        hard[int(row.label), one] += 1
        lenient[int(row.label), other] += 1
    labels = np.array([[row.label, *PROBABILITIES] for row in made])
    share = shares(np.array([row.counts for row in made], np.float64))
    tables = count_tables(Codes.of(labels, share, threshold), 1, threshold)
    names = "OTX"
    assert tables.confusion == {
        name: {other: hard[label, code] for code, other in enumerate(names)} for label, name in enumerate(names)
    }
    assert tables.confusion_lenient == {
        name: {"O": lenient[label, 0], "X": lenient[label, 2]} for label, name in enumerate(names)
    }
    assert (tables.turns, tables.scored) == (len(made), len(made))
    assert tables.correct == sum(hard[code, code] for code in range(3))
    place = Place(WORLD, made)
    for counts, metric in (
        (tables.x, BreakdownDetection("f1", "x", threshold)),
        (tables.tx, BreakdownDetection("f1", "tx", threshold)),
    ):
        (estimate,) = metric.finish(place.scored(metric, made).state).values()
        assert counts.f1 == estimate.mean
