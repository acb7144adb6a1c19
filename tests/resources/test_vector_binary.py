from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import DataError
from dialeval.resources import vector_binary
from dialeval.resources.embeddings import load_embeddings
from dialeval.resources.vectorstore import Embeddings

WORDS = ["the", "of", "知道", "a\u00a0b"]
MATRIX = (np.arange(12, dtype=np.float32) / 7).reshape(4, 3)


def load(path: Path) -> Embeddings:
    loaded = load_embeddings(path)
    assert isinstance(loaded, Embeddings)
    return loaded


def word2vec(path: Path, end: bytes, count: int = len(WORDS)) -> bytes:
    records = (word.encode() + b" " + row.tobytes() + end for word, row in zip(WORDS, MATRIX, strict=True))
    content = b"%d 3\n" % count + b"".join(records)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return content


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("name", ["x.bin", "x.bin.gz"])
def test_word2vec(tmp_path: Path, end: bytes, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_binary, "_READ_BYTES", 5)
    monkeypatch.setattr(vector_binary, "_LONGEST_WORD", 20)
    word2vec(tmp_path / name, end)
    vectors = load(tmp_path / name)
    assert vectors.words() == WORDS
    assert vectors.matrix.dtype == np.float32
    assert vectors.matrix.tolist() == MATRIX.tolist()


def test_word2vec_cut_anywhere_is_refused(tmp_path: Path) -> None:
    content = word2vec(tmp_path / "x.bin", b"")
    for size in range(len(content)):
        (tmp_path / "x.bin").write_bytes(content[:size])
        with pytest.raises(DataError, match="cut short"):
            load(tmp_path / "x.bin")


@pytest.mark.parametrize("content", [b"\xba\x16\x4f\x2f" * 99, b"4\n", b"4 0\n", b"4 99999999999\n", b"a b\n"])
def test_other_binary_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(DataError, match="word2vec"):
        load(tmp_path / "x.bin")


@pytest.mark.parametrize("vocabulary", ["x.vocab", "x.txt", "vocab.txt"])
@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8"])
def test_numpy(tmp_path: Path, vocabulary: str, dtype: str) -> None:
    np.save(tmp_path / "x.npy", MATRIX.astype(dtype))
    (tmp_path / vocabulary).write_bytes("\r\n".join(WORDS).encode())
    vectors = load(tmp_path / "x.npy")
    assert vectors.words() == WORDS
    assert vectors.vectors_for(WORDS)[0].tolist() == MATRIX.astype(dtype).astype(np.float64).tolist()


def test_numpy_follows_its_vocabulary(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", MATRIX)
    (tmp_path / "x.vocab").write_text("a\nb\nc\nd\n")
    assert "b" in load(tmp_path / "x.npy")
    (tmp_path / "x.vocab").write_text("a\nB\nc\nd\n")
    assert "b" not in load(tmp_path / "x.npy")


def test_numpy_in_fortran_order(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.asfortranarray(MATRIX))
    (tmp_path / "x.vocab").write_text("\n".join(WORDS))
    assert load(tmp_path / "x.npy").matrix.tolist() == MATRIX.tolist()


def test_numpy_faults(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, MATRIX)
    with pytest.raises(DataError, match="no vocabulary"):
        load(path)
    (tmp_path / "x.vocab").write_text("the\nof\n")
    with pytest.raises(DataError, match="2 words for the 4 rows"):
        load(path)
    (tmp_path / "x.vocab").write_text("the\n\nof\nto\n")
    with pytest.raises(DataError, match=r"x\.vocab:2: no word"):
        load(path)
    (tmp_path / "x.vocab").write_text("\n".join(WORDS))
    broken = MATRIX.copy()
    broken[2, 1] = np.inf
    np.save(path, broken)
    with pytest.raises(DataError, match=r"x\.npy:3: .*not finite"):
        load(path)


@pytest.mark.parametrize(
    "array", [np.arange(4), np.zeros(4), np.zeros((0, 3)), np.array([["a"]]), np.array([[{}]], dtype=object)]
)
def test_other_arrays_are_refused(tmp_path: Path, array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> None:
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    (tmp_path / "x.vocab").write_text("a")
    with pytest.raises(DataError, match="two-dimensional array of floats"):
        load(tmp_path / "x.npy")
