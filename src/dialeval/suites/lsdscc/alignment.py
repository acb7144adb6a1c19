"""Alignment: how similar hypotheses are to groups of references, which group each belongs to, and MDS, PDS and MaxBLEU.

A query has hypotheses and groups of references. Every hypothesis of a query is compared with every group of it; such a
pair has one place in the flat arrays that aligners fill, in the order of queries, then hypotheses, then groups.

    group of h  = the group r with the largest score(h, r), the first of equal ones
    MDS         = groups that some hypothesis landed in / groups
    PDS         = references in those groups / references
    MaxBLEU     = mean over the hypotheses of the score of their group

A query without groups or with an empty group has none of the three (NaN), nor has one in which some hypothesis cannot
be compared with some group. Every other query without hypotheses covers nothing: MDS and PDS are 0, and there is no
MaxBLEU.

An aligner is anything that can be called with a hypothesis and a group of references, each a list of words, and returns
a number, the larger the more similar. Those below score all pairs of a `GroupComparison` at once; any other callable is
called for every pair.

| name | class | what it is |
|---|---|---|
| `bleu` | `BleuAligner` | the default of the LSDSCC program, for scores that are to be compared with others' |
| `nltk-bleu` | `NLTKBleuAligner` | nltk's sentence BLEU with a smoothing method, 0 being none |
| `nltk-nist` | `NLTKNistAligner` | nltk's sentence NIST |
| `sacre` | `SacreAligner` | sacreBLEU's sentence BLEU: effective order, brevity penalty |
| `embedding` | `EmbeddingAligner` | cosine of averaged word vectors, the best reference of a group |

The first three are those of the original, which puts a hypothesis into the first group when it is like none: nothing in
common with any group still covers one. Under `sacre` and `embedding` one without a score above 0 lands nowhere.

Scores of the first three are computed exactly as in the originals: the same logarithms, added up in the same order. Two
groups may be equally good on paper, 6 * 1 = 3 * 2 matches, and only rounding decides which one is taken.

Edge cases: a group without references is NaN everywhere. NIST is NaN for a hypothesis of fewer than n words and for a
group of empty references; nltk divides by zero there. A text without a known word has no cosine.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats, Ints, offsets_of, ranges, row_numbers, split_clusters
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.errors import SettingError
from dialeval.core.validation import JsonObject
from dialeval.io.vectors import WordVectors, load_embeddings
from dialeval.metrics import bleu_counts as bleu
from dialeval.metrics.embedding import WordValues
from dialeval.metrics.words import VectorTable
from dialeval.text.vocabulary import Vocabulary

PART_PAIRS = 1 << 16
"""Pairs that are compared at a time, so that memory is bounded."""
DEFAULT_N: Literal[4] = 4
MOST_ORDERS = 100
"""The longest n-grams that can be counted: counts take room for every order, and few responses have as many words."""
NO_GROUP = -1
"""The group of a hypothesis that landed in none, or that could not be compared with every group."""

_NIST_BETA = math.log(0.5) / math.log(1.5) ** 2
"""Makes the length penalty 0.5 for a hypothesis of two thirds of the reference's words."""

