"""Text from outside stays in its place."""

from __future__ import annotations

import pytest

from dialeval.core.errors import escape_controls, escape_lines

HOSTILE = [
    ("a\x1b[31mred", r"a\x1b[31mred"),
    ("\x1b]8;;http://x/\x1b\\link", "\\x1b]8;;http://x/\\x1b\\link"),
    ("\x9b31m", r"\x9b31m"),
    ("line\rover", r"line\rover"),
    ("bell\a", r"bell\x07"),
    ("\u202eabc\u2066d", r"\u202eabc\u2066d"),
    ("\u2028", r"\u2028"),
    ("\udcff", r"\udcff"),
    ("\x7f\0", r"\x7f\x00"),
]


@pytest.mark.parametrize(("text", "shown"), HOSTILE)
def test_what_a_terminal_obeys_is_written_out(text: str, shown: str) -> None:
    assert escape_controls(text) == shown
    assert escape_lines(f"{text}\n\tmore\n") == f"{shown}\n\tmore\n"
