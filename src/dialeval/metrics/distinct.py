"""Distinct-n: the fraction of different n-grams among all n-grams of the responses.

    distinct-n = number of different n-grams / number of n-grams

counted over all responses together (`per=corpus`, the definition of the paper), or for each response and then averaged
(`per=response`, what some later work reports under the same name). The corpus value falls as more responses are
added, so compare it only between sets of equal size; the value per response falls with length.

Paper: Li et al. 2016, "A Diversity-Promoting Objective Function for Neural Conversation Models", NAACL.

Tokens count as they are (`oov=self`), whatever vocabulary, training text or word vectors are given. With `oov=unk` all
tokens outside the vocabulary count as one, `<unk>`, as in dialog-eval; `-m dialog-eval` sets that.

Different n-grams are counted exactly: memory grows with them, and what does not fit is stored in temporary files; with
several workers, each counts a part of them.

Edge cases: a response with fewer than n words has no n-gram and is not scored. The items are the values of the single
responses under either setting. Where no response has an n-gram the value is NaN; dialog-eval ends with a division by
zero there and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, cast

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.contributions import Resamples
from dialeval.core.exact import Moments
from dialeval.core.fold import Estimate, Metric, Partial
from dialeval.text.ngrams import NgramCounts, NgramTotals, count_ngrams, ngram_counts, ngrams
from dialeval.text.tokenizers import DEFAULT, Oov, Tokenizer, tokens


@dataclass(frozen=True, slots=True)
class DistinctState:
    """The n-grams of all responses, and the moments of the values of single responses."""

    ngrams: NgramCounts | NgramTotals
    moments: Moments


@dataclass(frozen=True)
class Distinct(Metric[DistinctState]):
    """Fraction of different n-grams among all n-grams of the responses."""

    family = "distinct"
    presets = {"distinct-1": {"n": 1}, "distinct-2": {"n": 2}}
    needs = frozenset({inputs.RESPONSE})
    better = "higher"
    counts_kinds = True
    descriptive = True
    grows = True
    bounds = (0.0, 1.0)
    limits = {"n": (1, inf)}
    definition = 2

    n: int = 2
    per: Literal["corpus", "response"] = "corpus"
    oov: Oov = "self"
    tokenizer: Tokenizer = DEFAULT

    def empty(self) -> DistinctState:
        return DistinctState(NgramCounts.empty(self.n), Moments())

    def partial(self, batch: Batch) -> Partial[DistinctState]:
        column = ngrams(batch, inputs.RESPONSE, self.n, self.tokenizer, self.oov)
        with np.errstate(invalid="ignore"):  # 0 / 0: a response without an n-gram is not scored
            items = column.count_distinct() / np.diff(column.offsets)
        counts = ngram_counts(batch, inputs.RESPONSE, self.n, self.tokenizer, self.oov)
        words = tokens(batch, inputs.RESPONSE, self.tokenizer, self.oov)
        contributions = {self._words: words} if self.per == "corpus" else {}
        return Partial(DistinctState(counts, Moments.of(items, batch.dialogues)), {self.name: items}, contributions)

    @property
    def _words(self) -> str:
        """The name of the words that the n-grams are made of."""
        return f"words/{self.tokenizer}/{self.oov}"

    def score_resamples(self, sample: Resamples) -> Floats:
        total, different = count_ngrams(sample, self._words, self.n)
        with np.errstate(invalid="ignore"):  # 0 / 0: a resample without an n-gram has no value
            return np.asarray(different / total)

    def merge(self, left: DistinctState, right: DistinctState) -> DistinctState:
        ngrams: Any = left.ngrams  # both sides are of the same type: counts, or totals of closed parts
        return DistinctState(ngrams.merge(right.ngrams), left.moments + right.moments)

    def split_state(self, state: DistinctState, parts: int) -> list[DistinctState]:
        first, *others = cast("NgramCounts", state.ngrams).split(parts)
        return [DistinctState(first, state.moments), *(DistinctState(part, Moments()) for part in others)]

    def close_part(self, state: DistinctState) -> DistinctState:
        return DistinctState(NgramTotals(state.ngrams.types, state.ngrams.total), state.moments)

    def finish(self, state: DistinctState) -> Mapping[str, Estimate]:
        rows = Estimate.of_moments(state.moments, self.bounds)
        if self.per == "response":
            return {self.name: rows}
        share = state.ngrams.types / state.ngrams.total if state.ngrams.total else np.nan
        return {self.name: Estimate(share, 0.0, rows.units, rows.scored, corpus=True)}
