"""Moses: text split into tokens and put together again, by the rules of the Moses scripts for English.

Splitting sets punctuation apart and joining puts it back, so that `hello , it is 10:00 .` and `hello, it is 10:00.`
both become `hello, it is 10: 00.`. The package sacremoses with its defaults is the definition. Importing it takes a
quarter of a second, for it compiles lists of all letters of Unicode, and then it takes about half a millisecond a text.
So texts of Latin letters and common signs are done here, by the same rules; tests compare both. Texts with any other
character go to sacremoses.

Steps of sacremoses that cannot change the outcome are left out: signs of XML are escaped and restored, and whether an
abbreviation keeps its dot is looked up in a list, where the dot comes back to its word anyway.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_MARK = r"[.,?!:;]"
_PART = "[A-Za-z0-9]+"
_WORD = rf"(?:{_PART}|{_PART}(?:-{_PART})+|{_PART}(?:-{_PART})*(?<=[A-Za-z])'[A-Za-z]+)"
"""A word of one part, with hyphens, or with an apostrophe; one pattern with all of it optional is slower by half."""
_CHUNK = rf"(?:{_WORD}{_MARK}?|[0-9]+\.[0-9]+|[-#]|{_MARK})"
_PLAIN = re.compile(rf"{_CHUNK}(?: {_CHUNK})*")
"""Words, each with at most one apostrophe inside and one mark behind it, decimal numbers, and signs alone."""
_ALONE = re.compile(rf" (?={_MARK}(?: |$))")
_COLON = re.compile(r"(?<=[A-Za-z0-9]):(?=[A-Za-z0-9])")
_DOTS = "MULTI"
"""Stands in the words that sacremoses takes for runs of dots."""

_KNOWN = re.compile(r"[\x00-\u02ff\u2010-\u2027€]*")
"""Texts of characters whose kinds are known here: Latin letters, ASCII and Latin-1, dashes, curly quotes."""
_FRACTIONS = "²³¹¼½¾"
"""Numbers for Moses, but no letters or digits."""
_NUMBER = rf"[0-9{_FRACTIONS}]"
_NO_NUMBER = rf"[^0-9{_FRACTIONS}]"
_LETTER = rf"[^\W\d_{_FRACTIONS}]"
_NO_LETTER = rf"[\W\d_{_FRACTIONS}]"
_CURRENCY = "$¢£¤¥€"
_OPENING = frozenset(f"{_CURRENCY}([{{¿¡")
_CLOSING = frozenset(",.?!:;\\%}])")
_QUOTES = frozenset("'\"„“`")
_DOUBLE = frozenset("„“")


@cache
def _rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    """What is split, in this order: commas that are not inside of numbers, then apostrophes."""
    rules = (
        (rf"({_NO_NUMBER}),", r"\1 , "),
        (rf",({_NO_NUMBER})", r" , \1"),
        (rf"({_NUMBER}),$", r"\1 , "),
        (rf"({_NO_LETTER})'({_NO_LETTER})", r"\1 ' \2"),
        (rf"((?!{_NUMBER}){_NO_LETTER})'({_LETTER})", r"\1 ' \2"),
        (rf"({_LETTER})'({_NO_LETTER})", r"\1 ' \2"),
        (rf"({_LETTER})'({_LETTER})", r"\1 '\2"),
        (rf"({_NUMBER})'(s)", r"\1 '\2"),
    )
    return tuple((re.compile(pattern), replacement) for pattern, replacement in rules)


_BLANKS = re.compile(r"\s+")
_CONTROLS = re.compile(r"[\x00-\x1f]")
_SIGN = re.compile(rf"([^\w\s.'`,-]|[_{_FRACTIONS}])")
_RUN = re.compile(r"\.{2,}")
_MARKER = re.compile(r"(?:DOT)+MULTI")
_LAST_QUOTE = re.compile(r"\.' ?$")


def tidied(text: str) -> str:
    """A text after being split into tokens and joined again."""
    spaced = " ".join(text.split())
    if not spaced:
        return ""
    if ":" in spaced:
        spaced = _COLON.sub(": ", spaced)
    return _plain(spaced) or (_joined(_split(text)) if _KNOWN.fullmatch(text) else _by_sacremoses(text))


def _plain(spaced: str) -> str | None:
    """The outcome for a text of plain words and marks; None for any other."""
    if not _PLAIN.fullmatch(spaced) or _DOTS in spaced:
        return None
    return _ALONE.sub("", spaced)


def _split(text: str) -> list[str]:
    """The tokens of a text."""
    text = _CONTROLS.sub("", _BLANKS.sub(" ", text)).strip()
    text = _SIGN.sub(r" \1 ", text)
    end = len(text)
    text = _RUN.sub(lambda run: f" {'DOT' * len(run[0])}{_DOTS}{' ' if run.end() < end else ''}", text)
    for pattern, replacement in _rules():
        text = pattern.sub(replacement, text)
    text = _LAST_QUOTE.sub(" . ' ", " ".join(_stops_apart(text.split())))
    return _MARKER.sub(lambda marker: "." * ((len(marker[0]) - len(_DOTS)) // 3), text).split()


def _stops_apart(tokens: list[str]) -> list[str]:
    """Stops at the ends of tokens set apart, but not in abbreviations (p.m.) and before a small letter."""
    for at, token in enumerate(tokens):
        word = token[:-1]
        if token[-1] != "." or not word:
            continue
        abbreviation = "." in word and any(map(str.isalpha, word))
        if not abbreviation and not (at + 1 < len(tokens) and tokens[at + 1][0].islower()):
            tokens[at] = f"{word} ."
    return tokens


def _joined(tokens: list[str]) -> str:
    """Tokens as a text: closing signs move to the left, opening ones to the right, and quotes by turns."""
    text, blank, before = "", "", ""
    quotes: Counter[str] = Counter()
    for token in tokens:
        signs = set(token)
        if signs <= _OPENING:
            text, blank = f"{text}{blank}{token}", ""
        elif signs <= _CLOSING or (before and token[0] == "'" and token[1:2].isalpha()):
            text, blank = text + token, " "
        elif signs <= _QUOTES:
            kind = '"' if signs <= _DOUBLE else token
            if quotes[kind] % 2:
                text, blank = text + token, " "
                quotes[kind] += 1
            elif kind == "'" and before.endswith("s"):  # the Jones' house
                text, blank = text + token, " "
            else:
                text, blank = f"{text}{blank}{token}", ""
                quotes[kind] += 1
        else:
            text, blank = f"{text}{blank}{token}", " "
        before = token
    return text


def _by_sacremoses(text: str) -> str:
    split, join = _moses()
    return str(join(split(text)))


@cache
def _moses() -> tuple[Callable[[str], Any], Callable[[Any], Any]]:
    from sacremoses import MosesDetokenizer, MosesTokenizer

    return MosesTokenizer(lang="en").tokenize, MosesDetokenizer(lang="en").detokenize
