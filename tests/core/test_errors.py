"""Messages say what, where and what to do; errors survive a process boundary."""

from __future__ import annotations

import pickle

import pytest

from dialeval.core.errors import (
    MOST_PROBLEMS,
    DataError,
    DialevalError,
    NeedError,
    Problem,
    ProblemList,
    SettingError,
    UnknownNameError,
    suggest,
)


def test_one_problem_reads_as_a_line() -> None:
    error = DataError(Problem("a.txt", 7, "not UTF-8", "save it as UTF-8"))
    assert str(error) == "a.txt:7: not UTF-8; save it as UTF-8"


def test_a_problem_is_one_line_that_a_terminal_does_not_obey() -> None:
    problem = Problem("a\nb.txt", 7, "the row is \x1b[2J\x1b]0;x\a", "mend \u202eit")
    assert str(problem) == r"a\nb.txt:7: the row is \x1b[2J\x1b]0;x\x07; mend \u202eit"


def test_many_problems_are_counted() -> None:
    same = DataError(Problem("a.txt", line, "bad", "mend it") for line in range(1, 9))
    assert str(same) == "a.txt:1: bad; mend it (also in line 2, 3, 4, 5, 6 and 2 more)"
    error = DataError(Problem("a.txt", line, f"bad {line}", "mend it") for line in range(1, 9))
    assert str(error).splitlines()[-1] == "and 3 more; of rows and lines `dialeval validate` lists all"
    assert len(error.problems) == 8


def test_errors_have_one_root_and_pickle() -> None:
    for error in (DataError(Problem("a", None, "b", "c")), NeedError("x"), SettingError("y")):
        assert isinstance(error, DialevalError)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


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


@pytest.mark.parametrize(
    ("count", "lines"),
    [
        (1, ""),
        (2, " (also in line 2)"),
        (6, " (also in line 2, 3, 4, 5, 6)"),
        (7, " (also in line 2, 3, 4, 5, 6 and 1 more)"),
        (1234, " (also in line 2, 3, 4, 5, 6 and 1,228 more)"),
    ],
)
def test_problems_that_differ_in_their_line_are_one_line(count: int, lines: str) -> None:
    assert str(DataError(problems(count))) == f"a.txt:1: odd; mend it{lines}"


@pytest.mark.parametrize(("kinds", "more"), [(5, 0), (6, 2), (8, 6)])
def test_five_kinds_of_problems_are_listed(kinds: int, more: int) -> None:
    found = [problem for kind in range(kinds) for problem in problems(2, f"odd {kind}")]
    expected = [f"a.txt:1: odd {kind}; mend it (also in line 2)" for kind in range(5)]
    expected += [f"and {more} more; of rows and lines `dialeval validate` lists all"] if more else []
    assert str(DataError(found)).splitlines() == expected


def test_ten_thousand_problems_are_enough() -> None:
    found = ProblemList()
    for problem in problems(9_999):
        found.append(problem)
    with pytest.raises(DataError) as caught:
        found.append(Problem("b.txt", 7, "odd", "mend it"))
    assert len(caught.value.problems) == 10_001
    last = Problem("b.txt", None, "further problems are not listed", "correct these first")
    assert caught.value.problems[-1] == last
    assert str(last) == "b.txt: further problems are not listed; correct these first"


def test_names_that_are_not_known() -> None:
    assert suggest("LENGHT", ["length", "bleu"]) == "did you mean 'length'?"
    assert suggest("blue-4", ["Bleu-4", "bleu-2"]) == "did you mean 'Bleu-4'?"
    assert suggest("zzz", ["length", "bleu"]) == "there are length, bleu"
    assert suggest("zzz", ["length", "bleu"], "look there") == "look there"
    assert str(UnknownNameError("metric", "x", ["y"], {"x": "needs y"})) == (
        "no metric is called 'x'; it was skipped: it needs y"
    )
    assert str(UnknownNameError("metric", "x", ["yes"])) == "no metric is called 'x'; there are yes"
