"""The Bradley-Terry model with ties (Davidson), fitted to wins, ties and losses.

Every system has a strength b; with d = b_i - b_j + gamma x, where x is what is to be held equal (the logarithm of the
ratio of lengths; 1 for being shown first),

    P(i is better) = e^(d/2) / (e^(d/2) + e^(-d/2) + nu)         P(tie) = nu / (the same)

Without ties nu is 0, and this is the model of Bradley and Terry, P(i is better) = 1 / (1 + e^-d). The likelihood is
concave in b, log nu and gamma. It is made largest by Newton's method, with steps that are halved while they lead down.
The strengths add up to 0.

Many sets of counts are fitted at once (resamples). There is no largest likelihood where some systems never lose to any
of the others: their strength is infinite. `is_connected` says whether that is so, and a fit stops at `MOST`.

Papers: Bradley and Terry 1952, "Rank Analysis of Incomplete Block Designs: I", Biometrika; Davidson 1970, "On Extending
the Bradley-Terry Model to Accommodate Ties in Paired Comparison Experiments", JASA; Ford 1957, "Solution of a Ranking
Problem from Binary Comparisons", American Mathematical Monthly (when there is a solution).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dialeval.core.arrays import Floats, Ints

MOST = 12.0
"""Differences of strengths are not followed beyond: odds of one to 160,000."""
_STEPS = 60
_HALVINGS = 30
_CLOSE = 1e-10
_RIDGE = 1e-12
"""Keeps at 0 what the data does not determine; too small to change a digit."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Kinds of comparisons: two systems, and what is to be held equal."""

    systems: int
    left: Ints
    right: Ints
    control: Floats | None = None
    """A column for each thing that is to be held equal."""

    def make_design(self, ties: bool = False) -> Floats:
        """Return what multiplies the parameters in d, a line per cell; the last one, of ties, is not in it."""
        rows = np.arange(len(self.left))
        controls = np.zeros((len(rows), 0)) if self.control is None else self.control.reshape(len(rows), -1)
        design = np.zeros((len(rows), self.systems + controls.shape[1] + ties))
        design[rows, self.left] += 1
        design[rows, self.right] -= 1
        design[:, self.systems : self.systems + controls.shape[1]] = controls
        return design

    def sum_products(self, design: Floats, weights: Floats) -> Floats:
        """Return the sum over cells of weight times x x', x a line of the design, for each set of weights.

        A cell adds to four entries of its systems: the sums by pair of systems are those off the diagonal.
        """
        own, total = np.arange(self.systems), np.zeros((len(weights), design.shape[1], design.shape[1]))
        low, high = np.minimum(self.left, self.right), np.maximum(self.left, self.right)
        order = np.lexsort((high, low))
        starts = np.flatnonzero(np.diff(low[order] * self.systems + high[order], prepend=-1))
        low, high = low[order[starts]], high[order[starts]]
        total[:, low, high] = total[:, high, low] = -np.add.reduceat(weights[:, order], starts, axis=1)
        total[:, own, own] = 0.0
        total[:, own, own] = -total.sum(axis=2)[:, own]
        for at in range(self.systems, design.shape[1]):
            total[:, at] = total[:, :, at] = (weights * design[:, at]) @ design
        return total


class Fits(NamedTuple):
    """The parameters of each set of counts."""

    strengths: Floats
    """A row per set, a column per system; they add up to 0."""
    control: Floats
    """The effects of what is held equal, a column each."""
    tie: Floats
    """nu; 0 without ties."""
    scores: Floats
    """The expected fraction of wins, a tie counting half, of each system against the others at equal control."""


def fit(cells: Cells, counts: Floats, start: Fits | None = None) -> Fits:
    """Fit the model to `counts[set, cell, (wins of the first, ties, wins of the second)]`.

    `start`: the fit of similar counts, from which Newton's method needs fewer steps.
    """
    ties = bool(counts[..., 1].any())
    design = cells.make_design(ties)
    parameters = np.zeros((len(counts), design.shape[1]))
    if start is not None:
        parameters += np.concatenate([start.strengths[0], start.control[0], np.log(start.tie[: int(ties)])])
    totals = counts.sum(axis=(1, 2))
    scale = np.where(totals > 0, totals, 1.0)[:, None, None]
    shares = counts / scale
    value = _likelihood(parameters, design, shares, ties)
    active = np.arange(len(counts))
    for _ in range(_STEPS):
        step = _newton(cells, parameters[active], design, shares[active], ties)
        moved, new = _advance(parameters[active], step, value[active], design, shares[active], ties)
        change = np.abs(moved - parameters[active]).max(axis=1)
        parameters[active], value[active] = moved, new
        active = active[change > _CLOSE]
        if not len(active):
            break
    strengths = parameters[:, : cells.systems]
    strengths = strengths - strengths.mean(axis=1, keepdims=True)
    control = parameters[:, cells.systems : parameters.shape[1] - ties]
    nu = np.exp(parameters[:, -1]) if ties else np.zeros(len(counts))
    return Fits(strengths, control, nu, _expected_scores(strengths, nu))


