"""Which tokenizer suits some texts, and which texts a tokenizer leaves whole."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.batch import Batch, Need
from dialeval.core.columns import TextColumn
from dialeval.text.tokenizers import (
    ScriptCounts,
    UnsplitTexts,
    add_counts,
    choose_tokenizer,
    count_characters,
    suggest_tokenizer,
)
from dialeval.text.vocabulary import Vocabulary
from text.scripts_of_the_world import texts


def column(*several: str) -> TextColumn:
    return TextColumn.from_strings(several)


def batch_of(several: list[str], vocabulary: Vocabulary | None = None) -> Batch:
    return Batch(
        len(several), {Need.RESPONSE: column(*several)}, vocabulary or Vocabulary(), np.arange(len(several) + 1)
    )


@pytest.mark.parametrize(
    ("several", "name"),
    [
        (["hello there", "it's 10:00"], "words.1"),
        (["", "123", "\U0001f600 !"], "words.1"),
        (["한국어 좋아요"], "words.1"),
        (["שלום עולם", "مرحبا بالعالم", "привет", "हिन्दी में"], "words.1"),
        (["今天天气很好", "我不知道。"], "zh"),
        (["今日はいい天気です", "わかりません"], "ja"),
        (["カタカナ"], "ja"),
        (["สวัสดีครับ"], "unicode"),
        (["မင်္ဂလာပါ", "សួស្តី", "ສະບາຍດີ"], "unicode"),
        (["the word for cat is 猫", "a long English sentence with many letters in it"], "words.1"),
        (["hello there my friend", "今天天气很好今天天气很好"], "unicode"),
    ],
)
def test_the_choice(several: list[str], name: str) -> None:
    assert choose_tokenizer(count_characters(column(*several))) == name


@given(text=texts)
def test_letters_of_scripts_without_blanks_are_counted(text: str) -> None:
    names = [unicodedata.name(char, "") for char in text]
    chinese = sum("CJK UNIFIED IDEOGRAPH" in name or "CJK COMPATIBILITY IDEOGRAPH" in name for name in names)
    found = count_characters(column(text))
    assert sum(found) == len(text)
    assert found[2] >= chinese
    assert found[2] - chinese <= sum("IDEOGRAPHIC" in name or not name for name in names)


def test_every_ideograph_and_kana_is_counted() -> None:
    """All characters that Unicode names so, not only those that texts of the tests have."""
    named = {
        chr(point): unicodedata.name(chr(point), "") for point in range(0x3000, 0x32000) if not 0xD800 <= point < 0xE000
    }
    ideographs = [char for char, name in named.items() if name.startswith(("CJK UNIFIED", "CJK COMPATIBILITY IDEO"))]
    kana = [char for char, name in named.items() if name.startswith(("HIRAGANA LETTER", "KATAKANA LETTER"))]
    kana = [char for char in kana if "MINNAN" not in named[char]]  # tones of another language
    assert len(ideographs) > 90_000
    _, _, chinese, of_kana, _ = count_characters(column("".join(ideographs), "".join(kana)))
    assert (chinese, of_kana) == (len(ideographs), len(kana))


@given(several=st.lists(texts, max_size=6), cut=st.integers(0, 6))
def test_counts_add_up(several: list[str], cut: int) -> None:
    fold = ScriptCounts((Need.RESPONSE, Need.REFERENCE))
    parts = [fold.gather(batch_of(part)) for part in (several[:cut], several[cut:])]
    assert fold.merge(*parts) == add_counts(parts) == fold.gather(batch_of(several))
    assert fold.merge(fold.empty(), parts[0]) == parts[0]


def test_texts_that_are_not_split() -> None:
    fold = UnsplitTexts(Need.RESPONSE, "words.1")
    several = ["hello there", "今天天气很好", "今天 天气 很 好", "我不知道。我不知道。 今天天气很好", ""]
    texts, unsplit, *letters = fold.gather(batch_of(several))
    assert (texts, unsplit) == (5, 2)
    assert letters[2] == 6 + 8 + 6


def test_five_letters_are_a_sentence_and_four_are_a_word() -> None:
    texts, unsplit, *_ = UnsplitTexts(Need.RESPONSE, "words.1").gather(batch_of(["今天天气 很好", "今天天气很 好"]))
    assert (texts, unsplit) == (2, 1)


def test_words_that_are_known_already_count_again() -> None:
    vocabulary, fold = Vocabulary(), UnsplitTexts(Need.RESPONSE, "13a")
    first, again = (fold.gather(batch_of(["今天天气很好 ok", "b"], vocabulary)) for _ in range(2))
    assert first == again == (2, 1, 0, 0, 6, 0, 0)
    assert fold.merge(first, again) == (4, 2, 0, 0, 12, 0, 0)
    assert fold.merge(fold.empty(), first) == first


@pytest.mark.parametrize(
    ("several", "name"),
    [
        (["今天天气很好今天"], "zh"),
        (["今日はいい天気です"], "ja"),
        (["สวัสดีครับ"], "unicode"),
        (["今天天气很好今天", "hello there", "good"], "unicode"),
    ],
)
def test_the_suggestion(several: list[str], name: str) -> None:
    texts, unsplit, *letters = UnsplitTexts(Need.RESPONSE, "words.1").gather(batch_of(several))
    assert suggest_tokenizer(texts, unsplit, letters) == name
