"""The names of the module `lsdscc.ds`. Without a separator, also as None, it is `</s>`."""

from __future__ import annotations

from dialeval import lsdscc
from dialeval.io.opening import PathSource
from dialeval.io.rows import EOS
from dialeval.lsdscc import ReferenceSet
from dialeval.suites.lsdscc.data import read_hypothesis_lines

__all__ = ["HypothesisSet", "ReferenceSet"]

DEFAULT_EOS = EOS


class HypothesisSet(lsdscc.HypothesisSet):
    """The hypotheses of one query, each a list of words."""

    @classmethod
    def from_line(cls, line: str, eos: str | None = None) -> lsdscc.HypothesisSet:
        return super().from_line(line, EOS if eos is None else eos)

    @classmethod
    def load_corpus(cls, filename: PathSource, eos: str | None = None) -> list[lsdscc.HypothesisSet]:
        return [cls(row) for row in read_hypothesis_lines(filename, EOS if eos is None else eos)]
