"""The names of the module `lsdscc.metrics`."""

from dialeval.lsdscc import LSDSCCScore, compute_score_on_corpus, compute_score_on_hypothesis_set

__all__ = ["LSDSCCScore", "compute_score_on_corpus", "compute_score_on_hypothesis_set"]
