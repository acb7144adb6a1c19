"""Tokenising: ids of words, against `str.split` and a dict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measure import cpu_seconds
from benchmarks.texts import WORDS_PER_LINE, lines
from dialeval.core.arrays import Ids
from dialeval.data.formats.lines import split
from dialeval.engine.folding import BATCH_ROWS
from dialeval.text.vocabulary import Vocabulary

ROWS = 1_000_000


def naive(texts: list[str]) -> tuple[list[int], list[int]]:
    """What everybody writes first."""
    vocabulary: dict[str, int] = {}
    ids: list[int] = []
    offsets = [0]
    for text in texts:
        ids.extend([vocabulary.setdefault(word, len(vocabulary)) for word in text.split()])
        offsets.append(len(ids))
    return ids, offsets


def ours(content: bytes) -> list[Ids]:
    """The way of the engine: the bytes of a file, batch by batch, one thread."""
    column = split(np.frombuffer(content, np.uint8))
    vocabulary = Vocabulary()
    starts = range(0, len(column), BATCH_ROWS)
    return [vocabulary.split(column.slice(start, start + BATCH_ROWS)).ids for start in starts]


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    texts = lines(ROWS)
    content = ("\n".join(texts) + "\n").encode()
    assert np.concatenate(ours(content)).tolist() == naive(texts)[0]
    slow, fast = cpu_seconds(lambda: naive(texts)), cpu_seconds(lambda: ours(content))
    words = ROWS * WORDS_PER_LINE
    yield "words per CPU second, `str.split` and a dict", f"{words / slow / 1e6:.1f} million"
    yield "words per CPU second, dialeval (lines found, words split, ids equal)", f"{words / fast / 1e6:.1f} million"
    yield "ratio", f"{slow / fast:.1f} times"
