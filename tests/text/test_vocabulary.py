"""Words and ids, against `str.split` and a dict."""

from __future__ import annotations

import ctypes
import mmap
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.columns import TextColumn
from dialeval.text.tokenizers import Tokenizer, tokenize
from dialeval.text.vocabulary import Vocabulary, space_width

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


def test_the_width_of_every_space() -> None:
    near = [(0, 0x100), (0x1000, 0x1010), (0x1680, 0x1690), (0x2000, 0x20A0), (0x3000, 0x3050)]
    for code in (code for first, end in near for code in range(first, end)):
        char, text = chr(code), chr(code).encode()
        data = np.frombuffer(text + b"\x80\x85", np.uint8)
        expected = len(text) if char.isspace() else 0
        assert space_width(data, 0, len(text)) == expected, hex(code)
        assert space_width(data, 0, len(data)) == expected, hex(code)
        if len(text) > 1:  # the end of a text that is not UTF-8 is no space, whatever is behind it
            assert [space_width(data, 0, size) for size in range(1, len(text))] == [0] * (len(text) - 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("qvwukssbaaaaaaaa", 'biqjqtuh9L&+v"^^'),  # both halves differ
        ("collidesleseetx", "collideslesPio9"),  # the end differs
        ("eioswnetsknzojg", "eioswnet9t~e9-KD"),  # 15 bytes and 16
        ("tphefns", "tphZje2"),  # the hashes of these short words would be equal; their keys are not
        ("mitziuo", "7oZ%YCo5"),  # the key of a short word, and the hash of a long one but for its mark
    ],
)
def test_words_with_the_same_hash_are_different_words(one: str, other: str) -> None:
    agrees([f"{one} {other} {one}", f"{other} {one}", one, other, "so that words are read eight bytes at a time"])
    vocabulary = Vocabulary([one])
    assert vocabulary.find(TextColumn.from_strings([other, one])).tolist() == [-1, 0]
    assert vocabulary.add(TextColumn.from_strings([other, one, other])).tolist() == [1, 0, 1]


@pytest.mark.parametrize("size", range(20))
def test_words_are_found_again_whatever_follows_them(size: int) -> None:
    words = TextColumn.from_strings(["x" * size, "x" * (size + 1), "x" * (size + 2)])
    vocabulary = Vocabulary()
    assert vocabulary.add(words).tolist() == [0, 1, 2]
    assert vocabulary.add(words).tolist() == vocabulary.find(words).tolist() == [0, 1, 2]


def test_words_at_the_end_of_the_buffer_are_those_before() -> None:
    for size in range(1, 20):
        word = "abcdefghijklmnopqrst"[:size]
        agrees([f"{word} so that words are read eight bytes at a time", word])


def test_spaces_at_every_place_of_eight_bytes() -> None:
    behind = "so that words are read eight bytes at a time"
    agrees([f"{'W' * before}{space}{'0' * 9}" for space in " \t\xa0" for before in range(18)] + [behind])
    agrees([f"{space}{'a' * size}" for space in (" ", "  ", "\t", "!") for size in range(18)] + [behind])
    agrees(["A B C D E F G H", "1 2 3 4 5 6 7 8 9", "!! !! !!! !!", behind])


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by a call of Linux")
@pytest.mark.parametrize("name", ["words.1", "13a", "rouge", "char"])
def test_no_byte_behind_the_texts_is_read(name: Tokenizer) -> None:
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    behind = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + mmap.PAGESIZE
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(behind), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    for text in ["a", "ab cdef", "12345678", "12345678 ", "longer than eight", "\xe9", "a <"]:
        data = np.frombuffer(pages, np.uint8, mmap.PAGESIZE)[-len(text.encode()) :]
        data[:] = np.frombuffer(text.encode(), np.uint8)
        column = TextColumn(data, np.array([0, 0]), np.array([len(data), len(data)]))
        expected = tokenize(TextColumn.from_strings([text, text]), Vocabulary(), name).words()
        assert tokenize(column, Vocabulary(), name).words() == expected
