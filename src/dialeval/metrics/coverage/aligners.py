"""Aligners: what decides which group of references a hypothesis belongs to.

An aligner is anything that can be called with a hypothesis and a group of references, each a list of words, and gives a
number, the larger the more similar. Those below also score a whole `Comparison` at once, by kernels; any other callable
is called for every pair.

| name | class | what it is |
|---|---|---|
| `bleu` | `BleuAligner` | the default of the LSDSCC program, for figures that are to be compared with others' |
| `nltk-bleu` | `NLTKBleuAligner` | nltk's sentence BLEU with a smoothing method, 0 being none |
| `nltk-nist` | `NLTKNistAligner` | nltk's sentence NIST |
| `sacre` | `SacreAligner` | sacreBLEU's sentence BLEU: effective order, brevity penalty |
| `embedding` | `EmbeddingAligner` | cosine of averaged word vectors, the best reference of a group |

The first three are those of the original, which puts a hypothesis into the first group when it is like none: nothing in
common with any group still covers one. Under `sacre` and `embedding` one without a score above 0 lands nowhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.metrics.coverage import similarity
from dialeval.metrics.coverage.comparison import Comparison, Group, Words
from dialeval.metrics.embedding.vectors import WordValues
from dialeval.metrics.overlap.smoothing import ALPHA, EPSILON, K, Method
from dialeval.resources.embeddings import WordVectors, load_embeddings
from dialeval.resources.words import VectorTable
from dialeval.text.vocabulary import Vocabulary

Aligner = Callable[[Sequence[str], Sequence[Sequence[str]]], float]
"""A hypothesis and a group of references in, their similarity out."""

AlignerName = Literal["bleu", "nltk-bleu", "nltk-nist", "sacre", "embedding"]
DEFAULT_N: Literal[4] = 4


class PairAligner(ABC):
    """An aligner that scores all pairs of a comparison at once."""

    lands: ClassVar[bool] = True
    """Whether a hypothesis lands in some group even where it is like none."""

    @abstractmethod
    def scores(self, comparison: Comparison) -> Floats:
        """The score of every pair, NaN where there is none."""

    def __call__(self, hypothesis_sentence: Words, reference_corpus: Group) -> float:
        """Return the similarity of one hypothesis and one group of references; NaN where there is none."""
        return float(self.scores(Comparison.of_words([[hypothesis_sentence]], [[reference_corpus]], Vocabulary()))[0])


def check_order(n: int) -> None:
    """Refuse lengths of n-grams that cannot be counted."""
    if n not in range(1, similarity.MOST_ORDERS + 1):
        raise SettingError(f"n-grams have 1 to {similarity.MOST_ORDERS} words; n={n} is not possible")


@dataclass(frozen=True)
class BleuAligner(PairAligner):
    """BLEU without brevity penalty, one added to the counts of all orders up to n (0 means 4, as in the original)."""

    n: int = DEFAULT_N

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", self.n or DEFAULT_N)
        check_order(self.n)

    def scores(self, comparison: Comparison) -> Floats:
        return similarity.add_one_scores(comparison, self.n)


@dataclass(frozen=True)
class NLTKNistAligner(PairAligner):
    """NIST over all orders up to n (0 means 4, as in the original)."""

    n: int = DEFAULT_N

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", self.n or DEFAULT_N)
        check_order(self.n)

    def scores(self, comparison: Comparison) -> Floats:
        return similarity.nist_scores(comparison, self.n)


@dataclass(frozen=True)
class SacreAligner(PairAligner):
    """Sentence BLEU of sacreBLEU, from 0 to 1, with orders up to n."""

    lands = False

    n: int = DEFAULT_N

    def __post_init__(self) -> None:
        check_order(self.n)

    def scores(self, comparison: Comparison) -> Floats:
        return similarity.sacre_scores(comparison, self.n)


SmoothFunction = Callable[..., Sequence[Any]]
"""What nltk calls a smoothing function: precisions in, precisions out."""


@dataclass(frozen=True)
class NLTKBleuAligner(PairAligner):
    """Sentence BLEU of nltk with equal weights for the orders up to n.

    `smooth_function` is the number of a method, a method of nltk's `SmoothingFunction`, which is recognised and run by
    the kernel here, or any function that takes what nltk gives to one, which is called; None is no smoothing.
    """

    smooth_function: SmoothFunction | int | None = None
    n: int = DEFAULT_N

    def __post_init__(self) -> None:
        check_order(self.n)
        given = self.smooth_function
        if isinstance(given, int) and given not in get_args(Method):
            raise SettingError(f"BLEU has the smoothing methods {', '.join(map(str, get_args(Method)))}, not {given}")
        if not (given is None or isinstance(given, int) or callable(given)):
            raise SettingError(f"a smoothing function is the number of a method or can be called; {given!r} is neither")

    @property
    def method(self) -> int | None:
        """The number of the smoothing method; None for a function of somebody else's."""
        given = self.smooth_function
        return given if isinstance(given, int) else 0 if given is None else _nltk_method(given)

    def scores(self, comparison: Comparison) -> Floats:
        if self.method is not None:
            return similarity.nltk_scores(comparison, self.method, self.n)
        return CallAligner(self._by_function).scores(comparison)

    def _by_function(self, hypothesis: Words, group: Group) -> float:
        """BLEU with the precisions that the function gives back."""
        counts = similarity.bleu_pairs(Comparison.of_words([[hypothesis]], [[group]], Vocabulary()), self.n)
        length, closest = len(hypothesis), int(counts.reference_lengths[0])
        if not group:
            return math.nan
        if not counts.matches[0, 0]:
            return 0.0
        totals = np.maximum(counts.totals[0], 1)
        pairs = zip(counts.matches[0, : self.n].tolist(), totals[: self.n].tolist(), strict=True)
        precisions = [_Unreduced(numerator, denominator) for numerator, denominator in pairs]
        smooth = cast(SmoothFunction, self.smooth_function)
        smoothed = smooth(precisions, references=group, hypothesis=hypothesis, hyp_len=length)
        penalty = 1.0 if length > closest else math.exp(1 - closest / length)
        return penalty * math.exp(math.fsum(math.log(value) / self.n for value in smoothed if value > 0))


