"""Validation of a judge of `adem` on rated sets that are left out of its training, for its model card.

A set is judged by weights that were fitted to the other training sets, without any row whose context occurs in it. Sets
that were never meant for training are judged likewise. With a single set there is no other one to learn from; its
contexts are then split into `FOLDS` parts, each judged by the others.

The judge is compared with its baselines: the untrained identity, overlap with the reference, averaged word vectors, and
the length of the response. Spearman's correlation is with the mean human score, per set, and its mean is over the sets
that have references; confidence intervals come from a bootstrap over contexts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from dialeval.analysis.matching import score_ratings
from dialeval.core.arrays import Floats, Ints
from dialeval.engine.resources import Resources
from dialeval.io.opening import PathSource
from dialeval.io.ratings import OVERALL, Ratings, read_ratings
from dialeval.judges.adem import AdemWeights, Facts, Judge, open_vectors
from dialeval.judges.fitting import TURNS, AdemSettings, Examples, calibrate, fit_adem, make_examples
from dialeval.judges.training import JudgeCard, Rows, attack_rated, round_numbers, train, write_card_table
from dialeval.metrics.encoder import SentenceVectors
from dialeval.metrics.encoder_files import MINILM
from dialeval.stats.correlation import Points
from dialeval.stats.resampling import DEFAULT_RESAMPLES, DEFAULT_SEED, draw_resamples, percentiles

BASELINES = ("bleu-4", "rouge-l", "embedding-average", "length")
FOLDS = 5
_FEWEST_ROWS = 20
_NO_WORD = re.compile(r"\W+")
_HOW = (
    "Each set was judged by weights fitted to the training sets above without that set and without any row that shares "
    "a context with it. Spearman's rho with the mean human score; in brackets the middle 95% of {resamples} bootstrap "
    "resamples of contexts. `identity` is the same formula untrained. Of a set that has references for some rows only, "
    "those rows count. The default strengths were chosen among about forty settings by tables like this one on public "
    "sets; near the best they differ by .01 to .02, so differences of that size mean little."
)


@dataclass(frozen=True)
class HumanCorrelation:
    """Spearman's correlation with mean human ratings on one set, or its mean over sets, with a confidence interval."""

    rows: int
    spearman: float
    spearman_interval: tuple[float, float]


@dataclass(frozen=True)
class Validation:
    """Agreement by set and then by judge or baseline; `mean` is that over the sets with references."""

    sets: Mapping[str, Mapping[str, HumanCorrelation]]
    mean: Mapping[str, HumanCorrelation]
    referenced: Sequence[str]
    resamples: int = DEFAULT_RESAMPLES


@dataclass(frozen=True, eq=False)
class RatedExamples(Examples):
    """Examples with their contexts: rows with a common context belong on one side of a split, whatever their sets."""

    contexts: Ints

    def select_sets(self, names: Sequence[str]) -> RatedExamples:
        """Return the rows of some data sets."""
        return self.take(np.isin(self.sets, [self.names.index(name) for name in names]))

    def without_contexts_of(self, others: RatedExamples) -> RatedExamples:
        """Return the rows whose context occurs in none of the other examples."""
        return self.take(~np.isin(self.contexts, others.contexts))


def make_rated_examples(ratings: Ratings, vectors: SentenceVectors, turns: int = TURNS) -> RatedExamples:
    """Return the examples in ratings, with their contexts."""
    examples = make_examples(ratings, vectors, turns)
    return RatedExamples(**vars(examples), contexts=number_contexts(ratings.take(examples.rows)))


def number_contexts(ratings: Ratings) -> Ints:
    """Return a number for each context, equal for equal last turns but for case, spaces and punctuation.

    Sets cut the same dialogue at different lengths, so the last turn decides; rows without one stand alone.
    """
    seen: dict[str, int] = {}
    numbers: Ints = np.empty(len(ratings), np.int64)
    for row, (context, dialogue) in enumerate(zip(ratings.contexts, ratings.dialogues, strict=True)):
        last = _NO_WORD.sub("", context[-1].lower()) if context else ""
        numbers[row] = seen.setdefault(last or f"\0{dialogue}", len(seen))
    return numbers


