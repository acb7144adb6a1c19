"""Partial ratio: how well the shorter of two texts fits into the longer, from 0 to 100.

    partial ratio = 100 * max over windows w of the longer text of ratio(shorter, w), rounded
    ratio(a, b)   = 2 * matching characters / (characters of a + characters of b)

`historical` looks only at the windows where a matching block of the edit script from one text to the other lines up,
as fuzzywuzzy does; it can miss the best window. `exact` looks at all of them. A ratio above 0.995 counts as 100.

Edge cases: equal texts have 100. An empty text has 0 with every other and with itself, as in the original: it is a slot
without a value, and matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Ratio = Literal["historical", "exact"]

NEARLY_EQUAL = 0.995
"""Above this a window counts as equal."""


def partial_ratio(one: str, other: str, ratio: Ratio = "historical") -> int:
    """The partial ratio of two texts."""
    if not one or not other:
        return 0
    if one == other:
        return 100
    return _historical(one, other) if ratio == "historical" else _exact(one, other)


def similar(text: str, others: Iterable[str], least: int, ratio: Ratio = "historical") -> list[str]:
    """Those of some texts whose partial ratio with a text is at least `least`."""
    from rapidfuzz import fuzz, process

    others = list(others)
    # The best window is at least as good as any other, so that the exact ratio rules most texts out at once.
    cutoff = max(least - 1, 0)
    found = process.extract(text, others, scorer=fuzz.partial_ratio, processor=None, limit=None, score_cutoff=cutoff)
    near = {other for other, *_ in found}
    return [other for other in others if other in near and partial_ratio(other, text, ratio) >= least]


def _historical(one: str, other: str) -> int:
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


def _exact(one: str, other: str) -> int:
    from rapidfuzz import fuzz

    return round(fuzz.partial_ratio(one, other))
