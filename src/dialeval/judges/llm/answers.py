"""Answers of language models in an SQLite file: every request and its answer, by the digest of the request.

    answers(key, request, answer, reason, digest)

An answer counts only when it is committed, so that neither Ctrl-C nor a killed process loses one that was received.
Threads that store answers at the same time share a commit. Of several processes that ask the same, the answer that was
stored first counts for all. A request that failed is recorded with its reason; a run sends it again, a replay repeats
the reason. The file holds texts of the dialogues, and no key. A record whose digest is not that of its content was
changed, and is refused.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dialeval.core import validation
from dialeval.core.errors import DataError
from dialeval.core.files import cache_root, refuse_link, replace_file

APPLICATION = 0x6C6C6D32
"""The id in the header of the file, by which others are refused."""
_COLUMNS = "key TEXT PRIMARY KEY, request BLOB NOT NULL, answer BLOB, reason TEXT, digest TEXT NOT NULL"
_TABLE = f"CREATE TABLE answers ({_COLUMNS})"
_REMEDY = "give a file that dialeval recorded answers in, or a name that is free"
_PATIENCE = 60.0
"""Seconds to wait for another process that writes."""
_AT_ONCE = 500


class AnswerRecord(NamedTuple):
    """A request and what came of it: an answer, or the reason why there is none."""

    key: str
    request: bytes
    answer: bytes | None
    reason: str | None = None

    @property
    def digest(self) -> str:
        """The digest of the record."""
        return hashlib.sha256(repr(tuple(self)).encode()).hexdigest()


class AnswerStore:
    """An open file of answers; its methods may be called from any thread."""

    def __init__(self, path: str | os.PathLike[str] | None = None, read_only: bool = False) -> None:
        self.path = cache_root() / "llm" / "answers-2.sqlite" if path is None else Path(path)
        self._lock, self._using = threading.Lock(), threading.Lock()
        self._writer = ThreadPoolExecutor(1, "answers")
        self._waiting: list[AnswerRecord] = []
        if read_only or self.path.exists():
            validation.size_of(self.path, _REMEDY)
        else:
            refuse_link(self.path)
        with validation.explain_sqlite_errors(self.path, _REMEDY):
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            # A reader that may not write would leave the files of the journal behind.
            mode = "rwc" if not read_only else "rw" if os.access(self.path, os.W_OK) else "ro"
            address = f"{self.path.absolute().as_uri()}?mode={mode}"
            until = time.monotonic() + _PATIENCE
            while True:
                self._connection = sqlite3.connect(
                    address, _PATIENCE, isolation_level=None, check_same_thread=False, uri=True
                )
                try:
                    self._prepare(read_only)
                    break
                except BaseException as error:
                    self._connection.close()
                    # SQLite itself does not wait for a process that changes the mode of the journal.
                    locked = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
                    if not locked or time.monotonic() > until:
                        raise
                    time.sleep(0.01)

    def _prepare(self, read_only: bool) -> None:
        run = self._connection.execute
        run("PRAGMA trusted_schema=OFF")
        if read_only:
            run("PRAGMA query_only=ON")
        else:
            run("BEGIN IMMEDIATE")
            if not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                run(f"PRAGMA application_id={APPLICATION}")
                run(_TABLE)
                self.path.chmod(0o600)
            run("COMMIT")
        tables = [sql for (sql,) in run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
        if run("PRAGMA application_id").fetchone()[0] != APPLICATION or tables != [_TABLE]:
            raise validation.InvalidError("is not a file of recorded answers")
        if not read_only:
            run("PRAGMA journal_mode=WAL")
            run("PRAGMA synchronous=FULL")

    def find(self, keys: Sequence[str], failures: bool = False) -> dict[str, AnswerRecord]:
        """Return the records of some requests; with `failures` also those without an answer.

        Raises:
            DataError: A record was changed after it was stored.
        """
        records: dict[str, AnswerRecord] = {}
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, request, answer, reason, digest FROM answers WHERE key IN ({marks})"  # noqa: S608
            with validation.explain_sqlite_errors(self.path, _REMEDY), self._using:
                for *content, digest in self._connection.execute(query, some).fetchall():
                    record = AnswerRecord(*content)
                    if record.digest != digest:
                        raise validation.InvalidError(f"{str(record.key)[:12]} was changed after it was recorded")
                    if failures or record.answer is not None:
                        records[record.key] = record
        return records

    def store(self, record: AnswerRecord) -> AnswerRecord:
        """Write a record, commit it together with those of other threads, and return the one that counts.

        That is the answer that another process stored before, if there is one.
        """
        with self._lock:
            self._waiting.append(record)
        self._writer.submit(self._flush).result()
        return self.find([record.key], failures=True)[record.key]

    def _flush(self) -> None:
        with self._lock:
            records, self._waiting = self._waiting, []
        if records:  # else they were committed before, or the failure of that ends the run
            self.write(records)

    def write(self, records: Collection[AnswerRecord], one_file: bool = False) -> None:
        """Commit records; with `one_file` the journal is put into the file."""
        with validation.explain_sqlite_errors(self.path, _REMEDY), self._using:
            self._connection.execute("BEGIN IMMEDIATE")
            failed = "DELETE FROM answers WHERE key = ? AND answer IS NULL"
            self._connection.executemany(failed, [(record.key,) for record in records])
            stored = "INSERT INTO answers VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"
            self._connection.executemany(stored, [(*record, record.digest) for record in records])
            self._connection.execute("COMMIT")
            if one_file:
                self._connection.execute("PRAGMA journal_mode=DELETE")

    def copy(self, used: Mapping[str, AnswerRecord | None], target: str | os.PathLike[str]) -> None:
        """Write the records of some requests to a file of their own, which can be read anywhere.

        `used`: the keys, those of failed requests with their record: another process may store an answer later.
        """
        records = self.find(sorted(used), failures=True)
        records |= {key: failure for key, failure in used.items() if failure is not None}
        with replace_file(target) as beside:
            beside.unlink(missing_ok=True)
            try:
                with closing(AnswerStore(beside)) as copied:
                    copied.write(records.values(), one_file=True)
            except DataError as error:  # such as a full disk
                raise DataError(replace(problem, where=os.fspath(target)) for problem in error.problems) from None

    def close(self) -> None:
        """Close the file."""
        self._writer.shutdown()
        self._connection.close()
