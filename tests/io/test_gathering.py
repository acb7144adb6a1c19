from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dialeval.core import inputs
from dialeval.core.errors import Problem, collect_warnings
from dialeval.core.inputs import Input
from dialeval.io import gathering
from dialeval.io.gathering import gather_rows, gather_texts
from dialeval.io.rows import FieldNames, Records, Rows

Caught = Callable[[Callable[[], object]], list[Problem]]


def gathered(rows: list[Any], part: bool = False) -> list[Rows]:
    return gather_rows(Records("rows.jsonl", enumerate(rows, 1)), FieldNames(), "file", part)


def test_rows_of_several_systems_keep_their_order() -> None:
    rows = ["a", {"response": "b", "system": "x", "turn": 2, "reference": ["r"]}, {"response": "c", "dialog_id": 7}]
    own, other = gathered(rows)
    assert (own.system, list(own.responses), list(own.dialogues or [])) == ("file", ["a", "c"], ["row 1", "7"])
    assert (other.system, list(other.responses), list(other.columns[inputs.REFERENCE])) == ("x", ["b"], [["r"]])
    assert own.turns is not None
    assert own.turns.tolist() == [-1, -1]


def test_no_rows_is_a_problem(problems_of: Caught) -> None:
    [problem] = problems_of(lambda: gathered([]))
    assert (problem.where, problem.what) == ("rows.jsonl", "holds no rows")
    assert gathered([], part=True) == []


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


def say(role: str, content: object, **more: object) -> dict[str, object]:
    return {"role": role, "content": content, **more}


def texts_of(rows: Rows, need: Input) -> list[list[str]]:
    return list(rows.columns[need])


def test_roles_of_some_rows() -> None:
    chat = [say("user", "a"), say("assistant", "b"), say("user", "c"), say("assistant", "d")]
    [rows] = gathered(
        [
            {"response": "w", "context": ["s", "t"]},
            {"messages": chat},
            {"response": "x"},
            {"response": "y", "context": [say("user", "u")]},
        ]
    )
    assert list(rows.responses) == ["w", "b", "d", "x", "y"]
    assert texts_of(rows, inputs.CONTEXT) == [["s", "t"], ["a"], ["a", "b", "c"], [], ["u"]]
    assert texts_of(rows, inputs.ROLES) == [["", ""], ["user"], ["user", "assistant", "user"], [], ["user"]]
    assert list(rows.dialogues or []) == ["row 1", "line 2", "line 2", "row 4", "row 5"]
    assert rows.turns is not None
    assert rows.turns.tolist() == [-1, 1, 2, -1, -1]


def test_latencies_of_a_chat_are_counted_from_the_turn_before() -> None:
    chat = [
        say("assistant", "a", timestamp=5),
        say("user", "b", timestamp=10),
        say("assistant", None, tool_calls=[{"name": "f"}], timestamp=11),
        say("tool", "c", timestamp=12),
        say("assistant", "d", timestamp=14),
        say("assistant", "e", timestamp=15),
        say("assistant", "f", latency=0.5),
        say("assistant", "g", timestamp=20),
        say("user", "h"),
        say("assistant", "i", timestamp=30),
    ]
    [rows] = gathered([{"messages": chat}])
    assert list(rows.responses) == ["a", "d", "e", "f", "g", "i"]
    assert texts_of(rows, inputs.LATENCY) == [[], ["4.0"], ["1.0"], ["0.5"], [], []]


