from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dialeval.core import inputs
from dialeval.core.errors import Problem
from dialeval.core.inputs import Input
from dialeval.io.gathering import gather_texts
from dialeval.io.rows import FieldNames, Records

Caught = Callable[[Callable[[], object]], list[Problem]]


def test_texts_may_turn_up_late_or_under_another_name(problems_of: Caught) -> None:
    def texts(rows: list[Any], need: Input = inputs.REFERENCE) -> list[list[str]]:
        return list(gather_texts(Records("refs", enumerate(rows, 1)), FieldNames(), need))

    assert texts([{"response": "a"}, {"reference": ["b"], "response": "c"}]) == [[], ["b"]]
    assert texts([{"response": "a", "id": 1}, {"response": "c", "id": 2}]) == [["a"], ["c"]]
    assert texts([{"text": "a"}, {"text": "c"}]) == [["a"], ["c"]]
    assert texts(["a", None, ["b", "c"]]) == [["a"], [], ["b", "c"]]
    assert texts([[{"speaker": "A", "text": "a"}], "b"], inputs.CONTEXT) == [["a"], ["b"]]
    [problem] = problems_of(lambda: texts([{"a": "x", "b": "y"}]))
    assert (problem.line, problem.what) == (1, "has no field 'reference', only a, b")
    assert "--field reference=NAME" in problem.remedy
    assert [problem.line for problem in problems_of(lambda: texts(["a", 3, [4]]))] == [2, 3]
    assert [problem.line for problem in problems_of(lambda: texts([{"response": "a"}, {}]))] == [2]
    assert [problem.what for problem in problems_of(lambda: texts([]))] == ["holds no rows"]
