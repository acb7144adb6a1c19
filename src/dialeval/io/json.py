"""JSON documents: any document of a file, and documents of rows.

A document of rows is a list of strings, a list of row objects, an object of system name -> such a list, a single row of
a known shape, or a log that holds a list of these (`row_shapes`). It is parsed as a whole; the parser keeps no line
numbers, so a problem names the item of the list.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import orjson

from dialeval.core.arrays import Bytes
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, Problem, ProblemList
from dialeval.io.opening import (
    PathSource,
    encoding_problem,
    find_encoding_problems,
    read_bytes,
    split_lines,
    strip_mark,
    unpacked_limit,
)
from dialeval.io.row_shapes import find_document_rows, find_shape, is_row, join_documents, value_at
from dialeval.io.rows import Records, kind_of

_FORMS = "give a list of strings, a list of row objects, or an object of system name -> list"
_READ_BYTES = 1 << 20
_DECODER = json.JSONDecoder(parse_int=str)
"""Finds where values end; any number of digits is read."""
_GAP = re.compile(r"[ \t\r\n,:]*")


def load(path: PathSource, form: str = "write a JSON document") -> Any:
    """Return the parsed document of a file; `form` says what an empty file should hold."""
    return parse_bytes(read_bytes(path), os.fspath(path), form)


def parse_bytes(data: Bytes, where: str, form: str = "write a JSON document") -> Any:
    """Return the value of a JSON document; DataError where it is empty, not UTF-8 or not JSON."""
    data = strip_mark(data)
    try:
        return orjson.loads(data.data)
    except orjson.JSONDecodeError as error:
        if not data.tobytes().strip():
            raise DataError(Problem(where, None, "is empty", form)) from None
        what = f"not JSON ({error.msg.partition(': line')[0]})"
        problems = find_encoding_problems(split_lines(data, where), where)
        raise DataError(problems or Problem(where, error.lineno, what, "correct it there")) from None


def read_json(path: PathSource) -> dict[str | None, Records]:
    """Return the rows of each named list of a file; those of a plain list have no name."""
    data = strip_mark(read_bytes(path))
    where = os.fspath(path)
    try:
        document = parse_bytes(data, where, _FORMS)
    except DataError:
        if len(documents := _parse_several(data)) < 2:
            raise
        document = documents
    if isinstance(document, list):
        if (rows := join_documents(document)) is not None and document:
            return {None: Records(where, enumerate(rows, 1))}
        return {None: Records(where, enumerate(document, 1), items_of="")}
    if not isinstance(document, dict) or not document:
        what = "is an empty object" if isinstance(document, dict) else f"is {kind_of(document)}"
        raise DataError(Problem(where, 1, what, _FORMS))
    if (shape := find_shape(document)) is not None and shape.assembler:
        return {None: Records(where, [(1, document)])}
    log = find_document_rows(document)
    if log is not None:
        return {None: Records(where, enumerate(log[1], 1), items_of=log[0])}
    if is_row(document) or not all(isinstance(value, list) for value in document.values()):
        return {None: Records(where, [(1, document)])}
    kinds = {name: "an empty list" if items == [] else kind_of(items) for name, items in document.items()}
    problems = [
        Problem(where, None, f"{name!r} is {kind}, not a list of rows", f"{_FORMS}; put a single row into a list")
        for name, kind in kinds.items()
        if kind != "a list"
    ]
    if problems:
        raise DataError(problems)
    shapes = [find_shape(items[0]) for items in document.values() if items and isinstance(items[0], dict)]
    if shapes and all(shape is not None and shape.assembler == "spans" for shape in shapes):  # spans by operation
        return {None: Records(where, enumerate(chain.from_iterable(document.values()), 1))}
    return {name: Records(where, enumerate(items, 1), items_of=name) for name, items in document.items()}


def _parse_several(data: Bytes) -> list[Any]:
    """Return documents that follow each other, as SDKs print spans; none if one is not JSON."""
    documents, position = list[Any](), 0
    with suppress(ValueError, RecursionError):
        text = data.tobytes().decode()
        while (position := _GAP.match(text, position).end()) < len(text):  # type: ignore[union-attr]
            start = position
            _, position = _DECODER.raw_decode(text, start)
            documents.append(orjson.loads(text[start:position]))
        return documents
    return []


_MEMBER = re.compile(
    r"(samples/.+_epoch_[0-9]+|header|summaries|reductions|_journal/.+)\.json|(samples|_journal)/(.+/)?"
)
"""The members of a log of inspect_ai, and folders that an archive may list."""
_END, _MANY = b"PK\5\6", 0xFFFF
"""The start of the end of an archive, which states the number of members 10 bytes on; so many, or more."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_CONVERT = "run: inspect log convert FILE --to json --output-dir FOLDER"


def read_archive(path: PathSource) -> dict[str | None, Records]:
    """Return the samples of a log of inspect_ai, a zip archive with a JSON file for each, in the order of its names.

    A sample that cannot be read is a problem of its own. An archive whose members are not those of a whole log, or that
    unpacks to more than packed files may, is refused.
    """
    where = os.fspath(path)
    archive = _Archive(where, read_bytes(path))
    heads = (name for name in ("header.json", "_journal/start.json") if name in archive.members)
    header: Any = next(map(archive.read, heads), {})
    names = archive.list_samples(header)
    problems, samples = ProblemList(), {}
    for number, name in enumerate(names, 1):
        try:
            samples[number] = archive.read(name)
        except DataError as error:
            problems += error.problems
    log = find_document_rows({"eval": header.get("eval") or {}, "samples": list(samples.values())})
    return {None: Records(where, zip(samples, samples.values() if log is None else log[1], strict=True), problems)}


