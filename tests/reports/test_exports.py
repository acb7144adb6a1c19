"""Exports of a run: they hold its scores and intervals, keep the rules of their formats, and can be read back."""

from __future__ import annotations

import csv
import json
import math
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

import dialeval
from conftest import Dialeval
from dialeval.core.errors import DataError, SettingError, collect_warnings
from dialeval.io.reading import read_responses
from dialeval.reports.exports import EXPORTS, export_run

DATE = datetime(2026, 1, 2, tzinfo=timezone.utc)


def chat(number: int, *said: str) -> dict[str, Any]:
    roles = ("user", "assistant") * len(said)
    return {
        "dialog_id": f"c{number}",
        "messages": [{"role": r, "content": text} for r, text in zip(roles, said, strict=False)],
    }


LOGS = {
    "old/v1": [chat(n, "When?", "At nine.", "And back?", f"At {n} o'clock.") for n in range(4)],
    "new": [*(chat(n, "When?", "=cmd|' /C calc'!A0", "And back?", f"It is {n}.") for n in range(3)), chat(3, "When?")],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dialeval.Run:
    folder = tmp_path_factory.mktemp("run")
    with collect_warnings():
        dialeval.evaluate(LOGS, metrics="length,distinct-2,failure-rate").save(folder)
        return dialeval.load(folder)


def check(document: Any, required: dict[str, Any]) -> None:
    """Check required fields and their types; a list is of documents."""
    for name, kind in required.items():
        assert name in document, name
        value = document[name]
        if isinstance(kind, dict):
            check(value, kind)
        elif isinstance(kind, list):
            assert value
            for item in value:
                check(item, kind[0])
        else:
            assert isinstance(value, kind), (name, value)


AGGREGATE: dict[str, Any] = {
    "schema_version": str,
    "evaluation_id": str,
    "retrieved_timestamp": str,
    "source_metadata": {"source_type": str, "source_organization_name": str, "evaluator_relationship": str},
    "eval_library": {"name": str, "version": str},
    "model_info": {"name": str, "id": str},
    "evaluation_results": [
        {
            "evaluation_name": str,
            "source_data": {"dataset_name": str, "source_type": str},
            "metric_config": {
                "lower_is_better": bool,
                "score_type": str,
                "min_score": (int, float),
                "max_score": (int, float),
            },
            "score_details": {"score": (int, float)},
        }
    ],
}
"""Required fields of an aggregate record of Every Eval Ever; a continuous score needs both ends of its range."""
SAMPLE: dict[str, Any] = {
    "schema_version": str,
    "evaluation_id": str,
    "model_id": str,
    "evaluation_name": str,
    "sample_id": str,
    "interaction_type": str,
    "input": {"raw": str, "reference": list},
    "answer_attribution": list,
    "evaluation": {"score": (int, float), "is_correct": (bool, type(None))},
}
ALLOWED = {*AGGREGATE, "evaluation_timestamp", "detailed_evaluation_results"}


def test_records_of_every_eval_ever_keep_its_schema(run: dialeval.Run) -> None:
    files = export_run(run, "every-eval-ever", DATE)
    assert set(files) == {"old-v1.json", "old-v1_samples.jsonl", "new.json", "new_samples.jsonl"}
    record = json.loads(files["old-v1.json"])
    check(record, AGGREGATE)
    assert record.keys() <= ALLOWED
    assert record["evaluation_id"] == f"dialeval/old/v1/{DATE.timestamp():.0f}"
    assert record["source_metadata"]["evaluator_relationship"] in (
        "first_party",
        "third_party",
        "collaborative",
        "other",
    )
    samples = [json.loads(line) for line in files["old-v1_samples.jsonl"].splitlines()]
    assert record["detailed_evaluation_results"]["total_rows"] == len(samples)
    by_name = {result["evaluation_name"]: result for result in record["evaluation_results"]}
    own = run["old/v1"]["length"]
    details = by_name["length"]["score_details"]
    assert (details["score"], details["uncertainty"]["num_samples"]) == (own.mean, own.scored)
    interval = details["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"]) == own.interval
    assert by_name["failure-rate"]["metric_config"]["lower_is_better"] is True
    for result in by_name.values():
        config = result["metric_config"]
        assert config["min_score"] <= result["score_details"]["score"] <= config["max_score"]
        texts = {**config["additional_details"], **result["score_details"]["details"]}
        assert all(isinstance(value, str) for value in texts.values())
    for sample in samples:
        check(sample, SAMPLE)
        assert sample["evaluation_id"] == record["evaluation_id"]
        is_single = sample["interaction_type"] == "single_turn"
        assert (sample["output"] is None, sample["messages"] is None) == (not is_single, is_single)


