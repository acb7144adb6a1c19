"""Coverage: how many of the things one could answer a set of sampled responses covers (MDS, PDS, MaxBLEU).

A query has several hypotheses, sampled from a system, and references in groups of one meaning each. An aligner puts
each hypothesis into the group that it is most similar to:

    mds      = groups that some hypothesis landed in / groups
    pds      = references in those groups / references
    max-bleu = mean over the hypotheses of their similarity to the group they landed in

one value per query, then the mean. The three share one alignment.

- `aligner=bleu` (the default) is the LSDSCC program's own: BLEU without brevity penalty and with one added to every
  count, unigrams included. It is kept so that figures can be compared, but it favors short hypotheses: an empty one
  has 1.0 with every group, a wrong word 0.84, two wrong words 0.64. A warning says when such hypotheses dominate.
- `aligner=nltk-bleu` with smoothing method `smooth` (0 is none; other aligners do not look at it) and
  `aligner=nltk-nist` are the other two of the original.
- `aligner=sacre` (effective order, brevity penalty) and `aligner=embedding` (cosine of averaged word vectors, weighted
  by the training text if there is one) are better choices. A hypothesis that has nothing in common with any group lands
  nowhere, whereas the original puts it into the first one, so that its MDS is never 0.
- `n`: the longest n-grams that are counted.

Paper: Xu et al. 2018, "LSDSCC: a Large Scale Domain-Specific Conversational Corpus for Response Generation with
Diversity Oriented Evaluation Metrics", NAACL. Its exact Multi-BLEU is not known; the original says that it could not
reproduce the paper's figures.

Edge cases: of equally similar groups it is the first. A query with an empty group or without groups is not scored, nor
one in which a hypothesis cannot be compared: under NIST one of fewer than n words, under `embedding` one without a
known word. The original ends the whole run there. Every other query without hypotheses has 0 for mds and pds, and no
max-bleu.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import RaggedColumn
from dialeval.core.fold import Bounds, RowMetric
from dialeval.core.inputs import Input
from dialeval.core.signature import Signature
from dialeval.metrics.bleu_counts import Method
from dialeval.metrics.embedding import SIF_WEIGHT, WordValues
from dialeval.metrics.words import TrainText, VectorTable
from dialeval.suites.lsdscc import alignment as aligning
from dialeval.suites.lsdscc.data import GroupedColumn
from dialeval.text.tokenizers import DEFAULT, Tokenizer, tokenize, tokens
from dialeval.text.vocabulary import Vocabulary

HIGH_FLOOR = 0.3
"""The floor of four words: above it an answer of four wrong words would be a good one."""
SAMPLED = 10_000
"""Hypotheses whose floor is computed, evenly spread over all: enough for a mean."""


@dataclass(frozen=True)
class Coverage(RowMetric):
    """Groups of references that a set of hypotheses covers, and how close it comes to them."""

    family = "coverage"
    presets = {"mds": {"by": "mds"}, "pds": {"by": "pds"}, "max-bleu": {"by": "max-bleu"}}
    subject = inputs.HYPOTHESES
    definition = 2
    better = "higher"
    limits = {"n": (1, aligning.MOST_ORDERS)}

    by: Literal["mds", "pds", "max-bleu"] = "mds"
    aligner: aligning.AlignerName = "bleu"
    n: int = aligning.DEFAULT_N
    smooth: Method = 0
    tokenizer: Tokenizer = DEFAULT

    @property
    def bounds(self) -> Bounds:  # type: ignore[override]
        if self.by != "max-bleu":
            return (0.0, 1.0)
        return {"embedding": (-1.0, 1.0), "nltk-nist": (0.0, math.inf)}.get(self.aligner, (0.0, 1.0))

    @property
    def needs(self) -> frozenset[Input]:  # type: ignore[override]
        vectors = {inputs.EMBEDDINGS} if self.aligner == "embedding" else set()
        return frozenset({inputs.HYPOTHESES, inputs.REFERENCE_GROUPS} | vectors)

    @property
    def wants(self) -> frozenset[Input]:
        return frozenset({inputs.TRAIN} if self.aligner == "embedding" else ())

    def signature(self) -> Signature:
        plain = super().signature()
        return plain.with_fields(weight=SIF_WEIGHT) if self.aligner == "embedding" else plain

    def score(self, batch: Batch) -> Floats:
        aligned = self.align_batch(batch)
        return {"mds": aligned.mds, "pds": aligned.pds, "max-bleu": aligned.max_bleu}[self.by]

    def align_batch(self, batch: Batch) -> aligning.CorpusAlignment:
        """Align a batch; done once for all metrics of the batch that agree on it."""
        key = ("alignment", self.aligner, self.n, self.smooth, self.tokenizer)
        hypotheses, references = (
            tokens(batch, need, self.tokenizer) for need in (inputs.HYPOTHESES, inputs.REFERENCE_GROUPS)
        )
        groups = cast(GroupedColumn, batch.lists(inputs.REFERENCE_GROUPS))
        lists = batch.lists(inputs.HYPOTHESES).offsets
        pairs = aligning.GroupComparison(hypotheses, lists, references, groups.groups, groups.lists)
        return batch.derive(key, lambda: aligning.align(pairs, self._make_aligner(batch)))

    def _make_aligner(self, batch: Batch) -> aligning.PairAligner:
        if self.aligner == "embedding":
            vectors: VectorTable = batch.resource(inputs.EMBEDDINGS)
            train: TrainText | None = batch.resource(inputs.TRAIN) if batch.has(inputs.TRAIN) else None
            shares = None if train is None else train.compute_shares(1, self.tokenizer, "self")
            return aligning.EmbeddingAligner(WordValues.of(vectors, None, shares))
        if self.aligner == "nltk-bleu":
            return aligning.NLTKBleuAligner(self.smooth, self.n)
        classes: dict[str, Callable[[int], aligning.PairAligner]]
        classes = {"bleu": aligning.BleuAligner, "nltk-nist": aligning.NLTKNistAligner, "sacre": aligning.SacreAligner}
        return classes[self.aligner](self.n)


def compute_bleu_floors(lengths: Ints, n: int) -> Floats:
    """Return what the default aligner gives to hypotheses of some lengths without a single word in common.

        floor of L words = exp(mean over orders i <= n of log(1 / (max(0, L - i + 1) + 1)))

    is 1.0 for no word, 0.84 for one, 0.64 for two, 0.30 for four, 0.07 for fifteen.
    """
    ngrams = np.maximum(lengths[:, None] - np.arange(n), 0)
    return cast(Floats, np.exp(-np.log(ngrams + 1.0).mean(axis=1)))


def warn_of_short(system: str, hypotheses: RaggedColumn, n: int) -> str | None:
    """Return a warning where hypotheses are so short that the default aligner cannot tell good from bad.

    Their floors then have a mean of `HIGH_FLOOR` or more, and the scores depend little on what was said.
    """
    texts = hypotheses.values
    if not len(texts):
        return None
    step = -(-len(texts) // SAMPLED)
    lengths = tokenize(texts.take(np.arange(0, len(texts), step)), Vocabulary()).lengths
    floor = float(compute_bleu_floors(lengths, n).mean())
    if floor < HIGH_FLOOR:
        return None
    return (
        f"{system}: short hypotheses dominate (a median of {np.median(lengths):g} words): without one word in common "
        f"the aligner `bleu` would still give them {floor:.2f} on average; trust `sacre` or `embedding` more"
    )
