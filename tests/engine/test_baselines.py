"""Baselines: what they say, where systems stand between them, and what is warned of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.engine.baselines import CONSTANT, GOLD, SHUFFLED, TRAIN, derangement, make_baselines
from dialeval.io.reading import read_responses

RESPONSES = ["the cat sat", "a dog barked loudly", "i do not know", "fish swim"]
REFERENCES = ["the cat sat down", "the dog barked", "nobody knows that", "fish can swim"]


def texts(run: dialeval.Run, system: str, column: str = "response") -> list[Any]:
    rows = run[system].table
    assert rows is not None
    return list(rows.texts[column])


def test_what_the_anchors_say() -> None:
    train = ["first line", "second line"]
    run = dialeval.evaluate(
        {"mine": RESPONSES}, REFERENCES, train=train, metrics="length,bleu-1,rouge-l", baselines=True
    )
    assert list(run) == ["mine", GOLD, SHUFFLED, CONSTANT, TRAIN]
    assert set(run.baselines) == {GOLD, SHUFFLED, CONSTANT, TRAIN}
    assert texts(run, GOLD) == REFERENCES
    assert sorted(texts(run, SHUFFLED)) == sorted(REFERENCES)
    assert all(one != other for one, other in zip(texts(run, SHUFFLED), REFERENCES, strict=True))
    assert texts(run, SHUFFLED) == [REFERENCES[row] for row in (2, 3, 1, 0)], "the seed is fixed"
    assert texts(run, CONSTANT) == ["i do not know ."] * 4
    assert texts(run, TRAIN) == [train[line] for line in np.random.default_rng(8).integers(2, size=4)]
    assert run[GOLD]["bleu-1"].mean == run[GOLD]["rouge-l"].mean == 1
    roles = {name: run[name].role for name in run}
    assert roles == {"mine": "system", GOLD: "ceiling", SHUFFLED: "floor", CONSTANT: "floor", TRAIN: "floor"}
    again = dialeval.evaluate(
        {"mine": RESPONSES}, REFERENCES, train=train, metrics="length,bleu-1,rouge-l", baselines=True
    )
    assert again == run


def test_gold_of_several_references_is_not_compared_with_itself() -> None:
    references = [["the cat sat", "a cat sat"], ["only one"], [], ["x", "y", "x"]]
    run = dialeval.evaluate({"mine": RESPONSES}, references, metrics="rouge-l", baselines=True)
    assert texts(run, GOLD) == ["the cat sat", "only one", "x"]
    assert texts(run, GOLD, "reference") == [["a cat sat"], ["only one"], ["y", "x"]]
    assert run[GOLD]["rouge-l"].scores == pytest.approx([2 / 3, 1, 1])
    assert texts(run, SHUFFLED, "reference") == texts(run, GOLD, "reference")
    assert run[CONSTANT]["rouge-l"].units == 4


@given(st.lists(st.integers(1, 6), max_size=12), st.integers(0, 99))
def test_a_derangement_takes_each_row_once_and_none_of_its_own_dialogue(sizes: list[int], seed: int) -> None:
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    found = derangement(offsets, seed)
    possible = bool(sizes) and 2 * max(sizes) <= sum(sizes)
    assert (found is not None) == possible
    if found is not None:
        dialogue = np.repeat(np.arange(len(sizes)), sizes)
        assert sorted(found.tolist()) == list(range(sum(sizes)))
        assert (dialogue[found] != dialogue).all()


def test_where_a_system_stands() -> None:
    run = dialeval.evaluate({"mine": RESPONSES}, REFERENCES, metrics="length,bleu-1,distinct-1", baselines=True)
    standing = run.details["baselines"]["standing"]["mine"]
    assert set(standing) == {"bleu-1", "distinct-1"}, "length has no direction"
    floors = {name: run[name]["bleu-1"].mean for name in (SHUFFLED, CONSTANT)}
    best = max(floors.values())
    assert floors[standing["bleu-1"]["floor"]] == best
    assert standing["bleu-1"]["share"] == pytest.approx((run["mine"]["bleu-1"].mean - best) / (1 - best))
    assert standing["distinct-1"]["floor"] == CONSTANT, "shuffled gold is as diverse as gold"


def test_lower_is_better_where_the_metric_says_so() -> None:
    references = ["know know know i", "i know know", "do know know", "know not that"]
    responses = ["know know i i", *references[1:]]
    run = dialeval.evaluate({"mine": responses}, references, metrics="unigram-kl-div", baselines=True)
    share = run.details["baselines"]["standing"]["mine"]["unigram-kl-div"]["share"]
    low, mine, high = (run[name]["unigram-kl-div"].mean for name in (GOLD, "mine", CONSTANT))
    assert low < mine < high
    assert share == pytest.approx((high - mine) / (high - low))


def test_what_cannot_be_made_is_said() -> None:
    run = dialeval.evaluate({"mine": RESPONSES}, metrics="length", baselines=True)
    assert list(run) == ["mine", CONSTANT]
    assert set(run.details["baselines"]["left_out"]) == {GOLD, SHUFFLED, TRAIN}
    rows = [{"dialog_id": "one", "response": "a", "reference": "b"} for _ in range(3)]
    left_out = dialeval.evaluate(rows, metrics="rouge-l", baselines=True).details["baselines"]["left_out"]
    assert "of one dialogue" in left_out[SHUFFLED]
    with pytest.raises(dialeval.SettingError, match="name of a baseline"):
        dialeval.evaluate({GOLD: RESPONSES}, metrics="length", baselines=True)


def test_other_references_are_warned_of() -> None:
    rows = [
        {"system": system, "response": "a b", "reference": f"{system} b", "dialog_id": str(number)}
        for system in ("x", "y")
        for number in range(4)
    ]
    run = dialeval.evaluate(rows, metrics="rouge-l", baselines=True)
    assert run.warnings[0] == "baselines are made of the rows of x; other references belong to y"
    without = [{**row, "reference": "x b" if row["system"] == "x" else []} for row in rows]
    assert make_baselines(read_responses(without), None).others == ["y"]
    same = [{**row, "reference": "x b"} for row in rows]
    assert make_baselines(read_responses(same), None).others == []
    assert make_baselines(read_responses({"x": ["a"], "y": ["b"]}), None).others == []
