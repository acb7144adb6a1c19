"""Metrics of counts against sums over a list."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import NumberColumn
from dialeval.core.contributions import ClusteredRows, Resamples, RowSums
from dialeval.core.errors import NeedError
from dialeval.core.needs import Need
from dialeval.metrics.counting import CountMetric, Flags, Per
from dialeval.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Share(CountMetric):
    """Part of whole, of rows whose whole is not 0."""

    family = "share"
    presets = {"share": {}}
    needs = frozenset({Need.ANNOTATIONS})
    width = 2

    per: Per = "corpus"

    @property
    def of_corpus(self) -> bool:
        return self.per == "corpus"

    def row_counts(self, batch: Batch) -> tuple[Ints, Flags]:
        counts: Ints = batch.numbers(Need.ANNOTATIONS).astype(np.int64)
        return counts, counts[:, 1] > 0

    def formula(self, counts: Ints | Floats) -> Floats:
        return counts[:, 0] / np.maximum(counts[:, 1], 1)


@dataclass(frozen=True)
class Whole(Share):
    has_items = False


rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1)


def batch_of(made: list[tuple[int, int]]) -> Batch:
    column = NumberColumn(np.array(made, np.float64).reshape(-1, 2))
    return Batch(len(made), {Need.ANNOTATIONS: column}, Vocabulary(), np.arange(len(made) + 1))


@given(rows, st.integers(0, 5))
def test_corpus_and_mean(made: list[tuple[int, int]], cut: int) -> None:
    scored = [(part, whole) for part, whole in made if whole]
    shares = [part / whole for part, whole in scored]
    corpus, mean = Share(), Share("response")
    for metric, expected in (
        (corpus, sum(part for part, _ in scored) / sum(whole for _, whole in scored) if scored else math.nan),
        (mean, float(np.mean(shares)) if scored else math.nan),
    ):
        parts = [metric.partial(batch_of(each)) for each in (made[:cut], made[cut:])]
        (estimate,) = metric.finish(metric.merge(*(part.state for part in parts))).values()
        assert estimate.mean == pytest.approx(expected, nan_ok=True)
        assert (estimate.rows, estimate.scored, estimate.corpus) == (len(made), len(scored), metric is corpus)
        items = np.concatenate([part.items[metric.name] for part in parts])
        assert items[~np.isnan(items)].tolist() == pytest.approx(shares)


def test_contributions_are_the_counts_of_scored_rows() -> None:
    partial = Share().partial(batch_of([(1, 2), (5, 0), (3, 3)]))
    assert partial.contributions == {"share": RowSums(np.array([[1.0, 1, 2], [0, 0, 0], [1, 3, 3]]))}
    clustered = ClusteredRows({"share": RowSums(np.array([[1.0, 1, 2], [0, 0, 0], [1, 3, 3]]))}, np.arange(4))
    values = Share().resampled(Resamples(clustered, np.array([[1, 1, 1], [2, 0, 0], [0, 3, 0]])))
    np.testing.assert_array_equal(values, [4 / 5, 1 / 2, np.nan])


def test_a_mean_over_rows_has_no_contributions() -> None:
    assert Share("response").partial(batch_of([(1, 2)])).contributions == {}
    with pytest.raises(NeedError, match="cannot be resampled"):
        Share("response").resampled(Resamples(ClusteredRows({}, np.arange(2)), np.ones((1, 1), np.int64)))


def test_rows_may_have_no_value_of_their_own() -> None:
    partial = Whole().partial(batch_of([(1, 2), (5, 0)]))
    assert partial.items == {}
    (estimate,) = Whole().finish(partial.state).values()
    assert (estimate.mean, estimate.rows, estimate.scored) == (0.5, 2, 1)
