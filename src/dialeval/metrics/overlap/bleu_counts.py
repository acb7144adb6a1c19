"""The counts that every BLEU is computed from: per row the clipped n-gram matches, the n-grams, and two lengths.

    matches[row, n - 1]  = sum over n-grams g of min(count of g in the response, largest count of g in a reference)
    totals[row, n - 1]   = max(0, words of the response - n + 1)
    reference_lengths    = length of the reference nearest to the response's, the shorter of two equally near ones

for the orders n = 1 to 5; the fifth serves two smoothing methods only. Clipping and closest length are those of the
paper, of nltk and of sacreBLEU alike.

Paper: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL.

Edge cases: an empty reference is a reference of no words. A row without any reference has `NO_REFERENCE` for a length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import TokenColumn
from dialeval.core.kernels import Kernels
from dialeval.core.needs import Need
from dialeval.text.tokenise import Tokeniser, tokens

_kernel = Kernels("dialeval.metrics.overlap.bleu_kernel")


Order = Literal[1, 2, 3, 4]
"""The longest n-grams that a BLEU counts."""

ORDERS = 5
"""Orders that are counted: 1 to 4, and 5, which two smoothing methods look at."""

SHORT = 64
"""Words that fit the bits of one integer."""

NO_REFERENCE = -1


@dataclass(frozen=True, eq=False, slots=True)
class BleuCounts:
    """Counts per row, integers all of them: they add up over rows to the counts of a corpus."""

    matches: Ints
    totals: Ints
    response_lengths: Ints
    reference_lengths: Ints

    @classmethod
    def of(cls, responses: TokenColumn, references: TokenColumn, lists: Ints) -> BleuCounts:
        """The counts of responses; the references of row `i` are the texts `lists[i]` to `lists[i + 1]`."""
        rows = np.arange(len(responses) + 1)  # each row is a query of one response and one group of references
        # Column-major: the formulas then work on one contiguous array per order.
        matches = np.empty((len(responses), ORDERS), np.int64, order="F")
        texts = (responses.ids, responses.offsets, rows, references.ids, references.offsets, lists, rows)
        closest, long = match_short(texts, matches)
        if len(long):
            match_long(long, responses, references, lists, matches)
        lengths = responses.lengths
        totals = np.maximum(np.subtract.outer(-np.arange(ORDERS), -lengths).T, 0)
        return cls(matches, totals, lengths, closest)

    def __len__(self) -> int:
        return len(self.response_lengths)


def match_short(texts: tuple[npt.NDArray[np.integer], ...], matches: Ints) -> tuple[Ints, Ints]:
    """Fill `matches` of pairs of short texts, laid out as the kernel takes them.

    Returns the closest reference length of every pair, and the numbers of the pairs that have a longer text.
    """
    closest, rest = np.empty(len(matches), np.int64), np.empty(len(matches), np.int64)
    words, ranks, hits = (np.empty(SHORT, kind) for kind in (np.int32, np.uint64, np.uint64))
    left = _kernel.match_short(texts, words, ranks, hits, matches, closest, rest)
    return closest, rest[:left]


def match_long(rows: Ints, responses: TokenColumn, references: TokenColumn, lists: Ints, matches: Ints) -> None:
    """Fill `matches` for the given rows by the method for texts of any length."""
    longest = int(responses.lengths[rows].max(initial=0))
    most = int((references.offsets[lists[rows + 1]] - references.offsets[lists[rows]]).max(initial=0))
    slots = np.empty(1 << max(2, (2 * longest).bit_length()), np.int32)
    # Of arrays this large only the pages that are written to take memory.
    table = (slots, np.empty(longest, np.int64), *(np.empty(longest, np.int32) for _ in range(3)))
    texts = (responses.ids, responses.offsets, references.ids, references.offsets, lists)
    _kernel.match_long(rows, *texts, np.empty(longest, np.int32), np.empty(most, np.int32), table, matches)


def bleu_counts(batch: Batch, tokeniser: Tokeniser) -> BleuCounts:
    """The counts of a batch's responses against their references; computed once for all metrics of the batch."""
    responses = tokens(batch, Need.RESPONSE, tokeniser)
    references = tokens(batch, Need.REFERENCE, tokeniser)
    lists = batch.lists(Need.REFERENCE).offsets
    return batch.derived(("bleu counts", tokeniser), lambda: BleuCounts.of(responses, references, lists))