Words = Sequence[str]
Group = Sequence[Words]
Aligner = Callable[[Words, Group], float]
"""A hypothesis and a group of references in, their similarity out."""
AlignerName = Literal["bleu", "nltk-bleu", "nltk-nist", "sacre", "embedding"]
SmoothFunction = Callable[..., Sequence[object]]
"""What nltk calls a smoothing function: precisions in, precisions out."""


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """The words of hypotheses and references over one vocabulary, and what belongs to what.

    Query `q` has the hypotheses `lists[q]` to `lists[q + 1]` and the groups `group_lists[q]` to `group_lists[q + 1]`;
    group `g` has the references `groups[g]` to `groups[g + 1]`.
    """

    hypotheses: TokenColumn
    lists: Ints
    references: TokenColumn
    groups: Ints
    group_lists: Ints

    @classmethod
    def of_words(cls, hypotheses: Sequence[Sequence[Words]], references: Sequence[Sequence[Group]]) -> GroupComparison:
        """Compare texts that are split already; a word may hold spaces."""
        vocabulary = Vocabulary()

        def column(texts: Sequence[Words]) -> TokenColumn:
            ids = vocabulary.add(TextColumn.from_strings([word for text in texts for word in text], "words"))
            return TokenColumn(ids, offsets_of(map(len, texts)), vocabulary)

        grouped = [group for row in references for group in row]
        lists, groups, group_lists = (offsets_of(map(len, part)) for part in (hypotheses, grouped, references))
        texts, others = (column([words for words_of in part for words in words_of]) for part in (hypotheses, grouped))
        return cls(texts, lists, others, groups, group_lists)

    @cached_property
    def group_counts(self) -> Ints:
        """Number of groups that each hypothesis is compared with."""
        return np.diff(self.group_lists)[row_numbers(self.lists)]

    @cached_property
    def pair_hypotheses(self) -> Ints:
        """The hypothesis of each pair."""
        return np.repeat(np.arange(len(self.hypotheses)), self.group_counts)

    @cached_property
    def pair_groups(self) -> Ints:
        """The group of each pair."""
        return ranges(self.group_lists[row_numbers(self.lists)], self.group_counts)

    def list_groups(self) -> list[list[list[str]]]:
        """Return every group in words."""
        references = self.references.words()
        return [references[start:stop] for start, stop in pairwise(self.groups.tolist())]

    def split(self) -> Iterator[GroupComparison]:
        """Split into consecutive queries with about `PART_PAIRS` pairs."""
        for first, last in split_clusters(offsets_of(np.diff(self.lists) * np.diff(self.group_lists)), PART_PAIRS):
            lists, group_lists = self.lists[first : last + 1], self.group_lists[first : last + 1]
            groups = self.groups[group_lists[0] : group_lists[-1] + 1]
            texts = self.hypotheses.take(np.arange(lists[0], lists[-1]))
            others = self.references.take(np.arange(groups[0], groups[-1]))
            yield GroupComparison(texts, lists - lists[0], others, groups - groups[0], group_lists - group_lists[0])

    def count_ngrams(self, n: int) -> bleu.BleuCounts:
        """Count the n-grams of every pair, for all orders up to n and at least for those that smoothing looks at."""
        sizes = np.diff(self.groups)[self.pair_groups]
        hypotheses = self.hypotheses.take(self.pair_hypotheses)
        references = self.references.take(ranges(self.groups[self.pair_groups], sizes))
        counts = bleu.BleuCounts.of(hypotheses, references, offsets_of(sizes))
        if n <= bleu.ORDERS:
            return counts
        matches = np.empty((len(counts), n), np.int64, order="F")
        bleu.match_long(np.arange(len(counts)), hypotheses, references, offsets_of(sizes), matches)
        totals = np.maximum(counts.response_lengths[:, None] - np.arange(n), 0)
        return replace(counts, matches=matches, totals=totals)


class PairAligner(ABC):
    """An aligner that scores all pairs of a comparison at once."""

    lands = True
    """Whether a hypothesis lands in some group even where it is like none."""

    @abstractmethod
    def scores(self, comparison: GroupComparison) -> Floats:
        """Compute the score of every pair of a hypothesis and a group.

        Args:
            comparison: The hypotheses and groups.

        Returns:
            The scores; NaN where there is none.
        """

    def __call__(self, hypothesis_sentence: Words, reference_corpus: Group) -> float:
        """Return the similarity of one hypothesis and one group of references; NaN where there is none."""
        return float(self.scores(GroupComparison.of_words([[hypothesis_sentence]], [[reference_corpus]]))[0])


@dataclass(eq=False)
class NgramAligner(PairAligner):
    """An aligner that counts n-grams of all orders up to n (None or 0 means 4, as in the original)."""

    n: int | None = None

    def __post_init__(self) -> None:
        _ = self.order  # refuses what cannot be counted

    @property
    def order(self) -> int:
        """The largest order of n-grams."""
        n = self.n or DEFAULT_N
        if n not in range(1, MOST_ORDERS + 1):
            raise SettingError(f"n-grams have 1 to {MOST_ORDERS} words; n={n} is not possible")
        return n