def fit_identity(examples: Examples) -> AdemWeights:
    """Fit nothing but the calibration: M = N = I, the baseline that every trained judge has to beat."""
    none = np.zeros((examples.response.shape[1], 0))
    response = np.zeros(examples.response.shape[1])
    return calibrate(AdemWeights("identity", 1.0, none, none, none, none, response, {}), examples)


def train_and_validate(
    ratings: Sequence[PathSource], tests: Sequence[PathSource], encoder: PathSource = MINILM, **settings: Any
) -> JudgeCard:
    """Train a judge; its card has the agreement on sets left out, and attacks on `tests`."""
    card = train(ratings, encoder=encoder, **settings)
    weights, vectors = card.weights, open_vectors(encoder, card.weights.tokens)
    rated, every = read_ratings(ratings), read_ratings([*ratings, *tests])
    examples = make_rated_examples(every, vectors, weights.turns)
    learnable = examples.select_sets(list(dict.fromkeys(rated.datasets)))
    columns = judge_left_out(examples, learnable, AdemSettings())
    columns |= {name: values[examples.rows] for name, values in _score_baselines(every).items()}
    found = compare_columns(columns, examples)
    attacks = attack_rated(Judge(weights, vectors), read_ratings(tests) if tests else rated)
    saved = asdict(found)
    facts = {
        **{name: weights.facts[name] for name in ("data", "settings")},  # `make_checkpoint.py rows` writes the rows
        "validation": round_numbers({name: saved[name] for name in ("sets", "mean", "resamples")}),
        "attacks": round_numbers([asdict(result) for result in attacks]),
    }
    results = [_HOW.format(resamples=found.resamples), write_card_table(list_validation(found))]
    return replace(card, weights=replace(weights, facts=facts), attacks=attacks, results=results)


def judge_left_out(examples: RatedExamples, learnable: RatedExamples, settings: AdemSettings) -> dict[str, Floats]:
    """Return leave-one-dataset-out predictions by kind of judge; `learnable` are the examples to learn from."""
    columns = {name: np.full(len(examples), np.nan) for name in ("identity", "adem")}
    fitted: dict[bytes, tuple[AdemWeights, AdemWeights]] = {}
    for test, others in split_sets(examples, learnable):
        learned = others.rows.tobytes()
        if learned not in fitted:
            fitted[learned] = fit_identity(others), fit_adem(others, settings)
        for values, weights in zip(columns.values(), fitted[learned], strict=True):
            values[test] = weights.score(examples.take(test))
    return columns


def split_sets(examples: RatedExamples, learnable: RatedExamples) -> Iterator[tuple[Ints, RatedExamples]]:
    """Yield rows to judge, a set or a part of one, and the examples to learn from."""
    for number in range(len(examples.names)):
        test: Ints = np.flatnonzero(examples.sets == number)
        if len(test) < _FEWEST_ROWS:
            continue
        others = learnable.take(learnable.sets != number).without_contexts_of(examples.take(test))
        if len(others) >= _FEWEST_ROWS and _has_differences(others):
            yield test, others
            continue
        contexts, place = np.unique(examples.contexts[test], return_inverse=True)
        dealt = np.argsort(np.random.default_rng(DEFAULT_SEED).permutation(len(contexts)))
        for part in range(FOLDS):
            held: Ints = test[dealt[place] % FOLDS == part]
            rest = learnable.without_contexts_of(examples.take(held))
            if len(held) and _has_differences(rest):
                yield held, rest


def _has_differences(examples: Examples) -> bool:
    """Return whether there is anything to learn: some set holds ratings that are not all equal."""
    return any(np.ptp(examples.scores[examples.sets == number]) > 0 for number in np.unique(examples.sets))


