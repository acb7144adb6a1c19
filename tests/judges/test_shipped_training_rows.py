"""Rows that the shipped judges were trained on are known by digests in the package."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialeval
from dialeval.analysis.matching import find_training_rows
from dialeval.core.errors import SettingError
from dialeval.io.ratings import digest_ratings, read_ratings

RATINGS = Path(__file__).parents[3] / "shared" / "data" / "ratings"
TRAINED = {
    "judge": ("conture", "dbdc3_dev", "engage_dailydialog"),
    "adem": ("dstc7_reddit", "engage_dailydialog", "ddpp_dev"),
}


def test_digests_are_found_by_the_signatures_of_the_shipped_judges() -> None:
    run = dialeval.evaluate({"a": ["yes"]}, contexts=[["hi"]], references=["no"], metrics="judge,adem,length")
    assert [len(find_training_rows(run, key)) for key in ("judge", "adem", "length")] == [5737, 20105, 0]


@pytest.mark.parametrize("judge", TRAINED)
def test_they_are_those_of_the_training_sets(judge: str) -> None:
    files = [RATINGS / f"{name}.jsonl.gz" for name in TRAINED[judge]]
    if not all(file.is_file() for file in files):
        pytest.skip("needs the public data")
    run = dialeval.evaluate({"a": ["yes"]}, contexts=[["hi"]], references=["no"], metrics=judge)
    assert find_training_rows(run, judge) == set(digest_ratings(read_ratings(files)))


def test_agreement_with_ratings_that_trained_the_judge_is_refused() -> None:
    file = RATINGS / "conture.jsonl.gz"
    if not file.is_file():
        pytest.skip("needs the public data")
    rated = read_ratings(file)
    with pytest.raises(SettingError, match="learned from all of these ratings"):
        dialeval.measure_agreement(rated.take(range(40)), metrics="judge")  # type: ignore[arg-type]
