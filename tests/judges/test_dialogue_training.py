"""Making a judge that reads context and response together: what is left out, the scale, the whole way on tiny data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.judges.judge import BreakdownScale, DialogueJudge, compute_scores, load_judge
from tiny_encoder import WORDS, write_encoder


def rated(name: str, rows: int, seed: int) -> list[dict[str, Any]]:
    dice = np.random.default_rng(seed)
    words = WORDS[4:-1]

    def text() -> str:
        return " ".join(dice.choice(words, 4).tolist())

    return [
        {
            "dataset": name,
            "context": [text(), f"{text()} {row}"],
            "response": text(),
            "reference": text() if row % 2 else None,
            "system": "ab"[row % 2],
            "scores": {"overall": dice.integers(1, 6, 3).tolist()},
            "scale": [1, 5],
        }
        for row in range(rows)
    ]


def write_data(folder: Path) -> dict[str, Any]:
    dice = np.random.default_rng(0)
    turns = [[" ".join(dice.choice(WORDS[4:-1], 5).tolist()) for _ in range(4)] for _ in range(12)]
    lines = [json.dumps({"turns": dialogue, "replies": ["i am fine"]}) for dialogue in turns]
    (folder / "chats.jsonl").write_text("\n".join(lines) + "\n")
    for name, seed in (("one", 1), ("two", 2), ("test", 3)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rated(name, 24, seed))) + "\n")
    write_encoder(folder / "encoder")
    return {
        "dialogues": [folder / "chats.jsonl"],
        "ratings": [folder / "one.jsonl", folder / "two.jsonl"],
        "tests": [folder / "test.jsonl"],
        "encoder": folder / "encoder",
        "steps": 3,
        "batch_size": 4,
        "rating_steps": 3,
        "rating_rows": 8,
        "breakdown": "two",
        "beside": 2,
        "rank": 2,
    }


def test_from_dialogues_and_ratings_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from tools.judge_training.dialogue_training import make_dialogue_judge

    torch.set_num_threads(1)
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    asked, lines = write_data(tmp_path), list[str]()
    made = make_dialogue_judge(**asked, folder=tmp_path / "a", licenses={"one": "MIT"}, log=lines.append)
    made.save(tmp_path / "a")
    assert lines[0] == "chats: 12 of 12 dialogues share nothing with a rated context"
    assert [line for line in lines if "rated rows" in line] == [
        "all: 48 rated rows",
        "without one: 24 rated rows",
        "without two: 24 rated rows",
        "without two of a: 36 rated rows",
        "without two of b: 36 rated rows",
    ]
    saved = load_judge(tmp_path / "a")
    assert saved.digest == made.digest
    assert saved.changes["0.up.weight.left"].shape[1] == 2
    assert [(each["name"], each["license"]) for each in saved.facts["data"]] == [
        ("chats", "not stated"),
        ("one", "MIT"),
        ("two", "not stated"),
    ]
    table = saved.facts["validation"]["sets"]
    for name in ("one", "two", "test"):
        assert (table[name]["judge"]["rows"], table[name]["judge with references"]["rows"]) == (24, 12)
    mean = np.mean([row["judge"]["spearman"] for row in table.values()])
    assert saved.facts["validation"]["mean"]["judge"] == pytest.approx(mean, abs=1e-3)
    assert {each["name"] for each in saved.facts["attacks"]} >= {"reversed", "dull", "random", "context"}
    labels = saved.facts["breakdowns"]
    assert (labels["set"], list(labels["systems"])) == ("two", ["a", "b"])
    assert {"judge", "floor/always-X", "floor/mean-of-development-set", "ceiling/oracle"} <= set(labels["systems"]["a"])
    assert saved.breakdown != BreakdownScale()
    # What was kept on the way is taken up: nothing is trained again, and the judge is the same.
    lines.clear()
    (tmp_path / "a" / "training" / "run.safetensors").unlink()
    again = make_dialogue_judge(**asked, folder=tmp_path / "a", licenses={"one": "MIT"}, log=lines.append)
    assert lines == []
    assert again.digest == made.digest
    with pytest.raises(SettingError, match="other settings or data"):
        make_dialogue_judge(**{**asked, "seed": 1}, folder=tmp_path / "a")
    found = DialogueJudge(tmp_path / "a", tmp_path / "encoder").score([["hello"]], ["how are you ?"], [[]])
    assert 1 < found[0] < 5


def test_what_cannot_be_learned_from_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tools.judge_training.dialogue_training import make_dialogue_judge

    asked = write_data(tmp_path)
    (tmp_path / "chats.jsonl").write_text('{"turns": ["hello"]}\n')
    with pytest.raises(SettingError, match="fewer than two pairs"):
        make_dialogue_judge(**asked, folder=tmp_path / "a")
    with pytest.raises(SettingError, match="no rated set to train on is called 'test'"):
        make_dialogue_judge(**{**asked, "breakdown": "test"}, folder=tmp_path / "a")


def test_the_scale_says_what_people_said() -> None:
    pytest.importorskip("torch")
    from tools.judge_training.dialogue_training import fitted_scale

    dice = np.random.default_rng(0)
    rating, rank, closest = dice.normal(size=(3, 4000))
    heads = {"rating": rating[:, None], "rank": 5 * rank[:, None]}
    closest[::2] = np.nan
    raw = rating + 0.25 * rank
    given = 1 + 4 / (1 + np.exp(-(0.3 + 0.8 * raw)))
    scale = fitted_scale(heads, closest, given, np.zeros(4000, np.int64), np.ones(4000, np.bool_))
    assert (scale.rank, scale.alpha, scale.beta) == pytest.approx((0.05, 0.3, 0.8), abs=0.02)
    assert scale.closest == pytest.approx(0.5 * rating.std() / np.nanstd(closest), rel=0.01)
    np.testing.assert_allclose(compute_scores(scale, rating, 5 * rank, None), given, atol=0.05)
    own = ~np.isnan(closest)
    with_references = compute_scores(scale, rating, 5 * rank, closest)
    assert with_references[own].mean() == pytest.approx(given[own].mean(), abs=0.02)
    assert with_references[own].std() == pytest.approx(given[own].std(), abs=0.05)
