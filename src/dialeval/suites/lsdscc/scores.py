"""The scores of the LSDSCC program for lists of words, as `dialeval.lsdscc` offers them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dialeval.core.errors import DataError, Problem
from dialeval.core.exact import Moments
from dialeval.suites.lsdscc.alignment import (
    Aligner,
    CorpusAlignment,
    GroupComparison,
    QueryAlignment,
    align,
    to_aligner,
)
from dialeval.suites.lsdscc.data import HypothesisSet, ReferenceSet, iterate

_LOG = logging.getLogger("dialeval.lsdscc")


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
    hypothesis_set: object, reference_set: object, aligner: Aligner | None = None
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
    (query,) = _align([hypothesis_set], [reference_set], aligner).list_queries()
    return LSDSCCScore(query.mds, query.pds, query.max_bleu)


def compute_score_on_corpus(
    hypothesis_corpus: Sequence[object],
    reference_corpus: Sequence[object],
    aligner: Aligner | None = None,
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
    aligned = _align(hypothesis_corpus, reference_corpus, aligner)
    if unscored := int(np.isnan(aligned.mds).sum()):
        _LOG.warning("%d of %d queries cannot be scored and are left out of the means", unscored, len(aligned.mds))
    return LSDSCCScore(*(Moments.of(values).mean for values in (aligned.mds, aligned.pds, aligned.max_bleu)))


def align_corpus(
    hypothesis_corpus: Sequence[object],
    reference_corpus: Sequence[object],
    aligner: Aligner | None = None,
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


def _align(hypotheses: Iterable[object], references: Iterable[object], aligner: Aligner | None) -> CorpusAlignment:
    left = [one if isinstance(one, HypothesisSet) else HypothesisSet(one) for one in iterate(hypotheses, "corpus")]
    right = [one if isinstance(one, ReferenceSet) else ReferenceSet(one) for one in iterate(references, "corpus")]
    if len(left) != len(right):
        what = f"{len(left)} hypothesis sets and {len(right)} reference sets"
        raise DataError(Problem("corpus", None, what, "give one of each per query"))
    if not left:
        raise DataError(Problem("corpus", None, "holds no queries", "give at least one"))
    return align(GroupComparison.of_words(left, right), to_aligner(aligner))
