"""Made-up text for benchmarks: words whose frequencies fall as in real text, the same on every machine."""

from __future__ import annotations

import numpy as np

VOCABULARY = 30_000
WORDS_PER_LINE = 12


def lines(count: int, seed: int = 0) -> list[str]:
    """Lines of twelve words, the k-th most frequent word being met about 1/k as often as the first."""
    letters, spell = np.array(list("etaoinshrdlucmfwypvbgkjqxz")), np.random.default_rng(0)
    lengths = np.clip(spell.normal(5, 2.5, VOCABULARY).astype(int), 1, None)
    words = ["".join(spell.choice(letters, length)) for length in lengths]
    weights = 1 / np.arange(1, VOCABULARY + 1)
    drawn = np.random.default_rng(seed).choice(VOCABULARY, (count, WORDS_PER_LINE), p=weights / weights.sum())
    return [" ".join([words[index] for index in row]) for row in drawn]
