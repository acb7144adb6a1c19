"""Answers of language models in an SQLite file: every request and its answer, by the digest of the request.

    answers(key, request, answer, reason)

An answer counts only when it is committed, so that neither Ctrl-C nor a killed process loses one that was received.
Threads that store answers at the same time share a commit. A request that failed is recorded with its reason; a run
sends it again, a replay repeats the reason. The file holds texts of the dialogues, and no key.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from dialeval.core import validation
from dialeval.core.files import cache_root, replace_file

APPLICATION = 0x6C6C6D31
"""The id in the header of the file, by which others are refused."""
_TABLE = "CREATE TABLE answers (key TEXT PRIMARY KEY, request BLOB NOT NULL, answer BLOB, reason TEXT)"
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


class AnswerStore:
    """An open file of answers; its methods may be called from any thread."""

    def __init__(self, path: str | os.PathLike[str] | None = None, read_only: bool = False) -> None:
        self.path = cache_root() / "llm" / "answers.sqlite" if path is None else Path(path)
        self._lock, self._using = threading.Lock(), threading.Lock()
        self._writer = ThreadPoolExecutor(1, "answers")
        self._waiting: list[AnswerRecord] = []
        if read_only or self.path.exists():
            validation.size_of(self.path, _REMEDY)
        with validation.explain_sqlite_errors(self.path, _REMEDY):
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            address = f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
            self._connection = sqlite3.connect(
                address, _PATIENCE, isolation_level=None, check_same_thread=False, uri=True
            )
            try:
                self._prepare(read_only)
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self, read_only: bool) -> None:
        run = self._connection.execute
        run("PRAGMA trusted_schema=OFF")
        if not read_only:
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
        """Return the records of some requests; with `failures` also those without an answer."""
        found: dict[str, AnswerRecord] = {}
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, request, answer, reason FROM answers WHERE key IN ({marks})"  # noqa: S608
            with validation.explain_sqlite_errors(self.path, _REMEDY), self._using:
                rows = self._connection.execute(query, some).fetchall()
            found |= {row[0]: AnswerRecord(*row) for row in rows if failures or row[2] is not None}
        return found

    def store(self, record: AnswerRecord) -> None:
        """Write a record; it is committed when this returns, together with those of other threads."""
        with self._lock:
            self._waiting.append(record)
        self._writer.submit(self._flush).result()

    def _flush(self) -> None:
        with self._lock:
            records, self._waiting = self._waiting, []
        if records:  # else they were committed before, or the failure of that ends the run
            self.write(records)

    def write(self, records: Iterable[AnswerRecord], one_file: bool = False) -> None:
        """Commit records; with `one_file` the journal is put into the file."""
        with validation.explain_sqlite_errors(self.path, _REMEDY), self._using:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                "INSERT INTO answers VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET request = excluded.request, "
                "answer = excluded.answer, reason = excluded.reason WHERE answers.answer IS NULL",
                records,
            )
            self._connection.execute("COMMIT")
            if one_file:
                self._connection.execute("PRAGMA journal_mode=DELETE")

    def copy(self, keys: Iterable[str], target: str | os.PathLike[str]) -> None:
        """Write the records of some requests to a file of their own, which can be read anywhere."""
        records = self.find(sorted(set(keys)), failures=True)
        with replace_file(target) as beside, validation.explain_sqlite_errors(target, _REMEDY):
            beside.unlink(missing_ok=True)
            with closing(AnswerStore(beside)) as copied:
                copied.write(records.values(), one_file=True)

    def close(self) -> None:
        """Close the file."""
        self._writer.shutdown()
        self._connection.close()
