"""Tokenizers by name, Moses tokenization and vocabularies."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from sacremoses import MosesDetokenizer, MosesTokenizer

from dialeval.cli.options import TOKENIZERS
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.text.tokenizers import AUTO, Tokenizer, normalize_moses, tokenize
from dialeval.text.vocabulary import Vocabulary
from text.scripts_of_the_world import texts

NAMED: list[Tokenizer] = [name for name in get_args(Tokenizer) if name != AUTO]
every_tokenizer = pytest.mark.parametrize("name", NAMED)


def ours(several: list[str], name: Tokenizer) -> list[list[str]]:
    return tokenize(TextColumn.from_strings(several), Vocabulary(), name).words()


@given(several=st.lists(texts, max_size=4))
@settings(max_examples=300)
def test_words_are_those_of_python(several: list[str]) -> None:
    assert ours(several, "words.1") == [text.split() for text in several]
    assert ours(several, "lower-words.1") == [text.lower().split() for text in several]
    assert ours(several, "lower-13a") == ours([text.lower() for text in several], "13a")


@given(several=st.lists(texts, max_size=4))
@settings(max_examples=300)
def test_characters_are_those_of_sacrebleu(several: list[str]) -> None:
    oracle = BLEU(tokenize="char")
    assert ours(several, "char") == [oracle._preprocess_segment(text).split() for text in several]


@every_tokenizer
@given(several=st.lists(texts, min_size=1, max_size=5), cut=st.integers(0, 5))
@settings(max_examples=30)
def test_a_text_is_split_alike_whatever_stands_beside_it(name: Tokenizer, several: list[str], cut: int) -> None:
    parts = [ours(part, name) for part in (several[:cut], several[cut:])]
    assert parts[0] + parts[1] == ours(several, name)


@every_tokenizer
def test_ids_are_those_of_the_vocabulary(name: Tokenizer) -> None:
    vocabulary = Vocabulary(["not", "used", "天"])
    tokens = tokenize(TextColumn.from_strings(["天 b", "b"]), vocabulary, name)
    assert vocabulary.words(tokens.ids) == (["b", "b"] if name == "rouge" else ["天", "b", "b"])


@every_tokenizer
def test_half_of_a_pair_is_refused(name: Tokenizer) -> None:
    with pytest.raises(DataError, match="half of a surrogate pair"):
        ours(["a \ud800"], name)


def test_a_choice_is_not_made_here() -> None:
    with pytest.raises(SettingError, match="chosen by an evaluation"):
        ours(["a"], AUTO)


def test_the_command_line_knows_all_of_them() -> None:
    assert get_args(Tokenizer) == TOKENIZERS


SPLIT, JOIN = MosesTokenizer(lang="en"), MosesDetokenizer(lang="en")

words = st.sampled_from(
    [
        "the",
        "NAME",
        "it's",
        "don't",
        "no",
        "No",
        "mr",
        "e",
        "10",
        "2",
        "x1",
        "10:00",
        "a:b",
        "DOTMULTI",
        "2.50",
        "-",
        "b-b",
    ]
)
marks = st.sampled_from(
    [".", ",", "?", "!", ":", ";", "'s", "'", "..", "...", "&", "#", "£", '"', "(", ")", "n't", "é"]
)
chunks = st.builds("".join, st.lists(st.one_of(words, marks), min_size=1, max_size=3))
mixed_texts = st.one_of(
    st.lists(chunks, max_size=6).map(" ".join), st.text("abAB01 .,?!:;'-&\t\n", max_size=25), st.text(max_size=15)
)


def by_sacremoses(text: str) -> str:
    return str(JOIN.detokenize(SPLIT.tokenize(text)))


@given(mixed_texts)
@settings(max_examples=400)
def test_the_same_as_sacremoses(text: str) -> None:
    assert normalize_moses(text) == by_sacremoses(text)


@given(st.lists(st.builds("".join, st.lists(st.sampled_from("aZ0'.,?!:;-#"), min_size=1, max_size=4)), max_size=6))
@settings(max_examples=400)
def test_the_same_near_the_edge_of_plain_texts(parts: list[str]) -> None:
    assert normalize_moses(" ".join(parts)) == by_sacremoses(" ".join(parts))


SPACES = "".join(chr(code) for code in range(0x11000) if chr(code).isspace())
LOOKALIKES = "\u200b\u180e\u2060\ufeff\x00\x1b\x84\u0086\u2027\u202a\u3001\u205e\u2060\u1681"
mixed = st.text(
    st.one_of(st.sampled_from("abc"), st.sampled_from(SPACES + LOOKALIKES), st.characters(exclude_categories=["Cs"])),
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


@given(st.lists(st.sampled_from(["a", "aa", "\x00", "a\x00", "", *("x" * k for k in range(5, 20))]), max_size=40))
def test_word_lengths_around_the_key_sizes(words: list[str]) -> None:
    agrees([" ".join(words), *words])


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
