"""Files of word vectors, text and binary, against naive readers."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.core.errors import DataError
from dialeval.io.vectors import Embeddings, load_embeddings

pytestmark = pytest.mark.usefixtures("cache")

LETTERS = st.characters(codec="utf-8", exclude_characters=" \t\n\r\x0b\x0c\0_")
WORD = st.text(LETTERS, min_size=1, max_size=5).filter(lambda word: not word.startswith("\ufeff"))
PLAIN = st.decimals(-1000, 1000, places=5).map(str)
ODD = st.sampled_from([".5", "-.5", "5.", "1e-7", "-1E+3", "1e22", "1e23", "1e-22", "1e-300", "-0", "-0.0", "007"])
ANY = st.floats(allow_nan=False, allow_infinity=False).map(repr)
LONG = st.from_regex(r"-?[0-9]{1,25}(\.[0-9]{1,25})?(e-?[0-9]{1,2})?", fullmatch=True)
# Where a mantissa stops being exact, and where a power of ten does.
EDGE = st.builds("{}e{}".format, st.integers(2**53 - 9, 2**53 + 999), st.sampled_from([-23, -22, -3, 0, 3, 22, 23]))
NUMBER = st.one_of(PLAIN, ODD, ANY, LONG, EDGE)


def load(path: Path) -> Embeddings:
    loaded = load_embeddings(path)
    assert isinstance(loaded, Embeddings)
    return loaded


def read(path: Path) -> dict[str, list[float]]:
    vectors = load(path)
    words = vectors.words()
    return dict(zip(words, vectors.vectors_for(words)[0].tolist(), strict=True))


@given(data=st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_equals_the_naive_twin(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    dimension, gap = data.draw(st.integers(1, 4)), data.draw(st.sampled_from(" \t"))
    words = data.draw(st.lists(WORD, min_size=1, max_size=6))
    rows = [[data.draw(NUMBER) for _ in range(dimension)] for _ in words]
    lines = [gap.join([word, *row]) for word, row in zip(words, rows, strict=True)]
    header = data.draw(st.sampled_from(["", f"{len(words)} {dimension}\n"]))
    if not header and dimension == 1:
        header = f"{len(words)} 1\n"  # else "1984 7" may be one
    path = tmp_path_factory.mktemp("v") / "v.txt"
    ends = data.draw(st.sampled_from(["\n", "\r\n", gap + "\n"]))
    path.write_text(header + "".join(line + ends for line in lines), "utf-8", newline="")
    expected = {word: [float(number) for number in row] for word, row in zip(words, rows, strict=True)}
    # Bit for bit: the sign of a zero counts too.
    assert list(map(repr, read(path).items())) == list(map(repr, expected.items()))
    assert load(path).header == bool(header)


@pytest.mark.parametrize("header", [b"", b"23 2\n"], ids=["plain", "header"])
@pytest.mark.parametrize("odd", [b" 0.5 0.6\n", b"\xff 5 6\n", b". . . 5 6\n", b"of 3\n"])
@pytest.mark.parametrize("place", [3, 21, 22])
def test_an_odd_line_is_left_out_with_a_warning(tmp_path: Path, header: bytes, odd: bytes, place: int) -> None:
    sound = [b"w%d %d 2\n" % (row, row) for row in range(22)]
    (tmp_path / "a").write_bytes(header + b"".join([*sound[:place], odd, *sound[place:]]))
    vectors = load(tmp_path / "a")
    assert len(vectors) == 22
    assert vectors.vectors_for(["w7"])[0].tolist() == [[7, 2]]
    (warning,) = vectors.warnings
    assert warning.startswith("a: 1 line left out")


def test_a_file_that_is_odd_throughout_is_refused(tmp_path: Path) -> None:
    odd, sound = ["windows 95 1 2"] * 11, [f"w{row} 1 2" for row in range(1100)]
    (tmp_path / "a").write_text("\n".join([*sound, *odd]))
    assert len(load(tmp_path / "a")) == 1100
    (tmp_path / "a").write_text("\n".join([*sound[1:], *odd]))
    with pytest.raises(DataError, match="holds 1,099 word vectors and 11 other lines"):
        load(tmp_path / "a")


def test_spaces_of_unicode_are_letters_and_a_byte_order_mark_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("\ufeffthe 1 2\na\u00a0b 5 6\n\u0085 7 8\n\u2028x 9 10\n知道 11 12\n".encode())
    assert list(read(tmp_path / "a")) == ["the", "a\u00a0b", "\u0085", "\u2028x", "知道"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("the 1 2\nof 1 x\nto 1 2\n", "invalid value 'x'"),
        ("the 1 2\nof 1 nan\n", "the vector of 'of' has a number that is not finite"),
        ("the 1 2\nof 1 1e999\n", "the vector of 'of' has a number that is not finite"),
        ("50 2\nthe 1 2\nof 3 4\n", "the header promises 50 words, but 2 follow"),
        ("2 999999999999\nthe 1 2\nof 3 4\n", "has no 999,999,999,999 numbers in a line"),
        ("", "give vectors as text"),
        ("0 1\n", "give vectors as text"),
        ("0 1\n\n", "give vectors as text"),
        ("not a vector at all\n" * 9, "give vectors as text"),
        ("a\0 1 2\n", "is not a text file"),
    ],
)
def test_what_is_refused(tmp_path: Path, content: str, what: str) -> None:
    (tmp_path / "a").write_text(content)
    with pytest.raises(DataError, match=what):
        load(tmp_path / "a")


def test_compressed_files(tmp_path: Path) -> None:
    content = "".join(f"w{row} {row / 7:.5f} 2\n" for row in range(1000)).encode()
    (tmp_path / "a").write_bytes(content)
    half = content.index(b"w500 ")
    (tmp_path / "a.gz").write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]))
    zstd = pa.Codec("zstd")
    frames = [zstd.compress(part, asbytes=True) for part in (content[:half], content[half:])]
    (tmp_path / "a.zst").write_bytes(b"".join(frames))
    assert read(tmp_path / "a.gz") == read(tmp_path / "a.zst") == read(tmp_path / "a")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_broken_compression(tmp_path: Path, suffix: str) -> None:
    content = "".join(f"w{row} {row / 7:.5f} 2\n" for row in range(1000)).encode()
    packed = gzip.compress(content) if suffix == ".gz" else pa.Codec("zstd").compress(content, asbytes=True)
    for name, data in (("cut", packed[: len(packed) // 2]), ("wrong", b"never compressed 1 2\n")):
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(data)
        with pytest.raises(DataError, match="not a whole"):
            load(path)


WORDS = ["the", "of", "知道", "a\u00a0b"]
MATRIX = (np.arange(12, dtype=np.float32) / 7).reshape(4, 3)


def word2vec(path: Path, end: bytes, count: int = len(WORDS)) -> bytes:
    records = (word.encode() + b" " + row.tobytes() + end for word, row in zip(WORDS, MATRIX, strict=True))
    content = b"%d 3\n" % count + b"".join(records)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return content


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("name", ["x.bin", "x.bin.gz"])
def test_word2vec(tmp_path: Path, end: bytes, name: str) -> None:
    word2vec(tmp_path / name, end)
    assert read(tmp_path / name) == dict(zip(WORDS, MATRIX.astype(np.float64).tolist(), strict=True))


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_word2vec_cut_anywhere_is_refused(tmp_path: Path, end: bytes) -> None:
    content = word2vec(tmp_path / "x.bin", end)
    for size in range(len(content) - len(end)):
        (tmp_path / "x.bin").write_bytes(content[:size])
        with pytest.raises(DataError, match=r"cut short"):
            load(tmp_path / "x.bin")


def test_words_that_are_not_utf8(tmp_path: Path) -> None:
    words = [b"a", b"\xff", b"b", "知".encode()]
    records = [word + b" " + row.tobytes() for word, row in zip(words, MATRIX, strict=True)]
    (tmp_path / "x.bin").write_bytes(b"4 3\n" + b"".join(records))
    assert list(read(tmp_path / "x.bin")) == ["a", "b", "知"]
    (tmp_path / "x.bin").write_bytes(b"4 3\n" + b"".join([records[0], *[records[1]] * 3]))
    with pytest.raises(DataError, match=r"1 word vectors and 3 other lines"):
        load(tmp_path / "x.bin")


@pytest.mark.parametrize(
    "content", [b"\xba\x16\x4f\x2f" * 99, b"4\n", b"4 0\n", b"4 99999999999\n", b"a b\n", b"\n1 1\na \0\0\0\0"]
)
def test_other_binary_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(DataError, match="word2vec"):
        load(tmp_path / "x.bin")


def test_an_array_of_numpy_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", MATRIX)
    with pytest.raises(DataError, match=r"x\.npy: is not a text file; give vectors as text"):
        load(tmp_path / "x.npy")
