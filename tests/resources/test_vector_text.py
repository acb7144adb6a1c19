"""Parsing of text vectors, by the plain definition and by the kernel, against a naive twin."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError
from dialeval.resources import vector_text
from dialeval.resources.vector_oddities import Findings
from dialeval.resources.vector_text import Block, find_layout, parse_block, read_text

BOTH = pytest.mark.parametrize("compiled", [False, True], ids=["plain", "kernel"])

LETTERS = st.characters(codec="utf-8", exclude_characters=" \t\n\r\x0b\x0c\0_")
WORD = st.text(LETTERS, min_size=1, max_size=5).filter(lambda word: not word.startswith("\ufeff"))
PLAIN = st.decimals(-1000, 1000, places=5).map(str)
ODD = st.sampled_from(
    ["+1.5", ".5", "-.5", "5.", "1e-7", "-1E+3", "1e22", "1e23", "1e-22", "1e-300", "-0", "-0.0", "007"]
)
ANY = st.floats(allow_nan=False, allow_infinity=False).map(repr)
LONG = st.from_regex(r"-?[0-9]{1,25}(\.[0-9]{1,25})?(e-?[0-9]{1,2})?", fullmatch=True)
# Where a mantissa stops being exact, and where a power of ten does.
EDGE = st.builds("{}e{}".format, st.integers(2**53 - 9, 2**53 + 999), st.sampled_from([-23, -22, -3, 0, 3, 22, 23]))
NUMBER = st.one_of(PLAIN, ODD, ANY, LONG, EDGE)


def naive(line: str, dimension: int) -> tuple[str, list[float]]:
    fields = [field for field in line.replace("\t", " ").split(" ") if field]
    return " ".join(fields[:-dimension]), [float(field) for field in fields[-dimension:]]


def read(path: Path, findings: Findings | None = None) -> tuple[list[str], Floats]:
    rows = list(read_text(path, findings or Findings()))
    return [word.decode() for words, _ in rows for word in words], np.concatenate([vectors for _, vectors in rows])


def faults_of(path: Path) -> list[tuple[int | None, str]]:
    with pytest.raises(DataError) as caught:
        read(path)
    assert all(fault.where == str(path) and fault.remedy for fault in caught.value.faults)
    return [(fault.line, fault.what) for fault in caught.value.faults]


@pytest.fixture(params=[False, True], ids=["plain", "kernel"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_text, "KERNEL_BYTES", 0 if request.param else 1 << 60)


@BOTH
@given(data=st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_equals_the_naive_twin(compiled: bool, data: st.DataObject) -> None:
    dimension = data.draw(st.integers(1, 4))
    gap = st.sampled_from([" ", "  ", "\t", " \t "])
    lines = []
    for _ in range(data.draw(st.integers(1, 6))):
        fields = [data.draw(WORD), *(data.draw(NUMBER) for _ in range(dimension))]
        lines.append("".join(field + data.draw(gap) for field in fields[:-1]) + fields[-1])
    ends = data.draw(st.sampled_from(["\n", "\r\n", " \n"]))
    text = ends.join(lines) + data.draw(st.sampled_from(["", "\n"]))
    parsed = parse_block(Block(text.encode(), 1), dimension, "x", compiled)
    expected = [naive(line, dimension) for line in lines]
    assert (parsed.faults, parsed.odd) == ([], [])
    assert [word.decode() for word in parsed.words] == [word for word, _ in expected]
    # Bit for bit: the sign of a zero counts too.
    assert parsed.vectors.tobytes() == np.array([numbers for _, numbers in expected]).tobytes()


@BOTH
@given(line=st.binary(max_size=24).filter(lambda line: b"\n" not in line), dimension=st.integers(1, 3))
@settings(deadline=None)
def test_both_ways_agree_on_any_bytes(compiled: bool, line: bytes, dimension: int) -> None:
    block = Block(b"a" + b" 1" * dimension + b"\n" + line + b"\n", 7)
    ours, other = (parse_block(block, dimension, "x", way) for way in (compiled, False))
    assert ours.words == other.words
    assert (ours.faults, ours.odd) == (other.faults, other.odd)
    if not ours.faults:
        assert ours.vectors.tobytes() == other.vectors.tobytes()


def naive_read(lines: list[bytes], dimension: int) -> tuple[list[str], list[list[float]], int]:
    """What a patient reader makes of lines without faults: the words, their numbers, and how many lines are odd."""
    words, vectors, odd = [], [], 0
    for line in lines:
        fields = line.split()
        if len(fields) <= dimension:
            odd += 1
            continue
        try:
            word = line.strip().rsplit(None, dimension)[0].decode()
        except UnicodeDecodeError:
            odd += 1
            continue
        odd += fields[-dimension - 1].replace(b".", b"").isdigit() and len(fields) > dimension + 1
        words.append(word)
        vectors.append([float(field) for field in fields[-dimension:]])
    return words, vectors, odd


@BOTH
@given(data=st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_odd_lines_equal_a_patient_reader(compiled: bool, data: st.DataObject) -> None:
    dimension = data.draw(st.integers(1, 3))
    word = st.sampled_from(
        [b"the", b"95", b"windows 95", b"mp 3 4.5", b". . .", b"\xff", b"caf\xe9 7", b"", b"a\xc2\xa0b"]
    )
    numbers = st.lists(PLAIN, min_size=dimension, max_size=dimension).map(lambda found: " ".join(found).encode())
    line = st.one_of(st.builds(b"%b %b".__mod__, st.tuples(word, numbers)), st.sampled_from([b"", b" ", b"\t\r"]))
    lines = data.draw(st.lists(line, min_size=1, max_size=8))
    parsed = parse_block(Block(b"\n".join(lines) + b"\n", 1), dimension, "x", compiled)
    words, vectors, odd = naive_read(lines, dimension)
    assert parsed.faults == []
    assert [word.decode() for word in parsed.words] == words
    assert parsed.vectors.tolist() == vectors
    assert len(parsed.odd) == odd


@pytest.mark.usefixtures("_each_way")
class TestFiles:
    def test_header_and_no_header(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("the 0.1 0.2\nof -3 4e-1\n")
        (tmp_path / "b").write_text("2 2\nthe 0.1 0.2 \nof -3 4e-1 \n")  # fastText leaves a blank at the end
        for name in "ab":
            words, vectors = read(tmp_path / name)
            assert words == ["the", "of"]
            assert vectors.tolist() == [[0.1, 0.2], [-3.0, 0.4]]

    def test_words_with_blanks_and_unicode_spaces(self, tmp_path: Path) -> None:
        text = ". . . 1 2\nat name@domain.com 3 4\na\u00a0b 5 6\n\u0085 7 8\n\u2028x 9 10\n知道 11 12\n"
        (tmp_path / "a").write_bytes(text.encode())
        words, vectors = read(tmp_path / "a")
        assert words == [". . .", "at name@domain.com", "a\u00a0b", "\u0085", "\u2028x", "知道"]
        assert vectors.tolist() == np.arange(1.0, 13).reshape(6, 2).tolist()

    def test_byte_order_mark_is_no_letter(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"\xef\xbb\xbfthe 1 2\nof 3 4\n")
        assert read(tmp_path / "a")[0] == ["the", "of"]

    def test_every_fault_is_listed(self, tmp_path: Path) -> None:
        lines = ["the 1 2 3", "", "of 1 2", "and 1 x 3", "to 1 2 3 4", "in 1 nan 3", "a 1 1e999 3", "  ", "on 1_0 2 3"]
        (tmp_path / "a").write_text("\n".join([*lines, *["w 1 2 3"] * 9]))
        assert faults_of(tmp_path / "a") == [
            (2, "blank line"),
            (3, "2 numbers where 3 are expected"),
            (4, "'x' is not a finite number"),
            (5, "too many numbers, or a word with a number in it"),
            (6, "'nan' is not a finite number"),
            (7, "'1e999' is not a finite number"),
            (8, "blank line"),
            (9, "'1_0' is not a finite number"),
        ]

    def test_line_numbers_count_the_header(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("2 3\nthe 1 2 3\nof 1\n")
        assert faults_of(tmp_path / "a") == [(3, "1 numbers where 3 are expected")]

    def test_line_numbers_across_blocks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        lines = [f"w{row} {row} 2" for row in range(500)]
        (tmp_path / "good").write_text("\n".join(lines))
        lines[33], lines[444] = "w 1", ""
        (tmp_path / "bad").write_text("\n".join(lines))
        monkeypatch.setattr(vector_text, "BLOCK_BYTES", 64)
        words, vectors = read(tmp_path / "good")
        assert words == [f"w{row}" for row in range(500)]
        assert vectors[:, 0].tolist() == list(range(500))
        assert faults_of(tmp_path / "bad") == [(34, "1 numbers where 2 are expected"), (445, "blank line")]

    @pytest.mark.parametrize("header", [b"", b"2 2\n", b"\n2 2\n"], ids=["plain", "header", "late header"])
    @pytest.mark.parametrize(
        ("odd", "left_out"),
        [
            (b"\n", "left out: 1 blank"),
            (b" \t\r\n", "left out: 1 blank"),
            (b" 0.5 0.6\n", "left out: 1 without a word"),
            (b"\xff 5 6\n", "left out: 1 with a word that is not UTF-8"),
            (b"windows 95 5 6\n", "joined: 1 with a number in the word"),
        ],
    )
    def test_an_odd_line_is_read_around(self, tmp_path: Path, header: bytes, odd: bytes, left_out: str) -> None:
        sound = [b"the 1 2\n", b"of 3 4\n"]
        joined = odd.startswith(b"windows")
        header = header if left_out.endswith("blank") else header.replace(b"2 2", b"3 2")
        for place in range(3):
            (tmp_path / "a").write_bytes(header + b"".join([*sound[:place], odd, *sound[place:]]))
            findings = Findings()
            words, vectors = read(tmp_path / "a", findings)
            assert sorted(words) == sorted(["the", "of", *["windows 95"] * joined])
            assert sorted(vectors.tolist()) == [[1, 2], [3, 4], *[[5, 6]] * joined]
            line = header.count(b"\n") + place + 1
            assert findings.warning() == f"1 odd line, the first is {line}; {left_out}"
            assert findings.header == bool(header)

    def test_a_file_that_is_odd_throughout_is_refused(self, tmp_path: Path) -> None:
        odd, sound = ["windows 95 1 2"] * 11, [f"w{row} 1 2" for row in range(1100)]
        (tmp_path / "a").write_text("\n".join([*sound, *odd]))
        assert len(read(tmp_path / "a")[0]) == 1111
        (tmp_path / "a").write_text("\n".join([*sound[1:], *odd]))
        assert [line for line, _ in faults_of(tmp_path / "a")] == list(range(1100, 1111))
        (tmp_path / "a").write_text("\n\n".join(sound))
        assert len(read(tmp_path / "a")[0]) == 1100

    @pytest.mark.parametrize("promised", [1, 3, 4])
    def test_header_that_is_off_by_a_few(self, tmp_path: Path, promised: int) -> None:
        (tmp_path / "a").write_text(f"{promised} 2\nthe 1 2\nof 3 4\n")
        findings = Findings()
        assert read(tmp_path / "a", findings)[0] == ["the", "of"]
        assert findings.warning() == f"the header promises {promised} words, but 2 follow"

    def test_header_that_lies(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("5 2\nthe 1 2\nof 3 4\n")
        assert faults_of(tmp_path / "a") == [(1, "the header promises 5 words, but 2 follow")]

    @pytest.mark.parametrize("dimension", ["3", "999999999999"])
    def test_header_with_another_dimension(self, tmp_path: Path, dimension: str) -> None:
        (tmp_path / "a").write_text(f"2 {dimension}\nthe 1 2\nof 3 4\n")
        assert faults_of(tmp_path / "a") == [
            (1, f"the header promises {dimension} numbers a word, but the lines have fewer")
        ]

    @pytest.mark.parametrize("content", ["", "0 300\n", "0 999999999999\n"])
    def test_nothing_in_it(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "a").write_text(content)
        assert faults_of(tmp_path / "a") == [(None, "holds no word vectors")]

    def test_reading_stops_where_nothing_is_right(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vector_text, "MOST_FAULTS", 10)
        monkeypatch.setattr(vector_text, "BLOCK_BYTES", 64)
        (tmp_path / "a").write_text("not a vector at all\n" * 1000)
        assert 10 < len(faults_of(tmp_path / "a")) < 100

    def test_compressed_files(self, tmp_path: Path) -> None:
        content = "".join(f"w{row} {row / 7:.5f} 2\n" for row in range(1000)).encode()
        (tmp_path / "a").write_bytes(content)
        half = content.index(b"w500 ")
        (tmp_path / "a.gz").write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]))
        zstd = pa.Codec("zstd")
        frames = [zstd.compress(part, asbytes=True) for part in (content[:half], content[half:])]
        (tmp_path / "a.zst").write_bytes(b"".join(frames))
        plain = read(tmp_path / "a")
        for name in ("a.gz", "a.zst"):
            words, vectors = read(tmp_path / name)
            assert words == plain[0]
            assert vectors.tobytes() == plain[1].tobytes()

    @pytest.mark.parametrize("suffix", [".gz", ".zst"])
    def test_broken_compression(self, tmp_path: Path, suffix: str) -> None:
        content = "".join(f"w{row} {row / 7:.5f} 2\n" for row in range(1000)).encode()
        packed = gzip.compress(content) if suffix == ".gz" else pa.Codec("zstd").compress(content, asbytes=True)
        for name, data in (("cut", packed[: len(packed) // 2]), ("wrong", b"never compressed 1 2\n")):
            path = tmp_path / f"{name}{suffix}"
            path.write_bytes(data)
            [(line, what)] = faults_of(path)
            assert line is None
            assert "cannot be read" in what

    def test_binary_file_is_named_as_such(self, tmp_path: Path) -> None:
        (tmp_path / "a.pt").write_bytes(bytes(100))
        assert faults_of(tmp_path / "a.pt") == [(None, "is not a text file")]


@pytest.mark.parametrize(
    ("text", "dimension", "words"),
    [
        ("400000 300\nthe 1 2", 300, 400000),
        ("2 1\nthe 5\nof 6", 1, 2),
        ("1984 7\n1985 8\n", 1, None),
        ("the 1 2 3\n", 3, None),
        (". . . 1 2 3\nthe 1 2 3\n", 3, None),
        ("the 1 2\nof 1 2 3\nand 1 2 3\n", 3, None),  # a short first line does not decide
        ("1 2 3 4\n5 2 3 4\n", 3, None),
        ("nothing\n", 1, None),
        ("windows 95 1 2\nthe 1 2\n", 2, None),
        (" 1.5 2\nthe 1 2\n", 2, None),
        ("\n \n2 2\nthe 1 2\n", 2, 2),
        (f"{'9' * 5000} 2\nthe 1 2\n", 1, None),  # more digits than Python converts
    ],
)
def test_layout(text: str, dimension: int, words: int | None) -> None:
    layout = find_layout(text.encode())
    assert (layout.dimension, layout.words) == (dimension, words)
