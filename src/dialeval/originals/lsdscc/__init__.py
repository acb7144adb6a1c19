"""The names of the package `lsdscc`, with its modules `align`, `data`, `ds` and `metrics`; see `dialeval.lsdscc`."""

from dialeval.originals.lsdscc.ds import HypothesisSet, ReferenceSet
from dialeval.originals.lsdscc.metrics import LSDSCCScore, compute_score_on_corpus, compute_score_on_hypothesis_set

__all__ = [
    "HypothesisSet",
    "LSDSCCScore",
    "ReferenceSet",
    "compute_score_on_corpus",
    "compute_score_on_hypothesis_set",
]

__version__ = "0.3.6"
"""The version of the original whose names these are."""
