"""The names of the module `lsdscc.align`; see `dialeval.metrics.coverage.aligners`."""

from dataclasses import dataclass

from dialeval.metrics.coverage import aligners
from dialeval.metrics.coverage.aligners import BleuAligner, NLTKBleuAligner

__all__ = ["BleuAligner", "NLTKBleuAligner", "NLTKNistAligner"]


@dataclass(frozen=True)
class NLTKNistAligner(aligners.NLTKNistAligner):
    """NIST over all orders up to n, which is 5 here as in the original (and in nltk)."""

    n: int = 5
