"""The alignment: which group each hypothesis landed in, and the three figures of a query that follow from it.

    group of h  = the group r with the largest score(h, r), the first of equal ones
    MDS         = groups that some hypothesis landed in / groups
    PDS         = references in those groups / references
    MaxBLEU     = mean over the hypotheses of the score of their group

A query without groups or with an empty group has none of the three (NaN), nor has one in which some hypothesis cannot
be compared with some group. Any other query without hypotheses covers nothing: MDS and PDS are 0, and there is no
MaxBLEU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats, Ints
from dialeval.metrics.coverage import coverage_kernel as _kernel
from dialeval.metrics.coverage.aligners import PairAligner
from dialeval.metrics.coverage.clustering import grouped
from dialeval.metrics.coverage.comparison import Comparison


@dataclass(frozen=True, slots=True)
class QueryAlignment:
    """One query: its figures, and the place of each hypothesis; groups are counted from 0 in their order."""

    mds: float
    pds: float
    max_bleu: float
    aligned: tuple[int | None, ...]
    """The group of each hypothesis; None if it landed in none."""
    scores: tuple[float, ...]
    """The score of each hypothesis with its group; NaN if it could not be compared with every group."""
    groups: tuple[tuple[str, ...], ...]
    """The references of each group, their words with a blank between them."""

    @property
    def unreached(self) -> tuple[int, ...]:
        """The groups in which no hypothesis landed."""
        return tuple(group for group in range(len(self.groups)) if group not in self.aligned)

    def to_dict(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """The alignment as plain data for JSON, NaN being None; `names` are those of the groups."""
        shown = [str(group) for group in range(len(self.groups))] if names is None else list(names)
        hypotheses = [
            {"group": None if group is None else shown[group], "score": None if math.isnan(score) else score}
            for group, score in zip(self.aligned, self.scores, strict=True)
        ]
        figures = {"mds": self.mds, "pds": self.pds, "max-bleu": self.max_bleu}
        return {
            **{key: None if math.isnan(value) else value for key, value in figures.items()},
            "hypotheses": hypotheses,
            "groups": [
                {"group": name, "references": list(texts), "hypotheses": self.aligned.count(group)}
                for group, (name, texts) in enumerate(zip(shown, self.groups, strict=True))
            ],
            "unreached": [shown[group] for group in self.unreached],
        }


@dataclass(frozen=True, eq=False)
class Alignment:
    """The alignment of all queries of a comparison; `best` holds numbers below 0 for hypotheses in no group."""

    comparison: Comparison
    best: Ints
    scores: Floats

    @cached_property
    def _scored(self) -> Floats:
        """1 for a query that can be scored, else NaN."""
        pairs = self.comparison
        undefined = self._per_query(pairs.hypothesis_queries, np.isnan(self.scores))
        empty = self._per_query(pairs.group_queries, np.diff(pairs.groups) == 0)
        return np.where((undefined > 0) | (empty > 0) | (np.diff(pairs.group_lists) == 0), np.nan, 1.0)

    @cached_property
    def _reached(self) -> Ints:
        """1 for a group in which a hypothesis landed, else 0."""
        reached = np.zeros(len(self.comparison.groups) - 1, np.int64)
        landed = self.best >= 0
        reached[self.comparison.group_lists[self.comparison.hypothesis_queries[landed]] + self.best[landed]] = 1
        return reached

    @property
    def mds(self) -> Floats:
        """Mean diversity score of every query."""
        return self._share(np.ones_like(self._reached))

    @property
    def pds(self) -> Floats:
        """Probabilistic diversity score of every query."""
        return self._share(np.diff(self.comparison.groups))

    @property
    def max_bleu(self) -> Floats:
        """Mean of the best scores of every query."""
        counts = np.diff(self.comparison.lists)
        sums = self._per_query(self.comparison.hypothesis_queries, np.nan_to_num(self.scores))
        means: Floats = self._scored * np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        return means

    def _share(self, sizes: Ints) -> Floats:
        """Per query the share that the reached groups have in the sum of sizes."""
        queries = self.comparison.group_queries
        reached, whole = self._per_query(queries, sizes * self._reached), self._per_query(queries, sizes)
        return self._scored * reached / np.maximum(whole, 1)

    def _per_query(self, queries: Ints, values: npt.NDArray[Any]) -> Floats:
        """The sum of the values of each query, from left to right."""
        return np.bincount(queries, values, minlength=self.comparison.queries).astype(np.float64)

    def table(self) -> list[QueryAlignment]:
        """The alignment query by query, for people."""
        texts = [" ".join(words) for words in self.comparison.references.words()]
        figures = zip(self.mds.tolist(), self.pds.tolist(), self.max_bleu.tolist(), strict=True)
        bounds, lists, group_lists = (
            each.tolist() for each in (self.comparison.groups, self.comparison.lists, self.comparison.group_lists)
        )
        best = [None if group < 0 else group for group in self.best.tolist()]
        scores = self.scores.tolist()
        rows = []
        for query, (mds, pds, max_bleu) in enumerate(figures):
            mine = slice(lists[query], lists[query + 1])
            groups = range(group_lists[query], group_lists[query + 1])
            found = tuple(tuple(texts[bounds[group] : bounds[group + 1]]) for group in groups)
            rows.append(QueryAlignment(mds, pds, max_bleu, tuple(best[mine]), tuple(scores[mine]), found))
        return rows


def align(comparison: Comparison, aligner: PairAligner, threshold: float = 0.0) -> Alignment:
    """The alignment of every hypothesis; with a threshold above 0 the references are grouped first (`clustering`)."""
    if threshold > 0:
        comparison = grouped(comparison, aligner, threshold)
    best, scores = np.empty(len(comparison.hypotheses), np.int64), np.empty(len(comparison.hypotheses))
    for start, part in comparison.parts():
        here = slice(start, start + len(part.hypotheses))
        _kernel.best_groups(aligner.scores(part), part.group_counts, aligner.lands, best[here], scores[here])
    return Alignment(comparison, best, scores)
