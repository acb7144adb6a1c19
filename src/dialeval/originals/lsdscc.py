"""The names of the package `lsdscc` and of its modules `ds`, `align` and `metrics`; see `dialeval.lsdscc`.

Without a separator, also as None, it is `</s>` there.
"""

from __future__ import annotations

from dataclasses import dataclass

from dialeval import lsdscc
from dialeval.io.opening import PathSource
from dialeval.io.rows import EOS
from dialeval.lsdscc import (
    BleuAligner,
    LSDSCCScore,
    NLTKBleuAligner,
    ReferenceSet,
    compute_score_on_corpus,
    compute_score_on_hypothesis_set,
)
from dialeval.suites.lsdscc.data import read_hypothesis_lines

__all__ = [
    "BleuAligner",
    "HypothesisSet",
    "LSDSCCScore",
    "NLTKBleuAligner",
    "NLTKNistAligner",
    "ReferenceSet",
    "compute_score_on_corpus",
    "compute_score_on_hypothesis_set",
]

__version__ = "0.3.6"
"""The version of the original whose names these are."""


class HypothesisSet(lsdscc.HypothesisSet):
    """The hypotheses of one query, each a list of words."""

    @classmethod
    def from_line(cls, line: str, eos: str | None = None) -> lsdscc.HypothesisSet:
        return super().from_line(line, EOS if eos is None else eos)

    @classmethod
    def load_corpus(cls, filename: PathSource, eos: str | None = None) -> list[lsdscc.HypothesisSet]:
        return [cls(row) for row in read_hypothesis_lines(filename, EOS if eos is None else eos)]


@dataclass(frozen=True)
class NLTKNistAligner(lsdscc.NLTKNistAligner):
    """NIST over all orders up to n, which is 5 here as in the original (and in nltk)."""

    n: int = 5
