"""What training changed in a cross-encoder, small enough to ship: thin factors in eight bits on top of the encoder.

    weight = the encoder's weight + left right'        left, right: int8 with a scale per column

Changes of vectors (biases, normalisations) and the heads are kept whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.resources.encoder_files import EncoderFiles, Singles

KINDS = ("true", "random", "echo", "broken")
"""What a candidate response is in training; the classes of the head `kind`."""

HEADS = {"rank": 1, "kind": len(KINDS), "rating": 1, "breakdown": 3}
"""What the heads say: how well the response follows, what kind of candidate it is, what people would say of it, and the
shares of annotators that would see no breakdown, perhaps one, and one."""

_LEVELS = 127

Changes = Mapping[str, npt.NDArray[Any]]
"""By name: factors (`NAME.left`, `NAME.right`, each with `.scale`), differences of vectors, and the heads."""


def encoder_weights(files: EncoderFiles) -> dict[str, Singles]:
    """The weights of an encoder by the names that changes have."""
    weights = files.weights()
    found = {"words": weights.words, "positions": weights.positions, "second": weights.second}
    parts = {"norm": weights.norm}
    parts |= {f"{number}.{name}": part for number, layer in enumerate(weights.layers) for name, part in layer.items()}
    for name, (weight, bias) in parts.items():
        found |= {f"{name}.weight": weight, f"{name}.bias": bias}
    return found


def trained(base: Mapping[str, Singles]) -> Iterator[str]:
    """The names of the weights that are trained: those of the layers."""
    return (name for name in base if name.partition(".")[0].isdigit())


def factors(change: Singles, rank: int) -> tuple[Singles, Singles]:
    """Two thin matrices, `rank` columns each, whose product left right' is nearest to a matrix."""
    left, sizes, right = np.linalg.svd(change, full_matrices=False)
    root = np.sqrt(sizes[:rank])
    # In the order of rows: safetensors writes the memory of an array as it lies.
    return np.ascontiguousarray(left[:, :rank] * root), np.ascontiguousarray(right[:rank].T * root)


def in_eight_bits(matrix: Singles) -> tuple[npt.NDArray[np.int8], Singles]:
    """The entries as multiples of a scale per column."""
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-12).astype(np.float32) / np.float32(_LEVELS)
    return np.rint(matrix / scale).astype(np.int8), scale


def merged(base: Mapping[str, Singles], changes: Changes) -> dict[str, Singles]:
    """The weights of the layers with the changes."""
    found = {}
    for name in trained(base):
        if f"{name}.left" in changes:
            left, right = (
                changes[f"{name}.{side}"].astype(np.float32) * changes[f"{name}.{side}.scale"]
                for side in ("left", "right")
            )
            found[name] = base[name] + left @ right.T
        else:
            found[name] = base[name] + changes[name].astype(np.float32)
    return found
