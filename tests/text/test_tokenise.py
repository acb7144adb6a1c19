"""Tokenisers by name."""

from __future__ import annotations

import pytest

from dialeval.core.columns import TextColumn
from dialeval.core.errors import SettingError
from dialeval.text.tokenise import tokenise
from dialeval.text.vocabulary import Vocabulary


def test_words_keep_their_case() -> None:
    assert tokenise(TextColumn.from_strings(["Hello  THERE"]), Vocabulary()).words() == [["Hello", "THERE"]]


def test_lower_words_do_not() -> None:
    tokens = tokenise(TextColumn.from_strings(["Hello ÉTÉ", "İ"]), Vocabulary(), "lower-words.1")
    assert tokens.words() == [["hello", "été"], ["i̇"]]


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(SettingError, match=r"did you mean words\.1\?"):
        tokenise(TextColumn.from_strings([]), Vocabulary(), "words")
