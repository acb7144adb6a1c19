"""Targets: rubrics of language models as judges, and databases of their recorded answers."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import re
import socket
import sqlite3
import sys
import tempfile
import threading
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import dialeval
from dialeval.judges import LLM
from dialeval.judges.llm.answers import AnswerRecord, AnswerStore
from dialeval.judges.llm.client import read_completion
from dialeval.judges.llm.judge import ANSWERS_FILE, Mode
from dialeval.judges.llm.metric import label_texts
from dialeval.judges.llm.rubrics import (
    FOLDER,
    Rubric,
    compute_expected_grades,
    list_shipped,
    make_request,
    parse_grades,
    read_rubric,
    show_request,
)
from fuzz.harness import Files, target
from fuzz.mutation import Unfit, changed_document, json_structure
from fuzz.own_formats import copied
from fuzz.rating_service import change_database

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MODEL = "model"
CONTEXT = ["when does the ferry leave ?"]
REPLIES = ["it leaves at nine", "no", "?", "schöne grüße"]


# Rubrics.


def rubric_files() -> list[Files]:
    """Return the shipped rubrics, and a short one with the highest and the lowest possible grade."""
    own = 'name = "own"\nlevel = "reply"\nuses = []\ntask = "Grade."\n[[question]]\nname = "q"\nquestion = "Good?"\n'
    files = [(FOLDER / f"{name}.toml").read_bytes() for name in list_shipped()]
    return [{"rubric.toml": content} for content in (*files, f'{own}grades = {{ 0 = "no", 10 = "yes" }}\n'.encode())]


def toml_structure(content: bytes, rng: random.Random) -> bytes:
    """Return a TOML document with a part that is replaced, removed, repeated, renamed or nested."""
    try:
        changed = changed_document(tomllib.loads(content.decode()), rng)
    except (ValueError, RecursionError):
        raise Unfit from None
    if not isinstance(changed, dict):
        raise Unfit
    try:
        text = "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in changed.items())
        return text.encode("utf-8", "surrogatepass")
    except RecursionError:
        raise Unfit from None


def _toml(value: Any) -> str:
    """Write a value of a TOML document in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)


@target("rubrics", seeds=rubric_files, mutators={".toml": [toml_structure] * 4})
def rubric_file(folder: Path) -> None:
    """A rubric that is asked, shown and answered, and whose name and grades are those of a metric."""
    path = folder / "rubric.toml"
    rubric = read_rubric(str(path))
    request = make_request(rubric, label_texts(rubric.level, CONTEXT, REPLIES[0]), MODEL, "expected", {})
    assert rubric.task in show_request(request)
    for lowest in (False, True):
        answer = read_completion(json.dumps(_answer(rubric, lowest)).encode())
        read = [parse_grades(rubric, answer), compute_expected_grades(rubric, answer, 0.5)]
        grades = {each.name: float(each.values[0 if lowest else -1]) for each in rubric.question}
        assert [each.values for each in read] == [grades, grades], read
    if rubric.level == "reply" and "reference" not in rubric.uses:
        with tempfile.TemporaryDirectory() as place:
            _answer_all(Path(place, ANSWERS_FILE), rubric, "grade")
            llm = LLM(model=MODEL, rubric=path, mode="grade", cache=Path(place, ANSWERS_FILE), replay=True)
            contexts = [CONTEXT] * len(REPLIES)
            run = dialeval.evaluate(
                REPLIES, contexts=contexts, metrics="llm", llm=llm, execution=dialeval.Execution(threads=1)
            )
        assert run["system"]["llm"].scored == len(REPLIES)


