"""ROUGE-L of coco-caption, and ROUGE-1, ROUGE-2 and ROUGE-L of rouge-score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy import uint64

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints, row_numbers
from dialeval.core.batch import Batch
from dialeval.core.columns import TokenColumn
from dialeval.core.fold import RowMetric
from dialeval.core.kernels import count_ones, kernel
from dialeval.metrics.bleu_counts import SHORT, STEP, BleuCounts, equal_words
from dialeval.text.tokenizers import DEFAULT, Tokenizer, tokens

# Kernel: the longest common subsequence of responses and references, a machine word of positions at a time.
#
# The positions of a response are bits. A bit that is 0 in `rows` says that the longest common subsequence with the part
# of the reference read so far grows at that position; one addition per 64 positions takes in a further word of the
# reference (Crochemore et al. 2001; Hyyrö 2004). Each word costs as many steps as the response has blocks of 64 words:
# texts of many thousand words take the product of their lengths, divided by 64. What both begin and end with alike is
# part of a longest common subsequence and is not looked at again.
#
# Layout of texts as in `bleu_counts`; scratch comes from the caller.


@kernel
def _take_in(words, blocks, word, rows):  # type: ignore[no-untyped-def]
    """Take one more word of the reference in."""
    carry = uint64(0)
    for block in range(blocks):
        places = uint64(0)
        for step in range(0, SHORT, STEP):
            places |= equal_words(words, block * SHORT + step, word) << uint64(step)
        row = rows[block]
        grown = row & places
        low = row + grown
        total = low + carry
        carry = uint64(1) if low < row or total < low else uint64(0)
        rows[block] = total | (row - grown)


@kernel
def _shared_ends(ids, start, stop, reference_ids, first, last):  # type: ignore[no-untyped-def]
    """Return how many words two texts begin with alike, and how many of the rest they end with alike."""
    shorter = min(stop - start, last - first)
    head = 0
    while head < shorter and ids[start + head] == reference_ids[first + head]:
        head += 1
    tail = 0
    while tail < shorter - head and ids[stop - 1 - tail] == reference_ids[last - 1 - tail]:
        tail += 1
    return head, tail


@kernel("(i4[::1], i8[::1], i4[::1], i8[::1], i8[::1], i4[::1], u8[::1], i8[::1])")
def fill_longest_common(ids, offsets, reference_ids, reference_offsets, lists, words, rows, longest):  # type: ignore[no-untyped-def]
    """Fill `longest`: per reference the length of its longest common subsequence with the response of its row.

    Scratch: `words` and `rows` hold the words of the longest response, in whole blocks, and their bits.
    """
    for row in range(offsets.shape[0] - 1):
        for text in range(lists[row], lists[row + 1]):
            start, stop = offsets[row], offsets[row + 1]
            first, last = reference_offsets[text], reference_offsets[text + 1]
            head, tail = _shared_ends(ids, start, stop, reference_ids, first, last)
            start += head
            length = stop - tail - start
            blocks = (length + SHORT - 1) // SHORT
            for i in range(blocks * SHORT):
                words[i] = ids[start + i] if i < length else -1  # no word has this id
            for block in range(blocks):
                rows[block] = ~uint64(0)
            for j in range(first + head, last - tail):
                _take_in(words, blocks, reference_ids[j], rows)
            count = uint64(head + tail)
            for block in range(blocks):
                count += count_ones(~rows[block])
            longest[text] = count


@dataclass(frozen=True)
class RougeL(RowMetric):
    """Longest common subsequence of response and reference, as an F measure.

    ROUGE-L: how much of response and reference can be read off the other in order, with gaps.

        p = max over references of LCS(response, reference) / words of the response
        r = max over references of LCS(response, reference) / words of the reference
        rouge-l = (1 + beta^2) * p * r / (r + beta^2 * p)

    LCS is the length of the longest common subsequence of words. Precision and recall each take the best reference, not
    necessarily the same one, and recall weighs more (beta = 1.2): the definition of coco-caption, which nlg-eval and
    with it most papers on dialogue use. One value per response, then the mean. Words are split at whitespace and their
    case is kept, as nlg-eval does; `tokenizer=lower-words.1` ignores case.

    Paper: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", ACL workshop.

    Edge cases: an empty response, an empty reference and a pair without a common word score 0; a row without any
    reference is not scored. coco-caption splits at each single space, so that it takes an empty text for one empty word
    and gives 1 to an empty response with an empty reference.
    """

    family = "rouge"
    presets = {"rouge-l": {}}
    needs = frozenset({inputs.RESPONSE, inputs.REFERENCE})
    better = "higher"
    bounds = (0.0, 1.0)
    limits = {"beta": (0, np.inf)}

    beta: float = 1.2
    tokenizer: Tokenizer = DEFAULT

    def score(self, batch: Batch) -> Floats:
        responses = tokens(batch, inputs.RESPONSE, self.tokenizer)
        references = tokens(batch, inputs.REFERENCE, self.tokenizer)
        lists = batch.lists(inputs.REFERENCE).offsets
        common = compute_longest_common(responses, references, lists)
        rows = row_numbers(lists)
        precision = find_best_of_rows(common / np.maximum(responses.lengths[rows], 1), rows, len(responses))
        recall = find_best_of_rows(common / np.maximum(references.lengths, 1), rows, len(responses))
        weight = self.beta**2
        share = recall + weight * precision
        scores: Floats = (1 + weight) * precision * recall / np.where(share == 0, 1, share)
        scores[np.diff(lists) == 0] = np.nan
        return scores


def compute_longest_common(responses: TokenColumn, references: TokenColumn, lists: Ints) -> Ints:
    """Return per reference the words of its longest common subsequence with the response of its row."""

    blocks = -(-int(responses.lengths.max(initial=0)) // SHORT)
    words, rows = np.empty(blocks * SHORT, np.int32), np.empty(blocks, np.uint64)
    longest = np.empty(len(references), np.int64)
    texts = (responses.ids, responses.offsets, references.ids, references.offsets, lists)
    fill_longest_common(*texts, words, rows, longest)
    return longest


def find_best_of_rows(values: Floats, rows: Ints, size: int) -> Floats:
    """Return the largest value of each row; 0 for a row without any."""
    best = np.zeros(size)
    np.maximum.at(best, rows, values)
    return best


@dataclass(frozen=True)
class RougeScore(RowMetric):
    """Words, pairs of words or the longest common subsequence shared with the reference: F1 as in rouge-score.

    ROUGE-1, ROUGE-2 and ROUGE-L as Google's rouge-score computes them, which papers on summaries and chatbots print.

        rouge-score-n = F1 of p = m / n-grams of the response and r = m / n-grams of the reference,
                        m = sum over n-grams of min(count in the response, count in the reference)
        rouge-score-l = F1 of p = LCS / words of the response and r = LCS / words of the reference

    with F1 = 2 p r / (p + r), and LCS the length of the longest common subsequence of words. Of several references the
    one with the highest F1 counts. One value per response, then the mean, from 0 to 1. Words are those of rouge-score
    without its stemmer (`tokenizer=rouge`): lower case, and whatever is no letter or digit of ASCII splits, so that it
    says nothing about other scripts; choose another tokenizer for these. `rouge-l` is the definition of coco-caption
    and nlg-eval, which most papers on dialogue print.

    Paper: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", ACL workshop.

    Edge cases: a text without a word, and under rouge-score-2 without a pair of words, scores 0; a row without any
    reference is not scored.
    """

    family = "rouge-score"
    presets = {f"rouge-score-{of}": {"of": of} for of in ("1", "2", "l")}
    needs = frozenset({inputs.RESPONSE, inputs.REFERENCE})
    better = "higher"
    bounds = (0.0, 1.0)

    of: Literal["1", "2", "l"] = "l"
    tokenizer: Tokenizer = "rouge"

    def score(self, batch: Batch) -> Floats:
        responses = tokens(batch, inputs.RESPONSE, self.tokenizer)
        references = tokens(batch, inputs.REFERENCE, self.tokenizer)
        lists = batch.lists(inputs.REFERENCE).offsets
        rows = row_numbers(lists)
        if self.of == "l":
            shorter, common = 0, compute_longest_common(responses, references, lists)
        else:
            shorter = int(self.of) - 1
            pairs = batch.derive(
                ("pair counts", self.tokenizer),
                lambda: BleuCounts.of(responses.take(rows), references, np.arange(len(rows) + 1)),
            )
            common = pairs.matches[:, shorter]
        precision = common / np.maximum(responses.lengths[rows] - shorter, 1)
        recall = common / np.maximum(references.lengths - shorter, 1)
        both = precision + recall
        scores = find_best_of_rows(2 * precision * recall / np.where(both == 0, 1, both), rows, len(responses))
        scores[np.diff(lists) == 0] = np.nan
        return scores


# Kernel: words are aligned from the end, each with the last free word of the reference that is equal to it, as nltk
# does; runs of words that are next to each other in both texts are chunks. Layout of texts as in `bleu_counts`.


@kernel("(i4[::1], i8[::1], i4[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1])")
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
