"""Pairs of responses: every form of an outcome, and every problem with its place."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from dialeval.core.errors import DataError, SettingError, collect_warnings
from dialeval.io.ratings import length_ratio, read_pairs
from dialeval.io.row_shapes import SHAPES

ROW: dict[str, object] = {
    "dialog_id": "d1",
    "a": "x",
    "b": "y",
    "better": "a",
    "response_a": "one two",
    "response_b": "one",
}


def test_outcomes() -> None:
    said = ["a", "b", "tie", "x", "y", "Tie", " A "]
    found = read_pairs([{**ROW, "better": word} for word in said])
    assert found.outcome.tolist() == [1, -1, 0, 1, -1, 0, 1]
    assert list(found.systems) == ["x", "y"]
    assert found.dialogue.tolist() == [0] * 7
    assert found.length_ratio[0] == pytest.approx(math.log(2))


def test_a_system_on_the_side_of_its_name_is_understood() -> None:
    rows = [ROW | {"a": "a", "b": "b", "better": better, "dialog_id": None} for better in ("a", "b", "tie")]
    found = read_pairs(rows)
    assert found.outcome.tolist() == [1, -1, 0]
    assert not found.named
    assert read_pairs([ROW | {"a": "b", "b": "a", "better": "tie"}]).outcome.tolist() == [0]


@pytest.mark.parametrize(
    ("left", "right", "better"),
    [("b", "a", "a"), ("b", "a", "b"), ("x", "a", "a"), ("b", "x", "b"), ("x", "A", "A"), ("tie", "x", "tie")],
)
def test_a_name_that_is_also_the_other_side_is_refused(left: str, right: str, better: str) -> None:
    with pytest.raises(DataError, match="is ambiguous"):
        read_pairs([ROW | {"a": left, "b": right, "better": better}])


def test_rows_without_a_dialogue_stand_alone() -> None:
    rows: list[dict[str, object]] = [
        {"a": "x", "b": "y", "better": "a"},
        {"a": "y", "b": "z", "better": "tie"},
        {**ROW, "dialog_id": "0"},
    ]
    found = read_pairs(rows)
    assert found.dialogue.tolist() == [0, 1, 2]
    assert (found.left.tolist(), found.right.tolist()) == ([0, 1, 0], [1, 2, 1])
    assert math.isnan(found.length_ratio[0])
    assert found.named


def test_files_of_every_kind_and_other_names(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text(json.dumps(ROW) + "\n" + json.dumps({**ROW, "better": "tie"}) + "\n")
    (tmp_path / "pairs.csv").write_text("left,right,winner\nx,y,a\nx,z,b\n")
    assert read_pairs(tmp_path / "pairs.jsonl").outcome.tolist() == [1, 0]
    names = {"a": "left", "b": "right", "better": "winner"}
    assert read_pairs(tmp_path / "pairs.csv", names).outcome.tolist() == [1, -1]
    assert len(read_pairs([tmp_path / "pairs.jsonl", tmp_path / "pairs.jsonl"])) == 4
    with pytest.raises(SettingError, match="no field 'judge'"):
        read_pairs(tmp_path / "pairs.csv", {"judge": "x"})


def test_every_problem_is_listed(tmp_path: Path) -> None:
    rows = [
        {"b": "y", "better": "a"},
        {"a": "x", "b": "x", "better": "a"},
        {"a": "x", "b": "y"},
        {"a": "x", "b": "y", "better": "c"},
        {"a": "x", "b": "y", "better": [1]},
        [1],
        {"a": 1.5, "b": "y", "better": "a"},
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as error:
        read_pairs(file)
    assert [(problem.line, problem.what) for problem in error.value.problems] == [
        (1, "has no field 'a', only b, better"),
        (2, "'x' is compared with itself"),
        (3, "better is missing"),
        (4, "better is 'c'"),
        (5, "better is a list"),
        (6, "the row is a list"),
        (7, "a is a number"),
        (7, "has no field 'a', only a, b, better"),
    ]
    with pytest.raises(DataError, match="has no field 'b', only a, better"):
        read_pairs([{key: value for key, value in ROW.items() if key in ("a", "better")}])
    (tmp_path / "pairs.txt").write_text("x > y\n")
    with pytest.raises(DataError, match=r"plain lines hold no pairs; give \.jsonl, \.json, \.csv, \.tsv or \.parquet$"):
        read_pairs(tmp_path / "pairs.txt")
    with pytest.raises(SettingError, match="no pairs"):
        read_pairs([])


def test_lengths() -> None:
    assert length_ratio("", "") == 0
    assert length_ratio("a b c d", "") == pytest.approx(math.log(4))
    assert length_ratio("", "a b") == pytest.approx(-math.log(2))


def outcomes(*rows: dict[str, object]) -> tuple[list[tuple[str, str]], list[int], list[str]]:
    """The systems and the outcome of each pair of rows of another program, and the warnings."""
    with collect_warnings() as notes:
        found = read_pairs(list(rows))
    names = [(found.systems[left], found.systems[right]) for left, right in zip(found.left, found.right, strict=True)]
    return names, found.outcome.tolist(), list(notes)


UNDECIDED = "pairs that were not decided, such as those with an error of the judge, are left out"


def example(name: str, **more: object) -> dict[str, object]:
    """The example of a shape, with other values."""
    return {**next(shape for shape in SHAPES if shape.name == name).example, **more}


@pytest.mark.parametrize(
    ("winner", "outcome"),
    [("model_a", [1]), ("model_b", [-1]), ("tie", [0]), ("tie (bothbad)", [0]), ("bothbad", [0]), ("both_bad", [0])],
)
def test_battles_of_chatbot_arena(winner: str, outcome: list[int]) -> None:
    assert outcomes(example("arena-pair", winner=winner)) == ([("m", "n")], outcome, [])


def test_lengths_of_battles_are_those_of_the_last_message() -> None:
    chat = [{"content": "one"}, {"content": "one two three"}]
    odd = example("arena-pair", conversation_a=chat, conversation_b=[])
    found = read_pairs([example("arena-pair", conversation_a=chat), odd, odd | {"conversation_b": ["one"]}])
    assert found.length_ratio[0] == pytest.approx(math.log(3 / 2))
    assert [math.isnan(ratio) for ratio in found.length_ratio] == [False, True, True]


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        ("model_1", "model_1", [1]),
        ("model_2", "model_2", [-1]),
        ("tie", "tie", [0]),
        ("model_1", "tie", [0]),
        ("model_1", "model_2", [0]),
        ("model_2", None, [-1]),
        ("model_1", "error", []),
        ("error", "error", []),
    ],
)
def test_games_of_mt_bench(first: str, second: str | None, outcome: list[int]) -> None:
    other = example("mt-bench-pair", g1_winner="tie", g2_winner="tie", question_id=1)
    row = example("mt-bench-pair", g1_winner=first, g2_winner=second)
    notes = [] if outcome else [UNDECIDED]
    assert outcomes(other, row) == ([("m", "n")] * (1 + len(outcome)), [0, *outcome], notes)


@pytest.mark.parametrize(
    ("games", "outcome"),
    [
        ([{"score": "B>A"}, {"score": "A>>B"}], [-1, -1]),
        ([{"score": "A>>B"}, {"score": "B>A"}], [1, 1]),
        ([{"score": "A=B"}, {"score": "B=A"}], [0, 0]),
        (["A>B", "A>B"], [1, -1]),
        ([{"score": "B>>A"}], [-1]),
        ([{"score": None}, {"score": "A>B"}], [-1]),
    ],
)
def test_games_of_arena_hard(games: list[object], outcome: list[int]) -> None:
    notes = [UNDECIDED] if len(outcome) < len(games) else []
    names = [("base", "m")] * len(outcome)
    assert outcomes(example("arena-hard-judgment", games=games, baseline="base")) == (names, outcome, notes)
    nameless = example("arena-hard-judgment", games=games, baseline=None)
    assert outcomes(nameless) == ([("baseline", "m")] * len(outcome), outcome, notes)


@pytest.mark.parametrize(
    ("preference", "outcome", "weights"),
    [(1, [1], [1]), (1.25, [1, -1], [0.75, 0.25]), (1.5, [0], [1]), (1.91, [1, -1], [0.09, 0.91]), (2.0, [-1], [1])],
)
def test_preferences_of_alpaca_eval_are_weights(preference: float, outcome: list[int], weights: list[float]) -> None:
    row = example("alpaca-eval-annotation", preference=preference)
    assert outcomes(row) == ([("m", "n")] * len(outcome), outcome, [])
    pairs = read_pairs([row])
    assert pairs.weights.tolist() == pytest.approx(weights)
    assert pairs.dialogue.tolist() == [0] * len(outcome), "both parts are of one dialogue"
    assert pairs.length_ratio.tolist() == [pytest.approx(math.log(2))] * len(outcome)


def test_names_of_fields_are_taken_at_their_word() -> None:
    row = example("arena-pair", winner="m")
    found = read_pairs([row], {"a": "model_a", "b": "model_b", "better": "winner", "dialog_id": "question_id"})
    assert (found.outcome.tolist(), found.named) == ([1], True)


def test_dialogues_of_pairs() -> None:
    rows = [ROW | {"dialog_id": name} for name in ("d", None, "e", "d", None, 1)]
    found = read_pairs(rows)
    assert found.dialogue.tolist() == [0, 1, 2, 0, 3, 4]
    assert found.named


def test_ambiguous_and_odd_outcomes_are_shown() -> None:
    rows = [
        ROW | {"a": "b", "b": "x", "better": " b "},
        ROW | {"better": 7},
        ROW | {"better": None},
        ROW | {"better": ["a"]},
    ]
    with pytest.raises(DataError) as caught:
        read_pairs(rows)
    assert [problem.what for problem in caught.value.problems] == [
        "better is 'b', which is ambiguous: a system of this pair is called like a side or a tie",
        "better is 7",
        "better is null",
        "better is a list",
    ]