class _Archive:
    """The members of a zip archive; no more is unpacked than their sizes say, and these are bounded together."""

    def __init__(self, where: str, data: Bytes) -> None:
        self.where = where
        with _explain_archive_errors(where):
            self._archive = zipfile.ZipFile(io.BytesIO(data.data))
            self._listed = self._archive.infolist()
        self.members = {member.filename: member for member in self._listed}
        tail = data[-(1 << 17) :].tobytes()
        stated = int.from_bytes(tail[tail.rfind(_END) + 10 :][:2], "little")
        if stated not in (len(self._listed), _MANY):
            what = f"lists {len(self._listed):,} members and states {stated:,}"
            raise DataError(Problem(where, None, what, _CONVERT))
        if sum(member.file_size for member in self._listed) > unpacked_limit(len(data)):
            raise DataError(Problem(where, None, "unpacks to far more than its size", _CONVERT))

    def list_samples(self, header: object) -> list[str]:
        """Return the names of samples; DataError where the members are not those of a whole log."""
        times = Counter(member.filename for member in self._listed)
        names = sorted(name for name in times if name.startswith("samples/") and not name.endswith("/"))
        strange = {name: "is no member of a log of inspect_ai" for name in times if not _MEMBER.fullmatch(name)}
        strange |= {name: f"is in the archive {number} times" for name, number in times.items() if number > 1}
        listed = self.read("summaries.json") if "summaries.json" in times and not strange else None
        if isinstance(listed, list) and all(isinstance(each, dict) for each in listed):
            stated = {f"samples/{each.get('id')}_epoch_{each.get('epoch')}.json" for each in listed}
            strange |= dict.fromkeys(sorted(stated.difference(names)), "is listed by the log and missing")
            strange |= {name: "is not listed by the log" for name in names if name not in stated}
        if strange:
            raise DataError(Problem(f"{self.where}: {name}", None, what, _CONVERT) for name, what in strange.items())
        number = value_at(header, "results.completed_samples") if isinstance(header, dict) else None
        what = "holds no samples of inspect_ai" if not names or not isinstance(header, dict) else ""
        if isinstance(number, int) and number > len(names):
            what = f"holds {len(names):,} samples, and its header counts {number:,}"
        if what:
            raise DataError(Problem(self.where, None, what, _CONVERT))
        return names

    def read(self, name: str) -> Any:
        """Return the document of a member; DataError where it cannot be read."""
        member, where = self.members[name], f"{self.where}: {name}"
        if member.compress_type not in _METHODS:
            what = f"is packed by method {member.compress_type}, and only stored and deflated members are read"
            raise DataError(Problem(where, None, what, _CONVERT))
        with _explain_archive_errors(where), self._archive.open(member) as packed:
            # By pieces, so that no more is unpacked than the member states.
            content = b"".join(iter(partial(packed.read, _READ_BYTES), b""))
        return parse_bytes(np.frombuffer(content, np.uint8), where)


@contextmanager
def _explain_archive_errors(where: str) -> Iterator[None]:
    """Turn what `zipfile` raises for damaged archives into a DataError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, OSError, ValueError, struct.error) as error:
        what = f"is not a readable log of inspect_ai ({error})"
        raise DataError(Problem(where, None, what, _CONVERT)) from None


# JSONL: one JSON value per line, a row object or a plain string.
#
# LF and CRLF end a line, blank lines are skipped, a byte order mark is dropped. Every line that is not JSON is a
# problem, and so is nesting that is too deep or a number that is too large.

_WHITESPACE = b" \t\r\n"
_OTLP = re.compile(rb'\s*\{\s*"resource(Spans|Logs|Metrics)"')


def read_jsonl(path: PathSource) -> Records:
    """Return the rows of a file, parsed when they are asked for."""
    where = str(path)
    return parse_lines(split_lines(read_bytes(path), where), where)


def parse_lines(lines: TextColumn, where: str) -> Records:
    """Return the rows of some lines of a file, numbered from the first of them on."""
    problems = ProblemList()
    return Records(where, _parse_rows(lines, where, problems), problems)


def _parse_rows(lines: TextColumn, where: str, problems: list[Problem]) -> Iterator[tuple[int, object]]:
    view = lines.data.data
    spans = zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)
    load: Callable[[Any], Any] = orjson.loads
    if _OTLP.match(lines.data[:200].tobytes()):
        from dialeval.io.spans import read_export as load  # loads msgspec
    for line, (start, end) in enumerate(spans, 1):
        try:
            yield line, load(view[start:end])
        except ValueError as error:
            text = bytes(view[start:end])
            if text.strip(_WHITESPACE):
                problems.append(_problem(where, line, text, error))


def _problem(where: str, line: int, text: bytes, error: ValueError) -> Problem:
    try:
        text.decode()
    except UnicodeDecodeError as bad:
        return encoding_problem(where, line, bad)
    return Problem(where, line, f"not JSON ({str(error).partition(': line')[0]})", "write one JSON object per line")
