"""The names of the module `lsdscc.ds`; see `dialeval.lsdscc`. Without a separator, also as None, it is `</s>` there."""

from __future__ import annotations

from dialeval import lsdscc
from dialeval.data.formats.opening import PathSource
from dialeval.data.lsdscc.data import EOS, read_hypothesis_lines
from dialeval.lsdscc import ReferenceSet

__all__ = ["HypothesisSet", "ReferenceSet"]


class HypothesisSet(lsdscc.HypothesisSet):
    """The hypotheses of one query, each a list of words."""

    @classmethod
    def from_line(cls, line: str, eos: str | None = None) -> lsdscc.HypothesisSet:
        return super().from_line(line, EOS if eos is None else eos)

    @classmethod
    def load_corpus(cls, filename: PathSource, eos: str | None = None) -> list[lsdscc.HypothesisSet]:
        return [cls(row) for row in read_hypothesis_lines(filename, EOS if eos is None else eos)]
