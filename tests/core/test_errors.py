"""Problems, warnings and JSON texts."""

from __future__ import annotations

import pytest

from dialeval.core.errors import MOST_PROBLEMS, DataError, Problem, ProblemList


def test_a_problem_is_one_line_that_a_terminal_does_not_obey() -> None:
    problem = Problem("a\nb.txt", 7, "the row is \x1b[2J\x1b]0;x\a", "mend \u202eit")
    assert str(problem) == r"a\nb.txt:7: the row is \x1b[2J\x1b]0;x\x07; mend \u202eit"


def test_many_problems_are_counted() -> None:
    same = DataError(Problem("a.txt", line, "bad", "mend it") for line in range(1, 9))
    assert str(same) == "a.txt:1: bad; mend it (also in line 2, 3, 4, 5, 6 and 2 more)"
    error = DataError(Problem("a.txt", line, f"bad {line}", "mend it") for line in range(1, 9))
    assert str(error).splitlines()[-1] == "and 3 more; of rows and lines `dialeval validate` lists all"
    assert len(error.problems) == 8


def test_a_list_of_problems_has_an_end() -> None:
    problems = ProblemList()
    with pytest.raises(DataError) as info:
        for line in range(1, 2 * MOST_PROBLEMS):
            problems.append(Problem("a.txt", line, "bad", "mend it"))
    *listed, last = info.value.problems
    assert [problem.line for problem in listed] == list(range(1, MOST_PROBLEMS + 1))
    assert str(last) == "a.txt: further problems are not listed; correct these first"


def problems(count: int, what: str = "odd") -> list[Problem]:
    return [Problem("a.txt", line, what, "mend it") for line in range(1, count + 1)]
