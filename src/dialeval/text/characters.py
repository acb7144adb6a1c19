"""The characters of texts, white space left out, as a token column: an id is a code point.

A character is a code point and no more: a letter and a combining accent are two, as in Python's strings.

Kernel: the characters of UTF-8 texts as code points, white space left out.
"""

from __future__ import annotations

import numpy as np
from numpy import int64, uint64

from dialeval.core.arrays import Ids
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.kernels import kernel
from dialeval.core.needs import Need
from dialeval.text.tokenise import lowered
from dialeval.text.vocabulary import space_width

_BLANKS = np.uint64(sum(1 << blank for blank in (*range(0x09, 0x0E), *range(0x1C, 0x21))))
"""Bit b is set where the byte b is white space; from 64 on none is."""


@kernel
def code_points(data, starts, ends, ids, offsets):  # type: ignore[no-untyped-def]
    """Fill `ids` with the code points of the characters that are no white space, `offsets` with where each row ends."""
    # Unsigned, for an index that could be negative is checked for that.
    count, one = uint64(0), uint64(1)
    for row in range(starts.shape[0]):
        i = uint64(starts[row])
        end = uint64(ends[row])
        while i < end:
            first = data[i]
            if first < 0x80:
                # A blank is written too, and the next character over it: which bytes are blank cannot be foretold, and
                # a branch that was taken wrongly costs more.
                ids[count] = first
                count += one - (_BLANKS >> uint64(first & 0x3F) & uint64(first < 0x40))
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
        """The characters behind ids."""
        return list(map(chr, ids.tolist()))


def characters_of(texts: TextColumn) -> TokenColumn:
    """The characters of each text that are no white space."""
    ids = np.empty(int((texts.ends - texts.starts).sum()), np.int32)
    offsets = np.zeros(len(texts) + 1, np.int64)
    code_points(texts.data, texts.starts, texts.ends, ids, offsets)
    return TokenColumn(ids[: offsets[-1]], offsets, CodePoints())


def characters(batch: Batch, need: Need, lower: bool) -> TokenColumn:
    """The characters of a batch's texts, one text a row; computed once for all metrics of the batch."""
    texts = batch.values(need)
    return batch.derived(("characters", need, lower), lambda: characters_of(lowered(texts) if lower else texts))
