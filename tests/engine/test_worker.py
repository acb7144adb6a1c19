"""A worker splits texts once for facts and metrics, and names the row that a metric cannot score."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dialeval.core import inputs
from dialeval.core.errors import NeedError
from dialeval.engine.plan import Plan, make_plan
from dialeval.engine.resources import Resources
from dialeval.engine.worker import Job, Worker
from dialeval.io.chunks import Chunk, split_sources
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames
from dialeval.io.sources import wrap_systems

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
