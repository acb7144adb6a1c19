"""BLEU of delexicalized responses against a reference set: `bleu/mwz22` and so on, from 0 to 100.

    BLEU = 100 * BP * (p_1 p_2 p_3 p_4)**(1/4),   BP = exp(min(0, 1 - reference length / response length))

with p_n the fraction of the responses' n-grams that are in their references too, over all turns together: sacreBLEU's
corpus BLEU with its defaults (tokens 13a, exponential smoothing, one reference). The value of a single turn, its item,
is sacreBLEU's sentence BLEU. Responses are normalized first (`suites/multiwoz/states.py`).

Papers: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation", ACL; Post 2018, "A Call
for Clarity in Reporting BLEU Scores", WMT.

Where the data has several reference sets, each gives a value of its own; MultiWOZ 2.2 (`mwz22`) comes first.

Edge cases: turns that the system does not give are left out, as in the original, unless `missing=failed`: then they
count as empty. More turns than references end the original; here the reader refuses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from dialeval.core.arrays import Floats, Ints, offsets_of
from dialeval.core.batch import Batch, Need
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.errors import NeedError
from dialeval.core.fold import Partial
from dialeval.metrics.bleu_counts import NIST, NO_REFERENCE, BleuCounts, corpus_bleu, log_precisions, sacre_bleu
from dialeval.metrics.counting import CountMetric, Flags, Missing, SummedCounts
from dialeval.suites.multiwoz.data import MAIN_REFERENCES, ReferenceSets
from dialeval.suites.multiwoz.turns import normalized_responses
from dialeval.text.separation import split_13a
from dialeval.text.vocabulary import Vocabulary

ORDERS = 4


@dataclass(frozen=True)
class TaskBleu(CountMetric):
    """Corpus BLEU of normalized responses against their references, from 0 to 100."""

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

    def partial(self, batch: Batch) -> Partial[SummedCounts]:
        return batch.derived(("task bleu", self), lambda: super(TaskBleu, self).partial(batch))

    def row_counts(self, batch: Batch) -> tuple[Ints, Flags]:
        """Matches and n-grams by order, words of the response, words of the reference."""
        references: ReferenceSets = batch.resource(Need.REFERENCE_SETS)
        responses = normalized_responses(batch)
        if self.references not in references.sets:
            raise NeedError(f"the data has no references {self.references!r}; it has {', '.join(references.sets)}")
        texts = references.sets[self.references]
        rows = batch.objects(Need.TASK_TURNS)

        def make() -> tuple[Ints, Flags]:
            here = ["" if text is None and self.missing == "failed" else text for text in responses]
            there = [
                texts[row["dialogue"]][row["turn"]] for row, text in zip(rows, here, strict=True) if text is not None
            ]
            split = partial(_split, vocabulary=cast(Vocabulary, batch.vocabulary))
            lists = offsets_of(text is not None for text in here)
            counts = BleuCounts.of(split([text or "" for text in here]), split(there), lists)
            lengths = (counts.response_lengths, counts.reference_lengths)
            sums = np.column_stack((counts.matches[:, :ORDERS], counts.totals[:, :ORDERS], *lengths))
            return sums, counts.reference_lengths != NO_REFERENCE

        return batch.derived(self.contribution, make)

    def formula(self, counts: Ints | Floats) -> Floats:
        return np.array([corpus_bleu(*line) for line in counts.tolist()], np.float64)

    def row_values(self, counts: Ints) -> Floats:
        matches, totals, lengths = np.split(counts, (ORDERS, 2 * ORDERS), axis=1)
        turns = BleuCounts(matches, totals, lengths[:, 0], lengths[:, 1])
        return 100 * sacre_bleu(turns, log_precisions(turns, NIST), ORDERS)


def _split(texts: Sequence[str], vocabulary: Vocabulary) -> TokenColumn:
    return split_13a(TextColumn.from_strings(texts), vocabulary)
