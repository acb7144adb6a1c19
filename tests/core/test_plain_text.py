"""Text from outside stays in its place."""

from __future__ import annotations

import pytest

from dialeval.core.errors import escape_controls, escape_lines, escape_surrogates

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


def test_a_name_is_one_line() -> None:
    assert escape_controls("a\n\tb") == r"a\n\tb"


def test_text_in_any_script_stays() -> None:
    for text in ("naïve 系统 عربي", "\u200f\u200d👩\u200d👧", ""):
        assert escape_controls(text) == escape_lines(text) == escape_surrogates(text) == text


def test_half_a_character_can_be_written() -> None:
    assert escape_surrogates("é\udcff\x1b").encode() == "é\\udcff\x1b".encode()
