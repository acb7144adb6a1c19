"""Metrics of counts against sums over a list."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import NumberColumn
from dialeval.core.contributions import ClusteredRows, Resamples, RowSums
from dialeval.core.errors import NeedError
from dialeval.core.exact import Moments, formula_error
from dialeval.core.validation import InvalidError
from dialeval.metrics.bleu import Bleu
from dialeval.metrics.counting import CountMetric, Flags, Per, SummedCounts, corpus_error, sum_by_dialogue
from dialeval.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Share(CountMetric):
    """Part of whole, of rows whose whole is not 0."""

    family = "share"
    presets = {"share": {}}
    needs = frozenset({inputs.ANNOTATIONS})
    width = 2

    per: Per = "corpus"

    @property
    def of_corpus(self) -> bool:
        return self.per == "corpus"

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        counts: Ints = batch.numbers(inputs.ANNOTATIONS).astype(np.int64)
        return counts, counts[:, 1] > 0

    def formula(self, counts: Ints | Floats) -> Floats:
        return counts[:, 0] / np.maximum(counts[:, 1], 1)


@dataclass(frozen=True)
class Whole(Share):
    has_items = False


rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1)


def batch_of(made: list[tuple[int, int]]) -> Batch:
    column = NumberColumn(np.array(made, np.float64).reshape(-1, 2))
    return Batch(len(made), {inputs.ANNOTATIONS: column}, Vocabulary(), np.arange(len(made) + 1))


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


@given(rows, st.lists(st.integers(0, 3)))
@example([(1, 2), (3, 4)], [0, 2])  # as many dialogues as rows, and yet no row alone
@example([(1, 2), (3, 0), (5, 6)], [1, 1, 1])
def test_counts_are_added_up_by_dialogue(made: list[tuple[int, int]], sizes: list[int]) -> None:
    sizes = [*sizes, max(0, len(made) - sum(sizes))]
    made = [*made, *[(1, 1)] * (sum(sizes) - len(made))]
    counts, scored = np.array(made), np.array(made)[:, 1] > 0
    counts[~scored] = 0
    expected: dict[int, list[int]] = {}
    for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        part, whole = counts[start : start + size].sum(axis=0).tolist()
        if number := int(scored[start : start + size].sum()):
            before = expected.get(number, [0] * 6)
            now = (1, part, whole, part * part, part * whole, whole * whole)
            expected[number] = [each + more for each, more in zip(before, now, strict=True)]
    found = sum_by_dialogue(counts, scored, np.cumsum([0, *sizes]))
    assert found == {number: tuple(sums) for number, sums in expected.items()}


def test_contributions_are_the_counts_of_scored_rows() -> None:
    partial = Share().partial(batch_of([(1, 2), (5, 0), (3, 3)]))
    assert partial.contributions == {"share": RowSums(np.array([[1.0, 1, 2], [0, 0, 0], [1, 3, 3]]))}
    clustered = ClusteredRows({"share": RowSums(np.array([[1.0, 1, 2], [0, 0, 0], [1, 3, 3]]))}, np.arange(4))
    values = Share().score_resamples(Resamples(clustered, np.array([[1, 1, 1], [2, 0, 0], [0, 3, 0]])))
    np.testing.assert_array_equal(values, [4 / 5, 1 / 2, np.nan])


def test_a_mean_over_rows_has_no_contributions() -> None:
    assert Share("response").partial(batch_of([(1, 2)])).contributions == {}
    with pytest.raises(NeedError, match="cannot be resampled"):
        Share("response").score_resamples(Resamples(ClusteredRows({}, np.arange(2)), np.ones((1, 1), np.int64)))


def test_rows_may_have_no_value_of_their_own() -> None:
    partial = Whole().partial(batch_of([(1, 2), (5, 0)]))
    assert partial.items == {}
    (estimate,) = Whole().finish(partial.state).values()
    assert (estimate.mean, estimate.std, estimate.rows, estimate.scored) == (0.5, 0, 2, 1)


def test_the_error_of_a_corpus_value_is_nearly_that_of_the_jackknife() -> None:
    dice = np.random.default_rng(3)
    wholes = dice.integers(5, 30, 80)
    counts = np.column_stack((dice.binomial(wholes, 0.3), wholes))
    clusters = sum_by_dialogue(counts, np.ones(80, np.bool_), np.arange(81))
    found = corpus_error(lambda sums: sums[:, 0] / sums[:, 1], counts.sum(axis=0).tolist(), clusters)
    without = counts.sum(axis=0) - counts
    values = without[:, 0] / without[:, 1]
    assert found is not None
    assert found.error == pytest.approx(math.sqrt(79 / 80 * ((values - values.mean()) ** 2).sum()), rel=0.02)


def test_slopes_are_over_a_step_of_one_dialogue() -> None:
    counts = np.array([[3, 10, 0], [5, 12, 0], [1, 6, 0], [7, 12, 0]])
    clusters = sum_by_dialogue(counts, np.ones(4, np.bool_), np.arange(5))
    asked: list[Floats] = []

    def formula(sums: Floats) -> Floats:
        asked.append(sums)
        return sums[:, 0] / sums[:, 1] + sums[:, 2]

    found = corpus_error(formula, [16, 40, 0], clusters)
    np.testing.assert_array_equal(
        asked, [[[20, 40, 0], [16, 50, 0], [16, 40, 0], [12, 40, 0], [16, 30, 0], [16, 40, 0]]]
    )
    assert found == formula_error(clusters, np.array([(20 - 12) / 40 / 8, (16 / 50 - 16 / 30) / 20, 0.0]))
    two, one = (sum_by_dialogue(counts[:size], np.ones(size, np.bool_), np.arange(size + 1)) for size in (2, 1))
    assert corpus_error(formula, [8, 22, 0], two) is not None
    assert corpus_error(formula, [3, 10, 0], one) is None


def test_what_a_metric_of_counts_is_of() -> None:
    assert (Share().of_corpus, Share("response").of_corpus, Share().has_items, Whole().has_items) == (
        *(True, False, True, False),
    )
    assert CountMetric.has_items
    assert Bleu().empty() == SummedCounts((0,) * 12, Moments())
    assert (Bleu().of_corpus, Bleu(per="corpus").of_corpus) == (False, True)
    assert Share().empty() == SummedCounts((0, 0), Moments(), {})
    items = Whole().partial(batch_of([(1, 2), (5, 0), (2, 4)]))
    assert items.state.moments == Moments(3, 2)
    assert items.state.counts == (3, 6)


def test_counts_out_of_a_file_are_those_that_rows_can_have() -> None:
    moments = Share().partial(batch_of([(1, 2), (2, 3)])).state.moments
    largest = SummedCounts.from_plain((0, (1 << 62) - 1), moments, {2: (1, 3, 5, (1 << 200) - 1, 8, 9)})
    assert largest.clusters[2][3] == (1 << 200) - 1
    for counts, sums in (((0, 1 << 62), 5), ((-1, 3), 5), ((True, 3), 5), ((1, 3), 1 << 200), ((1, 3), -(1 << 200))):
        with pytest.raises(InvalidError):
            SummedCounts.from_plain(counts, moments, {2: (1, 3, 5, sums, 8, 9)})
