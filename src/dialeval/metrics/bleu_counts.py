"""The counts that every BLEU is computed from: per row the clipped n-gram matches, the n-grams, and two lengths.

    matches[row, n - 1]  = sum over n-grams g of min(count of g in the response, largest count of g in a reference)
    totals[row, n - 1]   = max(0, words of the response - n + 1)
    reference_lengths    = length of the reference nearest to the response's, the shorter of two equally near ones

for the orders n = 1 to 5; the fifth serves two smoothing methods only. Clipping and closest length are those of the
paper, of nltk and of sacreBLEU alike.

Paper: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL.

Edge cases: an empty reference is a reference of no words. A row without any reference has `NO_REFERENCE` for a length.

Kernels: clipped n-gram matches of responses against their references, for all orders in one pass.

The j-th occurrence of an n-gram in a response counts where some reference has at least j of them; that is the clipping
of BLEU, sum over n-grams of min(count in the response, largest count in a reference), word by word.

`match_short_texts` compares every word of a response with every word of a reference, where neither has more than
`SHORT` words: the places at which a word occurs are the bits of one integer, and the places at which the n-gram that
ends in it occurs are those bits and the shifted ones of the n-gram before. The counts of all orders are stored next to
each other in the bytes of another integer, so that one subtraction compares them. `match_long_texts` takes any length
in linear time: it numbers the n-grams of the response in an exact hash table, order by order.

A text is the words `ids[offsets[text]:offsets[text + 1]]`. The references of a row are the texts `lists[row]` to
`lists[row + 1]`. Kernels allocate nothing (that would double their compile time); scratch comes from the caller.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy import int64, uint64

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints, Mask
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.kernels import count_ones, kernel
from dialeval.metrics.counting import SummedCounts
from dialeval.text.tokenizers import Tokenizer, tokens

Order = Literal[1, 2, 3, 4]
"""The longest n-grams that a BLEU counts."""

ORDERS = 5
"""Orders that are counted: 1 to 4, and 5, which two smoothing methods look at."""

SHORT = 64
"""Words that fit the bits of one integer."""

NO_REFERENCE = -1


@dataclass(frozen=True, eq=False, slots=True)
class BleuCounts:
    """Counts per row, integers all of them: they add up over rows to the counts of a corpus."""

    matches: Ints
    totals: Ints
    response_lengths: Ints
    reference_lengths: Ints

    @classmethod
    def of(cls, responses: TokenColumn, references: TokenColumn, lists: Ints) -> BleuCounts:
        """Return the counts of responses; the references of row `i` are the texts `lists[i]` to `lists[i + 1]`."""
        # Column-major: the formulas then work on one contiguous array per order.
        matches = np.empty((len(responses), ORDERS), np.int64, order="F")
        closest, rest = np.empty(len(responses), np.int64), np.empty(len(responses), np.int64)
        scratch = (np.empty(SHORT, np.int32), np.empty(SHORT, np.uint64), np.empty(SHORT, np.uint64))
        texts = (responses.ids, responses.offsets, references.ids, references.offsets, lists)
        long = rest[: match_short_texts(texts, scratch, matches, closest, rest)]
        if len(long):
            match_long(long, responses, references, lists, matches)
        lengths = responses.lengths
        totals = np.maximum(np.subtract.outer(-np.arange(ORDERS), -lengths).T, 0)
        return cls(matches, totals, lengths, closest)

    def __len__(self) -> int:
        return len(self.response_lengths)


def match_long(rows: Ints, responses: TokenColumn, references: TokenColumn, lists: Ints, matches: Ints) -> None:
    """Fill `matches` for the given rows by the method for texts of any length."""
    longest = int(responses.lengths[rows].max(initial=0))
    most = int((references.offsets[lists[rows + 1]] - references.offsets[lists[rows]]).max(initial=0))
    slots = np.empty(1 << max(2, (2 * longest).bit_length()), np.int32)
    # Of arrays this large only the pages that are written to take memory.
    table = (slots, np.empty(longest, np.int64), *(np.empty(longest, np.int32) for _ in range(3)))
    texts = (responses.ids, responses.offsets, references.ids, references.offsets, lists)
    match_long_texts(rows, *texts, np.empty(longest, np.int32), np.empty(most, np.int32), table, matches)


def count_ngram_matches(batch: Batch, tokenizer: Tokenizer) -> BleuCounts:
    """Return the counts of a batch's responses against their references; computed once for all metrics of the batch."""
    responses = tokens(batch, inputs.RESPONSE, tokenizer)
    references = tokens(batch, inputs.REFERENCE, tokenizer)
    lists = batch.lists(inputs.REFERENCE).offsets
    return batch.derive(("bleu counts", tokenizer), lambda: BleuCounts.of(responses, references, lists))


