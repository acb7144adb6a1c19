"""The judge in the package: whole, small, of stated data, sensible on plain cases, and made again bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dialeval
from dialeval.analysis.matching import find_training_rows
from dialeval.core.errors import SettingError
from dialeval.io.ratings import digest_ratings, read_ratings
from dialeval.judges.adem import SHIPPED, load_adem, open_judge
from dialeval.metrics.encoder_files import find_install_command

ROOT = Path(__file__).parents[2]
RATINGS = ROOT.parent / "shared" / "data" / "ratings"
needs_encoder = pytest.mark.skipif(find_install_command() is not None, reason="the weights of minilm are not installed")

CONTEXT = ["hi !", "how was your weekend ?"]
REFERENCE = "it was good , we went to the beach ."


def test_it_is_whole_and_small_and_says_what_it_is_made_of() -> None:
    weights = load_adem(SHIPPED)
    assert (weights.kind, weights.dimension, weights.encoder) == ("adem", 384, "minilm")
    assert all(each["license"] != "not stated" for each in weights.facts["data"])
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 150_000
    mean = weights.facts["validation"]["mean"]
    assert mean["adem"]["spearman"] > mean["identity"]["spearman"] > 0.30
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert weights.digest in card
    assert "words reversed" in card


@needs_encoder
def test_good_replies_are_liked_better_than_odd_ones() -> None:
    judge = open_judge()
    replies = ["it was great , we went hiking .", "purple is a number of the train station ."]
    for context, reference in ((CONTEXT, [REFERENCE]), (CONTEXT, []), ([], [REFERENCE])):
        good, odd = judge.score([context] * 2, replies, [reference] * 2)
        assert 1 <= odd < good <= 5


@needs_encoder
def test_it_is_a_metric_like_others() -> None:
    run = dialeval.evaluate(
        {"a": ["it was great ."], "b": ["i do not know ."]},
        references=[REFERENCE],
        contexts=[CONTEXT[-1]],
        metrics=["adem", "length"],
    )
    assert run["a"]["adem"].mean > run["b"]["adem"].mean
    assert run["a"]["adem"].signature is not None
    assert run["a"]["adem"].signature["judge"].startswith(f"adem@{load_adem(SHIPPED).digest}+minilm@")


@needs_encoder
@pytest.mark.slow
@pytest.mark.skipif(not RATINGS.is_dir(), reason="the folder of human ratings does not lie beside the checkout")
def test_it_is_made_again_bit_for_bit(tmp_path: Path) -> None:
    tool = ROOT / "tools" / "make_checkpoint.py"
    subprocess.run([sys.executable, str(tool), str(RATINGS), str(tmp_path)], check=True, capture_output=True)
    for file in SHIPPED.iterdir():
        assert (tmp_path / file.name).read_bytes() == file.read_bytes(), file.name


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
