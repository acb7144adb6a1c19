"""chrF: how many character n-grams response and reference share.

    P = mean over orders of matches / n-grams of the response
    R = mean over orders of matches / n-grams of the reference
    chrf = (1 + beta^2) * P * R / (beta^2 * P + R)

over the character n-grams of 1 to 6 characters, whitespace left out, with beta = 2: recall counts twice as much. It
forgives inflection and small differences of spelling, needs no tokenizer, and suits languages without spaces. `words=2`
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy import uint64

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints, offsets_of, row_numbers
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.errors import SettingError
from dialeval.core.inputs import Input
from dialeval.core.kernels import count_ones, kernel
from dialeval.core.signature import SACREBLEU
from dialeval.metrics.bleu_counts import ORDERS as BLEU_ORDERS
from dialeval.metrics.bleu_counts import BleuCounts, count_references, find_number_of_references, match_long, sign_chrf
from dialeval.metrics.counting import CountMetric, Flags, Per, SummedCounts
from dialeval.text.tokenizers import characters, tokens
from dialeval.text.vocabulary import Vocabulary

BLOCK, BLOCKS = 64, 4
"""Places of the shorter text of a pair are bits of that many integers; two longer ones are left to `match_long`."""
_PUNCTUATION = frozenset(string.punctuation)


@dataclass(frozen=True)
class Chrf(CountMetric):
    """F score of the character n-grams that response and reference have in common."""

    family = "chrf"
    needs = frozenset({inputs.RESPONSE, inputs.REFERENCE})
    better = "higher"
    bounds = (0.0, 1.0)
    limits = dict.fromkeys(("n", "words", "beta"), (0, np.inf))

    n: int = 6
    words: int = 0
    beta: float = 2.0
    per: Per = "response"
    lower: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.n + self.words:
            raise SettingError("chrf counts n-grams of some order; n=0 with words=0 is not possible")

    @property
    def width(self) -> int:
        return 3 * (self.n + self.words) + 2

    def list_other_signatures(self, state: SummedCounts) -> Mapping[str, str]:
        if not self.of_corpus:
            return {}
        line = sign_chrf(self.n, self.words, self.beta, self.lower, find_number_of_references(state))
        return {} if line is None else {SACREBLEU: line}

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        """Count per row n-grams of the response, of the best reference, and matches, by order; last, references."""
        lists = batch.lists(inputs.REFERENCE).offsets
        rows = row_numbers(lists)
        # Column-major: the formula then works on one contiguous array per order.
        pairs = np.zeros((len(rows), self.width), np.int64, order="F")
        sides = np.split(pairs[:, :-2], 3, axis=1)
        if self.n:
            here, there = (characters(batch, need, self.lower) for need in (inputs.RESPONSE, inputs.REFERENCE))
            _count_pairs(here, there, rows, [side[:, : self.n] for side in sides], _match_characters)
        if self.words:
            here, there = (_split_words(batch, need, self.lower) for need in (inputs.RESPONSE, inputs.REFERENCE))
            _count_pairs(here, there, rows, [side[:, self.n :] for side in sides], _match_words)
        counts = pairs
        if not np.array_equal(rows, np.arange(len(batch))):
            best = _find_first_best(self.formula(pairs), rows)
            counts = np.zeros((len(batch), self.width), np.int64, order="F")
            counts[rows[best]] = pairs[best]
        counts[:, -2:] = count_references(batch)
        return counts, np.diff(lists) > 0

    def formula(self, counts: Ints | Floats) -> Floats:
        responses, references, matches = np.split(counts[:, :-2], 3, axis=1)
        both = (responses > 0) & (references > 0)
        orders = np.maximum(both.sum(axis=1), 1)
        precision, recall = np.zeros(len(counts)), np.zeros(len(counts))
        for order in range(both.shape[1]):  # from left to right, as sacreBLEU: of equal references it takes the first
            precision += np.where(both[:, order], matches[:, order] / np.maximum(responses[:, order], 1), 0)
            recall += np.where(both[:, order], matches[:, order] / np.maximum(references[:, order], 1), 0)
        precision, recall = precision / orders, recall / orders
        weight = self.beta**2
        share = weight * precision + recall
        return np.asarray((1 + weight) * precision * recall / np.where(share == 0, 1, share))


Matches = Callable[[TokenColumn, TokenColumn, Ints], None]
"""Fills the last argument with the clipped matches of pairs, a column for each order."""


def _count_pairs(
    responses: TokenColumn, references: TokenColumn, rows: Ints, sides: Sequence[Ints], match: Matches
) -> None:
    """Fill n-grams of the response, n-grams of the reference, and matches; per reference, each by order."""
    paired = responses if np.array_equal(rows, np.arange(len(responses))) else responses.take(rows)
    here, there, matches = sides
    for order in range(here.shape[1]):
        there[:, order] = np.maximum(references.lengths - order, 0)
        # sacreBLEU does not count the response's n-grams of an order of which the reference has none.
        here[:, order] = np.where(there[:, order] > 0, np.maximum(paired.lengths - order, 0), 0)
    match(paired, references, matches)


def _match_characters(responses: TokenColumn, references: TokenColumn, matches: Ints) -> None:
    pairs, orders = matches.shape
    rest = np.arange(pairs)
    code_points = 1 + max(int(column.ids.max(initial=0)) for column in (responses, references))
    # Of an array this large only the pages that are written to take memory.
    table = np.zeros(BLOCKS * code_points, np.uint64)
    places, taken = (np.zeros((orders, BLOCKS), np.uint64) for _ in range(2))
    texts = (responses.ids, responses.offsets, references.ids, references.offsets)
    rest = rest[: match_pairs(*texts, table, places, taken, matches, rest)]
    if len(rest):
        match_long(rest, responses, references, np.arange(pairs + 1), matches)


def _match_words(responses: TokenColumn, references: TokenColumn, matches: Ints) -> None:
    pairs, orders = matches.shape
    lists = np.arange(pairs + 1)
    if orders <= BLEU_ORDERS:
        matches[:] = BleuCounts.of(responses, references, lists).matches[:, :orders]
    else:
        match_long(lists[:-1], responses, references, lists, matches)


def _find_first_best(values: Floats, rows: Ints) -> Ints:
    """Return which pair of each row has the highest value; the first of several."""
    order = np.lexsort((np.arange(len(values)), -values, rows))
    return np.asarray(order[np.diff(rows[order], prepend=-1) > 0])


def _split_words(batch: Batch, need: Input, lower: bool) -> TokenColumn:
    """Return the words of a batch's texts, punctuation at their end (else at their beginning) cut off."""
    split = tokens(batch, need, "lower-words.1" if lower else "words.1")
    return batch.derive(("pieces", need, lower), lambda: _split_punctuation(split, cast(Vocabulary, batch.vocabulary)))


