"""ADEM for vectors: what it takes, what it refuses, and how long it learns unless told otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError

torch = pytest.importorskip("torch")

from dialeval.adem import ADEM  # noqa: E402

DIMENSIONS = (4, 3, 5)


def batch(rows: int = 6, seed: int = 0) -> tuple[Floats, Floats, Floats, Floats]:
    dice = np.random.default_rng(seed)
    context, response, reference = (dice.normal(size=(rows, size)) for size in DIMENSIONS)
    return context, response, reference, dice.uniform(1, 5, rows)


def test_tensors_arrays_and_lists_are_the_same() -> None:
    data = batch()
    expected = ADEM(*DIMENSIONS).predict_on_single_batch(*data[:3])
    for form in (torch.from_numpy, np.ndarray.tolist):
        np.testing.assert_array_equal(ADEM(*DIMENSIONS).predict_on_single_batch(*map(form, data[:3])), expected)


def test_wrong_shapes_and_settings_are_refused() -> None:
    c, said, r, _ = batch()
    with pytest.raises(SettingError, match="model_response has the shape"):
        ADEM(*DIMENSIONS).predict_on_single_batch(c, said[:3], r)
    for wrong in (c[:, :3], c[0]):
        with pytest.raises(SettingError, match="context has the shape"):
            ADEM(*DIMENSIONS).predict_on_single_batch(wrong, said, r)
    for dimensions in ((0, 3, 5), (4, 0, 5), (4, 3, 0)):
        with pytest.raises(SettingError, match="at least one number"):
            ADEM(*dimensions)
    with pytest.raises(SettingError, match="beta is not 0"):
        ADEM(*DIMENSIONS, beta=0.0)
    ADEM(1, 1, 1, beta=-1.0)


def test_unless_told_otherwise_it_learns_for_100_epochs_or_until_5_bring_nothing() -> None:
    c, said, r, human = batch(40)
    assert ADEM(*DIMENSIONS).fit(c, said, r, human, validation_share=0).epochs == 100
    fitted = ADEM(*DIMENSIONS, 0.1).fit(c, said, r, human, validation=batch(40, seed=9))
    assert fitted.epochs == fitted.best_epoch + 1 + 5 < 100


def test_gradients_are_clipped() -> None:
    models = [ADEM(*DIMENSIONS), ADEM(*DIMENSIONS, clip=1e9)]
    for model in models:
        model.train_on_single_batch(*batch())
    clipped, whole = (
        np.concatenate([getattr(model.head, name).grad.numpy().ravel() for name in ("M", "N", "alpha", "beta")])
        for model in models
    )
    assert np.linalg.norm(whole) > 5
    np.testing.assert_allclose(clipped, 5 * whole / np.linalg.norm(whole), rtol=1e-4)


def test_vectors_are_numbers_in_rows_of_one_length() -> None:
    c, said, r, _ = batch()
    for wrong, message in (
        (c * np.nan, "not finite numbers"),
        ([[1.0], [1.0, 2.0]], "differ in length"),
        ([["a"]], "numbers"),
    ):
        with pytest.raises(SettingError, match=message):
            ADEM(*DIMENSIONS).predict_on_single_batch(wrong, said, r)