class _Unreduced(Fraction):
    """A fraction that is not reduced: smoothing functions look at the counts in it."""

    def __new__(cls, numerator: int, denominator: int) -> _Unreduced:
        self = super().__new__(cls, numerator, denominator)
        self._counts = (numerator, denominator)  # type: ignore[attr-defined]
        return self

    @property
    def numerator(self) -> int:
        return cast(int, self._counts[0])  # type: ignore[attr-defined]

    @property
    def denominator(self) -> int:
        return cast(int, self._counts[1])  # type: ignore[attr-defined]


def _nltk_method(function: SmoothFunction) -> int | None:
    """The number of a method of nltk's `SmoothingFunction` with the paper's constants, else None; imports no nltk."""
    owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    if (type(owner).__module__, type(owner).__name__) != ("nltk.translate.bleu_score", "SmoothingFunction"):
        return None
    if (owner.epsilon, owner.alpha, owner.k) != (EPSILON, ALPHA, K):  # type: ignore[union-attr]
        return None
    return next((method for method in get_args(Method) if name == f"method{method}"), None)


@dataclass(frozen=True, eq=False)
class EmbeddingAligner(PairAligner):
    """Cosine of averaged word vectors.

    `embeddings` is a file, the name of a pack, `wordllama`, an object with vectors, or the values of all words.
    """

    lands = False

    embeddings: Any

    @cached_property
    def _vectors(self) -> WordVectors:
        given = self.embeddings
        return cast(WordVectors, given) if hasattr(given, "vectors_for") else load_embeddings(given)

    def scores(self, comparison: Comparison) -> Floats:
        values = self.embeddings
        if not isinstance(values, WordValues):
            vocabulary = cast(Vocabulary, comparison.hypotheses.vocabulary)
            values = WordValues.of(VectorTable(vocabulary, self._vectors), None, None)
        return similarity.cosine_scores(comparison, values)


@dataclass(frozen=True)
class CallAligner(PairAligner):
    """An aligner out of any callable, which is called for every pair that has a reference."""

    function: Aligner

    def scores(self, comparison: Comparison) -> Floats:
        hypotheses, references = comparison.hypotheses.words(), comparison.references.words()
        groups = [references[start:stop] for start, stop in pairwise(comparison.groups.tolist())]
        pairs = zip(comparison.pair_hypotheses.tolist(), comparison.pair_groups.tolist(), strict=True)
        texts = ((hypotheses[text], groups[group]) for text, group in pairs)
        return np.array([float(self.function(*pair)) if pair[1] else math.nan for pair in texts], np.float64)


def as_aligner(given: Any) -> PairAligner:
    """What scores comparisons by the given aligner; None is the original's default."""
    if given is None:
        return BleuAligner()
    if isinstance(given, PairAligner):
        return given
    if not callable(given):
        names = ", ".join(kind.__name__ for kind in (BleuAligner, NLTKBleuAligner, NLTKNistAligner))
        raise SettingError(f"an aligner can be called with a hypothesis and a group, as {names}; {given!r} cannot")
    return CallAligner(given)


def named_aligner(name: Literal["bleu", "nltk-bleu", "nltk-nist", "sacre"], n: int, smooth: int) -> PairAligner:
    """The aligner of a name; `embedding` is not among them, since it needs vectors."""
    if name == "nltk-bleu":
        return NLTKBleuAligner(smooth, n)
    kinds: dict[str, type[BleuAligner | NLTKNistAligner | SacreAligner]]
    kinds = {"bleu": BleuAligner, "nltk-nist": NLTKNistAligner, "sacre": SacreAligner}
    return kinds[name](n)
