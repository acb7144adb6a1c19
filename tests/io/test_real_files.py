"""Files as other programs write them, with invented content: each is read, or refused with what its owner must do."""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.core import inputs
from dialeval.core.errors import DataError
from dialeval.io.reading import read_responses
from dialeval.io.rows import Rows

ASKED, SAID = "When does the ferry leave?", "It leaves at nine."
USER, BOT = {"role": "user", "content": ASKED}, {"role": "assistant", "content": SAID}
PROMPT = {"role": "system", "content": "You are the desk of a ferry company."}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "timetable", "arguments": '{"day": "today"}'}}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def document(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    sink = pa.BufferOutputStream()
    write_table(pa.Table.from_pylist(rows), sink)
    return bytes(sink.getvalue())


def archive(log: dict[str, Any]) -> bytes:
    """A log as inspect_ai writes it: a zip archive with a file for each sample."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", json.dumps({name: log[name] for name in log if name != "samples"}))
        listed = [{name: sample[name] for name in ("id", "epoch")} for sample in log["samples"]]
        packed.writestr("summaries.json", json.dumps(listed))
        for sample in log["samples"]:
            packed.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return sink.getvalue()


def inspect_log(*samples: dict[str, Any]) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "ferry", "model": "openai/m", "created": "2026-01-01T00:00:00+00:00"},
        "plan": {"name": "plan", "steps": []},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": []},
        "samples": list(samples),
    }


SAMPLE = {
    "id": "q1",
    "epoch": 1,
    "input": [PROMPT, USER],
    "target": "At nine.",
    "messages": [PROMPT, USER, BOT],
    "output": {"model": "m", "choices": [{"message": BOT, "stop_reason": "stop"}], "completion": SAID},
    "scores": {"match": {"value": "I"}},
}
LM_EVAL = {
    "doc_id": 3,
    "doc": {"question": ASKED, "answer": "nine"},
    "target": "nine",
    "arguments": {"gen_args_0": {"arg_0": ASKED, "arg_1": {"until": ["\n"], "do_sample": False}}},
    "resps": [[SAID]],
    "filtered_resps": ["nine"],
    "doc_hash": "ab12",
    "exact_match": 1.0,
}
ANSWER = {
    "id": "batch_req_1",
    "custom_id": "r1",
    "response": {"status_code": 200, "request_id": "x", "body": {"id": "c", "choices": [{"index": 0, "message": BOT}]}},
    "error": None,
}
ITEMS = [
    {"id": "rs_1", "type": "reasoning", "summary": []},
    {"id": "m_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": SAID}]},
]

READ: dict[str, tuple[str, bytes]] = {
    "excel, German": ("a.csv", f"\ufeffsep=;\r\ncontext;response\r\n{ASKED};{SAID}\r\n".encode()),
    "excel, semicolons": ("a.csv", f"response;context\r\n{SAID};{ASKED}\r\n".encode()),
    "excel, Unicode text": ("a.csv", f"\ufeffresponse\tcontext\r\n{SAID}\t{ASKED}\r\n".encode("utf-16-le")),
    "commas and quotes": ("a.csv", f'id,"response","context"\n7,"{SAID}","{ASKED}"\n'.encode()),
    "tabs in .csv": ("a.csv", f"response\tcontext\n{SAID}\t{ASKED}\n".encode()),
    "commas in .tsv": ("a.tsv", f"response,context\n{SAID},{ASKED}\n".encode()),
    "prompts in a table": ("a.csv", f"prompt,completion\n{ASKED},{SAID}\n".encode()),
    "chats in cells": ("a.csv", 'id,messages\n1,"{}"\n'.format(json.dumps([USER, BOT]).replace('"', '""')).encode()),
    "ours": ("a.jsonl", lines({"response": SAID, "context": [ASKED]})),
    "OpenAI fine-tuning": ("a.jsonl", lines({"messages": [PROMPT, USER, BOT]})),
    "OpenAI fine-tuning, weights": ("a.jsonl", lines({"messages": [USER, BOT | {"weight": 1, "name": "desk"}]})),
    "ShareGPT": (
        "a.json",
        document([{"id": "x_0", "conversations": [{"from": "human", "value": ASKED}, {"from": "gpt", "value": SAID}]}]),
    ),
    "ShareGPT with a prompt": (
        "a.jsonl",
        lines(
            {
                "system": "Be kind.",
                "tools": "[]",
                "conversations": [
                    {"from": "system", "value": "Be kind."},
                    {"from": "human", "value": ASKED},
                    {"from": "gpt", "value": SAID},
                ],
            }
        ),
    ),
    "ShareGPT with roles": ("a.jsonl", lines({"conversations": [USER, BOT]})),
    "LMSYS-Chat": (
        "a.parquet",
        parquet(
            [{"conversation_id": "x", "model": "a", "conversation": [USER, BOT], "turn": 1, "language": "English"}]
        ),
    ),
    "Hugging Face, messages": ("a.parquet", parquet([{"prompt_id": "p", "messages": [PROMPT, USER, BOT]}])),
    "batch output": ("a.jsonl", lines(ANSWER)),
    "batch output, Responses": (
        "a.jsonl",
        lines(ANSWER | {"response": {"status_code": 200, "body": {"output": ITEMS}}}),
    ),
    "batch input": (
        "a.jsonl",
        lines(
            {
                "custom_id": "r1",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"messages": [USER, BOT, USER]},
            }
        ),
    ),
    "Anthropic batch output": (
        "a.jsonl",
        lines(
            {
                "custom_id": "r1",
                "result": {
                    "type": "succeeded",
                    "message": {
                        "role": "assistant",
                        "content": [{"type": "thinking", "thinking": "..."}, {"type": "text", "text": SAID}],
                    },
                },
            }
        ),
    ),
    "Gemini": (
        "a.jsonl",
        lines(
            {"contents": [{"role": "user", "parts": [{"text": ASKED}]}, {"role": "model", "parts": [{"text": SAID}]}]}
        ),
    ),
    "inspect_ai": ("a.json", document(inspect_log(SAMPLE))),
    "lm-evaluation-harness": ("samples_ferry_2026-01-01.jsonl", lines(LM_EVAL)),
    "lm-evaluation-harness, before 0.4.3": ("a.jsonl", lines(LM_EVAL | {"arguments": [[ASKED, {"until": ["\n"]}]]})),
    "tau-bench": (
        "a.json",
        document([{"task_id": 0, "reward": 1.0, "info": {}, "traj": [PROMPT, USER, BOT], "trial": 0}]),
    ),
    "tau2-bench": (
        "a.json",
        document(
            {
                "timestamp": "now",
                "info": {},
                "tasks": [{"id": "0"}],
                "simulations": [
                    {"id": "s", "task_id": "0", "trial": 0, "reward_info": {"reward": 1.0}, "messages": [USER, BOT]}
                ],
            }
        ),
    ),
    "inspect_ai archive": ("a.eval", archive(inspect_log(SAMPLE))),
    "lm-evaluation-harness, a chat": (
        "a.jsonl",
        lines(LM_EVAL | {"arguments": {"gen_args_0": {"arg_0": [json.dumps([PROMPT, USER])], "arg_1": {}}}}),
    ),
    "OpenAI, a logged completion": (
        "a.jsonl",
        lines(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "model": "m",
                "request": {"messages": [PROMPT, USER]},
                "choices": [{"index": 0, "message": BOT | {"refusal": None}, "finish_reason": "stop"}],
            }
        ),
    ),
    "OpenAI, a logged response": (
        "a.jsonl",
        lines({"id": "resp_1", "object": "response", "model": "m", "input": ASKED, "output": ITEMS}),
    ),
    "Langfuse": (
        "a.json",
        document(
            [
                {"id": "o1", "traceId": "t", "type": "SPAN", "input": None, "output": {"rows": 3}},
                {"id": "o2", "traceId": "t", "type": "GENERATION", "model": "m", "input": [USER], "output": BOT},
            ]
        ),
    ),
    "Langfuse, to storage": (
        "a.jsonl",
        lines(
            {"id": "o0", "trace_id": "t", "type": "TOOL", "input": "{}", "output": "x"},
            {"id": "o1", "trace_id": "t", "type": "GENERATION", "input": json.dumps([USER]), "output": SAID},
        ),
    ),
    "Phoenix": (
        "a.parquet",
        parquet(
            [
                {
                    "context.trace_id": "t",
                    "span_kind": kind,
                    "attributes.llm.input_messages": [{"message.role": "user", "message.content": ASKED}],
                    "attributes.llm.output_messages": [{"message.role": "assistant", "message.content": SAID}],
                    "attributes.output.value": SAID,
                }
                for kind in ("CHAIN", "LLM")
            ]
        ),
    ),
    "Vertex": (
        "a.jsonl",
        lines(
            {
                "status": "",
                "request": {"contents": [{"role": "user", "parts": [{"text": ASKED}]}]},
                "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": SAID}]}}]},
            }
        ),
    ),
    "Rasa": (
        "a.json",
        document(
            {
                "sender_id": "s",
                "slots": {"day": None},
                "events": [
                    {"event": "action", "name": "action_session_start"},
                    {"event": "user", "text": ASKED, "parse_data": {"intent": {"name": "ask"}}},
                    {"event": "slot", "name": "day", "value": "today"},
                    {"event": "bot", "text": SAID, "data": {}},
                    {"event": "action", "name": "action_listen"},
                ],
            }
        ),
    ),
    "WildChat": (
        "a.parquet",
        parquet(
            [
                {
                    "conversation_hash": "h",
                    "model": "m",
                    "conversation": [{**USER, "toxic": False}, {**BOT, "toxic": False}],
                    "turn": 1,
                }
            ]
        ),
    ),
    "arena-hard": (
        "a.jsonl",
        lines({"uid": "u", "ans_id": "a", "model": "m", "messages": [USER, BOT | {"content": {"answer": SAID}}]}),
    ),
    "promptfoo": (
        "a.json",
        document(
            {
                "evalId": "e",
                "results": {
                    "version": 3,
                    "results": [
                        {"provider": {"id": "m"}, "prompt": {"raw": json.dumps([USER])}, "response": {"output": SAID}}
                    ],
                },
                "config": {},
            }
        ),
    ),
    "MT-bench, output": (
        "a.jsonl",
        lines({"question_id": 81, "model_id": "m", "choices": [{"index": 0, "turns": [SAID]}], "tstamp": 1.5}),
    ),
    "Alpaca": ("a.json", document([{"instruction": ASKED, "input": "", "output": SAID}])),
    "TRL, messages": ("a.jsonl", lines({"prompt": [PROMPT, USER], "completion": [BOT]})),
    "one chat as a document": ("a.json", document({"messages": [USER, BOT]})),
    "packed": ("a.jsonl.gz", gzip.compress(lines({"messages": [USER, BOT]}))),
}


@pytest.mark.parametrize("name", READ)
def test_read(tmp_path: Path, name: str) -> None:
    file, content = READ[name]
    (tmp_path / file).write_bytes(content)
    [rows] = read_responses(tmp_path / file)
    assert list(rows.responses) == [SAID, *([""] if name == "batch input" else [])]
    if "output" not in name:  # the answers of a batch come without their requests
        assert next(iter(rows.columns[inputs.CONTEXT])) == [ASKED]


def test_parts_calls_and_prompts_of_a_chat(tmp_path: Path) -> None:
    chat = [
        PROMPT,
        {"role": "user", "content": [{"type": "text", "text": "Is this my ferry?"}, PICTURE]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "09:00 Anna"},
        {"role": "assistant", "content": "Yes, the Anna."},
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines({"messages": chat}))
    [rows] = read_responses(path)
    shown = ["Is this my ferry? [image]", '[call timetable({"day": "today"})]', "09:00 Anna"]
    assert list(rows.responses) == ["Yes, the Anna."]
    assert list(rows.columns[inputs.CONTEXT]) == [shown]
    [asked] = read_responses(path, system_prompts=True)
    assert list(asked.columns[inputs.CONTEXT]) == [[PROMPT["content"], *shown]]


REFUSED: dict[str, tuple[str, bytes, str, str]] = {
    "a spreadsheet": ("a.xlsx", b"PK\x03\x04\x14\x00\x06\x00", "is a workbook of Excel", "CSV UTF-8"),
    "an inspect_ai archive": (
        "a.eval",
        b"PK\x03\x04\x14\x00\x00\x00",
        "is not a readable log of inspect_ai",
        "inspect log",
    ),
    "an archive without samples": ("a.eval", archive(inspect_log()), "holds no samples of inspect_ai", "inspect log"),
    "an archive of a broken sample": (
        "a.eval",
        archive(inspect_log(SAMPLE)).replace(b"q1_epoch", b"q2_epoch", 1),
        "is not a readable log of inspect_ai",
        "inspect log",
    ),
    "likelihoods": (
        "a.jsonl",
        lines(LM_EVAL | {"resps": [[["-1.5", "False"]]], "filtered_resps": [["-1.5", "False"]]}),
        "response is a list",
        "string",
    ),
    "no roles": ("a.jsonl", lines({"dialog": [ASKED, SAID]}), "is a dialogue that does not say who speaks", "role"),
    "an unknown role": (
        "a.jsonl",
        lines({"messages": [{"role": "narrator", "content": "x"}]}),
        "has the role",
        "assistant",
    ),
    "a pair": ("a.jsonl", lines({"prompt": ASKED, "chosen": SAID, "rejected": "x"}), "is a pair of answers", "--field"),
    "an export of ChatGPT": (
        "a.json",
        document([{"mapping": {"a": {}}, "current_node": "a"}]),
        "which is a tree",
        "branch",
    ),
    "almost lm-eval": ("a.jsonl", lines({"doc": {}, "target": "x"}), "but lacks resps", "dialeval formats"),
    "another name": (
        "a.csv",
        f"id;Answer\r\n1;{SAID}\r\n".encode(),
        "has no field 'response'",
        "--field response=Answer",
    ),
    "a reference to whom": (
        "a.jsonl",
        lines({"messages": [USER, BOT, USER, BOT], "reference": "x"}),
        "2 assistant messages",
        "one row per response",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path: Path, name: str) -> None:
    file, content, what, remedy = REFUSED[name]
    (tmp_path / file).write_bytes(content)
    with pytest.raises(DataError) as refusal:
        read_responses(tmp_path / file)
    problem = refusal.value.problems[0]
    assert what in problem.what
    assert remedy in problem.remedy


def pandas_frame(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


def polars_frame(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns, strict=False)


class HuggingFace:
    """A dataset, as far as anybody looks at it."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        import pyarrow as pa

        self.table = pa.table(columns)
        self.column_names = list(columns)

    def with_format(self, kind: str) -> HuggingFace:
        assert kind == "arrow"
        return self

    def __getitem__(self, rows: slice) -> Any:
        return self.table[rows]


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame, HuggingFace])
def test_frames_with_missing_values(frame: Callable[[dict[str, list[Any]]], Any]) -> None:
    columns: dict[str, list[Any]] = {
        "response": ["a", "b", "c"],
        "reference": ["x", None, "z"],
        "dialog_id": [1, None, 2],
        "turn": [0, None, 1],
        "system": ["s", None, "s"],
    }
    named, unnamed = read_responses(frame(columns))
    assert list(named.responses) == ["a", "c"]
    assert list(named.columns[inputs.REFERENCE]) == [["x"], ["z"]]
    assert named.dialogues is not None
    assert list(named.dialogues) == ["1", "2"]
    assert named.turns is not None
    assert named.turns.tolist() == [0, 1]
    assert list(unnamed.responses) == ["b"]


