"""Kernel: NIST of every hypothesis of a query against every group of its references.

The n-grams of a group, all orders together, are numbered in an exact hash table: an n-gram is the number of its first
n - 1 words and its last word in one key, so equal keys are equal n-grams. A group is numbered once for all hypotheses
of its query. Information weights are added up in the order in which a hypothesis has its n-grams, as nltk does it, so
that the same rounding decides between equally good groups.

Kernels allocate nothing; scratch comes from the caller.
"""

from __future__ import annotations

import math

from numpy import uint64

from dialeval.core.kernels import kernel
from dialeval.metrics.overlap.bleu_counts import WORD_BITS, slot_of

_BETA = math.log(0.5) / math.log(1.5) ** 2
"""Makes the length penalty 0.5 for a hypothesis of two thirds of the reference's words."""


@kernel
def _number(ids, offsets, first, last, n, bits, keys, numbers, frequency, prefix, grams):  # type: ignore[no-untyped-def]
    """Number the n-grams of the texts `first` to `last`: how often each occurs, and the n-gram without its last word.

    `grams[order, i]` is the n-gram that starts at word `i` of the texts. Returns one more than the largest number.
    """
    base = offsets[first]
    shift = uint64(64 - bits)
    for place in range(1 << bits):
        keys[place] = -1
    count = 1
    for text in range(first, last):
        for order in range(n):
            for i in range(offsets[text], offsets[text + 1] - order):
                before = grams[order - 1, i - base] if order > 0 else 0
                key = before << WORD_BITS | ids[i + order]
                slot = slot_of(keys, shift, key)
                if keys[slot] < 0:
                    keys[slot] = key
                    numbers[slot] = count
                    frequency[count] = 0
                    prefix[count] = before
                    count += 1
                gram = numbers[slot]
                frequency[gram] += 1
                grams[order, i - base] = gram
    return count


@kernel
def _look_up(ids, start, length, n, shift, keys, numbers, own):  # type: ignore[no-untyped-def]
    """Fill `own[order, i]` with the group's number of the hypothesis' n-gram at word `i`; 0 if the group lacks it."""
    for order in range(min(n, length)):
        for i in range(length - order):
            before = own[order - 1, i] if order > 0 else 0
            own[order, i] = 0
            if order == 0 or before > 0:
                slot = slot_of(keys, shift, before << WORD_BITS | ids[start + i + order])
                if keys[slot] >= 0:
                    own[order, i] = numbers[slot]


@kernel
def _numerator(own, length, order, mine, there, weights):  # type: ignore[no-untyped-def]
    """The information of the n-grams that hypothesis and reference share, counted as often as both have them."""
    total = 0.0
    for i in range(length - order):
        gram = own[order, i]
        if gram > 0 and mine[gram] > 0:
            if there[gram] > 0:
                total += weights[gram] * min(mine[gram], there[gram])
            mine[gram] = -mine[gram]  # later occurrences are in this count already
    for i in range(length - order):
        gram = own[order, i]
        if mine[gram] < 0:
            mine[gram] = -mine[gram]
    return total


@kernel
def _best(own, length, order, reference_offsets, first, last, grams, mine, there, weights):  # type: ignore[no-untyped-def]
    """The information that the best reference shares of one order, and its length; the longest of equal ones."""
    base = reference_offsets[first]
    for i in range(length - order):
        if own[order, i] > 0:
            mine[own[order, i]] += 1
    best = -1.0
    best_size = 0
    for reference in range(first, last):
        size = reference_offsets[reference + 1] - reference_offsets[reference]
        start = reference_offsets[reference] - base
        for j in range(start, start + size - order):
            there[grams[order, j]] += 1
        value = _numerator(own, length, order, mine, there, weights)
        for j in range(start, start + size - order):
            there[grams[order, j]] = 0
        if value > best or (value == best and size > best_size):
            best = value
            best_size = size
    for i in range(length - order):
        mine[own[order, i]] = 0
    return best, best_size


@kernel
def _weigh(words, count, frequency, prefix, mine, there, weights):  # type: ignore[no-untyped-def]
    """Fill `weights` with the information of the n-grams of a group of `words` words, and clear the counts."""
    mine[0] = there[0] = 0
    for gram in range(1, count):
        before = frequency[prefix[gram]] if prefix[gram] > 0 else words
        weights[gram] = math.log(before / frequency[gram]) / math.log(2.0)
        mine[gram] = there[gram] = 0


@kernel
def nist(texts, n, table, counts, weights, grams, own, scores):  # type: ignore[no-untyped-def]
    """Fill `scores`; NaN where the hypothesis has fewer than n words, or all references of the group are empty.

    Scratch: `table` (keys and numbers), as long as a power of two that is at least twice the n-grams of a group;
    `counts` (frequency, prefix, own count, count in a reference) and `weights`, one number more than those; `grams` and
    `own`, the words of a group and of a hypothesis, per order.
    """
    ids, offsets, lists, reference_ids, reference_offsets, groups, group_lists = texts
    keys, numbers = table
    frequency, prefix, mine, there = counts
    base_pair = 0
    for query in range(lists.shape[0] - 1):
        group_count = group_lists[query + 1] - group_lists[query]
        for group in range(group_lists[query], group_lists[query + 1]):
            first = groups[group]
            last = groups[group + 1]
            words = reference_offsets[last] - reference_offsets[first]
            bits = 1
            while (1 << bits) < 2 * n * words:
                bits += 1
            count = _number(
                reference_ids, reference_offsets, first, last, n, bits, keys, numbers, frequency, prefix, grams
            )
            _weigh(words, count, frequency, prefix, mine, there, weights)
            for text in range(lists[query], lists[query + 1]):
                length = offsets[text + 1] - offsets[text]
                pair = base_pair + (text - lists[query]) * group_count + group - group_lists[query]
                if length < n or words == 0:
                    scores[pair] = math.nan
                    continue
                _look_up(ids, offsets[text], length, n, uint64(64 - bits), keys, numbers, own)
                precision = 0.0
                reference_words = 0
                for order in range(n):
                    best, size = _best(own, length, order, reference_offsets, first, last, grams, mine, there, weights)
                    precision += best / (length - order)
                    reference_words += size
                ratio = n * length / reference_words
                penalty = math.exp(_BETA * math.log(ratio) ** 2) if ratio < 1.0 else 1.0
                scores[pair] = precision * penalty
        base_pair += (lists[query + 1] - lists[query]) * group_count
