"""Rating lines: what raters send back; every problem of every file at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.io.ratings import RatingLine, read_rating_lines
from dialeval.io.rows import Records


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


def test_what_else_a_line_holds(tmp_path: Path) -> None:
    good = {"id": "k1", "rater": "ann", "scores": 1}
    more: list[dict[str, object]] = [
        {"seconds": 0, "marked": [2, True, "3", 4], "comment": 7},
        {"seconds": 999_999_999, "marked": "2"},
        {"seconds": 1_000_000_000, "marked": []},
        {"seconds": -1},
        {"seconds": "5"},
    ]
    file = tmp_path / "ann.jsonl"
    file.write_text("".join(json.dumps({**good, **each}) + "\n" for each in more))
    found = read_rating_lines([file])
    assert [(line.seconds, line.marked, line.comment) for line in found] == [
        (0.0, (2, 4), ""),
        (999_999_999.0, (), ""),
        (None, (), ""),
        (None, (), ""),
        (None, (), ""),
    ]


def test_scores_are_checked_where_a_line_is_sound_so_far() -> None:
    def check(identity: str, scores: Mapping[str, float]) -> list[str]:
        return [f"{identity} has {scores}", "twice"]

    rows = [
        {"id": "k1", "rater": "ann", "scores": {"a": 1, "b": 2}},
        {"id": "k2", "rater": "ann", "scores": {"a": 1}},
        {"id": "k1", "rater": "ann", "scores": {"a": [1, 2], "b": [3]}},
        {"id": "k1", "rater": "ann", "scores": {"a": "x"}},
    ]
    with pytest.raises(DataError) as caught:
        read_rating_lines([Records("lines", enumerate(rows, 1))], {"k1"}, check)
    assert [(problem.line, problem.what) for problem in caught.value.problems] == [
        (1, "k1 has {'a': 1.0, 'b': 2.0}"),
        (1, "twice"),
        (2, "the id 'k2' is not in the sample"),
        (3, "scores.a holds 2 values"),
        (4, "scores.a holds 'x'"),
    ]


def test_objects_and_files_are_not_mixed() -> None:
    with pytest.raises(SettingError, match=r"^\{'id': 'k1', 'rater': 'ann'.* is not a path$"):
        read_rating_lines([{"id": "k1", "rater": "ann", "scores": 1}, "more.jsonl"])  # type: ignore[list-item]
