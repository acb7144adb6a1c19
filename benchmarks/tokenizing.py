"""Tokenizing: ids of words, against `str.split` and a dict; the other tokenizers, against sacreBLEU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU

from benchmarks.measure import cpu_seconds
from benchmarks.texts import WORDS_PER_LINE, chinese_lines, lines, written_lines
from dialeval.core.arrays import Ids
from dialeval.core.columns import TextColumn
from dialeval.engine.folding import BATCH_ROWS
from dialeval.io.opening import split_lines
from dialeval.text.tokenizers import Tokenizer, tokenize
from dialeval.text.vocabulary import Vocabulary

ROWS = 1_000_000
SACRE_ROWS = 20_000
"""Lines for sacreBLEU."""


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
    column = split_lines(np.frombuffer(content, np.uint8))
    vocabulary = Vocabulary()
    starts = range(0, len(column), BATCH_ROWS)
    return [vocabulary.split(column.slice(start, start + BATCH_ROWS)).ids for start in starts]


def with_empty_memory(metric: Any) -> Any:
    """A metric of sacreBLEU whose tokenizer has met no text: it remembers lines, and each is new in an evaluation."""
    tokenizer = getattr(metric, "tokenizer", None)
    for part in (tokenizer, getattr(tokenizer, "_post_tokenizer", None)):
        if part is not None:
            call: Any = type(part).__call__
            call.cache_clear()
    return metric


def by_sacrebleu(texts: list[str], name: str) -> list[list[str]]:
    """The tokens."""
    metric = with_empty_memory(BLEU(tokenize=name))
    return [metric.tokenizer(text.rstrip()).split() for text in texts]


def compared(texts: list[str], name: Tokenizer, theirs: str) -> str:
    """How many times as many lines per CPU second as sacreBLEU, the ids of words included."""
    column = TextColumn.from_strings(texts)
    assert tokenize(column, Vocabulary(), name).words() == by_sacrebleu(texts, theirs)
    slow = cpu_seconds(lambda: by_sacrebleu(texts, theirs))
    fast = cpu_seconds(lambda: tokenize(column, Vocabulary(), name))
    return f"{len(texts) / fast:,.0f}, {slow / fast:.0f} times sacreBLEU"


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
    western, chinese = written_lines(SACRE_ROWS), chinese_lines(SACRE_ROWS)
    for name in ("13a", "intl", "char"):
        yield f"lines per CPU second, {name}", compared(western, name, name)
    yield "lines of Chinese per CPU second, zh", compared(chinese, "zh", "zh")
    yield "lines of Chinese per CPU second, char", compared(chinese, "char", "char")
    column = TextColumn.from_strings(western)
    fast = cpu_seconds(lambda: tokenize(column, Vocabulary(), "unicode"))
    yield "lines per CPU second, unicode", f"{SACRE_ROWS / fast:,.0f}"
