"""A worker folds chunks to the same states however they are cut, shares what facts split, and names a bad row."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dialeval.core.errors import DataError, NeedError
from dialeval.core.needs import Need
from dialeval.data.rows.fields import FieldNames
from dialeval.data.rows.reading import read_responses
from dialeval.data.shards.chunks import Chunk, cut_sources
from dialeval.data.shards.sources import memory_sources
from dialeval.engine.job import Job, StateSums, SystemState
from dialeval.engine.plan import Plan, make_plan
from dialeval.engine.resources import Resources
from dialeval.engine.worker import Worker
from dialeval.text.vocabulary import Vocabulary
from engine.chats import Delicate, texts

RESPONSES = frozenset({Need.RESPONSE})


def job_of(plan: Plan) -> Job:
    return Job((plan,), (RESPONSES,), Resources(ready={}), FieldNames(), 1 << 15)


def chunks_of(responses: Sequence[str], batch_rows: int) -> list[Chunk]:
    return cut_sources(memory_sources(read_responses(list(responses))), batch_rows)


def finished(job: Job, states: SystemState) -> list[Any]:
    return [metric.finish(state) for metric, state in zip(job.plans[0].folded, states.states, strict=True)]


@pytest.mark.parametrize("batch_rows", [1, 3, 50])
def test_states_of_workers_with_other_words_add_up(batch_rows: int) -> None:
    job = job_of(make_plan("length,distinct", RESPONSES))
    responses = texts(40)
    (whole,) = chunks_of(responses, 100)
    expected = Worker(job).fold("metrics", whole)[0][0, "system"]
    parts = [Worker(job).fold("metrics", chunk)[0] for chunk in chunks_of(responses, batch_rows)]
    sums = StateSums(job, "metrics", Vocabulary())
    for part in parts:
        sums.add(part)
    merged = sums.result()[0, "system"]
    assert merged.rows == expected.rows == 40
    assert finished(job, merged) == finished(job, expected)


def test_a_system_that_is_expected_has_states_of_no_rows() -> None:
    sums = StateSums(job_of(make_plan("length", RESPONSES)), "metrics")
    sums.expect((0, "nobody"))
    assert sums.result()[0, "nobody"].rows == 0


def test_texts_are_split_once_for_facts_and_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    job = replace(job_of(make_plan("unigram-kl-div", frozenset(Need))), columns=(RESPONSES | {Need.REFERENCE},))
    rows = [{"response": "a b", "reference": "a c"}]
    (chunk,) = cut_sources(memory_sources(read_responses(rows)), 10)
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
        fact: fact.finish(state) for fact, state in zip(job.facts(0), states[0, "system"].states, strict=True)
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
    with pytest.raises(DataError, match=r"responses:14: a metric cannot score this row \(ValueError: I cannot bear"):
        Worker(job).fold("metrics", chunk)


def test_errors_that_are_no_fault_of_a_row_stay_as_they_are() -> None:
    job = job_of(make_plan("bleu-4", frozenset(Need)))
    (chunk,) = chunks_of(["a"], 100)
    with pytest.raises(NeedError, match="needs references"):
        Worker(job).fold("metrics", chunk)


def test_details_are_folded_beside_metrics() -> None:
    from dialeval.metrics.task.turns import WhatIsGiven

    fact = WhatIsGiven()
    job = job_of(Plan({"length": make_plan("length", RESPONSES).metrics["length"]}, details={"given": fact}))
    assert job.folds("metrics", 0)[-1] is fact
    assert job.stages == ["metrics"]
