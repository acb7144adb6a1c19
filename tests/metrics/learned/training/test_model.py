"""ADEM in PyTorch against a NumPy twin: formula, gradients, L1; saving, seeds, early stopping."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.core.errors import SettingError

torch = pytest.importorskip("torch")

from dialeval.adem import ADEM  # noqa: E402
from metrics.learned.training.test_trainer import DIMENSIONS, batch, twin  # noqa: E402


def test_tensors_arrays_and_lists_are_the_same() -> None:
    data = batch()
    expected = ADEM(*DIMENSIONS).predict_on_single_batch(*data[:3])
    for form in (torch.from_numpy, np.ndarray.tolist):
        np.testing.assert_array_equal(ADEM(*DIMENSIONS).predict_on_single_batch(*map(form, data[:3])), expected)


def test_wrong_shapes_and_settings_are_refused() -> None:
    c, said, r, _ = batch()
    with pytest.raises(SettingError, match="model_response has the shape"):
        ADEM(*DIMENSIONS).predict_on_single_batch(c, said[:3], r)
    for wrong in ({"learning_rate": 0.0}, {"l1": -1.0}, {"beta": 0.0}, {"constants": "odd"}, {"device": "odd"}):
        with pytest.raises(SettingError):
            ADEM(*DIMENSIONS, **wrong)


def test_vectors_are_numbers_in_rows_of_one_length() -> None:
    c, said, r, _ = batch()
    for wrong, message in (
        (c * np.nan, "not finite numbers"),
        ([[1.0], [1.0, 2.0]], "differ in length"),
        ([["a"]], "numbers"),
    ):
        with pytest.raises(SettingError, match=message):
            ADEM(*DIMENSIONS).predict_on_single_batch(wrong, said, r)


def test_the_loss_has_the_l1_term_by_default() -> None:
    data = batch()
    _, loss = ADEM(*DIMENSIONS).train_on_single_batch(*data)
    assert loss == pytest.approx(twin(np.eye(4, 3), np.eye(5, 3), 0.0, 1.0, 0.3, data)[1], rel=1e-5)


def test_gradients_are_no_longer_than_asked_for() -> None:
    model = ADEM(*DIMENSIONS, max_grad_norm=0.5)
    model.train_on_single_batch(*batch())
    squares = [float(part.grad.square().sum()) for part in model.network.parameters() if part.grad is not None]
    assert np.sqrt(sum(squares)) == pytest.approx(0.5, rel=1e-3)
    with pytest.raises(SettingError, match="max_grad_norm is above 0"):
        ADEM(*DIMENSIONS, max_grad_norm=0.0)


def test_a_learning_rate_holds_from_its_batch_on() -> None:
    """The first step of Adam moves every number by the learning rate."""
    for change in ("batch", "assign"):
        model = ADEM(*DIMENSIONS, 0.01, constants="fixed")
        if change == "assign":
            model.assign_learning_rate(0.25)
        model.train_on_single_batch(*batch(), learning_rate=0.25 if change == "batch" else None)
        np.testing.assert_allclose(np.abs(model.head.M.detach().numpy() - np.eye(4, 3)), 0.25, rtol=1e-3)
        assert model.learning_rate == 0.25
        assert model.optimiser.param_groups[0]["lr"] == 0.25
        for wrong in (0.0, -1.0):
            with pytest.raises(SettingError, match="above 0"):
                model.assign_learning_rate(wrong)
