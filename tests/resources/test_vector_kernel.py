"""The kernel takes plain lines and leaves the others alone; `test_vector_text` compares it with the definition."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.core.kernels import Kernels

KERNEL = Kernels("dialeval.resources.vector_kernel")


def parsed(line: bytes, dimension: int) -> tuple[int, list[float]]:
    vectors, ends = np.full((1, dimension), np.nan), np.zeros(1, np.int64)
    data = np.frombuffer(line, np.uint8)
    KERNEL.parse_lines(data, np.zeros(1, np.int64), np.full(1, len(line)), vectors, ends)
    return int(ends[0]), vectors[0].tolist()


def test_plain_lines() -> None:
    assert parsed(b"the 1 -2.5 3e-2", 3) == (3, [1.0, -2.5, 0.03])
    assert parsed(b"a\t.5  5. ", 2) == (1, [0.5, 5.0])
    assert parsed("知道 1e22 9007199254740992".encode(), 2) == (6, [1e22, 2.0**53])


@pytest.mark.parametrize(
    "line",
    [b"", b" the 1 2", b"the 1", b"the 1 2 3", b"the x 2", b"the +1 2", b"the 1e23 2", b"the 9007199254740993 2"],
)
def test_other_lines_are_left_to_the_definition(line: bytes) -> None:
    assert parsed(line, 2)[0] == -1
