"""Moses: text split into tokens and put together again, by the rules of the Moses scripts for English.

Splitting sets punctuation apart and joining puts it back, so that `hello , it is 10:00 .` and `hello, it is 10:00.`
both become `hello, it is 10: 00.`. The package sacremoses with its defaults is the definition. It takes about half a
millisecond a text, so texts of plain words and the commonest punctuation are done here, where it is known what comes
out; a test compares both on such texts, and everything else goes to sacremoses.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MARK = r"[.,?!:;]"
_WORD = r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*(?:(?<=[A-Za-z])'[A-Za-z]+)?"
_CHUNK = rf"(?:{_WORD}{_MARK}?|[0-9]+\.[0-9]+|[-#]|{_MARK})"
_PLAIN = re.compile(rf"{_CHUNK}(?: {_CHUNK})*")
"""Words, each with at most one apostrophe inside and one mark behind it, decimal numbers, and signs alone."""
_ALONE = re.compile(rf" (?={_MARK}(?: |$))")
_COLON = re.compile(r"(?<=[A-Za-z0-9]):(?=[A-Za-z0-9])")
_DOTS = "MULTI"
"""Stands in the words that sacremoses takes for runs of dots."""


def tidied(text: str) -> str:
    """A text after being split into tokens and joined again."""
    spaced = " ".join(text.split())
    if not spaced:
        return ""
    if ":" in spaced:
        spaced = _COLON.sub(": ", spaced)
    return _plain(spaced) or _by_sacremoses(text)


def _plain(spaced: str) -> str | None:
    """The outcome for a text of plain words and marks; None for any other."""
    if not _PLAIN.fullmatch(spaced) or _DOTS in spaced:
        return None
    return _ALONE.sub("", spaced)


def _by_sacremoses(text: str) -> str:
    split, join = _moses()
    return str(join(split(text)))


@cache
def _moses() -> tuple[Callable[[str], Any], Callable[[Any], Any]]:
    from sacremoses import MosesDetokenizer, MosesTokenizer

    return MosesTokenizer(lang="en").tokenize, MosesDetokenizer(lang="en").detokenize
