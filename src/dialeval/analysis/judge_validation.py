"""How well a judge agrees with people on ratings that it was not fitted to.

Validation leaves whole data sets out: a set is judged by weights that were fitted to the other training sets, without
any row whose context occurs in it. Sets that were never meant for training (`tests`) are judged likewise. With a single
set there is no other one to learn from; its contexts are then dealt into `FOLDS` parts, each judged by the others.

The judge is compared with what it has to beat: the untrained identity, the paper's recipe, overlap with the reference,
averaged word vectors, and the mere length of the response. Correlations are with the mean human score, per set, and
their mean over the sets that have references; intervals come from a bootstrap that draws contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from dialeval.analysis.correlation import Points
from dialeval.analysis.matching import score_ratings
from dialeval.analysis.resampling import DEFAULT_RESAMPLES, DEFAULT_SEED, draws, percentiles
from dialeval.core.arrays import Floats, Ints
from dialeval.data.rows.ratings import Ratings
from dialeval.engine.resources import Resources
from dialeval.metrics.learned.training.examples import Examples
from dialeval.metrics.learned.training.recipe import Recipe
from dialeval.metrics.learned.weights import Weights
from dialeval.resources.progress import Progress

BASELINES = ("bleu-4", "rouge-l", "embedding-average", "length")
FOLDS = 5
_FEWEST_ROWS = 20


@dataclass(frozen=True)
class Agreed:
    """How far scores agree with people on one set, or on the mean of sets; each value with its interval."""

    rows: int
    pearson: float
    spearman: float
    pearson_interval: tuple[float, float]
    spearman_interval: tuple[float, float]


@dataclass(frozen=True)
class Validation:
    """Agreement by set and then by judge or baseline; `mean` is that over the sets with references."""

    sets: Mapping[str, Mapping[str, Agreed]]
    mean: Mapping[str, Agreed]
    referenced: Sequence[str]
    resamples: int = DEFAULT_RESAMPLES


def validation(
    ratings: Ratings, examples: Examples, known: Examples, recipe: Recipe, progress: Progress | None = None
) -> Validation:
    """Judges and baselines on every set; `known` are the examples that may be learned from."""
    columns = {name: np.full(len(examples), np.nan) for name in _kinds(recipe)}
    splits = list(_splits(examples, known))
    fitted: dict[tuple[str, bytes], Weights] = {}
    for step, (test, others) in enumerate(splits, 1):
        learned, judged = np.packbits(np.isin(known.rows, others.rows)).tobytes(), examples.take(test)
        for kind, values in columns.items():
            if (kind, learned) not in fitted:
                fitted[kind, learned] = recipe.fit(others, kind)
            values[test] = fitted[kind, learned].score(judged)
        if progress is not None:
            progress(step, len(splits))
    columns |= {name: values[examples.rows] for name, values in _baselines(ratings, recipe.quality).items()}
    return _compared(columns, examples)


def _kinds(recipe: Recipe) -> list[str]:
    """The judges to compare; the paper's needs PyTorch and is left out where there is none."""
    kinds = ["identity", "adem"]
    return [*kinds, "paper"] if recipe.kind == "paper" or find_spec("torch") is not None else kinds


def _splits(examples: Examples, known: Examples) -> Iterator[tuple[Ints, Examples]]:
    """The rows to judge, a set or a part of one, and the examples to learn from."""
    for number in range(len(examples.names)):
        test: Ints = np.flatnonzero(examples.sets == number)
        if len(test) < _FEWEST_ROWS:
            continue
        others = known.take(known.sets != number).without(examples.take(test))
        if len(others) >= _FEWEST_ROWS and _differ(others):
            yield test, others
            continue
        contexts, place = np.unique(examples.contexts[test], return_inverse=True)
        dealt = np.argsort(np.random.default_rng(DEFAULT_SEED).permutation(len(contexts)))
        for part in range(FOLDS):
            held: Ints = test[dealt[place] % FOLDS == part]
            rest = known.without(examples.take(held))
            if len(held) and _differ(rest):
                yield held, rest


def _differ(examples: Examples) -> bool:
    """Whether there is anything to learn: some set holds ratings that are not all equal."""
    return any(np.ptp(examples.scores[examples.sets == number]) > 0 for number in np.unique(examples.sets))


def _baselines(ratings: Ratings, quality: str) -> dict[str, Floats]:
    """What simple metrics give every rated row; those that cannot run here are left out."""
    vectors = "wordllama" if find_spec("wordllama") and find_spec("tokenizers") else None
    texts = [turn for context in ratings.contexts for turn in context] or list(ratings.responses)
    resources = Resources(train=texts, embeddings=vectors)
    there = [name for name in BASELINES if name != "embedding-average" or vectors is not None]
    if not any(ratings.references):
        there = ["length"]
    found = score_ratings(ratings, quality, resources, there)
    return {name: values for name, values in found.metrics.items() if name in BASELINES}


def _compared(columns: Mapping[str, Floats], examples: Examples) -> Validation:
    sets: dict[str, dict[str, Agreed]] = {}
    referenced: list[str] = []
    resampled: dict[str, list[Floats]] = {}
    for number, name in enumerate(examples.names):
        rows = examples.sets == number
        if not (rows & ~np.isnan(columns["identity"])).any():
            continue
        if examples.has_reference[rows].any():  # the rows without a reference are left out then
            rows = rows & examples.has_reference
            referenced.append(name)
        sets[name] = {}
        for judge, values in columns.items():
            chosen = rows & ~np.isnan(values)
            found, coefficients = agreed(values[chosen], examples.scores[chosen], examples.contexts[chosen])
            sets[name][judge] = found
            if name in referenced:
                resampled.setdefault(judge, []).append(coefficients)
    mean = {judge: _mean([sets[name][judge] for name in referenced], parts) for judge, parts in resampled.items()}
    return Validation(sets, mean, referenced)


def agreed(values: Floats, scores: Floats, contexts: Ints) -> tuple[Agreed, Floats]:
    """Agreement on one set, and Pearson's and Spearman's coefficients of every resample."""
    if len(values) < 3:
        coefficients = np.full((DEFAULT_RESAMPLES, 2), np.nan)
        unknown = float("nan"), float("nan")
        return Agreed(len(values), *unknown, unknown, unknown), coefficients
    clusters = np.unique(contexts, return_inverse=True)[1].astype(np.int64)
    points = Points(values, scores, clusters)
    pearson, spearman = points.values()[:2].tolist()
    coefficients = np.concatenate([points.resampled(counts)[:, :2] for counts in draws(int(clusters.max()) + 1)])
    intervals = percentiles(coefficients[:, 0]), percentiles(coefficients[:, 1])
    return Agreed(len(values), pearson, spearman, *intervals), coefficients


def _mean(sets: Sequence[Agreed], resampled: Sequence[Floats]) -> Agreed:
    """The mean over sets; a set in which a judge is constant counts as 0, since it then says nothing."""
    means = np.nan_to_num(np.stack(resampled)).mean(axis=0)
    return Agreed(
        sum(each.rows for each in sets),
        float(np.mean(np.nan_to_num([each.pearson for each in sets]))),
        float(np.mean(np.nan_to_num([each.spearman for each in sets]))),
        percentiles(means[:, 0]),
        percentiles(means[:, 1]),
    )
