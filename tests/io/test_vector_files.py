"""Files of word vectors, text and binary, against naive readers."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, Problem
from dialeval.io import vector_files
from dialeval.io.vector_files import Oddity, VectorFindings, VectorLayout, find_layout, parse_block, read_vectors
from dialeval.io.vectors import Embeddings, load_embeddings

pytestmark = pytest.mark.usefixtures("cache")

BOTH = pytest.mark.parametrize("fast", [False, True], ids=["by line", "by Arrow"])

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


def read(path: Path, findings: VectorFindings | None = None) -> tuple[list[str], Floats]:
    rows = list(read_vectors(path, findings or VectorFindings()))
    return [word.decode() for words, _ in rows for word in words], np.concatenate([vectors for _, vectors in rows])


def problems_of(path: Path) -> list[tuple[int | None, str]]:
    with pytest.raises(DataError) as caught:
        read(path)
    assert all(problem.where == str(path) and problem.remedy for problem in caught.value.problems)
    return [(problem.line, problem.what) for problem in caught.value.problems]


Parsed = tuple[list[bytes], bytes, list[Problem], list[tuple[int, Oddity]]]


def parse(data: bytes, dimension: int, fast: bool = True, first_line: int = 1) -> Parsed:
    """The words, the bytes of the vectors, the errors and the odd lines of a block."""
    findings = VectorFindings()
    with pytest.MonkeyPatch.context() as patch:
        if not fast:
            patch.setattr(vector_files, "parse_plain", lambda *_: None)
        words, vectors, problems = parse_block(data, first_line, dimension, "x", findings)
    assert vectors.shape == (len(words), dimension)
    return words, vectors.tobytes(), problems, findings.odd


@pytest.fixture(params=[False, True], ids=["by line", "by Arrow"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(vector_files, "parse_plain", lambda *_: None)


@BOTH
@given(data=st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_equals_the_naive_twin(fast: bool, data: st.DataObject) -> None:
    dimension = data.draw(st.integers(1, 4))
    gap = st.sampled_from([" ", "  ", "\t", " \t "])
    lines = []
    for _ in range(data.draw(st.integers(1, 6))):
        fields = [data.draw(WORD), *(data.draw(NUMBER) for _ in range(dimension))]
        lines.append("".join(field + data.draw(gap) for field in fields[:-1]) + fields[-1])
    ends = data.draw(st.sampled_from(["\n", "\r\n", " \n"]))
    text = ends.join(lines) + data.draw(st.sampled_from(["", "\n"]))
    words, vectors, problems, odd = parse(text.encode(), dimension, fast)
    expected = [naive(line, dimension) for line in lines]
    assert (problems, odd) == ([], [])
    assert [word.decode() for word in words] == [word for word, _ in expected]
    # Bit for bit: the sign of a zero counts too.
    assert vectors == np.array([numbers for _, numbers in expected]).tobytes()


PIECES = st.sampled_from(
    [*(bytes([byte]) for byte in b"ab123.e+_- \t\r\v\f\0\"',\\"), b" 1", b" 2", b"inf", b"\xef\xbb\xbf"]
)
ANYTHING = st.one_of(st.binary(max_size=24), st.lists(PIECES, max_size=12).map(b"".join))


@given(line=ANYTHING.filter(lambda line: b"\n" not in line), dimension=st.integers(1, 3))
@settings(deadline=None, max_examples=1000)
def test_both_ways_agree_on_any_bytes(line: bytes, dimension: int) -> None:
    for block in (b"a" + b" 1" * dimension + b"\n" + line + b"\n", line + b"\nb" + b" 2" * dimension, line):
        assert parse(block, dimension, first_line=7) == parse(block, dimension, fast=False, first_line=7)


def naive_read(lines: list[bytes], dimension: int) -> tuple[list[str], list[list[float]], int]:
    """What a patient reader makes of lines without problems: the words, their numbers, and how many lines are odd."""
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
def test_odd_lines_equal_a_patient_reader(fast: bool, data: st.DataObject) -> None:
    dimension = data.draw(st.integers(1, 3))
    word = st.sampled_from(
        [b"the", b"95", b"windows 95", b"mp 3 4.5", b". . .", b"\xff", b"caf\xe9 7", b"", b"a\xc2\xa0b"]
    )
    numbers = st.lists(PLAIN, min_size=dimension, max_size=dimension).map(lambda found: " ".join(found).encode())
    line = st.one_of(st.builds(b"%b %b".__mod__, st.tuples(word, numbers)), st.sampled_from([b"", b" ", b"\t\r"]))
    lines = data.draw(st.lists(line, min_size=1, max_size=8))
    found, parsed, problems, odd = parse(b"\n".join(lines) + b"\n", dimension, fast)
    words, vectors, odd_lines = naive_read(lines, dimension)
    assert problems == []
    assert [word.decode() for word in found] == words
    assert parsed == np.array(vectors).tobytes()
    assert len(odd) == odd_lines


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

    def test_every_problem_is_listed(self, tmp_path: Path) -> None:
        lines = ["the 1 2 3", "", "of 1 2", "and 1 x 3", "to 1 2 3 4", "in 1 nan 3", "a 1 1e999 3", "  ", "on 1_0 2 3"]
        (tmp_path / "a").write_text("\n".join([*lines, *["w 1 2 3"] * 9]))
        assert problems_of(tmp_path / "a") == [
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
        assert problems_of(tmp_path / "a") == [(3, "1 numbers where 3 are expected")]

    def test_line_numbers_across_blocks(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        lines = [f"w{row} {row} 2" for row in range(500)]
        (tmp_path / "good").write_text("\n".join(lines))
        lines[33], lines[444] = "w 1", ""
        (tmp_path / "bad").write_text("\n".join(lines))
        monkeypatch.setattr(vector_files, "BLOCK_BYTES", 64)
        words, vectors = read(tmp_path / "good")
        assert words == [f"w{row}" for row in range(500)]
        assert vectors[:, 0].tolist() == list(range(500))
        assert problems_of(tmp_path / "bad") == [(34, "1 numbers where 2 are expected"), (445, "blank line")]

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
            findings = VectorFindings()
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
        assert [line for line, _ in problems_of(tmp_path / "a")] == list(range(1100, 1111))
        (tmp_path / "a").write_text("\n\n".join(sound))
        assert len(read(tmp_path / "a")[0]) == 1100

    @pytest.mark.parametrize("promised", [1, 3, 4])
    def test_header_that_is_off_by_a_few(self, tmp_path: Path, promised: int) -> None:
        (tmp_path / "a").write_text(f"{promised} 2\nthe 1 2\nof 3 4\n")
        findings = VectorFindings()
        assert read(tmp_path / "a", findings)[0] == ["the", "of"]
        assert findings.warning() == f"the header promises {promised} words, but 2 follow"

    def test_header_that_lies(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("5 2\nthe 1 2\nof 3 4\n")
        assert problems_of(tmp_path / "a") == [(1, "the header promises 5 words, but 2 follow")]
        (tmp_path / "a").write_text("1 2\n" + "the 1 2\n" * 12)
        assert problems_of(tmp_path / "a") == [(1, "the header promises 1 words, but 12 follow")]
        (tmp_path / "a").write_text("5 2\nthe 1 2\nof 3\n")
        assert problems_of(tmp_path / "a") == [
            (3, "1 numbers where 2 are expected"),
            (1, "the header promises 5 words, but 2 follow"),
        ]

    @pytest.mark.parametrize("dimension", ["3", "999999999999"])
    def test_header_with_another_dimension(self, tmp_path: Path, dimension: str) -> None:
        (tmp_path / "a").write_text(f"2 {dimension}\nthe 1 2\nof 3 4\n")
        assert problems_of(tmp_path / "a") == [
            (1, f"the header promises {dimension} numbers a word, but the lines have fewer")
        ]

    @pytest.mark.parametrize("content", ["", "0 300\n", "0 999999999999\n"])
    def test_nothing_in_it(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "a").write_text(content)
        assert problems_of(tmp_path / "a") == [(None, "holds no word vectors")]

    def test_reading_stops_where_nothing_is_right(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vector_files, "MOST_PROBLEMS", 10)
        monkeypatch.setattr(vector_files, "BLOCK_BYTES", 64)
        (tmp_path / "a").write_text("not a vector at all\n" * 1000)
        stopped = (None, "reading stopped after so many problems")
        wrong = [(line, "0 numbers where 1 are expected") for line in range(1, 11)]
        (tmp_path / "a").write_text("word\n" * 10)
        assert problems_of(tmp_path / "a") == [*wrong, stopped], "so many are too many"
        (tmp_path / "a").write_text("word\n" * 9)
        assert problems_of(tmp_path / "a") == wrong[:9]
        (tmp_path / "a").write_text("not a vector at all\n" * 1000)
        assert problems_of(tmp_path / "a")[-2:] == [(12, "'all' is not a finite number"), stopped], "of four blocks"

    def test_reading_stops_where_nearly_all_is_odd(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vector_files, "MOST_PROBLEMS", 12)
        monkeypatch.setattr(vector_files, "BLOCK_BYTES", 64)
        stopped, odd = (None, "reading stopped after so many problems"), " 1 2 3\n"
        sound = "the 1 2 3\n" * 6  # a block of its own, but for the last byte
        (tmp_path / "a").write_text(sound + odd * 11)
        assert problems_of(tmp_path / "a") == [(line, "no word") for line in range(7, 18)]
        (tmp_path / "a").write_text(sound + odd * 12)
        assert problems_of(tmp_path / "a") == [*((line, "no word") for line in range(7, 19)), stopped]
        (tmp_path / "a").write_text(sound + "\n" * 40)
        assert read(tmp_path / "a")[0] == ["the"] * 6, "blank lines are never too many"

    @pytest.mark.parametrize("number", [99_999, 100_000])
    def test_the_most_problems(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        wrong = [Problem(str(tmp_path / "a"), 1, "wrong", "mend it")] * number
        monkeypatch.setattr(vector_files, "parse_block", lambda *_: ([], np.empty((0, 1)), wrong))
        (tmp_path / "a").write_text("word\n")
        assert len(problems_of(tmp_path / "a")) == number + (number == 100_000)

    def test_only_the_beginning_says_what_a_file_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(vector_files, "BLOCK_BYTES", 8)
        (tmp_path / "a").write_bytes(b"abcdefgh\xef\xbb\xbfx 1 2\nthe 1 2\nz\0 3 4\n")
        words, vectors = read(tmp_path / "a")
        assert words == ["abcdefgh\ufeffx", "the", "z\0"]
        assert vectors.tolist() == [[1, 2], [1, 2], [3, 4]]
        (tmp_path / "a").write_bytes(b"abcdefgh 1\0 2\n")
        assert problems_of(tmp_path / "a") == [(None, "is not a text file")]

    def test_a_long_field_is_shown_in_part(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text(f"the 1 2\nof 1 {'x' * 41}\n")
        assert problems_of(tmp_path / "a") == [(2, f"'{'x' * 40}' is not a finite number")]

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
            [(line, what)] = problems_of(path)
            assert line is None
            assert "not a whole" in what

    def test_binary_file_is_named_as_such(self, tmp_path: Path) -> None:
        (tmp_path / "a.pt").write_bytes(bytes(100))
        assert problems_of(tmp_path / "a.pt") == [(None, "is not a text file")]


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("2 3\nthe 1 2 3\nof 1\n", VectorLayout(3, 2, 4, 4)),
        ("\n 2 3 \n\nthe 1 2 3", VectorLayout(3, 2, 4, 7)),
        ("7 3", VectorLayout(3, 7, 0, 3)),
        ("7 3\n", VectorLayout(3, 7, 0, 4)),
        ("7 3\n\n", VectorLayout(3, 7, 0, 4)),
        ("7 3\nthe 1\n\nof 1 2 3\n", VectorLayout(3, 7, 4, 4)),  # half of the lines are no more than half
        ("7 3\nthe 1\nof 1\nto 1 2 3\n", VectorLayout(1)),
        ("7 0\nthe 1 2\n", VectorLayout(1)),
        ("7 x\nthe 1 2\n", VectorLayout(2)),
        ("999999999999 2\nthe 1 2\n", VectorLayout(2, 999999999999, 3, 15)),
        ("9999999999999 2\nthe 1 2\n", VectorLayout(1)),
        ("a 1 x 2\n", VectorLayout(1)),
        (" the 1 2 3\n of 1 2 3\n", VectorLayout(3)),
        ("the 1 2 3\n" * 32 + "of 1 2\n" * 32 + "to 1 2 3\n", VectorLayout(2)),  # 64 lines vote
    ],
)
def test_whole_layouts(text: str, layout: VectorLayout) -> None:
    assert find_layout(text.encode()) == layout


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
    monkeypatch.setattr(vector_files, "_READ_BYTES", 5)
    monkeypatch.setattr(vector_files, "_LONGEST_WORD", 20)
    word2vec(tmp_path / name, end)
    vectors = load(tmp_path / name)
    assert vectors.words() == WORDS
    assert vectors.vectors_for(vectors.words())[0].tolist() == MATRIX.tolist()


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
    findings = VectorFindings()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_files, "_ROWS", rows)
        try:
            found = list(vector_files.read_vectors(path, findings))
        except DataError:
            assert len(read) - len(sound) > len(sound) or count - len(read) > len(read)
            return
    assert [word for some, _ in found for word in some] == [read[row] for row in sound]
    assert np.concatenate([some for _, some in found]).tolist() == matrix[sound].tolist()
    assert len(findings.odd) == len(read) - len(sound)
    assert len(findings.other) == (count != len(words))


def test_too_many_odd_words_are_refused(tmp_path: Path) -> None:
    records = (word + b" " + row.tobytes() for word, row in zip([b"a", b"\xff", b"\xff", b"\xff"], MATRIX, strict=True))
    (tmp_path / "x.bin").write_bytes(b"4 3\n" + b"".join(records))
    with pytest.raises(DataError, match=r"x\.bin:2: the word is not UTF-8"):
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


def binary(path: Path, header: bytes, words: list[bytes], rows: np.ndarray) -> Path:
    path.write_bytes(header + b"".join(word + b" " + row.tobytes() for word, row in zip(words, rows, strict=True)))
    return path


@pytest.mark.parametrize(
    ("odd", "sound", "refused"),
    [
        *((0, 0, False), (1, 0, True), (1, 1, False), (2, 1, True), (10, 10, False), (11, 99, True)),
        *((11, 1099, True), (11, 1100, False), (12, 1100, True)),
    ],
)
def test_when_odd_lines_are_too_many(odd: int, sound: int, refused: bool) -> None:
    assert VectorFindings(odd=[(1, "without a word")] * odd).is_broken(sound) == refused
    assert VectorFindings(odd=[(1, vector_files._JOINED)] * odd).is_broken(sound + odd) == refused
    assert not VectorFindings(odd=[(1, "blank")] * odd).is_broken(sound)
    findings = VectorFindings()
    assert (findings.check_header(sound + odd, sound) is not None) == refused
    assert bool(findings.other) == (odd > 0 and not refused)
