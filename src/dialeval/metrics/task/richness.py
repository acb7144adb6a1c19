"""Richness: how varied the language of a system's responses is.

Over all normalised responses (`text/delexicalised.py`), with words in lower case and without punctuation:

    num-unigrams, num-bigrams, num-trigrams = different n-grams within responses
    avg-lengths  = words per response
    entropy      = -sum over words w of p(w) log2 p(w), p = share of the word
    cond-entropy = -sum over pairs (h, w) of count(h, w) / words * log2(count(h, w) / count(h))
    msttr        = mean share of different words in segments of 50, over all responses one after the other

Papers: Nekvinda and Dušek 2021, "Shades of BLEU, Flavours of Success: The Case of MultiWOZ", GEM; Johnson 1944,
"Studies in Language Behavior: A Program of Research" (mean segmental type-token ratio).

The words are those of the package lexical-diversity, as in the original: punctuation is deleted, not replaced by blanks
(`don't` is `dont`), and what is left is cut at every blank, so that an empty response has one word, the empty one. A
placeholder such as NAME and the word "name" are one.

Edge cases: msttr needs the responses in their order in the file; its state keeps each response with its place, and
sorts in the end, so that rows may be cut and merged in any order. A last segment of fewer than 50 words is left out;
with at most 50 words in all, msttr is the share of different words among them. Turns that are missing are not scored.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Literal, cast

import numpy as np

from dialeval.core.arrays import Floats, Ids, Ints
from dialeval.core.batch import Batch
from dialeval.core.contributions import BatchContributions, Resamples, RowSums, RowWords
from dialeval.core.exact import Moments
from dialeval.core.fold import Better, Bounds, Estimate, Metric, Partial
from dialeval.core.needs import Need
from dialeval.core.ragged import offsets_of
from dialeval.metrics.task.turns import normalised_responses
from dialeval.text.resampled import cluster_grams, ngram_totals, segment_kinds

Of = Literal["entropy", "cond-entropy", "avg-lengths", "msttr", "num-unigrams", "num-bigrams", "num-trigrams"]
WORDS, PLACES = "task-words", "task-places"
"""Names of the contributions of single responses: their words, and their place in the file."""

SEGMENT = 50
"""Words of a segment of msttr."""

_ORDERS: Mapping[Of, tuple[int, ...]] = {
    "entropy": (1,),
    "cond-entropy": (1, 2),
    "avg-lengths": (),
    "msttr": (),
    "num-unigrams": (1,),
    "num-bigrams": (2,),
    "num-trigrams": (3,),
}
"""The n-grams that each value counts."""

Gram = tuple[str, ...]
_FIRST = str.maketrans("", "", "'.,?!)(%/-_")
_LAST = str.maketrans("", "", ":;")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class RichnessState:
    """Lengths of responses, counts of n-grams by order, and responses with their places where the order matters."""

    lengths: Moments = field(default_factory=Moments)
    counts: Mapping[int, Counter[Gram]] = field(default_factory=dict)
    placed: tuple[tuple[int, Gram], ...] = ()


@dataclass(frozen=True)
class Richness(Metric[RichnessState]):
    """How varied the words of the responses are."""

    family = "richness"
    presets = {name: {"of": name} for name in _ORDERS}
    subject = Need.TASK_TURNS
    needs = frozenset({Need.TASK_TURNS, Need.ONTOLOGY})
    counts_kinds = True

    of: Of = "entropy"

    @property
    def bounds(self) -> Bounds:
        return (0.0, 1.0 if self.of == "msttr" else math.inf)

    @property
    def better(self) -> Better | None:
        # Counts and entropies grow with the number of words, which is no merit; msttr does not.
        return "higher" if self.of == "msttr" else None

    def empty(self) -> RichnessState:
        return RichnessState()

    def partial(self, batch: Batch) -> Partial[RichnessState]:
        rows = batch.objects(Need.TASK_TURNS)
        words = words_of_responses(batch)
        lengths, moments = batch.derived("response lengths", partial(_lengths, words, batch.dialogues))
        times = batch.derived("times of responses", lambda: Counter(filter(None, words)))
        grams = {order: partial(_counted, times, order) for order in self._orders}
        counts = {order: batch.derived(("response grams", order), make) for order, make in grams.items()}
        placed: list[tuple[int, Gram]] = []
        if self.of == "msttr":
            placed = [(row["position"], each) for row, each in zip(rows, words, strict=True) if each is not None]
        state = RichnessState(moments, counts, tuple(placed))
        if self.of == "avg-lengths":
            return Partial(state, {self.name: lengths})
        rows_of_words = batch.derived("rows of words", lambda: _word_rows(words))
        contributions: dict[str, BatchContributions] = {WORDS: rows_of_words}
        if self.of == "msttr":
            places = [-1 if row["position"] is None else row["position"] for row in rows]
            contributions[PLACES] = RowSums(np.array(places, np.float64).reshape(-1, 1))
        return Partial(state, {}, contributions)

    def resampled(self, sample: Resamples) -> Floats:
        if self.of == "avg-lengths":
            return super().resampled(sample)
        if self.of == "msttr":
            words, whole, rest = segment_kinds(sample, WORDS, PLACES, SEGMENT)
            short = words <= SEGMENT
            with np.errstate(invalid="ignore"):  # 0 / 0: a resample without a response has no value
                return np.where(short, whole + rest, whole) / np.where(short, words, words // SEGMENT * SEGMENT)
        if self.of in ("entropy", "cond-entropy"):
            return self._entropies(sample)
        kinds = np.count_nonzero(ngram_totals(sample, WORDS, self._orders[0]), axis=0)
        return np.where(ngram_totals(sample, WORDS, 1).any(axis=0), kinds, np.nan)

    def _entropies(self, sample: Resamples) -> Floats:
        """The same sums as of a state, by counts: sum of c / N log2(c / N) = (sum of c log2 c) / N - log2 N."""
        words = ngram_totals(sample, WORDS, 1)
        total = words.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.of == "entropy":
                return cast(Floats, np.log2(total) - _bits(words, words) / total + 0.0)
            pairs = ngram_totals(sample, WORDS, 2)
            # Pairs are in the order of their first words: per word one sum over the pairs that begin with it.
            heads = cluster_grams(sample, WORDS, 2).heads
            firsts = np.flatnonzero(np.diff(heads, prepend=-1))
            begun = np.add.reduceat(pairs, firsts, axis=0) if len(firsts) else pairs[:0]
            return cast(Floats, (_bits(begun, words[heads[firsts]]) - _bits(pairs, pairs)) / total + 0.0)

    @property
    def _orders(self) -> tuple[int, ...]:
        return _ORDERS[self.of]

    def merge(self, left: RichnessState, right: RichnessState) -> RichnessState:
        nothing: Counter[Gram] = Counter()
        counts = {order: left.counts.get(order, nothing) + right.counts.get(order, nothing) for order in self._orders}
        return RichnessState(left.lengths + right.lengths, counts, left.placed + right.placed)

    def finish(self, state: RichnessState) -> Mapping[str, Estimate]:
        lengths = Estimate.of_moments(state.lengths, self.bounds)
        if self.of == "avg-lengths":
            return {self.name: lengths}
        value = self._value(state) if lengths.scored else math.nan
        return {self.name: Estimate(value, 0.0, lengths.rows, lengths.scored, corpus=True)}

    def _value(self, state: RichnessState) -> float:
        if self.of == "msttr":
            return segment_ratio(list(chain.from_iterable(words for _, words in sorted(state.placed))))
        if self.of == "entropy":
            return entropy(state.counts[1])
        if self.of == "cond-entropy":
            return conditional_entropy(state.counts[1], state.counts[2])
        return float(len(state.counts[self._orders[0]]))


def words_of_responses(batch: Batch) -> list[Gram | None]:
    """The words of each normalised response, None where it is missing; split once for all metrics of the batch."""
    responses = normalised_responses(batch)

    def make() -> list[Gram | None]:
        known = {text: words_of(text) for text in set(responses) if text is not None}
        return [None if text is None else known[text] for text in responses]

    return batch.derived("response words", make)


def words_of(text: str) -> Gram:
    """The words of a text as the package lexical-diversity splits it."""
    bare = text.replace("``", "").translate(_FIRST).replace("SYM", "").translate(_LAST)
    return tuple(_BLANKS.sub(" ", bare).lower().split(" "))


def _word_rows(responses: Sequence[Gram | None]) -> RowWords:
    """The words of responses, numbered; a response that is missing has none, an empty one has one."""
    numbers: dict[str, int] = {}
    said = [words or () for words in responses]
    ids = np.array([numbers.setdefault(word, len(numbers)) for words in said for word in words], np.int32)
    return RowWords(ids, offsets_of(map(len, said)), list(numbers))


def _bits(counts: Ids, inside: Ids) -> Floats:
    """Per resample the sum of c log2 d over counts c and d that are not 0."""
    logs = np.log2(np.maximum(np.arange(int(inside.max(initial=0)) + 1), 1))
    return np.asarray(np.einsum("kr,kr->r", counts, logs[inside]), np.float64)


def _lengths(responses: Sequence[Gram | None], dialogues: Ints) -> tuple[Floats, Moments]:
    lengths = np.array([math.nan if words is None else len(words) for words in responses], np.float64)
    return lengths, Moments.of(lengths, dialogues)


def _counted(responses: Counter[Gram], order: int) -> Counter[Gram]:
    """The n-grams within responses, from the number of times that each response occurs."""
    counts: Counter[Gram] = Counter()
    for words, times in responses.items():
        grams = zip(*(words[at:] for at in range(order)), strict=False)
        if times == 1:
            counts.update(grams)
        else:
            for gram in grams:
                counts[gram] += times
    return counts


def entropy(counts: Counter[Gram]) -> float:
    """Entropy of words in bits; the sum is exact, so that its order does not matter."""
    total = sum(counts.values())
    return -math.fsum(count / total * math.log2(count / total) for count in counts.values()) + 0.0


def conditional_entropy(words: Counter[Gram], pairs: Counter[Gram]) -> float:
    """Entropy of a word given the one before it, in bits."""
    total = sum(words.values())
    return -math.fsum(count / total * math.log2(count / words[pair[:1]]) for pair, count in pairs.items()) + 0.0


def segment_ratio(words: Sequence[str]) -> float:
    """Mean share of different words in segments of 50."""
    if len(words) <= SEGMENT:
        return len(set(words)) / len(words)
    segments = len(words) // SEGMENT
    different = sum(len(set(words[at * SEGMENT : (at + 1) * SEGMENT])) for at in range(segments))
    return different / (SEGMENT * segments)
