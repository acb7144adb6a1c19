"""Partial ratio: how well the shorter of two texts fits into the longer; token sort ratio: how alike texts are.

Both are whole numbers from 0 to 100, and those of fuzzywuzzy.

    partial ratio = 100 * max over windows w of the longer text of ratio(shorter, w), rounded
    ratio(a, b)   = 2 * matching characters / (characters of a + characters of b)

`historical` looks only at the windows where a matching block of the edit script from one text to the other lines up,
as fuzzywuzzy does; it can miss the best window. `exact` looks at all of them. A ratio above 0.995 counts as 100.

    token sort ratio = 100 * ratio(words of a in sorted order, words of b in sorted order), rounded

with words in lower case, of letters, digits and "_"; other characters separate words, but U+0080 to U+00FF are taken
out first. `blocks` counts as matching the longest common block, and then what matches to its left and to its right: the
matcher of Python, which fuzzywuzzy uses by itself. `edits` counts the longest common subsequence, as fuzzywuzzy does
where python-Levenshtein is installed too. The first depends on which text is which, and on 200 characters or more it
leaves out frequent ones.

Edge cases: equal texts have 100, two empty ones too; an empty text has the partial ratio 0 with every other. The token
sort ratio of two texts without a word is 100, and that of one without a word with another 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Literal

Ratio = Literal["historical", "exact"]
Matching = Literal["blocks", "edits"]

NEARLY_EQUAL = 0.995
"""Above this a window counts as equal."""

_NO_WORD = re.compile(r"\W")
_TAKEN_OUT = dict.fromkeys(range(0x80, 0x100))


def partial_ratio(one: str, other: str, ratio: Ratio = "historical") -> int:
    """Return the partial ratio of two texts."""
    if one == other:
        return 100
    if not one or not other:
        return 0
    if ratio == "historical":
        return _historical_ratio(one, other)
    from rapidfuzz import fuzz

    return round(fuzz.partial_ratio(one, other))


def find_similar(text: str, others: Iterable[str], least: int, ratio: Ratio = "historical") -> list[str]:
    """Return the texts whose partial ratio with a text is at least `least`."""
    from rapidfuzz import fuzz, process

    others = list(others)
    # The best window is at least as good as any other, so that the exact ratio rules most texts out at once.
    cutoff = max(least - 1, 0)
    matches = process.extract(text, others, scorer=fuzz.partial_ratio, processor=None, limit=None, score_cutoff=cutoff)
    near = {other for other, *_ in matches}
    return [other for other in others if other in near and partial_ratio(other, text, ratio) >= least]


def _historical_ratio(one: str, other: str) -> int:
    from rapidfuzz.distance import Indel, Levenshtein

    shorter, longer = (one, other) if len(one) <= len(other) else (other, one)
    best = 0.0
    for block in Levenshtein.editops(shorter, longer).as_matching_blocks():
        start = max(block.b - block.a, 0)
        window = Indel.normalized_similarity(shorter, longer[start : start + len(shorter)])
        if window > NEARLY_EQUAL:
            return 100
        best = max(best, window)
    return round(100 * best)


def token_sort_ratio(one: str, other: str, matching: Matching = "blocks") -> int:
    """Return the token sort ratio of two texts."""
    if one == other:
        return 100
    one, other = _sort_words(one), _sort_words(other)
    if one == other:
        return 100
    if matching == "blocks":
        return round(100 * SequenceMatcher(None, one, other).ratio())
    from rapidfuzz.distance import Indel

    characters = len(one) + len(other)
    # Not Indel.normalized_similarity: 1 - distance / characters is rounded twice, and half of a percent may be lost.
    return round(100 * ((characters - Indel.distance(one, other)) / characters))


def _sort_words(text: str) -> str:
    return " ".join(sorted(_NO_WORD.sub(" ", text.translate(_TAKEN_OUT)).lower().split()))
