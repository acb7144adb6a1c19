"""BLEU of delexicalised responses against a reference set: `bleu/mwz22` and so on, from 0 to 100.

    BLEU = 100 * BP * (p_1 p_2 p_3 p_4)**(1/4),   BP = exp(min(0, 1 - reference length / response length))

with p_n the share of the responses' n-grams that stand in their references too, over all turns together: sacreBLEU's
corpus BLEU with its defaults (tokens 13a, exponential smoothing, one reference). The value of a single turn, its item,
is sacreBLEU's sentence BLEU. Responses are normalised first (`text/delexicalised.py`).

Papers: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL; Post 2018, "A Call
for Clarity in Reporting BLEU Scores", WMT.

Where the data has several reference sets, each gives a value of its own; MultiWOZ 2.2 (`mwz22`) comes first.

Edge cases: turns that the system does not give are left out, as in the original, unless `missing=failed`: then they
count as empty. More turns than references end the original; here the reader refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.errors import NeedError
from dialeval.core.needs import Need
from dialeval.data.task.corpus import MAIN_REFERENCES, ReferenceSets
from dialeval.metrics.counting import CountMetric, Flags
from dialeval.metrics.overlap.bleu_counts import NO_REFERENCE, BleuCounts
from dialeval.metrics.overlap.smoothing import NIST, corpus_bleu, log_precisions, sacre_bleu
from dialeval.metrics.task.turns import Missing, normalised_responses
from dialeval.text.mteval import parts_13a, tokens_13a

ORDERS = 4
_KEY_BITS = 62
"""Bits of a key that holds a row and an n-gram."""


@dataclass(frozen=True)
class TaskBleu(CountMetric):
    """Share of the n-grams of normalised responses that their references have too, from 0 to 100."""

    family = "task-bleu"
    presets = {f"bleu/{MAIN_REFERENCES}": {}}
    subject = Need.TASK_TURNS
    needs = frozenset({Need.TASK_TURNS, Need.ONTOLOGY, Need.REFERENCE_SETS})
    better = "higher"
    bounds = (0.0, 100.0)
    width = 2 * ORDERS + 2

    references: str = MAIN_REFERENCES
    missing: Missing = "ignored"

    @property
    def key(self) -> str:
        """The key of its result: that of the preset under changed settings too."""
        return f"bleu/{self.references}"

    @property
    def contribution(self) -> str:
        return f"task-bleu/{self.references}/{self.missing}"

    def row_counts(self, batch: Batch) -> tuple[Ints, Flags]:
        """Matches and n-grams by order, words of the response, words of the reference."""
        references: ReferenceSets = batch.resource(Need.REFERENCE_SETS)
        responses = normalised_responses(batch)
        if self.references not in references.sets:
            raise NeedError(f"the data has no references {self.references!r}; it has {', '.join(references.sets)}")
        texts = references.sets[self.references]
        rows = batch.objects(Need.TASK_TURNS)

        def make() -> tuple[Ints, Flags]:
            here = ["" if text is None and self.missing == "failed" else text for text in responses]
            there = [
                None if text is None else texts[row["dialogue"]][row["turn"]]
                for row, text in zip(rows, here, strict=True)
            ]
            split = _Split()
            counts = counts_of([split(text) for text in here], [split(text) for text in there], len(split.ids))
            lengths = (counts.response_lengths, counts.reference_lengths)
            return np.column_stack((counts.matches, counts.totals, *lengths)), counts.reference_lengths != NO_REFERENCE

        return batch.derived(self.contribution, make)

    def formula(self, counts: Ints | Floats) -> Floats:
        return np.array([corpus_bleu(*line) for line in counts.tolist()], np.float64)

    def row_values(self, counts: Ints) -> Floats:
        matches, totals, lengths = np.split(counts, (ORDERS, 2 * ORDERS), axis=1)
        turns = BleuCounts(matches, totals, lengths[:, 0], lengths[:, 1])
        return 100 * sacre_bleu(turns, log_precisions(turns, NIST), ORDERS)


# Every system has many of the same parts of texts, and so have the references.
_tokens = lru_cache(maxsize=1 << 16)(tokens_13a)


class _Split:
    """Splits texts into ids of tokens, each distinct text and each distinct part between blanks once."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self._texts: dict[str, list[int]] = {}
        self._parts: dict[str, list[int]] = {}

    def __call__(self, text: str | None) -> list[int] | None:
        if text is None:
            return None
        known = self._texts.get(text)
        if known is None:
            known = self._texts[text] = []
            for part in parts_13a(text):
                ids = self._parts.get(part)
                if ids is None:
                    ids = [self.ids.setdefault(token, len(self.ids)) for token in _tokens(part)]
                    self._parts[part] = ids
                known += ids
        return known


def counts_of(
    responses: Sequence[Sequence[int] | None], references: Sequence[Sequence[int] | None], words: int
) -> BleuCounts:
    """The BLEU counts of each pair; a row without a response has no reference either.

    By sorting with numpy and not by `bleu_kernel`, since loading numba takes longer than this whole metric.
    """
    count = len(responses)
    both = [*responses, *references]
    lengths = np.fromiter((len(text or ()) for text in both), np.int64, 2 * count)
    ids = np.fromiter(chain.from_iterable(text or () for text in both), np.int64, int(lengths.sum()))
    rows = np.repeat(np.arange(2 * count), lengths)
    here, there = lengths[:count], lengths[count:]
    matches = np.zeros((count, ORDERS), np.int64)
    for order in range(1, ORDERS + 1):
        matches[:, order - 1] = _matches(*_grams(ids, rows, order, max(words, 2)), count)
    totals = np.maximum(here[:, None] - np.arange(ORDERS), 0)
    missing = np.array([response is None for response in responses], np.bool_)
    return BleuCounts(matches, totals, here, np.where(missing, NO_REFERENCE, there))


def _grams(ids: Ints, rows: Ints, order: int, words: int) -> tuple[Ints, Ints, int]:
    """A number for each n-gram within a row, equal for equal ones and below the third value; and the row it is in."""
    count = max(len(ids) - order + 1, 0)
    numbers: Ints = np.zeros(count, np.int64)
    below = 1
    for offset in range(order):
        if (below * words).bit_length() > _KEY_BITS:
            numbers, below = _ranks(numbers)
        numbers = numbers * words + ids[offset : offset + count]
        below *= words
    inside = rows[:count] == rows[len(rows) - count :]
    return numbers[inside], rows[:count][inside], below


def _matches(numbers: Ints, rows: Ints, below: int, count: int) -> Ints:
    """How many n-grams of each response stand in its reference, which is `count` rows on, each at most as often."""
    if (below * count).bit_length() > _KEY_BITS:
        numbers, below = _ranks(numbers)
    first = rows < count
    here, times = np.unique(rows[first] * below + numbers[first], return_counts=True)
    there, limits = np.unique((rows[~first] - count) * below + numbers[~first], return_counts=True)
    _, left, right = np.intersect1d(here, there, assume_unique=True, return_indices=True)
    sums = np.bincount(here[left] // below, weights=np.minimum(times[left], limits[right]), minlength=count)
    return sums.astype(np.int64)


def _ranks(numbers: Ints) -> tuple[Ints, int]:
    """Each number replaced by its rank among the different numbers that occur, and how many of these there are."""
    distinct, ranks = np.unique(numbers, return_inverse=True)
    return ranks.astype(np.int64), len(distinct)
