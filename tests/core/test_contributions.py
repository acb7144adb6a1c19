"""What rows bring: gathered over batches, saved and loaded equal, added up by cluster."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.contributions import (
    ClusteredRows,
    Resamples,
    RowSums,
    RowWords,
    from_arrow,
    join_batches,
    take_rows,
    to_arrow,
)
from dialeval.engine import stores
from dialeval.text.vocabulary import Vocabulary

texts = st.lists(st.text("ab é", max_size=8), max_size=6)


def tokens(rows: list[str], vocabulary: Vocabulary) -> TokenColumn:
    return vocabulary.split(TextColumn.from_strings(rows))


def words(rows: RowWords) -> list[list[str]]:
    return [[rows.words[word] for word in rows.ids[a:b]] for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]


@given(texts, texts, st.booleans())
def test_batches_are_gathered_in_order_whatever_their_vocabulary(a: list[str], b: list[str], shared: bool) -> None:
    vocabulary = Vocabulary(["z", "b"])  # ids that do not start at 0
    parts = [tokens(a, vocabulary), tokens(b, vocabulary if shared else Vocabulary())]
    found = join_batches(parts)
    assert isinstance(found, RowWords)
    assert words(found) == [row.split() for row in [*a, *b]]
    assert found == RowWords.of(tokens([*a, *b], Vocabulary())), "numbered by first use, wherever they were met"


@given(texts, st.lists(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2), min_size=1, max_size=6))
def test_saved_statistics_load_equal(rows: list[str], sums: list[list[float]]) -> None:
    for one in (RowSums(np.array(sums)), RowWords.of(tokens([*rows, "a b"], Vocabulary()))):
        table = to_arrow({"x": one}, "system")
        assert from_arrow(table) == {"x": one}
        assert from_arrow(table.slice(1)) != {"x": one}


def test_a_run_with_statistics_is_saved_and_loaded(tmp_path: Path) -> None:
    run = dialeval.evaluate({"a": ["x y", "", "y"], "b": ["z"] * 3}, metrics="distinct,length")
    assert list(run["a"].contributions) == ["words/words.1/self"]
    assert dialeval.load(run.save(tmp_path)) == run
    other = dialeval.evaluate({"a": ["x y", "", "x"], "b": ["z"] * 3}, metrics="distinct,length")
    assert run["b"] == other["b"]
    assert run["a"] != other["a"]


def test_batches_and_threads_change_nothing() -> None:
    rows = [f"w{n % 7} w{n % 3} x" for n in range(100)]
    whole, cut = (
        dialeval.evaluate(rows, metrics="distinct", execution=dialeval.Execution(batch_rows=size, threads=2))
        for size in (1000, 7)
    )
    assert whole["system"].contributions == cut["system"].contributions


def test_very_many_rows_keep_no_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "KEPT_ROWS", 2)
    assert not dialeval.evaluate(["a", "b", "c"], metrics="distinct")["system"].contributions


@given(texts, st.data())
def test_those_of_some_rows_are_those_that_these_rows_would_have(rows: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows)), max_size=6))
    found = take_rows(RowWords.of(tokens([*rows, "a b"], Vocabulary())), np.array(chosen, np.int64))
    assert found == RowWords.of(tokens([[*rows, "a b"][row] for row in chosen], Vocabulary()))
    sums = RowSums(np.arange(2.0 * len(rows) + 2).reshape(-1, 2))
    assert take_rows(sums, np.array(chosen, np.int64)) == RowSums(sums.values[chosen].reshape(-1, 2))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(1, 3), st.integers(1, 4), st.integers(0, 99))
def test_totals_of_resamples_against_a_loop(sizes: list[int], width: int, resamples: int, seed: int) -> None:
    dice = np.random.default_rng(seed)
    values = dice.integers(-9, 9, (sum(sizes), width)).astype(np.float64)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    counts = dice.integers(0, 4, (resamples, len(sizes)))
    sample = Resamples(ClusteredRows({"n": RowSums(values)}, offsets), counts)
    expected = np.zeros((resamples, width))
    for resample, cluster in np.ndindex(*counts.shape):
        for row in range(offsets[cluster], offsets[cluster + 1]):
            expected[resample] += counts[resample, cluster] * values[row]
    assert sample.totals("n").tolist() == expected.tolist()
    assert len(sample) == resamples
    clusters = [values[start:stop].sum(axis=0).tolist() for start, stop in pairwise(offsets.tolist())]
    assert sample.rows.cluster_sums("n").tolist() == clusters
