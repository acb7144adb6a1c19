"""Tokenisers by name."""

from __future__ import annotations

import pytest

from dialeval.core.columns import TextColumn
from dialeval.core.errors import SettingError
from dialeval.metrics.words.length import Length
from dialeval.text.tokenise import tokenise
from dialeval.text.vocabulary import Vocabulary


def test_words_keep_their_case() -> None:
    assert tokenise(TextColumn.from_strings(["Hello  THERE"]), Vocabulary()).words() == [["Hello", "THERE"]]


def test_lower_words_do_not() -> None:
    tokens = tokenise(TextColumn.from_strings(["Hello ÉTÉ", "İ"]), Vocabulary(), "lower-words.1")
    assert tokens.words() == [["hello", "été"], ["i̇"]]


def test_metrics_refuse_another_name() -> None:
    with pytest.raises(SettingError, match=r"length has tokeniser=words\.1\|lower-words\.1, not 'words'"):
        Length(tokeniser="words")  # type: ignore[arg-type]
