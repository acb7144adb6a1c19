"""Fitting against the normal equations of the whole problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.metrics.learned.training.examples import examples_of
from dialeval.metrics.learned.training.fitting import (
    SET_WEIGHT,
    AdemSettings,
    _drawn,
    calibrated,
    fit_adem,
    fit_identity,
)
from dialeval.metrics.learned.weights import Weights
from metrics.learned.judges import invented_ratings, tiny_vectors


def test_the_fit_is_the_solution_of_the_problem(tmp_path: Path) -> None:
    """Against the normal equations of the full problem, with outer products written out."""
    examples = examples_of(invented_ratings(), tiny_vectors(tmp_path / "e"))
    settings = AdemSettings(strength=3.0, response_strength=5.0, rank=8)
    found = fit_adem(examples, settings)
    c, r, said = (part.astype(np.float64) for part in (examples.context, examples.reference, examples.response))
    features = np.concatenate(
        [
            np.einsum("ij,ik->ijk", c, said).reshape(len(c), -1),
            np.einsum("ij,ik->ijk", r, said).reshape(len(c), -1),
            said,
        ],
        1,
    )
    z = examples.scores.copy()
    weight = np.empty(len(z))
    for each in np.unique(examples.sets):
        mine = examples.sets == each
        features[mine] -= features[mine].mean(0)
        z[mine] = (z[mine] - z[mine].mean()) / z[mine].std()
        weight[mine] = SET_WEIGHT / mine.sum()
    eye = np.concatenate([np.eye(8).ravel(), np.eye(8).ravel(), np.zeros(8)])
    term = features @ eye
    share = (weight * term * z).sum() / (weight * term * term).sum()
    penalty = np.concatenate([np.full(128, 3.0), np.full(8, 5.0)])
    left = features.T @ (weight[:, None] * features) + np.diag(penalty)
    expected = np.linalg.solve(left, features.T @ (weight * (z - share * term)))
    assert found.identity == pytest.approx(share, rel=1e-4)
    np.testing.assert_allclose(found.context_left @ found.context_right.T, expected[:64].reshape(8, 8), atol=5e-3)
    np.testing.assert_allclose(
        found.reference_left @ found.reference_right.T, expected[64:128].reshape(8, 8), atol=5e-3
    )
    np.testing.assert_allclose(found.response, expected[128:], rtol=2e-3, atol=1e-3)
    assert fit_adem(examples, settings).digest == found.digest


def test_fits_are_on_the_scale_and_better_than_nothing(tmp_path: Path) -> None:
    vectors = tiny_vectors(tmp_path / "e")
    examples = examples_of(invented_ratings(240), vectors)
    fits: list[Weights] = [fit_identity(examples), fit_adem(examples, AdemSettings(0.01, 0.01))]
    agreement = []
    for weights in fits:
        scores = weights.score(examples)
        assert abs(scores.mean() - examples.scores.mean()) < 0.2
        agreement.append(np.corrcoef(scores, examples.scores)[0, 1])
    assert agreement[1] > agreement[0] + 0.1


def test_a_case_that_the_ratings_do_not_show_takes_the_constants_of_another(tmp_path: Path) -> None:
    vectors = tiny_vectors(tmp_path / "e")
    ratings = replace(invented_ratings(30), contexts=[[]] * 30)
    calibration = fit_identity(examples_of(ratings, vectors)).calibration
    assert calibration["both"] == calibration["context"] == calibration["reference"]
    examples = examples_of(invented_ratings(30), vectors)
    weights = fit_identity(examples)
    assert len(set(weights.calibration.values())) == 3
    assert calibrated(weights, examples).calibration == weights.calibration


def test_at_most_so_many_rows_of_each_set_are_drawn_the_same_ones_every_time(tmp_path: Path) -> None:
    examples = examples_of(invented_ratings(90, 3), tiny_vectors(tmp_path / "e"))
    dice = np.random.default_rng(0)  # the shipped judge was made of the rows that this seed draws
    expected = sorted(
        row for each in range(3) for row in dice.permutation(np.flatnonzero(examples.sets == each))[:7].tolist()
    )
    assert _drawn(examples, 7).rows.tolist() == examples.rows[expected].tolist()
    assert len(_drawn(examples, 30)) == 90


@pytest.mark.parametrize("wrong", [{"strength": 0.0}, {"response_strength": 0.0}, {"most_rows": 0}, {"rank": -1}])
def test_settings_are_checked_one_by_one(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        AdemSettings(**wrong)  # type: ignore[arg-type]
    AdemSettings(most_rows=1, rank=0)


def test_equal_ratings_teach_nothing(tmp_path: Path) -> None:
    examples = examples_of(invented_ratings(30), tiny_vectors(tmp_path / "e"))
    with pytest.raises(SettingError, match="nothing to learn"):
        fit_adem(replace(examples, scores=np.full(30, 3.0)))
