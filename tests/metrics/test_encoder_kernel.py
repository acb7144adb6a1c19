"""The kernels of the encoder against their formulas in float64."""

from __future__ import annotations

import math

import numpy as np

from dialeval.metrics import encoder as kernels


def test_erf_is_exact_to_float32() -> None:
    values = np.linspace(-6, 6, 2001, dtype=np.float32).reshape(3, -1)
    expected = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in values.astype(np.float64).ravel()]
    kernels.gelu(values, np.zeros(values.shape[1], np.float32))
    np.testing.assert_allclose(values.ravel(), expected, rtol=1e-6, atol=1e-6)


def test_layer_normalization() -> None:
    dice = np.random.default_rng(0)
    rows, added = (dice.normal(size=(5, 7)).astype(np.float32) for _ in range(2))
    bias, weight, shift = (dice.normal(size=7).astype(np.float32) for _ in range(3))
    total = rows.astype(np.float64) + added + bias
    spread = np.sqrt(total.var(axis=1, keepdims=True) + 1e-5)
    expected = (total - total.mean(axis=1, keepdims=True)) / spread * weight + shift
    kernels.add_and_normalize(rows, added, bias, weight, shift, np.float32(1e-5))
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-5)
