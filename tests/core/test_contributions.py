"""What rows bring: gathered over batches, saved and loaded equal, added up by cluster."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.core import inputs
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.contributions import (
    ClusteredRows,
    Resamples,
    RowSums,
    RowWords,
    from_arrow,
    join_batches,
    join_parts,
    number_by_first_use,
    take_rows,
    to_arrow,
)
from dialeval.core.errors import NeedError
from dialeval.core.validation import InvalidError
from dialeval.engine import stores
from dialeval.engine.worker import ChunkItems, SystemItems
from dialeval.io.chunks import split_sources
from dialeval.io.rows import Rows
from dialeval.io.sources import wrap_systems
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


def test_two_systems_share_a_numbering_when_they_are_joined() -> None:
    left, right = (RowWords.of(tokens(rows, Vocabulary())) for rows in (["a b"], ["b c", "a"]))
    both = join_parts([left, right])
    assert isinstance(both, RowWords)
    assert words(both) == [["a", "b"], ["b", "c"], ["a"]]
    assert both.ids.tolist() == [0, 1, 1, 2, 0]


def test_sums_are_added_up_by_cluster_and_resample() -> None:
    rows = ClusteredRows({"n": RowSums(np.array([[1.0, 0], [2, 1], [4, 0], [8, 1]]))}, np.array([0, 1, 3, 4]))
    sample = Resamples(rows, np.array([[1, 1, 1], [3, 0, 2]]))
    assert sample.totals("n").tolist() == [[15, 2], [19, 2]]
    with pytest.raises(NeedError, match="no per-row statistics"):
        sample.totals("other")


def test_a_run_with_statistics_is_saved_and_loaded(tmp_path: Path) -> None:
    run = dialeval.evaluate({"a": ["x y", "", "y"], "b": ["z"] * 3}, metrics="distinct,length")
    assert list(run["a"].contributions) == ["words/words.1/self"]
    assert dialeval.load(run.save(tmp_path)) == run
    other = dialeval.evaluate({"a": ["x y", "", "x"], "b": ["z"] * 3}, metrics="distinct,length")
    assert run["b"] == other["b"]
    assert run["a"] != other["a"]


def test_batches_and_threads_change_nothing() -> None:
    rows = [f"w{n % 7} w{n % 3} x" for n in range(100)]
    whole, cut = (dialeval.evaluate(rows, metrics="distinct", batch_rows=size, threads=2) for size in (1000, 7))
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


def test_words_of_this_process_and_of_another_are_gathered() -> None:
    vocabulary = Vocabulary()
    here = vocabulary.split(TextColumn.from_strings(["b", "a b"]))
    there = RowWords(np.array([0, 1], np.int32), np.array([0, 2]), ["a", "c"])
    for first, second, expected in (
        (here, there, [["b"], ["a", "b"], ["a", "c"]]),
        (there, here, [["a", "c"], ["b"], ["a", "b"]]),
    ):
        found = join_batches([first, second])
        assert isinstance(found, RowWords)
        words = [found.words[number] for number in found.ids.tolist()]
        rows = [words[start:stop] for start, stop in pairwise(found.offsets.tolist())]
        assert rows == expected


@pytest.mark.parametrize(("rows", "kept"), [(200_000, True), (200_001, False)])
def test_two_hundred_thousand_rows_keep_their_statistics(rows: int, kept: bool) -> None:
    column = TextColumn.from_strings(["a"]).take(np.zeros(rows, np.int64))
    store = stores.MemoryItems(split_sources(wrap_systems([Rows("s", {inputs.RESPONSE: column})]), rows))
    sums = RowSums(np.zeros((1, 1)))
    store.put("metrics", 0, {}, ChunkItems({(0, "s"): SystemItems({}, ({"x": sums},))}))
    assert store.join_contributions((0, "s")) == ({"x": sums} if kept else {})


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1.0], None]), "x has gaps"),
        (pa.array([[1.0], [None]]), "x has gaps"),
        (pa.array([[1.0], [np.nan]]), "x has numbers that are not finite"),
        (pa.array([[1.0], [np.inf]]), "x has numbers that are not finite"),
        (pa.array([[1.0], [1.0, 2.0]]), "rows have different numbers of values"),
        (pa.array([["a"], None]), "x has gaps"),
    ],
)
def test_statistics_that_cannot_be_used(column: pa.Array, message: str) -> None:
    with pytest.raises(InvalidError, match=f"^{message}$"):
        from_arrow(pa.table({"system": ["s", "s"], "x": column}))


def test_a_column_without_values_is_that_of_another_system() -> None:
    table = pa.table({"system": ["s"], "x": pa.array([None], pa.list_(pa.float64())), "y": [[1, 2]]})
    found = from_arrow(table)
    assert list(found) == ["y"]
    assert found["y"] == RowSums(np.array([[1.0, 2.0]]))


def test_ids_are_numbered_by_their_first_use() -> None:
    used, numbered = number_by_first_use(np.array([5, 2, 5, 0, 2], np.int32), 7)
    assert (used.tolist(), numbered.tolist()) == ([5, 2, 0], [0, 1, 0, 2, 1])
    used, numbered = number_by_first_use(np.array([], np.int32), 0)
    assert (used.tolist(), numbered.tolist()) == ([], [])


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
