"""Entries of word vectors: what is written is what is read, and what broke off is not there."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.resources.vector_oddities import Findings
from dialeval.resources.vectorstore import WordRows, forget, stored

ROWS: list[WordRows] = [([b"the", b"of"], np.array([[1.0, -0.0], [3.0, 4.0]])), ([b"the"], np.array([[5.0, 6.0]]))]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").write_text("anything")
    return tmp_path / "source"


def test_an_entry_is_read_as_it_was_written(source: Path, cache: Path) -> None:
    entry = stored("x", [source], np.float32, ROWS, Findings())
    assert entry.matrix.dtype == np.float32
    assert entry.matrix.tolist() == [[1, 0], [3, 4], [5, 6]]
    assert entry.table.find(["of", "the", "a"]).tolist() == [1, 2, -1], "of equal words the later counts"
    assert stored("x", [source], np.float64, iter(()), Findings()).digest == entry.digest, "parsed once"
    forget(source)
    assert list((cache / "vectors").iterdir()) == []


def test_what_was_found_is_there_when_nothing_is_read_again(source: Path) -> None:
    findings = Findings()

    def rows() -> Iterator[WordRows]:
        yield from ROWS
        findings.header = True
        findings.odd.append((3, "blank"))

    assert stored("x", [source], np.float64, rows(), findings).header
    again = stored("y", [source], np.float64, iter(()), Findings())
    assert again.header
    assert again.warnings == ("y: 1 odd line, the first is 3; left out: 1 blank",)
    assert pickle.loads(pickle.dumps(again)).warnings == again.warnings


def test_the_digest_is_that_of_words_and_numbers(tmp_path: Path) -> None:
    def digest(name: str, dtype: str, rows: list[WordRows]) -> str:
        (tmp_path / name).write_text(name)
        return stored(name, [tmp_path / name], dtype, rows, Findings()).digest

    words, vectors = ROWS[0]
    assert digest("a", "f8", [(words, vectors)]) == digest("b", "f4", [(words, vectors + 0.0)])
    assert digest("a", "f8", []) != digest("c", "f8", [([b"the", b"or"], vectors)])
    assert digest("a", "f8", []) != digest("d", "f8", [(words, vectors + 1)])


def test_a_full_disk_is_not_blamed_on_the_source(source: Path, cache: Path) -> None:
    def full() -> Iterator[WordRows]:
        yield ROWS[0]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(SettingError, match="make room"):
        stored("x", [source], np.float64, full(), Findings())
    assert list((cache / "vectors").iterdir()) == []
