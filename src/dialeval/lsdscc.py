"""Diversity over grouped references: the interface of the LSDSCC program.

    from dialeval.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus

    hypotheses = HypothesisSet.load_corpus("hypotheses.txt")
    references = ReferenceSet.load_json_corpus("groups.json")
    compute_score_on_corpus(hypotheses, references)     # Scores(mds=..., pds=..., max_bleu=...)

A front door: everything lives elsewhere. `dialeval lsdscc` and `dialeval.evaluate(..., reference_groups=...)` give the
same figures with intervals, signatures and one value per query.
"""

from dialeval.data.lsdscc.hypotheses import HypothesisSet
from dialeval.data.lsdscc.reference_groups import ReferenceSet
from dialeval.metrics.coverage.aligners import (
    BleuAligner,
    EmbeddingAligner,
    NLTKBleuAligner,
    NLTKNistAligner,
    SacreAligner,
)
from dialeval.metrics.coverage.alignment import QueryAlignment
from dialeval.metrics.coverage.scores import (
    Scores,
    align_corpus,
    compute_score_on_corpus,
    compute_score_on_hypothesis_set,
)

__all__ = [
    "BleuAligner",
    "EmbeddingAligner",
    "HypothesisSet",
    "NLTKBleuAligner",
    "NLTKNistAligner",
    "QueryAlignment",
    "ReferenceSet",
    "SacreAligner",
    "Scores",
    "align_corpus",
    "compute_score_on_corpus",
    "compute_score_on_hypothesis_set",
]
