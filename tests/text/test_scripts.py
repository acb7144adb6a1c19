"""Which tokenizer suits some texts, and which texts a tokenizer leaves whole."""

from __future__ import annotations

import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.text import tokenizers
from dialeval.text.tokenizers import (
    ScriptCounts,
    Tokenizer,
    UnsplitTexts,
    add_counts,
    choose_installed,
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
        len(several), {inputs.RESPONSE: column(*several)}, vocabulary or Vocabulary(), np.arange(len(several) + 1)
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


@pytest.mark.parametrize(
    ("spaced", "chinese", "kana", "unspaced", "name"),
    [
        (0, 0, 0, 0, "words.1"),
        (1, 0, 0, 0, "words.1"),
        (10, 1, 0, 0, "words.1"),  # less than a tenth of the letters is without spaces, here and in the next two
        (10, 0, 1, 0, "words.1"),
        (10, 0, 0, 1, "words.1"),
        (9, 1, 0, 0, "unicode"),  # a tenth of them
        (9, 0, 1, 0, "unicode"),
        (9, 0, 0, 1, "unicode"),
        (11, 10, 0, 0, "unicode"),  # less than half
        (10, 10, 0, 0, "zh"),  # half
        (10, 5, 5, 0, "ja"),
        (0, 9, 0, 1, "unicode"),  # a tenth of these is of Thai and its neighbors
        (0, 0, 9, 1, "unicode"),
        (0, 10, 0, 1, "zh"),  # less than a tenth
        (0, 9, 1, 0, "ja"),  # a tenth is kana
        (0, 10, 1, 0, "zh"),
        (0, 0, 1, 0, "ja"),
    ],
)
def test_the_choice_by_fractions(spaced: int, chinese: int, kana: int, unspaced: int, name: str) -> None:
    assert choose_tokenizer((1000, spaced, chinese, kana, unspaced)) == name


SCRIPTS = {
    1: [
        *((0x41, 0x5A), (0x61, 0x7A), (0xAA, 0xAA), (0xB5, 0xB5), (0xBA, 0xBA), (0xC0, 0xD6), (0xD8, 0xF6)),
        *((0xF8, 0x2C1), (0x370, 0xE00), (0xE3B, 0xE3F), (0xE4F, 0xE80), (0xECF, 0xF3F), (0xFBD, 0xFFF)),
        *((0x1040, 0x104F), (0x1090, 0x177F), (0x17D4, 0x194F), (0x19E0, 0x1A1F), (0x1A7D, 0x1FFF), (0x2C00, 0x2DFF)),
        *((0xA4D0, 0xA9DF), (0xA9FF, 0xAA5F), (0xAAE0, 0xD7FF), (0xFB00, 0xFDFF), (0xFE70, 0xFEFE)),
        *((0x10000, 0x1AFFF), (0x1B170, 0x1BFFF), (0x1E000, 0x1EFFF)),
    ],
    2: [(0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)],
    3: [(0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F)],
    4: [
        *((0xE01, 0xE3A), (0xE40, 0xE4E), (0xE81, 0xECE), (0xF40, 0xFBC), (0x1000, 0x103F), (0x1050, 0x108F)),
        *((0x1780, 0x17D3), (0x1950, 0x19DF), (0x1A20, 0x1A7C), (0xA9E0, 0xA9FE), (0xAA60, 0xAADF)),
    ],
}
"""Code points by kind: of a script with spaces, Chinese, kana, of another script without spaces."""


def test_blocks_of_unicode_by_kind() -> None:
    spans = sorted((first, last, kind) for kind, several in SCRIPTS.items() for first, last in several)
    end = 0
    for first, last, kind in [*spans, (0x110000, 0x10FFFF, 0)]:
        between = [chr(point) for point in range(end, first) if not 0xD800 <= point < 0xE000]
        assert count_characters(column("".join(between))) == (len(between), 0, 0, 0, 0), hex(end)
        within = "".join(map(chr, range(first, last + 1)))
        expected = tuple(len(within) if number == kind else 0 for number in range(5))
        assert count_characters(column(within)) == expected, hex(first)
        end = last + 1


@pytest.mark.parametrize(("name", "module"), [("ja", "MeCab"), ("unicode", "unicode_segmentation_rs")])
def test_characters_where_a_library_is_not_installed(
    name: Tokenizer, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [choose_installed(each) for each in ("ja", "unicode", "zh")] == ["ja", "unicode", "zh"]
    monkeypatch.setitem(sys.modules, module, None)
    tokenizers._import_splitter.cache_clear()
    monkeypatch.delattr(tokenizers._taggers, "tagger", raising=False)
    for each in ("ja", "unicode", "zh", "words.1", "char"):
        assert choose_installed(each) == ("char" if each == name else each)
    tokenizers._import_splitter.cache_clear()


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
    fold = ScriptCounts((inputs.RESPONSE, inputs.REFERENCE))
    parts = [fold.gather(batch_of(part)) for part in (several[:cut], several[cut:])]
    assert fold.merge(*parts) == add_counts(parts) == fold.gather(batch_of(several))
    assert fold.merge(fold.empty(), parts[0]) == parts[0]


def test_texts_that_are_not_split() -> None:
    fold = UnsplitTexts(inputs.RESPONSE, "words.1")
    several = ["hello there", "今天天气很好", "今天 天气 很 好", "我不知道。我不知道。 今天天气很好", ""]
    texts, unsplit, *letters = fold.gather(batch_of(several))
    assert (texts, unsplit) == (5, 2)
    assert letters[2] == 6 + 8 + 6


def test_five_letters_are_a_sentence_and_four_are_a_word() -> None:
    texts, unsplit, *_ = UnsplitTexts(inputs.RESPONSE, "words.1").gather(batch_of(["今天天气 很好", "今天天气很 好"]))
    assert (texts, unsplit) == (2, 1)


def test_words_that_are_known_already_count_again() -> None:
    vocabulary, fold = Vocabulary(), UnsplitTexts(inputs.RESPONSE, "13a")
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
    texts, unsplit, *letters = UnsplitTexts(inputs.RESPONSE, "words.1").gather(batch_of(several))
    assert suggest_tokenizer(texts, unsplit, letters) == name


def test_the_suggestion_by_fractions() -> None:
    letters = (7, 7, 10, 1, 0)  # less than a tenth is kana; letters of other scripts do not count
    assert suggest_tokenizer(3, 1, letters) == "unicode"
    assert suggest_tokenizer(2, 1, letters) == "zh"
    assert suggest_tokenizer(2, 2, (0, 90, 9, 1, 0)) == "ja"
    assert suggest_tokenizer(2, 2, (0, 90, 9, 1, 2)) == "unicode"


def test_scripts_of_all_needs() -> None:
    columns = {inputs.RESPONSE: column("ab 今", "か"), inputs.REFERENCE: column("ก", "c!")}
    both = Batch(2, columns, Vocabulary(), np.arange(3))
    assert ScriptCounts((inputs.RESPONSE, inputs.REFERENCE)).gather(both) == (2, 3, 1, 1, 1)
    assert ScriptCounts((inputs.REFERENCE,)).gather(both) == (1, 1, 0, 0, 1)
    assert ScriptCounts((inputs.CONTEXT,)).gather(both) == (0, 0, 0, 0, 0)
    assert ScriptCounts(()).empty() == (0, 0, 0, 0, 0)
    assert UnsplitTexts(inputs.RESPONSE, "words.1").empty() == (0, 0, 0, 0, 0, 0, 0)
