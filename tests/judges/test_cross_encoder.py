"""The cross-encoder and its weights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tools.judge_training.pairs import factors, in_eight_bits

from dialeval.judges.judge import CrossEncoder, PairTokenizer
from dialeval.metrics.encoder_files import EncoderFiles, find_encoder
from judges.tiny_judges import SHAPE, tiny_changes
from tiny_encoder import write_encoder

CONTEXTS = [["hello there", "how are you ?"], ["the cat"], ["a dog sat on the mat ."] * 4, ["i am fine"], ["you ?"]]
RESPONSES = ["i am fine .", "", "do not know " * 9, "fine", "the cats sat on a mat"]


@pytest.fixture
def files(tmp_path: Path) -> EncoderFiles:
    return find_encoder(write_encoder(tmp_path))


def test_it_says_what_pytorch_says(files: EncoderFiles) -> None:
    pytest.importorskip("torch")
    from tools.judge_training.cross_training import Corpus, CrossModel, predict_heads
    from tools.judge_training.pairs import continuations, rated_pairs

    changes, tokenizer = tiny_changes(files.folder), PairTokenizer(files)
    model = CrossModel(files)
    model.load(changes)
    pairs = rated_pairs(tokenizer, CONTEXTS, RESPONSES)
    corpus = Corpus(pairs, SHAPE, (tokenizer.first, tokenizer.end), continuations(files), "cpu")
    expected = predict_heads(model, corpus, np.arange(len(pairs)))
    np.testing.assert_allclose(
        CrossEncoder(files, changes, SHAPE).compute_heads(CONTEXTS, RESPONSES), expected, atol=2e-5
    )


def test_what_is_said_of_a_pair_does_not_depend_on_its_neighbors(files: EncoderFiles) -> None:
    reader = CrossEncoder(files, tiny_changes(files.folder), SHAPE)
    together = reader.compute_heads(CONTEXTS * 9, RESPONSES * 9)
    assert np.unique(together[:5], axis=0).shape == (5, 9)
    for row in range(5):
        np.testing.assert_array_equal(
            reader.compute_heads(CONTEXTS[row : row + 1], RESPONSES[row : row + 1])[0], together[row]
        )
        np.testing.assert_array_equal(together[row + 35], together[row])


def test_nor_on_a_processor_whose_products_depend_on_the_place_of_a_row() -> None:
    own = f"{__file__}::{test_what_is_said_of_a_pair_does_not_depend_on_its_neighbors.__name__}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", own]
    environment = {**os.environ, "OPENBLAS_CORETYPE": "HASWELL"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert "1 passed" in done.stdout, done.stdout


def test_factors_are_the_nearest_of_their_rank() -> None:
    dice = np.random.default_rng(0)
    matrix = dice.normal(size=(12, 7)).astype(np.float32)
    sizes = np.linalg.svd(matrix, compute_uv=False)
    for rank in (1, 3, 7):
        left, right = factors(matrix, rank)
        assert (left.shape, right.shape) == ((12, rank), (7, rank))
        assert left.flags.c_contiguous and right.flags.c_contiguous  # noqa: PT018  # what safetensors writes
        np.testing.assert_allclose(np.linalg.norm(matrix - left @ right.T), np.linalg.norm(sizes[rank:]), atol=1e-5)


def test_eight_bits_are_off_by_half_a_step_at_most() -> None:
    matrix = np.random.default_rng(1).normal(size=(50, 4)).astype(np.float32)
    matrix[:, 3] = 0
    whole, scale = in_eight_bits(matrix)
    assert whole.dtype == np.int8
    assert (np.abs(whole * scale - matrix) <= scale * 0.5001).all()
    np.testing.assert_array_equal(np.abs(whole[:, :3]).max(axis=0), 127)
