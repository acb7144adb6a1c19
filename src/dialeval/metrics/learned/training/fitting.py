"""Recipes that fit a judge to ratings: `identity`, `adem` (near the identity), and `paper` (see `training.paper`).

`fit_identity` trains nothing: M = N = I. It is the baseline that every trained judge has to beat.

`fit_adem` solves

    minimise   sum over sets d, rows i of d:  (1000 / n_d) * (z_i - b_d - f(x_i))^2
               + strength * (|M - s I|^2 + |N - s I|^2) + response_strength * |w|^2
    with       f(x) = c' M r^ + r' N r^ + w' r^

z are scores in standard deviations from the mean of their set, b an intercept for each set (raters of one set are
harsher than those of another, whatever the responses), and s the least-squares fit of M = N = s I. The problem is
quadratic; conjugate gradients on it converge to its only solution. M - s I and N - s I are then cut to the given rank,
which costs nothing, and rounded to float16.

Staying near the identity decides everything: with little regularisation the judge learns the words of its training
sets.

`calibrated` finds alpha and beta of each case (context and reference, or one of them) by least squares within sets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.metrics.learned.training.examples import Examples
from dialeval.metrics.learned.weights import CASES, HIGHEST, LOWEST, Weights, row_products

SET_WEIGHT = 1000.0
"""Every set counts as much as this many rows, however many it has."""

_TOLERANCE = 1e-16
"""Squared size of the remaining gradient, relative to the first."""

_MOST_STEPS = 500


@dataclass(frozen=True)
class AdemSettings:
    """How near the identity the judge stays, and how many directions it may add."""

    strength: float = 30.0
    response_strength: float = 100.0
    rank: int = 8
    most_rows: int = 10_000
    """Rows of a set that are used; more cost time and add little, since every set counts alike."""

    def __post_init__(self) -> None:
        if min(self.strength, self.response_strength, self.most_rows) <= 0 or self.rank < 0:
            raise SettingError("strengths and rows are above 0, the rank is 0 or more")


_USUAL = AdemSettings()


def fit_identity(examples: Examples) -> Weights:
    """The judge that learned nothing but its calibration."""
    none = np.zeros((examples.response.shape[1], 0))
    response = np.zeros(examples.response.shape[1])
    return calibrated(Weights("identity", 1.0, none, none, none, none, response, {}), examples)


def fit_adem(examples: Examples, settings: AdemSettings = _USUAL) -> Weights:
    """The judge near the identity."""
    problem = _Problem.of(_drawn(examples, settings.most_rows))
    share = problem.share()
    rest = problem.scores - share * problem.identity_term()
    width = examples.response.shape[1]
    solution = _solved(problem, rest, settings)
    context, reference = (_low_rank(matrix, settings.rank) for matrix in _matrices(solution, width))
    response = _rounded(solution[-width:] / np.sqrt(settings.response_strength / settings.strength))
    return calibrated(Weights("adem", _round_number(share), *context, *reference, response, {}), examples)


def _drawn(examples: Examples, most: int) -> Examples:
    """At most so many rows of each set, drawn by a fixed seed."""
    dice = np.random.default_rng(0)
    rows = [dice.permutation(np.flatnonzero(examples.sets == each))[:most] for each in np.unique(examples.sets)]
    return examples.take(np.sort(np.concatenate(rows)))


@dataclass(frozen=True, eq=False)
class _Problem:
    """The rows of all sets with their weights; features and scores are centred within each set."""

    context: Floats
    reference: Floats
    response: Floats
    scores: Floats
    sets: Ints
    weights: Floats

    @classmethod
    def of(cls, examples: Examples) -> _Problem:
        sets = np.unique(examples.sets, return_inverse=True)[1]
        counts = np.bincount(sets)
        weights = (SET_WEIGHT / counts)[sets]
        vectors = [part.astype(np.float64) for part in (examples.context, examples.reference, examples.response)]
        bare = cls(vectors[0], vectors[1], vectors[2], examples.scores, sets, weights)
        scores = bare.centred(examples.scores)
        spread = np.sqrt(np.bincount(sets, scores * scores) / counts)
        if not (spread > 0).any():
            raise SettingError("all ratings of a set are equal; there is nothing to learn from them")
        return replace(bare, scores=scores / np.where(spread > 0, spread, 1.0)[sets])

    def centred(self, values: Floats) -> Floats:
        """Values less the weighted mean of their set, which is the plain mean: weights are equal within a set."""
        means = np.bincount(self.sets, values) / np.bincount(self.sets)
        result: Floats = values - means[self.sets]
        return result

    def identity_term(self) -> Floats:
        """What M = N = I gives."""
        return self.centred(row_products(self.context, self.response) + row_products(self.reference, self.response))

    def share(self) -> float:
        """s: how much of the identity fits the scores best."""
        term = self.identity_term()
        return float((self.weights * term * self.scores).sum() / (self.weights * term * term).sum())

    def predict(self, parameters: Floats, response_scale: float) -> Floats:
        """f of every row, centred, for M, N and w in one vector."""
        width = self.response.shape[1]
        by_context, by_reference = _matrices(parameters, width)
        values = row_products(self.context @ by_context + self.reference @ by_reference, self.response)
        return self.centred(values + self.response @ (parameters[-width:] * response_scale))

    def gradient(self, values: Floats, response_scale: float) -> Floats:
        """The transpose of `predict` on weighted values."""
        pulled = self.response * self.centred(values * self.weights)[:, None]
        parts = (self.context.T @ pulled).ravel(), (self.reference.T @ pulled).ravel(), pulled.sum(0) * response_scale
        return np.concatenate(parts)


def _solved(problem: _Problem, rest: Floats, settings: AdemSettings) -> Floats:
    """Conjugate gradients; w is scaled so that one strength holds for all parameters."""
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


def _matrices(parameters: Floats, width: int) -> tuple[Floats, Floats]:
    """M and N out of the vector of all parameters."""
    square = width * width
    return parameters[:square].reshape(width, width), parameters[square:-width].reshape(width, width)


def _low_rank(matrix: Floats, rank: int) -> tuple[Floats, Floats]:
    """The best approximation of a rank as two tall factors."""
    left, sizes, right = np.linalg.svd(matrix)
    roots = np.sqrt(sizes[:rank])
    one, other = left[:, :rank] * roots, right[:rank].T * roots
    signs = signs_of(one)
    return _rounded(one * signs), _rounded(other * signs)


def signs_of(columns: Floats) -> Floats:
    """The sign of each column's largest entry: a decomposition leaves it open, and machines differ in it."""
    signs: Floats = np.sign(columns[np.abs(columns).argmax(axis=0), np.arange(columns.shape[1])])
    return signs


