"""Pairs of responses: every form of an outcome, and every problem with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.io.ratings import read_pairs

ROW: dict[str, object] = {
    "dialog_id": "d1",
    "a": "x",
    "b": "y",
    "better": "a",
    "response_a": "one two",
    "response_b": "one",
}


@pytest.mark.parametrize(
    ("left", "right", "better"),
    [("b", "a", "a"), ("b", "a", "b"), ("x", "a", "a"), ("b", "x", "b"), ("x", "A", "A"), ("tie", "x", "tie")],
)
def test_a_name_that_is_also_the_other_side_is_refused(left: str, right: str, better: str) -> None:
    with pytest.raises(DataError, match="is ambiguous"):
        read_pairs([ROW | {"a": left, "b": right, "better": better}])


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