def _split_punctuation(split: TokenColumn, vocabulary: Vocabulary) -> TokenColumn:
    words, number = np.unique(split.ids, return_inverse=True)
    cut = [_split_word(word) for word in vocabulary.words(words)]
    sizes = np.array([len(pieces) for pieces in cut], np.int64)
    ids = vocabulary.add(TextColumn.from_strings([piece for pieces in cut for piece in pieces]))
    pieces = TokenColumn(ids, offsets_of(sizes), vocabulary).take(number)
    return TokenColumn(pieces.ids, pieces.offsets[split.offsets], vocabulary)


def _split_word(word: str) -> list[str]:
    if len(word) > 1 and word[-1] in _PUNCTUATION:
        return [word[:-1], word[-1]]
    if len(word) > 1 and word[0] in _PUNCTUATION:
        return [word[0], word[1:]]
    return [word]


# Kernel: clipped n-gram matches of pairs of texts in characters.
#
# The places at which a character occurs in the shorter text are bits, in blocks of 64. The places at which the n-gram
# that ends in a character of the longer text occurs are the places of the character, and those of the n-gram before it,
# shifted by one. Of these the first that is not taken yet is taken. An n-gram so takes as many places as the text with
# fewer of it has, which is the clipping of BLEU, and different n-grams have different places: the matches of an order
# are the places that are taken in the end. Where an n-gram does not occur, no longer one that ends in the same
# character does, so most characters look at a few orders only.
#
# Layout of texts as in `bleu_counts`, with one reference for each response; scratch comes from the caller.

