"""Labels of people in two systems' logs of different length and order, from files to verdicts, slices and agreement."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval as package
from conftest import Dialeval
from realistic_logs import make_log, make_prompts

PROMPTS = make_prompts(60, 3)
LOGS = {"old": make_log(PROMPTS, 1), "new": make_log(PROMPTS, 2).reordered().only(range(50))}
RATES = {"old": 0.5, "new": 0.2}


@pytest.fixture
def logs(tmp_path: Path) -> dict[str, list[dict[str, Any]]]:
    """Write chats whose replies have labels but for every tenth, and ratings by others; return the chats."""
    found, rated = {}, []
    for name, log in LOGS.items():
        chance = random.Random(name)
        chats = [json.loads(line) for line in log.openai(tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for number, message in enumerate(each for chat in chats for each in chat["messages"]):
            if message["role"] == "assistant" and number % 20 != 1:
                wrong = chance.random() < RATES[name]
                message["labels"] = {"error": ["repetition"] if wrong else [], "polite": chance.random() < 0.7}
        lines = "".join(json.dumps(chat) + "\n" for chat in chats)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
        for chat in chats:
            said = [each for each in chat["messages"] if each["role"] == "assistant" and "labels" in each]
            for message in said:
                other = message["labels"]["polite"] if chance.random() < 0.9 else not message["labels"]["polite"]
                row = {"dialog_id": chat["id"], "system": name, "response": message["content"]}
                rated.append({**row, "scores": {"polite": int(other)}})
        found[name] = chats
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated), encoding="utf-8")
    return found


def labels_of(chats: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The labels of all replies that have some."""
    return [each["labels"] for chat in chats for each in chat["messages"] if "labels" in each]


def test_rates_differences_and_slices(dialeval: Dialeval, tmp_path: Path, logs: dict[str, Any]) -> None:
    wanted = "labels,label:error=repetition(better=lower)"
    scored = dialeval("score", "old.jsonl", "new.jsonl", "-m", wanted, "--by", "topic", "-o", "run")
    assert scored.returncode == 0, scored.stderr
    run = package.load(tmp_path / "run")
    name = "label:error=repetition(better=lower)"
    for system, chats in logs.items():
        given = labels_of(chats)
        estimate = run[system][name]
        assert estimate.scored == len(given) < estimate.units
        assert estimate.mean == pytest.approx(np.mean([each["error"] == ["repetition"] for each in given]))
        assert run[system]["label:polite"].mean == pytest.approx(np.mean([each["polite"] for each in given]))
        assert run[system]["labels"].mean == pytest.approx(len(given) / estimate.units)
        assert estimate.interval_by is not None
        assert estimate.interval_by.method == "wilson"
    found = dialeval("compare", "run", "-m", f"{name},label:polite", "--by", "topic", "-f", "json")
    assert found.returncode == 0, found.stderr
    document = json.loads(found.stdout)
    by_key = {row["key"]: row for row in document["differences"]}
    difference = run["new"][name].mean - run["old"][name].mean
    assert by_key[name]["difference"] == pytest.approx(difference, abs=0.1), "over the dialogues in common"
    assert by_key[name]["adjusted_p"] < 0.01
    assert by_key["label:polite"]["adjusted_p"] > 0.01
    page = dialeval("report", "run", "--save", "report.html")
    assert page.returncode == 0, page.stderr
    assert name in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_labels_of_a_run_agree_with_ratings(dialeval: Dialeval, logs: dict[str, Any]) -> None:
    assert dialeval("score", "old.jsonl", "new.jsonl", "-m", "labels", "-o", "run").returncode == 0
    found = dialeval(
        *("agreement", "run", "--human", "people.jsonl", "--quality", "polite"),
        *("--labels", "-m", "label:polite", "-f", "json"),
    )
    assert found.returncode == 0, found.stderr
    fit = json.loads(found.stdout)["metrics"]["label:polite"]
    assert fit["n"] == sum(len(labels_of(chats)) for chats in logs.values())
    assert fit["statistics"]["agreement"]["value"] == pytest.approx(0.9, abs=0.07)


def test_a_gate_on_a_label(dialeval: Dialeval, logs: dict[str, Any]) -> None:
    gates = ("--fail-over", "label:error=repetition=0.4", "--fail-over", "label:error=other=0.1")
    held, broken = (
        dialeval("score", name, "-m", "labels,label:error=other", *gates) for name in ("new.jsonl", "old.jsonl")
    )
    assert (held.returncode, broken.returncode) == (0, 1), held.stderr + broken.stderr
    assert "label:error=repetition of old" in broken.stderr
