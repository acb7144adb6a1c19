"""ADEM with its own encoder: padding, masks, empty turns, given embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.core.errors import SettingError

torch = pytest.importorskip("torch")

from dialeval.adem import ADEMWithEncoder, EncoderSettings  # noqa: E402

SIZES = (12, 5)
SETTINGS = EncoderSettings(utterance=6, context=4)


def sequences(rows: int = 5, seed: int = 0) -> tuple[Any, ...]:
    """Contexts of up to 3 turns, responses and references, padded, with masks."""
    dice = np.random.default_rng(seed)
    words: list[Any] = []
    masks: list[Any] = []
    for shape in ((rows, 3, 4), (rows, 4), (rows, 4)):
        masks.append(np.arange(4) < dice.integers(1, 5, shape[:-1])[..., None])
        words.append(np.where(masks[-1], dice.integers(0, 12, shape), 0))
    return (*words, *masks)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_padding_and_batches_change_nothing(cell: Any) -> None:
    model = ADEMWithEncoder(*SIZES, EncoderSettings(6, 4, layers=2, cell=cell), seed=3)
    data = sequences()
    whole = model.predict_on_single_batch(*data)
    alone = [model.predict_on_single_batch(*(part[row : row + 1] for part in data))[0] for row in range(5)]
    np.testing.assert_allclose(alone, whole, rtol=1e-5, atol=1e-6)
    wide = []
    for part in data:
        grown = np.zeros((*part.shape[:-1], part.shape[-1] + 3), part.dtype)
        grown[..., 2:-1] = part  # padding on either side: the mask decides
        wide.append(np.concatenate([np.zeros_like(grown[:, :1]), grown], 1) if grown.ndim == 3 else grown)
    np.testing.assert_allclose(model.predict_on_single_batch(*wide), whole, rtol=1e-5, atol=1e-6)


def test_an_empty_turn_is_no_turn_and_an_empty_context_a_zero() -> None:
    model = ADEMWithEncoder(*SIZES, SETTINGS, seed=1)
    context, said, reference, mask, one, other = sequences(1)
    emptied = mask.copy()
    emptied[:, 1] = False
    two = model.predict_on_single_batch(context, said, reference, emptied, one, other)
    left_out = model.predict_on_single_batch(context[:, [0, 2]], said, reference, mask[:, [0, 2]], one, other)
    np.testing.assert_allclose(two, left_out, rtol=1e-5)
    assert np.isfinite(model.predict_on_single_batch(context, said, reference, np.zeros_like(mask), one, other)).all()


def test_inputs_without_turns_or_words_and_of_different_lengths() -> None:
    model = ADEMWithEncoder(*SIZES, SETTINGS, seed=1)
    context, said, reference, mask, one, other = sequences(4)
    nothing = model.predict_on_single_batch(context, said, reference, np.zeros_like(mask), one, other)
    for part in (np.s_[:, :0], np.s_[:, :, :0]):
        found = model.predict_on_single_batch(context[part], said, reference, mask[part], one, other)
        np.testing.assert_allclose(found, nothing, rtol=1e-5)
    with pytest.raises(SettingError, match=r"different numbers of rows \(2, 4, 4\)"):
        model.predict_on_single_batch(context[:2], said, reference, mask[:2], one, other)
    with pytest.raises(SettingError, match="six arrays"):
        model.fit(context, mask, [1.0] * 4)


def test_the_whole_is_differentiable_and_learns() -> None:
    data = sequences(60)
    human = 1 + 4 * (data[1][:, 0] % 2)
    model = ADEMWithEncoder(*SIZES, SETTINGS, 0.01, seed=2)
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    _, first = model.train_on_single_batch(*(*data, human))
    fitted = model.fit(*data, human, epochs=25, validation_share=0.1, patience=25)
    assert fitted.train_losses[-1] < 0.5 * fitted.train_losses[0]
    assert first > 0
    moved = {name for name, value in model.network.state_dict().items() if not torch.equal(value, before[name])}
    assert moved >= {"embeddings.weight", "words.cells.weight_ih_l0", "turns.cells.weight_hh_l0"}


def test_seeds_are_kept(tmp_path: Path) -> None:
    data, human = sequences(32), np.random.default_rng(0).uniform(1, 5, 32)
    models = [ADEMWithEncoder(*SIZES, SETTINGS, 0.02, seed=5) for _ in range(2)]
    losses = [model.fit(*data, human, epochs=3, batch_size=8).train_losses for model in models]
    assert losses[0] == losses[1]
    again = ADEMWithEncoder.load(models[0].save(tmp_path))
    for name, value in models[1].network.state_dict().items():
        assert torch.equal(value, again.network.state_dict()[name])


def test_given_embeddings_may_stay_as_they_are() -> None:
    table = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
    model = ADEMWithEncoder(*SIZES, SETTINGS, 0.1, embeddings=table, train_embeddings=False)
    model.train_on_single_batch(*(*sequences(), np.ones(5)))
    np.testing.assert_array_equal(model.network.embeddings.weight.detach().numpy(), table)
    with pytest.raises(SettingError, match="embeddings have the shape"):
        ADEMWithEncoder(*SIZES, SETTINGS, embeddings=table[:3])


def test_wrong_arrays_and_settings_are_refused() -> None:
    model = ADEMWithEncoder(*SIZES, SETTINGS)
    context, said, reference, mask, one, other = sequences()
    with pytest.raises(SettingError, match="holds indices outside of 0 to 11"):
        model.predict_on_single_batch(context + 12, said, reference, mask, one, other)
    with pytest.raises(SettingError, match="words have 3 dimensions"):
        model.predict_on_single_batch(context[0], said, reference, mask[0], one, other)
    with pytest.raises(SettingError, match="words have 2 or 3 dimensions"):
        model.predict_on_single_batch(context, said, reference, mask, one, other[:, :2])
    with pytest.raises(SettingError, match="the mask of context holds other numbers than 0 and 1"):
        model.predict_on_single_batch(context, said, reference, 2 * mask, one, other)
    with pytest.raises(SettingError, match="the mask of model_response holds other numbers than lengths from 0 to 4"):
        model.predict_on_single_batch(context, said, reference, mask, np.full(5, 5), other)
    odd: list[dict[str, Any]] = [{"utterance": 0}, {"dropout": 1.0}, {"cell": "odd"}, {"shared": "odd"}]
    for wrong in odd:
        with pytest.raises(SettingError):
            EncoderSettings(**wrong)
    for sizes in ((0, 5), (12, 0)):
        with pytest.raises(SettingError, match="at least 1"):
            ADEMWithEncoder(*sizes)


def test_the_arrays_of_the_original_give_what_masks_of_words_give() -> None:
    model = ADEMWithEncoder(*SIZES, SETTINGS, seed=1)
    data = sequences()
    expected = model.predict_on_single_batch(*data)
    lengths = [mask.sum(-1) for mask in data[3:]]
    np.testing.assert_array_equal(model.predict_on_single_batch(*data[:3], *lengths), expected)
    ones = [mask.astype(np.int32) for mask in data[3:]]
    np.testing.assert_array_equal(model.predict_on_single_batch(*data[:3], *ones), expected)
    context, said, reference = data[:3]
    turns = said[:, None], np.stack([reference, np.zeros_like(reference)], 1)  # a turn, and a turn with an empty one
    deep = lengths[0], lengths[1][:, None], np.stack([lengths[2], np.zeros_like(lengths[2])], 1)
    np.testing.assert_allclose(model.predict_on_single_batch(context, *turns, *deep), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shared", "of_context", "of_response", "of_reference"),
    [
        ("all", "words", "words", "words"),
        ("replies", "words", "responses", "responses"),
        ("none", "words", "responses", "references"),
    ],
)
def test_who_shares_weights_is_a_setting(
    tmp_path: Path, shared: Any, of_context: str, of_response: str, of_reference: str
) -> None:
    model = ADEMWithEncoder(*SIZES, EncoderSettings(6, 4, shared=shared), seed=1)
    data = sequences()
    encoder, used = model.network, list[str]()
    recurrent = {name: part for name, part in encoder.named_children() if hasattr(part, "cells")}
    for name, part in recurrent.items():
        part.register_forward_hook(lambda *_, name=name: used.append(name))
    model.predict_on_single_batch(*data)
    assert used == [of_context, "turns", of_response, of_reference]
    cells = {of_context, of_response, of_reference}
    assert set(recurrent) == {*cells, "turns"}
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    model.train_on_single_batch(*(*data, np.ones(5)))
    moved = {name.split(".")[0] for name, value in encoder.state_dict().items() if not torch.equal(value, before[name])}
    assert moved >= {*cells, "turns"}
    again = ADEMWithEncoder.load(model.save(tmp_path))
    np.testing.assert_array_equal(again.predict_on_single_batch(*data), model.predict_on_single_batch(*data))


def test_settings_are_checked_one_by_one() -> None:
    wrong: list[dict[str, Any]] = [{size: 0} for size in ("utterance", "context", "layers")]
    for setting in (*wrong, {"dropout": 1.0}, {"dropout": -0.1}):
        with pytest.raises(SettingError):
            EncoderSettings(**setting)
    ADEMWithEncoder(1, 1, EncoderSettings(1, 1))
    with pytest.raises(SettingError, match="beta is not 0"):
        ADEMWithEncoder(*SIZES, SETTINGS, beta=0.0)


def test_every_index_of_the_vocabulary_may_be_used_and_no_other() -> None:
    model = ADEMWithEncoder(*SIZES, SETTINGS)
    context, *rest = sequences()
    for index in (0, 11):
        assert np.isfinite(model.predict_on_single_batch(np.full_like(context, index), *rest)).all()
    for index in (-1, 12):
        with pytest.raises(SettingError, match="outside of 0 to 11"):
            model.predict_on_single_batch(np.full_like(context, index), *rest)


def test_unless_told_otherwise_it_learns_for_20_epochs_or_until_3_bring_nothing() -> None:
    data, human = sequences(40), np.random.default_rng(0).uniform(1, 5, 40)
    assert ADEMWithEncoder(*SIZES, SETTINGS).fit(*data, human, validation_share=0).epochs == 20
    held = *sequences(40, seed=1), np.random.default_rng(1).uniform(1, 5, 40)
    fitted = ADEMWithEncoder(*SIZES, SETTINGS, 0.1).fit(*data, human, validation=held)
    assert fitted.epochs == fitted.best_epoch + 1 + 3 < 20
