"""Targets: the database of a rating server, and what is sent to the server."""

from __future__ import annotations

import json
import random
import re
import socket
import sqlite3
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

from dialeval.core.errors import DataError, Problem
from dialeval.human.form import Form
from dialeval.human.server import RatingServer
from dialeval.human.store import Rating, RatingStore, read_stored_lines
from fuzz.harness import Files, target
from fuzz.mutation import NUMBERS, TOKENS, VALUES, Mutator, Unfit, changed_document, json_structure
from fuzz.own_formats import copied

IDS = [f"k{number}" for number in range(8)]
SECRETS = {"ann": "a" * 32, "bob": "b" * 32}


@cache
def database() -> bytes:
    """Return a database with two raters and some ratings."""
    with tempfile.TemporaryDirectory() as place:
        store = RatingStore(Path(place) / "ratings.sqlite", "d")
        store.add_raters(list(SECRETS))
        with store._open_transaction() as connection:
            connection.executemany("UPDATE raters SET secret = ? WHERE name = ?", [(b, a) for a, b in SECRETS.items()])
        store.assign(IDS, 2, seed=1)
        store.port = 8017
        for number, identity in enumerate(IDS[:5]):
            store.save("ann", Rating(id=identity, scores={"overall": 1 + number}, comment="so ü" * number))
        store.save("ann", Rating(id=IDS[0], scores={"overall": 3}, seconds=1.5, again=True))
        store.close()
        return store.path.read_bytes()


_COLUMNS = {
    "about": ("name", "value"),
    "raters": ("name", "secret"),
    "dealt": ("rater", "id"),
    "ratings": ("rater", "id", "again", "line"),
}
_SCHEMAS = (
    "DROP TABLE dealt",
    "CREATE TABLE more (x)",
    "CREATE VIEW more AS SELECT * FROM ratings",
    "CREATE TRIGGER more AFTER INSERT ON ratings BEGIN DELETE FROM ratings; END",
    "CREATE INDEX more ON ratings (line)",
    "ALTER TABLE ratings ADD COLUMN more",
    "ALTER TABLE ratings RENAME COLUMN line TO more",
    "PRAGMA user_version=7",
    "PRAGMA application_id=7",
    "PRAGMA page_size=512",
    "PRAGMA journal_mode=WAL",
    "PRAGMA auto_vacuum=FULL",
)


def change_database(
    columns: Mapping[str, Sequence[str]], schemas: Sequence[str], documents: tuple[str, str]
) -> Mutator:
    """Return a mutator that changes a cell, document, row or schema; what SQLite does not read is Unfit.

    Args:
        columns: The columns of each table.
        schemas: Statements that make another database of it.
        documents: The table and the column that hold JSON.
    """

    def change(content: bytes, rng: random.Random) -> bytes:
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "changed.sqlite")
            path.write_bytes(content)
            try:
                with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                    for _ in range(rng.choice((1, 1, 2))):
                        _change(connection, rng, columns, schemas, documents)
                    if rng.random() < 0.3:
                        connection.execute("VACUUM")
            except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError, ValueError, TypeError):
                raise Unfit from None
            return path.read_bytes()

    return change


def _change(
    connection: sqlite3.Connection,
    rng: random.Random,
    columns: Mapping[str, Sequence[str]],
    schemas: Sequence[str],
    documents: tuple[str, str],
) -> None:
    table = rng.choice(list(columns))
    column = rng.choice(columns[table])
    where = f"WHERE rowid = (SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET {rng.randrange(8)})"
    how = rng.randrange(6)
    if how == 0:
        connection.execute(rng.choice(schemas))
    elif how == 1:
        connection.execute(f"DELETE FROM {table} {where}")
    elif how == 2:
        inside, name = documents
        row, document = rng.choice(connection.execute(f"SELECT rowid, {name} FROM {inside}").fetchall())
        text = json.dumps(changed_document(json.loads(document), rng))
        changed = text if isinstance(document, str) else text.encode()
        connection.execute(f"UPDATE {inside} SET {name} = ? WHERE rowid = ?", (changed, row))
    elif how == 3:
        connection.execute(f"UPDATE {table} SET {column} = CAST({column} AS BLOB) {where}")
    else:
        value: Any = rng.choice((*VALUES, *TOKENS, *(number.decode() for number in NUMBERS)))
        value = json.dumps(value) if isinstance(value, list | dict) else value
        if isinstance(value, bytes) and rng.random() < 0.5:
            connection.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) {where}", (value,))
        else:
            connection.execute(f"UPDATE {table} SET {column} = ? {where}", (value,))