class BleuAligner(NgramAligner):
    """The Multi-BLEU of the LSDSCC program: BLEU without brevity penalty, one added to the counts of all orders.

        score = geometric mean over the orders up to n of (matches + 1) / (n-grams + 1)

    An empty hypothesis has 1.0, a wrong word 0.84.

    Paper: Madnani et al. 2008, "Are Multiple Reference Translations Necessary?", AMTA.

    Attributes:
        n: The largest order of n-grams; None is 4, as in the original.

    Examples:
        >>> from dialeval.lsdscc import BleuAligner
        >>> round(BleuAligner()(["tea"], [["coffee"]]), 2)
        0.84
    """

    def scores(self, comparison: GroupComparison) -> Floats:
        n = self.order
        counts = comparison.count_ngrams(n)
        total = np.zeros(len(counts))
        for order in range(n):
            ratios = (counts.matches[:, order] + 1.0) / (counts.totals[:, order] + 1.0)
            total += 1.0 / n * _apply(math.log, ratios)
        return np.where(counts.reference_lengths == bleu.NO_REFERENCE, np.nan, _apply(math.exp, total))


class SacreAligner(NgramAligner):
    """Sentence BLEU of sacreBLEU, from 0 to 1.

    Attributes:
        n: The largest order of n-grams; None is 4.

    Examples:
        >>> from dialeval.lsdscc import SacreAligner
        >>> SacreAligner()(["tea", "please"], [["tea", "please"], ["coffee"]])
        1.0
    """

    lands = False

    def scores(self, comparison: GroupComparison) -> Floats:
        counts = comparison.count_ngrams(self.order)
        return bleu.sacre_bleu(counts, bleu.log_precisions(counts, bleu.NIST, self.order), self.order)


class NLTKNistAligner(NgramAligner):
    """NIST as `sentence_nist` of nltk computes it.

        NIST = penalty * sum over orders i <= n of max over references of
               (sum over shared i-grams g of info(g) * min(count in hypothesis, count in reference)) / i-grams
        info(w1 .. wi) = log2(count of w1 .. w(i-1) in the group / count of w1 .. wi in the group)
        penalty = exp(log(0.5) / log(1.5)**2 * log(min(1, hypothesis words / words of the chosen references))**2)

    where the best reference is chosen for every order, the longer one of equally good ones.

    Paper: Doddington 2002, "Automatic Evaluation of Machine Translation Quality Using N-gram Co-Occurrence Statistics",
    HLT.

    Attributes:
        n: The largest order of n-grams; None is 4.

    Examples:
        >>> from dialeval.lsdscc import NLTKNistAligner
        >>> NLTKNistAligner(n=1)(["tea", "please"], [["tea", "please"]])
        1.0
    """

    def scores(self, comparison: GroupComparison) -> Floats:
        texts, groups = comparison.hypotheses.words(), comparison.list_groups()
        queries = zip(pairwise(comparison.lists.tolist()), pairwise(comparison.group_lists.tolist()), strict=True)
        scores: list[float] = []
        for (start, stop), (first, last) in queries:
            ngrams = [(len(text), _count_ngrams(text, self.order)) for text in texts[start:stop]]
            wanted = {gram for _, counts in ngrams for gram in counts}
            counted = [_NistGroup(group, self.order, wanted) for group in groups[first:last]]
            scores += [group.score(words, counts) for words, counts in ngrams for group in counted]
        return np.array(scores, np.float64)


Ngram = tuple[str, ...]


def _count_ngrams(words: Words, n: int) -> Counter[Ngram]:
    """Count the n-grams of a text, all orders together."""
    orders = (zip(*(words[start:] for start in range(order)), strict=False) for order in range(1, n + 1))
    return Counter(chain.from_iterable(orders))


