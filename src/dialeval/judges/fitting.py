"""Fit judges of `adem` to ratings, by ridge regression toward the identity.

Examples are rated responses as vectors, with scores on the scale 1 to 5. Rows without a score, and rows without both
context and reference, are left out. The judge solves

    minimize   sum over sets d, rows i of d:  (1000 / n_d) * (z_i - b_d - f(x_i))^2
               + strength * (|M - s I|^2 + |N - s I|^2) + response_strength * |w|^2
    with       f(x) = c' M r^ + r' N r^ + w' r^

z are scores in standard deviations from the mean of their set, b an intercept for each set (raters of one set are
harsher than those of another, whatever the responses), and s the least-squares fit of M = N = s I. The problem is
quadratic; conjugate gradients on it converge to its only solution. M - s I and N - s I are then cut to the given rank,
which costs nothing, and rounded to float16. Staying near the identity decides everything: with little regularization
the judge learns the words of its training sets.

`calibrate` finds alpha and beta of each case (context and reference, or one of them) by least squares within sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.io.ratings import OVERALL, Ratings
from dialeval.judges.adem import CASES, HIGHEST, LOWEST, AdemWeights, Encoded, Mask, encode_rows, multiply_rows
from dialeval.metrics.encoder import SentenceVectors

TURNS = 3
SET_WEIGHT = 1000.0
"""Every set counts as much as this many rows, however many it has."""
_TOLERANCE = 1e-16
"""Squared norm of the remaining gradient, relative to the first."""
_MOST_STEPS = 500
_MOST_ROWS = 10_000
"""Rows of a set that are used; more cost time and add little, since every set counts alike."""
AnyExamples = TypeVar("AnyExamples", bound="Examples")


@dataclass(frozen=True)
class AdemSettings:
    """How near the identity the judge stays, and how many directions it may add."""

    strength: float = 30.0
    response_strength: float = 100.0
    rank: int = 8

    def __post_init__(self) -> None:
        if min(self.strength, self.response_strength) <= 0 or self.rank < 0:
            raise SettingError("strengths are above 0, the rank is 0 or more")


_USUAL = AdemSettings()


@dataclass(frozen=True, eq=False)
class Examples(Encoded):
    """Rated rows as vectors; every array has one row per response."""

    scores: Floats
    """On the scale 1 to 5."""
    sets: Ints
    """The data set of each row, as its place in `names`."""
    rows: Ints
    """The row of the ratings that each example comes from."""
    names: Sequence[str]

    def take(self: AnyExamples, chosen: Ints | Mask) -> AnyExamples:
        """Return some of the rows."""
        columns = [column.name for column in fields(self) if column.name != "names"]
        return replace(self, **{name: getattr(self, name)[chosen] for name in columns})


def make_examples(ratings: Ratings, vectors: SentenceVectors, turns: int = TURNS, quality: str = OVERALL) -> Examples:
    """Return the examples in ratings; a set without a stated scale is stretched from lowest to highest score."""
    if quality not in ratings.values:
        raise SettingError(f"no ratings of {quality!r}; there are ratings of {', '.join(ratings.values)}")
    names = list(dict.fromkeys(ratings.datasets))
    sets: Ints = np.array([names.index(name) for name in ratings.datasets], np.int64)
    scores = rescale(ratings, quality, sets, len(names))
    texts = zip(ratings.contexts, ratings.references, strict=True)
    judgeable = np.array([any(text.strip() for text in (*c, *r)) for c, r in texts], np.bool_)
    rows: Ints = np.flatnonzero(judgeable & ~np.isnan(scores))
    if not len(rows):
        raise SettingError("no rated row has both a score and a context or a reference")
    kept = ratings.take(rows)
    inputs = encode_rows(vectors, kept.contexts, kept.responses, kept.references, turns)
    return Examples(**vars(inputs), scores=scores[rows], sets=sets[rows], rows=rows, names=names)


def rescale(ratings: Ratings, quality: str, sets: Ints, many: int) -> Floats:
    """Return values on the scale 1 to 5, by the stated scale (that of `overall`) or by the extremes of their set."""
    values = ratings.values[quality]
    low, high = ratings.scales.T.copy() if quality == OVERALL else np.full((2, len(values)), np.nan)
    for number in range(many):
        rows = sets == number
        if np.isnan(low[rows]).any() and not np.isnan(values[rows]).all():
            low[rows], high[rows] = np.nanmin(values[rows]), np.nanmax(values[rows])
    span = np.where(high > low, high - low, 1.0)
    return LOWEST + (HIGHEST - LOWEST) * (values - low) / span


def fit_adem(examples: Examples, settings: AdemSettings = _USUAL) -> AdemWeights:
    """Fit the judge near the identity."""
    problem = _LeastSquares.of(_sample_rows(examples))
    share = problem.fit_identity_multiple()
    rest = problem.scores - share * problem.compute_identity_term()
    width = examples.response.shape[1]
    solution = _solve(problem, rest, settings)
    context, reference = (_factorize(matrix, settings.rank) for matrix in _unpack_matrices(solution, width))
    response = _round(solution[-width:] / np.sqrt(settings.response_strength / settings.strength))
    return calibrate(AdemWeights("adem", _round_number(share), *context, *reference, response, {}), examples)


def _sample_rows(examples: Examples) -> Examples:
    """Return at most `_MOST_ROWS` rows of each set, sampled by a fixed seed."""
    dice = np.random.default_rng(0)
    rows = [dice.permutation(np.flatnonzero(examples.sets == one))[:_MOST_ROWS] for one in np.unique(examples.sets)]
    return examples.take(np.sort(np.concatenate(rows)))


@dataclass(frozen=True, eq=False)
class _LeastSquares:
    """The rows of all sets with their weights; features and scores are centered within each set."""

    context: Floats
    reference: Floats
    response: Floats
    scores: Floats
    sets: Ints
    weights: Floats

    @classmethod
    def of(cls, examples: Examples) -> _LeastSquares:
        sets = np.unique(examples.sets, return_inverse=True)[1]
        counts = np.bincount(sets)
        weights = (SET_WEIGHT / counts)[sets]
        vectors = [part.astype(np.float64) for part in (examples.context, examples.reference, examples.response)]
        bare = cls(vectors[0], vectors[1], vectors[2], examples.scores, sets, weights)
        scores = bare.center(examples.scores)
        spread = np.sqrt(np.bincount(sets, scores * scores) / counts)
        if not (spread > 0).any():
            raise SettingError("all ratings of a set are equal; there is nothing to learn from them")
        return replace(bare, scores=scores / np.where(spread > 0, spread, 1.0)[sets])

    def center(self, values: Floats) -> Floats:
        """Return values less the mean of their set: weights are equal within a set."""
        means = np.bincount(self.sets, values) / np.bincount(self.sets)
        return values - means[self.sets]

    def compute_identity_term(self) -> Floats:
        """Return the predictions of M = N = I."""
        return self.center(multiply_rows(self.context, self.response) + multiply_rows(self.reference, self.response))

    def fit_identity_multiple(self) -> float:
        """Return s, the multiple of the identity that fits the scores best."""
        term = self.compute_identity_term()
        return float((self.weights * term * self.scores).sum() / (self.weights * term * term).sum())

    def predict(self, parameters: Floats, response_scale: float) -> Floats:
        """Return f of every row, centered, for M, N and w in one vector."""
        width = self.response.shape[1]
        by_context, by_reference = _unpack_matrices(parameters, width)
        values = multiply_rows(self.context @ by_context + self.reference @ by_reference, self.response)
        return self.center(values + self.response @ (parameters[-width:] * response_scale))

    def gradient(self, values: Floats, response_scale: float) -> Floats:
        """Apply the transpose of `predict` to weighted values."""
        pulled = self.response * self.center(values * self.weights)[:, None]
        parts = (self.context.T @ pulled).ravel(), (self.reference.T @ pulled).ravel(), pulled.sum(0) * response_scale
        return np.concatenate(parts)


def _solve(problem: _LeastSquares, rest: Floats, settings: AdemSettings) -> Floats:
    """Solve by conjugate gradients; w is scaled so that one strength holds for all parameters."""
    scale = np.sqrt(settings.strength / settings.response_strength)
    left = problem.gradient(rest, scale)
    solution = np.zeros_like(left)
    direction, size = left, float(left @ left)
    goal = _TOLERANCE * size
    for _ in range(_MOST_STEPS):
        if size <= goal:
            break
        pushed = problem.gradient(problem.predict(direction, scale), scale) + settings.strength * direction
        step = size / float(direction @ pushed)
        solution, left = solution + step * direction, left - step * pushed
        smaller = float(left @ left)
        direction, size = left + (smaller / size) * direction, smaller
    return solution


def _unpack_matrices(parameters: Floats, width: int) -> tuple[Floats, Floats]:
    """Return M and N out of the vector of all parameters."""
    square = width * width
    return parameters[:square].reshape(width, width), parameters[square:-width].reshape(width, width)


def _factorize(matrix: Floats, rank: int) -> tuple[Floats, Floats]:
    """Return the best approximation of a rank as two tall factors."""
    left, sizes, right = np.linalg.svd(matrix)
    roots = np.sqrt(sizes[:rank])
    one, other = _round(left[:, :rank] * roots), _round(right[:rank].T * roots)
    # A decomposition leaves signs open, and machines differ in them: each column's largest entry is positive.
    signs = np.where(one[np.abs(one).argmax(axis=0), np.arange(one.shape[1])] < 0, -1.0, 1.0)
    return one * signs, other * signs


def _round(values: Floats) -> Floats:
    """Round to float16: small to ship, and what is below it (noise of the last bits) is gone."""
    return values.astype(np.float16).astype(np.float64)


def _round_number(value: float) -> float:
    return float(np.float32(f"{value:.5g}"))


def calibrate(weights: AdemWeights, examples: Examples) -> AdemWeights:
    """Return the same judge with alpha and beta of every case.

    Cases that the ratings do not show take the constants of one that they do, or the middle of the scale.
    """
    by_context, by_reference, alone = weights.compute_terms(examples)
    has_context, has_reference = examples.has_context, examples.has_reference
    raw = by_context + by_reference + alone, by_context + alone, by_reference + alone
    usable = has_context & has_reference, has_context, has_reference
    cases = ((case, values, rows) for case, values, rows in zip(CASES, raw, usable, strict=True) if rows.any())
    lines = {case: _fit_line(values[rows], examples.scores[rows], examples.sets[rows]) for case, values, rows in cases}
    spare = next(iter(lines.values()), (-(LOWEST + HIGHEST) / 2, 1.0))
    return replace(weights, calibration={case: lines.get(case, spare) for case in CASES})


def _fit_line(raw: Floats, scores: Floats, sets: Ints) -> tuple[float, float]:
    """Fit alpha and beta by within-dataset least squares; datasets are weighted equally."""
    sets = np.unique(sets, return_inverse=True)[1]
    counts = np.bincount(sets)
    raw_means, score_means = np.bincount(sets, raw) / counts, np.bincount(sets, scores) / counts
    off, wanted = raw - raw_means[sets], scores - score_means[sets]
    weights = (1 / counts)[sets]
    above, below = float((weights * off * wanted).sum()), float((weights * off * off).sum())
    slope = max(above / below, 1e-3) if below > 0 else 1.0
    alpha = float(raw_means.mean()) - float(score_means.mean()) / slope
    return _round_number(alpha), _round_number(1 / slope)
