"""Word vectors as arrays: a NumPy matrix with its vocabulary beside it, and the word2vec binary format.

- `x.npy`: a matrix of floats, one row per line of the vocabulary `x.vocab`, `x.txt` or `vocab.txt` in the same folder.
  Never unpickled.
- `x.bin`, `x.bin.gz`, `x.bin.zst`: a header line `words dimension`, then per word its bytes, a blank, and `dimension`
  little-endian float32 numbers; a line end may follow. fastText's own `.bin` models are another format and are refused.

The types of the numbers are kept; every number must be finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dialeval.core.errors import DataError, Fault
from dialeval.resources.vector_text import not_utf8, open_stream, read_chunk
from dialeval.resources.vectorstore import Matrix, WordRows

_ROWS = 1 << 14
"""Rows that are checked at a time."""
_READ_BYTES = 1 << 24
_LONGEST_HEADER = 64
_LONGEST_WORD = 1 << 16
_LARGEST_DIMENSION = 1 << 20


def vocabulary_beside(matrix: Path) -> Path:
    """The file that holds the words of an `.npy` matrix."""
    choices = [matrix.with_suffix(".vocab"), matrix.with_suffix(".txt"), matrix.with_name("vocab.txt")]
    for choice in choices:
        if choice.is_file():
            return choice
    names = ", ".join(choice.name for choice in choices)
    raise DataError(Fault(str(matrix), None, "has no vocabulary beside it", f"put the words, one a line, into {names}"))


def open_matrix(path: Path) -> Matrix:
    """Map the matrix of an `.npy` file."""
    remedy = "save a two-dimensional array of floats with numpy.save"
    try:
        matrix: Matrix = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise DataError(Fault(str(path), None, f"is not a NumPy array: {error}", remedy)) from error
    if matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.floating) or matrix.dtype.itemsize > 8 or not matrix.size:
        what = f"holds an array of type {matrix.dtype} and shape {matrix.shape}"
        raise DataError(Fault(str(path), None, what, remedy))
    return matrix


def read_matrix(path: Path, vocabulary: Path) -> Iterator[WordRows]:
    """The rows of an `.npy` matrix with their words; DataError with every fault."""
    matrix = open_matrix(path)
    lines = vocabulary.read_bytes().removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n")
    words = [line.removesuffix(b"\r") for line in lines]
    faults = list(_word_faults(words, vocabulary))
    if len(words) != len(matrix):
        what = f"{len(words)} words for the {len(matrix)} rows of {path.name}"
        faults.insert(0, Fault(str(vocabulary), None, what, "give every row its word, one a line"))
        raise DataError(faults)
    for start in range(0, len(matrix), _ROWS):
        rows = matrix[start : start + _ROWS]
        faults.extend(_number_faults(rows, path, start))
        if not faults:
            yield words[start : start + _ROWS], rows
    if faults:
        raise DataError(faults)


def read_word2vec(path: Path) -> Iterator[WordRows]:
    """The words and vectors of a word2vec binary file."""
    what = "is cut short, or is not in the word2vec binary format"
    broken = DataError(Fault(str(path), None, what, "get the file again, or give the vectors as text"))
    with open_stream(path) as stream:
        data = read_chunk(stream, max(_LONGEST_HEADER, _READ_BYTES), str(path))
        place = data.find(b"\n", 0, _LONGEST_HEADER) + 1
        fields = data[:place].split()
        if len(fields) != 2 or not all(field.isdigit() for field in fields):
            raise broken
        count, dimension = map(int, fields)
        if not count or not 0 < dimension <= _LARGEST_DIMENSION:
            raise broken
        size = 4 * dimension
        longest = _LONGEST_WORD + 1 + size
        for start in range(0, count, _ROWS):
            words: list[bytes] = []
            vectors: list[bytes] = []
            for _ in range(min(_ROWS, count - start)):
                if len(data) - place < longest:
                    data, place = data[place:] + read_chunk(stream, max(longest, _READ_BYTES), str(path)), 0
                end = data.find(b" ", place, place + _LONGEST_WORD)
                if end < 0 or len(data) < end + 1 + size:
                    raise broken
                # The original tool ends each vector with a line feed, others do not: it stands before the next word.
                words.append(data[place:end].removeprefix(b"\n"))
                place = end + 1 + size
                vectors.append(data[end + 1 : place])
            rows = np.frombuffer(b"".join(vectors), "<f4").reshape(-1, dimension)
            if faults := [*_word_faults(words, path, start), *_number_faults(rows, path, start)]:
                raise DataError(faults)
            yield words, rows


def _word_faults(words: list[bytes], path: Path, start: int = 0) -> Iterator[Fault]:
    for line, word in enumerate(words, start + 1):
        if not word.strip():
            yield Fault(str(path), line, "no word", "give every row its word")
    yield from not_utf8(words, start + 1, str(path))


def _number_faults(rows: Matrix, path: Path, start: int) -> Iterator[Fault]:
    for row in np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist():
        yield Fault(str(path), start + row + 1, "a number of this row is not finite", "correct the row, or take it out")
