"""States of chunks add up whatever words their workers met; details are folded beside metrics."""

from __future__ import annotations

from dialeval.core import inputs
from dialeval.engine.plan import Plan, make_plan
from dialeval.engine.resources import Resources
from dialeval.engine.worker import Job, StateSums
from dialeval.io.rows import FieldNames

RESPONSES = frozenset({inputs.RESPONSE})


def job_of(plan: Plan) -> Job:
    return Job((plan,), (RESPONSES,), Resources(ready={}), FieldNames(), 1 << 15)


def test_a_system_that_is_expected_has_states_of_no_rows() -> None:
    sums = StateSums(job_of(make_plan("length", RESPONSES)), "metrics")
    sums.expect((0, "nobody"))
    assert sums.finish()[0, "nobody"].rows == 0
