"""BLEU as nlg-eval computes it: that of coco-caption, without smoothing but for two constants.

    p_i = (clipped matches of order i + 1e-15) / (n-grams of order i + 1e-9)
    nlg-bleu-n = (p_1 * ... * p_n)^(1/n) * BP
    BP = exp(1 - 1 / ratio) if ratio < 1, else 1;  ratio = (words of the response + 1e-15) / (closest reference + 1e-9)

It is the BLEU of papers that used nlg-eval or coco-caption, among them most that correlate BLEU with judgments of
dialogue by people; it is not sacreBLEU's (`bleu(per=corpus,tokenizer=13a)`). One value per response and then the mean
(`per=response`), or the value of the summed counts (`per=corpus`), which is the one that nlg-eval prints for a file.
Words are split at white space and keep their case, as there.

An order without a match multiplies the value by about 1e-15 rather than 0: of two responses without a common four-gram
the shorter one stands above the other by its fewer n-grams alone. That is of no consequence to a mean, but it is what
rank correlations with this BLEU are partly made of.

Papers: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL; Chen et al. 2015,
"Microsoft COCO Captions: Data Collection and Evaluation Server"; Sharma et al. 2017, "Relevance of Unsupervised Metrics
in Task-Oriented Dialogue for Evaluating Natural Language Generation".

Edge cases: an empty response scores 0, an empty reference is a reference of no words, a row without any reference is
not scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch, Need
from dialeval.metrics.bleu_counts import NO_REFERENCE, Order, bleu_counts
from dialeval.metrics.counting import CountMetric, Flags, Per
from dialeval.text.tokenizers import DEFAULT, Tokenizer

TINY, SMALL = 1e-15, 1e-9
"""What coco-caption adds to matches and to n-grams, so that no precision is 0 or divided by 0."""


@dataclass(frozen=True)
class NlgBleu(CountMetric):
    """Shared n-grams: the BLEU that nlg-eval and coco-caption print, and papers that used these."""

    family = "nlg-bleu"
    presets = {f"nlg-bleu-{n}": {"n": n} for n in get_args(Order)}
    needs = frozenset({Need.RESPONSE, Need.REFERENCE})
    better = "higher"
    bounds = (0.0, 1.0)

    n: Order = 4
    per: Per = "response"
    tokenizer: Tokenizer = DEFAULT

    @property
    def of_corpus(self) -> bool:
        return self.per == "corpus"

    @property
    def width(self) -> int:
        return 2 + 2 * self.n

    def row_counts(self, batch: Batch) -> tuple[Ints, Flags]:
        counts = bleu_counts(batch, self.tokenizer)
        lengths = (counts.response_lengths, counts.reference_lengths)
        columns = np.column_stack((*lengths, counts.matches[:, : self.n], counts.totals[:, : self.n]))
        return columns, counts.reference_lengths != NO_REFERENCE

    def formula(self, counts: Ints | Floats) -> Floats:
        length, reference, matches, totals = np.split(counts, (1, 2, 2 + self.n), axis=1)
        product = ((matches + TINY) / (totals + SMALL)).prod(axis=1)
        shortness = (reference[:, 0] + SMALL) / (length[:, 0] + TINY)
        values: Floats = product ** (1 / self.n) * np.exp(np.minimum(1 - shortness, 0))
        return values
