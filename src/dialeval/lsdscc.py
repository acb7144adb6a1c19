"""Diversity over grouped references: the interface of the LSDSCC program.

    from dialeval.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus

    hypotheses = HypothesisSet.load_corpus("hypotheses.txt")
    references = ReferenceSet.load_json_corpus("groups.json")     # without a file: the installed data pack lsdscc
    compute_score_on_corpus(hypotheses, references)     # LSDSCCScore(mds=..., pds=..., max_bleu=...)

Hypothesis sets and reference sets are anything of the right shape: lists of lists of words, `HypothesisSet` and
`ReferenceSet`, strings in place of lists of words. `suites.lsdscc.alignment` defines the figures. `dialeval lsdscc`
and `dialeval.evaluate(..., reference_groups=...)` give the same figures with intervals, signatures and one value per
query.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dialeval.core.arguments import check_arguments
from dialeval.core.errors import DataError, Problem
from dialeval.core.exact import Moments
from dialeval.suites.lsdscc.alignment import (
    Aligner,
    BleuAligner,
    CorpusAlignment,
    EmbeddingAligner,
    GroupComparison,
    NLTKBleuAligner,
    NLTKNistAligner,
    QueryAlignment,
    SacreAligner,
    align,
    to_aligner,
)
from dialeval.suites.lsdscc.data import HypothesisSet, ReferenceSet, iterate

__all__ = [
    "BleuAligner",
    "EmbeddingAligner",
    "HypothesisSet",
    "LSDSCCScore",
    "NLTKBleuAligner",
    "NLTKNistAligner",
    "QueryAlignment",
    "ReferenceSet",
    "SacreAligner",
    "align_corpus",
    "compute_score_on_corpus",
    "compute_score_on_hypothesis_set",
]

_LOG = logging.getLogger(__name__)


class LSDSCCScore(NamedTuple):
    """The three scores of LSDSCC of a hypothesis set, or their means over a corpus; NaN where there is none.

    Attributes:
        mds: Mean diversity score: the fraction of reference groups that hypotheses cover.
        pds: Probabilistic diversity score: the fraction of references in these groups.
        max_bleu: The mean similarity of a hypothesis to its group.

    Examples:
        >>> from dialeval.lsdscc import compute_score_on_hypothesis_set
        >>> compute_score_on_hypothesis_set(["tea please"], [["tea please"], ["coffee"]])
        LSDSCCScore(mds=0.5, pds=0.5, max_bleu=1.0)
    """

    mds: float
    pds: float
    max_bleu: float


def compute_score_on_hypothesis_set(
    hypothesis_set: Any, reference_set: Any, aligner: Aligner | None = None
) -> LSDSCCScore:
    """Compute the scores of one query.

    Args:
        hypothesis_set: The hypotheses: texts or lists of words.
        reference_set: The reference groups: lists of texts or of lists of words.
        aligner: The similarity of a hypothesis and a reference group: one of the aligners of this module, or a function
            of a hypothesis and a group. None: `BleuAligner()`.

    Returns:
        The three scores.

    Raises:
        DataError: The hypotheses or references have another form.

    Examples:
        >>> from dialeval.lsdscc import compute_score_on_hypothesis_set
        >>> compute_score_on_hypothesis_set(["tea please", "coffee"], [["tea please", "some tea"], ["coffee"]]).mds
        1.0
    """
    found = _align([hypothesis_set], [reference_set], aligner)
    return LSDSCCScore(float(found.mds[0]), float(found.pds[0]), float(found.max_bleu[0]))


def compute_score_on_corpus(
    hypothesis_corpus: Sequence[Any], reference_corpus: Sequence[Any], aligner: Aligner | None = None
) -> LSDSCCScore:
    """Compute the means of the scores over all queries that can be scored; a log message counts the others.

    Args:
        hypothesis_corpus: A hypothesis set per query.
        reference_corpus: A reference set per query.
        aligner: The similarity of a hypothesis and a reference group: one of the aligners of this module, or a function
            of a hypothesis and a group. None: `BleuAligner()`.

    Returns:
        The three means.

    Raises:
        DataError: There are no queries, or the two corpora have different numbers of them.

    Examples:
        >>> from dialeval.lsdscc import compute_score_on_corpus
        >>> references = [[["tea please"], ["coffee"]], [["no thanks"]]]
        >>> compute_score_on_corpus([["tea please"], ["no thanks"]], references)
        LSDSCCScore(mds=0.75, pds=0.75, max_bleu=1.0)
    """
    found = _align(hypothesis_corpus, reference_corpus, aligner)
    unscored = int(np.isnan(found.mds).sum())
    if unscored:
        _LOG.warning("%d of %d queries cannot be scored and are left out of the means", unscored, len(found.mds))
    return LSDSCCScore(*(Moments.of(values).mean for values in (found.mds, found.pds, found.max_bleu)))


@check_arguments
def align_corpus(
    hypothesis_corpus: Sequence[Any], reference_corpus: Sequence[Any], aligner: Aligner | None = None
) -> list[QueryAlignment]:
    """Align every hypothesis with a reference group.

    Args:
        hypothesis_corpus: A hypothesis set per query.
        reference_corpus: A reference set per query.
        aligner: The similarity of a hypothesis and a reference group: one of the aligners of this module, or a function
            of a hypothesis and a group. None: `BleuAligner()`.

    Returns:
        The alignment of each query.

    Raises:
        DataError: There are no queries, or the two corpora have different numbers of them.

    Examples:
        >>> from dialeval.lsdscc import align_corpus
        >>> alignment = align_corpus([["some coffee"]], [[["tea please"], ["coffee"]]])[0]
        >>> alignment.aligned, alignment.unreached
        ((1,), (0,))
    """
    return _align(hypothesis_corpus, reference_corpus, aligner).list_queries()


def _align(hypotheses: Iterable[Any], references: Iterable[Any], aligner: Aligner | None) -> CorpusAlignment:
    hypotheses, references = (list(iterate(corpus, "corpus")) for corpus in (hypotheses, references))
    if len(hypotheses) != len(references):
        what = f"{len(hypotheses)} hypothesis sets and {len(references)} reference sets"
        raise DataError(Problem("corpus", None, what, "give one of each per query"))
    if not hypotheses:
        raise DataError(Problem("corpus", None, "holds no queries", "give at least one"))
    left = [each if isinstance(each, HypothesisSet) else HypothesisSet(each) for each in hypotheses]
    right = [each if isinstance(each, ReferenceSet) else ReferenceSet(each) for each in references]
    return align(GroupComparison.of_words(left, right), to_aligner(aligner))
