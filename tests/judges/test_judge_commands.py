"""The command `judge` and the program that trains a judge, with a tiny encoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judges.test_adem_commands import run
from judges.test_dialogue_training import write_data
from judges.tiny_judges import tiny_dialogue_judge

CONTEXTS = [["hello there", "how are you ?"], ["the cat sat"], ["you know"]]
RESPONSES = ["i am fine", "a dog sat on a mat", "not the dog"]
REFERENCES = [["fine"], ["do you know ?"], ["i am"]]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "rows.jsonl"
    given = zip(CONTEXTS, RESPONSES, REFERENCES, strict=True)
    lines = [json.dumps({"context": turns, "response": said, "reference": texts}) for turns, said, texts in given]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_scores_are_those_of_the_judge(rows: Path, tmp_path: Path) -> None:
    judge = tiny_dialogue_judge(tmp_path)
    shown = json.loads(run("score", rows, "-m", "judge", "--judge-dir", tmp_path / "judge", "-f", "json").stdout)
    expected = judge.score(CONTEXTS, RESPONSES, REFERENCES)
    assert json.dumps(float(expected.mean()))[:8] in json.dumps(shown)
    assert "judge/relevance" in json.dumps(shown)


def test_attacks_are_shown_as_a_table_and_as_json(rows: Path, tmp_path: Path) -> None:
    tiny_dialogue_judge(tmp_path)
    given = [rows, "--judge-dir", tmp_path / "judge"]
    attacks = json.loads(run("judge", "attack", *given, "-f", "json").stdout)["attacks"]
    assert {each["name"] for each in attacks} == {"reversed", "dull", "random", "context", "reference"}
    assert "as high" in run("judge", "attack", *given).stdout


def test_training_writes_a_judge_with_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    from tools.train_judge import main

    torch.set_num_threads(1)
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    write_data(tmp_path)
    given = (
        *("--dialogues", tmp_path / "chats.jsonl", "--ratings", tmp_path / "one.jsonl", tmp_path / "two.jsonl"),
        *("--encoder", tmp_path / "encoder", "-o", tmp_path / "made", "--steps", 2, "--batch-size", 2),
        *("--rating-steps", 2, "--rank", 2, "--license", "chats=MIT", "--breakdown", "two"),
    )
    main([str(each) for each in given])
    card = (tmp_path / "made" / "README.md").read_text()
    assert capsys.readouterr().out == card + "\n"
    assert "| chats | dialogues | MIT |" in card
    assert "Made by: `python tools/train_judge.py --dialogues" in card
    assert "- steps: 2" in card
    judged = ["score", tmp_path / "one.jsonl", "-m", "judge", "--judge-dir", tmp_path / "made"]
    assert "judge/relevance" in run(*judged, "-f", "json").stdout


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tools.train_judge import main

    with pytest.raises(SystemExit, match=r"train_judge: .*no\.jsonl: there is no such file"):
        main(["--dialogues", "no.jsonl", "--ratings", "no.jsonl", "-o", str(tmp_path / "made")])
