"""Training a judge, and finding out honestly how good it is.

Validation leaves whole data sets out: a set is judged by weights that were fitted to the other training sets, without
any row whose context occurs in it. Sets that were never meant for training (`tests`) are judged likewise. With a single
set there is no other one to learn from; its contexts are then dealt into `FOLDS` parts, each judged by the others.

Beside the judge stand what it has to beat: the untrained identity, the paper's recipe, overlap with the reference,
averaged word vectors, and the mere length of the response. Correlations are with the mean human score, per set, and
their mean over the sets that have references; intervals come from a bootstrap that draws contexts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from dialeval.analysis.correlation import Points
from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED, draws, percentiles
from dialeval.analysis.matching import score_ratings
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.data.rows.ratings import OVERALL, Ratings
from dialeval.engine.resources import Resources
from dialeval.metrics.learned.examples import TURNS, Examples, examples_of
from dialeval.metrics.learned.fitting import AdemSettings, fit_adem, fit_identity
from dialeval.metrics.learned.paper import PaperSettings, fit_paper
from dialeval.metrics.learned.weights import Weights
from dialeval.resources.sentence_vectors import SentenceVectors

KINDS = ("identity", "adem", "paper")
BASELINES = ("bleu-4", "rouge-l", "embedding-average", "length")
FOLDS = 5
_FEWEST_ROWS = 20

Progress = Callable[[str, int, int], None]
"""Told what is being done, of how many steps, and how many more are done."""


@dataclass(frozen=True)
class Recipe:
    """How a judge is made of ratings."""

    kind: str = "adem"
    adem: AdemSettings = field(default_factory=AdemSettings)
    paper: PaperSettings = field(default_factory=PaperSettings)
    turns: int = TURNS
    quality: str = OVERALL

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingError(f"a judge is one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.turns < 1:
            raise SettingError("a context has at least one turn")

    def fit(self, examples: Examples, kind: str | None = None) -> Weights:
        """The judge of all examples."""
        kind = kind or self.kind
        if kind == "identity":
            return fit_identity(examples)
        return fit_adem(examples, self.adem) if kind == "adem" else fit_paper(examples, self.paper)


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


def train(
    ratings: Ratings,
    vectors: SentenceVectors,
    recipe: Recipe | None = None,
    tests: Ratings | None = None,
    validate: bool = True,
    progress: Progress | None = None,
) -> tuple[Weights, Validation | None]:
    """The judge that ratings make, and what it is worth on the sets that were left out."""
    recipe = recipe or Recipe()
    trained = set(ratings.datasets)
    every = ratings if tests is None else _joined(ratings, tests)
    _told(progress, "encoding", len(every), 0)
    examples = examples_of(every, vectors, recipe.turns, recipe.quality)
    _told(progress, "encoding", len(every), len(every))
    known = examples.of_sets([name for name in examples.names if name in trained])
    weights = recipe.fit(known)
    encoder = vectors.encoder
    files = getattr(encoder, "files", None)
    weights = replace(
        weights,
        encoder=encoder.name,
        encoder_digest=encoder.digest if files is None else files.digest,
        tokens=getattr(encoder, "tokens", 0),
        turns=recipe.turns,
    )
    return weights, validation(every, examples, known, recipe, progress) if validate else None


def validation(
    ratings: Ratings, examples: Examples, known: Examples, recipe: Recipe, progress: Progress | None = None
) -> Validation:
    """Judges and baselines on every set; `known` are the examples that may be learned from."""
    columns = {name: np.full(len(examples), np.nan) for name in _kinds(recipe)}
    splits = list(_splits(examples, known))
    fitted: dict[tuple[str, bytes], Weights] = {}
    for name, test, others in splits:
        for kind, values in columns.items():
            key = kind, np.packbits(np.isin(known.rows, others.rows)).tobytes()
            if key not in fitted:
                fitted[key] = recipe.fit(others, kind)
            mine = examples.take(test)
            values[test] = fitted[key].score(
                mine.context, mine.reference, mine.response, mine.has_context, mine.has_reference
            )
        _told(progress, f"validating on {name}", len(splits), 1)
    columns |= {name: values[examples.rows] for name, values in _baselines(ratings, recipe.quality).items()}
    return _compared(columns, examples)


def _kinds(recipe: Recipe) -> list[str]:
    """The judges to compare; the paper's needs PyTorch and is left out where there is none."""
    kinds = ["identity", "adem"]
    return [*kinds, "paper"] if recipe.kind == "paper" or find_spec("torch") is not None else kinds


