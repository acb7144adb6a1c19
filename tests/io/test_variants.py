"""Logs as versions of other programs write them, with invented content, and what is in each.

`variants.jsonl` has a file a line: its name, its content, and the counts of conversations, turns of users, replies,
calls of tools and scores. They were written after the structure of public files and documentation.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.account import Account
from dialeval.core.errors import collect_warnings
from dialeval.io.reading import read_responses

VARIANTS = [json.loads(line) for line in Path(__file__).with_name("variants.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant["name"])
def test_counts(tmp_path: Path, variant: dict[str, Any]) -> None:
    path, content = tmp_path / variant["file"], variant["content"].encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    with collect_warnings():
        systems = read_responses(path)
    assert len({rows.system for rows in systems}) == variant.get("systems", 1)
    account = sum((rows.account for rows in systems), Account())
    assert {name: getattr(account, name) for name in variant["counts"]} == variant["counts"]