@pytest.mark.parametrize("form", ["every-eval-ever", "inspect"])
def test_an_export_is_read_back(run: dialeval.Run, form: str, tmp_path: Path) -> None:
    name = {"every-eval-ever": "old-v1_samples.jsonl", "inspect": "old-v1.json"}[form]
    (tmp_path / name).write_bytes(export_run(run, form, DATE)[name])
    with collect_warnings():
        [rows] = read_responses(tmp_path / name)
    messages = [message for log in LOGS["old/v1"] for message in log["messages"]]
    assert rows.system == "old/v1"
    assert set(rows.responses) == {message["content"] for message in messages if message["role"] == "assistant"}
    assert rows.account.scores == 3 * 8


def test_scores_of_langfuse_name_their_traces_and_do_not_change(run: dialeval.Run) -> None:
    [batch] = [json.loads(content)["batch"] for content in export_run(run, "langfuse-scores", DATE).values()]
    assert {event["type"] for event in batch} == {"score-create"}
    assert {event["body"]["traceId"] for event in batch} == {"c0", "c1", "c2", "c3"}
    ids = [event["body"]["id"] for event in batch]
    assert len(set(ids)) == len(ids)
    again = json.loads(export_run(run, "langfuse-scores")["scores.json"])["batch"]
    assert [event["body"]["id"] for event in again] == ids
    turns = [event for event in batch if event["body"]["name"] == "length"]
    assert turns[0]["body"]["value"] == run["old/v1"]["length"].scores[0]  # type: ignore[index]


def test_no_export_has_a_number_that_is_none(run: dialeval.Run) -> None:
    for form in EXPORTS:
        for name, content in export_run(run, form, DATE).items():
            if name.endswith(".json"):
                json.loads(content, parse_constant=pytest.fail)
    metrics = {each["key"]: each["value"] for each in json.loads(export_run(run, "mlflow")["new.json"])["metrics"]}
    assert metrics["length/mean"] == run["new"]["length"].mean
    assert all(math.isfinite(value) for value in metrics.values())
    table = json.loads(export_run(run, "wandb")["scores.table.json"])
    assert {len(row) for row in table["data"]} == {len(table["columns"])}


def test_tables_and_tasks(run: dialeval.Run) -> None:
    files = export_run(run, "csv")
    rows = list(csv.DictReader(files["scores.csv"].decode().splitlines()))
    assert len(rows) == 15
    assert not [row for row in rows if row["response"].startswith("=")], "no spreadsheet computes a reply"
    [tasks] = map(json.loads, export_run(run, "label-studio").values())
    first = tasks[0]["data"]
    assert [turn["author"] for turn in first["dialogue"]] == ["user", "assistant"]
    numbers = {each["from_name"]: each["value"]["number"] for each in tasks[0]["predictions"][0]["result"]}
    assert numbers == {"length": 2, "distinct-2": 1, "failure-rate": 0}


def test_what_cannot_be_exported() -> None:
    run = dialeval.evaluate(["yes"], metrics="length")
    with pytest.raises(SettingError, match="there is no export 'inspekt'; did you mean 'inspect'"):
        export_run(run, "inspekt")
    with pytest.raises(DataError, match="has no scores that langfuse-scores can hold"):
        export_run(run, "langfuse-scores")


def test_the_command_replaces_nothing_unasked(tmp_path: Path, dialeval: Dialeval) -> None:
    (tmp_path / "replies.txt").write_text("yes\nno thanks\n")
    assert not dialeval("score", str(tmp_path / "replies.txt"), "-m", "length", "-o", str(tmp_path / "run")).returncode
    command = ["export", str(tmp_path / "run"), "--to", "csv", "-o", str(tmp_path / "out")]
    assert str(tmp_path / "out" / "estimates.csv") in dialeval(*command).stdout
    refused = dialeval(*command)
    assert (refused.returncode, "would be overwritten" in refused.stderr) == (2, True)
    assert dialeval(*command, "--force").returncode == 0
