"""The tokens of mteval-v13a, which sacreBLEU counts by default: punctuation apart, but for signs inside numbers.

The same as sacreBLEU's `13a`, which a test compares; written here so that scoring does not depend on that package, and
so that a text can be split in parts (`parts_13a`), each of which is split once. Task dialogues are split by it, without
a compiler; `separation` has the same rules as a kernel, for columns of texts.
"""

from __future__ import annotations

import re

_RULES = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),  # symbols, but for the apostrophe and . , -
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def tokens_13a(text: str) -> list[str]:
    """The tokens of a text."""
    if text.isalnum():  # no rule looks for a letter
        return [text]
    text = f" {cleaned(text)} "
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text.split()


def cleaned(text: str) -> str:
    """A text without what does not count, and with characters for entities; not split yet."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in text:
        for entity, sign in _ENTITIES:
            text = text.replace(entity, sign)
    return text


def parts_13a(text: str) -> list[str]:
    """Parts of a text whose tokens, one part after the other, are those of the text.

    No rule looks further than to a neighbouring character, and a blank is like any other character that is no digit;
    so the parts are those between blanks, but for a line that ends in a hyphen and is joined with the next.
    """
    return [text] if "\n" in text else text.split()
