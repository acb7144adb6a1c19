"""Kernel: clipped n-gram matches of pairs of texts with few different tokens, such as characters.

The places at which a token occurs in a text are bits, in blocks of 64. The places at which the n-gram that ends in a
token occurs are the places of the token, and those of the n-gram before it, shifted by one: an n-gram costs as many
steps as its text has blocks. The j-th occurrence of an n-gram in the response counts where the reference has at least
j, which is the clipping of BLEU. An n-gram that the reference lacks it also lacks with one more token, so that a place
of the response costs one step more than its longest n-gram that the reference has.

Layout of texts as in `bleu_kernel`, with one reference for each response; scratch comes from the caller.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from dialeval.core.numba_kernel import njit
from dialeval.metrics.overlap.bleu_kernel import ones
from dialeval.metrics.overlap.chrf import BLOCK, BLOCKS

STRIDE = np.uint64(BLOCKS)
LAST = np.uint64(BLOCK - 1)


@njit()
def _numbered(ids, start, length, slots, owners, count, local):  # type: ignore[no-untyped-def]
    """Fill `local` with numbers of the tokens of a text, new ones from `count` on; gives the new count."""
    mask = slots.shape[0] - 1
    for i in range(length):
        token = ids[start + i]
        slot = int64(token) & mask
        while slots[slot] >= 0 and owners[slots[slot]] != token:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = count
            owners[count] = token
            count += 1
        local[i] = slots[slot]
    return count


@njit()
def _two_places(token, own, shorter, order, carry, longer):  # type: ignore[no-untyped-def]
    """Fill two blocks of `longer`; gives the number of places, and the last bit of the n-gram one token shorter."""
    low, high = own[token], own[token + uint64(1)]
    if order > 0:
        before = shorter[longer - STRIDE], shorter[longer - STRIDE + uint64(1)]
        low &= before[0] << uint64(1) | carry
        high &= before[1] << uint64(1) | before[0] >> LAST
        carry = before[1] >> LAST
    shorter[longer], shorter[longer + uint64(1)] = low, high
    return ones(low) + ones(high), carry


@njit()
def _places(token, own, grams, order, wide):  # type: ignore[no-untyped-def]
    """Make the places of the n-gram that ends in a token from those of the one before; gives their number.

    Two blocks, or four, written out: a loop over so few takes twice as long.
    """
    at = uint64(order) * STRIDE
    count, carry = _two_places(token, own, grams, order, uint64(0), at)
    if wide:
        more, _ = _two_places(token + uint64(2), own, grams, order, carry, at + uint64(2))
        count += more
    return count


@njit()
def _matched(here, length, wide, own, others, before, found, counts):  # type: ignore[no-untyped-def]
    """Add to `counts` the matches of a response by order; `own` gets the places of its tokens on the way."""
    depth = 0
    for i in range(length):
        token = uint64(here[i]) * STRIDE
        deepest = min(depth + 1, counts.shape[0])
        depth = 0
        # From the longest down: those one token shorter still are the ones that ended before.
        for order in range(deepest - 1, -1, -1):
            known = _places(token, others, found, order, wide)
            if known > 0:
                depth = max(depth, order + 1)
                if _places(token, own, before, order, wide) < known:
                    counts[order] += 1
        own[token + uint64(i // BLOCK)] |= uint64(1) << uint64(i % BLOCK)


@njit()
def match_pairs(ids, offsets, reference_ids, reference_offsets, scratch, matches, rest):  # type: ignore[no-untyped-def]
    """Fill `matches` of pairs, a column for each order; the numbers of pairs with a long text go into `rest`.

    Gives how many those are. Scratch: `slots` (a power of two, each -1) find the number of a token, `owners` is the
    token of each number, `here` and `there` hold the numbers of a text's tokens, `own` and `others` the places of each
    token, all 0, and `before` and `found` those of the n-grams that end at a place, by order.
    """
    slots, owners, here, there, own, others, before, found = scratch
    mask = slots.shape[0] - 1
    left = 0
    for pair in range(offsets.shape[0] - 1):
        start, first = offsets[pair], reference_offsets[pair]
        length, size = offsets[pair + 1] - start, reference_offsets[pair + 1] - first
        if length > here.shape[0] or size > there.shape[0]:
            rest[left] = pair
            left += 1
            continue
        matches[pair] = 0
        different = _numbered(ids, start, length, slots, owners, 0, here)
        different = _numbered(reference_ids, first, size, slots, owners, different, there)
        for j in range(size):
            others[BLOCKS * there[j] + j // BLOCK] |= uint64(1) << uint64(j % BLOCK)
        wide = max(length, size) > 2 * BLOCK
        _matched(here, length, wide, own, others, before, found, matches[pair])
        for number in range(different):
            for place in range(BLOCKS * number, BLOCKS * (number + 1)):
                own[place] = others[place] = 0
            slot = int64(owners[number]) & mask
            while slots[slot] != number:
                slot = (slot + 1) & mask
            slots[slot] = -1
    return left
