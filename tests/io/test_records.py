from __future__ import annotations

import pytest

from dialeval.core.errors import DataError, Problem
from dialeval.io.rows import Records, join_names, kind_of


def test_problems_are_placed_on_the_lines_of_items() -> None:
    problems = [Problem("x", number, "bad", "mend it") for number in (1, 2, 3)]
    with pytest.raises(DataError) as caught:
        Records("x", [], problems, lines=lambda: [4, 7]).raise_problems()
    assert [problem.line for problem in caught.value.problems] == [4, 7, None]


def test_words_for_values() -> None:
    kinds = [kind_of(value) for value in (True, None, "", 1.5, (), {}, object())]
    assert kinds == ["true or false", "null", "a string", "a number", "a list", "an object", "a Python object"]
    assert (join_names([]), join_names(range(14))) == ("nothing", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...")
