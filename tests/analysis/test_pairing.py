"""Which systems are compared under which keys, and what forbids it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.analysis.pairing import chosen, full_name, keys_meant, labels_of, load_runs, mismatches, systems_of
from dialeval.core.columns import TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature


def result(rows: RowTable | None = None, n: int = 4, size: int = 3, **more: Any) -> Result:
    estimate = Estimate(0.0, 0.0, size, size, items=np.zeros(size), signature=Signature.of("bleu-4", n=n))
    return Result({"bleu-4": estimate}, rows=rows, **more)


def test_names_that_two_runs_share_get_the_name_of_the_run() -> None:
    one, other = Run({"bot": result(), "old": result()}, "0"), Run({"bot": result()}, "0")
    assert list(systems_of(one)) == ["bot", "old"]
    assert list(systems_of([one, other])) == ["1/bot", "old", "2/bot"]
    assert list(systems_of({"main": one, "branch": other})) == ["main/bot", "old", "branch/bot"]


def test_folders_have_short_names_unless_two_are_alike() -> None:
    assert labels_of(["x/results", "y/results", "z/main/"]) == ["x/results", "y/results", "main"]
    assert labels_of(["."]) == ["."]


def test_a_folder_that_is_named_twice_is_one_run(tmp_path: Path) -> None:
    for name in ("x/main", "y/main", "y/other"):
        Run({name: result()}, "0").save(tmp_path / name)
    given = ["x/main", "x/main/", "x/main/run.json", "y/other", "y/main"]
    found = load_runs([f"{tmp_path}/{name}" for name in given])
    assert list(found) == [f"{tmp_path}/x/main", "other", f"{tmp_path}/y/main"]
    assert [list(run) for run in found.values()] == [["x/main"], ["y/other"], ["y/main"]]


def test_anchors_are_compared_only_by_name() -> None:
    systems = {"a": result(), "gold": result(role="ceiling"), "floor/x": result()}
    assert chosen(systems) == ("a", ["floor/x"])
    assert chosen(systems, "gold") == ("gold", ["a", "floor/x"])
    assert chosen(systems, None, ["gold", "a", "gold"]) == ("gold", ["a"])
    only_anchors = {"low": result(role="floor"), "high": result(role="ceiling")}
    assert chosen(only_anchors) == ("low", ["high"])
    for names in ([], ["a"]):
        with pytest.raises(SettingError, match="needs two systems; there is a, gold, floor/x"):
            chosen(systems, None, names)
    with pytest.raises(SettingError, match="there is none"):
        chosen({})


def test_a_run_stands_for_its_only_system() -> None:
    systems = {"main/bot": result(), "old": result(), "two/x": result(), "two/y": result()}
    assert full_name(systems, "main") == "main/bot"
    assert full_name(systems, "old") == "old"
    with pytest.raises(SettingError, match="did you mean 'old'"):
        full_name(systems, "odl")
    for name in ("two", "zzzzz"):  # two systems, and none
        with pytest.raises(SettingError, match=f"no system is called '{name}'"):
            full_name(systems, name)


def test_names_stand_for_keys_families_and_all() -> None:
    keys = ["length", "distinct-1", "distinct-2", "my own"]
    assert keys_meant(["distinct", "distinct-1"], keys, "no", "has") == ["distinct-1", "distinct-2"]
    assert keys_meant(["my own", "all"], keys, "no", "has") == ["my own", "length", "distinct-1", "distinct-2"]
    for name in ("bleu", "bleu-4", "never heard of"):
        with pytest.raises(SettingError, match=f"it lacks '{name}'; it has length, distinct-1"):
            keys_meant([name], keys, "it lacks", "it has")


def rows(**changes: Any) -> RowTable:
    given = {"offsets": np.array([0, 1, 3]), "dialogues": ["d1", "d2"], "turns": np.array([0, 0, 1])}
    return RowTable(**{**given, **changes})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": np.array([0, 2, 3])}, "turns of dialogue 'd1': 1 and 2"),
        ({"offsets": np.array([0, 2, 3]), "dialogues": None}, "turns of dialogue 'd1': 1 and 2"),
        ({"dialogues": ["d1", "d9"]}, "dialogue 'd2' stands where 'd9' does"),
        ({"turns": np.array([0, 0, 2])}, "row 3 is turn 1 and turn 2"),
        ({"texts": {"context": TextColumn.from_strings(["x", "y", "w"])}}, r"context: \w+ and \w+ \(digests"),
    ],
)
def test_other_rows_are_named(change: dict[str, Any], message: str) -> None:
    context = {"context": TextColumn.from_strings(["x", "y", "z"]), "response": TextColumn.from_strings("abc")}
    systems = {"a": result(rows(texts=context)), "b": result(rows(**change))}
    with pytest.raises(SettingError, match=f"b cannot be compared with a: {message}.*; score both alike"):
        mismatches("a", "b", systems, ["bleu-4"], force=False)
    (forced,) = mismatches("a", "b", systems, ["bleu-4"], force=True)
    assert forced.startswith("b and a: ")


def test_dialogues_without_names_are_counted() -> None:
    unnamed = {"dialogues": None, "turns": None}
    systems = {"a": result(rows(**unnamed)), "b": result(rows(offsets=np.array([0, 2, 3]), **unnamed))}
    assert mismatches("a", "b", systems, ["bleu-4"], force=True) == ["b and a: turns of dialogue 1: 1 and 2"]


def test_other_responses_are_what_is_compared() -> None:
    said = [rows(texts={"response": TextColumn.from_strings(texts)}) for texts in ("abc", "xyz")]
    assert mismatches("a", "b", {"a": result(said[0]), "b": result(said[1])}, ["bleu-4"], force=False) == []
    assert mismatches("a", "b", {"a": result(said[0]), "b": result(rows())}, ["bleu-4"], force=False) == []


def test_a_run_that_does_not_know_its_dialogues_is_refused() -> None:
    systems = {"a": result(rows()), "b": result()}
    for baseline, system in (("a", "b"), ("b", "a")):
        with pytest.raises(SettingError, match=r"does not say which rows belong to one dialogue \(b\); score again"):
            mismatches(baseline, system, systems, ["bleu-4"], force=False)
    forced = mismatches("a", "b", systems, ["bleu-4"], force=True)
    assert forced == ["b and a: the run does not say which rows belong to one dialogue (b)"]


def test_dialogues_without_a_name_are_told_apart_by_their_turns_alone() -> None:
    systems = {"a": result(rows(dialogues=["x", None])), "b": result(rows(dialogues=["x", "line 2"]))}
    assert mismatches("a", "b", systems, ["bleu-4"], force=False) == []


def test_signatures_are_compared_field_by_field() -> None:
    systems = {"a": result(rows()), "b": result(rows(), n=3)}
    assert mismatches("a", "b", systems, ["bleu-4"], force=True) == ["b and a: bleu-4 has n:4 and n:3"]
    more = systems["b"]["bleu-4"].signature
    assert more is not None
    estimate = replace(systems["b"]["bleu-4"], signature=more.with_fields(n=4, smooth=7))
    systems["b"] = replace(systems["b"], estimates={"bleu-4": estimate})
    assert mismatches("a", "b", systems, ["bleu-4"], force=True) == [
        "b and a: bleu-4 has smooth:(nothing) and smooth:7"
    ]


@pytest.mark.parametrize("force", [False, True])
def test_other_numbers_of_rows_cannot_be_forced(force: bool) -> None:
    systems = {"a": result(), "b": result(size=2)}
    with pytest.raises(SettingError, match=r"rows of bleu-4: 3 and 2; score both on the same data"):
        mismatches("a", "b", systems, ["bleu-4"], force=force)
    systems = {"a": result(rows()), "b": result(RowTable(np.arange(4)))}
    with pytest.raises(SettingError, match=r"dialogues: 2 and 3; score both on the same data"):
        mismatches("a", "b", systems, ["bleu-4"], force=force)


def test_further_mismatches_are_counted() -> None:
    systems = {"a": result(rows()), "b": result(rows(dialogues=["d1", "d9"], turns=np.array([5, 0, 1])), n=2)}
    with pytest.raises(SettingError, match=r"\(and 2 more\); score both alike, or pass --force"):
        mismatches("a", "b", systems, ["bleu-4"], force=False)