def test_labels_and_latency_of_the_only_response_may_be_those_of_its_chat() -> None:
    one = [say("user", "a"), say("assistant", "b")]
    own = [say("user", "a"), say("assistant", "b", labels={"x": "own"}, latency=1)]
    whole = {"labels": {"x": "chat"}, "latency": 2}
    with collect_warnings() as notes:
        [rows] = gathered([{"messages": one, **whole}, {"messages": own, **whole}, {"response": "c", **whole}])
        assert texts_of(rows, inputs.TURN_LABELS) == [
            ['{"x":[1,{"chat":1}]}'],
            ['{"x":[1,{"own":1}]}'],
            ['{"x":[1,{"chat":1}]}'],
        ]
        assert texts_of(rows, inputs.LATENCY) == [["2.0"], ["1.0"], ["2.0"]]
    assert not notes
    with collect_warnings() as notes:
        [rows] = gathered([{"messages": one * 2, **whole}, {"messages": one * 2}])
    assert list(notes) == ["labels of a whole chat are not read; put them into its messages"]
    assert set(rows.columns) == {inputs.RESPONSE, inputs.CONTEXT, inputs.ROLES}


def trial(task: object, number: object, reward: object, response: str, **more: object) -> dict[str, object]:
    return {"dialog_id": task, "trial": number, "reward": reward, "response": response, **more}


def test_rows_of_a_task_are_together_and_rows_of_no_task_are_alone() -> None:
    given = [
        trial("x", 0, 1, "a", system="s"),
        {"response": "b", "system": "s"},
        trial("y", 0, 1, "c", system="s"),
        trial("x", 0, 1, "d", system="t"),
        {"response": "e", "system": "s"},
        trial("x", 1, 1, "f", system="s"),
        trial("x", 1, 1, "g", system="t"),
    ]
    found = gathered(given)
    assert [(rows.system, list(rows.responses)) for rows in found] == [("s", list("afbce")), ("t", list("dg"))]
    assert list(found[0].dialogues or []) == ["x", "x", "row 2", "y", "row 5"]
    parts = gathered(given, part=True)
    assert [(rows.system, list(rows.responses)) for rows in parts] == [("s", list("abcef")), ("t", list("dg"))]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, {"reward": 1.0}),
        ({"reward": None}, {"reward": None}),
        ({"reward": {}}, {"reward": None}),
        ({"reward": {"match": {"value": "C"}}}, {"reward": 1.0}),
        (
            {"reward": {"match": 0.5}, "reward_parts": {"a": True, 3: "no", "b": None}},
            {"reward": 0.5, "parts": {"a": 1.0, "3": 0.0}},
        ),
        ({"reward_parts": 3}, {"reward": 1.0}),
        ({"cost": "0.25", "termination": "agent_stop"}, {"reward": 1.0, "cost": 0.25, "end": "agent_stop"}),
        ({"cost": "x", "termination": 3}, {"reward": 1.0}),
        ({"trial": "t"}, {"reward": 1.0, "trial": "t"}),
    ],
)
def test_the_text_of_a_trial(more: dict[str, object], found: dict[str, object]) -> None:
    [rows] = gathered([{**trial("x", 3, 1, "a"), **more}, trial("y", 0, 1, "b")])
    [text] = texts_of(rows, inputs.TRIALS)[0]
    nothing: dict[str, object] = {"task": "x", "trial": "3", "parts": {}, "cost": None, "end": None}
    assert json.loads(text) == nothing | found


@pytest.mark.parametrize(
    ("reward", "number"),
    [
        ("C", 1.0),
        ("P", 0.5),
        ("I", 0.0),
        ("N", 0.0),
        ("true", 1.0),
        ("yes", 1.0),
        ("false", 0.0),
        ("no", 0.0),
        (True, 1.0),
        (False, 0.0),
        ("0.5", 0.5),
        ({"a": {"value": True}}, 1.0),
    ],
)
def test_grades(reward: object, number: float) -> None:
    [rows] = gathered([trial("x", 0, reward, "a")])
    [[text]] = texts_of(rows, inputs.TRIALS)
    assert json.loads(text)["reward"] == number


def test_a_trial_without_a_number_is_none(problems_of: Caught) -> None:
    [rows] = gathered([trial("x", "", 1, "a"), trial("x", 0, 1, "b")])
    assert [len(texts) for texts in texts_of(rows, inputs.TRIALS)] == [0, 1]
    [problem] = problems_of(lambda: gathered([trial("x", 0, "?", "a")]))
    assert (problem.what, problem.remedy) == ("reward is a string", "make it a number; 1 is a pass")


