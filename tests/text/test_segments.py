"""Tokenizers of other libraries: MeCab as sacreBLEU calls it, and the word boundaries of Unicode."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from dialeval.core.columns import TextColumn
from dialeval.core.errors import SettingError
from dialeval.text import tokenizers
from dialeval.text.tokenizers import Tokenizer, tokenize
from dialeval.text.vocabulary import Vocabulary
from text.scripts_of_the_world import texts

ORACLE = BLEU(tokenize="ja-mecab")


def ours(several: list[str], name: Tokenizer) -> list[list[str]]:
    return tokenize(TextColumn.from_strings(several), Vocabulary(), name).words()


@given(several=st.lists(texts, max_size=4))
@settings(max_examples=100)
def test_japanese_is_sacrebleus(several: list[str]) -> None:
    assert ours(several, "ja") == [ORACLE._preprocess_segment(text).split() for text in several]


def test_japanese_words() -> None:
    assert ours(["今日はいい天気です", ""], "ja") == [["今日", "は", "いい", "天気", "です"], []]


def test_threads_have_a_tagger_each() -> None:
    several = [f"今日は{number}度でとてもいい天気です" for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ours(several, "ja"), range(8)))
    assert found == [[ORACLE._preprocess_segment(text).split() for text in several]] * 8


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The quick (“brown”) fox can’t jump 32.3 feet, right?", None),  # the example of the annex, below
        ("今天天气很好", ["今", "天", "天", "气", "很", "好"]),
        ("カタカナ", ["カタカナ"]),
        ("한국어 좋아요", ["한국어", "좋아요"]),
        ("שלום, עולם", ["שלום", ",", "עולם"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea", ["\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea"]),
        ("1,000.5 10:00", ["1,000.5", "10", ":", "00"]),
        (" \t\n", []),
    ],
)
def test_words_of_unicode(text: str, words: list[str] | None) -> None:
    of_annex = ["The", "quick", "(", "“", "brown", "”", ")", "fox", "can’t", "jump", "32.3", "feet", ",", "right", "?"]
    assert ours([text], "unicode") == [of_annex if words is None else words]


@given(text=texts)
def test_nothing_but_white_space_is_lost(text: str) -> None:
    assert "".join(ours([text], "unicode")[0]) == "".join(text.split())


@pytest.mark.parametrize(("name", "module"), [("ja", "MeCab"), ("unicode", "unicode_segmentation_rs")])
def test_a_library_that_is_not_there_is_named(name: Tokenizer, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    tokenizers._import_splitter.cache_clear()
    monkeypatch.delattr(tokenizers._taggers, "tagger", raising=False)
    with pytest.raises(SettingError, match=rf"^the tokenizer {name} needs .* run: pip install 'dialeval\[{name}\]'$"):
        ours(["a"], name)
