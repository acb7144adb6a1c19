"""13a, zh, intl and the words of rouge-score, against the programs that define them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rouge_score.tokenize import tokenize as rouge_tokenize
from sacrebleu.metrics import BLEU

from dialeval.core.columns import TextColumn
from dialeval.text.separation import CODE_POINTS
from dialeval.text.tokenizers import Tokenizer, tokenize
from dialeval.text.vocabulary import Vocabulary
from text.scripts_of_the_world import texts

Split = Callable[[str], list[str]]
NAMES: tuple[Tokenizer, ...] = ("13a", "zh", "intl", "rouge")
each = pytest.mark.parametrize("name", NAMES)
MANY = 20_000
"""Texts that are given to a kernel at once."""


def oracle(name: str) -> Split:
    if name == "rouge":
        return lambda text: list(rouge_tokenize(text, None))
    metric = BLEU(tokenize=name)
    return lambda text: metric._preprocess_segment(text).split()


def ours(several: list[str], name: Tokenizer) -> list[list[str]]:
    return tokenize(TextColumn.from_strings(several), Vocabulary(), name).words()


@each
@given(several=st.lists(texts, max_size=4))
@settings(max_examples=200)
@example(several=["", " ", "\n", "x-\n", "1..5", "1...5", ".5", "5.", " .5 ", "a-\n-b", "<skip<skipped>ped>"])
def test_it_is_the_original(name: Tokenizer, several: list[str]) -> None:
    split = oracle(name)
    assert ours(several, name) == [split(text) for text in several]


def check_short_texts(name: Tokenizer, longest: int) -> None:
    # What becomes of a stop depends on how many there are and on what stands around them.
    several = ["".join(text) for size in range(longest + 1) for text in product("1.a- ", repeat=size)]
    split = oracle(name)
    for start in range(0, len(several), MANY):
        part = several[start : start + MANY]
        assert ours(part, name) == [split(text) for text in part]


def check_characters(name: Tokenizer, points: Iterable[int]) -> None:
    characters = [chr(point) for point in points if not 0xD800 <= point < 0xE000]
    several = [" ".join(f"a{char}b {char} 1{char}2 .{char}," for char in characters[at::97]) for at in range(97)]
    split = oracle(name)
    assert ours(several, name) == [split(text) for text in several]


@each
def test_every_short_text_of_digits_stops_and_others(name: Tokenizer) -> None:
    check_short_texts(name, 4)


@pytest.mark.slow
@each
def test_every_less_short_text_of_digits_stops_and_others(name: Tokenizer) -> None:
    check_short_texts(name, 7)


@each
def test_the_characters_that_tokenizers_tell_apart(name: Tokenizer) -> None:
    check_characters(name, chain(range(0x300), range(0x2000, 0x3400), range(0xFE00, 0x10000), range(0x1F600, 0x1F640)))


@pytest.mark.slow
@each
def test_every_character(name: Tokenizer) -> None:
    check_characters(name, range(CODE_POINTS))


@given(text=st.text("a1 .,-&;<>skiped\n'\"[]/", max_size=40))
@settings(max_examples=500)
def test_13a_takes_entities_and_broken_lines_as_sacrebleu(text: str) -> None:
    assert ours([text], "13a") == [oracle("13a")(text)]


@each
def test_a_line_of_100_000_characters(name: Tokenizer) -> None:
    text = "天a.1,\U0001f600 مر e\u0301&amp;" * 6_000
    assert len(text) > 100_000
    assert ours([text, "b", text], name) == [oracle(name)(text), oracle(name)("b"), oracle(name)(text)]


def test_many_words_make_the_store_grow() -> None:
    several = [f"w{number}.x{number}" for number in range(30_000)]
    assert ours(several, "13a") == [[f"w{number}", ".", f"x{number}"] for number in range(30_000)]


@pytest.mark.parametrize("name", ["zh", "intl", "rouge"])
def test_bytes_that_are_not_utf_8_lead_nowhere(name: Tokenizer) -> None:
    # A reader refuses them; a kernel that meets them all the same stays inside of its arrays.
    dice = np.random.default_rng(0)
    broken = [bytes(dice.integers(0x70, 0x100, size).astype(np.uint8)) for size in range(1, 60)]
    for text in [b"\xf7\xbf\xbf\xbf", b"a\xe2", b"\xef\xbc", b".\xe2\x80", *broken]:
        data = np.frombuffer(text, np.uint8)
        column = TextColumn(data, np.array([0]), np.array([len(data)]))
        words = tokenize(column, vocabulary := Vocabulary(), name)
        assert int((vocabulary.column().ends - vocabulary.column().starts)[words.ids].sum()) <= len(text)
