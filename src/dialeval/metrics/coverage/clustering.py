"""Groups for references without groups: those that are similar enough are taken to mean the same.

Every reference is a group at first. The two most similar groups are joined, again and again, as long as their
similarity is at least the threshold:

    similarity of two references = (score(a, {b}) + score(b, {a})) / 2      by the aligner
    similarity of two groups     = mean over all pairs of a reference of one and a reference of the other

(agglomerative clustering with average linkage). Groups stand in the order of their first references, and so do the
references in each. Of equally similar pairs the first is joined: the result depends on nothing but the references.

The scale is the aligner's, and so is what counts as similar; NIST is not even bounded by 1. Look at the groups that
come out (the table of alignments shows them) before trusting a threshold. The default aligner gives short texts a high
score whatever is in them and should not be used for this.

Paper: Sokal and Michener 1958, "A Statistical Method for Evaluating Systematic Relationships".

Edge cases: references that cannot be compared (see `similarity`) are never joined. Equal texts may well be two groups
where the aligner does not call a text similar to itself.
"""

from __future__ import annotations

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.ragged import offsets_of
from dialeval.metrics.coverage.aligners import PairAligner
from dialeval.metrics.coverage.comparison import Comparison


def grouped(comparison: Comparison, aligner: PairAligner, threshold: float) -> Comparison:
    """The comparison with its references in groups of their own making, whatever groups they came in."""
    pairwise = comparison.among_references()
    order, sizes, counts = [], [], []
    for start, part in pairwise.parts():
        scores = aligner.scores(part)
        for query in range(part.queries):
            texts = int(part.lists[query + 1] - part.lists[query])
            square = scores[part.pairs[query] : part.pairs[query + 1]].reshape(texts, texts)
            found = clusters((square + square.T) / 2, threshold)
            base = start + int(part.lists[query])
            order += [base + text for cluster in found for text in cluster]
            sizes += [len(cluster) for cluster in found]
            counts.append(len(found))
    return comparison.regrouped(np.array(order, np.int64), offsets_of(sizes), offsets_of(counts))


def clusters(similarity: Floats, threshold: float) -> list[list[int]]:
    """The clusters of a symmetric matrix of similarities (NaN: not to be joined), each in ascending order."""
    size = len(similarity)
    members = [[text] for text in range(size)]
    # Row-major and only above the diagonal, so that the largest entry that is met first is that of the first pair.
    link = np.where(np.isnan(similarity), -np.inf, similarity)
    link[np.tril_indices(size)] = -np.inf
    counts: Ints = np.ones(size, np.int64)
    for _ in range(size - 1):
        left, right = divmod(int(link.argmax()), size)
        if not link[left, right] >= threshold:
            break
        joined = (counts[left] * _row(link, left) + counts[right] * _row(link, right)) / (counts[left] + counts[right])
        joined[[left, right]] = -np.inf
        link[left, left + 1 :], link[:left, left] = joined[left + 1 :], joined[:left]
        link[right], link[:, right] = -np.inf, -np.inf
        counts[left] += counts[right]
        members[left] += members[right]
        members[right] = []
    return [sorted(cluster) for cluster in members if cluster]


def _row(link: Floats, group: int) -> Floats:
    """The similarities of a group with all, out of the half of the matrix that is kept."""
    return np.concatenate((link[:group, group], link[group, group:]))
