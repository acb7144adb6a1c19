"""Kernels' way to look at many bytes at once: machine instructions that numba has no name for."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@intrinsic
def load8(_context, array, _index):  # type: ignore[no-untyped-def]
    """Eight bytes at any position as one little-endian integer; numba has no unaligned load of its own."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(array, types.int64), generate


@intrinsic
def trailing_zeros(_context, _value):  # type: ignore[no-untyped-def]
    """Number of zero bits below the lowest set bit of a non-zero integer."""

    def generate(_context, builder, _signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate
