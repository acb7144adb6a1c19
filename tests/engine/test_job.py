"""States of chunks add up whatever words their workers met; details are folded beside metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dialeval.core import inputs
from dialeval.engine.plan import Plan, make_plan
from dialeval.engine.resources import Resources
from dialeval.engine.worker import Job, StateSums, SystemState, Worker
from dialeval.io.chunks import Chunk, split_sources
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames
from dialeval.io.sources import wrap_systems
from dialeval.text.vocabulary import Vocabulary
from engine.chats import texts

RESPONSES = frozenset({inputs.RESPONSE})


def job_of(plan: Plan) -> Job:
    return Job((plan,), (RESPONSES,), Resources(ready={}), FieldNames(), 1 << 15)


def chunks_of(responses: Sequence[str], batch_rows: int) -> list[Chunk]:
    return split_sources(wrap_systems(read_responses(list(responses))), batch_rows)


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
    merged = sums.finish()[0, "system"]
    assert merged.rows == expected.rows == 40
    assert finished(job, merged) == finished(job, expected)


def test_a_system_that_is_expected_has_states_of_no_rows() -> None:
    sums = StateSums(job_of(make_plan("length", RESPONSES)), "metrics")
    sums.expect((0, "nobody"))
    assert sums.finish()[0, "nobody"].rows == 0


def test_details_are_folded_beside_metrics() -> None:
    from dialeval.suites.multiwoz.turns import TurnCounting

    fact = TurnCounting()
    job = job_of(Plan({"length": make_plan("length", RESPONSES).metrics["length"]}, details={"given": fact}))
    assert job.list_folds("metrics", 0)[-1] is fact
    assert job.stages == ["metrics"]
