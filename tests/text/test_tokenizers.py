"""Tokenizers by name."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from dialeval.cli.options import TOKENIZERS
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.metrics.words import Length
from dialeval.text.tokenizers import AUTO, Tokenizer, tokenize
from dialeval.text.vocabulary import Vocabulary
from text.scripts_of_the_world import texts

NAMED: list[Tokenizer] = [name for name in get_args(Tokenizer) if name != AUTO]
every_tokenizer = pytest.mark.parametrize("name", NAMED)


def ours(several: list[str], name: Tokenizer) -> list[list[str]]:
    return tokenize(TextColumn.from_strings(several), Vocabulary(), name).words()


def test_words_keep_their_case() -> None:
    assert tokenize(TextColumn.from_strings(["Hello  THERE"]), Vocabulary()).words() == [["Hello", "THERE"]]


def test_lower_words_do_not() -> None:
    assert ours(["Hello ÉTÉ", "İ"], "lower-words.1") == [["hello", "été"], ["i̇"]]


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
def test_a_slice_of_a_column_is_split_as_the_column(name: Tokenizer) -> None:
    column = TextColumn.from_strings(["a.", "今天 &amp; x", "", "1-2 \U0001f600", "שלום, e\u0301"])
    whole = tokenize(column, Vocabulary(), name).words()
    assert tokenize(column.slice(1, 4), Vocabulary(), name).words() == whole[1:4]


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


def test_metrics_refuse_another_name() -> None:
    with pytest.raises(SettingError, match=r"length has tokenizer=words\.1\|lower-words\.1\|13a.*, not 'words'"):
        Length(tokenizer="words")  # type: ignore[arg-type]
