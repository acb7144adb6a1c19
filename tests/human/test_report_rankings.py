"""A ranking as a table."""

from __future__ import annotations

import csv
import io
import json

import dialeval
from dialeval.reports import documents
from human.test_rank import compared
from human.test_report import printed

FOUND = dialeval.rank(compared())


def test_the_terminal() -> None:
    text = printed(documents.lay_out(FOUND))
    first, second, last = (each.system for each in FOUND.systems)
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["system", "group"]
    assert [line.split()[:2] for line in lines[2:5]] == [[first, "a"], [second, "a"], [last, "b"]]
    assert "won/tied/lost against" in text
    assert "/".join(map(str, FOUND.between[first][last])) in text
    assert "equal length" not in text


def test_at_equal_length_its_effect_is_told() -> None:
    rows = compared(400, length=1.0)
    del rows[0]["response_a"]
    text = printed(documents.lay_out(dialeval.rank(rows, length=True)))
    assert "Controlled for length: doubling the length multiplies the odds by" in text
    assert "1 pairs without texts are left out." in text


def test_every_format() -> None:
    lines = list(csv.DictReader(io.StringIO(documents.FORMATS["csv"](FOUND))))
    assert [line["groups"] for line in lines] == ["a", "a", "b"]
    assert float(lines[0]["strength"]) == FOUND.systems[0].strength
    assert documents.FORMATS["md"](FOUND).startswith("| system | group |")
    assert r"\toprule" in documents.FORMATS["latex"](FOUND)
    assert json.loads(documents.FORMATS["json"](FOUND)) == FOUND.to_dict()