STEP = 16
"""Words compared by one instruction, or a few, of any processor with vectors; `SHORT` is a multiple."""

_FLAGS = np.uint64(0x8080808080)
"""The top bit of the byte of each order."""
_UNITS = np.uint64(0x0101010101)
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: the top bits of a product depend on all bits of the key (Fibonacci hashing)."""
WORD_BITS = 32
FIRST_BITS = 12
"""Of the slots for the n-grams of a long text; they become more where it has more different ones."""


# Types of arguments: words and offsets of responses and of references, lists of references; slots, keys and counts; and
# arrays with a column for each order.
_TEXTS = "i4[::1], i8[::1], i4[::1], i8[::1], i8[::1]"
_TABLE = "i4[::1], i8[::1], i4[::1], i4[::1], i4[::1]"
_ORDERS = ("i8[:, ::1]", "i8[::1, :]")


@kernel
def equal_words(words, start, word):  # type: ignore[no-untyped-def]
    """Return an integer whose bit j is set where `words[start + j]` is the word, for `STEP` words."""
    bits = uint64(0)
    for j in range(STEP):
        bits |= uint64(words[uint64(start + j)] == word) << uint64(j)
    return bits


@kernel
def _places(words, size, word):  # type: ignore[no-untyped-def]
    """Return an integer whose bit j is set where `words[j]` is the word, for `size` words, rounded up to steps."""
    bits = uint64(0)
    for j in range(0, size, STEP):
        bits |= equal_words(words, j, word) << uint64(j)
    return bits


@kernel
def _lanes(one, two, three, four, five):  # type: ignore[no-untyped-def]
    """Return the numbers of set bits, each in a byte of its own."""
    low = count_ones(one) | count_ones(two) << uint64(8) | count_ones(three) << uint64(16)
    return low | count_ones(four) << uint64(24) | count_ones(five) << uint64(32)


@kernel
def _ending_here(one, two, three, four, here):  # type: ignore[no-untyped-def]
    """Return the places of the n-grams that end in a word, from those of the word and of the n-grams before it."""
    step = uint64(1)
    return here, (one << step) & here, (two << step) & here, (three << step) & here, (four << step) & here


@kernel
def rank_ngrams(ids, start, length, words, ranks):  # type: ignore[no-untyped-def]
    """Fill `ranks`: per word which occurrence in the text its n-grams are (1 for the first), one byte for each order.

    The n-grams of a word are those that end in it.
    """
    for i in range(length):
        words[i] = ids[start + i]
    one = two = three = four = five = uint64(0)
    for i in range(length):
        before = _places(words, i, words[i]) & ((uint64(1) << uint64(i)) - uint64(1))
        one, two, three, four, five = _ending_here(one, two, three, four, before)
        ranks[i] = _lanes(one, two, three, four, five) + _UNITS


@kernel
def closest_length(length, offsets, first, last):  # type: ignore[no-untyped-def]
    """Return the length nearest to a text's among the references (-1: there is none), and the largest of all."""
    best = -1
    longest = length
    for reference in range(first, last):
        size = offsets[reference + 1] - offsets[reference]
        further = abs(size - length) - abs(best - length)
        if best < 0 or further < 0 or (further == 0 and size < best):
            best = size
        longest = max(longest, size)
    return best, longest


