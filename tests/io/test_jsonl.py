from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval.core.errors import Problem
from dialeval.io.reading import read_responses

Caught = Callable[[Callable[[], object]], list[Problem]]
Write = Callable[[str, "bytes | str"], Path]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"response": "x"', "not JSON ("),
        (b'{"response": "x"} trailing', "not JSON ("),
        (b"[" * 100_000, "not JSON (depth limit exceeded"),
        (b'{"response": "x", "n": ' + b"9" * 5000 + b"}", "not JSON (number is infinity"),
        (b'{"response": NaN}', "not JSON ("),
        (b'{"response": "\\ud800"}', "not JSON (no low surrogate"),
        (b'{"response": "\xe9"}', "byte 0xe9 at position 15 of the line is not UTF-8"),
        (b"\x0c", "not JSON ("),
        (b"3", "the row is a number"),
    ],
)
def test_every_bad_line_is_a_problem(write: Write, problems_of: Caught, line: bytes, what: str) -> None:
    good = b'{"response": "x"}'
    path = write("a.jsonl", b"\n".join([good, line, b"", good, line, good]))
    found = problems_of(lambda: read_responses(path))
    assert [(problem.where, problem.line) for problem in found] == [(str(path), 2), (str(path), 5)]
    assert all(problem.what.startswith(what) for problem in found)
