"""The cross-encoder in PyTorch: sequences do not mix, factors stand for what they replace, and what ships is loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval.metrics.learned.cross_weights import encoder_weights, merged
from dialeval.resources.encoder_files import find_encoder
from metrics.learned.judges import tiny_changes
from metrics.learned.training.test_candidates import corpus
from tiny_encoder import HEADS, write_encoder

pytest.importorskip("torch")


from dialeval.metrics.learned.training.candidates import Corpus
from dialeval.metrics.learned.training.cross_model import CrossModel
from dialeval.metrics.learned.training.cross_training import heads

SMALL = [1, 2, 1, 1]
"""Lengths of turns whose pieces are words of the tiny encoder (10 to 24)."""


def few() -> Corpus:
    here = corpus(SMALL)
    here.pieces = here.pieces % 20 + 4
    return here


def test_sequences_do_not_mix(tmp_path: Path) -> None:
    base = encoder_weights(find_encoder(write_encoder(tmp_path)))
    model, here = CrossModel(base, HEADS, 1e-12), few()
    together = heads(model, here, np.arange(3))
    alone = np.concatenate([heads(model, here, [row]) for row in range(3)])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert np.unique(together.round(5), axis=0).shape[0] == 3


def test_what_ships_is_what_was_trained(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path)
    base, changes = encoder_weights(find_encoder(folder)), tiny_changes(folder)
    model, here = CrossModel(base, HEADS, 1e-12), few()
    model.load(base, changes)
    before = heads(model, here, np.arange(3))
    shipped = model.changes(base, 2)
    weights = merged(base, changes)
    for name, weight in merged(base, shipped).items():
        np.testing.assert_allclose(weight, weights[name], atol=0.02)
    model.factorise(base, 2)
    np.testing.assert_allclose(heads(model, here, np.arange(3)), before, atol=1e-4)
    names = {name for name, _ in model.named_parameters()}
    assert "weights.0_up_weight_left" in names
    assert "weights.0_up_weight" not in names
    factorised = model.changes(base, 99)
    assert factorised["0.up.weight.left"].shape == changes["0.up.weight.left"].shape
    again = CrossModel(base, HEADS, 1e-12)
    again.load(base, factorised)
    np.testing.assert_allclose(heads(again, here, np.arange(3)), before, atol=0.1)


def test_embeddings_are_not_trained(tmp_path: Path) -> None:
    base = encoder_weights(find_encoder(write_encoder(tmp_path)))
    trained = {name.partition(".")[0] for name, _ in CrossModel(base, HEADS, 1e-12).named_parameters()}
    assert trained == {"weights", "heads"}
