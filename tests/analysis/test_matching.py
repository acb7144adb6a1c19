"""Rated rows beside the values of metrics: scored, or looked up in a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dialeval
from analysis.test_agreement import rated
from dialeval.analysis.matching import RatedRows, match_ratings
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.io.ratings import read_ratings


def matched(run: Run, ratings: list[dict[str, Any]]) -> RatedRows:
    return match_ratings(run, read_ratings(ratings), "overall")


def test_equal_texts_without_a_dialogue_are_not_guessed() -> None:
    run = dialeval.evaluate({"a": ["yes", "no", "yes", "no way"]}, metrics="length")
    ratings: list[dict[str, Any]] = [{"response": text, "scores": 1, "system": "a"} for text in ("no way", "yes", "no")]
    rows = match_ratings(run, read_ratings(ratings), "overall")
    np.testing.assert_array_equal(rows.metrics["length"], [2, np.nan, 1])
    assert rows.unmatched == 1


def test_a_dialogue_of_a_run_is_the_mean_of_its_turns() -> None:
    run = dialeval.evaluate(rated(), metrics="length")
    whole = [
        {"dialog_id": f"d{n}", "system": "s0", "response": "x", "level": "dialog", "scores": n % 4} for n in range(10)
    ]
    found = match_ratings(run, read_ratings(whole), "overall")
    lengths = [len(row["response"].split()) for row in rated() if row["system"] == "s0" and row["dialog_id"] == "d0"]
    assert found.metrics["length"][0] == pytest.approx(np.mean(lengths))


def test_the_same_text_twice_in_a_dialogue_is_matched_in_order() -> None:
    texts = ["yes", "no", "yes"]
    run = dialeval.evaluate([{"dialog_id": "d", "response": text} for text in texts], metrics="length")
    estimates = {"own": Estimate(0.0, 0.0, 3, 3, scores=np.array([1.0, 2.0, 3.0]))}
    known = Run({"system": Result(estimates, table=run["system"].table)}, "0")
    ratings = [{"dialog_id": "d", "response": text, "scores": 1} for text in ("yes", "yes", "yes", "no")]
    found = matched(known, ratings)
    np.testing.assert_array_equal(found.metrics["own"], [1, 3, np.nan, 2])
    assert found.unmatched == 1


def test_without_dialogues_the_context_tells_texts_apart() -> None:
    run = dialeval.evaluate({"a": ["yes", "yes"]}, contexts=["one ?", "two ?"], metrics="length")
    items = Estimate(0.0, 0.0, 2, 2, scores=np.array([1.0, 2.0]))
    known = Run({"a": Result({"own": items}, table=run["a"].table)}, "0")
    ratings = [{"response": "yes", "context": [text], "scores": 1} for text in ("two ?", "one ?", "three ?")]
    np.testing.assert_array_equal(matched(known, ratings).metrics["own"], [2, 1, np.nan])


def test_values_of_dialogues_belong_to_their_rated_turns() -> None:
    rows = RowTable(np.array([0, 2, 3]), ["d1", "d2"], texts={"response": TextColumn.from_strings("abc")})
    inform = Estimate(0.5, 0.0, 2, 2, scores=np.array([1.0, 0.0]), level=Level.DIALOGUE)
    run = Run({"bot": Result({"inform": inform}, table=rows)}, "0")
    turns = [{"dialog_id": name, "response": text, "scores": 1} for name, text in (("d2", "c"), ("d1", "b"))]
    found = matched(run, turns)
    assert found.metrics["inform"].tolist() == [0, 1]
    assert found.of_dialogues == {"inform"}
    whole = [{"dialog_id": name, "response": "x", "level": "dialog", "scores": 1} for name in ("d1", "d2")]
    assert matched(run, whole).metrics["inform"].tolist() == [1, 0]


def test_ratings_without_a_system_are_those_of_the_only_one_that_is_no_anchor() -> None:
    texts = {"response": TextColumn.from_strings("ab")}
    own = Result(
        {"k": Estimate(0.0, 0.0, 2, 2, scores=np.array([1.0, 2.0]))}, table=RowTable(np.arange(3), texts=texts)
    )
    floor = Result(dict(own), table=own.table, role="floor")
    ratings: list[dict[str, Any]] = [{"response": text, "scores": 1} for text in "ba"]
    assert matched(Run({"bot": own, "constant": floor}, "0"), ratings).metrics["k"].tolist() == [2, 1]
    with pytest.raises(DataError, match="it has the systems bot, other"):
        matched(Run({"bot": own, "other": own}, "0"), ratings)


def test_ratings_under_one_other_name_are_those_of_the_only_system() -> None:
    texts = {"response": TextColumn.from_strings("ab")}
    own = Result(
        {"k": Estimate(0.0, 0.0, 2, 2, scores=np.array([1.0, 2.0]))}, table=RowTable(np.arange(3), texts=texts)
    )
    ratings: list[dict[str, Any]] = [{"response": text, "scores": 1, "system": "model"} for text in "ba"]
    assert matched(Run({"bot": own}, "0"), ratings).metrics["k"].tolist() == [2, 1]


def test_a_run_that_does_not_know_its_rows_or_texts_says_so() -> None:
    items = {"k": Estimate(0.0, 0.0, 1, 1, scores=np.array([1.0]))}
    ratings: list[dict[str, Any]] = [{"response": "a", "scores": 1}]
    with pytest.raises(DataError, match="does not identify its rows"):
        matched(Run({"bot": Result(items)}, "0"), ratings)
    with pytest.raises(DataError, match="those of very many rows and of rows in chunks are not saved"):
        matched(Run({"bot": Result(items, table=RowTable(np.arange(2)))}, "0"), ratings)


def test_values_without_items_are_skipped() -> None:
    texts = {"response": TextColumn.from_strings(["a"])}
    estimates = {"k": Estimate(0.0, 0.0, 1, 1, scores=np.array([1.0])), "corpus": Estimate(0.5, 0.0, 1, 1, corpus=True)}
    run = Run({"bot": Result(estimates, {"chrf": "needs references"}, table=RowTable(np.arange(2), texts=texts))}, "0")
    found = matched(run, [{"response": "a", "scores": 1}])
    assert list(found.metrics) == ["k"]
    assert list(found.skipped) == ["corpus", "chrf"]
    assert "without per-row scores" in found.skipped["corpus"]


def scaled_sets(thumbs: object, stars: object) -> list[dict[str, object]]:
    """Rows of a set with thumbs and of one with stars; their quality has nothing to do with the set."""
    rows: list[dict[str, object]] = []
    for number in range(40):
        words = " ".join(["word"] * (1 + number % 4))
        better = number % 4 / 3
        rows.append({"dataset": "thumbs", "response": words, "scores": float(better > 0.5), "scale": thumbs})
        rows.append({"dataset": "stars", "response": f"{words} more", "scores": 1 + 4 * better, "scale": stars})
    return rows


def test_sets_on_different_scales_are_brought_to_one() -> None:
    rows = scaled_sets([0, 1], [1, 5])
    found = dialeval.measure_agreement(rows, metrics="length", levels=["turn"], resamples=5)
    assert found.warnings[0] == "ratings on the scales 0 to 1 and 1 to 5 were brought to 0 to 1"
    by_hand = scaled_sets([0, 1], [0, 1])
    for row in by_hand[1::2]:
        row["scores"] = (float(str(row["scores"])) - 1) / 4
    same = dialeval.measure_agreement(by_hand, metrics="length", levels=["turn"], resamples=5)
    assert found["length"]["turn"] == same["length"]["turn"]
    assert not [warning for warning in same.warnings if "scale" in warning]


@pytest.mark.parametrize(
    ("thumbs", "stars", "words"),
    [
        (None, None, "'thumbs' are between 0 and 1 and those in 'stars' are not"),
        ([0, 1], None, "such as those of 'stars', state none"),
        ([0, 1], [1, 4], "is not on the scale"),
    ],
)
def test_sets_that_cannot_be_brought_to_one_scale_are_refused(thumbs: object, stars: object, words: str) -> None:
    with pytest.raises(SettingError, match=words):
        dialeval.measure_agreement(scaled_sets(thumbs, stars), metrics="length", resamples=5)


def test_sets_of_the_same_range_need_no_scale() -> None:
    rows = [
        {"dataset": name, "response": " ".join(["word"] * (1 + number % 4)), "scores": number % 3}
        for name in ("one", "other")
        for number in range(12)
    ]
    assert dialeval.measure_agreement(rows, metrics="length", levels=["turn"], resamples=5).warnings == []