_CHANGES = [change_database(_COLUMNS, _SCHEMAS, ("ratings", "line"))] * 4


@target("rating-database", seeds=lambda: [{"ratings.sqlite": database()}], mutators={".sqlite": _CHANGES})
def rating_database(folder: Path) -> None:
    """A database that is exported, and that a server goes on with."""
    before = list(read_stored_lines(folder / "ratings.sqlite"))
    with copied(folder) as copy:
        store = RatingStore(copy / "ratings.sqlite", "d")
        try:
            store.add_raters(["cy"])
            store.assign(IDS, None, seed=1)
            for rater in store.read_raters():
                store.read_lines(rater)
            store.count_ratings()
            rater = (
                "cy"
                if store.read_assigned("cy")
                else next(name for name in store.read_raters() if store.read_assigned(name))
            )
            store.save(rater, Rating(id=min(store.read_assigned(rater)), scores={"overall": 2}, again=True))
            _ = store.port
        finally:
            store.close()
        assert len(list(read_stored_lines(store.path))) >= len(before)


_BODY = {"id": IDS[0], "rater": "ann", "scores": {"overall": 4}, "seconds": 2.5, "comment": "so"}


def _post(body: bytes) -> bytes:
    head = f"POST /r/{SECRETS['ann']}/ratings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nAccept: */*\r\n\r\n".encode() + body


def _requests() -> Sequence[Files]:
    page = f"GET /r/{SECRETS['bob']}/ HTTP/1.1\r\nHost: localhost\r\nCookie: a=b\r\n\r\n".encode()
    return [{"request.http": page}, {"request.http": _post(json.dumps(_BODY).encode())}]


def changed_header(content: bytes, rng: random.Random) -> bytes:
    """Return a request with a header that is another, gone or there several times."""
    head, end, body = content.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    at = rng.randrange(len(lines))
    name, colon, value = lines[at].partition(b": ")
    how = rng.randrange(5)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines[at:at] = [lines[at]] * rng.choice((1, 2, 200))
    elif how == 2:
        lines[at] = name + colon + rng.choice((*NUMBERS, *TOKENS, b"x" * 40_000))
    elif how == 3:
        lines[at] = rng.choice(TOKENS) + colon + value
    else:
        known = (b"Transfer-Encoding: chunked", b"Expect: 100-continue", b"Connection: upgrade", b" folded")
        lines.insert(rng.randint(1, len(lines)), rng.choice(known))
    return b"\r\n".join(lines) + end + body


def changed_rating(content: bytes, rng: random.Random) -> bytes:
    """Return a request with another rating, and the length that it has."""
    head, end, body = content.partition(b"\r\n\r\n")
    if not body:
        raise Unfit
    body = json_structure(body, rng)
    return re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), head) + end + body


@target("rating-server", seeds=_requests, mutators={".http": [changed_header, changed_rating]})
def rating_server(folder: Path) -> None:
    """A request to the server: it is answered, and nothing but a rating of the form changes the database."""
    content = (folder / "request.http").read_bytes()
    things = [{"id": identity, "context": ["what"], "responses": ["this"]} for identity in IDS]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "ratings.sqlite")
        path.write_bytes(database())
        before = list(read_stored_lines(path))
        store = RatingStore(path, "d")
        try:
            with RatingServer(store, Form(), "d", things) as server:
                server.hosts.add("localhost")
                answer = _answer(server, content)
        finally:
            store.close()
        status = int(re.match(rb"HTTP/1\.0 (\d{3}) ", answer)[1])  # type: ignore[index]
        after = list(read_stored_lines(path))
    assert (after == before) == (status != 204), status
    if status >= 400:
        raise DataError(Problem("request.http", None, f"status {status}", "send another request"))


def _answer(server: RatingServer, content: bytes) -> bytes:
    """Return what a handler answers to the bytes of a request, without a network."""
    client, own = socket.socketpair()
    with client, own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        client.settimeout(10)
        client.sendall(content[:90_000])  # of more the handler would not read the end, and reset the connection
        client.shutdown(socket.SHUT_WR)
        server.finish_request(own, ("127.0.0.1", 1))
        with suppress(OSError):  # the handler may have done so
            own.shutdown(socket.SHUT_WR)  # closing it with unread bytes would reset the connection
        answer = b""
        while received := client.recv(1 << 16):
            answer += received
        return answer
