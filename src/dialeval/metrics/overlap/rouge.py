"""ROUGE-L: how much of response and reference can be read off the other in order, with gaps.

    p = max over references of LCS(response, reference) / words of the response
    r = max over references of LCS(response, reference) / words of the reference
    rouge-l = (1 + beta^2) * p * r / (r + beta^2 * p)

LCS is the length of the longest common subsequence of words. Precision and recall each take the best reference, not
necessarily the same one, and recall weighs more (beta = 1.2): the definition of coco-caption, which nlg-eval and with
it most papers on dialogue use. One value per response, then the mean. Words are split at white space and their case is
kept, as nlg-eval does; `tokeniser=lower-words.1` ignores case.

Paper: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", ACL workshop.

Edge cases: an empty response, an empty reference and a pair without a common word score 0; a row without any reference
is not scored. coco-caption splits at each single blank, so that it takes an empty text for one empty word and gives 1
to an empty response with an empty reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import TokenColumn
from dialeval.core.errors import SettingError
from dialeval.core.fold import RowMetric
from dialeval.core.kernels import Kernels
from dialeval.core.needs import Need
from dialeval.core.ragged import row_numbers
from dialeval.metrics.overlap.bleu_counts import SHORT
from dialeval.text.tokenise import DEFAULT, Tokeniser, tokens

_kernel = Kernels("dialeval.metrics.overlap.rouge_kernel")


@dataclass(frozen=True)
class RougeL(RowMetric):
    """Longest common subsequence of response and reference, as an F measure."""

    family = "rouge"
    presets = {"rouge-l": {}}
    needs = frozenset({Need.RESPONSE, Need.REFERENCE})
    better = "higher"
    bounds = (0.0, 1.0)

    beta: float = 1.2
    tokeniser: Tokeniser = DEFAULT

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.beta < np.inf:
            raise SettingError(f"rouge weighs recall beta times as much as precision; beta={self.beta} is not possible")

    def score(self, batch: Batch) -> Floats:
        responses = tokens(batch, Need.RESPONSE, self.tokeniser)
        references = tokens(batch, Need.REFERENCE, self.tokeniser)
        lists = batch.lists(Need.REFERENCE).offsets
        common = longest_common(responses, references, lists)
        rows = row_numbers(lists)
        precision = best_of_rows(common / np.maximum(responses.lengths[rows], 1), rows, len(responses))
        recall = best_of_rows(common / np.maximum(references.lengths, 1), rows, len(responses))
        weight = self.beta**2
        share = recall + weight * precision
        scores: Floats = (1 + weight) * precision * recall / np.where(share == 0, 1, share)
        scores[np.diff(lists) == 0] = np.nan
        return scores


def longest_common(responses: TokenColumn, references: TokenColumn, lists: Ints) -> Ints:
    """Per reference the words of its longest common subsequence with the response of its row."""

    blocks = -(-int(responses.lengths.max(initial=0)) // SHORT)
    words, rows = np.empty(blocks * SHORT, np.int32), np.empty(blocks, np.uint64)
    longest = np.empty(len(references), np.int64)
    texts = (responses.ids, responses.offsets, references.ids, references.offsets, lists)
    _kernel.longest_common(*texts, words, rows, longest)
    return longest


def best_of_rows(values: Floats, rows: Ints, size: int) -> Floats:
    """The largest value of each row; 0 for a row without any."""
    best = np.zeros(size)
    np.maximum.at(best, rows, values)
    return best
