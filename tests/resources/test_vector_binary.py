from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.errors import DataError
from dialeval.resources import vector_binary
from dialeval.resources.embeddings import load_embeddings
from dialeval.resources.vector_oddities import Findings
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


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_word2vec_cut_anywhere_is_refused(tmp_path: Path, end: bytes) -> None:
    """But behind a vector, where it is a header that promises a few words too many."""
    content = word2vec(tmp_path / "x.bin", end)
    ends = [len(content.split(word.encode())[0]) for word in WORDS[2:]]
    for place, size in enumerate(ends, 2):
        (tmp_path / "x.bin").write_bytes(content[:size])
        vectors = load(tmp_path / "x.bin")
        assert vectors.words() == WORDS[:place]
        assert vectors.warnings == (f"x.bin: the header promises 4 words, but {place} follow",)
    whole = {*ends, len(content), *(end and [size - 1 for size in (*ends, len(content))])}
    for size in set(range(len(content))) - whole:
        (tmp_path / "x.bin").write_bytes(content[:size])
        with pytest.raises(DataError, match="cut short"):
            load(tmp_path / "x.bin")


@pytest.mark.parametrize("size", [5, 1 << 24])
def test_what_follows_the_promised_words_is_left_out(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_binary, "_READ_BYTES", size)
    monkeypatch.setattr(vector_binary, "_LONGEST_WORD", 20)
    word2vec(tmp_path / "x.bin", b"\n", count=2)
    vectors = load(tmp_path / "x.bin")
    assert vectors.words() == WORDS[:2]
    assert vectors.warnings == ("x.bin: the header promises 2 words, and what follows them was left out",)


@pytest.mark.parametrize(
    ("word", "what"), [("", "without a word"), ("\xff", "with a word that is not UTF-8")], ids=["empty", "not UTF-8"]
)
@pytest.mark.parametrize("place", range(4))
def test_an_odd_word_is_left_out(tmp_path: Path, word: str, what: str, place: int) -> None:
    words = [name.encode() for name in WORDS]
    words[place] = word.encode("latin-1")
    records = (name + b" " + row.tobytes() for name, row in zip(words, MATRIX, strict=True))
    (tmp_path / "x.bin").write_bytes(b"4 3\n" + b"".join(records))
    np.save(tmp_path / "y.npy", MATRIX)
    (tmp_path / "y.vocab").write_bytes(b"\n".join(words) + b"\n")
    sound = [row for row in range(4) if row != place]
    for name in ("x.bin", "y.npy"):
        vectors = load(tmp_path / name)
        assert vectors.words() == [WORDS[row] for row in sound]
        assert vectors.matrix.tolist() == MATRIX[sound].tolist()
        assert vectors.warnings == (f"{name}: 1 odd line, the first is {place + 1}; left out: 1 {what}",)


@given(
    words=st.lists(st.sampled_from([b"the", b"of", b"\xff", b"", "知".encode()]), min_size=1, max_size=9),
    promised=st.integers(-3, 3),
    end=st.sampled_from([b"", b"\n"]),
    rows=st.sampled_from([2, 1 << 14]),
)
@settings(deadline=None)
def test_equals_a_naive_reader(
    tmp_path_factory: pytest.TempPathFactory, words: list[bytes], promised: int, end: bytes, rows: int
) -> None:
    path = tmp_path_factory.mktemp("x") / "x.bin"
    count = max(1, len(words) + promised)
    matrix = np.arange(2 * len(words), dtype="<f4").reshape(-1, 2)
    records = [word + b" " + row.tobytes() + end for word, row in zip(words, matrix, strict=True)]
    path.write_bytes(b"%d 2\n" % count + b"".join(records))
    read = words[:count]
    sound = [row for row, word in enumerate(read) if word not in (b"", b"\xff")]
    findings = Findings()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_binary, "_ROWS", rows)
        try:
            found = list(vector_binary.read_word2vec(path, findings))
        except DataError:
            assert len(read) - len(sound) > len(sound) or count - len(read) > len(read)
            return
    assert [word for some, _ in found for word in some] == [read[row] for row in sound]
    assert np.concatenate([some for _, some in found]).tolist() == matrix[sound].tolist()
    assert len(findings.odd) == len(read) - len(sound)
    assert len(findings.other) == (count != len(words))


def test_too_many_odd_words_are_refused(tmp_path: Path) -> None:
    words = ["the", "of", "", " "]
    np.save(tmp_path / "y.npy", MATRIX)
    (tmp_path / "y.vocab").write_text("\n".join(words) + "\n")
    assert len(load(tmp_path / "y.npy")) == 2
    (tmp_path / "y.vocab").write_bytes(b"the\n\xff\n\xfe\n\xfd\n")
    with pytest.raises(DataError, match=r"y\.vocab:2: the word is not UTF-8") as caught:
        load(tmp_path / "y.npy")
    assert len(caught.value.faults) == 3
    records = (word + b" " + row.tobytes() for word, row in zip([b"a", b"\xff", b"\xff", b"\xff"], MATRIX, strict=True))
    (tmp_path / "x.bin").write_bytes(b"4 3\n" + b"".join(records))
    with pytest.raises(DataError, match=r"x\.bin:2: the word is not UTF-8"):
        load(tmp_path / "x.bin")


def test_blank_lines_of_a_vocabulary_that_belong_to_no_row(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", MATRIX)
    (tmp_path / "y.vocab").write_text("\n".join(WORDS) + "\n\n\n", "utf-8")
    vectors = load(tmp_path / "y.npy")
    assert vectors.words() == WORDS
    assert vectors.warnings == ("y.npy: 2 odd lines, the first is 5; left out: 2 blank",)


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
