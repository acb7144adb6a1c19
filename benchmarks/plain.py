"""The 17 response metrics as one writes them first: dicts, word by word, a call of nltk for every BLEU.

The twin that the benchmark runs beside dialeval on the same files; its means must be equal.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from dialeval.core.arrays import Floats

WEIGHTS = {1: (1, 0, 0, 0), 2: (0.5, 0.5, 0, 0), 3: (0.33, 0.33, 0.33, 0), 4: (0.25, 0.25, 0.25, 0.25)}


class Plain:
    """Everything that is known before the responses."""

    def __init__(self, train: Sequence[str], listed: Iterable[str], vectors: dict[str, Floats]) -> None:
        self.vectors = vectors
        self.zero = np.zeros(len(next(iter(vectors.values()))))
        self.known = set(listed) | set(vectors)
        self.train = {n: self.shares(train, n) for n in (1, 2)}
        self.smooth = SmoothingFunction().method4

    def unified(self, text: str) -> list[str]:
        return [word if word in self.known else "<unk>" for word in text.split()]

    def shares(self, texts: Iterable[str], n: int) -> dict[tuple[str, ...], float]:
        counts: Counter[tuple[str, ...]] = Counter()
        for text in texts:
            words = self.unified(text)
            counts.update(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        total = sum(counts.values())
        return {gram: count / total for gram, count in counts.items()}

    def means(self, responses: Sequence[str], references: Sequence[str], contexts: Sequence[str]) -> dict[str, float]:
        """The mean of every metric."""
        ratios = {n: self.ratios(responses, references, n) for n in (1, 2)}
        found: dict[str, list[float]] = {}
        for response, reference, context in zip(responses, references, contexts, strict=True):
            for key, value in self.row(response, reference, context, ratios).items():
                if not math.isnan(value):
                    found.setdefault(key, []).append(value)
        means = {key: math.fsum(values) / len(values) for key, values in found.items()}
        for n in (1, 2):
            grams = [
                g for r in responses for w in [self.unified(r)] for g in zip(*(w[i:] for i in range(n)), strict=False)
            ]
            means[f"distinct-{n}"] = len(set(grams)) / len(grams)
        return means

    def ratios(self, responses: Sequence[str], references: Sequence[str], n: int) -> dict[tuple[str, ...], float]:
        p, q = self.shares(references, n), self.shares(responses, n)
        both = p.keys() & q.keys()
        left, right = math.fsum(p[gram] for gram in both), math.fsum(q[gram] for gram in both)
        return {gram: math.log2(p[gram] / left / (q[gram] / right)) for gram in both}

    def row(
        self, response: str, reference: str, context: str, ratios: dict[int, dict[tuple[str, ...], float]]
    ) -> dict[str, float]:
        words, target = response.split(), reference.split()
        row = {"length": float(len(words))}
        here, there = self.unified(response), self.unified(reference)
        for n, name in ((1, "unigram"), (2, "bigram")):
            grams = zip(*(here[i:] for i in range(n)), strict=False)
            bits = [-math.log2(self.train[n][gram]) for gram in grams if gram in self.train[n]]
            row[f"per-{name}-entropy"] = sum(bits) / len(bits) if bits else math.nan
            row[f"utterance-{name}-entropy"] = sum(bits) if bits else math.nan
            asked = [(word,) for word in target] if n == 1 else list(zip(target, there[1:], strict=False))
            bits = [ratios[n][gram] for gram in asked if gram in ratios[n]]
            row[f"{name}-kl-div"] = sum(bits) / len(bits) if bits else math.nan
            row |= {f"bleu-{m}": sentence_bleu([target], words, WEIGHTS[m], self.smooth) for m in (2 * n - 1, 2 * n)}
        averages = [self.average(text) for text in (words, target, context.split())]
        row["embedding-average"] = cosine(averages[0], averages[1])
        row["coherence"] = cosine(averages[0], averages[2])
        row["embedding-extrema"] = cosine(self.extrema(words), self.extrema(target))
        row["embedding-greedy"] = self.greedy(words, target)
        return row

    def of_words(self, words: Sequence[str]) -> list[Floats]:
        return [self.vectors.get(word, self.zero) for word in words if word in self.known]

    def average(self, words: Sequence[str]) -> Floats:
        known = [word for word in words if word in self.known]
        weighted = [0.001 / (0.001 + self.train[1].get((w,), 0)) * self.vectors.get(w, self.zero) for w in known]
        return np.sum(weighted, axis=0) / len(known) if known else self.zero

    def extrema(self, words: Sequence[str]) -> Floats:
        vectors = np.array(self.of_words(words) or [self.zero])
        return vectors[np.abs(vectors).argmax(axis=0), range(vectors.shape[1])]

    def greedy(self, words: Sequence[str], target: Sequence[str]) -> float:
        sides = [[vector for vector in self.of_words(side) if vector.any()] for side in (words, target)]
        if not all(sides):
            return math.nan
        values = []
        for one, other in (sides, sides[::-1]):
            best = [max(0.0, *(cosine(a, b) for b in other)) for a in one]
            values.append(sum(best) / len(best))
        return sum(values) / 2 if all(values) else math.nan


def cosine(a: Floats, b: Floats) -> float:
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / lengths) if lengths else math.nan