class _NistGroup:
    """The wanted n-grams of a group of references: which references have each and how often, and their information."""

    def __init__(self, group: Group, n: int, wanted: set[Ngram]) -> None:
        self.n = n
        self.sizes = [len(words) for words in group]
        self.counts: dict[Ngram, list[tuple[int, int]]] = {(): list(enumerate(self.sizes))}
        self.information: dict[Ngram, float] = {}
        for reference, words in enumerate(group):
            ngrams = _count_ngrams(words, n)
            for gram in ngrams.keys() & wanted:
                self.counts.setdefault(gram, []).append((reference, ngrams[gram]))

    def score(self, words: int, ngrams: Counter[Ngram]) -> float:
        """Return NIST of a hypothesis."""
        if words < self.n or not any(self.sizes):
            return math.nan
        shared = [[0.0] * len(self.sizes) for _ in range(self.n)]
        for gram in ngrams:
            if gram in self.counts:
                if gram not in self.information:
                    before, here = (sum(count for _, count in self.counts[ngram]) for ngram in (gram[:-1], gram))
                    self.information[gram] = math.log(before / here) / math.log(2)
                for reference, count in self.counts[gram]:
                    shared[len(gram) - 1][reference] += self.information[gram] * min(ngrams[gram], count)
        best = [max(zip(of_references, self.sizes, strict=True)) for of_references in shared]
        precision = sum(information / (words - order) for order, (information, _) in enumerate(best))
        ratio = self.n * words / sum(size for _, size in best)
        return precision * (math.exp(_NIST_BETA * math.log(ratio) ** 2) if ratio < 1 else 1.0)


class NLTKBleuAligner(NgramAligner):
    """Sentence BLEU of nltk with equal weights for the orders up to n.

    Attributes:
        smooth_function: The number of a smoothing method, or a function such as a method of nltk's
            `SmoothingFunction`, with which nltk is called. None: no smoothing.
        n: The largest order of n-grams; None is 4.

    Examples:
        >>> from dialeval.lsdscc import NLTKBleuAligner
        >>> round(NLTKBleuAligner(smooth_function=1, n=2)(["some", "tea", "please"], [["tea", "please"]]), 3)
        0.577
    """

    def __init__(self, smooth_function: SmoothFunction | int | None = None, n: int | None = None) -> None:
        super().__init__(n)
        self.smooth_function = smooth = smooth_function
        methods = get_args(bleu.Method)
        if isinstance(smooth, int) and smooth not in methods:
            raise SettingError(f"BLEU has the smoothing methods {', '.join(map(str, methods))}, not {smooth}")
        if not (smooth is None or isinstance(smooth, int) or callable(smooth)):
            raise SettingError(f"a smoothing function is the number of a method or can be called, and not {smooth!r}")

    def scores(self, comparison: GroupComparison) -> Floats:
        if callable(self.smooth_function):
            return CallAligner(self._score_by_nltk).scores(comparison)
        counts = comparison.count_ngrams(self.order)
        smoothed = bleu.smoothed_precisions(counts, self.smooth_function or 0, self.order)
        logs = 1.0 / self.order * _apply(math.log, np.where(smoothed > 0, smoothed, 1.0))
        total = np.fromiter(map(math.fsum, logs.tolist()), np.float64, len(logs))
        lengths, closest = counts.response_lengths, counts.reference_lengths
        penalty = np.where(lengths > closest, 1.0, _apply(math.exp, 1.0 - closest / np.maximum(lengths, 1)))
        scores = np.where(counts.matches[:, 0] == 0, 0.0, penalty * _apply(math.exp, total))
        undefined = (closest == bleu.NO_REFERENCE) | ((counts.matches[:, 0] > 0) & np.isnan(smoothed).any(axis=1))
        return np.where(undefined, np.nan, scores)

    def _score_by_nltk(self, hypothesis: Words, group: Group) -> float:
        try:
            from nltk.translate.bleu_score import sentence_bleu
        except ImportError:
            raise SettingError("smoothing by a function needs nltk; run: pip install nltk") from None
        return float(sentence_bleu(group, hypothesis, (1 / self.order,) * self.order, self.smooth_function))


