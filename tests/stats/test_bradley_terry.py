"""The fit of wins and ties: equal to independent programs, and to the likelihood's own maximum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dialeval.stats.bradley_terry import MOST, Cells, fit, is_connected


def pairs_of(systems: int, seed: int, ties: float = 0.0, rounds: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Cells of all pairs, and their wins, ties and losses."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=systems)
    left, right = np.triu_indices(systems, 1)
    win = 1 / (1 + np.exp(strength[right] - strength[left]))
    shares = np.column_stack([win * (1 - ties), np.full(len(left), ties), (1 - win) * (1 - ties)])
    counts = np.array([rng.multinomial(rounds, row) for row in shares]) + 1
    counts[:, 1] -= ties == 0
    return np.column_stack([left, right]), counts.astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_strengths_are_those_of_choix(seed: int) -> None:
    choix = pytest.importorskip("choix")
    cells, counts = pairs_of(6, seed)
    listed = []
    for (left, right), (wins, _, losses) in zip(cells.tolist(), counts.tolist(), strict=True):
        listed += [(left, right)] * int(wins) + [(right, left)] * int(losses)
    theirs = choix.opt_pairwise(6, listed, alpha=0, tol=1e-12)
    ours = fit(Cells(6, cells[:, 0], cells[:, 1]), counts[None]).strengths[0]
    assert ours == pytest.approx(theirs - theirs.mean(), abs=1e-6)


def davidson(cells: np.ndarray, counts: np.ndarray, control: np.ndarray | None) -> np.ndarray:
    """The same by a general optimizer, written out from the formula."""
    systems = int(cells.max()) + 1

    def loss(parameters: np.ndarray) -> float:
        strength = np.append(parameters[: systems - 1], -parameters[: systems - 1].sum())
        nu = np.exp(parameters[systems - 1])
        odds = np.exp(strength[cells[:, 0]] - strength[cells[:, 1]])
        if control is not None:
            odds = odds * np.exp(parameters[systems] * control)
        total = odds + 1 + nu * np.sqrt(odds)
        chances = np.column_stack([odds / total, nu * np.sqrt(odds) / total, 1 / total])
        return -float((counts * np.log(chances)).sum())

    size = systems + (control is not None)
    return np.asarray(minimize(loss, np.zeros(size), method="BFGS", options={"gtol": 1e-9}).x)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("controlled", [False, True])
def test_ties_and_controls_are_those_of_a_general_optimizer(seed: int, controlled: bool) -> None:
    cells, counts = pairs_of(4, seed, ties=0.2)
    control = np.random.default_rng(seed).normal(size=len(cells)) if controlled else None
    if controlled:  # each pair of systems with two different controls, so that both can be told apart
        cells, counts = np.concatenate([cells, cells]), np.concatenate([counts, counts[::-1]])
        control = np.concatenate([control, -control])  # type: ignore[operator]
    found = fit(Cells(4, cells[:, 0], cells[:, 1], control), counts[None])
    theirs = davidson(cells, counts, control)
    assert found.strengths[0, :3] == pytest.approx(theirs[:3], abs=1e-6)
    assert np.log(found.tie[0]) == pytest.approx(theirs[3], abs=1e-6)
    if controlled:
        assert found.control[0, 0] == pytest.approx(theirs[4], abs=1e-6)
    else:
        assert found.control.shape == (1, 0)


@given(st.integers(2, 6), st.integers(0, 10**6), st.booleans())
@settings(max_examples=30)
def test_many_sets_of_counts_are_fitted_as_each_alone(systems: int, seed: int, ties: bool) -> None:
    cells, counts = pairs_of(systems, seed, ties=0.3 * ties)
    other = np.random.default_rng(seed).permutation(counts)
    kinds = Cells(systems, cells[:, 0], cells[:, 1])
    both = fit(kinds, np.stack([counts, other]))
    assert both.strengths[0] == pytest.approx(fit(kinds, counts[None]).strengths[0], abs=1e-8)
    assert both.strengths[1] == pytest.approx(fit(kinds, other[None]).strengths[0], abs=1e-8)
    assert both.strengths.sum(axis=1) == pytest.approx([0, 0], abs=1e-9)
    started = fit(kinds, other[None], both)
    assert started.strengths[0] == pytest.approx(both.strengths[1], abs=1e-8)
    # Swapping the sides of every pair changes nothing.
    swapped = fit(Cells(systems, cells[:, 1], cells[:, 0]), counts[None, :, ::-1])
    assert swapped.strengths[0] == pytest.approx(both.strengths[0], abs=1e-8)


def test_expected_scores() -> None:
    counts = np.array([[[30.0, 0, 10]]])
    found = fit(Cells(2, np.array([0]), np.array([1])), counts)
    assert found.strengths[0] == pytest.approx([np.log(3) / 2, -np.log(3) / 2])
    assert found.scores[0] == pytest.approx([0.75, 0.25])
    tied = fit(Cells(2, np.array([0]), np.array([1])), np.array([[[30.0, 20, 10]]]))
    assert tied.scores[0] == pytest.approx([40 / 60, 20 / 60])


def test_a_system_that_always_wins_stops_at_the_end() -> None:
    found = fit(Cells(2, np.array([0]), np.array([1])), np.array([[[40.0, 0, 0]]]))
    assert MOST == 12
    assert found.strengths[0] == pytest.approx([12, -12])
    assert found.scores[0] == pytest.approx([1, np.exp(-24)])
    three = fit(Cells(3, np.array([0, 1]), np.array([1, 2])), np.array([[[40.0, 0, 0], [3.0, 0, 2]]])).strengths[0]
    assert three.sum() == pytest.approx(0, abs=1e-9)
    assert three[1] - three[2] == pytest.approx(np.log(1.5), abs=1e-6)
    assert three[0] > MOST


def test_connected() -> None:
    left, right = np.array([0, 1]), np.array([1, 2])
    assert not is_connected(3, left, right, np.array([1, 1]))
    assert not is_connected(3, left, right, np.array([0, 1]))
    assert is_connected(3, left, right, np.array([0, 0]))
    assert is_connected(3, np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([1, 1, 1]))
    assert not is_connected(3, np.array([0]), np.array([1]), np.array([0]))
