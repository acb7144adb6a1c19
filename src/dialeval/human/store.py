"""The database of a rating server: raters, the rows assigned to each rater, and their ratings.

SQLite with a rollback journal and `synchronous=EXTRA`: a rating is on the disk, in this one file, before it is
acknowledged. No end of the process loses one, and a copy of the file alone holds every acknowledged rating; in WAL mode
the latest ones would be in a second file. A copy that is made in the middle of a write is refused as damaged. The
database changes in place, which is what SQLite is for; everything else that is written goes through `core.files`. The
file holds the raters' secrets and is readable by its owner only.

Nothing in the file is trusted. A file whose header does not have our application id is refused before SQLite opens it,
so that no other database is touched. The whole content is checked when a database is opened: its pages, its tables, and
every value. What SQLite reports later (a lock, a full disk) is a DataError that names the file.

Rows are assigned so that each has as many raters as requested: to those with the fewest rows, at random among equals.
Assigning again, with more raters or more of them per row, only adds.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct

from dialeval.core import validation
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.validation import JsonObject

SUFFIXES = (".sqlite", ".sqlite3", ".db")
FORMAT = 1
LONGEST_NAME = 64
PATIENCE = 5.0
"""Seconds to wait for another program that uses the database."""
APPLICATION = int.from_bytes(b"dlev", "big")
"""SQLite's application id, in the header of the file."""
_MAGIC, _ROLLBACK_JOURNAL = b"SQLite format 3\0", b"\1\1"
_TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE raters (name TEXT PRIMARY KEY, secret TEXT NOT NULL UNIQUE)",
    "CREATE TABLE dealt (rater TEXT NOT NULL REFERENCES raters, id TEXT NOT NULL, PRIMARY KEY (rater, id))",
    """CREATE TABLE ratings (
    rater TEXT NOT NULL, id TEXT NOT NULL, again INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (rater, id, again)
)""",
)
_NOT_OURS = "is not a database of ratings"
_REMEDY = "give a database that `dialeval rate serve` made"

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
RowId = Annotated[str, Meta(min_length=1, max_length=130)]
Secret = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{16,64}\Z")]
Number = Annotated[str, Meta(pattern=r"^[0-9]{1,9}\Z")]