def _rounded(values: Floats) -> Floats:
    """To float16: small to ship, and what is below it (noise of the last bits) is gone."""
    return values.astype(np.float16).astype(np.float64)


def _round_number(value: float) -> float:
    return float(np.float32(f"{value:.5g}"))


def calibrated(weights: Weights, examples: Examples) -> Weights:
    """The same judge with alpha and beta of every case.

    Cases that the ratings do not show take the constants of one that they do, or the middle of the scale.
    """
    by_context, by_reference, alone = weights.terms(examples)
    has_context, has_reference = examples.has_context, examples.has_reference
    raw = by_context + by_reference + alone, by_context + alone, by_reference + alone
    usable = has_context & has_reference, has_context, has_reference
    lines = {
        case: _line(values[rows], examples.scores[rows], examples.sets[rows])
        for case, values, rows in zip(CASES, raw, usable, strict=True)
        if rows.any()
    }
    spare = next(iter(lines.values()), (-(LOWEST + HIGHEST) / 2, 1.0))
    return replace(weights, calibration={case: lines.get(case, spare) for case in CASES})


def _line(raw: Floats, scores: Floats, sets: Ints) -> tuple[float, float]:
    """alpha and beta: every set counts alike, its mean by its mean and the slope from differences within sets."""
    sets = np.unique(sets, return_inverse=True)[1]
    counts = np.bincount(sets)
    raw_means, score_means = np.bincount(sets, raw) / counts, np.bincount(sets, scores) / counts
    off, wanted = raw - raw_means[sets], scores - score_means[sets]
    weights = (1 / counts)[sets]
    above, below = float((weights * off * wanted).sum()), float((weights * off * off).sum())
    slope = max(above / below, 1e-3) if below > 0 else 1.0
    alpha = float(raw_means.mean()) - float(score_means.mean()) / slope
    return _round_number(alpha), _round_number(1 / slope)