@kernel
def clipped_matches(ids, start, length, reference_ids, reference_offsets, first, last, words, ranks, hits):  # type: ignore[no-untyped-def]
    """Return the clipped matches of a short text, from the ranks of its n-grams, one byte an order."""
    for i in range(length):
        hits[i] = 0
    for reference in range(first, last):
        begin = reference_offsets[reference]
        size = reference_offsets[reference + 1] - begin
        for j in range(size + STEP - 1 & -STEP):
            words[j] = reference_ids[begin + j] if j < size else -1  # no word has this id
        one = two = three = four = five = uint64(0)
        for i in range(length):
            here = _places(words, size, ids[start + i])
            one, two, three, four, five = _ending_here(one, two, three, four, here)
            # The flag of a byte survives where the reference has as many as the rank; no byte borrows.
            hits[i] |= (_lanes(one, two, three, four, five) | _FLAGS) - ranks[i]
    total = uint64(0)
    for i in range(length):
        total += (hits[i] & _FLAGS) >> uint64(7)
    return total


@kernel(*(f"(Tuple(({_TEXTS})), Tuple((i4[::1], u8[::1], u8[::1])), {order}, i8[::1], i8[::1])" for order in _ORDERS))
def match_short_texts(texts, scratch, matches, closest, rest):  # type: ignore[no-untyped-def]
    """Fill `matches` of rows of short texts, and `closest` (reference length, -1 if there is none) of all rows.

    The numbers of rows with a long text go into `rest`; gives how many those are. `scratch` has room for the words,
    ranks and hits of `SHORT` words.
    """
    ids, offsets, reference_ids, reference_offsets, lists = texts
    words, ranks, hits = scratch
    left = 0
    for row in range(offsets.shape[0] - 1):
        start, first, last = offsets[row], lists[row], lists[row + 1]
        length = offsets[row + 1] - start
        closest[row], longest = closest_length(length, reference_offsets, first, last)
        if longest > SHORT:
            rest[left] = row
            left += 1
            continue
        rank_ngrams(ids, start, length, words, ranks)
        total = clipped_matches(ids, start, length, reference_ids, reference_offsets, first, last, words, ranks, hits)
        for order in range(ORDERS):
            matches[row, order] = (total >> uint64(8 * order)) & uint64(0xFF)
    return left


@kernel
def _place_of(slots, bits, keys, key):  # type: ignore[no-untyped-def]
    """Return the slot of an n-gram: it holds the n-gram's number, or -1."""
    mask = (uint64(1) << uint64(bits)) - uint64(1)
    slot = (uint64(key ^ (key >> WORD_BITS)) * _ODD) >> uint64(64 - bits)
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + uint64(1)) & mask
    return slot


@kernel
def _number_ngrams(ids, start, size, order, bits, grams, slots, keys, counts):  # type: ignore[no-untyped-def]
    """Number the n-grams of a text in order of occurrence, and count them; return the bits of the slots."""
    for slot in range(1 << bits):
        slots[slot] = -1
    count = 0
    for i in range(size):
        key = (int64(grams[i]) if order > 0 else int64(0)) << WORD_BITS | ids[start + i + order]
        slot = _place_of(slots, bits, keys, key)
        if slots[slot] < 0:
            slots[slot] = count
            keys[count] = key
            counts[count] = 0
            count += 1
        number = slots[slot]
        counts[number] += 1
        grams[i] = number
        if 2 * count > 1 << bits:  # memory is for the different n-grams of a text, not for its length
            bits += 1
            for slot in range(1 << bits):
                slots[slot] = -1
            for other in range(count):
                slots[_place_of(slots, bits, keys, keys[other])] = other
    return bits, count


