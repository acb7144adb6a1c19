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


def written_lines(count: int, seed: int = 0) -> list[str]:
    """The same lines as somebody would write them: commas, stops, numbers, quotes and an accent here and there."""
    dice = np.random.default_rng(seed)
    written = []
    for line in lines(count, seed):
        words = line.split()
        at, number = int(dice.integers(1, WORDS_PER_LINE)), int(dice.integers(1, 10_000))
        words[at] = ("{0},", '"{0}"', "{1:,}.50", "{0}'s", "{0}-{1}", "é{0}", "({0})")[int(dice.integers(7))].format(
            words[at], number
        )
        written.append(f"{' '.join(words).capitalize()}{'.?!'[int(dice.integers(3))]}")
    return written


def chinese_lines(count: int, seed: int = 0) -> list[str]:
    """Lines of about twenty Chinese characters with a comma and a stop, the first characters being the commonest."""
    dice = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 3001)
    drawn = dice.choice(3000, (count, 20), p=weights / weights.sum())
    made = []
    for row in drawn:
        text = "".join(chr(0x4E00 + int(index)) for index in row)
        made.append(f"{text[:9]}，{text[9:]}。")
    return made
