from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.errors import Problem
from dialeval.io import opening
from dialeval.io.opening import find_encoding_problems, read_lines, split_lines

Caught = Callable[[Callable[[], object]], list[Problem]]


def naive(data: bytes) -> list[bytes]:
    """The contract, word for word: a mark goes, LF and CRLF end a line, the last ending is optional."""
    data = data.removeprefix(codecs.BOM_UTF8)
    *ended, last = data.split(b"\n")
    return [line.removesuffix(b"\r") for line in ended] + ([last] if last else [])


def found(data: bytes) -> list[bytes]:
    column = split_lines(np.frombuffer(data, np.uint8))
    spans = zip(column.starts, column.ends, strict=True)
    return [column.data[start:end].tobytes() for start, end in spans]


texts = st.text(st.one_of(st.sampled_from("\r\n\ufeff\u2028\u0085\x0b\x0c\x1c\0é😀 a"), st.characters(codec="utf-8")))


@given(texts, st.booleans())
def test_lines_of_any_text(text: str, marked: bool) -> None:
    data = (codecs.BOM_UTF8 if marked else b"") + text.encode()
    assert found(data) == naive(data)


@given(st.binary(max_size=60))
def test_lines_of_any_bytes(data: bytes) -> None:
    assert found(data) == naive(data)


@given(st.lists(st.binary(max_size=8)))
def test_every_line_that_is_not_utf8_is_found(rows: list[bytes]) -> None:
    data = b"".join(row.replace(b"\n", b"") + b"\n" for row in rows)
    column = split_lines(np.frombuffer(data, np.uint8))
    bad = []
    for number, row in enumerate(naive(data), 1):
        try:
            row.decode()
        except UnicodeDecodeError:
            bad.append(number)
    assert [problem.line for problem in find_encoding_problems(column, "a.txt")] == bad


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\r\nb\r", ["a\r", "b\r"]),
        (b"\n\n", ["", ""]),
        (b"\n", [""]),
        (b"a\rb\x0cc\x00d\n", ["a\rb\x0cc\0d"]),
        ("a\u2028b\u0085c\n".encode(), ["a\u2028b\u0085c"]),
        (codecs.BOM_UTF8 + b"a\n" + codecs.BOM_UTF8 + b"b\n", ["a", "\ufeffb"]),
    ],
)
def test_what_ends_a_line(tmp_path: Path, content: bytes, expected: list[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    assert list(read_lines(path)) == expected


def test_line_feeds_are_found_across_the_parts_of_a_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_SEARCHED_BYTES", 3)
    data = b"ab\ncd\r\n\nefghij\n\nk"
    assert found(data) == naive(data)


def test_bad_lines_are_found_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problems_of: Caught
) -> None:
    monkeypatch.setattr(opening, "_CHECKED_LINES", 2)
    path = tmp_path / "a.txt"
    path.write_bytes(b"ok\nb\xe9d\nok\nok\n\xff\n")
    first, second = problems_of(lambda: read_lines(path))
    assert (first.where, first.line, first.remedy) == (str(path), 2, "save the file as UTF-8")
    assert first.what == "byte 0xe9 at position 2 of the line is not UTF-8"
    assert (second.line, "0xff" in second.what) == (5, True)


def test_problems_are_listed_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problems_of: Caught
) -> None:
    monkeypatch.setattr(opening, "MOST_PROBLEMS", 10)
    monkeypatch.setattr(opening, "_CHECKED_LINES", 4)
    path = tmp_path / "bad.txt"
    path.write_bytes(b"\xff\n" * 100)
    found = problems_of(lambda: read_lines(path))
    assert [problem.line for problem in found] == [*range(1, 11), None]
    assert found[-1].what == "further problems are not listed"
    path.write_bytes(b"\xff\n" * 10)
    assert [problem.line for problem in problems_of(lambda: read_lines(path))] == [*range(1, 11), None]
    path.write_bytes(b"\xff\n" * 9)
    assert [problem.line for problem in problems_of(lambda: read_lines(path))] == list(range(1, 10))
