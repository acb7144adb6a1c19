"""Making a judge out of files; the command line tests see the rest (`tests/judges/test_adem_commands.py`)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tools.judge_training.validation import train_and_validate

from dialeval.core.errors import SettingError
from dialeval.io.ratings import digest_ratings, read_ratings
from dialeval.judges import training
from dialeval.judges.adem import load_adem, open_judge
from dialeval.judges.attacks import attack_systems, read_attacked
from dialeval.judges.schemas import Calibration, JudgeEncoder
from dialeval.judges.training import round_numbers, sample_rows, train
from dialeval.metrics.encoder_files import find_encoder
from judges.test_adem_commands import written
from judges.tiny_judges import invented_ratings
from tiny_encoder import write_encoder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))


def test_a_judge_knows_its_data_settings_and_encoder(tmp_path: Path) -> None:
    encoder = write_encoder(tmp_path / "encoder")
    rated = written(invented_ratings(60, sets=2), tmp_path / "rated.jsonl")
    made = train([rated], encoder=encoder, tokens=32, rank=2, licenses={"set1": "MIT"})
    assert made.weights.facts["data"] == [
        {"name": "set0", "rows": 30, "license": "not stated"},
        {"name": "set1", "rows": 30, "license": "MIT"},
    ]
    assert made.weights.facts["settings"]["rank"] == 2
    assert made.weights.encoder_digest == find_encoder(encoder).digest
    again = load_adem(made.weights.save(tmp_path / "judge"))
    assert again.digest == made.weights.digest
    assert list(again.facts) == ["data", "settings", "attacks", "trained_on"]
    assert again.facts["trained_on"] == sorted(set(digest_ratings(read_ratings(rated))))
    attacks = attack_systems(open_judge(tmp_path / "judge", encoder), read_attacked([rated]))
    assert {each.name: each.rows for each in attacks} == dict.fromkeys((each.name for each in made.attacks), 60)


def test_test_files_are_judged_and_not_learned_from(tmp_path: Path) -> None:
    encoder = write_encoder(tmp_path / "encoder")
    rated = written(invented_ratings(60, sets=2), tmp_path / "rated.jsonl")
    other = written(invented_ratings(30, sets=1, seed=3), tmp_path / "other.jsonl")
    rows = [{**json.loads(line), "dataset": "other"} for line in other.read_text().splitlines()]
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    both = train_and_validate([rated], [other], encoder, tokens=32)
    assert both.weights.digest == train([rated], encoder=encoder, tokens=32).weights.digest
    assert list(both.weights.facts["validation"]["sets"]) == ["set0", "set1", "other"]
    assert {"identity", "adem", "bleu-4", "rouge-l", "length"} <= set(both.weights.facts["validation"]["mean"])
    assert [each["name"] for each in both.weights.facts["data"]] == ["set0", "set1"]
    assert "mean of sets with references" in both.to_markdown()


def test_a_set_of_equal_ratings_and_one_of_two_contexts_can_be_left_out(tmp_path: Path) -> None:
    encoder = write_encoder(tmp_path / "encoder")
    flat, rated = invented_ratings(25, sets=1, seed=7), written(invented_ratings(60, sets=1), tmp_path / "rated.jsonl")
    flat.values["overall"][:] = 3.0
    text = written(flat, tmp_path / "flat.jsonl").read_text().replace('"set0"', '"flat"')
    (tmp_path / "flat.jsonl").write_text(text)
    rows = [
        {**json.loads(line), "context": [f"hello {number % 2}"]}
        for number, line in enumerate(rated.read_text().splitlines())
    ]
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for files in (["flat.jsonl", "rated.jsonl"], ["two.jsonl"]):
        card = train_and_validate([tmp_path / file for file in files], files[:0], encoder, tokens=32)
        assert "set0" in card.weights.facts["validation"]["sets"]


def test_numbers_in_the_file_are_rounded() -> None:
    assert round_numbers({"a": (0.123456, float("nan")), "b": [3, "x"]}) == {"a": [0.1235, None], "b": [3, "x"]}


def test_attacked_are_some_rows_with_a_context_and_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = invented_ratings(12)
    contexts = [[] if row < 2 else each for row, each in enumerate(ratings.contexts)]
    references = [[] if row > 9 else each for row, each in enumerate(ratings.references)]
    changed = replace(ratings, contexts=contexts, references=references)
    assert sample_rows(changed).responses == ratings.responses[2:10]
    assert sample_rows(replace(changed, contexts=[[]] * 12)).responses == ratings.responses, "no row has both"
    assert len(sample_rows(invented_ratings(501)).responses) == 500
    monkeypatch.setattr(training, "ATTACKED_ROWS", 5)
    places = [ratings.responses.index(text) for text in sample_rows(changed).responses]
    assert len(places) == 5
    assert places == sorted(set(places))
    assert places == [ratings.responses.index(text) for text in sample_rows(changed).responses], "drawn by a fixed seed"


def test_settings_are_reported_by_the_names_that_people_read(tmp_path: Path) -> None:
    encoder = write_encoder(tmp_path / "encoder")
    rated = written(invented_ratings(40, sets=2), tmp_path / "rated.jsonl")
    common = {
        "quality": "overall",
        "turns of the context": 3,
        "encoder": find_encoder(encoder).name,
        "encoder digest": find_encoder(encoder).digest,
        "tokens of a text": 32,
    }
    adem = train([rated], encoder=encoder, tokens=32, strength=2.0)
    assert adem.weights.facts["settings"] == {**common, "strength": 2.0, "response strength": 100.0, "rank": 8}
    assert (adem.command, adem.title) == ("dialeval.adem.train(...)", "A judge of dialogue responses")


def test_contexts_are_checked() -> None:
    with pytest.raises(SettingError, match="at least one turn"):
        train([], turns=0)


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_a_calibration_divides_by_no_0(beta: float) -> None:
    for case in ("both", "context", "reference"):
        constants = {name: (0.0, beta if name == case else 2.0) for name in ("both", "context", "reference")}
        if beta:
            assert msgspec.convert(constants, Calibration).both[1] in (1.0, 2.0)
        else:
            with pytest.raises(msgspec.ValidationError, match="a beta is 0"):
                msgspec.convert(constants, Calibration)


def test_numbers_of_a_saved_encoder_have_limits() -> None:
    for tokens in (0, 1 << 24):
        assert msgspec.convert({"name": "e", "digest": "d", "tokens": tokens}, JudgeEncoder).tokens == tokens
    for tokens in (-1, (1 << 24) + 1):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"name": "e", "digest": "d", "tokens": tokens}, JudgeEncoder)
