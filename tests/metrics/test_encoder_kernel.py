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
