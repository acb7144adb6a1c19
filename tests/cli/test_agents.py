"""Agents on the command line: trials, assertions about tool calls, and pairs of answers of other programs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import Dialeval

RULES = '[[check]]\nrule = "before"\ncall = "verify"\nbefore = "cancel"\n'


def simulation(task: int, trial: int, reward: float | None, calls: list[str]) -> dict[str, Any]:
    made = [{"id": str(at), "name": name, "arguments": {}} for at, name in enumerate(calls)]
    parts = {"DB": 1.0, "NL": reward}
    return {
        "id": f"{task}-{trial}",
        "task_id": str(task),
        "trial": trial,
        "termination_reason": "user_stop" if task else "max_steps",
        "agent_cost": 0.25,
        "reward_info": None if reward is None else {"reward": reward, "reward_breakdown": parts},
        "messages": [
            {"role": "user", "content": "Cancel it."},
            {"role": "assistant", "content": None, "tool_calls": made},
            {"role": "assistant", "content": "Done."},
        ],
    }


def document(*simulations: dict[str, Any], llm: str = "m<i>") -> str:
    actions = [{"name": "verify", "arguments": {}, "requestor": "assistant"}, {"name": "cancel", "arguments": {}}]
    tasks = [{"id": str(task), "evaluation_criteria": {"actions": actions}} for task in range(3)]
    info = {"agent_info": {"implementation": "llm_agent", "llm": llm}}
    return json.dumps({"info": info, "tasks": tasks, "simulations": simulations})


GOOD, BAD = ["verify", "cancel"], ["cancel"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "results.json"
    first = [simulation(task, 0, 1.0, GOOD) for task in range(3)]
    second = [simulation(task, 1, reward, BAD) for task, reward in enumerate((0.0, 0.0, None))]
    path.write_text(document(*first, *second))
    return path


def test_the_grid_the_reasons_and_the_report(dialeval: Dialeval, log: Path, tmp_path: Path) -> None:
    done = dialeval("score", str(log), "-m", "pass-hat-1,call-f1,trial-cost", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert "trials without a reward, which are not counted: 1 of 6" in done.stderr
    for cells in (["0", "✓✗ NL, max_steps"], ["1", "✓✗ NL"], ["2", "✓?"]):
        lines = [re.split(" {2,}", line.strip()) for line in done.stdout.splitlines()]
        assert cells in lines, done.stdout
    assert dialeval("report", "run", "--save", "report.html").returncode == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "NL" in page
    assert page.count('class="cell f"') == 2
    assert "llm_agent/m&lt;i&gt;" in page
    assert "m<i>" not in page
    values = json.loads(dialeval("score", str(log), "-m", "pass-hat-1,call-f1,trial-cost", "-f", "json").stdout)
    metrics = values["systems"]["llm_agent/m<i>"]["metrics"]
    assert metrics["pass-hat-1"]["mean"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert metrics["call-f1"]["mean"] == pytest.approx(2 * 9 / (9 + 12))
    assert (metrics["trial-cost"]["mean"], metrics["trial-cost"]["scored"]) == (0.25, 6)


def test_assertions_are_a_gate(dialeval: Dialeval, log: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text(RULES)
    asked = ("score", str(log), "--checks", "rules.toml", "-m", "call-assertions")
    done = dialeval(*asked, "--fail-under", "call-assertions=0.5")
    assert done.returncode == 0, done.stderr
    assert dialeval(*asked, "--fail-under", "call-assertions=0.6").returncode == 1
    means = json.loads(dialeval(*asked, "-f", "json").stdout)["systems"]["llm_agent/m<i>"]["metrics"]
    assert means["call-assertions/before-verify-cancel"]["mean"] == 0.5
    (tmp_path / "rules.toml").write_text("[[check]]\nrule = 'never'\ncall = 'f'\n")
    failed = dialeval(*asked)
    assert failed.returncode == 2
    assert "rules.toml" in failed.stderr


def test_agents_of_several_files_are_called_by_agent_and_model_in_a_folder(
    dialeval: Dialeval, log: Path, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    for name, llm in (("one", "m"), ("two", "n")):
        (tmp_path / "logs" / f"{name}.json").write_text(log.read_text().replace("m<i>", llm))
    values = json.loads(dialeval("score", "logs", "-m", "pass-hat-1", "-f", "json").stdout)
    assert list(values["systems"]) == ["llm_agent/m", "llm_agent/n"]
    (tmp_path / "logs" / "two.json").write_text((tmp_path / "logs" / "one.json").read_text())
    failed = dialeval("score", "logs", "-m", "pass-hat-1")
    assert failed.returncode == 2
    assert "NAME=PATH" in failed.stderr


CHAT = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello there"}]
ARENA = {"question_id": "q", "model_a": "x", "model_b": "y", "conversation_a": CHAT, "conversation_b": CHAT}
MT = {"question_id": 81, "model_1": "x", "model_2": "y", "judge": ["j", "pair-v2"], "turn": 1}
HARD = {"uid": "q", "model": "x", "baseline": "y", "judge": "j"}
ALPACA = {"instruction": "q", "output_1": "a b", "generator_1": "x", "output_2": "c", "generator_2": "y"}

PAIRS: dict[str, tuple[list[dict[str, Any]], tuple[int, int, int]]] = {
    "Chatbot Arena": (
        [ARENA | {"winner": winner} for winner in ("model_a", "model_a", "model_b", "tie", "tie (bothbad)")],
        (2, 2, 1),
    ),
    "MT-bench": (
        [
            MT | {"g1_winner": first, "g2_winner": second}
            for first, second in (
                ("model_1", "model_1"),
                ("model_1", "model_2"),
                ("tie", "tie"),
                ("model_2", "model_2"),
                ("error", "model_1"),
            )
        ],
        (1, 2, 1),
    ),
    "arena-hard": (
        [HARD | {"games": [{"score": a}, {"score": b}]} for a, b in (("B>A", "A>>B"), ("A>B", "A=B"))],
        (2, 1, 1),
    ),
    "AlpacaEval": ([ALPACA | {"preference": value} for value in (1.0, 1.2, 2.0, 1.5)], (2, 1, 1)),
}


@pytest.mark.parametrize("program", PAIRS)
def test_pairs_of_other_programs_are_ranked(dialeval: Dialeval, tmp_path: Path, program: str) -> None:
    rows, expected = PAIRS[program]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = dialeval("rank", "pairs.jsonl", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert ("not decided" in done.stderr) == (program == "MT-bench")
    assert tuple(json.loads(done.stdout)["between"]["x"]["y"]) == expected
    refused = dialeval("score", "pairs.jsonl")
    assert refused.returncode == 2
    assert "dialeval rank" in refused.stderr
    assert refused.stderr.count("\n") <= 3, "one message for all rows"


def test_formats_say_what_was_seen(dialeval: Dialeval) -> None:
    printed = dialeval("formats").stdout
    assert "tau2-bench: a simulation of tau2-bench (read in a real file" in printed
    assert "rasa: a tracker of Rasa (read in a real file: Rasa 3)" in printed
    assert "rasa-events: an event of Rasa's event broker (from documentation, not read in a real file)" in printed


def test_an_unreadable_file_ends_in_one_message_with_a_field_to_try(dialeval: Dialeval, tmp_path: Path) -> None:
    row = {"ans_id": "x", "model": "m", "tstamp": 3.5, "uid": "u", "answer_text": "Here is the answer to that."}
    (tmp_path / "log.jsonl").write_text((json.dumps(row) + "\n") * 500)
    failed = dialeval("score", "log.jsonl")
    assert failed.returncode == 2
    assert "--field response=answer_text" in failed.stderr
    assert failed.stderr.count("log.jsonl:") == 1
    assert "and 499 more rows" in failed.stderr
