"""Scripts, characters and segments: which tokenizer suits some texts, and which texts a tokenizer leaves whole."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rouge_score.tokenize import tokenize as rouge_tokenize
from sacrebleu.metrics import BLEU

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.errors import SettingError
from dialeval.text import tokenizers
from dialeval.text.separation import CODE_POINTS
from dialeval.text.tokenizers import (
    ScriptCounts,
    Tokenizer,
    add_counts,
    characters,
    characters_of,
    count_characters,
    tokenize,
)
from dialeval.text.vocabulary import Vocabulary
from text.scripts_of_the_world import texts


def column(*several: str) -> TextColumn:
    return TextColumn.from_strings(several)


def batch_of(several: list[str], vocabulary: Vocabulary | None = None) -> Batch:
    return Batch(
        len(several), {inputs.RESPONSE: column(*several)}, vocabulary or Vocabulary(), np.arange(len(several) + 1)
    )


@given(text=texts)
def test_letters_of_scripts_without_blanks_are_counted(text: str) -> None:
    names = [unicodedata.name(char, "") for char in text]
    chinese = sum("CJK UNIFIED IDEOGRAPH" in name or "CJK COMPATIBILITY IDEOGRAPH" in name for name in names)
    found = count_characters(column(text))
    assert sum(found) == len(text)
    assert found[2] >= chinese
    assert found[2] - chinese <= sum("IDEOGRAPHIC" in name or not name for name in names)


@given(several=st.lists(texts, max_size=6), cut=st.integers(0, 6))
def test_counts_add_up(several: list[str], cut: int) -> None:
    fold = ScriptCounts((inputs.RESPONSE, inputs.REFERENCE))
    parts = [fold.gather(batch_of(part)) for part in (several[:cut], several[cut:])]
    assert fold.merge(*parts) == add_counts(parts) == fold.gather(batch_of(several))
    assert fold.merge(fold.empty(), parts[0]) == parts[0]


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \t\x85\xa0 　é日\U0001f600")))
)
@example(texts=["".join(map(chr, range(0x3002))), "a ", "", " "])
@example(texts=["\ud7ff\ue000\uffff\U00010000\U0003ffff\U00040000\U0007ffff\U000bffff\U000fffff\U0010ffff"])
def test_characters_are_pythons_without_white_space(texts: list[str]) -> None:
    found = characters_of(TextColumn.from_strings(texts))
    assert found.words() == [list("".join(text.split())) for text in texts]


def test_lower_case_is_asked_for() -> None:
    batch = Batch(1, {inputs.RESPONSE: TextColumn.from_strings(["Ab C"])}, Vocabulary(), np.array([0, 1]))
    assert characters(batch, inputs.RESPONSE, False).words() == [["A", "b", "C"]]
    assert characters(batch, inputs.RESPONSE, True).words() == [["a", "b", "c"]]
    assert len(characters(batch, inputs.RESPONSE, True).vocabulary) == 0x110000


ORACLE = BLEU(tokenize="ja-mecab")


def ours(several: list[str], name: Tokenizer) -> list[list[str]]:
    return tokenize(TextColumn.from_strings(several), Vocabulary(), name).words()


@given(several=st.lists(texts, max_size=4))
@settings(max_examples=100)
def test_japanese_is_sacrebleus(several: list[str]) -> None:
    assert ours(several, "ja") == [ORACLE._preprocess_segment(text).split() for text in several]


def test_threads_have_a_tagger_each() -> None:
    several = [f"今日は{number}度でとてもいい天気です" for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ours(several, "ja"), range(8)))
    assert found == [[ORACLE._preprocess_segment(text).split() for text in several]] * 8


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


@pytest.mark.slow
@each
def test_every_less_short_text_of_digits_stops_and_others(name: Tokenizer) -> None:
    check_short_texts(name, 7)


@pytest.mark.slow
@each
def test_every_character(name: Tokenizer) -> None:
    check_characters(name, range(CODE_POINTS))


@given(text=st.text("a1 .,-&;<>skiped\n'\"[]/", max_size=40))
@settings(max_examples=500)
def test_13a_takes_entities_and_broken_lines_as_sacrebleu(text: str) -> None:
    assert ours([text], "13a") == [oracle("13a")(text)]


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


def test_another_dictionary_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tokenizers.IPADIC_WORDS == 392_126
    monkeypatch.setattr(tokenizers, "IPADIC_WORDS", 392_125)
    monkeypatch.delattr(tokenizers._taggers, "tagger", raising=False)
    with pytest.raises(SettingError, match=r"needs IPADIC with 392,125 words; this one has 392,126$"):
        ours(["a"], "ja")
    monkeypatch.delattr(tokenizers._taggers, "tagger", raising=False)