@dataclass(eq=False)
class EmbeddingAligner(PairAligner):
    """The largest cosine of the averaged word vectors of a hypothesis and a reference of the group.

    Attributes:
        embeddings: A file of word vectors, the name of a data pack, `wordllama`, or an object with vectors.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.lsdscc import EmbeddingAligner
        >>> aligner = EmbeddingAligner(sample_data.folder() / "vectors.txt")
        >>> round(aligner(["tea"], [["tea"], ["library"]]), 6)
        1.0
    """

    lands = False

    embeddings: Any

    @cached_property
    def _vectors(self) -> WordVectors:
        source = self.embeddings
        return cast(WordVectors, source) if hasattr(source, "vectors_for") else load_embeddings(source)

    def scores(self, comparison: GroupComparison) -> Floats:
        values = self.embeddings
        if not isinstance(values, WordValues):
            vocabulary = cast(Vocabulary, comparison.hypotheses.vocabulary)
            values = WordValues.of(VectorTable(vocabulary, self._vectors), None, None)
        left = _normalize_vectors(values.average_texts(comparison.hypotheses).vectors)
        right = _normalize_vectors(values.average_texts(comparison.references).vectors)
        scores = np.full(len(comparison.pair_groups), np.nan)
        sizes = np.diff(comparison.groups)[comparison.pair_groups]
        starts = comparison.groups[comparison.pair_groups]
        for at in range(int(sizes.max(initial=0))):  # the references of every group, one by one
            has = np.flatnonzero(sizes > at)
            texts = left[comparison.pair_hypotheses[has]]
            cosines = (texts * right[starts[has] + at]).sum(axis=1)
            cosines[~(texts.any(axis=1) & right[starts[has] + at].any(axis=1))] = np.nan
            scores[has] = np.fmax(scores[has], cosines)
        return scores


def _normalize_vectors(vectors: Floats) -> Floats:
    """Return the vectors with length 1; a zero vector stays as it is."""
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    return vectors / np.where(lengths > 0, lengths, 1.0)


@dataclass
class CallAligner(PairAligner):
    """An aligner out of any callable, which is called for every pair that has a reference."""

    function: Aligner

    def __post_init__(self) -> None:
        self.lands = getattr(self.function, "lands", True)

    def scores(self, comparison: GroupComparison) -> Floats:
        texts, groups = comparison.hypotheses.words(), comparison.list_groups()
        pairs = zip(comparison.pair_hypotheses.tolist(), comparison.pair_groups.tolist(), strict=True)
        scores = (self.function(texts[text], groups[group]) if groups[group] else math.nan for text, group in pairs)
        return np.fromiter(map(float, scores), np.float64)


def to_aligner(aligner: object) -> PairAligner:
    """Return an aligner that scores comparisons as the given one does; None is the original's default."""
    if aligner is None:
        return BleuAligner()
    if isinstance(aligner, PairAligner) and type(aligner).__call__ is PairAligner.__call__:
        return aligner  # a subclass with its own `__call__` is called for every pair
    if not callable(aligner):
        names = ", ".join(kind.__name__ for kind in (BleuAligner, NLTKBleuAligner, NLTKNistAligner))
        raise SettingError(f"an aligner can be called with a hypothesis and a group, as {names}; {aligner!r} cannot")
    return CallAligner(aligner)


def _apply(function: Callable[[float], float], values: Floats) -> Floats:
    """Apply a function of `math`: NumPy's logarithms may differ in the last bit, which decides between equal groups."""
    return np.fromiter(map(function, values.ravel().tolist()), np.float64, values.size).reshape(values.shape)


@dataclass(frozen=True, slots=True)
class QueryAlignment:
    """The alignment of one query: its scores, and the group of each hypothesis. Groups are indices, from 0.

    Attributes:
        mds: Mean diversity score.
        pds: Probabilistic diversity score.
        max_bleu: The mean similarity of a hypothesis to its group.
        aligned: The group of each hypothesis; None if it is in none.
        scores: The score of each hypothesis with its group; NaN if it could not be compared with every group.
        groups: The references of each group, as texts.

    Examples:
        >>> from dialeval.lsdscc import align_corpus
        >>> align_corpus([["coffee"]], [[["tea please"], ["coffee"]]])[0].to_dict()["unreached"]
        ['0']
    """

    mds: float
    pds: float
    max_bleu: float
    aligned: tuple[int | None, ...]
    scores: tuple[float, ...]
    groups: tuple[tuple[str, ...], ...]

    @property
    def unreached(self) -> tuple[int, ...]:
        """The groups in which no hypothesis landed."""
        return tuple(group for group in range(len(self.groups)) if group not in self.aligned)

    def to_dict(self, names: Sequence[str] | None = None) -> JsonObject:
        """Return the alignment as plain data for JSON; NaN is None.

        Args:
            names: The names of the groups; None: their numbers.

        Returns:
            The data.
        """
        shown = [str(group) for group in range(len(self.groups))] if names is None else list(names)
        return {
            "mds": _or_none(self.mds),
            "pds": _or_none(self.pds),
            "max-bleu": _or_none(self.max_bleu),
            "hypotheses": [
                {"group": None if group is None else shown[group], "score": _or_none(score)}
                for group, score in zip(self.aligned, self.scores, strict=True)
            ],
            "groups": [
                {"group": name, "references": list(texts), "hypotheses": self.aligned.count(group)}
                for group, (name, texts) in enumerate(zip(shown, self.groups, strict=True))
            ],
            "unreached": [shown[group] for group in self.unreached],
        }


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


