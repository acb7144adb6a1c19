"""Files of rows: lines, JSON, chats, CSV, Parquet and Arrow, packed and in shards, ratings and pairs."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dialeval
import evaluating
from dialeval.core.errors import DataError
from dialeval.engine import resources
from dialeval.io.ratings import read_ratings
from dialeval.io.reading import read_responses
from dialeval.io.row_shapes import SHAPES
from fuzz.harness import Files, checked_in, target
from fuzz.mutation import Unfit, json_structure, zip_structure


def only(folder: Path) -> Path:
    """The one file of an input."""
    return next(path for path in sorted(folder.rglob("*")) if path.is_file())


def evaluated(path: Path, **more: Any) -> None:
    """Score a file, and write the run in every format that is a text."""
    from dialeval.reports import tables

    with suppress(DataError):
        read_responses(path, keep=["context", "turn"])  # whatever a row has there, it is a label or a problem
    run = evaluating.evaluate(path, threads=1, **more)
    for name, written in tables.FORMATS.items():
        text = written(run)
        assert text.endswith("\n"), name


def evaluated_without_judges(path: Path, **more: Any) -> None:
    """The same without the shipped judges, which take most of the time and read no files."""
    with patch.object(resources, "list_shipped", dict):
        evaluated(path, **more)


def _fields(path: Path) -> dict[str, str] | None:
    return {"response": "answer"} if "answers" in path.name else None


@target("lines", seeds=lambda: checked_in("lines"))
def lines(folder: Path) -> None:
    """Lines as responses, and the same file as references and contexts."""
    path = only(folder)
    evaluated(path, references=path, contexts=path)


@target("jsonl", seeds=lambda: checked_in("jsonl"))
def jsonl(folder: Path) -> None:
    """Rows of JSONL."""
    evaluated(only(folder))


@target("json", seeds=lambda: checked_in("json"))
def json_document(folder: Path) -> None:
    """Documents of rows, of several systems and of chats."""
    evaluated(only(folder))


@target("chats", seeds=lambda: checked_in("chats"))
def chats(folder: Path) -> None:
    """Chats, as lines of JSONL."""
    evaluated_without_judges(only(folder))


@target("labels", seeds=lambda: checked_in("labels"))
def labels(folder: Path) -> None:
    """Labels of replies, and the times of messages."""
    evaluated(only(folder), metrics="labels,latency,latency-p95,length")


def delimited_seeds() -> list[Files]:
    """Tables as they are kept, and as spreadsheets write them."""
    text = 'response;reference\r\nschöne grüße;„ja“\r\nno;"a\r\nb"\r\n'
    return [
        *checked_in("delimited"),
        {"semicolons.csv": f"sep=;\r\n{text}".encode()},
        {"wide.csv": f"\ufeff{text}".encode("utf-16-le")},
        {"windows.csv": text.encode("cp1252")},
    ]


@target("delimited", seeds=delimited_seeds)
def delimited(folder: Path) -> None:
    """CSV and TSV."""
    evaluated(only(folder), fields=_fields(only(folder)))


_REPLIES: dict[str, list[dict[str, Any]]] = {
    "codex-old": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "At nine."}]}],
    "rasa-events": [{"sender_id": "c1", "event": "bot", "text": "At nine.", "timestamp": 2.0}],
}
"""Lines to add where the example of a shape is a line without a reply."""


def shapes() -> list[Files]:
    """Rows of other programs, three a file: as lines, in a document where they have one, and one with all of them."""
    seeds: list[Files] = []
    for shape in SHAPES:
        if shape.refused:
            continue
        trial = shape.paths.get("trial", "")
        ids = (trial, *shape.paths.get("dialog_id", "").split(" | "))
        number = 1 if shape.assembler else 3
        rows = [{key: n if key in ids else value for key, value in shape.example.items()} for n in range(number)]
        rows += _REPLIES.get(shape.name, [])
        seeds.append({f"{shape.name}.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode()})
        if shape.document:
            log = {shape.document[0]: {}, shape.document[-1]: rows}
            seeds.append({f"{shape.name}.json": json.dumps(log).encode()})
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "u"}},
        {"type": "tool_use", "name": "f", "input": {"q": [1, {"a": "b"}]}},
        {"type": "tool_result", "content": [{"type": "text", "text": "r"}]},
        {"type": "thinking", "thinking": "hm"},
    ]
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    said = [{"role": "user", "content": parts}, call, {"role": "assistant", "content": parts[:2]}]
    chats = [json.dumps({"id": number, "messages": said}) + "\n" for number in range(2)]
    spans = next(shape.example for shape in SHAPES if shape.name == "span")
    calls = [spans | {"context": {"trace_id": f"t{number % 2}", "span_id": str(number)}} for number in range(4)]
    history = b"# aider chat started at 2026\n\n#### When does it leave?\n\nAt nine.\n\n> Tokens: 5\n"
    seeds += [{"spans.jsonl": "".join(json.dumps(call) + "\n" for call in calls).encode()}, {"aider.md": history}]
    return [*seeds, {"parts.jsonl": "".join(chats).encode()}]


@target("shapes", seeds=shapes)
def shape_files(folder: Path) -> None:
    """Chats and logs of other programs."""
    evaluated_without_judges(only(folder), system_prompts=True)


def archives() -> list[Files]:
    """Logs of inspect_ai: a whole one, one of a run that goes on, and one of stored members."""
    seeds: list[Files] = []
    sample = next(shape.example for shape in SHAPES if shape.name == "inspect")
    for name, method, ends in (("whole", 8, True), ("running", 8, False), ("stored", 0, True)):
        about: dict[str, Any] = {"eval": {"model": "m"}, "results": {"completed_samples": 3}}
        ids = [{"id": number, "epoch": 1 + number % 2} for number in range(3)]
        members: dict[str, Any] = {"header.json" if ends else "_journal/start.json": about}
        members |= {f"samples/{each['id']}_epoch_{each['epoch']}.json": sample | each for each in ids}
        members["summaries.json" if ends else "_journal/summaries/1.json"] = ids
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", method) as archive:
            for member, content in members.items():
                archive.writestr(zipfile.ZipInfo(member), json.dumps(content), method)
        seeds.append({f"{name}.eval": packed.getvalue()})
    return seeds


def archive_member(content: bytes, rng: random.Random) -> bytes:
    """A document in an archive is another one, under its own name."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        raise Unfit from None
    if not members:
        raise Unfit
    name = rng.choice(sorted(members))
    members[name] = json_structure(members[name], rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for each, inside in members.items():
            archive.writestr(zipfile.ZipInfo(each), inside)
    return packed.getvalue()


@target("eval-logs", seeds=archives, mutators={".eval": [zip_structure, archive_member, archive_member]})
def archive_of_samples(folder: Path) -> None:
    """Logs of inspect_ai."""
    evaluated_without_judges(only(folder))


def _rows(name: str) -> list[dict[str, Any]]:
    """Rows of a seed, each with the same fields and types, so that they make a table."""
    return [
        {
            "dialog_id": "d1",
            "turn": number,
            "system": name,
            "context": ["hello", "hi there"][: number + 1],
            "response": text,
            "reference": ["it leaves at nine", "at nine"][:number],
        }
        for number, text in enumerate(["which boat do you want", "it leaves at nine", "", "schöne grüße"])
    ]


def tables() -> list[Files]:
    """Rows and chats as Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    chat = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    rows, said = (
        pa.Table.from_pylist(_rows("ferry")),
        pa.Table.from_pylist([{"id": n, "messages": chat} for n in range(3)]),
    )
    seeds: list[Files] = []
    for name, table in (("rows", rows), ("chats", said)):
        sink = pa.BufferOutputStream()
        parquet.write_table(table, sink, row_group_size=2, compression="none")
        seeds.append({f"{name}.parquet": bytes(sink.getvalue())})
    return seeds


@target("tables", seeds=tables)
def table_files(folder: Path) -> None:
    """Parquet and Arrow files."""
    evaluated(only(folder))


def packed() -> list[Files]:
    """Rows in .gz and .zst."""
    import pyarrow as pa

    seeds: list[Files] = []
    for files in (*checked_in("jsonl"), *checked_in("lines")):
        ((name, content),) = files.items()
        seeds.append({f"{name}.gz": gzip.compress(content, mtime=0)})
    zstd = pa.Codec("zstd").compress(b"one line\nand another\n", asbytes=True)
    return [*seeds, {"lines.txt.zst": zstd}]


@target("packed", seeds=packed)
def packed_files(folder: Path) -> None:
    """The same formats, packed."""
    evaluated(only(folder))


def parts() -> list[Files]:
    """One system in one file, of each format that can be read in chunks."""
    lines = [*checked_in("jsonl"), *checked_in("chats"), *shapes()[:3], *checked_in("lines")]
    return [*lines, *packed(), *tables()[:2]]


@target("shards", seeds=parts)
def shards(folder: Path) -> None:
    """Rows that are read in small chunks."""
    from dialeval.engine.worker import Threads

    dialeval.evaluate(
        folder,
        metrics="length,distinct",
        reading=dialeval.Reading(shards=True),
        execution=dialeval.Execution(engine=Threads(1), chunk_bytes=64),
    )


@target("ratings", seeds=lambda: [*checked_in("ratings")])
def ratings(folder: Path) -> None:
    """Rated rows."""
    read_ratings(only(folder))


def _pairs() -> list[Files]:
    row = b'{"dialog_id": "d%d", "a": "%s", "b": "%s", "better": "%s", "response_a": "yes please", "response_b": "no"}'
    said = [
        (n // 2, b"xyz"[n % 3 : n % 3 + 1], b"yzx"[n % 3 : n % 3 + 1], (b"a", b"b", b"tie")[n % 5 % 3])
        for n in range(12)
    ]
    table = b"a,b,better\nx,y,a\ny,x,a\nx,y,tie\n"
    return [{"pairs.jsonl": b"\n".join(row % each for each in said)}, {"pairs.csv": table}]


@target("pairs", seeds=_pairs)
def pairs(folder: Path) -> None:
    """Pairs of responses, and a ranking by them."""
    from dialeval.io.ratings import read_pairs

    dialeval.rank(read_pairs(only(folder)))


@target("agreement", seeds=lambda: checked_in("ratings"))
def agreement(folder: Path) -> None:
    """How far metrics agree with the people."""
    from dialeval.reports.documents import FORMATS

    found = dialeval.measure_agreement(only(folder), metrics="length,rouge-l", resamples=9, threads=1)
    for name, written in FORMATS.items():
        assert written(found).endswith("\n"), name
    found._repr_html_()
    found.to_arrow()
