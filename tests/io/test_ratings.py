"""Rated rows: every form in which people write scores down, and every problem with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

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


@pytest.mark.parametrize("score", [{"scores": 4}, {"scores": [3, 5]}, {"overall": 4}, {"score": 4}, {"rating": 4.0}])
def test_a_plain_number_is_overall(tmp_path: Path, score: dict[str, object]) -> None:
    found = read_ratings(written(tmp_path, {"response": "x", **score}))
    assert found.values["overall"].tolist() == [4]


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


def test_problems_name_file_and_line(tmp_path: Path) -> None:
    one = written(tmp_path, {"response": "x", "scores": {"overall": "good"}}, {"scores": 1}, 7, name="one.jsonl")
    two = written(tmp_path, {"response": "x", "scores": 1, "scale": [5, 1]}, name="two.jsonl")
    with pytest.raises(DataError) as caught:
        read_ratings([one, two])
    lines = [str(problem) for problem in caught.value.problems]
    assert [line.split(": ")[0] for line in lines] == [f"{one}:1", f"{one}:2", f"{one}:3", f"{two}:1"]
    assert "scores.overall holds 'good'" in lines[0]
    assert "has no field 'response'" in lines[1]
    assert "the row is a number" in lines[2]
    assert "scale is 5, 1" in lines[3]


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


def test_sizes_of_ratings_have_wide_limits() -> None:
    scores = [0, 1e-50, -1e50, 1e15]
    row: dict[str, object] = {"response": "x", "scores": scores}
    assert read_ratings([row]).annotations["overall"][0].tolist() == scores


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


def test_rows_of_a_list_are_counted_from_one() -> None:
    rows: list[dict[str, object]] = [{"response": "x", "scores": 1}, {"response": "y", "scores": {"overall": "good"}}]
    with pytest.raises(DataError, match=r"ratings:2: scores.overall holds 'good'"):
        read_ratings(rows)


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), float("nan"), True])
def test_a_score_that_is_no_finite_number_is_a_problem(number: float) -> None:
    """A whole number in Python may be larger than every float."""
    for row in ({"scores": number}, {"scores": [1, number]}, {"scores": 1, "scale": [0, number]}):
        with pytest.raises(DataError, match=r"ratings:1: (scores\.overall holds|scale is) "):
            read_ratings([{"response": "x", **row}])


def test_lines_of_several_raters_are_one_row(tmp_path: Path) -> None:
    def line(rater: str, **scores: float) -> dict[str, object]:
        return {"id": "k1", "rater": rater, "response": "hello", "scores": scores}

    found = read_ratings(
        written(tmp_path, line("ann", overall=1), line("bob", overall=4, fluent=5), line("ann", polite=2))
    )
    assert len(found) == 1
    assert found.ids == ["k1"]
    assert found.annotations["overall"][0].tolist() == [1, 4]
    assert found.annotations["fluent"][0].tolist() == [5]
    assert found.annotations["polite"][0].tolist() == [2]
    # An id without a rater is somebody's own field.
    rows = [{"id": "k1", "response": text, "scores": 1} for text in ("x", "y")]
    assert len(read_ratings(written(tmp_path, *rows))) == 2
    odd = [{"id": 1.5, "response": "x", "scores": 1}]
    assert read_ratings(written(tmp_path, *odd)).ids == [None]


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


def test_lines_without_a_rater_are_each_of_another(tmp_path: Path) -> None:
    drawn: dict[str, dict[str, object]] = {"k1": {"id": "k1", "response": "hello"}}
    lines = [{"id": "k1", "scores": value} for value in (1, 2, 2)]
    assert read_ratings(written(tmp_path, *lines), sampled=drawn).annotations["overall"][0].tolist() == [1, 2, 2]


def test_ratings_that_name_only_what_was_drawn(tmp_path: Path) -> None:
    drawn: dict[str, dict[str, object]] = {
        "k1": {"id": "k1", "dialog_id": "d1", "system": "s", "response": "hello", "context": ["hi"]},
        "k2": {"id": "k2", "dialog_id": "d1", "system": "t", "response": "bye", "context": ["hi"]},
    }
    lines = [{"id": "k2", "scores": {"overall": 3}}, {"id": "k1", "rater": 7, "scores": 5, "response": "not this"}]
    found = read_ratings(written(tmp_path, *lines), sampled=drawn)
    assert (found.ids, found.systems, found.responses) == (["k2", "k1"], ["t", "s"], ["bye", "hello"])
    assert found.dialogues[0] == found.dialogues[1]
    with pytest.raises(DataError) as error:
        read_ratings(written(tmp_path, {"id": "k3", "scores": 1}, {"scores": 1}), sampled=drawn)
    assert [problem.what for problem in error.value.problems] == [
        "the id 'k3' is not in the sample",
        "has no id",
    ]


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(SettingError, match="5 is not a path"):
        read_ratings(iter([5]))  # type: ignore[arg-type]
