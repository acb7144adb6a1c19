"""Richness: how varied the language of a system's responses is.

Over all normalized responses (`suites/multiwoz/venues.py`), with words in lower case and without punctuation:

    num-unigrams, num-bigrams, num-trigrams = different n-grams within responses
    avg-lengths  = words per response
    entropy      = -sum over words w of p(w) log2 p(w), p = share of the word
    cond-entropy = -sum over pairs (h, w) of count(h, w) / words * log2(count(h, w) / count(h))
    msttr        = mean share of different words in segments of 50, over all responses one after the other

Papers: Nekvinda and Dušek 2021, "Shades of BLEU, Flavours of Success: The Case of MultiWOZ", GEM; Johnson 1944,
"Studies in Language Behavior: A Program of Research" (mean segmental type-token ratio).

The words are those of the package lexical-diversity, as in the original: punctuation is deleted, not replaced by spaces
(`don't` is `dont`), and what is left is cut at every space, so that an empty response has one word, the empty one. A
placeholder such as NAME and the word "name" are one.

Edge cases: msttr needs the responses in their order in the file; its state keeps each response with its place, and
sorts in the end, so that rows may be cut and merged in any order. A last segment of fewer than 50 words is left out;
with at most 50 words in all, msttr is the fraction of different words among them. Turns that are missing are not
scored. The entropies and msttr have no confidence interval and no test: repeating a dialogue adds no new words, and
moves all segments after it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, cast, get_args

import numpy as np

from dialeval.core.arrays import Bytes, Floats, Ids, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.contributions import Resamples
from dialeval.core.errors import NeedError
from dialeval.core.exact import Moments
from dialeval.core.fold import Better, Bounds, Estimate, Metric, Partial
from dialeval.suites.multiwoz import ONTOLOGY, TASK_TURNS
from dialeval.suites.multiwoz.turns import normalize_responses
from dialeval.text.ngrams import NgramColumn, NgramCounts, count_ngrams
from dialeval.text.vocabulary import Vocabulary

WORDS = "task-words"
"""The name of the contributions of single responses: their words."""

Of = Literal["entropy", "cond-entropy", "avg-lengths", "msttr", "num-unigrams", "num-bigrams", "num-trigrams"]
SEGMENT = 50
"""Words of a segment of msttr."""

_ORDERS: Mapping[Of, tuple[int, ...]] = dict(zip(get_args(Of), ((1,), (1, 2), (), (), (1,), (2,), (3,)), strict=True))
"""The n-grams that each value counts."""

_END = "\0"
"""Stands between responses; a normalized response has no such character."""
_END_BYTE, _BLANK_BYTE = 0, 0x20
_FIRST = str.maketrans("", "", "'.,?!)(%/-_")
_LAST = str.maketrans("", "", ":;")
_OTHER_BLANK = re.compile(r"[^\S ]")


@dataclass(frozen=True, slots=True)
class RichnessState:
    """Lengths of responses, counts of n-grams by order, and responses with their places where the order matters."""

    lengths: Moments = field(default_factory=Moments)
    counts: Mapping[int, NgramCounts] = field(default_factory=dict)
    placed: tuple[tuple[int, str], ...] = ()
    """Place in the file, and words with a space between them."""


@dataclass(frozen=True)
class Richness(Metric[RichnessState]):
    """How varied the words of the responses are."""

    family = "richness"
    presets = {name: {"of": name} for name in _ORDERS}
    subject = TASK_TURNS
    needs = frozenset({TASK_TURNS, ONTOLOGY})
    counts_kinds = True
    descriptive = True

    of: Of = "entropy"

    @property
    def bounds(self) -> Bounds:  # type: ignore[override]
        return (0.0, 1.0 if self.of == "msttr" else math.inf)

    @property
    def better(self) -> Better | None:  # type: ignore[override]
        # Counts and entropies grow with the number of words, which is no merit; msttr does not.
        return "higher" if self.of == "msttr" else None

    def empty(self) -> RichnessState:
        return RichnessState(counts={order: NgramCounts.empty(order) for order in self._orders})

    def partial(self, batch: Batch) -> Partial[RichnessState]:
        rows = batch.objects(TASK_TURNS)
        words, texts = split_responses(batch)
        lengths, moments = batch.derive("response lengths", lambda: _count_words(words, texts, batch.dialogues))
        counts = {
            order: batch.derive(("response grams", order), partial(_count_ngrams, words, order))
            for order in self._orders
        }
        kept = zip(rows, texts, strict=True) if self.of == "msttr" else ()
        placed = tuple((row["position"], text) for row, text in kept if text is not None)
        state = RichnessState(moments, counts, placed)
        if self.of == "avg-lengths":
            return Partial(state, {self.name: lengths})
        return Partial(state, {}, {WORDS: words} if self.of.startswith("num-") else {})

    def score_resamples(self, sample: Resamples) -> Floats:
        if self.of == "avg-lengths":
            return super().score_resamples(sample)
        if self.of in ("msttr", "entropy", "cond-entropy"):
            raise NeedError("it depends on all words together")
        _, different = count_ngrams(sample, WORDS, self._orders[0])
        return np.where(count_ngrams(sample, WORDS, 1)[1] > 0, different, np.nan)

    @property
    def _orders(self) -> tuple[int, ...]:
        return _ORDERS[self.of]

    def merge(self, left: RichnessState, right: RichnessState) -> RichnessState:
        counts = {order: left.counts[order].merge(right.counts[order]) for order in self._orders}
        return RichnessState(left.lengths + right.lengths, counts, left.placed + right.placed)

    def finish(self, state: RichnessState) -> Mapping[str, Estimate]:
        lengths = Estimate.of_moments(state.lengths, self.bounds)
        if self.of == "avg-lengths":
            return {self.name: lengths}
        value = self._compute_value(state) if lengths.scored else math.nan
        return {self.name: Estimate(value, 0.0, lengths.units, lengths.scored, corpus=True)}

    def _compute_value(self, state: RichnessState) -> float:
        if self.of == "msttr":
            words = " ".join(text for _, text in sorted(state.placed))
            return segment_ratio(_split(np.frombuffer(words.encode(), np.uint8), Vocabulary()).ids)
        if self.of == "entropy":
            return entropy(state.counts[1])
        if self.of == "cond-entropy":
            return conditional_entropy(state.counts[1], state.counts[2])
        return float(state.counts[self._orders[0]].types)


def split_responses(batch: Batch) -> tuple[TokenColumn, list[str | None]]:
    """Return the words of each normalized response, as ids and with a space between them; split once for all metrics.

    A response that is missing has no words and None; one that is empty has one word, the empty one.
    """
    responses = normalize_responses(batch)
    vocabulary = cast(Vocabulary, batch.vocabulary)

    def make() -> tuple[TokenColumn, list[str | None]]:
        numbers: dict[str, int] = {}
        rows = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in responses]
        bare = _remove_punctuation(_END.join(numbers))
        texts = [*bare.split(_END), None]
        words = _split(np.frombuffer(bare.encode(), np.uint8), vocabulary)
        return words.take(np.array(rows, np.int64)), [texts[row] for row in rows]

    return batch.derive("response words", make)


def _split(data: Bytes, vocabulary: Vocabulary) -> TokenColumn:
    """Return the words between spaces, and an empty row after the last text."""
    cuts = np.flatnonzero((data == _BLANK_BYTE) | (data == _END_BYTE))
    starts, ends = np.append(0, cuts + 1), np.append(cuts, len(data))
    firsts = np.flatnonzero(data[cuts] == _END_BYTE) + 1
    offsets = np.concatenate(([0], firsts, [len(starts), len(starts)]))
    return TokenColumn(vocabulary.add(TextColumn(data, starts, ends)), offsets, vocabulary)


def split_words(text: str) -> list[str]:
    """Return the words of a text as the package lexical-diversity splits it."""
    return _remove_punctuation(text).split(" ")


def _remove_punctuation(text: str) -> str:
    """Return a text in lower case without punctuation, one space between words."""
    bare = text.replace("``", "").translate(_FIRST).replace("SYM", "").translate(_LAST)
    bare = _OTHER_BLANK.sub(" ", bare)
    while "  " in bare:
        bare = bare.replace("  ", " ")
    return bare.lower()


def _count_words(words: TokenColumn, texts: Sequence[str | None], dialogues: Ints) -> tuple[Floats, Moments]:
    lengths = np.where([text is None for text in texts], np.nan, words.lengths)
    return lengths, Moments.of(lengths, dialogues)


def _count_ngrams(words: TokenColumn, order: int) -> NgramCounts:
    return NgramCounts.of(NgramColumn.of(words, order), cast(Vocabulary, words.vocabulary))


def entropy(words: NgramCounts) -> float:
    """Return the entropy of words in bits; the sum is exact, so that its order does not matter."""
    total = words.total
    return -math.fsum(count / total * math.log2(count / total) for count in words.counts.tolist()) + 0.0


def conditional_entropy(words: NgramCounts, pairs: NgramCounts) -> float:
    """Return the entropy of a word given the one before it, in bits."""
    total = words.total
    pairs = pairs.to_vocabulary(words.vocabulary)
    heads = words.counts[np.searchsorted(words.keys[:, 0], pairs.grams[:, 0])]
    both = zip(pairs.counts.tolist(), heads.tolist(), strict=True)
    return -math.fsum(count / total * math.log2(count / head) for count, head in both) + 0.0


def segment_ratio(words: Ids) -> float:
    """Return the mean fraction of distinct words, given by their ids, in segments of 50."""
    length = min(len(words), SEGMENT)
    segments = np.sort(words[: len(words) // length * length].reshape(-1, length))
    different = len(segments) + np.count_nonzero(np.diff(segments))
    return int(different) / segments.size
