"""The fit of wins and ties: equal to independent programs, and to the likelihood's own maximum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from dialeval.core.arrays import Floats
from dialeval.stats import bradley_terry
from dialeval.stats.bradley_terry import MOST, Cells, Fits, fit, is_connected


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


def test_expected_scores_of_several_systems() -> None:
    cells, counts = pairs_of(4, 3, ties=0.2)
    found = fit(Cells(4, cells[:, 0], cells[:, 1]), counts[None])
    (strengths,), (nu,) = found.strengths, found.tie
    for one in range(4):
        shares = []
        for other in {0, 1, 2, 3} - {one}:
            odds = np.exp(strengths[one] - strengths[other])
            shares.append((odds + nu * np.sqrt(odds) / 2) / (odds + 1 + nu * np.sqrt(odds)))
        assert found.scores[0, one] == pytest.approx(np.mean(shares))
    alone = fit(Cells(1, np.zeros(0, np.int64), np.zeros(0, np.int64)), np.zeros((1, 0, 3)))
    assert (alone.strengths.tolist(), alone.scores.tolist()) == ([[0]], [[0]])


@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_wins_are_as_many_as_the_model_expects(ties: float) -> None:
    """The equations that a largest likelihood solves, to nearly the last digit, whatever the number of comparisons."""
    cells, counts = pairs_of(5, 8, ties)
    for many in (1e-4, 1.0, 1e6):
        found = fit(Cells(5, cells[:, 0], cells[:, 1]), many * counts[None])
        odds = np.exp(found.strengths[0][cells[:, 0]] - found.strengths[0][cells[:, 1]])
        total = odds + 1 + found.tie[0] * np.sqrt(odds)
        expected = counts.sum(axis=1) * (odds - 1) / total
        for system in range(5):
            signs = (cells[:, 0] == system) * 1.0 - (cells[:, 1] == system)
            assert signs @ expected == pytest.approx(signs @ (counts[:, 0] - counts[:, 2]), abs=1e-6)
        tied = counts.sum(axis=1) @ (found.tie[0] * np.sqrt(odds) / total)
        assert tied == pytest.approx(counts[:, 1].sum(), abs=1e-6)


@pytest.mark.parametrize("ties", [0.0, 0.3])
def test_a_fit_takes_few_steps_of_newton(ties: float, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    newton = bradley_terry._newton

    def count(parameters: Floats, *others: object) -> Floats:
        asked.append(len(parameters))
        return newton(parameters, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(bradley_terry, "_newton", count)
    for seed in range(4):
        asked.clear()
        cells, counts = pairs_of(5, seed, ties)
        control = np.linspace(-1, 1, 20)
        kinds = Cells(5, np.tile(cells[:, 0], 2), np.tile(cells[:, 1], 2), control)
        fit(kinds, np.stack([np.tile(counts, (2, 1)), np.tile(counts[::-1], (2, 1))]))
        assert len(asked) <= 7
        assert asked[0] == 2


def test_sets_without_a_comparison_leave_all_systems_equal() -> None:
    found = fit(Cells(3, np.array([0, 1]), np.array([1, 2])), np.array([[[0.0, 0, 0]] * 2, [[3.0, 0, 1], [2.0, 0, 2]]]))
    assert found.strengths[0].tolist() == [0, 0, 0]
    assert found.scores[0].tolist() == [0.5, 0.5, 0.5]
    assert found.strengths[1][0] - found.strengths[1][1] == pytest.approx(np.log(3))
    assert found.strengths[1][1] == pytest.approx(found.strengths[1][2])


def log_likelihood(cells: np.ndarray, counts: np.ndarray, control: np.ndarray, found: Fits) -> float:
    d = found.strengths[0][cells[:, 0]] - found.strengths[0][cells[:, 1]] + found.control[0, 0] * control
    weights = np.column_stack([np.exp(d / 2), np.full(len(d), max(found.tie[0], 1e-300)), np.exp(-d / 2)])
    return float((counts * np.log(weights / weights.sum(axis=1, keepdims=True))).sum())


def test_few_comparisons_with_a_strong_control_have_the_largest_likelihood_too() -> None:
    """Steps of Newton lead down there and are halved; some likelihoods have their maximum at infinity."""
    random = np.random.default_rng(4)
    for _ in range(10):
        left, right = np.triu_indices(3, 1)
        cells, control = np.column_stack([left, right]), 4 * random.normal(size=3)
        counts = random.integers(0, 4, size=(3, 3)).astype(float)
        counts[0, 1] += 1
        found = fit(Cells(3, left, right, control), counts[None])

        def loss(
            parameters: np.ndarray,
            cells: np.ndarray = cells,
            counts: np.ndarray = counts,
            control: np.ndarray = control,
        ) -> float:
            strengths = np.array([[parameters[0], parameters[1], -parameters[0] - parameters[1]]])
            made = Fits(strengths, parameters[None, 3:], np.exp(parameters[2:3]), strengths)
            return -log_likelihood(cells, counts, control, made)

        best = minimize(loss, np.zeros(4), method="L-BFGS-B", bounds=[(-8, 8)] * 4)
        assert log_likelihood(cells, counts, control, found) >= -best.fun - 0.01


def test_connected() -> None:
    left, right = np.array([0, 1]), np.array([1, 2])
    assert not is_connected(3, left, right, np.array([1, 1]))
    assert not is_connected(3, left, right, np.array([0, 1]))
    assert is_connected(3, left, right, np.array([0, 0]))
    assert is_connected(3, np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([1, 1, 1]))
    assert not is_connected(3, np.array([0]), np.array([1]), np.array([0]))
