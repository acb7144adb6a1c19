"""Logs of other programs as they are, where they can be had; `test_real_files` has the same structures, invented."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dialeval.core import inputs
from dialeval.core.errors import collect_warnings
from dialeval.core.inputs import Input
from dialeval.io.reading import read_responses
from dialeval.io.rows import Rows

LOGS = Path(__file__).parents[3] / "shared" / "data" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason=f"no logs of other programs in {LOGS}")


def load(name: str) -> Any:
    data = (LOGS / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    return (
        json.loads(text)
        if name.split(".", 1)[1].startswith("json") and "jsonl" not in name
        else [json.loads(line) for line in text.splitlines()]
    )


def read(name: str) -> Rows:
    (rows,) = read_responses(LOGS / name)
    return rows


def columns(rows: Rows) -> Mapping[Input, Iterable[Any]]:
    return rows.columns


def test_mt_bench_answers() -> None:
    given, rows = load("fastchat/mt-bench-answers-gpt-4.jsonl"), read("fastchat/mt-bench-answers-gpt-4.jsonl")
    assert list(rows.responses) == [turn for each in given for turn in each["choices"][0]["turns"]]
    assert rows.system == "gpt-4"
    assert rows.turns is not None
    assert rows.turns.tolist() == [1, 2] * len(given)
    assert rows.dialogues is not None
    assert list(rows.dialogues)[::2] == [str(each["question_id"]) for each in given]


@pytest.mark.parametrize("model", ["gpt-4-0314", "gpt-3.5-turbo-0125"])
def test_arena_hard_answers(model: str) -> None:
    given, rows = load(f"arena-hard/{model}.jsonl"), read(f"arena-hard/{model}.jsonl")
    assert list(rows.responses) == [each["messages"][1]["content"]["answer"] for each in given]
    assert rows.system == model


@pytest.mark.parametrize("model", ["claude-2", "vicuna-7b"])
def test_alpaca_eval_outputs(model: str) -> None:
    given, rows = load(f"alpaca-eval/{model}.json.gz"), read(f"alpaca-eval/{model}.json.gz")
    assert (rows.system, list(rows.responses)) == (given[0]["generator"], [each["output"] for each in given])


def test_a_promptfoo_table_has_the_replies_of_the_document() -> None:
    path = LOGS / "promptfoo" / "promptfoo_llama4-scout_output"
    with collect_warnings():
        table, document = (read_responses(f"{path}.{suffix}") for suffix in ("csv", "json"))
    assert sorted(text for rows in table for text in rows.responses) == sorted(
        text for rows in document for text in rows.responses
    )
    assert [sum(rows.account.scores for rows in systems) for systems in (table, document)] == [10, 10]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("deepeval/deepeval_goldens.json", 15),
        ("deepeval/deepeval_convo_goldens.json", 15),
        ("deepeval/deepeval_convo_goldens.csv", 15),
        ("deepeval/deepeval_test_run_sample.json", 1),
        ("openai-cookbook/chat-fine-tuning.jsonl", 8),
        ("fastchat/sharegpt-conversations.json", 80),
    ],
)
def test_rows_are_there(name: str, rows: int) -> None:
    assert len(read(name)) == rows


def test_chats_that_only_call_tools() -> None:
    name = "openai-cookbook/tool-calls-fine-tuning.jsonl"
    given, rows = load(name), read(name)
    expected = [[call["function"]["name"] for call in each["messages"][-1]["tool_calls"]] for each in given]
    assert [[call["name"] for call in calls] for calls in columns(rows)[inputs.CALLS]] == expected
    assert set(rows.responses) == {""}


@pytest.mark.parametrize("name", ["formats", "popularity", "streaming"])
def test_inspect_archives(name: str) -> None:
    with zipfile.ZipFile(LOGS / "inspect" / f"{name}.eval") as archive:
        header = json.loads(archive.read("header.json"))
        names = [each for each in archive.namelist() if each.startswith("samples/")]
        samples = [json.loads(archive.read(each)) for each in names]
    rows = read(f"inspect/{name}.eval")
    said = {(str(each["id"]), each["output"]["choices"][0]["message"]["content"]) for each in samples}
    assert rows.dialogues is not None
    assert set(zip(rows.dialogues, rows.responses, strict=True)) == said
    assert (rows.system, len(rows)) == (header["eval"]["model"], len(samples))
    judged = [each for each in samples if each["scores"]]
    scored = {(str(s["id"]), str(s["epoch"]), float(s["scores"]["match"]["value"] == "C")) for s in judged}
    trials = [trial for trials in columns(rows).get(inputs.TRIALS, ()) for trial in trials]
    assert {(trial["task"], trial["trial"], trial["reward"]) for trial in trials} == scored


def test_inspect_json_with_images_and_scores() -> None:
    rows = read("inspect/images-and-tool-calls.json")
    assert list(rows.responses) == ["[hedgehog]"]
    assert list(rows.columns[inputs.REFERENCE]) == [["bike", "bicycle"]]
    assert rows.system == "openai/gpt-4o"
