"""What ships of a cross-encoder: nearest factors, eight bits, and weights that are put together again."""

from __future__ import annotations

import numpy as np
from tools.judge_training.pairs import factors, in_eight_bits


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