def _score_baselines(ratings: Ratings) -> dict[str, Floats]:
    """Score every rated row by the `BASELINES`; those that cannot run here are left out."""
    vectors = "wordllama" if find_spec("wordllama") and find_spec("tokenizers") else None
    texts = [turn for context in ratings.contexts for turn in context] or list(ratings.responses)
    names = [name for name in BASELINES if name != "embedding-average" or vectors is not None]
    names = names if any(ratings.references) else ["length"]
    scores = score_ratings(ratings, OVERALL, Resources(train=texts, vectors=vectors), names)
    return {name: values for name, values in scores.metrics.items() if name in BASELINES}


def compare_columns(columns: Mapping[str, Floats], examples: RatedExamples) -> Validation:
    """Return the agreement of each judge or baseline with people on every set, and the mean.

    A set in which a judge is constant counts as 0 in its mean.
    """
    sets: dict[str, dict[str, HumanCorrelation]] = {}
    resampled: dict[str, dict[str, Floats]] = {}
    for number, name in enumerate(examples.names):
        rows = examples.sets == number
        if not (rows & ~np.isnan(columns["identity"])).any():
            continue
        if examples.has_reference[rows].any():  # the rows without a reference are left out then
            rows = rows & examples.has_reference
            resampled[name] = {}
        sets[name] = {}
        for judge, values in columns.items():
            chosen = rows & ~np.isnan(values)
            correlated = correlate(values[chosen], examples.scores[chosen], examples.contexts[chosen])
            sets[name][judge], resampled.get(name, {})[judge] = correlated
    mean = {}
    for judge in columns if resampled else ():
        of_sets = [sets[name][judge] for name in resampled]
        rho = float(np.mean(np.nan_to_num([correlation.spearman for correlation in of_sets])))
        means = np.nan_to_num(np.stack([row[judge] for row in resampled.values()])).mean(axis=0)
        mean[judge] = HumanCorrelation(sum(correlation.rows for correlation in of_sets), rho, percentiles(means))
    return Validation(sets, mean, list(resampled))


def correlate(values: Floats, scores: Floats, contexts: Ints) -> tuple[HumanCorrelation, Floats]:
    """Return the agreement on one set, and the coefficient of every resample."""
    if len(values) < 3:
        return HumanCorrelation(len(values), math.nan, (math.nan, math.nan)), np.full(DEFAULT_RESAMPLES, np.nan)
    clusters = np.unique(contexts, return_inverse=True)[1].astype(np.int64)
    points = Points(values, scores, clusters)
    resamples = draw_resamples(int(clusters.max()) + 1)
    coefficients = np.concatenate([points.correlate_resamples(counts)[:, 1] for counts in resamples])
    return HumanCorrelation(len(values), float(points.correlate()[1]), percentiles(coefficients)), coefficients


def list_validation(validation: Validation) -> Rows:
    """Return a header, a row per set and the mean: Spearman's rho with its interval, a column per judge or baseline."""
    columns = list(dict.fromkeys(name for row in validation.sets.values() for name in row))
    rows = [["data set", "rows", *columns]]
    for name, row in validation.sets.items():
        shown = name if name in validation.referenced else f"{name} (no references)"
        most = max(correlation.rows for correlation in row.values())
        rows.append([shown, str(most), *(show_spearman(vars(row[column])) for column in columns)])
    if validation.mean:
        means = (show_spearman(vars(validation.mean[column])) for column in columns)
        rows.append(["mean of sets with references", "", *means])
    return rows


def show_spearman(correlation: Facts | None) -> str:
    """Return Spearman's rho with its interval; nothing where it was not computed."""
    if correlation is None:
        return ""
    low, high = correlation["spearman_interval"]
    return f"{show_number(correlation['spearman'])} [{show_number(low)}, {show_number(high)}]"


def show_number(value: float | None) -> str:
    """Return a number with two digits and no leading zero; in a file NaN is null."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)
