"""Word vectors as arrays: a NumPy matrix with its vocabulary beside it, and the word2vec binary format.

- `x.npy`: a matrix of floats, one row per line of the vocabulary `x.vocab`, `x.txt` or `vocab.txt` in the same folder.
  Never unpickled.
- `x.bin`, `x.bin.gz`, `x.bin.zst`: a header line `words dimension`, then per word its bytes, a blank, and `dimension`
  little-endian float32 numbers; a line end may follow. fastText's own `.bin` models are another format and are refused.

The types of the numbers are kept; every number must be finite. A few rows without a word or with a word that is not
UTF-8 are left out, a header may be off by a few words (`vector_oddities`), and what follows the promised words of a
`.bin` is left out, as gensim does. A blank inside a word ends it there, so that the rest cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dialeval.core import gate
from dialeval.core.errors import DataError, Fault
from dialeval.resources.vector_oddities import Findings, not_utf8
from dialeval.resources.vector_text import open_stream, read_chunk
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
    matrix: Matrix = gate.read_array(path, None, remedy, None)
    if matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.floating) or matrix.dtype.itemsize > 8 or not matrix.size:
        what = f"holds an array of type {matrix.dtype} and shape {matrix.shape}"
        raise DataError(Fault(str(path), None, what, remedy))
    return matrix


def read_matrix(path: Path, vocabulary: Path, findings: Findings) -> Iterator[WordRows]:
    """The rows of an `.npy` matrix with their words; DataError with every fault."""
    matrix = open_matrix(path)
    remedy = "give every row its word, one a line"
    lines = gate.read_bytes(vocabulary, remedy).removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n")
    words = [line.removesuffix(b"\r") for line in lines]
    if len(words) != len(matrix):
        findings.odd += [(line, "blank") for line, word in enumerate(words, 1) if not word.strip()]
        words = [word for word in words if word.strip()]
    if len(words) != len(matrix):
        what = f"{len(words)} words for the {len(matrix)} rows of {path.name}"
        raise DataError(Fault(str(vocabulary), None, what, remedy))
    faults: list[Fault] = []
    sound = 0
    for start in range(0, len(matrix), _ROWS):
        rows = matrix[start : start + _ROWS]
        faults.extend(_number_faults(rows, path, start))
        kept = _sound_rows(words[start : start + _ROWS], rows, start, findings)
        sound += len(kept[0])
        if not faults:
            yield kept
    if findings.too_many(sound):
        faults = [*findings.faults(str(vocabulary)), *faults]
    if faults:
        raise DataError(faults)


def read_word2vec(path: Path, findings: Findings) -> Iterator[WordRows]:
    """The words and vectors of a word2vec binary file."""
    what = "is cut short, or is not in the word2vec binary format"
    broken = DataError(Fault(str(path), None, what, "get the file again, or give the vectors as text"))
    with open_stream(path) as stream:
        data = read_chunk(stream, max(_LONGEST_HEADER, _READ_BYTES), str(path))
        place = data.find(b"\n", 0, _LONGEST_HEADER) + 1
        count, dimension = _header(data[:place])
        if not count or not 0 < dimension <= _LARGEST_DIMENSION:
            raise broken
        findings.header = True
        found = sound = 0
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
                    if data[place:].strip(b"\n"):
                        raise broken
                    break  # the file ends behind a vector
                # The original tool ends each vector with a line feed, others do not: it stands before the next word.
                words.append(data[place:end].removeprefix(b"\n"))
                place = end + 1 + size
                vectors.append(data[end + 1 : place])
            rows = np.frombuffer(b"".join(vectors), "<f4").reshape(len(words), dimension)
            if faults := list(_number_faults(rows, path, start)):
                raise DataError(faults)
            kept = _sound_rows(words, rows, start, findings)
            found, sound = found + len(words), sound + len(kept[0])
            yield kept
            if len(words) < min(_ROWS, count - start):
                break
        if (data[place:] or read_chunk(stream, _READ_BYTES, str(path))).strip(b"\n"):
            findings.other.append(f"the header promises {count} words, and what follows them was left out")
    if findings.promised(count, found):
        raise broken
    if findings.too_many(sound):
        raise DataError(findings.faults(str(path)))


def _header(line: bytes) -> tuple[int, int]:
    """The number of words and of numbers a word; zeros where a line is no header."""
    fields = line.split()
    return (int(fields[0]), int(fields[1])) if len(fields) == 2 and all(map(bytes.isdigit, fields)) else (0, 0)


def _sound_rows(words: list[bytes], rows: Matrix, start: int, findings: Findings) -> WordRows:
    """The rows that have a word; the others go to the findings."""
    odd = set(not_utf8(words))
    findings.odd += [(start + row + 1, "with a word that is not UTF-8") for row in sorted(odd)]
    empty = [row for row, word in enumerate(words) if not word.strip()]
    findings.odd += [(start + row + 1, "without a word") for row in empty]
    odd.update(empty)
    if not odd:
        return words, rows
    kept = [row for row in range(len(words)) if row not in odd]
    return [words[row] for row in kept], rows[kept]


def _number_faults(rows: Matrix, path: Path, start: int) -> Iterator[Fault]:
    for row in np.flatnonzero(~np.isfinite(rows).all(axis=1)).tolist():
        yield Fault(str(path), start + row + 1, "a number of this row is not finite", "correct the row, or take it out")