def _splits(examples: Examples, known: Examples) -> Iterator[tuple[str, Ints, Examples]]:
    """By set: the rows to judge, and the examples to learn from."""
    for number, name in enumerate(examples.names):
        test: Ints = np.flatnonzero(examples.sets == number)
        if len(test) < _FEWEST_ROWS:
            continue
        others = known.take(known.sets != number).without(examples.take(test))
        if len(others) >= _FEWEST_ROWS and _differ(others):
            yield name, test, others
            continue
        contexts = np.unique(examples.contexts[test])
        dealt = dict(
            zip(np.random.default_rng(DEFAULT_SEED).permutation(contexts).tolist(), range(len(contexts)), strict=True)
        )
        fold = np.array([dealt[context] % FOLDS for context in examples.contexts[test].tolist()])
        for part in range(FOLDS):
            held: Ints = test[fold == part]
            rest = known.without(examples.take(held))
            if len(held) and _differ(rest):
                yield f"{name} ({part + 1}/{FOLDS})", held, rest


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
        mine = examples.sets == number
        if not (mine & ~np.isnan(columns["identity"])).any():
            continue
        sets[name] = {}
        # A set counts as one with references where nearly all its rows have one, or those that have are judged apart.
        rows = mine & examples.has_reference if examples.has_reference[mine].any() else mine
        if examples.has_reference[mine].any():
            referenced.append(name)
        for judge, values in columns.items():
            chosen = rows & ~np.isnan(values)
            agreed, spread = _agreed(values[chosen], examples.scores[chosen], examples.contexts[chosen])
            sets[name][judge] = agreed
            if name in referenced:
                resampled.setdefault(judge, []).append(spread)
    mean = {judge: _mean([sets[name][judge] for name in referenced], parts) for judge, parts in resampled.items()}
    return Validation(sets, mean, referenced)


def _agreed(values: Floats, scores: Floats, contexts: Ints) -> tuple[Agreed, Floats]:
    """Agreement on one set, and Pearson's and Spearman's coefficients of every resample."""
    if len(values) < 3:
        nothing = float("nan")
        return Agreed(len(values), nothing, nothing, (nothing, nothing), (nothing, nothing)), np.full(
            (DEFAULT_RESAMPLES, 2), np.nan
        )
    clusters = np.unique(contexts, return_inverse=True)[1].astype(np.int64)
    points = Points(values, scores, clusters)
    pearson, spearman = points.values()[:2].tolist()
    spread = np.concatenate([points.resampled(counts)[:, :2] for counts in draws(int(clusters.max()) + 1)])
    return Agreed(len(values), pearson, spearman, percentiles(spread[:, 0]), percentiles(spread[:, 1])), spread


def _mean(sets: Sequence[Agreed], resampled: Sequence[Floats]) -> Agreed:
    """The mean over sets; a set in which a judge is constant counts as 0, since it then says nothing."""
    means = np.nan_to_num(np.stack(resampled)).mean(axis=0)
    return Agreed(
        sum(each.rows for each in sets),
        float(np.mean(np.nan_to_num([each.pearson for each in sets]))),
        float(np.mean(np.nan_to_num([each.spearman for each in sets]))),
        percentiles(means[:, 0], DEFAULT_LEVEL),
        percentiles(means[:, 1], DEFAULT_LEVEL),
    )


def _joined(first: Ratings, second: Ratings) -> Ratings:
    """Both, one below the other."""
    qualities = dict.fromkeys([*first.annotations, *second.annotations])
    nothing: Floats = np.empty(0)

    def values(quality: str) -> Floats:
        return np.concatenate([part.values.get(quality, np.full(len(part), np.nan)) for part in (first, second)])

    def annotations(quality: str) -> list[Any]:
        return [row for part in (first, second) for row in part.annotations.get(quality, [nothing] * len(part))]

    def both(name: str) -> list[Any]:
        return [*getattr(first, name), *getattr(second, name)]

    return Ratings(
        datasets=both("datasets"),
        dialogues=both("dialogues"),
        systems=both("systems"),
        contexts=both("contexts"),
        responses=both("responses"),
        references=both("references"),
        levels=both("levels"),
        scales=np.concatenate((first.scales, second.scales)),
        annotations={quality: annotations(quality) for quality in qualities},
        values={quality: values(quality) for quality in qualities},
    )


def _told(progress: Progress | None, what: str, of: int, more: int) -> None:
    if progress is not None:
        progress(what, of, more)
