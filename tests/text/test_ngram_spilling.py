"""Counts above a limit lie in temporary files, in sorted order, and merge to the same counts with little memory."""

from __future__ import annotations

import mmap
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import arrays
from dialeval.core.columns import TextColumn
from dialeval.text import ngrams
from dialeval.text.ngrams import NgramColumn, NgramCounts
from dialeval.text.tokenizers import tokenize
from dialeval.text.vocabulary import Vocabulary

texts = st.lists(st.text("abcd ", max_size=30), max_size=8)


def counted(lines: list[str], n: int, vocabulary: Vocabulary) -> NgramCounts:
    tokens = tokenize(TextColumn.from_strings(lines), vocabulary)
    return NgramCounts.of(NgramColumn.of(tokens, n), vocabulary)


@given(texts, texts, st.integers(1, 4), st.integers(1, 5))
def test_merging_in_stretches(left: list[str], right: list[str], n: int, stretch: int) -> None:
    vocabulary = Vocabulary()
    both = counted(left + right, n, vocabulary)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arrays, "SPILLED_BYTES", 32)
        patched.setattr(ngrams, "_COMPARED_KEYS", stretch)
        merged = counted(left, n, vocabulary).merge(counted(right, n, vocabulary))
    np.testing.assert_array_equal(merged.keys, both.keys)
    np.testing.assert_array_equal(merged.counts, both.counts)
    assert merged.total == both.total


def test_large_counts_lie_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "SPILLED_BYTES", 64)
    vocabulary = Vocabulary()
    halves = [counted([f"{side} {n}" for n in range(20)], 2, vocabulary) for side in "ab"]
    owner: object = halves[0].merge(halves[1]).keys
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert isinstance(owner, mmap.mmap | memoryview)


PEAK = """
import resource
import numpy as np
from dialeval.text.ngrams import NgramCounts
from dialeval.text.vocabulary import Vocabulary
words = Vocabulary(["x"])
def run(first, count):
    keys = np.arange(first, first + 3 * count, 3, dtype=np.int64)[:, None]
    return NgramCounts(2, words, keys, np.ones(count, np.int32))
def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run(0, 10).merge(run(1, 10))
total = run(0, 5_000_000).merge(run(1, 5_000_000))  # 120 MB
before = peak()
total = total.merge(run(2, 1_000_000))
total = total.merge(total)
assert (total.types, total.total) == (11_000_000, 22_000_000)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is counted in other units elsewhere")
def test_merging_large_counts_takes_little_memory() -> None:
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60_000_000
