"""The names of the module `lsdscc.align`."""

from __future__ import annotations

from dataclasses import dataclass

from dialeval import lsdscc
from dialeval.lsdscc import BleuAligner, NLTKBleuAligner

__all__ = ["BleuAligner", "NLTKBleuAligner", "NLTKNistAligner"]


@dataclass(eq=False)
class NLTKNistAligner(lsdscc.NLTKNistAligner):
    """NIST over all orders up to n, which is 5 here as in the original (and in nltk)."""

    n: int | None = 5
