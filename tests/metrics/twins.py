"""Naive twins of the response metrics: the definitions in a few lines of plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dialeval.core.arrays import Floats

Vector = Floats
Grams = list[tuple[str, ...]]


def grams(words: Sequence[str], n: int) -> Grams:
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]


def unified(words: Iterable[str], known: set[str] | None) -> list[str]:
    return [word if known is None or word in known else "<unk>" for word in words]


def shares(texts: Iterable[str], n: int, known: set[str] | None) -> dict[tuple[str, ...], float]:
    counts = Counter(gram for text in texts for gram in grams(unified(text.split(), known), n))
    return {gram: count / counts.total() for gram, count in counts.items()}


def entropies(response: str, train: Sequence[str], n: int, known: set[str] | None) -> list[float]:
    """The bits of every n-gram of the response that the training text has."""
    p = shares(train, n, known)
    return [-math.log2(p[gram]) for gram in grams(unified(response.split(), known), n) if gram in p]


def divergences(
    reference: str, responses: Sequence[str], references: Sequence[str], n: int, known: set[str] | None
) -> list[float]:
    """log2(p / q) of every n-gram of the reference that both sides have."""
    p, q = shares(references, n, known), shares(responses, n, known)
    both = p.keys() & q.keys()
    whole_p, whole_q = sum(p[gram] for gram in both), sum(q[gram] for gram in both)
    plain, mapped = reference.split(), unified(reference.split(), known)
    asked = [(word,) for word in plain] if n == 1 else list(zip(plain, mapped[1:], strict=False))
    return [math.log2(p[gram] / whole_p / (q[gram] / whole_q)) for gram in asked if gram in both]


def cosine(a: Vector, b: Vector) -> float:
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / lengths) if lengths else math.nan


def known_vectors(text: str, known: set[str], vectors: Mapping[str, Vector]) -> list[tuple[str, Vector]]:
    size = len(next(iter(vectors.values())))
    return [(word, vectors.get(word, np.zeros(size))) for word in text.split() if word in known]


def average(
    text: str, known: set[str], vectors: Mapping[str, Vector], p: Mapping[tuple[str, ...], float]
) -> Vector | None:
    found = known_vectors(text, known, vectors)
    if not found:
        return None
    mean: Vector = np.mean([0.001 / (0.001 + p.get((word,), 0.0)) * vector for word, vector in found], axis=0)
    return mean


def extrema(text: str, known: set[str], vectors: Mapping[str, Vector]) -> Vector | None:
    found = [vector for _, vector in known_vectors(text, known, vectors)]
    if not found:
        return None
    return np.array([max(column, key=abs) for column in zip(*found, strict=True)])


def greedy(response: str, reference: str, known: set[str], vectors: Mapping[str, Vector]) -> float:
    def side(a: str, b: str) -> float:
        one, other = ([v for _, v in known_vectors(text, known, vectors) if v.any()] for text in (a, b))
        if not one or not other:
            return 0.0
        return sum(max(0.0, *(cosine(x, y) for y in other)) for x in one) / len(one)

    there, back = side(response, reference), side(reference, response)
    return (there + back) / 2 if there and back else math.nan
