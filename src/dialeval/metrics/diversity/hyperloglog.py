"""HyperLogLog: about how many different n-grams there are, in 64 KiB however many there are.

A 64-bit hash of each n-gram chooses one of m = 2**PRECISION registers by its first bits; the register keeps the longest
run of zeros at the start of the other bits. Registers of two sets merge by their maxima. From how many registers hold
which value follows the number of different n-grams, with a standard error of

    1.04 / sqrt(m) = 0.41 %

whatever the number; twice that is exceeded once in twenty times. The estimator is that of Ertl, which needs no table
of corrections and no change of method for small numbers.

Written by hand since the libraries for it (datasketch) hash one Python object at a time; here a kernel hashes whole
columns.

Papers: Flajolet et al. 2007, "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm", AofA; Ertl
2017, "New cardinality estimation algorithms for HyperLogLog sketches", arXiv:1702.01284.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dialeval.core.arrays import Bytes
from dialeval.core.gate import UnfitError, check_array
from dialeval.core.kernels import Kernels
from dialeval.text.ngrams import NgramCounts, word_hashes

_kernel = Kernels("dialeval.metrics.diversity.hyperloglog_kernel")


PRECISION = 16
REGISTERS = 1 << PRECISION
ERROR = 1.04 / math.sqrt(REGISTERS)
"""The relative standard error of an estimate."""


@dataclass(frozen=True, eq=False, slots=True)
class DistinctSketch:
    """The registers of some n-grams, and the exact number of n-grams that are not all different."""

    registers: Bytes
    total: int

    @classmethod
    def empty(cls) -> DistinctSketch:
        """The sketch of nothing."""
        return cls(np.zeros(REGISTERS, np.uint8), 0)

    @classmethod
    def from_plain(cls, registers: Bytes, total: int) -> DistinctSketch:
        """A sketch out of a file; UnfitError where it is none."""
        check_array(registers, np.uint8, (REGISTERS,))
        if total < 0 or int(registers.max()) > 65 - PRECISION:
            raise UnfitError("no n-grams have these registers")
        return cls(registers, total)

    @classmethod
    def of(cls, counts: NgramCounts) -> DistinctSketch:
        """The sketch of counted n-grams."""
        words, keys = counts.worded()
        registers = np.zeros(REGISTERS, np.uint8)
        _kernel.enter_ngrams(keys, counts.n, word_hashes(words), PRECISION, registers)
        return cls(registers, counts.total)

    def merge(self, other: DistinctSketch) -> DistinctSketch:
        """The sketch of both."""
        return DistinctSketch(np.maximum(self.registers, other.registers), self.total + other.total)

    @property
    def types(self) -> float:
        """About how many different n-grams there are, and never more than n-grams."""
        held: list[int] = np.bincount(self.registers, minlength=66 - PRECISION).tolist()
        bits = 64 - PRECISION
        below = REGISTERS * _tau(1 - held[bits + 1] / REGISTERS)
        for value in range(bits, 0, -1):
            below = 0.5 * (below + held[value])
        below += REGISTERS * _sigma(held[0] / REGISTERS)
        if math.isinf(below):
            return 0.0
        return min(float(self.total), REGISTERS * REGISTERS / (2 * math.log(2) * below))


def _sigma(share: float) -> float:
    """x + sum over k >= 1 of x**(2**k) * 2**(k - 1): what registers that hold nothing contribute."""
    if share == 1:
        return math.inf
    total, weight = share, 1.0
    while True:
        share *= share
        before = total
        total += share * weight
        weight += weight
        if total == before:
            return total


def _tau(share: float) -> float:
    """(1 - x - sum over k >= 1 of (1 - x**(2**-k))**2 * 2**-k) / 3: what full registers contribute."""
    if share in (0, 1):
        return 0.0
    total, weight = 1 - share, 1.0
    while True:
        share = math.sqrt(share)
        before = total
        weight *= 0.5
        total -= (1 - share) ** 2 * weight
        if total == before:
            return total / 3
