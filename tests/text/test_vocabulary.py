"""Words and ids, against `str.split` and a dict."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.columns import TextColumn
from dialeval.text.vocabulary import Vocabulary

SPACES = "".join(chr(code) for code in range(0x11000) if chr(code).isspace())
LOOKALIKES = "\u200b\u180e\u2060\ufeff\x00\x1b\x84\u0086\u2027\u202a\u3001\u205e\u2060\u1681"
mixed = st.text(
    st.one_of(
        st.sampled_from("abc"),
        st.sampled_from(SPACES + LOOKALIKES),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)


def naive(rows: list[str]) -> tuple[list[int], list[int], dict[str, int]]:
    """The ten-line twin: ids in the order of first sight."""
    vocabulary: dict[str, int] = {}
    ids: list[int] = []
    offsets = [0]
    for row in rows:
        ids += [vocabulary.setdefault(word, len(vocabulary)) for word in row.split()]
        offsets.append(len(ids))
    return ids, offsets, vocabulary


def agrees(rows: list[str]) -> None:
    ids, offsets, words = naive(rows)
    vocabulary = Vocabulary()
    column = vocabulary.split(TextColumn.from_strings(rows))
    assert column.ids.tolist() == ids
    assert column.offsets.tolist() == offsets
    assert list(vocabulary.column()) == list(words)


@settings(max_examples=300)
@given(st.lists(mixed, max_size=6))
def test_splits_like_python_on_any_text(rows: list[str]) -> None:
    agrees(rows)


@pytest.mark.parametrize("space", SPACES)
def test_every_white_space_of_python_separates(space: str) -> None:
    agrees([f"a{space}b", f"{space}a{space}{space}", f"longer-than-eight{space}bytes-here", space])


@pytest.mark.parametrize("char", LOOKALIKES)
def test_nothing_else_separates(char: str) -> None:
    agrees([f"a{char}b", char, f"{char}word-of-more-than-eight-bytes{char}"])


@given(st.lists(st.sampled_from(["a", "aa", "\x00", "a\x00", "", *("x" * k for k in range(5, 20))]), max_size=40))
def test_word_lengths_around_the_key_sizes(words: list[str]) -> None:
    agrees([" ".join(words), *words])


def test_rows_inside_a_larger_buffer() -> None:
    data = np.frombuffer(b"one two three four five six seven", np.uint8)
    vocabulary = Vocabulary()
    column = vocabulary.split(TextColumn(data, np.array([4, 0, 19]), np.array([13, 2, 33])))
    assert column.words() == [["two", "three"], ["on"], ["five", "six", "seven"]]


def test_growth_keeps_every_word() -> None:
    rows = [
        " ".join(f"word{number}{'é' * (number % 3)}" for number in range(start, start + 50))
        for start in range(0, 30_000, 25)
    ]
    agrees(rows)


def test_one_very_long_word_and_one_very_long_row() -> None:
    agrees(["x" * 1_000_000, "a b " * 200_000, "x" * 1_000_000 + "y"])


@given(st.lists(st.text(max_size=12), max_size=30), st.lists(st.text(max_size=12), max_size=10))
def test_whole_texts_are_found_again(known: list[str], asked: list[str]) -> None:
    twin = {word: number for number, word in enumerate(dict.fromkeys(known))}
    vocabulary = Vocabulary(known)
    assert len(vocabulary) == len(twin)
    assert vocabulary.find(TextColumn.from_strings(asked)).tolist() == [twin.get(word, -1) for word in asked]
    assert vocabulary.words(np.arange(len(twin), dtype=np.int32)) == list(twin)


def test_threads_share_one_vocabulary() -> None:
    rows = [[f"w{(start * 7 + k) % 5000}" for k in range(200)] for start in range(200)]
    vocabulary = Vocabulary()
    with ThreadPoolExecutor(4) as pool:
        columns = list(pool.map(lambda row: vocabulary.split(TextColumn.from_strings([" ".join(row)])), rows))
    assert [column.words()[0] for column in columns] == rows
    assert len(vocabulary) == len({word for row in rows for word in row})


def test_a_pickled_vocabulary_has_the_same_ids() -> None:
    vocabulary = Vocabulary(["b", "a", "", "ü" * 20])
    again = pickle.loads(pickle.dumps(vocabulary))
    assert list(again.column()) == list(vocabulary.column())