_STRIDE, _WIDTH = np.uint64(BLOCKS), np.uint64(BLOCK)
_LAST = np.uint64(BLOCK - 1)


@kernel
def _match(ids, start, end, table, blocks, places, taken, counts):  # type: ignore[no-untyped-def]
    """Fill `counts` with the matches of the longer text; the shorter one has its places in `blocks` blocks.

    Scratch: `places` (of the n-grams that end in the character before) and `taken` have a line for each order.
    """
    orders = counts.shape[0]
    for order in range(orders):
        for block in range(blocks):
            places[order, block] = taken[order, block] = uint64(0)
    one = uint64(1)
    reach = 0
    for i in range(start, end):
        first = uint64(ids[i]) * _STRIDE
        reach = min(reach + 1, orders)  # orders of which the text before had an n-gram, and one more
        for order in range(reach - 1, -1, -1):  # each order reads what the one below it had before
            carry = found = any_here = uint64(0)
            for block in range(blocks):
                here = table[first + uint64(block)]
                if order > 0:
                    below = places[order - 1, block]
                    here &= below << one | carry
                    carry = below >> _LAST
                places[order, block] = here
                any_here |= here
                free = here & ~taken[order, block]
                if free and not found:
                    taken[order, block] |= free & (~free + one)
                    found = one
            if not any_here:
                reach = order
    for order in range(orders):
        total = uint64(0)
        for block in range(blocks):
            total += count_ones(taken[order, block])
        counts[order] = total


@kernel(
    "(i4[::1], i8[::1], i4[::1], i8[::1], u8[::1], u8[:, ::1], u8[:, ::1], i8[:, ::1], i8[::1])",
    "(i4[::1], i8[::1], i4[::1], i8[::1], u8[::1], u8[:, ::1], u8[:, ::1], i8[::1, :], i8[::1])",
)
def match_pairs(ids, offsets, reference_ids, reference_offsets, table, places, taken, matches, rest):  # type: ignore[no-untyped-def]
    """Fill `matches` of pairs, a column for each order; the numbers of pairs of two long texts go into `rest`.

    Returns how many those are. Scratch: `table` has `BLOCKS` numbers for each id, all 0; `places` and `taken` have
    `BLOCKS` for each order.
    """
    left = 0
    for pair in range(offsets.shape[0] - 1):
        longer, start, end = ids, offsets[pair], offsets[pair + 1]
        shorter, first, last = reference_ids, reference_offsets[pair], reference_offsets[pair + 1]
        if end - start < last - first:
            longer, start, end, shorter, first, last = shorter, first, last, longer, start, end
        if last - first > BLOCK * BLOCKS:
            rest[left] = pair
            left += 1
            continue
        # Unsigned, for an index that could be negative is checked for that.
        begin, size = uint64(first), uint64(last - first)
        blocks = (size + _WIDTH - uint64(1)) // _WIDTH
        for place in range(size):
            table[uint64(shorter[begin + place]) * _STRIDE + place // _WIDTH] |= uint64(1) << place % _WIDTH
        _match(longer, start, end, table, blocks, places, taken, matches[pair])
        for place in range(size):
            for block in range(blocks):
                table[uint64(shorter[begin + place]) * _STRIDE + block] = 0
    return left
