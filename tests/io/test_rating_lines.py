"""Rating lines: what raters send back; every problem of every file at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval.core.errors import DataError
from dialeval.io.ratings import RatingLine, read_rating_lines


def test_lines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "ann.jsonl"
    rows = [
        {"id": "k1", "rater": "ann", "scores": {"overall": 4, "polite": 1}, "seconds": 2.5, "comment": "well"},
        {"id": "k1", "rater": "ann", "scores": {"overall": 5}, "again": True},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "bob.csv").write_text("id,rater,scores.overall,again\nk2,7,3,\nk2,7,2,true\n")
    assert read_rating_lines([file, tmp_path / "bob.csv"]) == [
        RatingLine("k1", "ann", {"overall": 4, "polite": 1}, False, "well", 2.5),
        RatingLine("k1", "ann", {"overall": 5}, True),
        RatingLine("k2", "7", {"overall": 3}),
        RatingLine("k2", "7", {"overall": 2}, True),
    ]


def test_every_problem_of_every_file_is_found(tmp_path: Path) -> None:
    file, other = tmp_path / "ann.jsonl", tmp_path / "bob.jsonl"
    good = {"id": "k1", "rater": "ann", "scores": {"overall": 4}}
    bad = [
        [good],
        {**good, "id": None},
        {"id": "k1", "scores": 3},
        {**good, "scores": {"overall": "much"}},
        {**good, "scores": {"overall": [3, 4]}},
        {"id": "k1", "rater": "ann"},
        {**good, "id": "k9"},
    ]
    file.write_text("\n".join([json.dumps(good), "{", *map(json.dumps, bad)]))
    other.write_text(json.dumps({"rater": "bob", "scores": 3}))
    with pytest.raises(DataError) as error:
        read_rating_lines([file, other, tmp_path / "c.txt"], {"k1"})
    problems = [(Path(problem.where).name, problem.line, problem.what) for problem in error.value.problems]
    assert [(name, line) for name, line, _ in problems] == [
        *(("ann.jsonl", line) for line in range(2, 10)),
        ("bob.jsonl", 1),
        ("c.txt", None),
    ]
    words = " / ".join(what for *_, what in problems)
    for part in ("the row is a list", "has no id", "has no rater", "'much'", "2 values", "has no scores", "'k9'"):
        assert part in words
