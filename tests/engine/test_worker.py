"""A worker splits texts once for facts and metrics, and names the row that a metric cannot score."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dialeval.core.batch import Need
from dialeval.core.errors import DataError, NeedError
from dialeval.engine.plan import Plan, make_plan
from dialeval.engine.resources import Resources
from dialeval.engine.worker import Job, Worker
from dialeval.io.chunks import Chunk, split_sources
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames
from dialeval.io.sources import wrap_systems
from dialeval.text.vocabulary import Vocabulary
from engine.chats import Delicate

RESPONSES = frozenset({Need.RESPONSE})


def job_of(plan: Plan) -> Job:
    return Job((plan,), (RESPONSES,), Resources(ready={}), FieldNames(), 1 << 15)


def chunks_of(responses: Sequence[str], batch_rows: int) -> list[Chunk]:
    return split_sources(wrap_systems(read_responses(list(responses))), batch_rows)


def test_texts_are_split_once_for_facts_and_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    job = replace(job_of(make_plan("unigram-kl-div", frozenset(Need))), columns=(RESPONSES | {Need.REFERENCE},))
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
    job = job_of(make_plan("bleu-4", frozenset(Need)))
    (chunk,) = chunks_of(["a"], 100)
    with pytest.raises(NeedError, match="needs references"):
        Worker(job).fold("metrics", chunk)
