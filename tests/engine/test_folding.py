"""Results do not depend on batch size, threads or order, and a dialogue is never cut in two."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.core.fold import Estimate, Level, Metric, Partial, Reduction
from dialeval.engine.folding import Done, Options, make_job, run_sources
from dialeval.engine.plan import Plan
from dialeval.engine.resources import Resources
from dialeval.engine.worker import Threads, open_context
from dialeval.io.rows import FieldNames, Rows
from dialeval.io.sources import wrap_systems
from engine.chats import CHANGES, changed_in_between, in_chunks


def responses(rows: int) -> list[str]:
    dice = random.Random(7)
    return [" ".join(f"w{int(dice.paretovariate(0.8))}" for _ in range(dice.randrange(12))) for _ in range(rows)]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("batch_rows", [1, 7, 1000, 100_000])
def test_batches_and_threads_change_nothing(threads: int, batch_rows: int) -> None:
    texts = responses(400)
    expected = dialeval.evaluate(texts, threads=1, metrics="all")
    assert dialeval.evaluate(texts, threads=threads, batch_rows=batch_rows, metrics="all") == expected


def test_order_changes_nothing_but_the_order_of_items() -> None:
    texts = responses(300)
    order = np.random.default_rng(3).permutation(300)
    straight = dialeval.evaluate(texts, metrics="all")["system"]
    mixed = dialeval.evaluate([texts[index] for index in order], batch_rows=11, metrics="all")["system"]
    for key, estimate in straight.items():
        assert (estimate.mean, estimate.std, estimate.confidence) == (
            mixed[key].mean,
            mixed[key].std,
            mixed[key].confidence,
        )
        assert estimate.items is not None
        np.testing.assert_array_equal(estimate.items[order], mixed[key].items)


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
    assert found.items is not None
    assert found.items.tolist() == [float(size) for size in sizes]
    assert found.rows == len(names)
    assert found.level is Level.DIALOGUE


@given(st.integers(0, 40))
def test_reduction_merges_in_order(count: int) -> None:
    sums = Reduction(Sizes().merge, Sizes().empty)
    for number in range(count):
        sums.add((number,))
    assert sums.result() == tuple(range(count))


def test_progress_counts_every_row() -> None:
    seen: list[Done] = []
    dialeval.evaluate({"a": ["x"] * 10, "b": ["y"] * 5}, metrics="length", batch_rows=4, progress=seen.append)
    assert [done.rows for done in seen] == [4, 8, 10, 14, 15]
    assert {done.total for done in seen} == {15}
    assert [done.share for done in seen] == [done.rows / 15 for done in seen]


def test_progress_of_two_stages_and_of_files(tmp_path: Path) -> None:
    """Corpus statistics are half of the work, and score no row; the number of rows in files is not known."""
    given: dict[str, Any] = {"metrics": "length,unigram-kl-div", "threads": 1}
    seen: list[Done] = []
    dialeval.evaluate(["x"] * 6, ["x"] * 6, batch_rows=4, progress=seen.append, **given)
    assert seen == [Done(0, 6, 4 / 12), Done(0, 6, 6 / 12), Done(4, 6, 10 / 12), Done(6, 6, 1.0)]
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text('{"response": "x", "reference": "x"}\n' * 2)
    seen.clear()
    in_chunks({"s": f"{tmp_path}/*.jsonl"}, progress=seen.append, **given)
    assert seen == [Done(0, None, 0.25), Done(0, None, 0.5), Done(2, None, 0.75), Done(4, None, 1.0)]


@pytest.mark.parametrize(
    "wrong", [{"batch_rows": 0}, {"threads": 0}, {"batch_rows": -1}, {"batch_rows": 0, "threads": 1}]
)
def test_batches_and_threads_are_at_least_one(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match=r"^batch_rows and threads are at least 1$"):
        dialeval.evaluate(["a"], metrics="length", **wrong)  # type: ignore[arg-type]
    assert dialeval.evaluate(["a", "b c"], metrics="length", batch_rows=1, threads=1)["system"]["length"].mean == 1.5


def test_costly_metrics_have_small_batches() -> None:
    class Costly(Sizes):
        costly = True
        costly_rows = 5

    context = open_context(Resources(ready={}))
    columns = [frozenset({inputs.RESPONSE})]

    def rows(metrics: dict[str, Metric[Any]], batch_rows: int, in_process: bool = True) -> int:
        given = (columns, Resources(ready={}), FieldNames(), batch_rows, context)
        job = make_job(lambda *_: Plan(metrics), *given, in_process)
        assert job.context is (context if in_process else None)
        assert job.columns == tuple(columns)
        return job.batch_rows

    assert rows({"sizes": Sizes()}, 9) == 9
    assert rows({"sizes": Sizes(), "costly": Costly()}, 9) == 5
    assert rows({"costly": Costly()}, 3, in_process=False) == 3
    assert make_job(lambda *_: Plan({}), columns, Resources(ready={}), FieldNames(), 1, context).context is context


def test_systems_of_one_name_are_named_with_both_places(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text('{"response": "x", "system": "s"}\n')
    with pytest.raises(DataError) as caught:
        in_chunks(tmp_path, metrics="length")
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    remedy = "rename one, or name them: NAME=PATH on the command line, {name: path} in Python"
    assert str(caught.value) == f"{two}: the system 's' is also in {one}; {remedy}"


@pytest.mark.parametrize(("chunk", "is_seen"), [(0, True), (1, False), (2, True), (3, False), (4, True), (5, False)])
def test_a_few_chunks_are_looked_into_first(tmp_path: Path, chunk: int, is_seen: bool) -> None:
    """Of six chunks every second: a metric that was named is refused where none of these has what it needs."""
    line = '{"response": "x", "reference": "x"}\n'
    lines = [line if number == chunk else line.replace('"reference"', '"somewhere"') for number in range(6)]
    for number, text in enumerate(lines):
        (tmp_path / f"{number}.jsonl").write_text(text)
    given = {"s": f"{tmp_path}/*.jsonl"}
    if is_seen:
        assert in_chunks(given, metrics="rouge-l")["s"]["rouge-l"].scored == 1
    else:
        with pytest.raises(NeedError, match="rouge-l needs references"):
            in_chunks(given, metrics="rouge-l")


def test_what_options_are_unless_given() -> None:
    options = Options()
    assert (options.items, options.force, options.batch_rows) == (True, False, 1 << 15)
    assert {options.t, options.confidence, options.intervals, options.threads, options.engine} == {None}
    assert {options.progress, options.output, options.resume, options.chunk_bytes} == {None}


@pytest.mark.parametrize("finished", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_progress_of_a_run_that_is_resumed(tmp_path: Path, finished: tuple[int, ...]) -> None:
    """Chunks that were folded before count with their size and their rows, in their order."""
    line = '{"response": "x"}\n'
    for number in range(3):
        (tmp_path / f"{number}.jsonl").write_text(line * 2**number)

    def run() -> list[Done]:
        seen: list[Done] = []
        given: dict[str, Any] = {"resume": tmp_path / "work", "progress": seen.append, "metrics": "length"}
        assert in_chunks({"s": f"{tmp_path}/*.jsonl"}, **given)["s"]["length"].rows == 7
        return seen

    expected = [Done(1, None, 1 / 7), Done(3, None, 3 / 7), Done(7, None, 1.0)]
    assert run() == expected
    for number in set(range(3)) - set(finished):
        (tmp_path / "work" / f"metrics-{number}.chunk").unlink()
    assert run() == expected


def test_items_of_files_are_saved_where_they_are_asked_for(tmp_path: Path) -> None:
    for name, text in (("a", "x"), ("b", "x y")):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"response": "{text}", "dialog_id": "{name}"}}\n')
    given = {"one": tmp_path / "a.jsonl", "two": tmp_path / "b.jsonl"}
    for items in (True, False):
        folder = tmp_path / f"run-{items}"
        in_chunks(given, metrics="length", output=folder, items=items)
        found = [dialeval.load(folder)[name]["length"].items for name in given]
        assert [None if each is None else each.tolist() for each in found] == (
            [[1.0], [2.0]] if items else [None, None]
        )
    torn = [tmp_path / f"{name}.jsonl" for name in "cd"]
    for path in torn:
        path.write_text('{"response": "x", "dialog_id": "same"}\n')
    run = in_chunks({"one": given["one"], "torn": f"{tmp_path}/[cd].jsonl"}, metrics="length", output=tmp_path / "torn")
    assert len(run.warnings) == 1
    assert run.warnings[0].startswith("rows of 1 dialogues of torn are not consecutive, such as those of 'same'")


@pytest.mark.parametrize("chunks", [2, 3])
def test_of_few_chunks_all_are_looked_into(tmp_path: Path, chunks: int) -> None:
    """The last row of the last chunk that is looked at may be the 256th, and no later one."""
    plain, with_reference = '{"response": "x"}\n', '{"response": "x", "reference": "x"}\n'
    for number in range(chunks):
        (tmp_path / f"{number}.jsonl").write_text(plain)
    given = {"s": f"{tmp_path}/*.jsonl"}
    (tmp_path / "1.jsonl").write_text(plain * 255 + with_reference)
    assert in_chunks(given, metrics="rouge-l")["s"]["rouge-l"].scored == 1
    (tmp_path / "1.jsonl").write_text(plain * 256 + with_reference)
    with pytest.raises(NeedError, match="rouge-l needs references"):
        in_chunks(given, metrics="rouge-l")


def test_one_metric_that_leaves_the_tokenizer_to_the_texts() -> None:
    texts = ["你好吗我很好", "今天天气很好啊"]
    run = dialeval.evaluate(texts, metrics="length,distinct(n=1,tokenizer=auto)", details={"note": 1})
    assert run.details == {"note": 1, "tokenizer": "zh"}
    found = {name: estimate.signature["tokenizer"] for name, estimate in run["system"].items() if estimate.signature}
    assert found == {"length": "words.1", "distinct(n=1,tokenizer=auto)": "zh"}


def test_an_error_in_a_thread_reaches_the_caller() -> None:
    class Broken(Sizes):
        def partial(self, batch: Batch) -> Partial[tuple[int, ...]]:
            raise ZeroDivisionError("on purpose")

    with pytest.raises(DataError, match=r"responses:1: sizes\(\) cannot score this row .*on purpose") as caught:
        dialeval.evaluate(responses(100), metrics=[Broken()], batch_rows=3, threads=3)
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


def test_so_it_is_where_results_are_kept(tmp_path: Path) -> None:
    changed_in_between(tmp_path, Threads(), CHANGES["rewritten"], resume=tmp_path / "work")
    with pytest.raises(SettingError, match=r"part-02.jsonl of sample was"):
        in_chunks({"s": f"{tmp_path}/shards/*"}, metrics="length,kl-div", resume=tmp_path / "work", chunk_bytes=1_500)


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
