"""Rated rows: every form in which people write scores down, and every problem with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dialeval.core.errors import DataError, SettingError, collect_warnings
from dialeval.io.ratings import read_ratings

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "ratings"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))


def written(folder: Path, *rows: object, name: str = "rated.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_columns_of_a_full_row(tmp_path: Path) -> None:
    row = {
        "dataset": "set",
        "dialog_id": "d1",
        "system": "s",
        "context": [{"speaker": "A", "text": "hi"}, {"speaker": "B", "text": "hello"}],
        "response": "how are you",
        "reference": ["fine", "good"],
        "scores": {"overall": [4, 5, None, 3], "fluent": 2.5},
        "scale": [1, 5],
    }
    bare = {"response": "x", "scores": {"overall": 1}, "reference": "x", "response_is_reference": True}
    found = read_ratings(written(tmp_path, row, bare))
    assert len(found) == 2
    assert (found.datasets, found.systems) == (["set", "rated"], ["s", None])
    assert found.dialogues == ["set/d1", "rated/row 2"]
    assert found.contexts == [["hi", "hello"], []]
    assert found.references == [["fine", "good"], []]
    np.testing.assert_array_equal(found.annotations["overall"][0], [4, 5, 3])
    np.testing.assert_array_equal(found.values["overall"], [4, 1])
    np.testing.assert_array_equal(found.values["fluent"], [2.5, np.nan])
    np.testing.assert_array_equal(found.scales, [[1, 5], [np.nan, np.nan]])
    second = found.take(np.array([1]))
    assert second.responses == ["x"]
    np.testing.assert_array_equal(second.values["fluent"], [np.nan])
    assert found.take(np.array([True, False])).responses == ["how are you"]


def test_tables(tmp_path: Path) -> None:
    csv = tmp_path / "a.csv"
    csv.write_text('response,scores.overall,scores.fluent,scale\nx,"[4, 5]",2,1-5\ny,,3,"[0, 1]"\n')
    found = read_ratings(csv)
    np.testing.assert_array_equal(found.values["overall"], [4.5, np.nan])
    assert found.values["fluent"].tolist() == [2, 3]
    assert found.scales.tolist() == [[1, 5], [0, 1]]
    table = tmp_path / "b.parquet"
    pq.write_table(pa.table({"answer": ["x"], "human": [[4.0, 2.0]], "context": [["a", "b"]]}), table)
    found = read_ratings([table], {"response": "answer", "scores": "human"})
    assert (found.values["overall"].tolist(), found.contexts) == ([3], [["a", "b"]])


@pytest.mark.parametrize(
    ("score", "extreme"), [(1e308, "large"), (-1e51, "large"), (10**400, "large"), (1e-300, "small"), (5e-324, "small")]
)
def test_ratings_that_nothing_can_be_computed_with_are_refused(score: float, extreme: str) -> None:
    row: dict[str, object] = {"response": "x", "scores": {"overall": [3, score]}}
    with pytest.raises(DataError, match=f"scores.overall holds .*, too {extreme} to compute with") as raised:
        read_ratings([row])
    assert "bring ratings to an ordinary scale" in str(raised.value)
    with pytest.raises(DataError, match="scale is"):
        read_ratings([{"response": "x", "scores": 3, "scale": [0, 10**400]}])


def test_what_holds_no_ratings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no row has scores, overall, score, rating"):
        read_ratings(written(tmp_path, {"response": "x"}))
    (tmp_path / "a.txt").write_text("x\n")
    with pytest.raises(DataError, match="plain lines hold no ratings"):
        read_ratings(tmp_path / "a.txt")
    with pytest.raises(SettingError, match="name at least one file"):
        read_ratings([])
    with pytest.raises(DataError, match="there is no such file"):
        read_ratings(tmp_path / "none.jsonl")


@pytest.mark.skipif(not FILES, reason="the folder of human ratings does not lie beside the checkout")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_real_ratings_are_those_of_a_plain_reading(path: Path) -> None:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        plain = [json.loads(line) for line in file]
    found = read_ratings(path)
    assert found.responses == [row["response"] for row in plain]
    assert found.systems == [row["system"] or None for row in plain]
    overall = [np.mean(row["scores"]["overall"]) for row in plain]
    np.testing.assert_allclose(found.values["overall"], overall, rtol=1e-15)


def test_the_first_answer_counts_and_of_the_same_answer_the_last(tmp_path: Path) -> None:
    def line(value: float, again: object = None, rater: str = "ann") -> dict[str, object]:
        return {"id": "k1", "rater": rater, "response": "hello", "scores": value, "again": again}

    for again in (True, "true"):
        for lines in ([line(1), line(5, again)], [line(5, again), line(1)], [line(5, again), line(1, False)]):
            assert read_ratings(written(tmp_path, *lines)).values["overall"].tolist() == [1]
    assert read_ratings(written(tmp_path, line(5, True), line(2, True, "bob"))).values["overall"].tolist() == [3.5]
    with collect_warnings() as notes:
        found = read_ratings(written(tmp_path, line(1), line(4), line(2), line(2, rater="bob"), line(2, rater="bob")))
    assert found.annotations["overall"][0].tolist() == [2, 2]
    assert list(notes) == ["ann rated rows more than once with other scores; the last rating counts"]


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(SettingError, match="5 is not a path"):
        read_ratings(iter([5]))  # type: ignore[arg-type]


def _label_studio(number: int, *annotations: tuple[object, float, str]) -> dict[str, Any]:
    def result(stars: float, choice: str) -> list[dict[str, Any]]:
        values = {"quality": ("rating", {"rating": stars}), "polite": ("choices", {"choices": [choice]})}
        return [
            {"from_name": name, "to_name": "text", "type": kind, "value": value}
            for name, (kind, value) in values.items()
        ]

    return {
        "id": number,
        "data": {"dialogue": [{"author": "user", "text": "Hi"}, {"author": "bot", "text": f"Hello {number}."}]},
        "annotations": [
            {"id": at, "completed_by": rater, "was_cancelled": stars < 0, "result": result(stars, choice)}
            for at, (rater, stars, choice) in enumerate(annotations)
        ],
        "predictions": [],
    }


ARGILLA = [
    {
        "id": "r1",
        "fields": {"question": "Hi", "answer": "Hello 1."},
        "responses": {
            "quality": [
                {"value": 4, "user_id": "ann", "status": "submitted"},
                {"value": 2, "user_id": "bob", "status": "submitted"},
                {"value": 1, "user_id": "cy", "status": "draft"},
            ],
            "polite": [
                {"value": "yes", "user_id": "ann", "status": "submitted"},
                {"value": "no", "user_id": "bob", "status": "submitted"},
            ],
        },
    }
]
ARGILLA_1 = [
    {
        "id": "r1",
        "fields": {"question": "Hi", "answer": "Hello 1."},
        "responses": [
            {"user_id": "ann", "status": "submitted", "values": {"quality": {"value": 4}, "polite": {"value": "yes"}}},
            {"user_id": "bob", "status": "submitted", "values": {"quality": {"value": 2}, "polite": {"value": "no"}}},
            {"user_id": "cy", "status": "discarded", "values": {}},
        ],
    }
]
ARGILLA_TABLE = [
    {
        "id": "r1",
        "status": "completed",
        "question": "Hi",
        "answer": "Hello 1.",
        "quality.responses": [4, 2, 1],
        "quality.responses.users": ["ann", "bob", "cy"],
        "quality.responses.status": ["submitted", "submitted", "draft"],
        "polite.responses": ["yes", "no"],
        "polite.responses.users": ["ann", "bob"],
        "polite.responses.status": ["submitted", "submitted"],
    }
]


@pytest.mark.parametrize(
    "given",
    [
        [_label_studio(1, ("ann", 4, "yes"), ({"email": "bob"}, 2, "no"), ("cy", -1, "no"))],
        ARGILLA,
        ARGILLA_1,
        ARGILLA_TABLE,
    ],
    ids=["label-studio", "argilla", "argilla-1", "argilla-table"],
)
def test_ratings_of_annotation_tools(given: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "ratings.json").write_text(json.dumps(given))
    ratings = read_ratings(tmp_path / "ratings.json")
    assert (list(ratings.responses), [list(turns) for turns in ratings.contexts]) == (["Hello 1."], [["Hi"]])
    assert {quality: column[0].tolist() for quality, column in ratings.annotations.items()} == {
        "quality": [4, 2],
        "polite": [1, 0],
    }
    assert [list(names) for names in ratings.raters["quality"]] == [["ann", "bob"]]
