"""The names of the module `lsdscc`; see `dialeval.lsdscc`."""

from dialeval.lsdscc import compute_score_on_corpus, compute_score_on_hypothesis_set
from dialeval.originals.lsdscc.ds import HypothesisSet, ReferenceSet

__all__ = ["HypothesisSet", "ReferenceSet", "compute_score_on_corpus", "compute_score_on_hypothesis_set"]
