"""The error classes: one base class, and messages that state the problem, its place and the remedy.

Library code raises only these for anything that a user can cause. Only the command line catches the base class.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# Warnings of readers. A reader does not print, and its result (a column, ratings, pairs) has no room for remarks, so it
# calls `add_warning`; an evaluation puts the collected warnings into its run, a worker into the states that it sends
# back, the command line on stderr. Where warnings are not collected, it is a warning of Python.

_COLLECTING: ContextVar[dict[str, None] | None] = ContextVar("warnings", default=None)


def add_warning(line: str) -> None:
    """Add a warning to those that are collected, or raise it as a warning of Python."""
    collected = _COLLECTING.get()
    if collected is None:
        warnings.warn(escape_lines(line), UserWarning, stacklevel=2)
    else:
        collected[line] = None


@contextmanager
def collect_warnings() -> Iterator[dict[str, None]]:
    """Collect the warnings of the block, each line once and in order, instead of passing them on."""
    collected: dict[str, None] = {}
    before = _COLLECTING.set(collected)
    try:
        yield collected
    finally:
        _COLLECTING.reset(before)


# Escaping of text from outside, in messages, tables and on terminals.
#
# A file may be named `a\x1b]8;;http://...`, and the name of a system or field may be anything. Terminals obey escapes
# and control characters, a direction override reverses the line around it, and lone surrogates cannot be encoded.

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, direction overrides and lone surrogates: they would change the text around them."""
_UNSAFE_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def escape_controls(text: str) -> str:
    """Escape control characters in a text (`\\x1b`)."""
    return _UNSAFE.sub(_escape, text)


def escape_lines(text: str) -> str:
    """Escape control characters in a text of several lines: line feeds and tabs stay."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def escape_surrogates(text: str) -> str:
    """Escape lone surrogates, as in file names that are not UTF-8."""
    return text if text.isascii() else LONE_SURROGATES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def suggest(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """Return a hint for a name that is not known: the closest one in any case, else `otherwise`, else all of them."""
    from difflib import get_close_matches

    names = {each.lower(): each for each in known}
    close = get_close_matches(str(name).lower(), names, n=1)
    return f"did you mean {names[close[0]]!r}?" if close else otherwise or f"there are {', '.join(names.values())}"


SHOWN_PROBLEMS = 5
"""A message lists this many problems and counts the rest; `dialeval validate` lists up to `MOST_PROBLEMS` of a file."""
MOST_PROBLEMS = 10_000
"""Problems of one file that are collected: reading stops there."""


class DialevalError(Exception):
    """The base class of every error that dialeval raises on purpose.

    Examples:
        >>> import dialeval
        >>> try:
        ...     dialeval.load("no-such-folder")
        ... except dialeval.DialevalError as error:
        ...     print(type(error).__name__)
        DataError
    """

    def __str__(self) -> str:
        return escape_lines(super().__str__())


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of an input: where it is, what it is, and the remedy; printed as one line."""

    where: str
    line: int | None
    what: str
    remedy: str

    def __str__(self) -> str:
        place = self.where if self.line is None else f"{self.where}:{self.line}"
        return escape_controls(f"{place}: {self.what}; {self.remedy}")


def group_problems(problems: Iterable[Problem]) -> list[list[Problem]]:
    """Group problems that differ only in their line."""
    groups: dict[tuple[str, ...], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.where, problem.what, problem.remedy), []).append(problem)
    return list(groups.values())


def describe_group(group: Sequence[Problem]) -> str:
    """Return one line for problems that differ only in their line."""
    first, *others = group
    lines = [str(problem.line) for problem in others[:SHOWN_PROBLEMS]]
    more = f" and {len(others) - SHOWN_PROBLEMS:,} more" if len(others) > SHOWN_PROBLEMS else ""
    return f"{first} (also in line {', '.join(lines)}{more})" if others else str(first)


class DataError(DialevalError):
    """An input cannot be used as it is.

    Attributes:
        problems: Every problem that was found, in the order of the file.

    Examples:
        >>> import dialeval
        >>> try:
        ...     dialeval.evaluate(["yes", "no"], ["one reference"], metrics="rouge-l")
        ... except dialeval.DataError as error:
        ...     print(len(error.problems))
        1
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: Sequence[Problem] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        groups = group_problems(self.problems)
        more = sum(len(group) for group in groups[SHOWN_PROBLEMS:])
        lines = [describe_group(group) for group in groups[:SHOWN_PROBLEMS]]
        if more > 0:
            lines.append(f"and {more} more; of rows and lines `dialeval validate` lists all")
        return "\n".join(lines)


class UnsavedRunError(DataError):
    """A run was computed and cannot be saved. `run` holds it, so that it can be printed."""

    def __init__(self, problems: Iterable[Problem], run: object = None) -> None:
        super().__init__(problems)
        self.run = run


class ProblemList(list[Problem]):
    """The problems of one input; raised as a DataError when it holds `MOST_PROBLEMS`, or earlier by its user."""

    def __init__(self) -> None:
        super().__init__()
        self.when_full: Callable[[], None] = self._raise

    def append(self, problem: Problem) -> None:
        """Add a problem; DataError where there are too many to go on."""
        super().append(problem)
        if len(self) == MOST_PROBLEMS:
            super().append(Problem(problem.where, None, "further problems are not listed", "correct these first"))
            self.when_full()

    def _raise(self) -> None:
        raise DataError(self)


class NeedError(DialevalError):
    """A metric was asked for without an input that it needs.

    Examples:
        >>> import dialeval
        >>> try:
        ...     dialeval.evaluate(["yes"], metrics="rouge-l")
        ... except dialeval.NeedError:
        ...     print("rouge-l needs references")
        rouge-l needs references
    """


class UnknownNameError(KeyError):
    """A system or metric that a result does not have: a KeyError that suggests a name, or says why it was skipped."""

    def __init__(self, what: str, name: object, known: Iterable[str], skipped: Mapping[str, str] | None = None) -> None:
        reason = (skipped or {}).get(str(name))
        hint = suggest(str(name), known) if reason is None else f"it was skipped: it {reason}"
        super().__init__(f"no {what} is called {name!r}; {hint}")

    def __str__(self) -> str:
        return escape_lines(self.args[0])


class SettingError(DialevalError):
    """A name or a setting that does not exist, or a value that it cannot have.

    Examples:
        >>> import dialeval
        >>> try:
        ...     dialeval.evaluate(["yes"], metrics="blue-4")
        ... except dialeval.SettingError:
        ...     print("no such metric")
        no such metric
    """
