"""Scores and fields that the rows carry: chats, rows, messages, tables of other tools, functions of fields."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
import evaluating
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.metrics.registry import registry


def chat(name: str, replies: int, **fields: Any) -> dict[str, Any]:
    turns = [("user", "Hi"), ("assistant", "Hello, how can I help?")] * replies
    return {"id": name, "messages": [{"role": role, "content": text} for role, text in turns], **fields}


CHATS = [
    chat("c1", 2, csat=5, channel="web", scores={"helpfulness": 0.9, "cost": 0.02}, thumbs=True),
    chat("c2", 1, csat=2, channel="app", scores=[{"name": "helpfulness", "value": 0.1}], thumbs="no"),
    chat("c3", 3, csat=None, channel="app", scores={"helpfulness": {"score": True}}, thumbs=""),
]


def score(rows: Any, metrics: Any, **more: Any) -> Any:
    return evaluating.evaluate(rows, metrics=metrics, **more)["system"]


def test_a_score_of_a_chat_counts_once_and_is_missing_once() -> None:
    result = score(CHATS, "score:csat(range=1:5,better=higher)")
    (estimate,) = result.values()
    assert (estimate.mean, estimate.scored, estimate.missing) == (3.5, 2, 1)
    np.testing.assert_array_equal(estimate.scores, [np.nan, 5, 2, np.nan, np.nan, np.nan])
    assert estimate.signature.metric == "score:csat(range=1:5)"


def test_all_scores_are_found_and_guesses_are_stated() -> None:
    run = dialeval.evaluate(CHATS, metrics="scores")
    assert "score:cost(better=lower,range=0:1)" in run.warnings[0]
    result = run["system"]
    assert sorted(result) == ["score:cost", "score:csat", "score:helpfulness", "score:thumbs"]
    assert result["score:helpfulness"].mean == pytest.approx(2 / 3)
    assert result["score:thumbs"].mean == 0.5
    low, high = result["score:thumbs"].interval or (-1, 2)
    assert 0 <= low < high <= 1


def test_scores_of_messages_are_those_of_replies() -> None:
    rows = [chat("a", 2), chat("b", 1)]
    rows[0]["messages"][1]["rating"] = 4
    rows[0]["messages"][3]["scores"] = {"rating": "2"}
    result = score(rows, "score:rating(range=1:5)")
    (estimate,) = result.values()
    np.testing.assert_array_equal(estimate.scores, [4, 2, np.nan])


def test_plain_rows_tables_and_chunks_agree(tmp_path: Path) -> None:
    rows = [{"response": f"reply {n}", "dialog_id": f"d{n // 2}", "judge.score": n % 3} for n in range(40)]
    nested = [{**row, "judge": {"score": row.pop("judge.score")}} for row in [dict(row) for row in rows]]
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in nested))
    table = tmp_path / "rows.csv"
    header = "response,dialog_id,judge_score\n"
    table.write_text(header + "".join(f"{r['response']},{r['dialog_id']},{r['judge.score']}\n" for r in rows))
    name = "score:judge.score(range=0:2)"
    whole = score(nested, name)[name]
    in_chunks = dialeval.evaluate(lines, metrics=name, execution=dialeval.Execution(row_scores=False, chunk_bytes=300))[
        "rows"
    ][name]
    of_table = dialeval.evaluate(table, metrics="score:judge_score(range=0:2)")["rows"]
    assert whole.interval == in_chunks.interval == next(iter(of_table.values())).interval
    assert whole.mean == in_chunks.mean == sum(n % 3 for n in range(40)) / 40


@pytest.mark.parametrize(
    ("metric", "error", "message"),
    [
        ("score:nope", NeedError, "no row has the score nope"),
        ("score:channel", DataError, "channel is the text 'web'; make it a number"),
        ("score:csat(range=5)", SettingError, "LOW:HIGH"),
        ("score:csat(range=1:3)", SettingError, "from 2 to 5, beyond its range 1:3"),
        ("score:csat(better=up)", SettingError, "better"),
    ],
)
def test_what_is_no_score_is_refused(metric: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        score(CHATS, metric)


def test_a_lower_cost_is_better_and_the_comparison_says_so() -> None:
    both = {
        "v1": [chat(f"c{n}", 1, cost=0.5 + n / 100) for n in range(12)],
        "v2": [chat(f"c{n}", 1, cost=0.2 + n / 100) for n in range(12)],
    }
    comparison = dialeval.compare(dialeval.evaluate(both, metrics="score:cost(range=0:)"))
    assert comparison.verdict.kind == "better"


def test_scores_of_another_tool_are_joined_by_id(tmp_path: Path) -> None:
    table = tmp_path / "judged.csv"
    table.write_text("conversation,system,quality,turn\nc1,,4,\nc2,,1,\nc9,,3,\n")
    run = dialeval.evaluate(
        CHATS, metrics="score:quality(range=1:5)", reading=dialeval.Reading(scores=table, key="conversation")
    )
    assert any("not in system are unused (1)" in line for line in run.warnings)
    (estimate,) = run["system"].values()
    assert (estimate.mean, estimate.missing) == (2.5, 1)
    rows = [{"conversation": "c1", "turn": 1, "quality": 2}, {"conversation": "c1", "turn": 2, "quality": 4}]
    by_turn = score(CHATS, "score:quality(range=1:5)", scores=rows, key="conversation")
    np.testing.assert_array_equal(next(iter(by_turn.values())).scores[:2], [2, 4])
    with pytest.raises(DataError, match="names none of the 3 dialogues"):
        score(CHATS, "score:quality", scores=[{"conversation": "x", "quality": 2}], key="conversation")
    with pytest.raises(DataError, match="add a column system"):
        dialeval.evaluate(
            {"a": CHATS, "b": CHATS}, metrics="score:quality", reading=dialeval.Reading(scores=rows, key="conversation")
        )


def test_scores_of_another_tool_are_joined_by_the_ids_of_replies(tmp_path: Path) -> None:
    rows = [{"dialogue_id": f"d{n // 2}", "id": n, "response": f"reply {n}"} for n in range(6)]
    table = tmp_path / "judged.csv"
    table.write_text("id,turn,ok,toxicity,note\n" + "".join(f"{n},{n % 2},yes,0.{n},fine\n" for n in (5, 4, 2, 1, 0)))
    result = score(rows, "scores", scores=table, key="id")
    assert sorted(result) == ["score:ok", "score:toxicity"]
    np.testing.assert_array_equal(result["score:toxicity"].scores, [0, 0.1, 0.2, np.nan, 0.4, 0.5])
    assert result["score:ok"].missing == 1
    with pytest.raises(DataError, match="names none of the 6 replies"):
        score(rows, "scores", scores=[{"id": 9, "ok": 1}], key="id")
    with pytest.raises(DataError, match="several replies with the same id, such as 1"):
        score([{**row, "id": 1} for row in rows], "scores", scores=table, key="id")


def test_names_of_scores_may_have_spaces(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("response,Thumbs Up\nhi,yes\nhello,No\n")
    run = dialeval.evaluate(table, metrics="score:Thumbs Up(range=0:1)")
    assert run["rows"]["score:Thumbs Up(range=0:1)"].mean == 0.5
    (name,) = dialeval.evaluate(table, metrics="scores")["rows"]
    assert registry().parse(name).better == "higher"


@dialeval.metric_of_rows("csat-share", better="higher", bounds=(0, 1))
def csat_share(csat: float) -> float:
    return csat / 5


@dialeval.metric_of_rows("polite-in-app")
def polite_in_app(response: str, channel: str = "web", calls: Any = None) -> float | None:
    return None if channel == "web" else float("help" in response)


def test_parameters_of_functions_are_fields_of_the_rows() -> None:
    result = score(CHATS, [csat_share, polite_in_app])
    np.testing.assert_array_equal(result["csat-share"].scores, [np.nan, 1.0, 0.4, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(result["polite-in-app"].scores, [np.nan, np.nan, 1, 1, 1, 1])
    with pytest.raises(NeedError, match="csat-share needs a field csat in responses"):
        score([{"response": "a"}], [csat_share])


def test_the_command_scores_fields_and_joins_tables(tmp_path: Path) -> None:
    log, table = tmp_path / "log.jsonl", tmp_path / "scores.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in CHATS))
    table.write_text("".join(json.dumps({"dialog_id": f"c{n}", "nps": n}) + "\n" for n in (1, 2, 3)))
    given = ["score", str(log), "-m", "score:csat(range=1:5),score:nps", "--scores", str(table), "-f", "json"]
    done = subprocess.run([sys.executable, "-m", "dialeval", *given], capture_output=True, text=True, check=True)
    metrics = json.loads(done.stdout)["systems"]["log"]["metrics"]
    assert {name: one["mean"] for name, one in metrics.items()} == {"score:csat(range=1:5)": 3.5, "score:nps": 2}
