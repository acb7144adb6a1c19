"""Check numbers of rows: the formula, and that every kind of damage shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.resources.row_checks import _factors, file_check, row_checks


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equals_the_formula_in_whole_numbers(dtype: type) -> None:
    matrix: npt.NDArray[Any] = np.random.default_rng(0).normal(size=(5, 7)).astype(dtype)
    bits, factors = matrix.view(f"u{matrix.dtype.itemsize}").tolist(), _factors(8).tolist()
    seeds = [3, 0, 2**40, 9, 1]
    expected = [
        (seed * factors[0] + sum(bit * factor for bit, factor in zip(row, factors[1:], strict=True))) % 2**64
        for seed, row in zip(seeds, bits, strict=True)
    ]
    assert row_checks(matrix, np.array(seeds)).tolist() == expected
    assert row_checks(matrix[:0], np.array([], np.int64)).tolist() == []
    assert all(factor % 2 for factor in factors)
    assert len(set(factors)) == 8


@given(st.integers(0, 6), st.integers(0, 63), st.integers(0, 2**40))
def test_a_single_bit_shows(place: int, bit: int, seed: int) -> None:
    row = np.arange(7.0).reshape(1, 7)
    changed = row.copy()
    changed.view(np.uint64)[0, place] ^= np.uint64(1 << bit)
    assert row_checks(changed, np.array([seed])) != row_checks(row, np.array([seed]))
    assert row_checks(row, np.array([seed])) != row_checks(row, np.array([seed + 1]))
    assert row_checks(row, np.array([seed])) != row_checks(np.zeros_like(row), np.array([seed]))
    assert row_checks(row, np.array([seed])) != row_checks(row[:, ::-1], np.array([seed]))


@pytest.mark.parametrize("size", [0, 5, 4096, 8200])
def test_the_check_of_a_file_changes_with_every_byte_and_its_size(tmp_path: Path, size: int) -> None:
    file, content = tmp_path / "file", bytes(number % 251 for number in range(size))
    file.write_bytes(content)
    seen = {file_check(file)}
    assert file_check(file) in seen
    changes = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(0, size, 1021)]
    changes += [content + b"\0", content + bytes(4096), bytes(size + 1)]
    if size > 4096:
        changes.append(content[4096:8192] + content[:4096] + content[8192:])
    for change in changes:
        file.write_bytes(change)
        seen.add(file_check(file))
    assert len(seen) == 1 + len({*changes} - {content})
