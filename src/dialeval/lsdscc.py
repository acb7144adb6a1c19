"""Diversity over grouped references: the interface of the LSDSCC program.

    from dialeval.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus

    hypotheses = HypothesisSet.load_corpus("hypotheses.txt")
    references = ReferenceSet.load_json_corpus("groups.json")     # without a file: the installed data pack lsdscc
    compute_score_on_corpus(hypotheses, references)     # LSDSCCScore(mds=..., pds=..., max_bleu=...)

Hypothesis sets and reference sets are anything of the right shape: lists of lists of words, `HypothesisSet` and
`ReferenceSet`, strings in place of lists of words. `suites.lsdscc.alignment` defines the figures. `dialeval lsdscc`
and `evaluate` give the same figures with intervals, signatures and one value per query.

Nothing is computed here; see `dialeval.suites.lsdscc.evaluation`.
"""

from dialeval.suites.lsdscc.alignment import (
    BleuAligner,
    EmbeddingAligner,
    NLTKBleuAligner,
    NLTKNistAligner,
    QueryAlignment,
    SacreAligner,
)
from dialeval.suites.lsdscc.data import HypothesisSet, ReferenceSet
from dialeval.suites.lsdscc.evaluation import (
    LSDSCCScore,
    align_corpus,
    compute_score_on_corpus,
    compute_score_on_hypothesis_set,
)
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses as evaluate

__all__ = [
    "BleuAligner",
    "EmbeddingAligner",
    "HypothesisSet",
    "LSDSCCScore",
    "NLTKBleuAligner",
    "NLTKNistAligner",
    "QueryAlignment",
    "ReferenceSet",
    "SacreAligner",
    "align_corpus",
    "compute_score_on_corpus",
    "compute_score_on_hypothesis_set",
    "evaluate",
]
