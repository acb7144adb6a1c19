"""The characters of texts, white space left out, as a token column: an id is a code point.

A character is a code point and no more: a letter and a combining accent are two, as in Python's strings.
"""

from __future__ import annotations

import numpy as np

from dialeval.core.arrays import Ids
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.kernels import Kernels
from dialeval.core.needs import Need
from dialeval.text.tokenise import lowered

_kernel = Kernels("dialeval.text.characters_kernel")


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
    _kernel.code_points(texts.data, texts.starts, texts.ends, ids, offsets)
    return TokenColumn(ids[: offsets[-1]], offsets, CodePoints())


def characters(batch: Batch, need: Need, lower: bool) -> TokenColumn:
    """The characters of a batch's texts, one text a row; computed once for all metrics of the batch."""
    texts = batch.values(need)
    return batch.derived(("characters", need, lower), lambda: characters_of(lowered(texts) if lower else texts))
