"""Which systems are compared under which keys, and what forbids it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.analysis.alignment import Alignment, Design, DesignName
from dialeval.analysis.pairing import (
    choose_main_keys,
    choose_systems,
    collect_systems,
    describe_inputs,
    find_keys,
    find_system,
    label_folders,
    load_runs,
)
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import REFERENCE, RowTable
from dialeval.core.signature import Signature


def result(rows: RowTable | None = None, n: int = 4, size: int = 3, **more: Any) -> Result:
    estimate = Estimate(0.0, 0.0, size, size, items=np.zeros(size), signature=Signature.of("bleu-4", n=n))
    return Result({"bleu-4": estimate}, rows=rows, **more)


def test_names_that_two_runs_share_get_the_name_of_the_run() -> None:
    one, other = Run({"bot": result(), "old": result()}, "0"), Run({"bot": result()}, "0")
    assert list(collect_systems(one)) == ["bot", "old"]
    assert list(collect_systems([one, other])) == ["1/bot", "old", "2/bot"]
    assert list(collect_systems({"main": one, "branch": other})) == ["main/bot", "old", "branch/bot"]


def test_folders_have_short_names_unless_two_are_alike() -> None:
    assert label_folders(["x/results", "y/results", "z/main/"]) == ["x/results", "y/results", "main"]
    assert label_folders(["."]) == ["."]


def test_a_folder_that_is_named_twice_is_one_run(tmp_path: Path) -> None:
    for name in ("x/main", "y/main", "y/other"):
        Run({name: result()}, "0").save(tmp_path / name)
    given = ["x/main", "x/main/", "x/main/run.json", "y/other", "y/main"]
    found = load_runs([f"{tmp_path}/{name}" for name in given])
    assert list(found) == [f"{tmp_path}/x/main", "other", f"{tmp_path}/y/main"]
    assert [list(run) for run in found.values()] == [["x/main"], ["y/other"], ["y/main"]]


def test_anchors_are_compared_only_by_name() -> None:
    systems = {"a": result(), "gold": result(role="ceiling"), "floor/x": result()}
    assert choose_systems(systems) == ("a", ["floor/x"])
    assert choose_systems(systems, "gold") == ("gold", ["a", "floor/x"])
    assert choose_systems(systems, None, ["gold", "a", "gold"]) == ("gold", ["a"])
    only_baselines = {"low": result(role="floor"), "high": result(role="ceiling")}
    assert choose_systems(only_baselines) == ("low", ["high"])
    for names in ([], ["a"]):
        with pytest.raises(SettingError, match="needs two systems; there is a, gold, floor/x"):
            choose_systems(systems, None, names)
    with pytest.raises(SettingError, match="there is none"):
        choose_systems({})


def test_a_run_stands_for_its_only_system() -> None:
    systems = {"main/bot": result(), "old": result(), "two/x": result(), "two/y": result()}
    assert find_system(systems, "main") == "main/bot"
    assert find_system(systems, "old") == "old"
    with pytest.raises(SettingError, match="did you mean 'old'"):
        find_system(systems, "odl")
    for name in ("two", "zzzzz"):  # two systems, and none
        with pytest.raises(SettingError, match=f"no system is called '{name}'"):
            find_system(systems, name)


def test_names_stand_for_keys_families_and_all() -> None:
    keys = ["length", "distinct-1", "distinct-2", "my own"]
    assert find_keys(["distinct", "distinct-1"], keys, "no", "has") == ["distinct-1", "distinct-2"]
    assert find_keys(["my own", "all"], keys, "no", "has") == ["my own", "length", "distinct-1", "distinct-2"]
    for name in ("bleu", "bleu-4", "never heard of"):
        with pytest.raises(SettingError, match=f"it lacks '{name}'; it has length, distinct-1"):
            find_keys([name], keys, "it lacks", "it has")


def describe(
    left: Signature, right: Signature, references: Sequence[Sequence[int]] = (), name: DesignName = "paired"
) -> str | None:
    tables = [RowTable(np.arange(4), digests={REFERENCE: np.array(each, np.uint64)}) for each in references]
    tables = tables or [RowTable(np.arange(4))] * 2
    one, other = (
        Result({"m": Estimate(0.5, 0.0, 3, 3, signature=each)}, rows=table)
        for each, table in zip((left, right), tables, strict=True)
    )
    return describe_inputs(one["m"], other["m"], Alignment(Design(name, "rows", 3, 3, 3), one, other))


def test_inputs_that_differ_are_named_in_words() -> None:
    plain = Signature.of("bleu-4", n=4, tokenizer="13a", reference="aaaa", context="bbbb", train="cccc")
    assert describe(plain, plain) is None
    assert describe(plain, plain.with_fields(context="own replies", dialeval="9")) is None
    assert describe(plain, plain.with_fields(tokenizer="zh")) == "tokenizers differ: 13a and zh"
    other = Signature("bleu(tokenizer=zh)", plain.with_fields(tokenizer="zh").fields)
    assert describe(plain, other) == "tokenizers differ: 13a and zh"
    assert describe(plain, plain.with_fields(train="dddd")) == "training texts differ"
    assert describe(plain, plain.with_fields(n=3)) == "settings of n differ: 4 and 3"
    assert describe(plain, plain.with_fields(smooth=7)) == "settings of smooth differ"
    assert "different versions" in str(describe(plain.with_fields(definition=1), plain.with_fields(definition=2)))


def test_references_are_compared_row_by_row() -> None:
    one, other = Signature.of("bleu-4", reference="aaaa"), Signature.of("bleu-4", reference="bbbb")
    assert describe(one, other, ([1, 2, 3], [1, 9, 8])) == "references differ in 2 of 3 rows"
    assert describe(one, other, ([1, 2, 3], [1, 2, 3])) is None, "the same rows out of other files"
    assert describe(one, other) == "references differ"
    assert describe(one, other, ([1, 2, 3], [1, 9, 8]), "unpaired") is None, "other rows have other references"


def test_the_panel_has_one_metric_of_each_family_that_is_evidence() -> None:
    def systems(*keys: str, unscored: str = "") -> dict[str, Result]:
        estimates = {
            key: Estimate(0.5, 0.0, 3, 0 if key == unscored else 3, signature=Signature.of(key)) for key in keys
        }
        return {"a": Result(estimates)}

    assert choose_main_keys(systems("length", "distinct-1", "distinct-2", "bleu-1", "bleu-4", "rouge-l")) == [
        "bleu-4",
        "rouge-l",
    ]
    assert choose_main_keys(systems("length", "distinct-1", "distinct-2")) == ["distinct-2"]
    assert choose_main_keys(systems("length", "flips")) == ["length", "flips"]
    assert choose_main_keys(systems("pass-hat-1", "pass-hat-2", unscored="pass-hat-2")) == ["pass-hat-1"]
    assert choose_main_keys(systems("inform", "inform/hotel")) == ["inform"]
