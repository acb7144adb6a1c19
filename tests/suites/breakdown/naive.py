"""The reference rule and the distances in plain Python."""

from __future__ import annotations

import math

GROUPS = {"o-t-x": [[0], [1], [2]], "o-tx": [[0], [1, 2]], "ot-x": [[0, 1], [2]]}


def references(counts: tuple[int, int, int], threshold: float) -> tuple[int, int]:
    """Codes of the reference and of the lenient one."""
    o, t, x = (count / sum(counts) for count in counts)
    best = max((o, t, x))
    hard = 0 if best < threshold else (o, t, x).index(best)
    lenient = 2 if o < t + x and t + x >= threshold else 0
    return hard, lenient


def divergence(p: list[float], q: list[float]) -> float:
    return sum(a * math.log2(a / b) for a, b in zip(p, q, strict=True) if a)


def distance(measure: str, p: list[float], q: list[float]) -> float:
    if measure == "mse":
        return sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) / len(p)
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return (divergence(p, middle) + divergence(q, middle)) / 2