@pytest.mark.parametrize("frame", [pandas_frame, polars_frame, HuggingFace])
def test_frames_of_chats(frame: Callable[[dict[str, list[Any]]], Any]) -> None:
    said = [{"from": "human", "value": ASKED}, {"from": "gpt", "value": SAID}]
    [rows] = read_responses(frame({"id": ["c1"], "conversations": [said]}))
    assert list(rows.responses) == [SAID]
    assert list(rows.columns[inputs.CONTEXT]) == [[ASKED]]


def test_missing_numbers_of_python_rows() -> None:
    nan = float("nan")
    [rows] = read_responses([{"response": "a", "reference": nan, "context": nan, "dialog_id": nan, "turn": nan}])
    assert (list(rows.responses), set(rows.columns), rows.dialogues, rows.turns) == (
        ["a"],
        {inputs.RESPONSE},
        None,
        None,
    )


def test_a_column_of_a_dataset_that_reads_when_asked() -> None:
    from collections.abc import Sequence

    class Column(Sequence[str]):
        def __getitem__(self, index: Any) -> Any:
            return ["a", "b"][index]

        def __len__(self) -> int:
            return 2

    [rows] = read_responses(Column())
    assert list(rows.responses) == ["a", "b"]


TEXTS = ["שלום עולם", "مرحبا\u200f!", "👩‍👩‍👧‍👦🏴", "e\u0301\u0323", "x" * 100_000, "a\u2028b\x85c"]


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "tsv", "parquet", "chat"])
def test_every_script_and_length_survives(tmp_path: Path, suffix: str) -> None:
    rows: list[dict[str, Any]] = [{"response": text, "context": text} for text in TEXTS]
    cell = "\n".join
    contents = {
        "jsonl": lambda: lines(*rows),
        "json": lambda: document(rows),
        "csv": lambda: cell(["response;context", *(f"{text};{text}" for text in TEXTS)]).encode(),
        "tsv": lambda: cell(["response\tcontext", *(f"{text}\t{text}" for text in TEXTS)]).encode("utf-16"),
        "parquet": lambda: parquet(rows),
        "chat": lambda: lines(
            *({"messages": [{"role": "user", "content": t}, {"role": "assistant", "content": t}]} for t in TEXTS)
        ),
    }
    path = tmp_path / f"a.{'jsonl' if suffix == 'chat' else suffix}"
    path.write_bytes(contents[suffix]())
    [found] = read_responses(path)
    assert list(found.responses) == TEXTS
    assert list(found.columns[inputs.CONTEXT]) == [[text] for text in TEXTS]


def streamed(path: Path, size: int) -> list[Rows]:
    from dialeval.io.chunks import read_blocks, split_sources
    from dialeval.io.rows import FieldNames
    from dialeval.io.sources import find_sources

    chunks = split_sources(find_sources(str(path)), 100, chunk_bytes=size)
    blocks = [block for chunk in chunks for block in read_blocks(chunk, FieldNames(), 2)]
    return [rows for block in blocks for rows in block.rows()]


@pytest.mark.parametrize("name", [name for name, (file, _) in READ.items() if file.endswith("jsonl")])
def test_shards_read_the_same_shapes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(re.sub(rb'"(r1|q1|u|t)"', rb'"\g<1>%d"' % number, READ[name][1]) for number in range(7)))
    [whole] = read_responses(path)
    parts = streamed(path, 64)
    assert [text for rows in parts for text in rows.responses] == list(whole.responses)
    if inputs.CONTEXT in whole.columns:
        contexts = [context for rows in parts for context in rows.columns[inputs.CONTEXT]]
        assert contexts == list(whole.columns[inputs.CONTEXT])
    assert np.sum([len(rows) for rows in parts]) == (14 if name == "batch input" else 7)
