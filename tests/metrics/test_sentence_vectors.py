"""Sentence vectors: every text is encoded once, and the store on disk may break, grow or be closed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dialeval.metrics.encoder import Encoder, SentenceVectors, Store
from dialeval.metrics.encoder_files import Singles

pytestmark = pytest.mark.usefixtures("cache")


class Counting(Encoder):
    """An encoder that counts what it is asked."""

    name, digest, dimension = "counting", "c0", 3

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], ends: bool = False) -> Singles:
        self.asked += texts
        return np.array([[len(text), ends, 0.1] for text in texts], np.float32).reshape(-1, 3)


def test_every_text_is_encoded_once(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    given = ["a", "bb", "a", "ccc"]
    expected = [[1, 0, np.float32(0.1)], [2, 0, np.float32(0.1)], [1, 0, np.float32(0.1)], [3, 0, np.float32(0.1)]]
    np.testing.assert_array_equal(SentenceVectors(first).of(given), np.array(expected, np.float32))
    assert sorted(first.asked) == ["a", "bb", "ccc"]
    np.testing.assert_array_equal(SentenceVectors(second).of([*given, "dddd"])[:4], np.array(expected, np.float32))
    assert second.asked == ["dddd"], "the others are on disk"
    SentenceVectors(second).of(["a"], ends=True)
    assert second.asked == ["dddd", "a"], "the end of a text is another text"
    alone = Counting()
    SentenceVectors(alone, keep=False).of(["a"])
    assert alone.asked == ["a"]
    assert SentenceVectors(alone).of([]).shape == (0, 3)


def test_a_broken_segment_is_computed_again() -> None:
    vectors = SentenceVectors(Counting())
    vectors.of(["a"])
    store = vectors._store
    assert store is not None
    for segment in store.folder.glob("*.npy"):
        segment.write_bytes(segment.read_bytes()[:40])
    again = Counting()
    SentenceVectors(again).of(["a"])
    assert again.asked == ["a"]


@pytest.mark.parametrize("start", [0, 16, 24])
def test_a_vector_that_is_damaged_is_computed_again(start: int, caplog: pytest.LogCaptureFixture) -> None:
    texts = ["a", "bb", "ccc"]
    expected = SentenceVectors(Counting()).of(texts)
    store = SentenceVectors(Counting())._store
    assert store is not None
    (segment,) = store.folder.glob("*.npy")
    content = segment.read_bytes()
    entry = len(content) - 2 * store.dtype.itemsize  # the second of three
    segment.write_bytes(content[: entry + start] + bytes(8) + content[entry + start + 8 :])
    again = Counting()
    np.testing.assert_array_equal(SentenceVectors(again).of(texts), expected)
    assert again.asked == ["bb"]
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == (
        ["1 vectors are damaged and computed again"] if start else []
    ), "one whose key is damaged is not found at all"


def test_segments_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 2)
    keys = np.array([f"key{number:013d}".encode() for number in range(40)], "S16")
    vectors = np.arange(80, dtype=np.float32).reshape(40, 2)
    for number in range(40):
        store.add(keys[number : number + 1], vectors[number : number + 1])
    again = Store(tmp_path, 2)
    found = np.empty_like(vectors)
    assert len(again.fill(keys, found)) == 0
    np.testing.assert_array_equal(found, vectors)
    monkeypatch.setattr("dialeval.metrics.encoder.MOST_SEGMENTS", 30)
    assert len(Store(tmp_path, 2).fill(keys, found)) == 10, "the oldest go"
    monkeypatch.setattr("dialeval.metrics.encoder.LIMIT_BYTES", 100)
    assert len(Store(tmp_path, 2).fill(keys, found)) == 40, "what is too much goes"


def test_a_folder_without_leave_to_write_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "file"))
    assert SentenceVectors(Counting()).of(["a"]).shape == (1, 3)
