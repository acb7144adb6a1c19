"""What the tests of the readers share: rows as plain Python, and files made on the spot."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from dialeval.core.errors import DataError, Problem
from dialeval.io.rows import Rows

Plain: TypeAlias = dict[str, Any]
Write: TypeAlias = Callable[[str, "bytes | str"], Path]


def plain(rows: Rows) -> Plain:
    """Everything in some rows as Python objects, to be compared with `==`."""
    return {
        "system": rows.system,
        "columns": {str(need): list(column) for need, column in rows.columns.items()},
        "dialogues": None if rows.dialogues is None else list(rows.dialogues),
        "turns": None if rows.turns is None else rows.turns.tolist(),
    }


@pytest.fixture
def as_plain() -> Callable[[list[Rows]], list[Plain]]:
    return lambda found: [plain(rows) for rows in found]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file and give its path; `.gz` is packed."""

    def written(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return written


@pytest.fixture
def faults_of() -> Callable[[Callable[[], object]], list[Problem]]:
    """The faults with which a call fails."""

    def caught(call: Callable[[], object]) -> list[Problem]:
        with pytest.raises(DataError) as info:
            call()
        return list(info.value.faults)

    return caught
