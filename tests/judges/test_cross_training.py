"""Training a cross-encoder: it learns, seeds are kept, and a run that is cut off goes on as if it had not been."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.judge_training.pairs import Pairs

from dialeval.core.errors import SettingError
from dialeval.judges.judge import merge_changes
from dialeval.metrics.encoder_files import Singles, find_encoder
from judges.test_candidates import corpus as turns_as_pairs
from judges.tiny_judges import SHAPE, tiny_changes
from tiny_encoder import WORDS, write_encoder

pytest.importorskip("torch")

import torch
from tools.judge_training import cross_training
from tools.judge_training.cross_training import (
    Corpus,
    CrossModel,
    JudgeRecipe,
    RatedRows,
    predict_heads,
    train_on_dialogues,
    train_on_ratings,
)


def dialogues(many: int = 80) -> Corpus:
    """Pairs whose contexts and responses have no word in common, so that an echo is easy to tell."""
    dice = np.random.default_rng(0)
    texts = [np.append(dice.integers(4, 14, 5) + 10 * (turn % 2), 3) for turn in range(2 * many)]
    responses = np.arange(1, 2 * many, 2)
    starts = np.arange(0, 12 * many + 6, 6)
    pairs = Pairs(np.concatenate(texts).astype(np.int32), starts, np.stack((responses - 1, responses), 1), responses)
    return Corpus(pairs, SHAPE, (2, 3), np.zeros(len(WORDS), np.bool_), "cpu")


def fresh(folder: Path) -> CrossModel:
    """A model over the tiny encoder's shape, with weights small enough to learn from."""
    dice = np.random.default_rng(0)
    model = CrossModel(find_encoder(write_encoder(folder)))
    buffers = {name.replace(".", "_"): name for name in model.base}
    every = {**dict(model.named_buffers()), **dict(model.weights.items())}
    for name in (flat for flat in buffers if flat in every):
        size = 1.0 if name == "words" else 0.3
        level = 1.0 if name.endswith("norm_weight") else 0.0
        drawn = (level + size * dice.normal(size=tuple(every[name].shape))).astype(np.float32)
        with torch.no_grad():
            every[name].copy_(torch.from_numpy(drawn))
    return model


def weights(model: CrossModel) -> Singles:
    return np.concatenate([parameter.detach().numpy().ravel() for parameter in model.parameters()])


def ignore(_: str) -> None:
    pass


def test_it_learns_what_a_candidate_is(tmp_path: Path) -> None:
    corpus, lines = dialogues(), list[str]()
    model = fresh(tmp_path)
    train_on_dialogues(model, corpus, JudgeRecipe(60, 8, 0.005), lines.append)
    assert len(lines) == 1
    assert lines[0].startswith("step 60/60 ")
    batch, _, kinds = corpus.candidates(torch.arange(40), torch.Generator().manual_seed(99))
    with torch.inference_mode():
        found = model(batch)
    echo = kinds.flatten() == 2
    assert ((found["kind"].argmax(1) == 2) == echo).float().mean() > 0.95
    ranks = found["rank"].view(kinds.shape)
    assert (ranks[:, 0] > ranks[:, 6]).float().mean() > 0.95


