from __future__ import annotations

import pytest

from dialeval.core.errors import DataError, Problem
from dialeval.io.rows import Records


def test_problems_are_placed_on_the_lines_of_items() -> None:
    problems = [Problem("x", number, "bad", "mend it") for number in (1, 2, 3)]
    with pytest.raises(DataError) as caught:
        Records("x", [], problems, lines=lambda: [4, 7]).raise_problems()
    assert [problem.line for problem in caught.value.problems] == [4, 7, None]