@kernel(*(f"(i8[::1], {_TEXTS}, i4[::1], i4[::1], Tuple(({_TABLE})), {order})" for order in _ORDERS))
def match_long_texts(  # type: ignore[no-untyped-def]
    rows, ids, offsets, reference_ids, reference_offsets, lists, grams, reference_grams, table, matches
):
    """Fill `matches` of the given rows, however long; it has a column for each order to count.

    An n-gram is the number of its first n - 1 words and its last word in one key, so equal keys are equal n-grams.
    Scratch: `grams` and `reference_grams` hold the words of one row's response and of all its references; `table` is
    the slots (a power of two, at least twice the words of a response), and for each n-gram of a response its key, its
    counts in the response and in a reference, and its matches.
    """
    slots, keys, counts, in_reference, matched = table
    for place in range(rows.shape[0]):
        row = rows[place]
        start = offsets[row]
        length = offsets[row + 1] - start
        base = reference_offsets[lists[row]]
        bits = 1
        while bits < FIRST_BITS and (1 << bits) < 2 * length:
            bits += 1
        for order in range(matches.shape[1]):
            bits, count = _number_ngrams(ids, start, length - order, order, bits, grams, slots, keys, counts)
            for number in range(count):
                in_reference[number] = matched[number] = 0
            total = 0
            for text in range(lists[row], lists[row + 1]):
                first = reference_offsets[text]
                last = reference_offsets[text + 1] - order
                for j in range(first, last):
                    before = reference_grams[j - base] if order > 0 else 0
                    if before >= 0:  # what the response lacks it also lacks with one more word
                        key = int64(before) << WORD_BITS | reference_ids[j + order]
                        number = slots[_place_of(slots, bits, keys, key)]
                        reference_grams[j - base] = number
                        if number >= 0:
                            in_reference[number] += 1
                            if matched[number] < in_reference[number] and matched[number] < counts[number]:
                                matched[number] += 1
                                total += 1
                for j in range(first, last):  # the next reference counts from zero again
                    if reference_grams[j - base] >= 0:
                        in_reference[reference_grams[j - base]] = 0
            matches[row, order] = total


# BLEU from counts: smoothed precisions, brevity penalty, and their product, for all rows at once.
#
#     BLEU = BP * exp(sum over n of w_n * log p_n),   BP = exp(min(0, 1 - reference length / response length))
#
# p_n = matches / max(1, n-grams) is 0 for most short responses at n = 3 or 4, so it is smoothed. The methods are
# those of the paper, numbered as in `nltk.translate.bleu_score.SmoothingFunction` (3.9 and 3.10; older versions
# differ in 2, 4 and 7), with m matches among l n-grams of a response of L words, and z the number of orders up to n
# without a match:
#
# - 0: none; the smallest normal float stands for 0;
# - 1: (m + 0.1) / l where m = 0;
# - 2: (m + 1) / (l + 1) for n > 1;
# - 3: 1 / (2**z l) where m = 0 (NIST; `exp` in sacreBLEU);
# - 4: log(L) / (5 * 2**z l) where m = 0 and L > 1;
# - 5: p'_n = (p'_{n-1} + p_n + p_{n+1}) / 3 with p'_0 = p_1 + 1; nltk takes p_5 after the last order, whichever that
# is;
# - 6: (m + 5 p'_{n-1}**2 / p'_{n-2}) / (l + 5) for n > 2;
# - 7: method 5 upon the precisions of method 4.
#
# Paper: Chen and Cherry 2014, "A Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU", WMT.
#
# Edge cases: without a common word the score is 0 under every method, and so is that of an empty response. A
# precision that is still 0 is left out of the sum (a one-word response under method 4 scores its unigram). Methods 5
# and 7 may exceed 1. Method 6 cannot score a row with a common word and no common trigram, nor fewer than three
# orders: NaN where nltk raises an error. A row without a reference is NaN.

Method = Literal[0, 1, 2, 3, 4, 5, 6, 7]
"""The number of a smoothing method."""

COUNTED_ORDERS = 4
"""Orders that are smoothed together, also where the higher ones then have no weight."""

EPSILON = 0.1
ALPHA = 5
K = 5
"""Constants of methods 1, 6 and 4, as in the paper."""

SMALLEST = sys.float_info.min
"""Stands for a precision of 0 under method 0, so that it has a logarithm."""

NIST: Method = 3
"""The method that sacreBLEU uses too."""


