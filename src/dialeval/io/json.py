"""JSON documents: any document of a file, and documents of rows.

A document of rows is a list of strings, a list of row objects, an object of system name -> such a list, a single row of
a known shape, or a log that holds a list of these (`row_shapes`). It is parsed as a whole. The parser keeps no line
numbers, so the lines of the items are found afterwards, and only if a problem needs them.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import orjson

from dialeval.core.arrays import Bytes
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, Problem, ProblemList
from dialeval.io.delimited import encoding_problem, find_encoding_problems, split
from dialeval.io.opening import PathSource, read_bytes, strip_mark, unpacked_limit
from dialeval.io.row_shapes import find_document_rows, is_row
from dialeval.io.rows import Records, kind_of

_FORMS = "give a list of strings, a list of row objects, or an object of system name -> list"
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
        problems = find_encoding_problems(split(data, where), where)
        raise DataError(problems or Problem(where, error.lineno, what, "correct it there")) from None


def read_json(path: PathSource) -> dict[str | None, Records]:
    """Return the rows of each named list of a file; those of a plain list have no name."""
    data = strip_mark(read_bytes(path))
    where = os.fspath(path)
    document = parse_bytes(data, where, _FORMS)
    if isinstance(document, list):
        return {None: Records(where, enumerate(document, 1), lines=partial(_find_item_lines, data, None))}
    if not isinstance(document, dict) or not document:
        what = "is an empty object" if isinstance(document, dict) else f"is {kind_of(document)}"
        raise DataError(Problem(where, 1, what, _FORMS))
    log = find_document_rows(document)
    if log is not None:
        path, rows = log
        lines = None if "." in path else partial(_find_item_lines, data, path)
        return {None: Records(where, enumerate(rows, 1), lines=lines)}
    if is_row(document):
        return {None: Records(where, [(1, document)])}
    kinds = {name: "an empty list" if items == [] else kind_of(items) for name, items in document.items()}
    problems = [
        Problem(where, None, f"{name!r} is {kind}, not a list of rows", f"{_FORMS}; put a single row into a list")
        for name, kind in kinds.items()
        if kind != "a list"
    ]
    if problems:
        raise DataError(problems)
    return {
        name: Records(where, enumerate(items, 1), lines=partial(_find_item_lines, data, name))
        for name, items in document.items()
    }


def read_archive(path: PathSource) -> dict[str | None, Records]:
    """Return the samples of a log of inspect_ai, a zip archive with a JSON file for each, in the order of its names."""
    where, data = os.fspath(path), read_bytes(path)
    convert = "run: inspect log convert FILE --to json --output-dir FOLDER"
    try:
        with zipfile.ZipFile(io.BytesIO(data.data)) as archive:
            members = archive.infolist()
            if sum(each.file_size for each in members) > unpacked_limit(len(data)):
                raise DataError(Problem(where, None, "unpacks to far more than its size", convert))
            names = {each.filename for each in members}
            header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
            document = {} if header is None else parse_bytes(np.frombuffer(archive.read(header), np.uint8), where)
            chosen = sorted(name for name in names if re.fullmatch(r"samples/.+\.json", name))
            samples = [parse_bytes(np.frombuffer(archive.read(name), np.uint8), f"{where}: {name}") for name in chosen]
    except (zipfile.BadZipFile, NotImplementedError, zlib.error, RuntimeError, EOFError, OSError) as error:
        what = f"is not a readable log of inspect_ai ({error})"
        raise DataError(Problem(where, None, what, convert)) from None
    if not samples or not isinstance(document, dict):
        raise DataError(Problem(where, None, "holds no samples of inspect_ai", convert))
    log = find_document_rows({"eval": document.get("eval") or {}, "samples": samples})
    return {None: Records(where, enumerate(samples if log is None else log[1], 1))}


def _find_item_lines(data: Bytes, name: str | None) -> list[int]:
    """Return the line on which each item of a list starts; fewer where the document is nested too deeply."""
    text, decoder = data.tobytes().decode(), json.JSONDecoder()
    lines: list[int] = []
    line, counted = 1, 0
    try:
        position = _skip_gap(text, 0) + 1 if name is None else _find_list_start(text, name)
        while text[position := _skip_gap(text, position)] != "]":
            line, counted = line + text.count("\n", counted, position), position
            lines.append(line)
            _, position = decoder.raw_decode(text, position)
    except RecursionError:
        pass
    return lines


def _find_list_start(text: str, name: str) -> int:
    """Return where the items of the list called `name` begin; the last one of that name, as in the parsed document."""
    decoder = json.JSONDecoder()
    start = position = _skip_gap(text, 0) + 1
    while text[position := _skip_gap(text, position)] != "}":
        key, position = decoder.raw_decode(text, position)
        position = _skip_gap(text, position)
        if key == name:
            start = position + 1
        _, position = decoder.raw_decode(text, position)
    return start


def _skip_gap(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap else position


# JSONL: one JSON value per line, a row object or a plain string.
#
# LF and CRLF end a line, blank lines are skipped, a byte order mark is dropped. Every line that is not JSON is a
# problem, and so is nesting that is too deep or a number that is too large.

_WHITESPACE = b" \t\r\n"


def read_jsonl(path: PathSource) -> Records:
    """Return the rows of a file, parsed when they are asked for."""
    where = str(path)
    return parse_lines(split(read_bytes(path), where), where)


def parse_lines(lines: TextColumn, where: str) -> Records:
    """Return the rows of some lines of a file, numbered from the first of them on."""
    problems = ProblemList()
    return Records(where, _parse_rows(lines, where, problems), problems)


def _parse_rows(lines: TextColumn, where: str, problems: list[Problem]) -> Iterator[tuple[int, object]]:
    view = lines.data.data
    spans = zip(lines.starts.tolist(), lines.ends.tolist(), strict=True)
    for line, (start, end) in enumerate(spans, 1):
        try:
            yield line, orjson.loads(view[start:end])
        except orjson.JSONDecodeError as error:
            text = bytes(view[start:end])
            if text.strip(_WHITESPACE):
                problems.append(_problem(where, line, text, error))


def _problem(where: str, line: int, text: bytes, error: ValueError) -> Problem:
    try:
        text.decode()
    except UnicodeDecodeError as bad:
        return encoding_problem(where, line, bad)
    return Problem(where, line, f"not JSON ({str(error).partition(': line')[0]})", "write one JSON object per line")
