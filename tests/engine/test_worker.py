"""A worker splits texts once for facts and metrics, and names the row that a metric cannot score."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import dialeval
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.core.fingerprint import Fingerprint
from dialeval.core.fold import RowMetric
from dialeval.core.inputs import Input
from dialeval.engine.plan import Plan, make_plan
from dialeval.engine.resources import Resources
from dialeval.engine.worker import Engine, Job, StateSums, SystemState, Threads, Worker
from dialeval.io.chunks import Chunk, split_sources
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames
from dialeval.io.sources import wrap_systems
from dialeval.text.vocabulary import Vocabulary
from engine.chats import Delicate

RESPONSES = frozenset({inputs.RESPONSE})

EVERY_INPUT = [given for given in vars(inputs).values() if isinstance(given, Input)]


def job_of(plan: Plan) -> Job:
    return Job((plan,), (RESPONSES,), Resources(ready={}), FieldNames(), 1 << 15)


def chunks_of(responses: Sequence[str], batch_rows: int) -> list[Chunk]:
    return split_sources(wrap_systems(read_responses(list(responses))), batch_rows)


def test_texts_are_split_once_for_facts_and_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    job = replace(
        job_of(make_plan("unigram-kl-div", frozenset(EVERY_INPUT))), columns=(RESPONSES | {inputs.REFERENCE},)
    )
    rows = [{"response": "a b", "reference": "a c"}]
    (chunk,) = split_sources(wrap_systems(read_responses(rows)), 10)
    calls = 0
    split = Vocabulary.split

    def counted(self: Vocabulary, *given: Any) -> Any:
        nonlocal calls
        calls += 1
        return split(self, *given)

    monkeypatch.setattr(Vocabulary, "split", counted)
    worker = Worker(job)
    states, _ = worker.fold("facts", chunk)
    after_facts = calls
    facts: dict[Hashable, Any] = {
        fact: fact.finish(state) for fact, state in zip(job.list_facts(0), states[0, "system"].states, strict=True)
    }
    worker.learn({(0, "system"): facts})
    worker.fold("metrics", chunk)
    assert after_facts > 0
    assert calls == after_facts


def test_the_first_row_that_cannot_be_scored_is_named() -> None:
    job = job_of(Plan({"delicate": Delicate()}))
    rows = ["fine"] * 20
    rows[13] = rows[17] = "poison"
    (chunk,) = chunks_of(rows, 100)
    with pytest.raises(DataError, match=r"responses:14: delicate cannot score this row \(ValueError: I cannot bear"):
        Worker(job).fold("metrics", chunk)


def test_errors_that_are_no_problem_of_a_row_stay_as_they_are() -> None:
    job = job_of(make_plan("bleu-4", frozenset(EVERY_INPUT)))
    (chunk,) = chunks_of(["a"], 100)
    with pytest.raises(NeedError, match="needs references"):
        Worker(job).fold("metrics", chunk)


@dataclass(frozen=True)
class Quarrel(RowMetric):
    """For tests: cannot score rows that hold all of some words together."""

    family = "quarrel"
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {"quarrel": {}}
    needs = frozenset({inputs.RESPONSE})
    words: str = "x y"

    def score(self, batch: Batch) -> Floats:
        responses = list(batch.texts(inputs.RESPONSE))
        if set(self.words.split()) <= set(responses):
            raise ValueError("they quarrel")
        return np.zeros(len(batch))


@pytest.mark.parametrize(
    ("rows", "words", "where"),
    [
        ("x", "x", "responses:1: NAME cannot score this row"),
        ("a x", "x", "responses:2: NAME cannot score this row"),
        ("a b x", "x", "responses:3: NAME cannot score this row"),
        ("x a b x", "x", "responses:1: NAME cannot score this row"),
        ("a b c d e x", "x", "responses:6: NAME cannot score this row"),
        ("x y", "x y", "responses:1: NAME cannot score these 2 rows together"),
        ("a x y b", "x y", "responses:1: NAME cannot score these 4 rows together"),
        ("a b c d e x y f", "x y", "responses:5: NAME cannot score these 4 rows together"),
        ("a b c d x y e f", "x y", "responses:5: NAME cannot score these 2 rows together"),
    ],
)
def test_the_fewest_rows_that_cannot_be_scored_are_named(rows: str, words: str, where: str) -> None:
    metric = Quarrel(words)
    job = job_of(Plan({"quarrel": metric}))
    (chunk,) = chunks_of(rows.split(), 100)
    with pytest.raises(DataError) as caught:
        Worker(job).fold("metrics", chunk)
    remedy = "leave it out, or score without the metric"
    assert str(caught.value) == f"{where.replace('NAME', metric.name)} (ValueError: they quarrel); {remedy}"


def test_another_metric_that_fails_does_not_count() -> None:
    """The row is that of the first metric that fails, though others cannot score rows before it."""
    job = job_of(Plan({"quarrel": Quarrel("a x"), "delicate": Delicate()}))
    (chunk,) = chunks_of(["poison", "a", "b", "c", "x", "d"], 100)
    with pytest.raises(DataError, match=r"^responses:1: quarrel\(words=a x\) cannot score these 6 rows together"):
        Worker(job).fold("metrics", chunk)


def test_what_is_in_memory_goes_to_no_other_process(tmp_path: Path) -> None:
    class Elsewhere(Threads):
        in_process = Engine.in_process

    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(SettingError, match="train: a list is in the memory of this process"):
        dialeval.evaluate(tmp_path / "a.txt", train=["a"], metrics="length", engine=Elsewhere())
    dialeval.evaluate(tmp_path / "a.txt", train=["a"], metrics="length", engine=Threads())


def test_states_of_two_systems_are_summed_apart() -> None:
    job = job_of(make_plan("length", RESPONSES))
    sums = StateSums(job, "metrics")
    empty = tuple(fold.empty() for fold in job.list_folds("metrics", 0))
    one, two = (Fingerprint(number, number, 1, 1) for number in (3, 5))
    sums.add({(0, "s"): SystemState(2, empty, {"context": one}, ("a", "b"))})
    sums.add({(0, "s"): SystemState(3, empty, {"context": two, "reference": two}, ("b", "c"))})
    sums.add({(0, "t"): SystemState(5, empty)})
    found = sums.finish()
    assert {system: state.rows for system, state in found.items()} == {(0, "s"): 5, (0, "t"): 5}
    assert found[0, "s"].fingerprints == {"context": Fingerprint() + one + two, "reference": Fingerprint() + two}
    assert found[0, "s"].notes == ("a", "b", "c")
    assert (found[0, "t"].fingerprints, found[0, "t"].notes) == ({}, ())
