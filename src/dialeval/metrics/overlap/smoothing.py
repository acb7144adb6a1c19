"""BLEU from counts: smoothed precisions, brevity penalty, and their product, for all rows at once.

    BLEU = BP * exp(sum over n of w_n * log p_n),   BP = exp(min(0, 1 - reference length / response length))

p_n = matches / max(1, n-grams) is 0 for most short responses at n = 3 or 4, so it is smoothed. The methods are those of
the paper, numbered as in `nltk.translate.bleu_score.SmoothingFunction` (3.9 and 3.10; older versions differ in 2, 4
and 7), with m matches among l n-grams of a response of L words, and z the number of orders up to n without a match:

- 0: none; the smallest normal float stands for 0;
- 1: (m + 0.1) / l where m = 0;
- 2: (m + 1) / (l + 1) for n > 1;
- 3: 1 / (2**z l) where m = 0 (NIST; `exp` in sacreBLEU);
- 4: log(L) / (5 * 2**z l) where m = 0 and L > 1;
- 5: p'_n = (p'_{n-1} + p_n + p_{n+1}) / 3 with p'_0 = p_1 + 1; nltk takes p_5 after the last order, whichever that is;
- 6: (m + 5 p'_{n-1}**2 / p'_{n-2}) / (l + 5) for n > 2;
- 7: method 5 upon the precisions of method 4.

Paper: Chen and Cherry 2014, "A Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU", WMT.

Edge cases: without a common word the score is 0 under every method, and so is that of an empty response. A precision
that is still 0 is left out of the sum (a one-word response under method 4 scores its unigram). Methods 5 and 7 may
exceed 1. Method 6 cannot score a row with a common word and no common trigram, nor fewer than three orders: NaN where
nltk raises an error. A row without a reference is NaN.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.metrics.overlap.bleu_counts import NO_REFERENCE, BleuCounts

Method = Literal[0, 1, 2, 3, 4, 5, 6, 7]
"""The number of a smoothing method."""

ORDERS = 4
"""Orders that are smoothed together, also where the higher ones then have no weight."""

EPSILON = 0.1
ALPHA = 5
K = 5
"""Constants of methods 1, 6 and 4, as in the paper."""

SMALLEST = sys.float_info.min
"""Stands for a precision of 0 under method 0, so that it has a logarithm."""

NIST: Method = 3
"""The method that sacreBLEU uses too."""


def smoothed_precisions(counts: BleuCounts, method: int, orders: int = ORDERS) -> Floats:
    """The precisions of the first orders under a smoothing method, one row each.

    `orders` matters to methods 5, 6 and 7 beyond the orders it leaves out: it is the number of weights given to nltk.
    """
    matches = counts.matches[:, :orders]
    ngrams = np.maximum(counts.totals[:, :orders], 1).astype(np.float64)
    smoothed: Floats
    if method == 0:
        smoothed = np.maximum(matches / ngrams, SMALLEST)
    elif method == 1:
        smoothed = np.where(matches == 0, EPSILON, matches) / ngrams
    elif method == 2:
        more = np.minimum(np.arange(orders), 1)
        smoothed = (matches + more) / (ngrams + more)
    elif method == 5:
        smoothed = _with_neighbours(counts, matches / ngrams)
    elif method == 6:
        smoothed = _with_prior(counts, matches / ngrams)
    else:
        halved = np.where(matches == 0, np.exp2(-np.cumsum(matches == 0, axis=1)), matches)
        if method == NIST:
            return halved / ngrams
        scale = np.log(np.maximum(counts.response_lengths, 1)) / K  # 0 for one word: the precision stays 0
        smoothed = halved * np.where(matches == 0, scale[:, None], 1.0) / ngrams
        smoothed = _with_neighbours(counts, smoothed) if method == 7 else smoothed
    return smoothed


def log_precisions(counts: BleuCounts, method: int, orders: int = ORDERS) -> Floats:
    """Logarithms of the smoothed precisions of the first orders, one row each; 0 for a precision of 0."""
    smoothed = smoothed_precisions(counts, method, orders)
    logs: Floats = np.log(np.where(smoothed == 0, 1.0, smoothed))
    return logs


def weighted_bleu(counts: BleuCounts, logs: Floats, weights: Sequence[float]) -> Floats:
    """BLEU as nltk defines it, from the logarithms of precisions and a weight for each of the first orders."""
    exponent = np.zeros(len(counts))
    for order, weight in enumerate(weights):
        exponent += weight * logs[:, order]
    return _finished(counts, exponent)


def sacre_bleu(counts: BleuCounts, logs: Floats, n: int) -> Floats:
    """BLEU of sentences as sacreBLEU defines it, from the logarithms of NIST precisions.

    The mean goes over the orders of which the response has an n-gram (sacreBLEU's effective order). From 0 to 1.
    """
    has_ngrams = counts.totals[:, :n] > 0
    exponent = np.where(has_ngrams, logs[:, :n], 0.0).sum(axis=1) / np.maximum(has_ngrams.sum(axis=1), 1)
    return _finished(counts, exponent)


def corpus_bleu(*counts: float) -> float:
    """BLEU of a corpus as sacreBLEU defines it, from 0 to 100, with NIST smoothing.

    Takes matches by order, n-grams by order, words of the responses, words of the closest references.
    """
    orders = (len(counts) - 2) // 2
    matches, totals, (length, reference_length) = counts[:orders], counts[orders : 2 * orders], counts[2 * orders :]
    if not any(matches) or not all(totals):
        return 0.0
    halved, logs = 1.0, []
    for matched, total in zip(matches, totals, strict=True):
        halved *= 1 if matched else 2
        logs.append(math.log(100 * matched / total if matched else 100 / (halved * total)))
    penalty = min(0.0, 1 - reference_length / length)
    return math.exp(penalty) * math.exp(sum(logs) / orders)


def _finished(counts: BleuCounts, exponent: Floats) -> Floats:
    ratio = counts.reference_lengths / np.maximum(counts.response_lengths, 1)
    scores: Floats = np.exp(exponent + np.minimum(1 - ratio, 0))
    scores[counts.matches[:, 0] == 0] = 0
    scores[counts.reference_lengths == NO_REFERENCE] = np.nan
    return scores


def _with_neighbours(counts: BleuCounts, precisions: Floats) -> Floats:
    """Method 5 upon some precisions."""
    next_order = slice(ORDERS, ORDERS + 1)
    fifth = counts.matches[:, next_order] / np.maximum(counts.totals[:, next_order], 1)
    following = np.hstack((precisions[:, 1:], fifth))
    smoothed = np.empty_like(precisions)
    before = precisions[:, 0] + 1
    for order in range(precisions.shape[1]):
        before = (before + precisions[:, order] + following[:, order]) / 3
        smoothed[:, order] = before
    return smoothed


def _with_prior(counts: BleuCounts, precisions: Floats) -> Floats:
    """Method 6."""
    orders = precisions.shape[1]
    # NaN before the arithmetic: what is left has a match of the first three orders, so that no divisor is 0.
    possible = (counts.matches[:, 2:3] > 0) & (orders > 2)
    smoothed = np.where(possible, precisions, np.nan)
    for order in range(2, orders):
        prior = smoothed[:, order - 1] ** 2 / smoothed[:, order - 2]
        smoothed[:, order] = (counts.matches[:, order] + ALPHA * prior) / (counts.totals[:, order] + ALPHA)
    return smoothed
