"""Text from outside, written so that it stays in its place: in a message, in a table, on a terminal.

A file may be called `a\\x1b]8;;http://...`, and a system, a field or a word may hold anything. A terminal obeys escapes
and control characters, a direction override turns the line around it, and half a character cannot be written at all.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, direction overrides and halves of characters: they would change the text around them."""
_UNSAFE_IN_LINES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_HALVES = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """Escape control characters in a text (`\\x1b`)."""
    return _UNSAFE.sub(_written_out, text)


def plain_lines(text: str) -> str:
    """Escape control characters in a text of several lines: line feeds and tabs stay."""
    return _UNSAFE_IN_LINES.sub(_written_out, text)


def whole_characters(text: str) -> str:
    """Escape lone surrogates, as in file names that are not UTF-8."""
    return text if text.isascii() else _HALVES.sub(_written_out, text)


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()
