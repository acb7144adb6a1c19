"""Kernel: the characters of UTF-8 texts as code points, white space left out."""

from __future__ import annotations

from dialeval.core.numba_kernel import njit
from dialeval.text.words_kernel import space_width


@njit()
def code_points(data, starts, ends, ids, offsets):  # type: ignore[no-untyped-def]
    """Fill `ids` with the code points of the characters that are no white space, `offsets` with where each row ends."""
    count = 0
    for row in range(starts.shape[0]):
        i = starts[row]
        end = ends[row]
        while i < end:
            blank = space_width(data, i, end)
            if blank:
                i += blank
                continue
            first = data[i]
            width = 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4
            point = first & (0x7F if width == 1 else 0xFF >> (width + 1))
            for k in range(1, width):
                point = point << 6 | (data[i + k] & 0x3F)
            ids[count] = point
            count += 1
            i += width
        offsets[row + 1] = count
