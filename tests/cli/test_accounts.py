"""Logs with accidents, as companies have them: what a user sees of what is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import dialeval as package
from conftest import Dialeval

QUESTIONS = ["How do I renew a book?", "When do you open?", "Where is the library?", "Can I pay by card?"]
REPLIES = [
    "You can renew it at the desk or online.",
    "We open at nine from Monday to Friday.",
    "It is next to the town hall, on the left.",
    "Yes, you can pay by card at the desk.",
]
CRASHES = 14


def chat(number: int, reply: str | None, **more: object) -> dict[str, object]:
    messages = [{"role": "user", "content": f"{QUESTIONS[number % 4]} ({number})"}]
    messages += [] if reply is None else [{"role": "assistant", "content": reply}]
    return {"messages": messages, **more}


def write(folder: Path, name: str, rows: list[Any]) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def reply(number: int, crashes: int = 0) -> str | None:
    """Give a short reply to what is asked; the first ones crash."""
    return None if number < crashes else REPLIES[number % 4]


@pytest.fixture(autouse=True)
def logs(tmp_path: Path) -> None:
    write(tmp_path, "full.jsonl", [chat(at, f"Sorry, I am not sure. {REPLIES[(at + 1) % 4]}") for at in range(40)])
    write(tmp_path, "crash.jsonl", [chat(at, reply(at, CRASHES)) for at in range(40)])


def accounts(done: Any) -> dict[str, Any]:
    systems: dict[str, Any] = json.loads(done.stdout)["systems"]
    return systems


def test_validate_counts_what_is_missing(dialeval: Dialeval) -> None:
    done = dialeval("validate", "crash.jsonl")
    assert done.returncode == 0
    assert "system crash: 40 conversations, 26 replies; 14 without a reply" in done.stdout
    assert "    user: How do I renew a book? (0)\n    reply (missing): " in done.stdout
    [account] = accounts(dialeval("validate", "crash.jsonl", "-f", "json")).values()
    assert {name: account[name] for name in ("conversations", "user_turns", "replies", "without_reply")} == {
        "conversations": 40,
        "user_turns": 40,
        "replies": 26,
        "without_reply": 14,
    }
    both = json.loads(dialeval("validate", "full.jsonl", "crash.jsonl", "-f", "json").stdout)
    assert [list(document["systems"]) for document in both] == [["full"], ["crash"]]


@pytest.mark.parametrize("jobs", [(), ("--jobs", "1")])
def test_a_bot_that_crashes_is_not_better(dialeval: Dialeval, tmp_path: Path, jobs: tuple[str, ...]) -> None:
    done = dialeval("score", "full.jsonl", "crash.jsonl", "-m", "judge,length", "-o", "run", *jobs)
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "crash: 40 conversations, 26 replies; 14 without a reply" in words
    if not jobs:  # a run in chunks keeps no rows to compare
        assert "crash often gives no reply 35% of its replies are missing or failed (full: 0%)" in words
        assert "crash is better" not in words
        assert "the same 40 dialogues" in words
    run = package.load(tmp_path / "run")
    assert run["crash"]["failure-rate"].mean == pytest.approx(14 / 40)
    assert run["full"]["failure-rate"].mean == 0
    judge = run["crash"]["judge"]
    assert (judge.units, judge.scored, judge.missing) == (40, 26, 14)
    account = run["crash"].account
    assert account is not None
    assert (account.conversations, account.replies, account.without_reply) == (40, 26, 14)


def test_complete_logs_have_no_failure_rate_and_no_account_line(dialeval: Dialeval) -> None:
    done = dialeval("score", "full.jsonl", "-m", "length")
    assert done.returncode == 0
    assert "failure-rate" not in done.stdout
    assert "conversations" not in done.stdout


def test_replies_of_gateways_and_nulls_are_failures(dialeval: Dialeval, tmp_path: Path) -> None:
    failed = ["", "Error 500: upstream timeout", None, "<html><head><title>502 Bad Gateway</title></head></html>"]
    rows = [
        {"context": [QUESTIONS[at % 4]], "response": failed[at % 4] if at < 8 else REPLIES[at % 4]} for at in range(24)
    ]
    write(tmp_path, "gateway.jsonl", rows)
    done = dialeval("score", "gateway.jsonl", "-m", "default,judge")
    words = " ".join(done.stdout.split())
    assert "gateway: 24 conversations, 16 replies; 2 without a reply, 2 empty, 4 errors" in words
    run = package.evaluate(tmp_path / "gateway.jsonl", metrics="judge")
    assert run["gateway"]["judge"].scored == 16


def test_requests_without_replies_are_refused(dialeval: Dialeval, tmp_path: Path) -> None:
    write(tmp_path, "requests.jsonl", [chat(at, None) for at in range(3)])
    done = dialeval("score", "requests.jsonl", "-m", "length")
    assert done.returncode == 2
    assert "holds 3 conversations, 0 replies; 3 without a reply: it may be the requests" in done.stderr


def test_invalid_rows_end_the_run_unless_they_are_skipped(dialeval: Dialeval, tmp_path: Path) -> None:
    lines = [json.dumps(chat(at, REPLIES[at % 4])) for at in range(6)]
    lines[2] = lines[2][:40]
    lines[4] = json.dumps({"messages": [{"role": "user", "content": "a?"}, {"role": "assistant", "content": 5}]})
    (tmp_path / "broken.jsonl").write_text("\n".join(lines))
    refused = dialeval("score", "broken.jsonl", "-m", "length")
    assert refused.returncode == 2
    assert "broken.jsonl:3: not JSON" in refused.stderr
    assert "broken.jsonl:5: messages[1] is a number" in refused.stderr
    for jobs in ((), ("--jobs", "1")):
        done = dialeval("score", "broken.jsonl", "-m", "length", "--skip-invalid", *jobs)
        assert done.returncode == 0
        assert "broken: 5 conversations, 4 replies; 2 skipped as invalid" in " ".join(done.stdout.split())
    listed = accounts(dialeval("validate", "broken.jsonl", "--skip-invalid", "-f", "json"))["broken"]
    assert (listed["skipped"], listed["skipped_requests"]) == (2, 1)
    assert [problem["line"] for problem in listed["problems"]] == [3, 5]


def test_roles_of_other_programs_are_mapped(dialeval: Dialeval, tmp_path: Path) -> None:
    messages = [{"role": "Shopper", "content": "a?"}, {"role": "Agent", "content": "b"}]
    write(tmp_path, "roles.jsonl", [{"messages": messages}])
    refused = dialeval("validate", "roles.jsonl")
    assert refused.returncode == 2
    assert "--role Shopper=user" in refused.stdout
    assert "1 conversation, 1 reply" in dialeval("validate", "roles.jsonl", "--role", "Shopper=user").stdout
    assert dialeval("validate", "roles.jsonl", "--role", "Shopper=buyer").returncode == 2


def test_gates_do_not_pass_on_missing_values(dialeval: Dialeval, tmp_path: Path) -> None:
    failed = dialeval("score", "crash.jsonl", "-m", "judge", "--fail-under", "judge=1.5", "-o", "crash")
    assert failed.returncode == 1
    assert "judge of crash is a value of 26 of 40: 14 failed or have none; --allow-missing 0.35" in failed.stderr
    allowed = ("--fail-under", "judge=1.5", "--allow-missing", "0.35")
    assert dialeval("score", "crash.jsonl", "-m", "judge", *allowed).returncode == 0
    assert dialeval("score", "full.jsonl", "-m", "judge", "-o", "full").returncode == 0
    for margin in ((), ("--margin", "judge=3")):
        gate = ("--no-worse-than", "full", "-m", "judge", *margin)
        refused = dialeval("compare", "crash", *gate)
        assert refused.returncode == 1
        assert "judge of crash is a value of 26 of 40" in refused.stderr
        assert dialeval("compare", "crash", *gate, "-f", "junit").stdout.count("<failure") >= 1
    baseline = dialeval("compare", "crash", "full", "-m", "judge", "--fail-under", "judge=1.5")
    assert baseline.returncode == 1
    assert "judge of crash is a value of 26 of 40: 14 failed or have none" in baseline.stderr
    assert "full" not in baseline.stderr
    runs = [package.load(tmp_path / name) for name in ("crash", "full")]
    with pytest.raises(AssertionError, match="judge of crash is a value of 26 of 40"):
        package.assert_no_worse(runs[0], runs[1], "judge")
    package.assert_no_worse(runs[0], runs[1], "judge", allow_missing=0.35)


def test_a_gate_does_not_pass_on_the_few_rows_that_the_baseline_answered(dialeval: Dialeval, tmp_path: Path) -> None:
    write(tmp_path, "old.jsonl", [chat(at, REPLIES[at % 4] if at < 9 else "") for at in range(40)])
    write(tmp_path, "new.jsonl", [chat(at, REPLIES[at % 4]) for at in range(40)])
    for name in ("old", "new"):
        assert dialeval("score", f"{name}.jsonl", "-m", "judge", "-o", name).returncode == 0
    gate = ("compare", "new", "--no-worse-than", "old", "-m", "judge")
    refused = dialeval(*gate)
    assert refused.returncode == 1
    assert "judge of old is a value of 9 of 40: 31 failed or have none" in refused.stderr
    assert dialeval(*gate, "--allow-missing", "0.8").returncode == 0


def test_gates_do_not_pass_on_dialogues_that_are_not_there(dialeval: Dialeval, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (tmp_path / "full.jsonl").read_text(encoding="utf-8").splitlines()]
    write(tmp_path, "short.jsonl", rows[CRASHES:])
    for name in ("full", "short"):
        assert dialeval("score", f"{name}.jsonl", "-m", "judge", "-o", name).returncode == 0
    refused = dialeval("compare", "short", "--no-worse-than", "full")
    assert (refused.returncode, "judge of short is of 26 dialogues, and that of full of 40" in refused.stderr) == (
        1,
        True,
    )
    assert dialeval("compare", "short", "--no-worse-than", "full", "--allow-missing", "0.35").returncode == 0
    assert dialeval("compare", "full", "--no-worse-than", "short").returncode == 0


def test_failures_lead_the_comparison_with_a_saved_run_that_has_none(dialeval: Dialeval) -> None:
    for name in ("full", "crash"):
        assert dialeval("score", f"{name}.jsonl", "-o", name).returncode == 0
    apart = dialeval("compare", "full", "crash").stdout.splitlines()
    assert apart[0] == "▼ crash often gives no reply"
    assert dialeval("score", "full.jsonl", "crash.jsonl", "-o", "both").returncode == 0
    assert dialeval("compare", "both").stdout.splitlines() == apart


def test_rows_that_only_one_system_has_values_of_decide_nothing(tmp_path: Path) -> None:
    @package.metric_of_rows("stated", better="higher")
    def stated(response: str) -> float | None:
        value = response.rpartition(" ")[2]
        return None if value == "-" else float(value)

    def rows(values: list[str]) -> list[dict[str, object]]:
        return [
            {"dialog_id": f"d{at}", "context": ["q"], "response": f"{at} {value}"} for at, value in enumerate(values)
        ]

    one = [str(2 + at % 5 / 10 if at < 38 else 4 + at % 5 / 10) for at in range(100)]
    other = ["-" if at < 38 else str(4.2 + at % 7 / 10) for at in range(100)]
    found = package.compare(package.evaluate({"v1": rows(one), "v2": rows(other)}, metrics=[stated]))
    [row] = found.differences
    assert (row.missing, row.left_out, found.verdict.kind) == ((0, 38), "system", "inconclusive")
    assert "v2 has fewer values than v1 (38 of 100 have no stated)" in str(found)


def test_slices_do_not_overlook_failures(dialeval: Dialeval, tmp_path: Path) -> None:
    for name in ("full", "crash"):
        rows = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        write(
            tmp_path, f"{name}.jsonl", [{**row, "topic": "early" if at < 20 else "late"} for at, row in enumerate(rows)]
        )
    run = package.evaluate(tmp_path / "full.jsonl", metrics="judge", keep="topic")
    run += package.evaluate(tmp_path / "crash.jsonl", metrics="judge", keep="topic")
    early, _ = package.compare_slices(run, "topic").slices
    left_out = {row.key: (row.missing, row.left_out) for row in early.differences}
    assert left_out["judge"] == ((0, 14), "system")


# Agents on the command line: trials, assertions about tool calls, and pairs of answers of other programs.


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


def test_how_trials_ended_and_the_report(dialeval: Dialeval, log: Path, tmp_path: Path) -> None:
    done = dialeval("score", str(log), "-m", "pass-hat-1,call-f1,trial-cost", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert "trials without a reward, which are not counted: 1 of 6" in done.stderr
    lines = [re.split(" {2,}", line.strip()) for line in done.stdout.splitlines()]
    assert ["llm_agent/m<i>", "3 of 5", "1", "user_stop 4, max_steps 2"] in lines, done.stdout
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
