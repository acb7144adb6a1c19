from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.resources import wordtable
from dialeval.resources.wordtable import Hashes, WordTable

WORDS = st.lists(st.text(min_size=1, max_size=3), max_size=30)


def table_of(words: list[str]) -> WordTable:
    parts = [word.encode("utf-8", "surrogatepass") for word in words]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return WordTable.build(np.frombuffer(b"".join(parts), np.uint8), offsets)


@given(words=WORDS, asked=WORDS)
def test_equals_a_dictionary(words: list[str], asked: list[str]) -> None:
    twin = {word: row for row, word in enumerate(words)}
    table = table_of(words)
    queries = asked + words
    assert table.find(queries).tolist() == [twin.get(word, -1) for word in queries]
    assert len(table) == len(twin)


@given(words=WORDS, asked=WORDS)
def test_colliding_hashes_change_nothing(words: list[str], asked: list[str]) -> None:
    def two_values(parts: list[bytes]) -> Hashes:
        return np.array([sum(part) % 2 for part in parts], np.uint64)

    twin = {word: row for row, word in enumerate(words)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wordtable, "hashes_of", lambda parts: two_values(list(parts)))
        table = table_of(words)
        queries = asked + words
        assert table.find(queries).tolist() == [twin.get(word, -1) for word in queries]
        assert len(table) == len(twin)


def test_words_in_row_order() -> None:
    assert table_of(["b", "a", "b", "ü"]).words() == ["a", "b", "ü"]


def test_lone_surrogate_is_merely_unknown() -> None:
    assert table_of(["a"]).find(["\ud800", "a"]).tolist() == [-1, 0]