def _answer(rubric: Rubric, lowest: bool) -> dict[str, Any]:
    """Return a chat completion that gives every question its lowest or its highest grade."""
    tokens = ["{"]
    for each in rubric.question:
        tokens += [*([", "] if len(tokens) > 1 else []), f'"{each.name}": ', str(each.values[0 if lowest else -1])]
    tokens.append("}")
    listed = [{"token": each, "logprob": 0.0, "top_logprobs": [{"token": each, "logprob": 0.0}]} for each in tokens]
    choice = {"message": {"role": "assistant", "content": "".join(tokens)}, "logprobs": {"content": listed}}
    return {"model": MODEL, "choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}


# Recorded answers.

MODES: tuple[Mode, ...] = ("grade", "expected", "vote")
SAMPLES = 3


def _answer_all(path: Path, rubric: Rubric, *modes: Mode) -> None:
    """Record an answer to each request about the replies, every third of them a failure where modes are several."""
    records: list[AnswerRecord] = []
    for mode in modes:
        for reply in REPLIES:
            parts = label_texts("reply", CONTEXT if "context" in rubric.uses else [], reply)
            for number in range(SAMPLES if mode == "vote" else 1):
                request = make_request(rubric, parts, MODEL, mode, {}, number)
                answer = json.dumps(_answer(rubric, bool(len(records) % 2))).encode()
                failed = len(modes) > 1 and len(records) % 3 == 2
                records.append(
                    AnswerRecord(*request, None, "status 400: no") if failed else AnswerRecord(*request, answer)
                )
    with closing(AnswerStore(path)) as store:
        store.write(records, one_file=True)


@cache
def answers() -> bytes:
    """Return a database with answers to requests of every mode, some of which failed."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, ANSWERS_FILE)
        _answer_all(path, read_rubric("reply"), *MODES)
        return path.read_bytes()


_CHANGES = change_database(
    {"answers": ("key", "request", "answer", "reason", "digest")},
    (
        "DROP TABLE answers",
        "CREATE TABLE more (x)",
        "CREATE VIEW more AS SELECT * FROM answers",
        "CREATE TRIGGER more AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
        "CREATE INDEX more ON answers (answer)",
        "ALTER TABLE answers ADD COLUMN more",
        "PRAGMA application_id=7",
        "PRAGMA page_size=512",
        "PRAGMA journal_mode=WAL",
        "PRAGMA auto_vacuum=FULL",
    ),
    ("answers", "answer"),
)


def sign_records(content: bytes, rng: random.Random) -> bytes:
    """Return a changed database whose digests are those of its records, as a forger would."""
    content = _CHANGES(content, rng)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "signed.sqlite")
        path.write_bytes(content)
        try:
            with closing(sqlite3.connect(path, isolation_level=None)) as database:
                rows = database.execute("SELECT rowid, key, request, answer, reason FROM answers").fetchall()
                for number, *record in rows:
                    digest = AnswerRecord(*record).digest
                    database.execute("UPDATE answers SET digest = ? WHERE rowid = ?", (digest, number))
        except (sqlite3.Error, ValueError, OverflowError):
            raise Unfit from None
        return path.read_bytes()


_DATABASE_CHANGES = [_CHANGES, *[sign_records] * 3]


@target("recorded-answers", seeds=lambda: [{ANSWERS_FILE: answers()}], mutators={".sqlite": _DATABASE_CHANGES})
def recorded_answers(folder: Path) -> None:
    """A database that is replayed in every mode, copied into a run, and gone on with."""
    rubric = read_rubric("reply")
    rows = [label_texts("reply", CONTEXT, reply) for reply in REPLIES]
    with copied(folder) as copy:
        path = copy / ANSWERS_FILE
        for mode in MODES:
            with LLM(model=MODEL, cache=path, replay=True) as llm:
                for grades in llm.judge("").grade(rubric, rows, mode, SAMPLES):
                    assert isinstance(grades.reason, str) or all(1 <= grade <= 5 for grade in grades.values.values())
        llm.copy_answers(copy / "run")
        with closing(AnswerStore(path)) as store:
            store.store(AnswerRecord("k", b"{}", None, "status 500"))
            store.store(AnswerRecord("k", b"{}", b"{}"))
            assert store.find(["k"])["k"].answer == b"{}"


# Answers of a server.


def http_answers() -> list[Files]:
    """Return what a server sends as an answer with a length, in chunks, and until it closes the connection."""
    body = json.dumps(_answer(read_rubric("reply"), lowest=False)).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:20], body[20:])) + b"0\r\nX: y\r\n\r\n"
    heads = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body,
    )
    return [{"answer.http": head} for head in heads]


def http_body(content: bytes, rng: random.Random) -> bytes:
    """Return an answer whose body is another document, with the length that it has."""
    head, end, body = content.partition(b"\r\n\r\n")
    if b"Content-Length" not in head:
        raise Unfit
    body = json_structure(body, rng)
    return re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), head) + end + body


@target("server-answers", seeds=http_answers, mutators={".http": [http_body]}, seconds=20)
def server_answers(folder: Path) -> None:
    """A server that sends whatever the file has, and is asked by a judge.

    No clock decides what happens: the server reads a whole request before it answers, so that closing the connection
    cannot discard the answer, and then sends no more, so that a client never waits for the rest of a short answer.
    """
    content = (folder / "answer.http").read_bytes() if (folder / "answer.http").exists() else b""

    def serve() -> None:
        with contextlib.suppress(OSError):  # the socket that listens is shut down
            while True:
                client, _ = server.accept()
                with client, contextlib.suppress(OSError), client.makefile("rb") as requests:
                    requests.readline()
                    requests.read(int(http.client.parse_headers(requests)["Content-Length"] or 0))
                    client.sendall(content)
                    client.shutdown(socket.SHUT_WR)
                    requests.read(1)  # the client closes the connection, or sends another request in vain

    rubric = read_rubric("reply")
    with copied(folder) as copy, socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        given: dict[str, Any] = {"cache": copy / ANSWERS_FILE, "retries": 3, "backoff": 0.0, "timeout": 600.0}
        try:
            with LLM(address, MODEL, **given, concurrency=1, max_requests=6) as llm:
                grades = llm.grade(rubric, [label_texts("reply", CONTEXT, reply) for reply in REPLIES[:2]])
                assert all(isinstance(each.reason, str) or each.values for each in grades)
                assert 0 <= llm.counts.tokens <= 12 * 10**9
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