def test_a_silent_trial_has_the_turns_before_the_assistant() -> None:
    calling = say("assistant", None, tool_calls=[{"name": "f"}])
    [rows] = gathered(
        [{"messages": [say("user", "a"), calling, say("tool", "b")], **trial("x", 0, 1, "") | {"response": None}}]
    )
    assert list(rows.responses) == [""]
    assert texts_of(rows, inputs.CONTEXT) == [["a"]]
    assert texts_of(rows, inputs.ROLES) == [["user"]]
    assert texts_of(rows, inputs.CALLS) == [['[{"arguments":{},"error":false,"name":"f"}]']]
    assert rows.turns is not None
    assert rows.turns.tolist() == [1]


def test_trials_and_calls_of_a_chat_are_in_its_first_and_last_row() -> None:
    chat = [say("assistant", "a"), say("assistant", "b", tool_calls=[{"name": "f"}]), say("assistant", "c")]
    [rows] = gathered([{"messages": chat, "trial": 0, "reward": 1, "expected_calls": [], "dialog_id": "x"}])
    for need, counts in {inputs.TRIALS: [1, 0, 0], inputs.CALLS: [0, 0, 1], inputs.EXPECTED_CALLS: [0, 0, 1]}.items():
        assert [len(texts) for texts in texts_of(rows, need)] == counts


def test_fields_in_the_plural_are_told() -> None:
    with collect_warnings() as notes:
        gathered([{"response": "a", "references": ["b"], "context": "c", "contexts": ["d"]}])
    assert list(notes) == ["the field 'references' is not read; rows have 'reference': --field reference=references"]


def test_fields_in_the_plural_are_looked_for_in_256_rows_at_a_time() -> None:
    one, several = {"response": "a", "reference": "b"}, {"response": "a", "references": ["b"]}
    for rows, told in (
        ([*[several] * 256, one], True),
        ([one, *[several] * 255], False),
        ([one, *[several] * 256], True),
    ):
        with collect_warnings() as notes:
            gathered(rows)
        assert bool(list(notes)) == told


def test_problems_of_many_rows_are_in_the_order_of_lines(problems_of: Caught, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_ROWS_AT_ONCE", 2)
    given = [
        {"response": "a"},
        {"response": 1},
        {"response": "b", "turn": "x", "dialog_id": 1.5},
        "c",
        7,
        {"response": "d"},
    ]
    found = problems_of(lambda: gathered(given))
    assert [(problem.line, problem.what) for problem in found] == [
        (2, "response is a number"),
        (3, "dialog_id is a number"),
        (3, "turn is 'x'"),
        (5, "the row is a number"),
    ]


def test_where_a_missing_field_of_texts_is_told(problems_of: Caught) -> None:
    rows: list[tuple[int, object]] = [(5, {"a": "x", "b": "y"}), (6, {"c": "z"})]
    [problem] = problems_of(lambda: gather_texts(Records("refs", rows), FieldNames(), inputs.REFERENCE))
    assert (problem.where, problem.line, problem.what) == ("refs", 5, "has no field 'reference', only a, b, c")
    records = Records("refs", [], header=("a", "b"))
    [problem] = problems_of(lambda: gather_texts(records, FieldNames(), inputs.REFERENCE))
    assert (problem.line, problem.what) == (1, "has no field 'reference', only a, b")
    rows = [(1, {"text": "x"}), (2, {}), (3, {"text": None})]
    [problem] = problems_of(lambda: gather_texts(Records("refs", rows), FieldNames(), inputs.REFERENCE))
    assert (problem.line, problem.what) == (2, "has no field 'text', only nothing")
    found = gather_texts(
        Records("refs", [(1, "a"), (2, {"reference": "b", "response_is_reference": True})]),
        FieldNames(),
        inputs.REFERENCE,
    )
    assert list(found) == [["a"], []]
