"""A check number for each row of a matrix: what shows that vectors on a disk are still those that were written.

    check(i) = seed(i) * w(0) + bits(i, 0) * w(1) + bits(i, 1) * w(2) + ...        modulo 2**64

where bits(i, j) are the bits of number j as an integer and w(j) odd factors. A row in which a single number changed is
always noticed, since an odd factor can be divided by; any other damage (zeros, a row in another's place) but once in
2**64 cases. It takes no longer than reading the row, which is why it can be done whenever one is read. It does not
protect against forgery.

The check of a file is a SHA-256 over the check numbers of its blocks, several times faster than one over its bytes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Checks: TypeAlias = npt.NDArray[np.uint64]

_WORD_BYTES = 8
_BLOCK_BYTES = 1 << 12


def row_checks(matrix: npt.NDArray[Any], seeds: npt.NDArray[Any]) -> Checks:
    """The check number of each row; `seeds` are integers that say which row it is."""
    word = min(matrix.dtype.itemsize, _WORD_BYTES)
    bits = np.ascontiguousarray(matrix).view(f"u{word}")
    factors = _factors(bits.shape[1] + 1)
    checks: Checks = np.einsum("ij,j->i", bits, factors[1:], dtype=np.uint64, casting="unsafe")
    checks += seeds.astype(np.uint64) * factors[0]
    return checks


def file_check(file: Path) -> str:
    """What changes, but once in 2**64 cases, with any damage to a file; OSError as it comes."""
    size = file.stat().st_size
    content = np.memmap(file, np.uint8, "r") if size else np.empty(0, np.uint8)
    blocks = content[: size - size % _BLOCK_BYTES].reshape(-1, _BLOCK_BYTES).view(np.uint64)
    sha = hashlib.sha256(row_checks(blocks, np.arange(len(blocks))).tobytes())
    sha.update(content[size - size % _BLOCK_BYTES :].tobytes())
    sha.update(b"%d" % size)
    return sha.hexdigest()


def _factors(count: int) -> Checks:
    """Odd numbers that have nothing to do with each other (the steps of SplitMix64)."""
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    factors: Checks = mixed | np.uint64(1)
    return factors