@dataclass(frozen=True, eq=False)
class CorpusAlignment:
    """The alignment of all queries of a comparison; `best` is `NO_GROUP` for hypotheses in no group."""

    comparison: GroupComparison
    best: Ints
    scores: Floats
    mds: Floats
    pds: Floats
    max_bleu: Floats

    def list_queries(self) -> list[QueryAlignment]:
        """Return the alignment of each query."""
        texts = [" ".join(words) for words in self.comparison.references.words()]
        groups = [tuple(texts[start:stop]) for start, stop in pairwise(self.comparison.groups.tolist())]
        best, scores = [None if group < 0 else group for group in self.best.tolist()], self.scores.tolist()
        values = zip(self.mds.tolist(), self.pds.tolist(), self.max_bleu.tolist(), strict=True)
        rows, group_rows = (
            pairwise(offsets.tolist()) for offsets in (self.comparison.lists, self.comparison.group_lists)
        )
        return [
            QueryAlignment(*means, tuple(best[start:stop]), tuple(scores[start:stop]), tuple(groups[first:last]))
            for means, (start, stop), (first, last) in zip(values, rows, group_rows, strict=True)
        ]


def align(comparison: GroupComparison, aligner: PairAligner) -> CorpusAlignment:
    """Align every hypothesis."""
    parts = [_find_best_groups(aligner.scores(part), part.group_counts) for part in comparison.split()]
    best = np.concatenate([np.empty(0, np.int64), *(groups for groups, _ in parts)])
    scores = np.concatenate([np.empty(0), *(tops for _, tops in parts)])
    if not aligner.lands:
        best[~(scores > 0)] = NO_GROUP
    of_hypothesis, of_group = row_numbers(comparison.lists), row_numbers(comparison.group_lists)
    sizes, landed = np.diff(comparison.groups), best >= 0
    reached = np.zeros(len(sizes), np.int64)
    reached[comparison.group_lists[of_hypothesis[landed]] + best[landed]] = 1

    def add_up(queries: Ints, values: npt.ArrayLike) -> Floats:
        """Return the sum of the values of each query, from left to right."""
        return np.bincount(queries, values, minlength=len(comparison.lists) - 1).astype(np.float64)

    hypotheses, groups = np.diff(comparison.lists), np.diff(comparison.group_lists)
    undefined = add_up(of_hypothesis, np.isnan(scores)) + add_up(of_group, sizes == 0)
    scored = np.where((undefined > 0) | (groups == 0), np.nan, 1.0)
    mds = scored * add_up(of_group, reached) / np.maximum(groups, 1)
    pds = scored * add_up(of_group, sizes * reached) / np.maximum(add_up(of_group, sizes), 1)
    means = add_up(of_hypothesis, np.nan_to_num(scores)) / np.maximum(hypotheses, 1)
    return CorpusAlignment(comparison, best, scores, mds, pds, scored * np.where(hypotheses > 0, means, np.nan))


def _find_best_groups(scores: Floats, counts: Ints) -> tuple[Ints, Floats]:
    """Return the group of each hypothesis, counted within its query, the first of equal ones, and its score.

    A hypothesis without a group, or with a score that is NaN, is in `NO_GROUP` and has NaN.
    """
    best, tops = np.full(len(counts), NO_GROUP), np.full(len(counts), np.nan)
    starts, some = offsets_of(counts)[:-1], counts > 0
    tops[some] = np.maximum.reduceat(scores, starts[some])
    owners = np.repeat(np.arange(len(counts)), counts)
    equal = np.flatnonzero(scores == tops[owners])
    texts, first = np.unique(owners[equal], return_index=True)
    best[texts] = equal[first] - starts[texts]
    return best, tops
