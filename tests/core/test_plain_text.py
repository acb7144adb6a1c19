"""Text from outside stays in its place."""

from __future__ import annotations

import pytest

import dialeval
from dialeval.core.errors import add_warning, escape_controls, escape_lines

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


def test_messages_of_the_python_interface_are_harmless() -> None:
    """As pytest and notebooks print them: the messages of exceptions and of warnings, and comparisons."""
    name = "v1\x1b]0;title\a\u202e"
    references = [["see you at nine"]] * 20
    run = dialeval.evaluate({name: ["see you at nine"] * 20}, references, metrics="rouge-l")
    worse = dialeval.evaluate({name: ["no"] * 20}, references, metrics="rouge-l")
    assert run[name]["rouge-l"].mean == 1, "names are unchanged"
    messages = [str(dialeval.compare({"a": run, "b": worse}))]
    for fail in (
        lambda: dialeval.assert_no_worse(worse, run, "rouge-l"),
        lambda: dialeval.compare(run, baseline=f"{name}0"),
        lambda: dialeval.evaluate(["yes"], metrics=name),
        lambda: run[f"{name}0"],
    ):
        with pytest.raises((AssertionError, dialeval.DialevalError, KeyError)) as caught:
            fail()
        messages.append(str(caught.value))
    with pytest.warns(UserWarning, match="v1") as warned:
        add_warning(name)
    messages += [str(warning.message) for warning in warned]
    assert all(r"v1\x1b]0;title\x07\u202e" in message for message in messages), messages
    assert not any(letter in message for letter in "\x1b\a\u202e" for message in messages)
