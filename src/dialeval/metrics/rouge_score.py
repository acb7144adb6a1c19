"""ROUGE-1, ROUGE-2 and ROUGE-L as Google's rouge-score computes them, which papers on summaries and chatbots print.

    rouge-score-n = F1 of p = m / n-grams of the response and r = m / n-grams of the reference,
                    m = sum over n-grams of min(count in the response, count in the reference)
    rouge-score-l = F1 of p = LCS / words of the response and r = LCS / words of the reference

with F1 = 2 p r / (p + r), and LCS the length of the longest common subsequence of words. Of several references the one
with the highest F1 counts. One value per response, then the mean, from 0 to 1. Words are those of rouge-score without
its stemmer (`tokenizer=rouge`): lower case, and whatever is no letter or digit of ASCII splits, so that it says nothing
about other scripts; choose another tokenizer for these. `rouge-l` is the definition of coco-caption and nlg-eval, which
most papers on dialogue print.

Paper: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", ACL workshop.

Edge cases: a text without a word, and under rouge-score-2 without a pair of words, scores 0; a row without any
reference is not scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats, row_numbers
from dialeval.core.batch import Batch, Need
from dialeval.core.fold import RowMetric
from dialeval.metrics.bleu_counts import BleuCounts
from dialeval.metrics.rouge import best_of_rows, longest_common
from dialeval.text.tokenizers import Tokenizer, tokens


@dataclass(frozen=True)
class RougeScore(RowMetric):
    """Words, pairs of words or the longest common subsequence shared with the reference: F1 as in rouge-score."""

    family = "rouge-score"
    presets = {f"rouge-score-{of}": {"of": of} for of in ("1", "2", "l")}
    needs = frozenset({Need.RESPONSE, Need.REFERENCE})
    better = "higher"
    bounds = (0.0, 1.0)

    of: Literal["1", "2", "l"] = "l"
    tokenizer: Tokenizer = "rouge"

    def score(self, batch: Batch) -> Floats:
        responses = tokens(batch, Need.RESPONSE, self.tokenizer)
        references = tokens(batch, Need.REFERENCE, self.tokenizer)
        lists = batch.lists(Need.REFERENCE).offsets
        rows = row_numbers(lists)
        if self.of == "l":
            shorter, common = 0, longest_common(responses, references, lists)
        else:
            shorter = int(self.of) - 1
            pairs = batch.derived(
                ("pair counts", self.tokenizer),
                lambda: BleuCounts.of(responses.take(rows), references, np.arange(len(rows) + 1)),
            )
            common = pairs.matches[:, shorter]
        precision = common / np.maximum(responses.lengths[rows] - shorter, 1)
        recall = common / np.maximum(references.lengths - shorter, 1)
        both = precision + recall
        scores = best_of_rows(2 * precision * recall / np.where(both == 0, 1, both), rows, len(responses))
        scores[np.diff(lists) == 0] = np.nan
        return scores
