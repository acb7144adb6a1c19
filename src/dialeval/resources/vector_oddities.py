"""Odd lines of a vector file: what is read around, what is said about it, and when it is too much.

Vector files that are in use have a few lines that are not quite a word and its numbers. They are read all the same:

- a blank line, a line without a word, and a word that is not UTF-8 are left out: no text holds such a word;
- a word with a number behind a blank (`windows 95`) is joined, since the numbers are the last fields of a line;
- a header may promise a few words more or fewer than there are.

One warning says how many there were. More than ten odd lines that are also more than 1 % of the sound ones are refused,
and so are more odd lines than sound ones; the same holds for the words that a header promises too many or too few.
Blank lines say nothing and are never too many. A wrong number of numbers, or one that is not finite, is a fault and
never read around.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from dialeval.core.errors import Fault

Oddity: TypeAlias = Literal["blank", "without a word", "with a word that is not UTF-8", "with a number in the word"]
JOINED: Oddity = "with a number in the word"

_FEW = 10
_SHARE = 0.01
_FAULTS = {
    "blank": ("blank line", "take the line out"),
    "without a word": ("no word", "give every vector its word"),
    "with a word that is not UTF-8": ("the word is not UTF-8", "convert the file to UTF-8"),
    JOINED: ("too many numbers, or a word with a number in it", "give every word as many numbers as the others"),
}


@dataclass(slots=True)
class Findings:
    """What a reader found beside words and vectors; complete when all rows are read."""

    header: bool = False
    """Whether the file says in its first line how many words it has."""
    odd: list[tuple[int, Oddity]] = field(default_factory=list)
    """Line or row, counted from 1, and what is odd about it."""
    other: list[str] = field(default_factory=list)
    """What else a user should know."""

    def too_many(self, sound: int) -> bool:
        """Whether a file with so many sound lines is broken throughout."""
        return _is_much(sum(kind != "blank" for _, kind in self.odd), sound)

    def promised(self, words: int, found: int) -> str | None:
        """Compare the header with the lines that follow; what is wrong where they are too far apart."""
        if words == found:
            return None
        what = f"the header promises {words} words, but {found} follow"
        if _is_much(abs(words - found), found):
            return what
        self.other.append(what)
        return None

    def faults(self, where: str) -> list[Fault]:
        """The odd lines as faults, for a file that is refused."""
        return [Fault(where, line, *_FAULTS[kind]) for line, kind in self.odd]

    def warning(self) -> str | None:
        """One line about everything odd; None where nothing was."""
        counts = Counter(kind for _, kind in self.odd)
        left_out = [f"{counts[kind]} {kind}" for kind in get_args(Oddity) if counts[kind] and kind != JOINED]
        parts = []
        if self.odd:
            lines = "1 odd line" if len(self.odd) == 1 else f"{len(self.odd)} odd lines"
            parts.append(f"{lines}, the first is {min(self.odd)[0]}")
        if left_out:
            parts.append(f"left out: {', '.join(left_out)}")
        if counts[JOINED]:
            parts.append(f"joined: {counts[JOINED]} {JOINED}")
        return "; ".join([*parts, *self.other]) or None


def _is_much(odd: int, sound: int) -> bool:
    return odd > max(min(_FEW, sound), _SHARE * sound)


def not_utf8(words: list[bytes]) -> list[int]:
    """Which of the words are not UTF-8."""
    return [] if _is_utf8(b"\n".join(words)) else [row for row, word in enumerate(words) if not _is_utf8(word)]


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