class Rating(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A rating as the page sends it and as the database keeps it."""

    id: RowId
    rater: str = ""
    """The page's is not used: the secret identifies the rater."""
    scores: Annotated[dict[str, float | None], Meta(max_length=20)]
    """Null where the rater is uncertain."""
    seconds: Annotated[float, Meta(ge=0, lt=1e9)] | None = None
    comment: Annotated[str, Meta(max_length=2_000)] = ""
    marked: Annotated[list[Annotated[int, Meta(ge=1, lt=10**6)]], Meta(max_length=1_000)] = []
    """Turns that the rater marked, counted from 1; the reply is the one after the context."""
    both_bad: Annotated[list[str], Meta(max_length=20)] = []
    """Questions by which both responses of a pair are bad."""
    again: bool = False
    """Whether the rater rated the row for the second time."""


class _About(Struct, forbid_unknown_fields=True):
    format: str
    digest: str
    per_row: Number | None = None
    port: Number | None = None
    lead: Secret | None = None


class _Content(Struct):
    """All that a database holds."""

    about: _About
    raters: list[tuple[Name, Secret]]
    dealt: list[tuple[Name, RowId]]
    ratings: list[tuple[Name, RowId, Literal[0, 1], str]]


class RatingStore:
    """An open database; its methods may be called from any thread."""

    def __init__(self, path: str | PathLike[str], digest: str) -> None:
        """Open the database of a sample and form, or create it."""
        self.path = Path(path)
        self._lock = threading.Lock()
        new = not self.path.exists()
        empty = new or validation.size_of(self.path, _REMEDY) == 0
        if not empty:
            _check_header(self.path)
        with validation.explain_sqlite_errors(self.path, _REMEDY):
            if new:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._connection = _connect(self.path)
        try:
            if empty:
                self._create_tables(digest)
            with self._open_transaction() as connection:
                about, _ = _read_content(connection)
            if about.digest != digest:
                what = "holds ratings of another sample, or by another form"
                remedy = "name another database, or the sample and form it was made for"
                raise DataError(Problem(str(path), None, what, remedy))
        except BaseException:
            self.close()
            if new:  # as on a full disk
                self.path.unlink(missing_ok=True)
            raise

    def _create_tables(self, digest: str) -> None:
        with self._open_transaction() as connection:
            connection.execute(f"PRAGMA application_id={APPLICATION}")
            for statement in _TABLES:
                connection.execute(statement)
            about = {"format": str(FORMAT), "digest": digest}
            connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())

    @contextmanager
    def _open_transaction(self) -> Iterator[sqlite3.Connection]:
        """Write all of a block to the disk, or nothing of it."""
        with self._lock, validation.explain_sqlite_errors(self.path, _REMEDY):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # SQLite itself rolls back after some errors, and not after others
                    self._connection.execute("ROLLBACK")
                raise

    def _select(self, query: str, *values: object) -> list[Any]:
        with self._lock, validation.explain_sqlite_errors(self.path, _REMEDY):
            return self._connection.execute(query, values).fetchall()

    def add_raters(self, names: Sequence[str]) -> None:
        """Give each new rater a secret."""
        rows = [(name, secrets.token_urlsafe(24)) for name in names]
        with self._open_transaction() as connection:
            connection.executemany("INSERT INTO raters VALUES (?, ?) ON CONFLICT (name) DO NOTHING", rows)

    def read_raters(self) -> dict[str, str]:
        """Return the secrets of the raters by name."""
        return dict(self._select("SELECT name, secret FROM raters ORDER BY rowid"))

    def assign(self, ids: Sequence[str], per_row: int | None, seed: int, gold: Collection[str] = ()) -> None:
        """Assign rows to raters until each row has `per_row`; None: as many as before, or at first all.

        Every rater gets all of the gold questions.
        """
        raters = list(self.read_raters())
        if per_row is None:
            per_row = self._read_number("per_row") or len(raters)
        if per_row > len(raters):
            raise SettingError(f"each row is to have {per_row} raters, and there are {len(raters)}")
        lot = np.random.default_rng(seed)
        with self._open_transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO about VALUES ('per_row', ?)", (str(per_row),))
            having: dict[str, set[str]] = {identity: set() for identity in ids}
            for rater, identity in connection.execute("SELECT rater, id FROM dealt").fetchall():
                having.setdefault(identity, set()).add(rater)
            load = Counter(rater for raters_of in having.values() for rater in raters_of)
            for identity in ids:
                for _ in range((len(raters) if identity in gold else per_row) - len(having[identity])):
                    free = [rater for rater in raters if rater not in having[identity]]
                    rater = min(free, key=lambda name: (load[name], lot.random()))
                    having[identity].add(rater)
                    load[rater] += 1
                    connection.execute("INSERT INTO dealt VALUES (?, ?)", (rater, identity))

    def read_assigned(self, rater: str) -> set[str]:
        """Return the ids of the rows that a rater was assigned."""
        return {identity for (identity,) in self._select("SELECT id FROM dealt WHERE rater = ?", rater)}

    @property
    def port(self) -> int:
        """The port of the last server, so that links stay the same; 0 where there was none."""
        return self._read_number("port")

    @port.setter
    def port(self, port: int) -> None:
        with self._open_transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO about VALUES ('port', ?)", (str(port),))

    def read_lead_secret(self) -> str:
        """Return the secret of the lead's page, the same one for every server of the database."""
        with self._open_transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO about VALUES ('lead', ?)", (secrets.token_urlsafe(24),))
        return str(self._select("SELECT value FROM about WHERE name = 'lead'")[0][0])

    def _read_number(self, name: str) -> int:
        return next((int(value) for (value,) in self._select("SELECT value FROM about WHERE name = ?", name)), 0)

    def save(self, rater: str, rating: Rating) -> None:
        """Write a rating to the disk, in place of an earlier one of the same row."""
        line = msgspec.json.encode(msgspec.structs.replace(rating, rater=rater)).decode()
        with self._open_transaction() as connection:
            values = (rater, rating.id, int(rating.again), line)
            connection.execute("INSERT OR REPLACE INTO ratings VALUES (?, ?, ?, ?)", values)

    def read_lines(self, rater: str) -> list[JsonObject]:
        """Return the ratings of a rater as plain data."""
        rows = self._select("SELECT line FROM ratings WHERE rater = ? ORDER BY rowid", rater)
        return [msgspec.json.decode(line) for (line,) in rows]

    def count_ratings(self) -> dict[str, tuple[int, int]]:
        """Return, by rater, how many rows are rated and how many were assigned."""
        rated = dict(self._select("SELECT rater, count(DISTINCT id) FROM ratings GROUP BY rater"))
        dealt = dict(self._select("SELECT rater, count(*) FROM dealt GROUP BY rater"))
        return {name: (rated.get(name, 0), dealt.get(name, 0)) for name in self.read_raters()}

    def close(self) -> None:
        """Close the database."""
        with self._lock, suppress(sqlite3.Error):
            self._connection.close()


