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
from typing import Literal

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import Better, Estimate, Metric, Partial
from dialeval.core.needs import Need
from dialeval.metrics.task.turns import normalised_responses

Of = Literal["entropy", "cond-entropy", "avg-lengths", "msttr", "num-unigrams", "num-bigrams", "num-trigrams"]
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

NOTHING = Moments()
"""The moments of no rows."""


@dataclass(frozen=True, slots=True)
class RichnessState:
    """Lengths of responses, counts of n-grams by order, and responses with their places where the order matters."""

    lengths: Moments = NOTHING
    counts: Mapping[int, Counter[Gram]] = field(default_factory=dict)
    placed: tuple[tuple[int, Gram], ...] = ()


@dataclass(frozen=True)
class Richness(Metric[RichnessState]):
    """How varied the words of the responses are."""

    family = "richness"
    presets = {name: {"of": name} for name in _ORDERS}
    subject = Need.TASK_TURNS
    needs = frozenset({Need.TASK_TURNS, Need.ONTOLOGY})

    of: Of = "entropy"

    def __post_init__(self) -> None:
        if self.of not in _ORDERS:
            raise SettingError(f"richness has of={'|'.join(_ORDERS)}, not {self.of!r}")

    @property
    def better(self) -> Better | None:
        # Counts and entropies grow with the number of words, which is no merit; msttr does not.
        return "higher" if self.of == "msttr" else None

    def empty(self) -> RichnessState:
        return RichnessState()

    def partial(self, batch: Batch) -> Partial[RichnessState]:
        rows = batch.objects(Need.TASK_TURNS)
        words = words_of_responses(batch)
        lengths, moments = batch.derived("response lengths", partial(_lengths, words))
        times = batch.derived("times of responses", lambda: Counter(filter(None, words)))
        grams = {order: partial(_counted, times, order) for order in self._orders}
        counts = {order: batch.derived(("response grams", order), make) for order, make in grams.items()}
        placed: list[tuple[int, Gram]] = []
        if self.of == "msttr":
            placed = [(row["position"], each) for row, each in zip(rows, words, strict=True) if each is not None]
        items = {self.name: lengths} if self.of == "avg-lengths" else {}
        return Partial(RichnessState(moments, counts, tuple(placed)), items)

    @property
    def _orders(self) -> tuple[int, ...]:
        return _ORDERS[self.of]

    def merge(self, left: RichnessState, right: RichnessState) -> RichnessState:
        nothing: Counter[Gram] = Counter()
        counts = {order: left.counts.get(order, nothing) + right.counts.get(order, nothing) for order in self._orders}
        return RichnessState(left.lengths + right.lengths, counts, left.placed + right.placed)

    def finish(self, state: RichnessState) -> Mapping[str, Estimate]:
        lengths = Estimate.of_moments(state.lengths)
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


def _lengths(responses: Sequence[Gram | None]) -> tuple[Floats, Moments]:
    lengths = np.array([math.nan if words is None else len(words) for words in responses], np.float64)
    return lengths, Moments.of(lengths)


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
