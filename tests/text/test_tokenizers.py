"""Tokenizers by name, Moses tokenization and vocabularies."""

from __future__ import annotations

import pickle
import sys
import unicodedata
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rouge_score.tokenize import tokenize as rouge_tokenize
from sacrebleu.metrics import BLEU
from sacremoses import MosesDetokenizer, MosesTokenizer

from dialeval.cli.options import TOKENIZERS
from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.text import tokenizers
from dialeval.text.separation import CODE_POINTS
from dialeval.text.tokenizers import (
    AUTO,
    ScriptCounts,
    Tokenizer,
    add_counts,
    characters,
    characters_of,
    count_characters,
    normalize_moses,
    tokenize,
)
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


# Scripts, characters and segments: which tokenizer suits some texts, and which texts a tokenizer leaves whole.


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


@given(several=st.lists(texts, max_size=4))
@settings(max_examples=100)
def test_japanese_is_sacrebleus(several: list[str]) -> None:
    assert ours(several, "ja") == [ORACLE._preprocess_segment(text).split() for text in several]


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


def test_threads_have_a_tagger_each() -> None:
    several = [f"今日は{number}度でとてもいい天気です" for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ours(several, "ja"), range(8)))
    assert found == [[ORACLE._preprocess_segment(text).split() for text in several]] * 8
