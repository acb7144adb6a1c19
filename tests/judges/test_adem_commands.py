"""The command `adem`, and scores of its judges: train and attack with a tiny encoder; what a new user gets wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dialeval.cli.main import dialeval_command
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.io.ratings import Ratings
from judges.tiny_judges import invented_ratings
from tiny_encoder import write_encoder


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(dialeval_command, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def written(ratings: Ratings, path: Path) -> Path:
    rows = zip(
        ratings.datasets,
        ratings.contexts,
        ratings.responses,
        ratings.references,
        ratings.values["overall"],
        strict=True,
    )
    lines = [
        json.dumps({"dataset": name, "context": c, "response": said, "reference": r, "scores": value, "scale": [1, 5]})
        for name, c, said, r, value in rows
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ratings, an encoder and a judge that was trained by the command."""
    folder = tmp_path_factory.mktemp("adem")
    write_encoder(folder / "encoder")
    written(invented_ratings(120), folder / "rated.jsonl")
    written(invented_ratings(60, sets=1, seed=5), folder / "other.jsonl")
    text = (folder / "other.jsonl").read_text().replace('"set0"', '"other"')
    (folder / "other.jsonl").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIALEVAL_CACHE", str(folder / "cache"))
        run(*training(folder, "judge"), "--license", "set0=MIT")
    return folder


def training(folder: Path, output: str) -> list[object]:
    given = ["--ratings", folder / "rated.jsonl", "--encoder", folder / "encoder"]
    return ["adem", "train", *given, "-o", folder / output, "--strength", 3, "--tokens", 32]


@pytest.fixture(autouse=True)
def own_cache(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(place / "cache"))


def test_training_writes_a_judge_with_its_card_the_same_every_time(place: Path) -> None:
    printed = run(*training(place, "again")).stdout
    for name in ("judge.safetensors",):
        assert (place / "again" / name).read_bytes() == (place / "judge" / name).read_bytes()
    facts = json.loads((place / "judge" / "judge.json").read_text())
    assert facts["data"][0] == {"name": "set0", "rows": 40, "license": "MIT"}
    assert facts["data"][1]["license"] == "not stated"
    assert "reversed" in printed
    card = (place / "judge" / "README.md").read_text()
    for words in (
        "| set0 | 40 | MIT |",
        "## Results",
        "## Weaknesses",
        "words reversed",
        "| reversed |",
    ):
        assert words in card


def test_a_judge_is_not_corrected_by_the_ratings_that_it_learned_from(place: Path, tmp_path: Path) -> None:
    judge = ["--judge-dir", place / "judge"]
    for name, refused in (("rated.jsonl", True), ("other.jsonl", False)):
        run("score", place / name, "-m", "adem", *judge, "-o", tmp_path / "run", "--force")
        given = ["estimate", tmp_path / "run", "--human", place / name, "--judge", "adem", "--assume-random"]
        if refused:
            with pytest.raises(SettingError, match="rated rows, so it has seen these ratings"):
                run(*given)
        else:
            run(*given)


def test_scoring_with_a_judge(place: Path) -> None:
    rows = place / "other.jsonl"
    judge = ["--judge-dir", place / "judge"]
    done = run("score", rows, "-m", "adem", *judge, "-f", "json", "-o", place / "run")
    found = json.loads(done.stdout)["systems"]["other"]["metrics"]["adem"]
    assert (found["units"], found["scored"]) == (60, 60)
    assert 1 <= found["mean"] <= 5
    assert "|judge:adem@" in found["signature"]
    assert (place / "run" / "run.json").is_file()
    shutil.copytree(place / "judge", place / "elsewhere" / "judge")
    with pytest.raises(SettingError, match="there is no encoder 'encoder'"):
        run("score", rows, "-m", "adem", "--judge-dir", place / "elsewhere" / "judge")


def test_attacking_a_judge(place: Path) -> None:
    judge = ["--judge-dir", place / "judge"]
    found = json.loads(run("adem", "attack", place / "other.jsonl", *judge, "-f", "json").stdout)["attacks"]
    assert {each["name"] for each in found} == {"reversed", "dull", "random", "context", "reference"}
    shown = run("adem", "attack", *judge)
    assert "reversed" in shown.stdout


def test_what_goes_wrong_is_said(place: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        run("adem", "train", "--ratings", place / "none.jsonl", "--encoder", place / "encoder", "-o", place / "x")
    with pytest.raises(DataError, match=r"judge\.json: there is no such file"):
        run("adem", "attack", place / "other.jsonl", "--judge-dir", place)
    (place / "bare.txt").write_text("hello\n")
    with pytest.raises(NeedError, match="adem needs"):
        run("score", place / "bare.txt", "-m", "adem", "--judge-dir", place / "judge")
    for given, missing in (([], "--ratings"), (["--ratings", "other.jsonl"], "--output")):
        done = CliRunner().invoke(dialeval_command, ["adem", "train", *given])
        assert done.exit_code == 2
        assert missing in done.output


def test_a_folder_that_cannot_be_written_is_found_before_the_training(place: Path) -> None:
    (place / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        run("adem", "train", "--ratings", place / "none.jsonl", "-o", place / "file" / "judge")


def test_what_is_not_installed_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialeval.metrics.encoder_files.find_spec", lambda _: None)
    with pytest.raises(SettingError, match="needs tokenizers and safetensors; run: pip install"):
        run("adem", "attack")
