"""BLEU-n: how many of the response's n-grams, up to n words long, its references share.

    bleu-n = BP * exp(sum over orders i <= n of w_i * log p_i)

with clipped precisions p_i against all references of a row and the brevity penalty BP against the closest reference
length; one value per response, then the mean. `bleu_counts` has the counts, `smoothing` the formulas.

- `by=nltk` (the default): `sentence_bleu` of nltk as dialog-eval calls it, smoothing method `smooth`. All four orders
  are smoothed together and those above n have weight 0, which matters to methods 5 to 7. The weights are 1; 0.5 each;
  0.33 each, so that bleu-3 has a sum of 0.99 as in the original; 0.25 each.
- `by=sacre`: sentence BLEU of sacreBLEU on text that is split already, from 0 to 1: NIST smoothing, equal weights over
  the orders of which the response has an n-gram.

Papers: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL; Chen and Cherry
2014, "A Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU", WMT; Post 2018, "A Call for Clarity in
Reporting BLEU Scores", WMT.

Edge cases: an empty response and a response without a common word score 0, an empty reference is a reference of no
words, and a row without any reference is not scored. Under smoothing method 6 a response with a common word but no
common trigram is not scored; dialog-eval ends with an AssertionError there. Methods 5 and 7 may exceed 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError
from dialeval.core.fold import Bounds, RowMetric
from dialeval.core.needs import Need
from dialeval.metrics.overlap.bleu_counts import Order, bleu_counts
from dialeval.metrics.overlap.smoothing import NIST, Method, log_precisions, sacre_bleu, weighted_bleu
from dialeval.text.tokenise import DEFAULT, Tokeniser

WEIGHTS = {1: (1.0,), 2: (0.5, 0.5), 3: (0.33, 0.33, 0.33), 4: (0.25, 0.25, 0.25, 0.25)}
"""What dialog-eval gives to nltk, without the zeros for the orders above n."""

DEFAULT_SMOOTH: Method = 4
ABOVE_ONE = (5, 7)
"""Smoothing methods under which a value may exceed 1."""


@dataclass(frozen=True)
class Bleu(RowMetric):
    """Share of the response's n-grams, up to n words long, that its references have too."""

    family = "bleu"
    presets = {"bleu-1": {"n": 1}, "bleu-2": {"n": 2}, "bleu-3": {"n": 3}, "bleu-4": {"n": 4}}
    needs = frozenset({Need.RESPONSE, Need.REFERENCE})
    better = "higher"

    n: Order = 4
    smooth: Method = DEFAULT_SMOOTH
    by: Literal["nltk", "sacre"] = "nltk"
    tokeniser: Tokeniser = DEFAULT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by == "sacre" and self.smooth != DEFAULT_SMOOTH:
            raise SettingError(
                f"bleu by sacre has a smoothing of its own; leave out smooth={self.smooth}, or choose by=nltk"
            )

    @property
    def bounds(self) -> Bounds:
        return (0.0, math.inf) if self.by == "nltk" and self.smooth in ABOVE_ONE else (0.0, 1.0)

    def score(self, batch: Batch) -> Floats:
        counts = bleu_counts(batch, self.tokeniser)
        method = NIST if self.by == "sacre" else self.smooth
        logs = batch.derived(("bleu logs", self.tokeniser, method), lambda: log_precisions(counts, method))
        if self.by == "sacre":
            return sacre_bleu(counts, logs, self.n)
        return weighted_bleu(counts, logs, WEIGHTS[self.n])