def test_a_run_that_is_cut_off_goes_on_as_if_it_had_not_been(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, recipe, state = dialogues(), JudgeRecipe(12, 8, 0.01), tmp_path / "run"
    whole, again = fresh(tmp_path / "e"), fresh(tmp_path / "e")
    train_on_dialogues(whole, corpus, recipe, ignore)
    steps = list[int]()
    loss = cross_training._dialogue_loss

    def cut(*inputs: Any) -> Any:
        steps.append(len(steps))
        if len(steps) == 8:
            raise KeyboardInterrupt
        return loss(*inputs)

    with monkeypatch.context() as patch:
        patch.setattr(cross_training, "_SAVED_SECONDS", -1)
        patch.setattr(cross_training, "_dialogue_loss", cut)
        with pytest.raises(KeyboardInterrupt):
            train_on_dialogues(fresh(tmp_path / "e"), corpus, recipe, ignore, state, "this")
    steps.clear()

    def count(*inputs: Any) -> Any:
        steps.append(len(steps))
        return loss(*inputs)

    monkeypatch.setattr(cross_training, "_dialogue_loss", count)
    train_on_dialogues(again, corpus, recipe, ignore, state, "this")
    assert len(steps) == 5
    np.testing.assert_array_equal(weights(again), weights(whole))
    with pytest.raises(SettingError, match="other settings"):
        train_on_dialogues(again, corpus, recipe, ignore, state, "that")


def rated_rows(sets: Any, scores: Any, counts: Any) -> RatedRows:
    rows = object.__new__(RatedRows)
    rows.sets, rows.scores, rows.counts = np.asarray(sets), np.asarray(scores), np.asarray(counts)
    return rows


def test_it_learns_what_people_said(tmp_path: Path) -> None:
    corpus = dialogues()
    good = (corpus.pieces[corpus.starts[corpus.responses]] < 19).numpy()  # by the first word
    counts = np.where(good[:, None], [8.0, 1.0, 1.0], [1.0, 1.0, 8.0])
    counts[60:] = 0
    rated = rated_rows(np.arange(80) // 40, np.where(good, 4.0, 2.0), counts)
    model = fresh(tmp_path)
    recipe = JudgeRecipe(rating_steps=120, rating_rate=0.005, rating_rows=24, beside=2)
    train_on_ratings(model, corpus, corpus, rated, np.arange(40), recipe, ignore)
    found = predict_heads(model, corpus, np.arange(80))
    for column in (5, 6):  # the rating, and no breakdown
        assert found[good, column].mean() > found[~good, column].mean() + 0.5


def test_ratings_are_standardized_within_their_set() -> None:
    rated = rated_rows([0, 0, 1, 1, 1], [1.0, 3.0, 10.0, 30.0, 50.0], np.zeros((5, 3)))
    np.testing.assert_allclose(rated.standardize(np.array([0, 1, 2, 4])), [-1, 1, -1, 0, 1])


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"batch_size": 0}, {"learning_rate": 0}, {"rating_rate": -1}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError):
        JudgeRecipe(**wrong)


SMALL = [1, 2, 1, 1]
"""Lengths of turns whose pieces are words of the tiny encoder (10 to 24)."""


def few() -> Corpus:
    here = turns_as_pairs(SMALL)
    here.pieces = here.pieces % 20 + 4
    return here


def test_sequences_do_not_mix(tmp_path: Path) -> None:
    model, here = CrossModel(find_encoder(write_encoder(tmp_path))), few()
    together = predict_heads(model, here, np.arange(3))
    alone = np.concatenate([predict_heads(model, here, [row]) for row in range(3)])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert np.unique(together.round(5), axis=0).shape[0] == 3


def test_what_ships_is_what_was_trained(tmp_path: Path) -> None:
    files = find_encoder(write_encoder(tmp_path))
    changes, model, here = tiny_changes(files.folder), CrossModel(files), few()
    model.load(changes)
    before = predict_heads(model, here, np.arange(3))
    model.factorize(2)
    np.testing.assert_allclose(predict_heads(model, here, np.arange(3)), before, atol=1e-4)
    names = {name for name, _ in model.named_parameters()}
    assert "weights.0_up_weight_left" in names
    assert "weights.0_up_weight" not in names
    shipped = model.changes()
    assert shipped["0.up.weight.left"].shape == changes["0.up.weight.left"].shape
    expected = merge_changes(model.base, changes)
    for name, weight in merge_changes(model.base, shipped).items():
        np.testing.assert_allclose(weight, expected[name], atol=0.02)
    again = CrossModel(files)
    again.load(shipped)
    np.testing.assert_allclose(predict_heads(again, here, np.arange(3)), before, atol=0.1)


def test_embeddings_are_not_trained(tmp_path: Path) -> None:
    model = CrossModel(find_encoder(write_encoder(tmp_path)))
    assert {name.partition(".")[0] for name, _ in model.named_parameters()} == {"weights", "heads"}
