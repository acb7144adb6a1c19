"""What ships of a cross-encoder: nearest factors, eight bits, and weights that are put together again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tools.judge_training.pairs import factors, in_eight_bits

from dialeval.judges.cross_encoder import list_trained_names, merge_changes, name_weights
from dialeval.metrics.encoder_files import find_encoder
from judges.tiny_judges import tiny_changes
from tiny_encoder import LAYERS, write_encoder


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


def test_changes_are_added_to_the_layers_and_to_nothing_else(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path)
    base, changes = name_weights(find_encoder(folder)), tiny_changes(folder)
    found = merge_changes(base, changes)
    assert (
        set(found)
        == set(list_trained_names(base))
        == set(base) - {"words", "positions", "second", "norm.weight", "norm.bias"}
    )
    assert len(found) == 12 * LAYERS
    name = "1.up.weight"
    left, right = (changes[f"{name}.{side}"] * changes[f"{name}.{side}.scale"] for side in ("left", "right"))
    np.testing.assert_allclose(found[name] - base[name], left @ right.T, atol=1e-5)
    np.testing.assert_allclose(found["0.norm.bias"] - base["0.norm.bias"], changes["0.norm.bias"], atol=1e-3)
