from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dialeval.core.batch import Need
from dialeval.core.errors import Problem
from dialeval.io.gathering import gather_rows, gather_texts
from dialeval.io.rows import FieldNames, Records, Rows

Caught = Callable[[Callable[[], object]], list[Problem]]


def gathered(rows: list[Any], part: bool = False) -> list[Rows]:
    return gather_rows(Records("rows.jsonl", enumerate(rows, 1)), FieldNames(), "file", part)


def test_rows_of_several_systems_keep_their_order() -> None:
    rows = ["a", {"response": "b", "system": "x", "turn": 2, "reference": ["r"]}, {"response": "c", "dialog_id": 7}]
    own, other = gathered(rows)
    assert (own.system, list(own.responses), list(own.dialogues or [])) == ("file", ["a", "c"], ["row 1", "7"])
    assert (other.system, list(other.responses), list(other.columns[Need.REFERENCE])) == ("x", ["b"], [["r"]])
    assert own.turns is not None
    assert own.turns.tolist() == [-1, -1]


def test_no_rows_is_a_problem(problems_of: Caught) -> None:
    [problem] = problems_of(lambda: gathered([]))
    assert (problem.where, problem.what) == ("rows.jsonl", "holds no rows")
    assert gathered([], part=True) == []


def test_texts_may_turn_up_late_or_under_another_name(problems_of: Caught) -> None:
    def texts(rows: list[Any], need: Need = Need.REFERENCE) -> list[list[str]]:
        return list(gather_texts(Records("refs", enumerate(rows, 1)), FieldNames(), need))

    assert texts([{"response": "a"}, {"reference": ["b"], "response": "c"}]) == [[], ["b"]]
    assert texts([{"response": "a", "id": 1}, {"response": "c", "id": 2}]) == [["a"], ["c"]]
    assert texts([{"text": "a"}, {"text": "c"}]) == [["a"], ["c"]]
    assert texts(["a", None, ["b", "c"]]) == [["a"], [], ["b", "c"]]
    assert texts([[{"speaker": "A", "text": "a"}], "b"], Need.CONTEXT) == [["a"], ["b"]]
    [problem] = problems_of(lambda: texts([{"a": "x", "b": "y"}]))
    assert (problem.line, problem.what) == (1, "has no field 'reference', only a, b")
    assert "--field reference=NAME" in problem.remedy
    assert [problem.line for problem in problems_of(lambda: texts(["a", 3, [4]]))] == [2, 3]
    assert [problem.line for problem in problems_of(lambda: texts([{"response": "a"}, {}]))] == [2]
    assert [problem.what for problem in problems_of(lambda: texts([]))] == ["holds no rows"]


def texts_of(rows: Rows, need: Need) -> list[list[str]]:
    return list(rows.columns[need])


def trial(task: object, number: object, reward: object, response: str, **more: object) -> dict[str, object]:
    return {"dialog_id": task, "trial": number, "reward": reward, "response": response, **more}


def test_a_trial_without_a_number_is_none(problems_of: Caught) -> None:
    [rows] = gathered([trial("x", "", 1, "a"), trial("x", 0, 1, "b")])
    assert [len(texts) for texts in texts_of(rows, Need.TRIALS)] == [0, 1]
    [problem] = problems_of(lambda: gathered([trial("x", 0, "?", "a")]))
    assert (problem.what, problem.remedy) == ("reward is a string", "make it a number; 1 is a pass")
