"""Training a cross-encoder: it learns, seeds are kept, and a run that is cut off goes on as if it had not been."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.metrics.learned.cross_weights import encoder_weights
from dialeval.metrics.learned.pairs import Pairs
from dialeval.resources.encoder_files import Singles, find_encoder
from metrics.learned.judges import SHAPE
from tiny_encoder import HEADS, WORDS, write_encoder

pytest.importorskip("torch")

import torch

from dialeval.metrics.learned.training.candidates import Corpus
from dialeval.metrics.learned.training.cross_model import CrossModel
from dialeval.metrics.learned.training.cross_training import (
    Rated,
    Run,
    Stage1,
    Stage2,
    heads,
    train_stage1,
    train_stage2,
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
    base = encoder_weights(find_encoder(write_encoder(folder)))
    for name, weight in base.items():
        size = 1.0 if name == "words" else 0.3
        level = 1.0 if name.endswith("norm.weight") else 0.0
        base[name] = (level + size * dice.normal(size=weight.shape)).astype(np.float32)
    return CrossModel(base, HEADS, 1e-12)


def weights(model: CrossModel) -> Singles:
    return np.concatenate([parameter.detach().numpy().ravel() for parameter in model.parameters()])


def test_it_learns_what_a_candidate_is(tmp_path: Path) -> None:
    corpus, lines = dialogues(), list[str]()
    model = fresh(tmp_path)
    train_stage1(Run(model, Stage1(60, 8, 0.005), log=lines.append), corpus)
    assert len(lines) == 1
    assert lines[0].startswith("step 60/60 ")
    batch, _, kinds = corpus.candidates(torch.arange(40), torch.Generator().manual_seed(99))
    with torch.inference_mode():
        found = model(batch)
    echo = kinds.flatten() == 2
    assert ((found["kind"].argmax(1) == 2) == echo).float().mean() > 0.95
    ranks = found["rank"].view(kinds.shape)
    assert (ranks[:, 0] > ranks[:, 6]).float().mean() > 0.95


def test_a_run_that_is_cut_off_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    corpus, settings = dialogues(), Stage1(12, 8, 0.01)
    whole = Run(fresh(tmp_path / "e"), settings)
    train_stage1(whole, corpus)
    cut = Run(fresh(tmp_path / "e"), settings, tmp_path / "run")

    original = cut.optimiser.step

    def counted(*args: object) -> object:
        done = original(*args)
        if cut.step == 6:
            cut.step += 1
            cut.save()
            raise KeyboardInterrupt
        return done

    cut.optimiser.step = counted  # type: ignore[method-assign,assignment]
    with pytest.raises(KeyboardInterrupt):
        train_stage1(cut, corpus)
    again = Run(fresh(tmp_path / "e"), settings, tmp_path / "run")
    assert again.step == 7
    train_stage1(again, corpus)
    np.testing.assert_array_equal(weights(again.model), weights(whole.model))
    with pytest.raises(SettingError, match="other settings"):
        Run(fresh(tmp_path / "e"), Stage1(13, 8, 0.01), tmp_path / "run")


def test_it_learns_what_people_said(tmp_path: Path) -> None:
    corpus = dialogues()
    good = (corpus.pieces[corpus.starts[corpus.responses]] < 19).numpy()  # by the first word
    shares = np.where(good[:, None], [0.8, 0.1, 0.1], [0.1, 0.1, 0.8])
    shares[60:] = 0
    rated = Rated(corpus, np.arange(80) // 40, np.where(good, 4.0, 2.0), shares)
    model = fresh(tmp_path)
    rows = np.arange(40)
    train_stage2(Run(model, Stage2(120, batch_size=2, rows=24, learning_rate=0.005)), corpus, rated, rows)
    found = heads(model, corpus, np.arange(80))
    for column in (5, 6):  # the rating, and no breakdown
        assert found[good, column].mean() > found[~good, column].mean() + 0.5
    with pytest.raises(SettingError, match="stage 2"):
        train_stage2(Run(model, Stage1(1)), corpus, rated, rows)


def test_ratings_are_standardised_within_their_set() -> None:
    rated = Rated(dialogues(3), np.array([0, 0, 1, 1, 1]), np.array([1.0, 3.0, 10.0, 30.0, 50.0]), np.zeros((5, 3)))
    found = rated.standard(np.array([0, 1, 2, 4]))
    np.testing.assert_allclose(found, [-1, 1, -1, 0, 1])


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"steps": 1, "batch_size": 0}, {"steps": 1, "learning_rate": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError):
        Stage1(**wrong)
