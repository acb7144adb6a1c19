"""Results do not depend on batch size, threads or order, and a dialogue is never cut in two."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError
from dialeval.core.fold import Estimate, Level, Metric, Partial, Reduction
from dialeval.engine.folding import Done, Options, run_sources
from dialeval.engine.plan import Plan
from dialeval.engine.worker import Threads
from dialeval.io.rows import Rows
from dialeval.io.sources import wrap_systems
from engine.chats import CHANGES, changed_in_between, in_chunks


def responses(rows: int) -> list[str]:
    dice = random.Random(7)
    return [" ".join(f"w{int(dice.paretovariate(0.8))}" for _ in range(dice.randrange(12))) for _ in range(rows)]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("batch_rows", [1, 7, 1000, 100_000])
def test_batches_and_threads_change_nothing(threads: int, batch_rows: int) -> None:
    texts = responses(400)
    expected = dialeval.evaluate(texts, metrics="all", execution=dialeval.Execution(threads=1))
    assert (
        dialeval.evaluate(texts, metrics="all", execution=dialeval.Execution(threads=threads, batch_rows=batch_rows))
        == expected
    )


def test_order_changes_nothing_but_the_order_of_items() -> None:
    texts = responses(300)
    order = np.random.default_rng(3).permutation(300)
    straight = dialeval.evaluate(texts, metrics="all")["system"]
    mixed = dialeval.evaluate(
        [texts[index] for index in order], metrics="all", execution=dialeval.Execution(batch_rows=11)
    )["system"]
    for key, estimate in straight.items():
        assert (estimate.mean, estimate.std, estimate.half_width) == (
            mixed[key].mean,
            mixed[key].std,
            mixed[key].half_width,
        )
        assert estimate.scores is not None
        np.testing.assert_array_equal(estimate.scores[order], mixed[key].scores)


@dataclass(frozen=True)
class Sizes(Metric[tuple[int, ...]]):
    """For tests: the number of turns of each dialogue, and a state that remembers how it was merged."""

    family = "sizes"
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {}
    needs = frozenset({inputs.RESPONSE})
    level = Level.DIALOGUE

    def empty(self) -> tuple[int, ...]:
        return ()

    def partial(self, batch: Batch) -> Partial[tuple[int, ...]]:
        sizes = np.diff(batch.dialogues).astype(np.float64)
        return Partial((len(batch),), {"sizes": sizes})

    def merge(self, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
        return left + right

    def finish(self, state: tuple[int, ...]) -> dict[str, Estimate]:
        return {"sizes": Estimate(len(state), 0.0, sum(state), sum(state), corpus=True)}


@given(st.lists(st.integers(1, 6), min_size=1, max_size=20), st.integers(1, 9))
def test_a_dialogue_is_never_cut_in_two(sizes: list[int], batch_rows: int) -> None:
    names = [f"d{number}" for number, size in enumerate(sizes) for _ in range(size)]
    texts = TextColumn.from_strings(["hello"] * len(names))
    rows = Rows("s", {inputs.RESPONSE: texts}, dialogues=TextColumn.from_strings(names), turns=None, where="here")
    options = Options(batch_rows=batch_rows, threads=2)
    run = run_sources(wrap_systems([rows]), lambda *_: Plan({"sizes": Sizes()}), options=options).run
    found = run["s"]["sizes"]
    assert found.scores is not None
    assert found.scores.tolist() == [float(size) for size in sizes]
    assert found.units == len(names)
    assert found.level is Level.DIALOGUE


@given(st.integers(0, 40))
def test_reduction_merges_in_order(count: int) -> None:
    sums = Reduction(Sizes().merge, Sizes().empty)
    for number in range(count):
        sums.add((number,))
    assert sums.result() == tuple(range(count))


def test_progress_counts_every_row() -> None:
    seen: list[Done] = []
    dialeval.evaluate(
        {"a": ["x"] * 10, "b": ["y"] * 5},
        metrics="length",
        execution=dialeval.Execution(batch_rows=4, progress=seen.append),
    )
    assert [done.rows for done in seen] == [4, 8, 10, 14, 15]
    assert {done.total for done in seen} == {15}
    assert [done.share for done in seen] == [done.rows / 15 for done in seen]


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    class Broken(Sizes):
        def partial(self, batch: Batch) -> Partial[tuple[int, ...]]:
            raise ZeroDivisionError("on purpose")

    with pytest.raises(DataError, match=r"responses:1: sizes\(\) cannot score this row .*on purpose") as caught:
        dialeval.evaluate(responses(100), metrics=[Broken()], execution=dialeval.Execution(batch_rows=3, threads=3))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def _packed(path: Path) -> None:
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()


def _as_parquet(path: Path) -> None:
    import pyarrow.json
    import pyarrow.parquet as pq

    pq.write_table(pyarrow.json.read_json(path), path.with_suffix(".parquet"), row_group_size=8)
    path.unlink()


@pytest.mark.parametrize("form", [None, _packed, _as_parquet], ids=["plain", "packed", "parquet"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_shard_that_changes_in_between_is_refused(
    tmp_path: Path, change: Callable[[Path], None], form: Callable[[Path], None] | None
) -> None:
    changed_in_between(tmp_path, Threads(2), change, form)


def test_references_that_change_in_between_are_refused(tmp_path: Path) -> None:
    for name in ("responses", "references"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in responses(400)))
    change = CHANGES["rewritten"]
    with pytest.raises(DataError, match=r"references.txt: changed while it was read"):
        in_chunks(
            {"s": tmp_path / "responses.txt"},
            tmp_path / "references.txt",
            metrics="bleu-4",
            chunk_bytes=1_500,
            progress=lambda done: change(tmp_path / "references.txt") if done.share < 0.3 else None,
        )
