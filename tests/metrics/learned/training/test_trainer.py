"""What both models share: batches, tensors, and the first constants."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.core.errors import SettingError

torch = pytest.importorskip("torch")

from dialeval.metrics.learned.training.model import ADEM  # noqa: E402
from dialeval.metrics.learned.training.trainer import Schedule, as_tensor, batches  # noqa: E402


def test_every_row_is_in_one_batch() -> None:
    order = torch.Generator().manual_seed(3)
    rows = [batch.tolist() for batch in batches(10, 4, order)]
    assert [len(batch) for batch in rows] == [4, 4, 2]
    assert sorted(row for batch in rows for row in batch) == list(range(10))
    assert rows != [batch.tolist() for batch in batches(10, 4, order)], "another order every time"


def test_tensors_do_not_share_memory_that_must_not_change() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = as_tensor(array, torch.float64, "cpu")
    tensor[0] = 7
    assert array[0] == 0
    with pytest.raises(SettingError, match="numbers are wanted"):
        as_tensor(["a"], torch.float32, "cpu")


def test_calibration_gives_the_mean_and_the_spread_of_the_scores() -> None:
    dice = np.random.default_rng(0)
    inputs = tuple(dice.normal(size=(50, 4)) for _ in range(3))
    human = dice.uniform(1, 5, 50)
    model = ADEM(4, 4, 4)
    model._calibrate(*model._rows(inputs, human))
    predicted = model.predict_on_single_batch(*inputs)
    assert predicted.mean() == pytest.approx(human.mean(), rel=1e-4)
    assert predicted.std() == pytest.approx(human.std(), rel=1e-4)
    model._calibrate(*model._rows(inputs, np.full(50, 3.0)))
    assert model.predict_on_single_batch(*inputs).mean() == pytest.approx(3.0, abs=1e-4)


def test_schedules_are_checked() -> None:
    for wrong in ((0, 1, 0.1), (1, 0, 0.1), (1, 1, 1.0), (1, 1, -0.1)):
        with pytest.raises(SettingError, match="at least 1"):
            Schedule(*wrong, patience=1, seed=0)
