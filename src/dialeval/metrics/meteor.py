"""METEOR with exact matches of words, as in nltk without stems and synonyms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats, row_numbers
from dialeval.core.batch import Batch
from dialeval.core.fold import RowMetric
from dialeval.core.kernels import kernel
from dialeval.metrics.rouge import find_best_of_rows
from dialeval.text.tokenizers import Tokenizer, tokens

# Kernel: words are aligned from the end, each with the last free word of the reference that is equal to it, as nltk
# does; runs of words that are next to each other in both texts are chunks. Layout of texts as in `bleu_counts`.


@kernel
def count_aligned(ids, offsets, reference_ids, reference_offsets, lists, last_free, earlier, partners, matches, chunks):  # type: ignore[no-untyped-def]
    """Fill `matches` and `chunks` per reference.

    The rest is scratch: `last_free` has for each word -1 or its last free place in the reference, `earlier` for each
    place of the reference the place before it with the same word, `partners` the place that a word is aligned with.
    """
    for row in range(offsets.shape[0] - 1):
        start, stop = offsets[row], offsets[row + 1]
        for text in range(lists[row], lists[row + 1]):
            first, last = reference_offsets[text], reference_offsets[text + 1]
            for j in range(last - first):
                word = reference_ids[first + j]
                earlier[j] = last_free[word]
                last_free[word] = j
            matched, runs, before = 0, 0, -2
            for i in range(stop - start - 1, -1, -1):
                word = ids[start + i]
                j = last_free[word]
                partners[i] = j
                if j >= 0:
                    last_free[word] = earlier[j]
                    matched += 1
            follows = False
            for i in range(stop - start):
                here = partners[i]
                if here >= 0 and not (follows and here == before + 1):
                    runs += 1
                follows = here >= 0
                before = here
            for j in range(last - first):
                last_free[reference_ids[first + j]] = -1
            matches[text] = matched
            chunks[text] = runs


@dataclass(frozen=True)
class MeteorExact(RowMetric):
    """Words shared with the reference, in chunks as long as possible: METEOR with exact matches only.

    The first stage of METEOR: equal words are aligned, and words that are in another order cost.

        p = matches / words of the response, r = matches / words of the reference
        meteor-exact = p * r / (alpha * p + (1 - alpha) * r) * (1 - gamma * (chunks / matches)^beta)

    The best reference counts. Words are lowercased and split at whitespace. It is nltk's `meteor_score` (alpha 0.9,
    beta 3, gamma 0.5) with a stemmer that changes nothing and a WordNet without synonyms; METEOR with stems and
    synonyms is higher, so do not compare the two.

    Paper: Banerjee and Lavie 2005, "METEOR: An Automatic Metric for MT Evaluation with Improved Correlation with Human
    Judgments", ACL workshop.

    Edge cases: a pair without a common word and an empty text score 0; a row without any reference is not scored.
    """

    family = "meteor-exact"
    presets = {"meteor-exact": {}}
    needs = frozenset({inputs.RESPONSE, inputs.REFERENCE})
    better = "higher"
    bounds = (0.0, 1.0)
    limits = {"alpha": (0, 1), "beta": (0, np.inf), "gamma": (0, 1)}

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5
    tokenizer: Tokenizer = "lower-words.1"

    def score(self, batch: Batch) -> Floats:
        responses = tokens(batch, inputs.RESPONSE, self.tokenizer)
        references = tokens(batch, inputs.REFERENCE, self.tokenizer)
        lists = batch.lists(inputs.REFERENCE).offsets
        words = 1 + max(int(texts.ids.max(initial=-1)) for texts in (responses, references))
        longest = max(int(texts.lengths.max(initial=0)) for texts in (responses, references))
        last_free, earlier, partners = np.full(words, -1), np.empty(longest, np.int64), np.empty(longest, np.int64)
        matches, chunks = (np.empty(len(references), np.int64) for _ in range(2))
        texts = (responses.ids, responses.offsets, references.ids, references.offsets, lists)
        count_aligned(*texts, last_free, earlier, partners, matches, chunks)
        rows = row_numbers(lists)
        precision = matches / np.maximum(responses.lengths[rows], 1)
        recall = matches / np.maximum(references.lengths, 1)
        mean = self.alpha * precision + (1 - self.alpha) * recall
        penalty = self.gamma * (chunks / np.maximum(matches, 1)) ** self.beta
        values = precision * recall / np.where(mean == 0, 1, mean) * (1 - penalty)
        scores = find_best_of_rows(values, rows, len(responses))
        scores[np.diff(lists) == 0] = np.nan
        return scores
