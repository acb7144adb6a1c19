"""The names of the module `lsdscc.align`; see `dialeval.metrics.coverage.alignment`."""

from dataclasses import dataclass

from dialeval.metrics.coverage import alignment
from dialeval.metrics.coverage.alignment import BleuAligner, NLTKBleuAligner

__all__ = ["BleuAligner", "NLTKBleuAligner", "NLTKNistAligner"]


@dataclass(frozen=True)
class NLTKNistAligner(alignment.NLTKNistAligner):
    """NIST over all orders up to n, which is 5 here as in the original (and in nltk)."""

    n: int = 5
