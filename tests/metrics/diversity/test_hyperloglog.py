"""The approximate number of different n-grams stays within its stated error, from one n-gram to millions."""

from __future__ import annotations

import numpy as np
import pytest

import dialeval
from dialeval.core.columns import TextColumn
from dialeval.core.errors import SettingError
from dialeval.metrics.diversity.hyperloglog import ERROR, DistinctSketch
from dialeval.metrics.registry import registry
from dialeval.text.ngrams import NgramColumn, NgramCounts
from dialeval.text.tokenise import tokenise
from dialeval.text.vocabulary import Vocabulary


def sketch(texts: list[str], n: int) -> DistinctSketch:
    vocabulary = Vocabulary()
    tokens = tokenise(TextColumn.from_strings(texts), vocabulary)
    return DistinctSketch.of(NgramCounts.of(NgramColumn.of(tokens, n), vocabulary))


def of_pairs(first: int, count: int) -> DistinctSketch:
    """That of so many different pairs of words, made without their texts."""
    words = Vocabulary(str(number) for number in range(4096))
    numbers = np.arange(first, first + count, dtype=np.int64)
    keys = (numbers >> 12) << 32 | (numbers & 4095)
    return DistinctSketch.of(NgramCounts(2, words, keys[:, None], np.ones(count, np.int32)))


def test_nothing_and_little() -> None:
    assert DistinctSketch.empty().types == 0
    assert sketch(["one"], 1).types == pytest.approx(1, rel=1e-4)
    assert sketch(["a b a b c"], 2).types == pytest.approx(3, rel=1e-4)
    assert sketch(["a b a b c"], 2).total == 4


@pytest.mark.parametrize("count", [100, 5_000, 60_000, 200_000, 1_000_000])
def test_the_error_is_within_its_bound(count: int) -> None:
    errors = np.array([of_pairs(first, count).types / count - 1 for first in range(0, 12_000_000, 1_500_000)])
    assert np.sqrt((errors**2).mean()) < 2 * ERROR
    assert np.abs(errors).max() < 4 * ERROR
    # Not exact either, or nothing was estimated.
    assert count < 1_000 or np.abs(errors).max() > ERROR / 50


def test_merging_is_the_sketch_of_both() -> None:
    left, right, both = of_pairs(0, 3_000), of_pairs(2_000, 4_000), of_pairs(0, 6_000)
    np.testing.assert_array_equal(left.merge(right).registers, both.registers)
    assert left.merge(right).total == 7_000


def test_hashes_do_not_depend_on_ids() -> None:
    texts = ["the cat sat on the mat", "a naïve 猫 sat"]
    vocabulary = Vocabulary(["mat", "sat", "猫"])
    tokens = tokenise(TextColumn.from_strings(texts), vocabulary)
    other = DistinctSketch.of(NgramCounts.of(NgramColumn.of(tokens, 2), vocabulary))
    np.testing.assert_array_equal(sketch(texts, 2).registers, other.registers)


def twin(texts: list[str], n: int) -> dict[int, int]:
    """The registers that hold something, in whole numbers: the hash is part of what the metric is."""

    def mixed(value: int) -> int:
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
        return value ^ value >> 31

    def hashed(pieces: list[int]) -> int:
        total = seed = 0x9E3779B97F4A7C15
        for piece in pieces:
            total = (mixed(total ^ piece) + seed) % 2**64
        return total

    def word_hash(word: bytes) -> int:
        pieces = [int.from_bytes(word[at : at + 8], "big") for at in range(0, len(word), 8)]
        return mixed(hashed(pieces) ^ len(word))

    registers: dict[int, int] = {}
    for text in texts:
        words = [word_hash(word.encode()) for word in text.split()]
        for at in range(len(words) - n + 1):
            bits = f"{mixed(hashed(words[at : at + n])):064b}"
            zeros = len(bits[16:]) - len(bits[16:].lstrip("0"))
            registers[int(bits[:16], 2)] = max(registers.get(int(bits[:16], 2), 0), zeros + 1)
    return registers


@pytest.mark.parametrize("n", [1, 2, 3])
def test_registers_are_those_of_the_twin(n: int) -> None:
    texts = ["the cat sat on eightlet ninelette 猫", "a considerably-longer-word-than-that a", "x"]
    found = sketch([*texts, *(f"w{number} v{number}" for number in range(3000))], n).registers
    expected = twin([*texts, *(f"w{number} v{number}" for number in range(3000))], n)
    assert {place: int(found[place]) for place in np.flatnonzero(found).tolist()} == expected


def test_order_of_words_matters() -> None:
    assert sketch(["a b", "b a"], 2).types == pytest.approx(2, rel=1e-4)
    assert sketch(["ab c", "a bc"], 2).types == pytest.approx(2, rel=1e-4)


def test_as_a_setting_of_distinct() -> None:
    dice = np.random.default_rng(5)
    texts = [" ".join(f"w{word}" for word in row) for row in dice.zipf(1.3, (20_000, 10)) % 50_000]
    run = dialeval.evaluate(texts, metrics="distinct-2,distinct(n=2,count=approx)", batch_rows=1000)["system"]
    exact, approx = run["distinct-2"], run["distinct(count=approx)"]
    assert approx.mean == pytest.approx(exact.mean, rel=4 * ERROR)
    assert approx.mean != exact.mean
    assert approx.signature is not None
    assert approx.signature["error"] == "0.0041"
    np.testing.assert_array_equal(approx.items, exact.items)
    with pytest.raises(SettingError, match=r"count=exact\|approx"):
        registry().parse("distinct(count=about)")
