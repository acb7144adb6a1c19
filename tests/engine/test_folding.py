"""Results do not depend on batch size, threads or order, and a dialogue is never cut in two."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialeval
from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.errors import DataError, NeedError
from dialeval.core.fold import Estimate, Level, Metric, Partial, Reduction
from dialeval.core.rowtable import RunPart
from dialeval.engine import folding
from dialeval.engine.folding import Done, MemoryItems, Options, PartItems, run_sources
from dialeval.engine.plan import DialogueIds, Plan, SeenIds, make_plan
from dialeval.engine.resources import Resources
from dialeval.engine.worker import (
    ChunkScores,
    Job,
    Stage,
    StateSums,
    SystemScores,
    SystemStates,
    Threads,
    Worker,
    cut_states,
    merge_states,
)
from dialeval.io.chunks import Chunk, split_sources
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames, Rows
from dialeval.io.sources import wrap_systems
from dialeval.metrics.distinct import Distinct
from dialeval.text.vocabulary import Vocabulary
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


# Estimates are named as metrics were asked for and signed with the digests of what they depend on.


def test_a_changed_default_keeps_the_name_and_stands_in_the_signature() -> None:
    run = dialeval.evaluate(["a b"], ["a c"], metrics="bleu-4,bleu(n=2,smooth=7)", settings={"bleu": {"smooth": 6}})
    assert list(run["system"]) == ["bleu-4", "bleu(n=2,smooth=7)"]
    signature = run["system"]["bleu-4"].signature
    assert signature is not None
    assert signature["smooth"] == "6"


def test_a_digest_is_computed_once_though_systems_share_the_column(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    plain = RaggedColumn.digest.fget  # type: ignore[attr-defined]

    def counted(self: Any) -> Any:
        nonlocal calls
        calls += 1
        return plain(self)

    monkeypatch.setattr(RaggedColumn, "digest", property(counted))
    dialeval.evaluate({"a": ["x"], "b": ["y"], "c": ["z"]}, ["x"], metrics="bleu-1,bleu-2,rouge-l")
    assert calls == 1


def test_rows_of_a_dialogue_that_are_not_consecutive_are_brought_together() -> None:
    rows = [
        {"dialog_id": name, "context": context.split("|"), "response": response}
        for name, context, response in (
            ("a", "Hi", "Hello."),
            ("b", "Hi", "Good day."),
            ("a", "Hi|Hello.|When?", "At nine."),
            ("b", "Hi|Good day.|Where?", "Here."),
        )
    ]
    run = dialeval.evaluate(rows, metrics="length,failure-rate")
    assert "2 dialogues of system are not consecutive, such as those of 'a': they are brought together" in str(
        run.warnings
    )
    account = run["system"].account
    assert account is not None
    assert (account.conversations, account.user_turns, account.replies, account.due) == (2, 4, 4, 4)
    ordered = dialeval.evaluate([rows[at] for at in (0, 2, 1, 3)], metrics="length")
    assert run["system"]["length"] == ordered["system"]["length"]
    assert account == ordered["system"].account


def test_parts_of_a_dialogue_that_contradict_each_other_stay_apart() -> None:
    turns = ["Hi", "Hi", "Bye|Yes.|No?"]
    rows = [
        {"dialog_id": name, "context": context.split("|"), "response": "a"}
        for name, context in zip("aba", turns, strict=True)
    ]
    run = dialeval.evaluate(rows, metrics="length")
    assert "rows of 1 dialogues of system are not consecutive, such as those of 'a': each part" in run.warnings[0]
    numbered = [{"dialog_id": name, "turn": 1, "response": "a"} for name in "aba"]
    for found in (run, dialeval.evaluate(numbered, metrics="length")):
        account = found["system"].account
        assert account is not None
        assert account.conversations == 3


# Item stores: every value at its row, NaN where a chunk has none, and the files of every chunk.


def rows_of(sizes: list[int]) -> Rows:
    """Rows in dialogues of the given sizes."""
    names = [f"d{number}" for number, size in enumerate(sizes) for _ in range(size)]
    texts = TextColumn.from_strings(["x"] * len(names))
    return Rows("s", {inputs.RESPONSE: texts}, TextColumn.from_strings(names))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=9), st.integers(1, 6))
def test_items_stand_at_their_rows(sizes: list[int], batch_rows: int) -> None:
    chunks = split_sources(wrap_systems([rows_of(sizes)]), batch_rows)
    memory, row, dialogue = MemoryItems(chunks), 0, 0
    for number, chunk in enumerate(chunks):
        turns, dialogues = chunk.size, len(chunk.rows.dialogue_offsets()) - 1  # type: ignore[union-attr]
        values = {"turn": {"a": np.arange(row, row + turns, dtype=float)}}
        values["dialogue"] = {"b": np.arange(dialogue, dialogue + dialogues, dtype=float)}
        if number % 2:
            values["turn"]["odd"] = values["turn"]["a"]
        memory.put(number, ChunkScores({(0, "s"): SystemScores(values)}))
        row, dialogue = row + turns, dialogue + dialogues
    columns = memory.read_columns((0, "s"))
    assert columns["a"].tolist() == list(range(sum(sizes)))
    assert columns["b"].tolist() == list(range(len(sizes)))
    if "odd" in columns:
        ends = np.cumsum([chunk.size for chunk in chunks])
        in_odd_chunk = np.searchsorted(ends, np.arange(sum(sizes)), side="right") % 2 == 1
        np.testing.assert_array_equal(columns["odd"], np.where(in_odd_chunk, columns["a"], np.nan))


def test_a_store_of_parts_knows_the_files_of_every_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced: list[str] = []
    monkeypatch.setattr(folding, "force", lambda file: forced.append(str(file)))
    parts = [RunPart("scores", "0" * 64, "a"), RunPart("rows", "1" * 64, b"b"), RunPart("scores", "2" * 64, "c")]
    with ThreadPoolExecutor(2) as threads:
        store = PartItems(tmp_path, threads)
        store.put(1, ChunkScores(parts=tuple(parts[2:])))
        store.put(0, ChunkScores(parts=tuple(parts[:2])))
    assert sorted(forced) == ["a", "c"]
    assert store.workplace == str(tmp_path)
    assert [*store.list_parts(0), *store.list_parts(1)] == parts


# A worker splits texts once for facts and metrics, and names the row that a metric cannot score.


RESPONSES = frozenset({inputs.RESPONSE})


def job_of(plan: Plan) -> Job:
    return Job((plan,), (RESPONSES,), Resources(ready={}), FieldNames(), 1 << 15)


def chunks_of(responses: Sequence[str], batch_rows: int) -> list[Chunk]:
    return split_sources(wrap_systems(read_responses(list(responses))), batch_rows)


def test_errors_that_are_no_problem_of_a_row_stay_as_they_are() -> None:
    job = job_of(make_plan("bleu-4", RESPONSES | {inputs.REFERENCE}))
    (chunk,) = chunks_of(["a"], 100)
    with pytest.raises(NeedError, match="needs references"):
        Worker(job).fold("metrics", chunk)


# States that are cut, merged part by part in any order and closed give the estimates of the whole, to the last bit.


COLUMNS = frozenset({inputs.RESPONSE, inputs.REFERENCE})
METRICS: list[str | Metric[Any]] = ["length", "bleu-4", Distinct(1), Distinct(2), Distinct(3), "kl-div"]
PLAN = make_plan(METRICS, COLUMNS)
JOB = Job((PLAN,), (COLUMNS,), Resources(ready={}), FieldNames(), 1 << 15)
STAGES: list[Stage] = ["facts", "metrics"]

words = st.sampled_from(["a", "b", "the", "hello", "considerable", "b\u00e4r", "\u4f60\u597d", "."])
turns = st.lists(words, max_size=6).map(" ".join)
dialogues = st.lists(st.tuples(turns, turns), min_size=1, max_size=8)


def states_of(pairs: list[tuple[str, str]], stage: Stage, batch_rows: int) -> list[SystemStates]:
    """The states of chunks, each from a worker with words of its own."""
    rows = [{"response": response, "reference": reference} for response, reference in pairs]
    job = replace(JOB, plans=(make_plan(METRICS[:-1], COLUMNS),)) if stage == "metrics" else JOB
    return [
        Worker(job).fold(stage, chunk)[0] for chunk in split_sources(wrap_systems(read_responses(rows)), batch_rows)
    ]


def finished(stage: Stage, states: SystemStates) -> list[str]:
    """What folds make of the states of the one system, printed in full."""
    found = []
    for fold, state in zip(JOB.list_folds(stage, 0), states[0, "system"].states, strict=False):
        result: Any = fold.finish(state)
        if stage == "facts":  # values of n-grams, whose order is that of a vocabulary
            names = [tuple(result.vocabulary.words(gram)) for gram in result._places().grams]
            result = sorted(zip(names, result.values.tolist(), strict=True))
        found.append(repr(result))
    return found


def whole(job: Job, stage: Stage, several: list[SystemStates]) -> SystemStates:
    sums = StateSums(job, stage, Vocabulary())
    for each in several:
        sums.add(each)
    return sums.finish()


@pytest.mark.parametrize("stage", STAGES)
@settings(max_examples=25)
@given(dialogues, st.integers(1, 5), st.integers(1, 9), st.integers(0, 99))
def test_any_number_of_parts_in_any_order(
    stage: Stage, pairs: list[tuple[str, str]], batch_rows: int, parts: int, seed: int
) -> None:
    job = replace(JOB, plans=(make_plan(METRICS[:-1], COLUMNS),)) if stage == "metrics" else JOB
    several = states_of(pairs, stage, batch_rows)
    expected = whole(job, stage, several)
    cut = [cut_states(job, stage, each, parts) for each in several]
    sums = [rest for rest, _ in cut]
    for part in range(parts):
        pieces = [pieces[part] for _, pieces in cut]
        random.Random(seed).shuffle(pieces)
        middle = len(pieces) // 2
        halves = [merge_states(job, stage, half) for half in (pieces[:middle], pieces[middle:])]
        sums.append(merge_states(job, stage, halves, close=True))
    random.Random(seed).shuffle(sums)
    found = whole(job, stage, sums)
    assert finished(stage, found) == finished(stage, expected)
    assert found[0, "system"].rows == expected[0, "system"].rows == len(pairs)


@settings(max_examples=25)
@given(dialogues, st.integers(2, 4))
def test_parts_have_nothing_in_common(pairs: list[tuple[str, str]], parts: int) -> None:
    """Wherever an n-gram was counted, it goes to the same part."""
    there: dict[tuple[str, ...], set[int]] = {}
    for states in states_of(pairs, "facts", 2):
        _, pieces = cut_states(JOB, "facts", states, parts)
        for number, piece in enumerate(pieces):
            for both in piece[0, "system"].states:
                for side in both:
                    for gram in side.grams:
                        there.setdefault(tuple(side.vocabulary.words(gram)), set()).add(number)
    assert all(len(numbers) == 1 for numbers in there.values())


def test_what_goes_to_the_first_process_does_not_grow() -> None:
    """A hundred times the n-grams, and not a byte more."""
    import pickle

    sizes = []
    for count in (50, 5_000):
        pairs = [(f"w{number} w{number * number}", f"w{number}") for number in range(count)]
        job = replace(JOB, plans=(make_plan([Distinct(2)], COLUMNS),))
        rows = [{"response": response, "reference": reference} for response, reference in pairs]
        (chunk,) = split_sources(wrap_systems(read_responses(rows)), 1 << 15)
        rest, pieces = cut_states(job, "metrics", Worker(job).fold("metrics", chunk)[0], 4)
        closed = [merge_states(job, "metrics", [piece], close=True) for piece in pieces]
        assert sum(each[0, "system"].states[0].ngrams.types for each in closed) == count
        assert min(each[0, "system"].states[0].ngrams.types for each in closed) > count / 10
        sizes.append(len(pickle.dumps([rest, closed])))
    assert sizes[1] < sizes[0] + 100  # larger numbers


# Dialogues whose rows do not stand together are counted, however rows are cut into batches, workers and parts.


FOLD = DialogueIds()


def gathered(names: list[str]) -> SeenIds:
    """The state of dialogues with these ids, each of one row."""
    column = TextColumn.from_strings(names)
    rows = Rows("s", {inputs.RESPONSE: column}, column)
    offsets = np.arange(len(names) + 1)
    return FOLD.gather(Batch(len(names), {}, Vocabulary(), offsets, ids=rows.ids(offsets)))


def checks_whole(states: list[SeenIds]) -> SeenIds:
    sums = Reduction(FOLD.merge, FOLD.empty)
    for state in states:
        sums.add(state)
    return sums.result()


@settings(max_examples=60)
@given(st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=6), max_size=6), st.integers(1, 5), st.integers(0, 99))
def test_any_batches_parts_and_order(batches: list[list[str]], parts: int, seed: int) -> None:
    every = [name for batch in batches for name in batch]
    split = {name for name in every if every.count(name) > 1}
    cut = [FOLD.split_state(gathered(batch), parts) for batch in batches]
    random.Random(seed).shuffle(cut)
    closed = [FOLD.close_part(checks_whole([pieces[part] for pieces in cut])) for part in range(parts)]
    for state in (checks_whole([gathered(batch) for batch in batches]), checks_whole(closed)):
        found = FOLD.finish(state)
        assert (0 if found is None else found.dialogues) == len(split)
        assert found is None or found.find_name([every]) in split
    assert not any(len(state.hashes) for state in closed)
    assert all(len(state.split) < 2 for state in closed)


def test_an_example_is_named_where_ids_are_known() -> None:
    found = FOLD.finish(checks_whole([gathered(["b", "c"]), gathered(["b"])]))
    assert found is not None
    assert found.dialogues == 1
    assert found.find_name([["a", "c"], [], ["a", "b"]]) == "b"
    assert found.find_name([["a"]]) is None
