"""Kernels over word vectors: a vector for a text, and the greedy matching of two texts.

Words come as ids. `known` says whether a word is in the vocabulary at all; `rows` gives its row in `matrix`, or -1 for
a known word without a vector, which stands for the zero vector. Sums may be reassociated by the compiler, always in the
same way for the same text, so that results do not depend on batches or threads.
"""

from __future__ import annotations

import numpy as np

from dialeval.core.kernels import kernel

_FREE_ORDER = {"reassoc", "contract"}
"""Lets a sum of products use vector instructions; nothing else of IEEE arithmetic is given up."""


@kernel(fastmath=_FREE_ORDER)
def weighted_means(ids, offsets, known, rows, weights, matrix, means, counted):  # type: ignore[no-untyped-def]
    """Fill `means` with the mean of weight * vector over the known words of each text, `counted` with their number."""
    size = matrix.shape[1]
    for text in range(means.shape[0]):
        words = 0
        for k in range(size):
            means[text, k] = 0.0
        for i in range(offsets[text], offsets[text + 1]):
            if known[ids[i]]:
                words += 1
                row = rows[ids[i]]
                if row >= 0:
                    weight = weights[ids[i]]
                    for k in range(size):
                        means[text, k] += weight * matrix[row, k]
        for k in range(size):
            means[text, k] /= max(words, 1)
        counted[text] = words


@kernel
def extrema(ids, offsets, known, rows, matrix, ends, counted):  # type: ignore[no-untyped-def]
    """Fill `ends` with the value of largest magnitude per dimension over the known words, the first of equal ones."""
    size = matrix.shape[1]
    for text in range(ends.shape[0]):
        words = 0
        for k in range(size):
            ends[text, k] = 0.0
        for i in range(offsets[text], offsets[text + 1]):
            if known[ids[i]]:
                words += 1
                row = rows[ids[i]]
                if row >= 0:
                    for k in range(size):
                        # The zero that stands there at first loses to everything but zero, so the first word wins ties.
                        if abs(matrix[row, k]) > abs(ends[text, k]):
                            ends[text, k] = matrix[row, k]
        counted[text] = words


@kernel
def sums_of_texts(vectors, counted, starts, ends, sums, words):  # type: ignore[no-untyped-def]
    """Fill `sums` with the sum of vector * words over the texts of each row, from first to last, `words` likewise.

    A row that continues the texts of the row before goes on with its sum: a chat takes as long as it has messages.
    """
    size = vectors.shape[1]
    for row in range(starts.shape[0]):
        start = starts[row]
        words[row] = 0
        for k in range(size):
            sums[row, k] = 0.0
        if row > 0 and starts[row - 1] == start and ends[row - 1] <= ends[row]:
            start = ends[row - 1]
            words[row] = words[row - 1]
            for k in range(size):
                sums[row, k] = sums[row - 1, k]
        for text in range(start, ends[row]):
            words[row] += counted[text]
            for k in range(size):
                sums[row, k] += vectors[text, k] * counted[text]


@kernel(fastmath=_FREE_ORDER)
def cosines(left, right, which, result):  # type: ignore[no-untyped-def]
    """Fill `result` with the cosine of `left[i]` and `right[which[i]]`; NaN where either is the zero vector."""
    for i in range(result.shape[0]):
        product = 0.0
        square = 0.0
        other = 0.0
        for k in range(left.shape[1]):
            a = left[i, k]
            b = right[which[i], k]
            product += a * b
            square += a * a
            other += b * b
        result[i] = product / (np.sqrt(square) * np.sqrt(other)) if square > 0.0 and other > 0.0 else np.nan


@kernel(fastmath=_FREE_ORDER)
def greedy(ids, offsets, owners, other_ids, other_offsets, rows, matrix, lengths, best, result):  # type: ignore[no-untyped-def]
    """Fill `result` with the greedy matching of text `owners[j]` and other text `j`, for every `j`.

    `lengths` are those of the vectors in `matrix`; a word whose vector is zero has no row. `best` is scratch, as long
    as the longest other text. NaN where a text has no word with a vector, or where one side matches nothing at all.
    """
    size = matrix.shape[1]
    for j in range(result.shape[0]):
        start = other_offsets[j]
        end = other_offsets[j + 1]
        words = 0
        others = 0
        for b in range(start, end):
            best[b - start] = 0.0
            if rows[other_ids[b]] >= 0:
                others += 1
        total = 0.0
        for a in range(offsets[owners[j]], offsets[owners[j] + 1]):
            row = rows[ids[a]]
            if row < 0:
                continue
            words += 1
            nearest = 0.0
            for b in range(start, end):
                other = rows[other_ids[b]]
                if other < 0:
                    continue
                product = 0.0
                for k in range(size):
                    product += matrix[row, k] * matrix[other, k]
                similarity = product / (lengths[row] * lengths[other])
                if similarity > nearest:
                    nearest = similarity
                if similarity > best[b - start]:
                    best[b - start] = similarity
            total += nearest
        back = 0.0
        for b in range(end - start):
            back += best[b]
        result[j] = (total / words + back / others) / 2.0 if total > 0.0 and back > 0.0 else np.nan
