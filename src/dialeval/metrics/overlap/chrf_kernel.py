"""Kernel: clipped n-gram matches of pairs of texts in characters.

The places at which a character occurs in the shorter text are bits, in blocks of 64. The places at which the n-gram
that ends in a character of the longer text occurs are the places of the character, and those of the n-gram before it,
shifted by one. Of these the first that is not taken yet is taken. An n-gram so takes as many places as the text with
fewer of it has, which is the clipping of BLEU, and different n-grams have different places: the matches of an order are
the places that are taken in the end.

All orders take the same steps. They lie side by side in a vector (`Orders`), so that a character of the longer text
costs about ten instructions for each block, whatever the texts have in common.

Layout of texts as in `bleu_kernel`, with one reference for each response; scratch comes from the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic, models, register_model

from dialeval.core.numba_kernel import njit
from dialeval.metrics.overlap.chrf import BLOCK, BLOCKS, ORDERS

_STRIDE, _WIDTH = np.uint64(BLOCKS), np.uint64(BLOCK)
_NUMBER = ir.IntType(64)
_VECTOR = ir.VectorType(_NUMBER, ORDERS)
_NOTHING = ir.Constant(_VECTOR, ir.Undefined)


class Orders(types.Type):  # type: ignore[misc]
    """A block of places for each order, in one register or a few of any processor with vectors."""

    def __init__(self) -> None:
        super().__init__("Orders")


@register_model(Orders)
class _OrdersModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager, kind):  # type: ignore[no-untyped-def]
        super().__init__(manager, kind, _VECTOR)


def _in_all(number: int) -> Any:
    """A constant for each order."""
    return ir.Constant(_VECTOR, [number] * ORDERS)


def _picked(builder: Any, left: Any, right: Any, lanes: Sequence[int]) -> Any:
    """The lanes with these numbers of two vectors, those of the right one after those of the left."""
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(ir.IntType(32), ORDERS), list(lanes)))


@intrinsic
def no_places(_context):  # type: ignore[no-untyped-def]
    """Not a place for any order."""

    def generate(_context, _builder, _signature, _args):  # type: ignore[no-untyped-def]
        return _in_all(0)

    return Orders()(), generate


@intrinsic
def next_places(_context, places, taken, table, index):  # type: ignore[no-untyped-def]
    """Go on by a character, whose own places are in `table` from `index` on, a number for each block.

    `places` are those of the n-grams that end in the character before, `taken` those that are taken, of all blocks
    each. Gives both as they are after the character.
    """

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[2])(context, builder, args[2]).data
        after, used = [], []
        carry = free_below = _in_all(0)
        for block in range(len(places)):
            number = builder.load(builder.gep(data, [builder.add(args[3], ir.Constant(_NUMBER, block))]))
            own = builder.insert_element(_NOTHING, number, ir.Constant(ir.IntType(32), 0))
            own = _picked(builder, own, _NOTHING, [0] * ORDERS)
            before = builder.extract_value(args[0], block)
            shifted = builder.or_(builder.shl(before, _in_all(1)), carry)
            carry = builder.lshr(before, _in_all(BLOCK - 1))
            # An order goes on from the one below it, and the first one from nothing.
            here = builder.and_(own, _picked(builder, shifted, own, [ORDERS, *range(ORDERS - 1)]))
            old = builder.extract_value(args[1], block)
            free = builder.and_(here, builder.not_(old))
            first = builder.and_(free, builder.neg(free))
            none_below = builder.icmp_unsigned("==", free_below, _in_all(0))
            free_below = builder.or_(free_below, free)
            after.append(here)
            used.append(builder.or_(old, builder.select(none_below, first, _in_all(0))))
        both = [context.make_tuple(builder, kind, each) for kind, each in ((places, after), (taken, used))]
        return context.make_tuple(builder, signature.return_type, both)

    return types.Tuple((places, taken))(places, taken, table, index), generate


@intrinsic
def number_of(_context, places, _order):  # type: ignore[no-untyped-def]
    """How many places an order has in all blocks."""

    def generate(_context, builder, _signature, args):  # type: ignore[no-untyped-def]
        total = ir.Constant(_NUMBER, 0)
        for block in range(len(places)):
            bits = builder.extract_element(builder.extract_value(args[0], block), args[1])
            total = builder.add(total, builder.ctpop(bits))
        return total

    return types.int64(places, types.int64), generate


@njit()
def _match(ids, start, end, table, none, counts):  # type: ignore[no-untyped-def]
    """Fill `counts` with the matches of the longer text; `none` has as many blocks as the shorter one needs."""
    places = taken = none
    for i in range(start, end):
        places, taken = next_places(places, taken, table, uint64(ids[i]) * _STRIDE)
    for order in range(counts.shape[0]):
        counts[order] = number_of(taken, order)


@njit()
def match_pairs(ids, offsets, reference_ids, reference_offsets, table, matches, rest):  # type: ignore[no-untyped-def]
    """Fill `matches` of pairs, a column for each order; the numbers of pairs of two long texts go into `rest`.

    Gives how many those are. Scratch: `table` has `BLOCKS` numbers for each id, all 0.
    """
    none = no_places()
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
        # Written out: blocks in a loop would not stay in registers.
        if blocks <= 1:
            _match(longer, start, end, table, (none,), matches[pair])
        elif blocks == 2:
            _match(longer, start, end, table, (none, none), matches[pair])
        else:
            _match(longer, start, end, table, (none, none, none, none), matches[pair])
        for place in range(size):
            for block in range(blocks):
                table[uint64(shorter[begin + place]) * _STRIDE + block] = 0
    return left