def read_stored_lines(path: str | PathLike[str]) -> Iterator[tuple[int, JsonObject]]:
    """Yield the ratings in a database with their numbers; a server may have it open."""
    validation.size_of(path, _REMEDY)
    _check_header(path)
    # The journal of a killed server is rolled back when the file is opened next, if it is writable.
    mode: Literal["rw", "ro"] = "rw" if os.access(path, os.W_OK) else "ro"
    with validation.explain_sqlite_errors(path, _REMEDY), closing(_connect(path, mode)) as connection:
        connection.execute("BEGIN")
        _, ratings = _read_content(connection)
    for number, rating in enumerate(ratings, 1):
        yield number, msgspec.to_builtins(rating)


def _connect(path: str | PathLike[str], mode: Literal["rw", "ro"] = "rw") -> sqlite3.Connection:
    address = f"{Path(path).absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, PATIENCE, uri=True, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA synchronous=EXTRA")
    return connection


def _check_header(path: str | PathLike[str]) -> None:
    """Refuse a file that is no database of ours, without SQLite, which might change it."""
    with validation.explain_errors(path, _REMEDY), Path(path).open("rb") as file:
        header = file.read(100)
        ours = (_MAGIC, _ROLLBACK_JOURNAL, APPLICATION.to_bytes(4, "big"))
        if (header[:16], header[18:20], header[68:72]) != ours:
            raise validation.InvalidError(_NOT_OURS)


def _read_content(connection: sqlite3.Connection) -> tuple[_About, list[Rating]]:
    """Check all that a database holds, and return its settings and ratings; InvalidError where it was changed.

    A foreign view or trigger would run; a changed page or value would fail much later.
    """
    statements = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    if sorted(str(sql) for (sql,) in statements) != sorted(_TABLES):
        raise validation.InvalidError(_NOT_OURS)
    damage = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if damage != "ok":
        raise validation.InvalidError(f"is damaged, or was copied while a rating was being written ({damage})")
    listed = "raters", "dealt", "ratings"
    tables = {name: connection.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall() for name in listed}  # noqa: S608
    try:
        about = dict(connection.execute("SELECT name, value FROM about"))
        content = msgspec.convert({**tables, "about": about}, _Content)
        ratings = [msgspec.json.decode(line, type=Rating) for *_, line in content.ratings]
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise validation.InvalidError(validation.describe_mismatch(str(error))) from None
    if content.about.format != str(FORMAT):
        raise validation.InvalidError(f"has layout {content.about.format}, which this version does not read")
    dealt = set(content.dealt)
    names = {name for name, _ in content.raters}
    for (rater, identity, again, _), rating in zip(content.ratings, ratings, strict=True):
        if (rater, identity, bool(again)) != (rating.rater, rating.id, rating.again):
            raise validation.InvalidError(f"the rating of {identity} by {rater} is of another row or rater")
        if rater not in names or (rater, identity) not in dealt:
            raise validation.InvalidError(f"{rater} rated {identity}, which was not assigned to this rater")
    return content.about, ratings
