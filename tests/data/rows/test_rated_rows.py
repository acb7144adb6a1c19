"""Real rated rows, read as they are. They lie beside a full checkout and are never copied into it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from dialeval.core.needs import Need
from dialeval.data.rows.checks import check
from dialeval.data.rows.reading import read_responses

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "ratings"
FILES = sorted(FOLDER.glob("*.jsonl.gz"))

pytestmark = pytest.mark.skipif(not FILES, reason="the folder of human ratings does not lie beside the checkout")


def test_no_file_has_a_fault() -> None:
    assert check(FILES) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_rows_are_those_of_a_plain_reading(path: Path) -> None:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        plain = [json.loads(line) for line in file]
    name = path.name.partition(".")[0]
    found = {rows.system: rows for rows in read_responses(path)}
    for system, rows in found.items():
        own = [row for row in plain if (row["system"] or name) == system]
        assert list(rows.responses) == [row["response"] for row in own]
        if Need.CONTEXT in rows.columns:
            assert list(rows.columns[Need.CONTEXT]) == [[turn["text"] for turn in row["context"]] for row in own]
        if Need.REFERENCE in rows.columns:
            left_out = [bool(row["response_is_reference"]) if "response_is_reference" in row else False for row in own]
            counts = [0 if left or row["reference"] is None else 1 for left, row in zip(left_out, own, strict=True)]
            assert [min(len(texts), 1) for texts in rows.columns[Need.REFERENCE]] == counts
    assert sum(map(len, found.values())) == len(plain)