def smoothed_precisions(counts: BleuCounts, method: int, orders: int = COUNTED_ORDERS) -> Floats:
    """Return the precisions of the first orders under a smoothing method, one row each.

    `orders` matters to methods 5, 6 and 7 beyond the orders it leaves out: it is the number of weights given to nltk.
    """
    matches = counts.matches[:, :orders]
    ngrams = np.maximum(counts.totals[:, :orders], 1).astype(np.float64)
    smoothed: Floats
    if method == 0:
        smoothed = np.maximum(matches / ngrams, SMALLEST)
    elif method == 1:
        smoothed = np.where(matches == 0, EPSILON, matches) / ngrams
    elif method == 2:
        more = np.minimum(np.arange(orders), 1)
        smoothed = (matches + more) / (ngrams + more)
    elif method == 5:
        smoothed = _smooth_by_neighbors(counts, matches / ngrams)
    elif method == 6:
        smoothed = _smooth_by_prior(counts, matches / ngrams)
    else:
        halved = np.where(matches == 0, np.exp2(-np.cumsum(matches == 0, axis=1)), matches)
        if method == NIST:
            return halved / ngrams
        scale = np.log(np.maximum(counts.response_lengths, 1)) / K  # 0 for one word: the precision stays 0
        smoothed = halved * np.where(matches == 0, scale[:, None], 1.0) / ngrams
        smoothed = _smooth_by_neighbors(counts, smoothed) if method == 7 else smoothed
    return smoothed


def log_precisions(counts: BleuCounts, method: int, orders: int = COUNTED_ORDERS) -> Floats:
    """Return logarithms of the smoothed precisions of the first orders, one row each; 0 for a precision of 0."""
    smoothed = smoothed_precisions(counts, method, orders)
    return np.asarray(np.log(np.where(smoothed == 0, 1.0, smoothed)))


def weighted_bleu(counts: BleuCounts, logs: Floats, weights: Sequence[float]) -> Floats:
    """Return BLEU as nltk defines it, from the logarithms of precisions and a weight for each of the first orders."""
    exponent = np.zeros(len(counts))
    for order, weight in enumerate(weights):
        exponent += weight * logs[:, order]
    return _apply_brevity_penalty(counts, exponent)


def sacre_bleu(counts: BleuCounts, logs: Floats, n: int) -> Floats:
    """Return BLEU of sentences as sacreBLEU defines it, from the logarithms of NIST precisions.

    The mean goes over the orders of which the response has an n-gram (sacreBLEU's effective order). From 0 to 1.
    """
    has_ngrams = counts.totals[:, :n] > 0
    exponent = np.where(has_ngrams, logs[:, :n], 0.0).sum(axis=1) / np.maximum(has_ngrams.sum(axis=1), 1)
    return _apply_brevity_penalty(counts, exponent)


def corpus_bleu(counts: Ints | Floats) -> Floats:
    """Return BLEU of corpora as sacreBLEU defines it, from 0 to 100, with NIST smoothing.

    Takes a line per corpus: matches by order, n-grams by order, words of the responses and of the closest references.
    """
    orders = (counts.shape[1] - 2) // 2
    matches, totals, length, reference_length = np.split(counts, (orders, 2 * orders, 2 * orders + 1), axis=1)
    scored: Mask = np.asarray(matches.any(axis=1) & totals.all(axis=1))
    halved = np.cumprod(np.where(matches > 0, 1.0, 2.0), axis=1)
    above, below = np.where(matches > 0, 100.0 * matches, 100.0), np.where(matches > 0, totals, halved * totals)
    precisions = np.divide(above, below, out=np.ones(above.shape), where=scored[:, None])
    penalty = np.minimum(0.0, 1 - reference_length[:, 0] / np.maximum(length[:, 0], 1e-300))
    if len(counts) == 1:  # functions of sacreBLEU: those of NumPy may differ in the last digit
        values = np.array([math.exp(penalty[0]) * math.exp(sum(map(math.log, precisions[0])) / orders)])
    else:
        values = np.exp(penalty) * np.exp(np.log(precisions).sum(axis=1) / orders)
    return np.where(scored, values, 0.0)


def _apply_brevity_penalty(counts: BleuCounts, exponent: Floats) -> Floats:
    ratio = counts.reference_lengths / np.maximum(counts.response_lengths, 1)
    scores: Floats = np.exp(exponent + np.minimum(1 - ratio, 0))
    scores[counts.matches[:, 0] == 0] = 0
    scores[counts.reference_lengths == NO_REFERENCE] = np.nan
    return scores


