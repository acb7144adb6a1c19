"""The names of the module `lsdscc`; see `dialeval.lsdscc`."""

from dialeval.lsdscc import (
    HypothesisSet,
    ReferenceSet,
    compute_score_on_corpus,
    compute_score_on_hypothesis_set,
)

__all__ = ["HypothesisSet", "ReferenceSet", "compute_score_on_corpus", "compute_score_on_hypothesis_set"]
