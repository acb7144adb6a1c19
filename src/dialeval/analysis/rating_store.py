"""The database of a rating server: who may rate, what each was dealt, and what they said.

SQLite in WAL mode with `synchronous=FULL`: a rating is on the disk before it is acknowledged, so that no end of the
process loses one. The database changes in place, which is what SQLite is for; everything else that is written goes
through `core.files`. The file holds the raters' secrets and is readable by its owner only.

Rows are dealt so that each has as many raters as asked for: to those with the fewest rows, by lot among equals. Dealing
again, with more raters or more of them a row, only adds.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.core import gate
from dialeval.core.errors import DataError, Fault, SettingError

SUFFIXES = (".sqlite", ".sqlite3", ".db")
FORMAT = 1
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE raters (name TEXT PRIMARY KEY, secret TEXT NOT NULL UNIQUE);
CREATE TABLE dealt (rater TEXT NOT NULL REFERENCES raters, id TEXT NOT NULL, PRIMARY KEY (rater, id));
CREATE TABLE ratings (
    rater TEXT NOT NULL, id TEXT NOT NULL, again INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (rater, id, again)
);
"""
_REMEDY = "give a database that `dialeval rate serve` made"


class RatingStore:
    """An open database; its methods may be called from any thread."""

    def __init__(self, path: str | PathLike[str], digest: str) -> None:
        """Open the database of a sample and form, or make it."""
        self.path = Path(path)
        new = not self.path.exists()
        if not new:
            gate.size_of(self.path, _REMEDY)
        with _explained(self.path):
            if new:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._lock = threading.Lock()
            self._connection = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA trusted_schema=OFF")
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                about = {"format": str(FORMAT), "digest": digest}
                with self._changing():
                    for statement in filter(str.strip, _TABLES.split(";")):
                        self._connection.execute(statement)
                    self._connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            _check_tables(self._connection)
            known = dict(self._connection.execute("SELECT name, value FROM about"))
        if (known.get("format"), known.get("digest")) != (str(FORMAT), digest):
            self.close()
            what = "holds ratings of another sample, or by another form"
            raise DataError(
                Fault(str(path), None, what, "name another database, or the sample and form it was made for")
            )

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on the disk in the end, or nothing."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def _all(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def add_raters(self, names: Sequence[str]) -> None:
        """Give each new rater a secret."""
        with self._changing() as connection:
            connection.executemany(
                "INSERT INTO raters VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
                [(name, secrets.token_urlsafe(24)) for name in names],
            )

    def raters(self) -> dict[str, str]:
        """The secrets of the raters, by name."""
        return dict(self._all("SELECT name, secret FROM raters ORDER BY rowid"))

    def deal(self, ids: Sequence[str], per_row: int | None, seed: int) -> None:
        """Deal rows to raters until each row has so many; None: as many as before, or at first all."""
        raters = list(self.raters())
        if per_row is None:
            before = dict(self._all("SELECT name, value FROM about")).get("per_row", "")
            per_row = int(before) if before.isdigit() else len(raters)
        if per_row > len(raters):
            raise SettingError(f"each row is to have {per_row} raters, and there are {len(raters)}")
        lot = np.random.default_rng(seed)
        with self._changing() as connection:
            connection.execute("INSERT OR REPLACE INTO about VALUES ('per_row', ?)", (str(per_row),))
            having: dict[str, set[str]] = {identity: set() for identity in ids}
            for rater, identity in connection.execute("SELECT rater, id FROM dealt").fetchall():
                having.setdefault(identity, set()).add(rater)
            load = Counter(rater for own in having.values() for rater in own)
            for identity in ids:
                for _ in range(per_row - len(having[identity])):
                    free = [rater for rater in raters if rater not in having[identity]]
                    rater = min(free, key=lambda each: (load[each], lot.random()))
                    having[identity].add(rater)
                    load[rater] += 1
                    connection.execute("INSERT INTO dealt VALUES (?, ?)", (rater, identity))

    def dealt(self, rater: str) -> set[str]:
        """What a rater is to rate."""
        return {identity for (identity,) in self._all("SELECT id FROM dealt WHERE rater = ?", rater)}

    def save(self, rater: str, line: Mapping[str, Any]) -> None:
        """Keep a rating, in the place of an earlier one of the same; it is on the disk when this returns."""
        import orjson

        own = {**line, "rater": rater}
        values = (rater, line["id"], int(line.get("again", False)), orjson.dumps(own).decode())
        with self._changing() as connection:
            connection.execute("INSERT OR REPLACE INTO ratings VALUES (?, ?, ?, ?)", values)

    def lines(self, rater: str) -> list[dict[str, Any]]:
        """What a rater said so far."""
        import orjson

        found = self._all("SELECT line FROM ratings WHERE rater = ? ORDER BY rowid", rater)
        return [orjson.loads(line) for (line,) in found]

    def counts(self) -> dict[str, tuple[int, int]]:
        """Of each rater, how many rows are rated and how many were dealt."""
        rated = dict(self._all("SELECT rater, count(DISTINCT id) FROM ratings GROUP BY rater"))
        dealt = dict(self._all("SELECT rater, count(*) FROM dealt GROUP BY rater"))
        return {name: (rated.get(name, 0), dealt.get(name, 0)) for name in self.raters()}

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._connection.close()


def stored_lines(path: str | PathLike[str]) -> Iterator[tuple[int, object]]:
    """The ratings in a database, numbered; one that a server has open may be read as well."""
    import orjson

    gate.size_of(path, _REMEDY)
    with (
        _explained(path),
        closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)) as connection,
    ):
        connection.execute("PRAGMA trusted_schema=OFF")
        _check_tables(connection)
        rows = connection.execute("SELECT line FROM ratings ORDER BY rowid").fetchall()
        lines = [orjson.loads(line) for (line,) in rows]
    yield from enumerate(lines, 1)


def _check_tables(connection: sqlite3.Connection) -> None:
    """UnfitError unless the tables are those that we made: a view or a trigger of somebody else's would run."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    ours = {" ".join(statement.split()) for statement in _TABLES.split(";") if statement.strip()}
    if {" ".join(str(sql).split()) for (sql,) in found} != ours:
        raise gate.UnfitError("is no database of ratings")


@contextmanager
def _explained(path: str | PathLike[str]) -> Iterator[None]:
    """What SQLite says of a file is a DataError that names it."""
    try:
        with gate.explained(path, _REMEDY):
            yield
    except (sqlite3.Error, ValueError) as error:
        raise DataError(Fault(str(path), None, f"cannot be used ({error})", _REMEDY)) from None
