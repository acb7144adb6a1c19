"""Scripts: which tokeniser suits the texts of a run, and texts that the chosen one cannot split.

Some scripts put no blanks between words. `words.1` takes a whole sentence of them for one word. `ScriptCounts` counts
the letters of all texts by kind of script, and `chosen` names a tokeniser:

    fewer than LEAST_SHARE of the letters are of scripts without blanks            words.1
    most of those are Chinese or Japanese, with LEAST_SHARE of kana among them     ja
    most of those are Chinese                                                      zh
    any other                                                                      unicode

Counts are whole numbers that add up, so the choice does not depend on how the rows were cut. Letters are counted by the
blocks of Unicode they stand in; Korean has blanks.

A word of `LONG_RUN` or more such letters is a sentence that was not split: text that was split before has shorter ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np

from dialeval.core.arrays import Bytes, Mask
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.fold import Fact
from dialeval.core.needs import Need
from dialeval.core.ragged import row_numbers
from dialeval.text import separation as _kernel
from dialeval.text.separation import kinds_of
from dialeval.text.tokenise import Tokeniser, tokens
from dialeval.text.vocabulary import Vocabulary

LEAST_SHARE = 0.1
MOST_SHARE = 0.5
LONG_RUN = 5

BY_BLANKS: tuple[Tokeniser, ...] = ("words.1", "lower-words.1", "13a", "intl")
"""Tokenisers that leave a sentence without blanks whole."""

_NO_LETTER, _LETTER, _CHINESE, _KANA, _UNSPACED = range(5)
_KINDS = 5
Counts: TypeAlias = tuple[int, ...]

_RANGES = {
    _LETTER: (
        *((0x41, 0x5A), (0x61, 0x7A), (0xAA, 0xAA), (0xB5, 0xB5), (0xBA, 0xBA), (0xC0, 0xD6), (0xD8, 0xF6)),
        *((0xF8, 0x2C1), (0x370, 0x1FFF), (0x2C00, 0x2DFF), (0xA4D0, 0xABFF), (0xAC00, 0xD7FF), (0xFB00, 0xFDFF)),
        *((0xFE70, 0xFEFE), (0x10000, 0x1BFFF), (0x1E000, 0x1EFFF)),
    ),
    _CHINESE: ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF), (0x3005, 0x3007)),
    _KANA: ((0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F), (0x1B000, 0x1B16F)),
    _UNSPACED: (  # Thai, Lao, Tibetan, Burmese, Khmer and their neighbours
        *((0x0E01, 0x0E3A), (0x0E40, 0x0E4E), (0x0E81, 0x0ECE), (0x0F40, 0x0FBC), (0x1000, 0x103F), (0x1050, 0x108F)),
        *((0x1780, 0x17D3), (0x1950, 0x19DF), (0x1A20, 0x1A7C), (0xA9E0, 0xA9FE), (0xAA60, 0xAADF)),
    ),
}


@cache
def _kinds() -> Bytes:
    return kinds_of({kind: tuple(spans) for kind, spans in _RANGES.items()})


def counts_of(texts: TextColumn) -> Counts:
    """How many characters of each kind texts have."""
    counts = np.zeros(_KINDS, np.int64)
    _kernel.count_kinds(texts.data, texts.starts, texts.ends, _kinds(), counts)
    return tuple(counts.tolist())


def chosen(counts: Counts) -> Tokeniser:
    """The tokeniser for texts with so many characters of each kind."""
    spaced, chinese, kana, unspaced = counts[1:]
    without_blanks = chinese + kana + unspaced
    if not without_blanks or without_blanks < LEAST_SHARE * (without_blanks + spaced):
        return "words.1"
    if unspaced >= LEAST_SHARE * without_blanks or without_blanks < MOST_SHARE * (without_blanks + spaced):
        return "unicode"
    return "ja" if kana >= LEAST_SHARE * without_blanks else "zh"


@dataclass(frozen=True)
class ScriptCounts(Fact[Counts, Counts]):
    """How many characters of each kind of script the texts of some needs have."""

    needs: tuple[Need, ...]

    def empty(self) -> Counts:
        return (0,) * _KINDS

    def gather(self, batch: Batch) -> Counts:
        there = [need for need in self.needs if batch.has(need)]
        return added([counts_of(batch.values(need)) for need in there])

    def merge(self, left: Counts, right: Counts) -> Counts:
        return added([left, right])

    def finish(self, state: Counts) -> Counts:
        return state


def added(several: Sequence[Counts]) -> Counts:
    """Counts by kind added up."""
    return tuple(sum(each) for each in zip((0,) * _KINDS, *several, strict=True))


def suggested(texts: int, unsplit: int, letters: Sequence[int]) -> Tokeniser:
    """The tokeniser for texts of which some are not split; `letters`: the characters of these, by kind."""
    return "unicode" if unsplit < MOST_SHARE * texts else chosen((0, 0, *letters[_CHINESE:]))


@dataclass(frozen=True)
class UnsplitTexts(Fact[Counts, Counts]):
    """Texts that a tokeniser left whole: how many texts there are, how many of them have a long run, its letters."""

    need: Need
    tokeniser: Tokeniser

    def empty(self) -> Counts:
        return (0,) * (2 + _KINDS)

    def gather(self, batch: Batch) -> Counts:
        split = tokens(batch, self.need, self.tokeniser)
        runs = _long_runs(cast(Vocabulary, split.vocabulary))
        if not runs.any():
            return (len(split), *self.empty()[1:])
        there = runs[split.ids]
        rows = np.unique(row_numbers(split.offsets)[there])
        words = cast(Vocabulary, split.vocabulary).column().take(split.ids[there].astype(np.int64))
        return (len(split), len(rows), *counts_of(words))

    def merge(self, left: Counts, right: Counts) -> Counts:
        return tuple(a + b for a, b in zip(left, right, strict=True))

    def finish(self, state: Counts) -> Counts:
        return state


class _Runs:
    """Which words of a vocabulary have a long run of letters without blanks; grows with the vocabulary."""

    def __init__(self) -> None:
        self._mask: Mask = np.empty(0, np.bool_)
        self._lock = Lock()

    def mask(self, vocabulary: Vocabulary) -> Mask:
        """Whether each word that has occurred so far has one."""
        with self._lock:
            start, stop = len(self._mask), len(vocabulary)
            if start < stop:
                words = vocabulary.column().slice(start, stop)
                letters = np.empty(stop - start, np.int64)
                _kernel.count_from(words.data, words.starts, words.ends, _kinds(), _CHINESE, letters)
                self._mask = np.concatenate((self._mask, letters >= LONG_RUN))
            return self._mask


_runs: WeakKeyDictionary[Vocabulary, _Runs] = WeakKeyDictionary()
_runs_lock = Lock()


def _long_runs(vocabulary: Vocabulary) -> Mask:
    """Whether each word of a vocabulary has a long run; only new words are looked at, which costs next to nothing."""
    with _runs_lock:
        runs = _runs.setdefault(vocabulary, _Runs())
    return runs.mask(vocabulary)
