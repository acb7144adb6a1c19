"""How similar a hypothesis is to a group of references: one score for every pair of a comparison.

`bleu_pairs` counts what every BLEU is made of; from the counts of a pair

- `add_one_scores`: the geometric mean over the orders up to n of (matches + 1) / (n-grams + 1), without a brevity
  penalty: the Multi-BLEU of the LSDSCC program. An empty hypothesis has 1.0, a wrong word 0.84;
- `nltk_scores`: `sentence_bleu` of nltk with equal weights and a smoothing method (see `overlap.smoothing`);
- `sacre_scores`: sentence BLEU of sacreBLEU, effective order and brevity penalty (see `overlap.smoothing`).

`nist_scores` is `sentence_nist` of nltk:

    NIST = penalty * sum over orders i <= n of max over references of
           (sum over shared i-grams g of info(g) * min(count in hypothesis, count in reference)) / i-grams of hypothesis
    info(w1 .. wi) = log2(count of w1 .. w(i-1) in the group / count of w1 .. wi in the group)
    penalty = exp(log(0.5) / log(1.5)**2 * log(min(1, hypothesis words / words of the chosen references))**2)

where the best reference is chosen for every order, the longer one of equally good ones.

`cosine_scores`: the largest cosine of the averages of word vectors of hypothesis and reference, as `embedding-average`.

Papers: Madnani et al. 2008, "Are Multiple Reference Translations Necessary?", AMTA; Doddington 2002, "Automatic
Evaluation of Machine Translation Quality Using N-gram Co-Occurrence Statistics", HLT.

Edge cases: a group without references is NaN everywhere. NIST is NaN for a hypothesis of fewer than n words and for a
group of empty references; nltk divides by zero there. A text without a known word has no cosine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats, Ints
from dialeval.core.ragged import offsets_of, ranges
from dialeval.metrics.coverage import coverage_kernel as _coverage_kernel
from dialeval.metrics.coverage import nist_kernel as _nist_kernel
from dialeval.metrics.coverage.comparison import Comparison
from dialeval.metrics.embedding.vectors import WordValues
from dialeval.metrics.overlap.bleu_counts import ORDERS, BleuCounts, match_long, match_short
from dialeval.metrics.overlap.smoothing import NIST, log_precisions, sacre_bleu, smoothed_precisions

MOST_ORDERS = 100
"""The longest n-grams that can be counted: counts take room for every order, and few responses have as many words."""


def bleu_pairs(comparison: Comparison, n: int) -> BleuCounts:
    """The BLEU counts of every pair, for all orders up to n, and at least for those that smoothing looks at."""
    matches = np.empty((int(comparison.pairs[-1]), max(n, ORDERS)), np.int64)
    closest, long = match_short(_flat(comparison), matches)
    if n > ORDERS:  # the kernel for short texts has a byte for each of its orders and no room for more
        long = np.arange(len(matches))
    if len(long):
        _match_long(comparison, long, matches)
    lengths = comparison.hypotheses.lengths[comparison.pair_hypotheses]
    totals = np.maximum(lengths[:, None] - np.arange(matches.shape[1]), 0)
    return BleuCounts(matches, totals, lengths, closest)


def _flat(comparison: Comparison) -> tuple[npt.NDArray[np.integer], ...]:
    """The arrays of a comparison in the order in which kernels take them."""
    left, right = comparison.hypotheses, comparison.references
    texts = (left.ids, left.offsets, comparison.lists, right.ids, right.offsets)
    return (*texts, comparison.groups, comparison.group_lists)


def _match_long(comparison: Comparison, pairs: Ints, matches: Ints) -> None:
    """Fill `matches` of some pairs by the kernel for texts of any length."""
    groups = comparison.pair_groups[pairs]
    counts = np.diff(comparison.groups)[groups]
    texts = ranges(comparison.groups[groups], counts)
    hypotheses = comparison.hypotheses.take(comparison.pair_hypotheses[pairs])
    counted = np.empty((len(pairs), matches.shape[1]), np.int64, order="F")
    match_long(np.arange(len(pairs)), hypotheses, comparison.references.take(texts), offsets_of(counts), counted)
    matches[pairs] = counted


def add_one_scores(comparison: Comparison, n: int) -> Floats:
    """BLEU with one added to every count, of every pair."""
    counts = bleu_pairs(comparison, n)
    scores = np.empty(len(counts))
    lengths = comparison.hypotheses.lengths
    _coverage_kernel.add_one(counts.matches, lengths, comparison.group_counts, counts.reference_lengths, n, scores)
    return scores


def nltk_scores(comparison: Comparison, method: int, n: int) -> Floats:
    """BLEU as nltk defines it, of every pair."""
    counts = bleu_pairs(comparison, n)
    smoothed = smoothed_precisions(counts, method, n)
    scores, (terms, partials) = np.empty(len(counts)), np.empty((2, n + 1))
    lengths, pairs = comparison.hypotheses.lengths, comparison.group_counts
    _coverage_kernel.weighted(
        smoothed, counts.matches, lengths, pairs, counts.reference_lengths, terms, partials, scores
    )
    return scores


def sacre_scores(comparison: Comparison, n: int) -> Floats:
    """BLEU as sacreBLEU defines it, of every pair."""
    counts = bleu_pairs(comparison, n)
    return sacre_bleu(counts, log_precisions(counts, NIST, n), n)


def nist_scores(comparison: Comparison, n: int) -> Floats:
    """NIST of every pair."""
    words = int(np.diff(comparison.references.offsets[comparison.groups]).max(initial=0))
    longest = int(comparison.hypotheses.lengths.max(initial=0))
    slots = 1 << max(1, (2 * n * words).bit_length())
    table = tuple(np.empty((2, slots), np.int64))
    counts, weights = tuple(np.empty((4, n * words + 1), np.int64)), np.empty(n * words + 1)
    scores = np.empty(int(comparison.pairs[-1]))
    grams, own = np.empty((n, words), np.int64), np.empty((n, longest), np.int64)
    _nist_kernel.nist(_flat(comparison), n, table, counts, weights, grams, own, scores)
    return scores


def cosine_scores(comparison: Comparison, values: WordValues) -> Floats:
    """The largest cosine of hypothesis and reference, of every pair."""
    left, right = (_units(values.averages(texts).vectors) for texts in (comparison.hypotheses, comparison.references))
    scores = np.empty(int(comparison.pairs[-1]))
    _coverage_kernel.cosines(left, comparison.lists, right, comparison.groups, comparison.group_lists, scores)
    return scores


def _units(vectors: Floats) -> Floats:
    """The vectors with length 1; a zero vector stays as it is."""
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    units: Floats = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return units
