"""What both models share, against a NumPy twin: formula, gradients, L1; batches, early stopping, saved folders."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, SettingError
from sealing import write_sealed

torch = pytest.importorskip("torch")

from dialeval.judges.trainer import ADEM, iterate_batches, to_tensor  # noqa: E402

DIMENSIONS = (4, 3, 5)
ALL_SIZES = ("context_dim", "model_response_dim", "reference_response_dim")


def batch(rows: int = 6, seed: int = 0) -> tuple[Floats, Floats, Floats, Floats]:
    dice = np.random.default_rng(seed)
    context, response, reference = (dice.normal(size=(rows, size)) for size in DIMENSIONS)
    return context, response, reference, dice.uniform(1, 5, rows)


def twin(
    m: Floats, n: Floats, alpha: float, beta: float, l1: float, data: tuple[Floats, ...]
) -> tuple[Floats, float, dict[str, Any]]:
    """The formula, the loss and its gradients by hand."""
    c, said, r, human = data
    score = (np.einsum("ij,jk,ik->i", c, m, said) + np.einsum("ij,jk,ik->i", r, n, said) - alpha) / beta
    error = score - human
    loss = float((error**2).sum() + l1 * (np.abs(m).sum() + np.abs(n).sum()))
    gradients = {
        "M": np.einsum("i,ij,ik->jk", 2 * error / beta, c, said) + l1 * np.sign(m),
        "N": np.einsum("i,ij,ik->jk", 2 * error / beta, r, said) + l1 * np.sign(n),
        "alpha": -(2 * error / beta).sum(),
        "beta": -(2 * error * score / beta).sum(),
    }
    return score, loss, gradients


def test_it_starts_as_the_identity_on_the_shared_part() -> None:
    model = ADEM(*DIMENSIONS, 0.01)
    np.testing.assert_array_equal(model.head.M.detach().numpy(), np.eye(4, 3))
    np.testing.assert_array_equal(model.head.N.detach().numpy(), np.eye(5, 3))


def test_formula_loss_and_gradients_are_those_of_the_twin() -> None:
    dice = np.random.default_rng(3)
    m, n = dice.normal(size=(4, 3)), dice.normal(size=(5, 3))
    model = ADEM(*DIMENSIONS, 0.01, l1=0.3, alpha=0.7, beta=1.9, max_grad_norm=1e9)
    with torch.no_grad():
        model.head.M.copy_(torch.from_numpy(m))
        model.head.N.copy_(torch.from_numpy(n))
    data = batch()
    score, loss, gradients = twin(m, n, 0.7, 1.9, 0.3, data)
    np.testing.assert_allclose(model.predict_on_single_batch(*data[:3]), score, rtol=1e-4, atol=1e-5)
    predicted, found = model.train_on_single_batch(*data)
    np.testing.assert_allclose(predicted, score, rtol=1e-4, atol=1e-5)
    assert found == pytest.approx(loss, rel=1e-5)
    for name, expected in gradients.items():
        got = getattr(model.head, name).grad.numpy()
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4, err_msg=name)


def test_gradients_of_the_twin_are_finite_differences() -> None:
    dice = np.random.default_rng(4)
    m, n = dice.normal(size=(4, 3)), dice.normal(size=(5, 3))
    data, step = batch(), 1e-6
    gradients = twin(m, n, 0.7, 1.9, 0.3, data)[2]
    for at in np.ndindex(m.shape):
        up, down = m.copy(), m.copy()
        up[at] += step
        down[at] -= step
        slope = (twin(up, n, 0.7, 1.9, 0.3, data)[1] - twin(down, n, 0.7, 1.9, 0.3, data)[1]) / (2 * step)
        assert slope == pytest.approx(gradients["M"][at], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("scores", [[1.0], 2.0, [1.0] * 7, [1.0] * 5 + [float("nan")], [[1.0] * 6], ["a"] * 6])
def test_there_is_one_human_score_for_each_row(scores: Any) -> None:
    model = ADEM(*DIMENSIONS)
    with pytest.raises(SettingError):
        model.train_on_single_batch(*batch()[:3], scores)
    with pytest.raises(SettingError):
        model.fit(*batch()[:3], scores)
    np.testing.assert_array_equal(model.head.M.detach().numpy(), np.eye(4, 3))


def test_a_few_rows_are_fitted_with_one_held_out() -> None:
    c, said, r, human = batch(3)
    fitted = ADEM(*DIMENSIONS, 0.01).fit(c, said, r, human, epochs=30)
    assert np.isfinite(fitted.validation_losses).all()
    assert len(fitted.validation_losses) == fitted.epochs
    assert ADEM(*DIMENSIONS).fit(c[:1], said[:1], r[:1], human[:1], epochs=3).epochs == 3
    with pytest.raises(SettingError, match="validation holds no rows"):
        ADEM(*DIMENSIONS).fit(c, said, r, human, validation=(c[:0], said[:0], r[:0], human[:0]))
    for wrong in ({"epochs": 0}, {"batch_size": 0}, {"validation_share": 1.0}, {"validation_share": -0.1}):
        with pytest.raises(SettingError, match="at least 1"):
            ADEM(*DIMENSIONS).fit(c, said, r, human, **wrong)


def test_fitting_learns_and_the_same_seed_gives_the_same_weights() -> None:
    c, said, r, _ = batch(200)
    human = 3 + 0.8 * (c[:, 0] * said[:, 1])
    models = []
    for seed in (1, 1, 2):
        model = ADEM(*DIMENSIONS, 0.02)
        fitted = model.fit(c, said, r, human, epochs=60, seed=seed, patience=60)
        assert fitted.validation_losses[fitted.best_epoch] == min(fitted.validation_losses)
        assert fitted.train_losses[-1] < 0.2 * fitted.train_losses[0]
        models.append(model.head.M.detach().numpy())
    np.testing.assert_array_equal(models[0], models[1])
    assert not np.array_equal(models[0], models[2])


def test_training_stops_early_and_keeps_the_best() -> None:
    c, said, r, human = batch(40)
    held = batch(40, seed=9)
    model = ADEM(*DIMENSIONS, 0.1)
    fitted = model.fit(c, said, r, human, epochs=200, patience=3, validation=held)
    assert fitted.epochs < 200
    assert fitted.epochs == fitted.best_epoch + 1 + 3
    error = float(((model.predict_on_single_batch(*held[:3]) - held[3]) ** 2).mean())
    assert error == pytest.approx(min(fitted.validation_losses), rel=1e-5)
    with pytest.raises(SettingError, match="no rows are left"):
        ADEM(*DIMENSIONS).fit(c[:0], said[:0], r[:0], human[:0])


def test_saving_and_loading_is_exact(tmp_path: Path) -> None:
    model = ADEM(*DIMENSIONS, 0.05, l1=0.1, constants="fixed")
    model.train_on_single_batch(*batch())
    again = ADEM.load(model.save(tmp_path / "model"))
    for name, value in model.network.state_dict().items():
        assert torch.equal(value, again.network.state_dict()[name])
    assert (again.l1, again.constants, again.learning_rate) == (0.1, "fixed", 0.05)
    assert sorted(file.name for file in (tmp_path / "model").iterdir()) == ["adem.json", "adem.safetensors"]


def test_weights_that_do_not_fit_the_settings_are_refused(tmp_path: Path) -> None:
    folder = ADEM(*DIMENSIONS).save(tmp_path)
    file = folder / "adem.json"
    document = json.loads(file.read_text())
    for name in ("context_dim", "odd"):
        write_sealed({**document, "settings": {**document["settings"], name: 7}}, file)
        with pytest.raises(DataError, match="holds no model"):
            ADEM.load(folder)
    write_sealed({**document, "settings": {**document["settings"], **dict.fromkeys(ALL_SIZES, 7)}}, file)
    with pytest.raises(DataError) as error:
        ADEM.load(folder)
    assert len(error.value.problems[0].what) == 300, "what PyTorch says is cut"
    file.write_text(json.dumps({**document, "settings": {}}))
    with pytest.raises(DataError, match="was changed after it was saved"):
        ADEM.load(folder)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("a pickle was loaded",))

    file = tmp_path / "model.pt"
    file.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(DataError, match="never from a pickle"):
        ADEM.load(file)
    folder = ADEM(*DIMENSIONS).save(tmp_path / "model")
    (folder / "adem.safetensors").write_bytes(file.read_bytes())
    with pytest.raises(DataError, match=r"does not belong to adem\.json"):
        ADEM.load(folder)
    document = json.loads((folder / "adem.json").read_text())
    document["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    write_sealed(document, folder / "adem.json")
    with pytest.raises(DataError, match="holds no readable weights"):
        ADEM.load(folder)
    with pytest.raises(DataError, match="there is no such file"):
        ADEM.load(tmp_path / "nowhere")


def test_progress_counts_epochs() -> None:
    steps: list[tuple[int, int | None]] = []
    ADEM(*DIMENSIONS).fit(*batch(), epochs=3, validation_share=0, progress=lambda *step: steps.append(step))
    assert steps == [(1, 3), (2, 3), (3, 3)]


def test_every_row_is_in_one_batch() -> None:
    order = torch.Generator().manual_seed(3)
    rows = [batch.tolist() for batch in iterate_batches(10, 4, order)]
    assert [len(batch) for batch in rows] == [4, 4, 2]
    assert sorted(row for batch in rows for row in batch) == list(range(10))
    assert rows != [batch.tolist() for batch in iterate_batches(10, 4, order)], "another order every time"


def test_tensors_do_not_share_memory_that_must_not_change() -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = to_tensor(array, torch.float64, "cpu")
    tensor[0] = 7
    assert array[0] == 0
    with pytest.raises(SettingError, match="numbers are wanted"):
        to_tensor(["a"], torch.float32, "cpu")


@pytest.mark.parametrize(
    "wrong", [{"learning_rate": 0.0}, {"learning_rate": -1.0}, {"l1": -0.1}, {"max_grad_norm": 0.0}]
)
def test_rates_are_checked_one_by_one(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match="above 0"):
        ADEM(*DIMENSIONS, **wrong)


def test_other_constants_and_devices_are_refused() -> None:
    with pytest.raises(SettingError, match="learned or fixed"):
        ADEM(*DIMENSIONS, constants="odd")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="no device"):
        ADEM(*DIMENSIONS, device="odd")


def test_fixed_constants_stay_and_learned_ones_move() -> None:
    for constants in ("fixed", "learned"):
        model = ADEM(*DIMENSIONS, 0.1, alpha=0.5, beta=2.0, constants=constants)
        model.train_on_single_batch(*batch())
        after = (model.head.alpha.item(), model.head.beta.item())
        assert (after == (0.5, 2.0)) == (constants == "fixed")


def test_nothing_is_held_out_of_one_row_or_where_the_share_is_nothing() -> None:
    for rows, share in ((1, 0.5), (6, 0.0)):
        data = batch(rows)
        known, out = ADEM(*DIMENSIONS)._split(data, None, share, torch.Generator())
        assert (len(known[1]), out) == (rows, None)


def test_a_model_of_a_later_layout_is_refused(tmp_path: Path) -> None:
    folder = ADEM(*DIMENSIONS).save(tmp_path)
    file = folder / "adem.json"
    document = json.loads(file.read_text())
    assert document["format"] == 1
    file.write_text(json.dumps({**document, "format": 2}))
    with pytest.raises(DataError, match="was saved in layout 2"):
        ADEM.load(folder)


def test_without_its_weights_a_folder_says_which_file_it_lacks(tmp_path: Path) -> None:
    folder = ADEM(*DIMENSIONS).save(tmp_path)
    (folder / "adem.safetensors").unlink()
    with pytest.raises(DataError, match=r"adem\.safetensors.*there is no such file"):
        ADEM.load(folder)


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
        assert model.optimizer.param_groups[0]["lr"] == 0.25
        for wrong in (0.0, -1.0):
            with pytest.raises(SettingError, match="above 0"):
                model.assign_learning_rate(wrong)


def test_calibration_gives_the_mean_and_the_spread_of_the_scores() -> None:
    dice = np.random.default_rng(0)
    inputs = tuple(dice.normal(size=(50, 4)) for _ in range(3))
    human = dice.uniform(1, 5, 50)
    model = ADEM(4, 4, 4)
    model._calibrate(*model._read_rows((*inputs, human)))
    predicted = model.predict_on_single_batch(*inputs)
    assert predicted.mean() == pytest.approx(human.mean(), rel=1e-4)
    assert predicted.std() == pytest.approx(human.std(), rel=1e-4)
    model._calibrate(*model._read_rows((*inputs, np.full(50, 3.0))))
    assert model.predict_on_single_batch(*inputs).mean() == pytest.approx(3.0, abs=1e-4)