def _smooth_by_neighbors(counts: BleuCounts, precisions: Floats) -> Floats:
    """Smooth precisions by method 5."""
    next_order = slice(COUNTED_ORDERS, COUNTED_ORDERS + 1)
    fifth = counts.matches[:, next_order] / np.maximum(counts.totals[:, next_order], 1)
    following = np.hstack((precisions[:, 1:], fifth))
    smoothed = np.empty_like(precisions)
    before = precisions[:, 0] + 1
    for order in range(precisions.shape[1]):
        before = (before + precisions[:, order] + following[:, order]) / 3
        smoothed[:, order] = before
    return smoothed


def _smooth_by_prior(counts: BleuCounts, precisions: Floats) -> Floats:
    """Smooth precisions by method 6."""
    orders = precisions.shape[1]
    # NaN before the arithmetic: what is left has a match of the first three orders, so that no divisor is 0.
    possible = (counts.matches[:, 2:3] > 0) & (orders > 2)
    smoothed = np.where(possible, precisions, np.nan)
    for order in range(2, orders):
        prior = smoothed[:, order - 1] ** 2 / smoothed[:, order - 2]
        smoothed[:, order] = (counts.matches[:, order] + ALPHA * prior) / (counts.totals[:, order] + ALPHA)
    return smoothed


# The signatures of sacreBLEU, for numbers that are the same there.
#
#     BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0
#
# The version is that of the sacreBLEU which the tests compare figures and lines with. `nrefs` is how many references
# each row has, and `var` where rows differ. To know it from sums, a row counts its references and their square: the
# rows have one number k of them just if rows * sum of squares = (sum)^2.

VERSION = "2.6.0"
MECAB = "0.996"
"""The version of MeCab that every mecab-python3 of these years holds."""

_TOKENIZERS: Mapping[Tokenizer, tuple[str, str]] = {
    "words.1": ("mixed", "none"),
    "lower-words.1": ("lc", "none"),
    "lower-13a": ("lc", "13a"),
    **{name: ("mixed", name) for name in ("13a", "intl", "zh", "char")},
    "ja": ("mixed", f"ja-mecab-{MECAB}-IPA"),
}
"""By our tokenizers: what sacreBLEU calls their case and what it calls them."""


def find_tokenized_periods(column: TextColumn) -> Mask:
    """Return which texts end in a space and a period, as tokenized texts do."""
    found: Mask = column.ends - column.starts > 1
    last = column.ends[found]
    found[found] = (column.data[last - 1] == ord(".")) & (column.data[last - 2] == ord(" "))
    return found


def count_references(batch: Batch) -> Ints:
    """Return per row the number of references and its square."""
    numbers = np.diff(batch.lists(inputs.REFERENCE).offsets)
    return np.stack((numbers, numbers * numbers), axis=1)


def find_number_of_references(state: SummedCounts) -> int | str:
    """Return the references of each scored row, from sums that end in `count_references`; `var` where it differs."""
    *_, total, squares = state.counts
    rows = state.moments.scored
    return total // rows if rows and rows * squares == total * total else "var"


def sign_bleu(tokenizer: Tokenizer, references: int | str) -> str | None:
    """Return the signature of corpus BLEU with the defaults of sacreBLEU; None for other tokenizers."""
    if tokenizer not in _TOKENIZERS:
        return None
    case, name = _TOKENIZERS[tokenizer]
    return f"BLEU|nrefs:{references}|case:{case}|eff:no|tok:{name}|smooth:exp|version:{VERSION}"


def sign_chrf(characters: int, words: int, beta: float, lower: bool, references: int | str) -> str | None:
    """Return the signature of corpus chrF; None for a beta that is not a whole number."""
    if beta != int(beta):
        return None
    case = "lc" if lower else "mixed"
    name, orders = f"chrF{int(beta)}{'+' * words}", f"nc:{characters}|nw:{words}"
    return f"{name}|nrefs:{references}|case:{case}|eff:yes|{orders}|space:no|version:{VERSION}"
