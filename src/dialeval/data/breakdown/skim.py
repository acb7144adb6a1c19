"""Skimming a folder of annotated dialogues: each file is read into one buffer and passed to the kernel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from dialeval.core.kernels import Kernels
from dialeval.data.breakdown.files import Document, Files
from dialeval.data.breakdown.logs import Gathered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dialeval.core.arrays import Ints

_kernel = Kernels("dialeval.data.breakdown.breakdown_kernel")

PADDING = 16
"""Zeros behind the data, for a kernel that looks at several bytes at once."""
_BUFFER = 1 << 20
_MOST_TURNS = 1 << 12
"""A dialogue with more bytes or more turns than these is parsed; the challenge's have 70,000 bytes and 21 turns."""
_ROOM = 1 << 16
"""Turns that are kept before they are copied to where they stay."""


def skim_folder(folder: Files, gathered: Gathered) -> Iterator[Document]:
    """Add every document of a folder, in the order of names; those that have to be parsed are handed out instead."""
    buffer = memoryview(bytearray(_BUFFER + PADDING))
    data, view = np.frombuffer(buffer, np.uint8), buffer[:_BUFFER]
    turns, counts = np.zeros((_ROOM, 2), np.int64), np.zeros((_ROOM, 4), np.int64)
    found = np.zeros(4, np.int64)
    used = 0
    for name in sorted(folder.names):
        place = f"{folder.where}/{name}"
        size = _fill(place, view)
        data[size : size + PADDING] = 0
        if used > _ROOM - _MOST_TURNS:
            used = _flush(gathered, turns, counts, used)
        if size < _BUFFER and _kernel.skim(data, size, turns, counts, used, found):
            start, end, number, _ = found.tolist()
            gathered.places.append((place, None))
            gathered.dialogues.append(str(view[start:end], "utf-8"))
            gathered.sizes.append(number)
            used += number
        else:
            used = _flush(gathered, turns, counts, used)
            yield folder.document(name)
    _flush(gathered, turns, counts, used)


def _flush(gathered: Gathered, turns: Ints, counts: Ints, used: int) -> int:
    """Copy the turns to where they stay; 0, the number of those that are still to be copied."""
    if used:
        gathered.turns += turns[:used, 0].tolist()
        gathered.count()
        gathered.counts.append(counts[:used].astype(np.float64))
    return 0


def _fill(place: str, buffer: memoryview) -> int:
    """Read the start of a file into a buffer; 0 where it cannot be read.

    Whatever is missing, the kernel takes no half document; the file is then read again, and reading says what is wrong.
    """
    try:
        file = os.open(place, os.O_RDONLY)
    except OSError:
        return 0
    try:
        return os.readv(file, [buffer])
    except OSError:
        return 0
    finally:
        os.close(file)