def _log_weights(parameters: Floats, design: Floats, ties: bool) -> tuple[Floats, Floats, Floats]:
    """Return d/2, the logarithm of a tie's weight and the larger of both weights' logarithms, sets by cells."""
    half = parameters @ design.T / 2
    draw = np.repeat(parameters[:, -1:], len(design), axis=1) if ties else np.full_like(half, -np.inf)
    return half, draw, np.maximum(np.abs(half), draw)


def _probabilities(parameters: Floats, design: Floats, ties: bool) -> tuple[Floats, Floats, Floats]:
    """Return the probabilities of a win, a tie and a loss in each cell, sets by cells."""
    half, draw, top = _log_weights(parameters, design, ties)
    win, tie, loss = np.exp(half - top), np.exp(draw - top), np.exp(-half - top)
    total = win + tie + loss
    return win / total, tie / total, loss / total


def _likelihood(parameters: Floats, design: Floats, shares: Floats, ties: bool) -> Floats:
    half, draw, top = _log_weights(parameters, design, ties)
    log_total = top + np.log(np.exp(half - top) + np.exp(draw - top) + np.exp(-half - top))
    known = shares[..., 0] * half - shares[..., 2] * half
    if ties:
        known = known + shares[..., 1] * draw
    return np.asarray((known - shares.sum(axis=2) * log_total).sum(axis=1) - _RIDGE / 2 * (parameters**2).sum(axis=1))


def _newton(cells: Cells, parameters: Floats, design: Floats, shares: Floats, ties: bool) -> Floats:
    """Return the step to where the second-order expansion is largest."""
    win, tie, loss = _probabilities(parameters, design, ties)
    total = shares.sum(axis=2)
    slope = (shares[..., 0] - shares[..., 2] - total * (win - loss)) / 2
    gradient = slope @ design - _RIDGE * parameters
    if ties:
        gradient[:, -1] += (shares[..., 1] - total * tie).sum(axis=1)
    lead = win - loss
    curved = cells.sum_products(design, total * (win + loss - lead**2) / 4)
    if ties:
        mixed = (-total * tie * lead / 2) @ design
        curved[:, -1] += mixed
        curved[:, :, -1] += mixed
        curved[:, -1, -1] += (total * tie * (1 - tie)).sum(axis=1)
    curved += _RIDGE * np.eye(design.shape[1])
    systems = cells.systems
    curved[:, :systems, :systems] += 1 / systems  # only differences matter: the strengths go on adding up to 0
    return np.linalg.solve(curved, gradient[..., None])[..., 0]


def _advance(
    parameters: Floats, step: Floats, value: Floats, design: Floats, shares: Floats, ties: bool
) -> tuple[Floats, Floats]:
    """Return the parameters after a step that is not too long and does not lead down, and the likelihood there."""
    longest = np.abs(step).max(axis=1, keepdims=True)
    step = step * np.minimum(1.0, 4.0 / np.where(longest > 0, longest, 1.0))
    size = np.ones((len(step), 1))
    for _ in range(_HALVINGS):
        moved = np.clip(parameters + size * step, -MOST, MOST)
        new = _likelihood(moved, design, shares, ties)
        down = new < value - 1e-15 * np.abs(value)
        if not down.any():
            break
        size[down] /= 2
    return np.where(down[:, None], parameters, moved), np.where(down, value, new)


def _expected_scores(strengths: Floats, nu: Floats) -> Floats:
    half = (strengths[:, :, None] - strengths[:, None, :]) / 2
    win, loss = np.exp(half), np.exp(-half)
    share = (win + nu[:, None, None] / 2) / (win + loss + nu[:, None, None])
    systems = strengths.shape[1]
    return np.asarray((share.sum(axis=2) - 0.5) / max(systems - 1, 1))


def is_connected(systems: int, left: Ints, right: Ints, outcome: Ints) -> bool:
    """Return whether no group of systems only ever wins against the rest; a tie counts for both sides."""
    beats = np.eye(systems, dtype=bool)
    beats[left[outcome >= 0], right[outcome >= 0]] = True
    beats[right[outcome <= 0], left[outcome <= 0]] = True
    for middle in range(systems):
        beats |= beats[:, [middle]] & beats[[middle], :]
    return bool(beats.all())
