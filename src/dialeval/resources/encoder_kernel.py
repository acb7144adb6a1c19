"""What of an encoder's forward pass is not a matrix product: activation and layer normalisation, in place."""

from __future__ import annotations

import numpy as np

from dialeval.core.kernels import kernel

_SUMS = {"reassoc", "nsz"}
"""Sums within a row may be taken in any order; the order is still the same for every row."""


@kernel(error_model="numpy")
def gelu(rows, bias):  # type: ignore[no-untyped-def]
    """x * (1 + erf(x / sqrt(2))) / 2 of rows + bias, with erf as a quotient of polynomials, exact to float32.

    `min`, `max` and a division that may raise would each keep the compiler from taking sixteen values at once.
    """
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            value = rows[row, column] + bias[column]
            x = value * np.float32(0.7071067811865476)
            x = max(np.float32(-4.0), x)
            x = min(np.float32(4.0), x)
            square = x * x
            above = np.float32(-2.72614225801306e-10)
            above = above * square + np.float32(2.77068142495902e-08)
            above = above * square + np.float32(-2.10102402082508e-06)
            above = above * square + np.float32(-5.69250639462346e-05)
            above = above * square + np.float32(-7.34990630326855e-04)
            above = above * square + np.float32(-2.95459980854025e-03)
            above = above * square + np.float32(-1.60960333262415e-02)
            below = np.float32(-1.45660718464996e-05)
            below = below * square + np.float32(-2.13374055278905e-04)
            below = below * square + np.float32(-1.68282697438203e-03)
            below = below * square + np.float32(-7.37332916720468e-03)
            below = below * square + np.float32(-1.42647390514189e-02)
            rows[row, column] = np.float32(0.5) * value * (np.float32(1.0) + x * above / below)


@kernel
def relu(rows, bias):  # type: ignore[no-untyped-def]
    """max(0, x) of rows + bias."""
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            rows[row, column] = max(rows[row, column] + bias[column], np.float32(0.0))


@kernel(fastmath=_SUMS)
def add_and_normalise(rows, added, bias, weight, shift, epsilon):  # type: ignore[no-untyped-def]
    """Layer normalisation of rows + added + bias, written over `rows`."""
    width = rows.shape[1]
    for row in range(rows.shape[0]):
        total = np.float32(0.0)
        for column in range(width):
            rows[row, column] += added[row, column] + bias[column]
            total += rows[row, column]
        mean = total / np.float32(width)
        spread = np.float32(0.0)
        for column in range(width):
            distance = rows[row, column] - mean
            spread += distance * distance
        scale = np.float32(1.0) / np.sqrt(spread / np.float32(width) + epsilon)
        for column in range(width):
            rows[row, column] = (rows[row, column] - mean) * scale * weight[column] + shift[column]
