"""Tokenizers by name and version.

The name of a tokenizer is in the signature of every value computed with it. Ours have a version that grows whenever the
same text would be split differently than before; the others are those of the programs that define them.

- `words.1`: split at whitespace as `str.split()` does (the convention of tokenized response files);
- `lower-words.1`: the same after `str.lower()`;
- `13a`, `intl`, `zh`: as sacreBLEU; `lower-13a`: 13a after `str.lower()`, as sacreBLEU with `-lc`; `char`: every
  character that is no whitespace, as sacreBLEU;
- `ja`: as sacreBLEU's `ja-mecab`, with the extra `ja`;
- `unicode`: the words of UAX #29, with the extra `unicode`;
- `rouge`: as rouge-score, without its stemmer;
- `auto`: one of these, chosen by the scripts of all texts of a run before anything is split.

Words that are not in the list of in-vocabulary words, if there is such a list, count as themselves
(`oov=self`) or all as one word, `<unk>` (`oov=unk`, the way of dialog-eval).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from threading import local
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy import int64, uint64

from dialeval.core import inputs
from dialeval.core.arrays import Bytes, Ids, Ints, Mask, row_numbers
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.errors import SettingError
from dialeval.core.fold import Fact
from dialeval.core.inputs import Input
from dialeval.core.kernels import kernel
from dialeval.text.separation import (
    count_kinds,
    ids_of_characters,
    make_kind_table,
    split_13a,
    split_intl,
    split_rouge,
    split_zh,
)
from dialeval.text.vocabulary import Vocabulary, space_width

# Tokenizers of other libraries: `unicode`, the words of UAX #29, and `ja`, Japanese words by MeCab.
#
# - `unicode`: a text is split at the word boundaries of Unicode's annex 29, without whitespace. Punctuation and emoji
#   are tokens of their own, a letter keeps its marks. It needs no dictionary: letters of scripts without spaces
#   (Chinese, Thai) are single tokens, runs of Katakana and words of other scripts stay whole. By the package
#   unicode-segmentation-rs (the extra `unicode`).
# - `ja`: MeCab with the dictionary IPADIC, the same as sacreBLEU's `ja-mecab` (the extra `ja`).
#
# Both insert spaces into a text, which is then split at whitespace.

IPADIC_WORDS = 392_126
"""Words of the dictionary that sacreBLEU uses."""

_taggers = local()
"""A tagger per thread: MeCab keeps state in the tagger."""


def split_unicode(texts: TextColumn) -> TextColumn:
    """Insert a space at every word boundary of texts."""
    bounds = _import_splitter()
    return TextColumn.from_strings([" ".join(bounds(text)) for text in texts])


def split_japanese(texts: TextColumn) -> TextColumn:
    """Insert a space between the words of Japanese texts."""
    tagger = _load_tagger()
    return TextColumn.from_strings([tagger.parse(text.strip()) for text in texts])


@cache
def _import_splitter() -> Callable[[str], list[str]]:
    try:
        from unicode_segmentation_rs import split_word_bounds
    except ModuleNotFoundError:
        raise _library_error("unicode") from None
    return cast("Callable[[str], list[str]]", split_word_bounds)


def _load_tagger() -> Any:
    tagger = getattr(_taggers, "tagger", None)
    if tagger is None:
        try:
            import ipadic
            import MeCab
        except ModuleNotFoundError:
            raise _library_error("ja") from None
        tagger = _taggers.tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")
        words = tagger.dictionary_info().size
        if words != IPADIC_WORDS:
            raise SettingError(f"the tokenizer ja needs IPADIC with {IPADIC_WORDS:,} words; this one has {words:,}")
    return tagger


def _library_error(name: str) -> SettingError:
    return SettingError(
        f"the tokenizer {name} needs a library that is not installed; run: pip install 'dialeval[{name}]'"
    )


def lower_texts(texts: TextColumn) -> TextColumn:
    """Return the texts in lower case."""
    return TextColumn.from_strings([text.lower() for text in texts])


Tokenizer = Literal[
    "words.1", "lower-words.1", "13a", "lower-13a", "intl", "zh", "char", "ja", "unicode", "rouge", "auto"
]
"""The name of a tokenizer, as metrics annotate the setting."""

DEFAULT: Tokenizer = "words.1"
AUTO: Tokenizer = "auto"


def _split_characters(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    split = characters_of(texts)
    return TokenColumn(ids_of_characters(split.ids, vocabulary), split.offsets, vocabulary)


_SPLITTERS: Mapping[Tokenizer, Callable[[TextColumn, Vocabulary], TokenColumn]] = {
    "words.1": lambda texts, vocabulary: vocabulary.split(texts),
    "lower-words.1": lambda texts, vocabulary: vocabulary.split(lower_texts(texts)),
    "13a": split_13a,
    "lower-13a": lambda texts, vocabulary: split_13a(lower_texts(texts), vocabulary),
    "intl": split_intl,
    "zh": split_zh,
    "char": _split_characters,
    "ja": lambda texts, vocabulary: vocabulary.split(split_japanese(texts)),
    "unicode": lambda texts, vocabulary: vocabulary.split(split_unicode(texts)),
    "rouge": split_rouge,
}

Oov = Literal["self", "unk"]
"""The treatment of words that are not in the vocabulary."""

UNKNOWN = "<unk>"


def tokenize(texts: TextColumn, vocabulary: Vocabulary, tokenizer: Tokenizer = DEFAULT) -> TokenColumn:
    """Return the tokens of texts over a vocabulary; new words are added to it."""
    if tokenizer == AUTO:
        raise SettingError("the tokenizer auto is chosen by an evaluation, from all texts; name one to split by it")
    return _SPLITTERS[tokenizer](texts, vocabulary)


def tokens(batch: Batch, need: Input, tokenizer: Tokenizer = DEFAULT, oov: Oov = "self") -> TokenColumn:
    """Return the tokens of a batch's texts, computed once for all metrics of the batch.

    Of a need with several texts per row it is the tokens of each text, one text a row: `Batch.lists` or, of a context,
    `Batch.contexts` says whose.
    """
    if oov == "unk" and batch.has(inputs.VOCABULARY):
        split, vocabulary_list = (
            tokens(batch, need, tokenizer),
            batch.resource(inputs.VOCABULARY).with_tokenizer(tokenizer),
        )
        return batch.derive(
            ("tokens", need, tokenizer, oov),
            lambda: TokenColumn(vocabulary_list.replace_unknown(split.ids), split.offsets, split.vocabulary),
        )
    texts = batch.values(need)
    vocabulary = cast(Vocabulary, batch.vocabulary)
    return batch.derive(("tokens", need, tokenizer), lambda: tokenize(texts, vocabulary, tokenizer))


# Moses: text tokenized and detokenized by the rules of the Moses scripts for English.
#
# Tokenizing separates punctuation and detokenizing attaches it again, so that `hello , it is 10:00 .` and
# `hello, it is 10:00.` both become `hello, it is 10: 00.`. The package sacremoses with its defaults is the definition.
# It takes a quarter of a second to import and about half a millisecond per text. So texts of plain words and
# punctuation, as nearly all responses are, are normalized here; tests compare both.

_MARK = r"[.,?!:;]"
_PART = "[A-Za-z0-9]+"
_WORD = rf"(?:{_PART}|{_PART}(?:-{_PART})+|{_PART}(?:-{_PART})*(?<=[A-Za-z])'[A-Za-z]+)"
"""A word of one part, with hyphens, or with an apostrophe; one pattern with optional parts is slower by half."""
_CHUNK = rf"(?:{_WORD}{_MARK}?|[0-9]+\.[0-9]+|[-#]|{_MARK})"
_PLAIN = re.compile(rf"{_CHUNK}(?: {_CHUNK})*")
"""Words, each with at most one apostrophe inside and one punctuation mark behind it, decimal numbers, single signs."""
_ALONE = re.compile(rf" (?={_MARK}(?: |$))")
_COLON = re.compile(r"(?<=[A-Za-z0-9]):(?=[A-Za-z0-9])")
_DOTS = "MULTI"
"""Part of the words that sacremoses puts in place of runs of dots."""


def normalize_moses(text: str) -> str:
    """Return a text after tokenizing and detokenizing it."""
    spaced = _COLON.sub(": ", " ".join(text.split()))
    if not spaced:
        return ""
    if _PLAIN.fullmatch(spaced) and _DOTS not in spaced:
        return _ALONE.sub("", spaced)
    split, join = _load_moses()
    return join(split(text))


@cache
def _load_moses() -> tuple[Callable[[str], list[str]], Callable[[list[str]], str]]:
    from sacremoses import MosesDetokenizer, MosesTokenizer

    return MosesTokenizer(lang="en").tokenize, MosesDetokenizer(lang="en").detokenize


# Scripts: the tokenizer for the scripts of a run's texts, and texts that a tokenizer cannot split.
#
# Some scripts have no spaces between words, and a whole sentence of them is one token of `words.1`. `ScriptCounts`
# counts the letters of all texts by kind of script, and `choose_tokenizer` returns a tokenizer:
#
#     fewer than LEAST_FRACTION of the letters are of scripts without spaces            words.1
#     most of those are Chinese or Japanese, with LEAST_FRACTION of kana among them     ja
#     most of those are Chinese                                                         zh
#     any other                                                                         unicode
#
# Counts are whole numbers that add up, so the choice does not depend on batches. Letters are counted by the blocks of
# Unicode that they are in; Korean has spaces.
#
# A token of `LONG_RUN` or more such letters is an unsplit sentence: tokenized text has shorter tokens.

LEAST_FRACTION = 0.1
LARGE_FRACTION = 0.5
LONG_RUN = 5

WHITESPACE: tuple[Tokenizer, ...] = ("words.1", "lower-words.1")
"""Tokenizers for texts that are tokenized already."""
SPLIT_AT_SPACES: tuple[Tokenizer, ...] = (*WHITESPACE, "13a", "lower-13a", "intl")
"""Tokenizers that leave a sentence without spaces whole."""

_LETTER_KIND, _CHINESE_LETTERS, _KANA, _UNSPACED = range(1, 5)  # 0: no letter
_KINDS = 5
Counts: TypeAlias = tuple[int, ...]

_RANGES = {
    _LETTER_KIND: (
        *((0x41, 0x5A), (0x61, 0x7A), (0xAA, 0xAA), (0xB5, 0xB5), (0xBA, 0xBA), (0xC0, 0xD6), (0xD8, 0xF6)),
        *((0xF8, 0x2C1), (0x370, 0x1FFF), (0x2C00, 0x2DFF), (0xA4D0, 0xABFF), (0xAC00, 0xD7FF), (0xFB00, 0xFDFF)),
        *((0xFE70, 0xFEFE), (0x10000, 0x1BFFF), (0x1E000, 0x1EFFF)),
    ),
    _CHINESE_LETTERS: ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF), (0x3005, 0x3007)),
    _KANA: ((0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F)),
    _UNSPACED: (  # Thai, Lao, Tibetan, Burmese, Khmer and their neighbors
        *((0x0E01, 0x0E3A), (0x0E40, 0x0E4E), (0x0E81, 0x0ECE), (0x0F40, 0x0FBC), (0x1000, 0x103F), (0x1050, 0x108F)),
        *((0x1780, 0x17D3), (0x1950, 0x19DF), (0x1A20, 0x1A7C), (0xA9E0, 0xA9FE), (0xAA60, 0xAADF)),
    ),
}


@cache
def _make_kinds() -> Bytes:
    return make_kind_table(_RANGES)


def count_characters(texts: TextColumn) -> Counts:
    """Return the number of characters of each kind in texts."""
    return tuple(_count_by_text(texts).sum(axis=0).tolist())


def _count_by_text(texts: TextColumn) -> Ints:
    """Return the number of characters of each kind (columns) in every text."""
    counts = np.zeros((len(texts), _KINDS), np.int64)
    count_kinds(texts.data, texts.starts, texts.ends, _make_kinds(), counts)
    return counts


def choose_tokenizer(counts: Counts) -> Tokenizer:
    """Return the tokenizer for texts with these numbers of characters of each kind."""
    spaced, chinese, kana, unspaced = counts[1:]
    unsplit = chinese + kana + unspaced
    if not unsplit or unsplit < LEAST_FRACTION * (unsplit + spaced):
        return "words.1"
    if unspaced >= LEAST_FRACTION * unsplit or unsplit < LARGE_FRACTION * (unsplit + spaced):
        return "unicode"
    return "ja" if kana >= LEAST_FRACTION * unsplit else "zh"


def choose_installed(tokenizer: Tokenizer) -> Tokenizer:
    """Return a tokenizer, or `char` where the library that it needs is not installed."""
    try:
        if tokenizer in ("ja", "unicode"):
            _load_tagger() if tokenizer == "ja" else _import_splitter()
    except SettingError:
        return "char"
    return tokenizer


@dataclass(frozen=True)
class ScriptCounts(Fact[Counts, Counts]):
    """The number of characters of each kind of script in the texts of some needs."""

    needs: tuple[Input, ...]

    def empty(self) -> Counts:
        return (0,) * _KINDS

    def gather(self, batch: Batch) -> Counts:
        needs = [need for need in self.needs if batch.has(need)]
        return add_counts([count_characters(batch.values(need)) for need in needs])

    def merge(self, left: Counts, right: Counts) -> Counts:
        return add_counts([left, right])


def add_counts(several: Sequence[Counts]) -> Counts:
    """Return the sum of counts by kind."""
    return tuple(sum(numbers) for numbers in zip((0,) * _KINDS, *several, strict=True))


def suggest_tokenizer(texts: int, unsplit: int, letters: Sequence[int]) -> Tokenizer:
    """Return the tokenizer for texts of which some are unsplit; `letters`: the characters of these, by kind."""
    return "unicode" if unsplit < LARGE_FRACTION * texts else choose_tokenizer((0, 0, *letters[_CHINESE_LETTERS:]))


@dataclass(frozen=True)
class UnsplitTexts(Fact[Counts, Counts]):
    """Counts of texts that a tokenizer left unsplit: all texts, those with a long run, and letters of such runs."""

    need: Input
    tokenizer: Tokenizer

    def empty(self) -> Counts:
        return (0,) * (2 + _KINDS)

    def gather(self, batch: Batch) -> Counts:
        split = tokens(batch, self.need, self.tokenizer)
        column = cast(Vocabulary, split.vocabulary).column()
        is_long = _find_long_runs(split.ids, column)[split.ids]
        unsplit = int(np.count_nonzero(np.diff(row_numbers(split.offsets)[is_long], prepend=-1)))  # rows, each once
        return (len(split), unsplit, *count_characters(column.take(split.ids[is_long].astype(np.int64))))

    def merge(self, left: Counts, right: Counts) -> Counts:
        return tuple(a + b for a, b in zip(left, right, strict=True))


def _find_long_runs(ids: Ids, column: TextColumn) -> Mask:
    """Return whether each word of a vocabulary is among the ids and has a long run of letters without spaces."""
    used = np.zeros(len(column), np.bool_)
    used[ids] = True
    letters = _count_by_text(column.take(np.flatnonzero(used)))[:, _CHINESE_LETTERS:].sum(axis=1)
    used[used] = letters >= LONG_RUN
    return used


# The characters of texts, whitespace left out, as a token column: an id is a code point.
#
# A character is a code point and no more: a letter and a combining accent are two, as in Python's strings.
#
# Kernel: the characters of UTF-8 texts as code points, whitespace left out.

_SPACES = np.uint64(sum(1 << blank for blank in (*range(0x09, 0x0E), *range(0x1C, 0x21))))
"""Bit b is set where the byte b is whitespace; from 64 on none is."""


@kernel("(u1[::1], i8[::1], i8[::1], i4[::1], i8[::1])")
def code_points(data, starts, ends, ids, offsets):  # type: ignore[no-untyped-def]
    """Fill `ids` with the code points of the characters that are no whitespace, `offsets` with where each row ends."""
    # Unsigned, for an index that could be negative is checked for that.
    count, one = uint64(0), uint64(1)
    for row in range(starts.shape[0]):
        i = uint64(starts[row])
        end = uint64(ends[row])
        while i < end:
            first = data[i]
            if first < 0x80:
                # A space is written too, and the next character over it: which bytes are space cannot be foretold, and
                # a branch that was taken wrongly costs more.
                ids[count] = first
                count += one - (_SPACES >> uint64(first & 0x3F) & uint64(first < 0x40))
                i += one
                continue
            blank = space_width(data, int64(i), int64(end))
            if blank:
                i += uint64(blank)
                continue
            width = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            point = first & 0xFF >> (width + 1)
            for k in range(1, width):
                point = point << 6 | (data[i + uint64(k)] & 0x3F)
            ids[count] = point
            count += one
            i += uint64(width)
        offsets[row + 1] = int64(count)


class CodePoints:
    """The vocabulary in which a character's id is its code point."""

    def __len__(self) -> int:
        return 0x110000

    def words(self, ids: Ids) -> list[str]:
        """Return the characters behind ids."""
        return list(map(chr, ids.tolist()))


def characters_of(texts: TextColumn) -> TokenColumn:
    """Return the characters of each text that are no whitespace."""
    ids = np.empty(int((texts.ends - texts.starts).sum()), np.int32)
    offsets = np.zeros(len(texts) + 1, np.int64)
    code_points(texts.data, texts.starts, texts.ends, ids, offsets)
    return TokenColumn(ids[: offsets[-1]], offsets, CodePoints())


def characters(batch: Batch, need: Input, lower: bool) -> TokenColumn:
    """Return the characters of a batch's texts, one text a row; computed once for all metrics of the batch."""
    texts = batch.values(need)
    return batch.derive(("characters", need, lower), lambda: characters_of(lower_texts(texts) if lower else texts))
