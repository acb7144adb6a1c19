"""Kernel: the longest common subsequence of responses and references, a machine word of positions at a time.

The positions of a response are bits. A bit that is 0 in `rows` says that the longest common subsequence with the part
of the reference read so far grows at that position; one addition per 64 positions takes in a further word of the
reference (Crochemore et al. 2001; Hyyrö 2004). Each word costs as many steps as the response has blocks of 64 words, so
texts of many thousand words take the product of their lengths, divided by 64. What both begin and end with alike is
part of a longest common subsequence and is not looked at again.

Layout of texts as in `bleu_kernel`; scratch comes from the caller.
"""

from __future__ import annotations

from numba import uint64

from dialeval.core.numba_kernel import njit
from dialeval.metrics.overlap.bleu_counts import SHORT
from dialeval.metrics.overlap.bleu_kernel import STEP, equal_words, ones


@njit()
def _take_in(words, blocks, word, rows):  # type: ignore[no-untyped-def]
    """Take one more word of the reference in."""
    carry = uint64(0)
    for block in range(blocks):
        places = uint64(0)
        for step in range(0, SHORT, STEP):
            places |= equal_words(words, block * SHORT + step, word) << uint64(step)
        row = rows[block]
        grown = row & places
        low = row + grown
        total = low + carry
        carry = uint64(1) if low < row or total < low else uint64(0)
        rows[block] = total | (row - grown)


@njit()
def _shared_ends(ids, start, stop, reference_ids, first, last):  # type: ignore[no-untyped-def]
    """How many words two texts begin with alike, and how many of the rest they end with alike."""
    shorter = min(stop - start, last - first)
    head = 0
    while head < shorter and ids[start + head] == reference_ids[first + head]:
        head += 1
    tail = 0
    while tail < shorter - head and ids[stop - 1 - tail] == reference_ids[last - 1 - tail]:
        tail += 1
    return head, tail


@njit()
def longest_common(ids, offsets, reference_ids, reference_offsets, lists, words, rows, longest):  # type: ignore[no-untyped-def]
    """Fill `longest`: per reference the length of its longest common subsequence with the response of its row.

    Scratch: `words` and `rows` hold the words of the longest response, in whole blocks, and their bits.
    """
    for row in range(offsets.shape[0] - 1):
        for text in range(lists[row], lists[row + 1]):
            start, stop = offsets[row], offsets[row + 1]
            first, last = reference_offsets[text], reference_offsets[text + 1]
            head, tail = _shared_ends(ids, start, stop, reference_ids, first, last)
            start += head
            length = stop - tail - start
            blocks = (length + SHORT - 1) // SHORT
            for i in range(blocks * SHORT):
                words[i] = ids[start + i] if i < length else -1  # no word has this id
            for block in range(blocks):
                rows[block] = ~uint64(0)
            for j in range(first + head, last - tail):
                _take_in(words, blocks, reference_ids[j], rows)
            count = uint64(head + tail)
            for block in range(blocks):
                count += ones(~rows[block])
            longest[text] = count
