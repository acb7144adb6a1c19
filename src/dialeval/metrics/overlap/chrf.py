"""chrF: how many character n-grams response and reference share.

    P = mean over orders of matches / n-grams of the response
    R = mean over orders of matches / n-grams of the reference
    chrf = (1 + beta^2) * P * R / (beta^2 * P + R)

over the character n-grams of 1 to 6 characters, white space left out, with beta = 2: recall counts twice as much. It
forgives inflection and small differences of spelling, needs no tokeniser, and suits languages without blanks. `words=2`
adds the n-grams of one and two words, with punctuation at the end (else the beginning) of a word cut off: that is
chrF++. Only orders of which both sides have an n-gram take part in the means. Of several references the
one with the highest value counts.

One value per response and then the mean (`per=response`), or the value of the summed counts (`per=corpus`). Both are
those of sacreBLEU (sentence_chrf and corpus_chrf), from 0 to 1 instead of 0 to 100; for the corpus the signature holds
sacreBLEU's own.

Papers: Popović 2015, "chrF: character n-gram F-score for automatic MT evaluation", WMT; Popović 2017, "chrF++: words
helping character n-grams", WMT.

Edge cases: an empty response and an empty reference score 0; a row without any reference is not scored.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.errors import SettingError
from dialeval.core.kernels import Kernels
from dialeval.core.needs import Need
from dialeval.core.ragged import offsets_of, row_numbers
from dialeval.core.signature import SACREBLEU
from dialeval.metrics.counting import CountMetric, Flags, Per, SummedCounts
from dialeval.metrics.overlap.bleu_counts import match_long
from dialeval.metrics.overlap.sacrebleu import chrf_signature, number_of_references, reference_numbers
from dialeval.text.characters import characters
from dialeval.text.tokenise import tokens
from dialeval.text.vocabulary import Vocabulary

_kernel = Kernels("dialeval.metrics.overlap.chrf_kernel")

BLOCK, BLOCKS = 64, 4
SHORT_TEXT = BLOCK * BLOCKS
"""Characters of a text whose places are the bits of a few integers; longer ones are matched by `match_long`."""
_PUNCTUATION = frozenset(string.punctuation)


@dataclass(frozen=True)
class Chrf(CountMetric):
    """Share of character n-grams that response and reference have in common, as an F measure."""

    family = "chrf"
    presets = {"chrf": {}}
    needs = frozenset({Need.RESPONSE, Need.REFERENCE})
    better = "higher"
    bounds = (0.0, 1.0)

    n: int = 6
    words: int = 0
    beta: float = 2.0
    per: Per = "response"
    lower: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n < 0 or self.words < 0 or not self.n + self.words:
            raise SettingError(f"chrf counts n-grams of some order; n={self.n} with words={self.words} is not possible")
        if not 0 <= self.beta < np.inf:
            raise SettingError(f"chrf weighs recall beta times as much as precision; beta={self.beta} is not possible")

    @property
    def of_corpus(self) -> bool:
        return self.per == "corpus"

    @property
    def width(self) -> int:
        return 3 * (self.n + self.words) + 2

    def known_as(self, state: SummedCounts) -> Mapping[str, str]:
        if not self.of_corpus:
            return {}
        line = chrf_signature(self.n, self.words, self.beta, self.lower, number_of_references(state))
        return {} if line is None else {SACREBLEU: line}

    def row_counts(self, batch: Batch) -> tuple[Ints, Flags]:
        """Per row: n-grams of the response, n-grams of the best reference, matches; each by order. Last, the numbers of
        references."""
        lists = batch.lists(Need.REFERENCE).offsets
        parts = []
        if self.n:
            here, there = (characters(batch, need, self.lower) for need in (Need.RESPONSE, Need.REFERENCE))
            parts.append(_pair_counts(here, there, lists, self.n))
        if self.words:
            here, there = (_pieces(batch, need, self.lower) for need in (Need.RESPONSE, Need.REFERENCE))
            parts.append(_pair_counts(here, there, lists, self.words))
        pairs = np.concatenate(parts, axis=2).reshape(len(parts[0]), self.width - 2)
        counts = np.zeros((len(batch), self.width), np.int64)
        if len(pairs) == len(batch) and (np.diff(lists) == 1).all():
            counts[:, :-2] = pairs
        else:
            rows = row_numbers(lists)
            best = _first_best(self._of_grams(pairs), rows)
            counts[rows[best], :-2] = pairs[best]
        counts[:, -2:] = reference_numbers(batch)
        return counts, np.diff(lists) > 0

    def formula(self, counts: Ints | Floats) -> Floats:
        return self._of_grams(counts[:, :-2])

    def _of_grams(self, counts: Ints | Floats) -> Floats:
        responses, references, matches = np.split(counts, 3, axis=1)
        both = (responses > 0) & (references > 0)
        orders = np.maximum(both.sum(axis=1), 1)
        precision, recall = np.zeros(len(counts)), np.zeros(len(counts))
        for order in range(both.shape[1]):  # from left to right, as sacreBLEU: of equal references it takes the first
            precision += np.where(both[:, order], matches[:, order] / np.maximum(responses[:, order], 1), 0)
            recall += np.where(both[:, order], matches[:, order] / np.maximum(references[:, order], 1), 0)
        precision, recall = precision / orders, recall / orders
        weight = self.beta**2
        share = weight * precision + recall
        values: Floats = (1 + weight) * precision * recall / np.where(share == 0, 1, share)
        return values


def _pair_counts(responses: TokenColumn, references: TokenColumn, lists: Ints, orders: int) -> Ints:
    """Per pair of response and reference: n-grams of the response, of the reference, and matches; each by order."""
    rows = row_numbers(lists)
    paired = responses if np.array_equal(rows, np.arange(len(responses))) else responses.take(rows)
    matches = _matches(paired, references, orders)
    here = np.maximum(paired.lengths[:, None] - np.arange(orders), 0)
    there = np.maximum(references.lengths[:, None] - np.arange(orders), 0)
    # sacreBLEU does not count the response's n-grams of an order of which the reference has none.
    return np.stack((np.where(there > 0, here, 0), there, matches), axis=1)


def _matches(responses: TokenColumn, references: TokenColumn, orders: int) -> Ints:
    """The clipped matches of pairs by order."""
    pairs = len(responses)
    matches, rest = np.empty((pairs, orders), np.int64), np.empty(pairs, np.int64)
    most = 2 * SHORT_TEXT
    found = (np.full(2 * most, -1, np.int32), np.empty(most, np.int32))
    numbers = (np.empty(SHORT_TEXT, np.int32), np.empty(SHORT_TEXT, np.int32))
    places = (np.zeros(BLOCKS * most, np.uint64), np.zeros(BLOCKS * most, np.uint64))
    grams = (np.empty(BLOCKS * orders, np.uint64), np.empty(BLOCKS * orders, np.uint64))
    texts = (responses.ids, responses.offsets, references.ids, references.offsets)
    long = rest[: _kernel.match_pairs(*texts, (*found, *numbers, *places, *grams), matches, rest)]
    if len(long):
        match_long(long, responses, references, np.arange(pairs + 1), matches)
    return matches


def _first_best(values: Floats, rows: Ints) -> Ints:
    """Which pair of each row has the highest value; the first of several."""
    order = np.lexsort((np.arange(len(values)), -values, rows))
    first: Ints = order[np.diff(rows[order], prepend=-1) > 0]
    return first


def _pieces(batch: Batch, need: Need, lower: bool) -> TokenColumn:
    """The words of a batch's texts, punctuation at their end (else at their beginning) cut off."""
    split = tokens(batch, need, "lower-words.1" if lower else "words.1")
    return batch.derived(("pieces", need, lower), lambda: _cut(split, cast(Vocabulary, batch.vocabulary)))


def _cut(split: TokenColumn, vocabulary: Vocabulary) -> TokenColumn:
    words, number = np.unique(split.ids, return_inverse=True)
    cut = [_without_punctuation(word) for word in vocabulary.words(words)]
    sizes = np.array([len(pieces) for pieces in cut], np.int64)
    ids = vocabulary.add(TextColumn.from_strings([piece for pieces in cut for piece in pieces]))
    pieces = TokenColumn(ids, offsets_of(sizes), vocabulary).take(number)
    return TokenColumn(pieces.ids, pieces.offsets[split.offsets], vocabulary)


def _without_punctuation(word: str) -> list[str]:
    if len(word) > 1 and word[-1] in _PUNCTUATION:
        return [word[:-1], word[-1]]
    if len(word) > 1 and word[0] in _PUNCTUATION:
        return [word[0], word[1:]]
    return [word]
