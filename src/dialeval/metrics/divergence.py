"""KL divergence: how far the words of all responses are from those of all references.

    unigram-kl-div = mean over the words w of the reference of log2(p(w) / q(w))

where p and q are the shares of w among the words of all references and of all responses, cut to the words that both
have and made to sum to 1 again. bigram-kl-div is the same over pairs of neighboring words.

So a row's value does not depend on the row's response, only on its reference and on the two distributions; the mean
weights all references equally, whatever their length. It may be negative. Near 0 means that the responses as a whole
use words as often as the references do; it says nothing of single responses.

It has no confidence interval and is not tested: the distribution of the responses is a single statistic of all rows.
Resampling rows or swapping dialogues between systems would change the references alone, and two equal systems that
speak unlike the references would differ significantly, the more often the more data there are. The values also depend
on how much text there is, so compare systems on equal numbers of responses.

Paper: Csáky et al. 2019, "Improving Neural Conversational Models with Entropy-Based Data Filtering", ACL.

Edge cases: with `oov=unk` words outside the vocabulary count as `<unk>` in the distributions. A word of the reference
is looked up as it stands, so that unknown words of a row do not count, neither alone nor as the first word of a pair;
the second word of a pair does count as `<unk>`. That is the way of dialog-eval, and `-m dialog-eval` sets it; the
default, `oov=self`, has no such asymmetry. A row without a word (pair) that both distributions have is not scored.
With several references all of them count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch, Need
from dialeval.core.fold import Fact, RowMetric
from dialeval.text.ngrams import NgramColumn, NgramCounts, ngram_counts
from dialeval.text.resampled import NgramValues, row_sums
from dialeval.text.tokenizers import DEFAULT, Oov, Tokenizer, tokens


@dataclass(frozen=True, slots=True)
class BothCounts:
    """The n-gram counts of responses and references."""

    responses: NgramCounts
    references: NgramCounts


@dataclass(frozen=True)
class LogRatios(Fact[BothCounts, NgramValues]):
    """log2(p / q) of every n-gram that both the references (p) and the responses (q) of all rows have."""

    n: int
    oov: Oov
    tokenizer: Tokenizer

    def empty(self) -> BothCounts:
        return BothCounts(NgramCounts.empty(self.n), NgramCounts.empty(self.n))

    def gather(self, batch: Batch) -> BothCounts:
        return BothCounts(
            ngram_counts(batch, Need.RESPONSE, self.n, self.tokenizer, self.oov),
            ngram_counts(batch, Need.REFERENCE, self.n, self.tokenizer, self.oov),
        )

    def merge(self, left: BothCounts, right: BothCounts) -> BothCounts:
        return BothCounts(left.responses.merge(right.responses), left.references.merge(right.references))

    grows = True

    def cut(self, state: BothCounts, parts: int) -> list[BothCounts]:
        sides = zip(state.responses.cut(parts), state.references.cut(parts), strict=True)
        return [BothCounts(*pair) for pair in sides]

    def closed(self, state: BothCounts) -> BothCounts:
        """The n-grams that both have: those of one side alone have no ratio, and count for none."""
        keys, references, responses = state.references.shared(state.responses)
        vocabulary = state.references.vocabulary
        return BothCounts(
            NgramCounts(self.n, vocabulary, keys[:, None], responses),
            NgramCounts(self.n, vocabulary, keys[:, None], references),
        )

    def finish(self, state: BothCounts) -> NgramValues:
        keys, references, responses = state.references.shared(state.responses)
        ratios = references / max(int(references.sum(dtype=np.int64)), 1)
        ratios /= responses / max(int(responses.sum(dtype=np.int64)), 1)
        return NgramValues(keys, np.log2(ratios, out=ratios), self.n, state.references.vocabulary)


@dataclass(frozen=True)
class KlDivergence(RowMetric):
    """How far the words of all responses are from those of all references, in bits."""

    family = "kl-div"
    presets = {"unigram-kl-div": {"n": 1}, "bigram-kl-div": {"n": 2}}
    needs = frozenset({Need.RESPONSE, Need.REFERENCE})
    better = "lower"
    definition = 2
    untestable = "it is of the words of all responses together, so that single rows do not show its sampling error"

    n: Literal[1, 2] = 1
    oov: Oov = "self"
    tokenizer: Tokenizer = DEFAULT

    @property
    def wants(self) -> frozenset[Need]:
        return frozenset({Need.VOCABULARY}) if self.oov == "unk" else frozenset()

    @property
    def facts(self) -> tuple[LogRatios]:
        return (LogRatios(self.n, self.oov, self.tokenizer),)

    def score(self, batch: Batch) -> Floats:
        ratios: NgramValues = batch.fact(self.facts[0])
        column = self._looked_up(batch)
        total, scored = row_sums(ratios.of_keys(column.keys), column.offsets[batch.lists(Need.REFERENCE).offsets])
        with np.errstate(invalid="ignore"):  # 0 / 0: nothing of the reference is in both distributions
            return total / scored

    def _looked_up(self, batch: Batch) -> NgramColumn:
        """The n-grams of the references as they are looked up: only the second word of a pair may be `<unk>`."""
        plain = tokens(batch, Need.REFERENCE, self.tokenizer)
        if self.n == 1:
            return NgramColumn.of(plain, 1)
        unified = tokens(batch, Need.REFERENCE, self.tokenizer, self.oov)
        return NgramColumn.pairs(plain, unified)
