"""What is said about odd lines, and where they are too many."""

from __future__ import annotations

import pytest

from dialeval.resources.vector_oddities import JOINED, Findings, Oddity, not_utf8


def test_one_line_says_everything() -> None:
    kinds: list[Oddity] = ["blank", "without a word", "blank", "with a word that is not UTF-8", JOINED]
    findings = Findings(odd=list(enumerate(kinds, 4)), other=["more"])
    assert findings.warning() == (
        "5 odd lines, the first is 4; left out: 2 blank, 1 without a word, 1 with a word that is not UTF-8; "
        "joined: 1 with a number in the word; more"
    )
    assert [(fault.line, fault.what) for fault in findings.faults("x")][::4] == [
        (4, "blank line"),
        (8, "too many numbers, or a word with a number in it"),
    ]
    assert Findings().warning() is None


@pytest.mark.parametrize(
    ("odd", "sound", "refused"),
    [(0, 0, False), (1, 0, True), (1, 1, False), (2, 1, True), (10, 10, False), (11, 99, True), (11, 1100, False)],
)
def test_when_odd_lines_are_too_many(odd: int, sound: int, refused: bool) -> None:
    assert Findings(odd=[(1, JOINED)] * odd).too_many(sound) == refused
    assert not Findings(odd=[(1, "blank")] * odd).too_many(sound)
    findings = Findings()
    assert (findings.promised(sound + odd, sound) is not None) == refused
    assert bool(findings.other) == (odd > 0 and not refused)


def test_which_words_are_not_utf8() -> None:
    assert not_utf8(["知".encode(), b"\xff", b"", b"a\xe9"]) == [1, 3]
    assert not_utf8([b"a"]) == []
