"""The reference rule in plain Python."""

from __future__ import annotations


def references(counts: tuple[int, int, int], threshold: float) -> tuple[int, int]:
    """Codes of the reference and of the lenient one."""
    o, t, x = (count / sum(counts) for count in counts)
    best = max((o, t, x))
    hard = 0 if best < threshold else (o, t, x).index(best)
    lenient = 2 if o < t + x and t + x >= threshold else 0
    return hard, lenient
