"""Tokenisers that set characters apart: `13a`, `zh` and `intl` of sacreBLEU, and the words of rouge-score.

- `13a`: mteval-v13a, sacreBLEU's default. Symbols stand alone; so do `.` and `,` but between digits, and a hyphen
  behind a digit. Entities such as `&quot;` are characters, line feeds are blanks, `<skipped>` is nothing.
- `zh`: the same rules, and every Chinese character alone. sacreBLEU's list of these has two ranges with five digits
  that Python reads as four, so that most symbols from U+2001 to U+2A6D stand alone too.
- `intl`: mteval-v14. Punctuation (\\p{P}) stands alone but between numbers (\\p{N}), symbols (\\p{S}) always.
- `rouge`: lower case, and all but the letters and digits of ASCII is a blank.

What is a number or a symbol in `intl` is what the package regex says, as in sacreBLEU; it follows Unicode, so that
characters that were added to Unicode lately may be split differently with an older version of it.

Edge cases: blanks at the end of a text do not count, and under `zh` those before it neither. A stop at either end of a
text stands alone under `13a`; under `zh` and `intl` only if its neighbour is no digit (`in 1999.` ends in `1999.`).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Bytes
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.kernels import Kernels
from dialeval.text.vocabulary import Vocabulary

_kernel = Kernels("dialeval.text.separation_kernel")

OTHER, DIGIT, STOP, ALONE, HYPHEN, BLANK = range(6)
"""Kinds of characters; a hyphen stands alone behind a digit."""
EDGE = 6
"""The end of a text that is not padded."""

CODE_POINTS = 0x110000
_CODES = 1 << 21
"""What four bytes can stand for, sound or not: a table is as long, so that no byte leads out of it."""

BLANKS = (
    *((0x09, 0x0D), (0x1C, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
    *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000)),
)
"""What `str.split` splits at, first and last."""

_ALONE = ((0x20, 0x26), (0x28, 0x2B), (0x2F, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E))
"""Symbols of ASCII, but for the apostrophe and `. , -`."""

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))

_CHINESE = (
    *((0x3400, 0x4DB5), (0x4E00, 0x9FA5), (0x9FA6, 0x9FBB)),
    *((0xF900, 0xFA2D), (0xFA30, 0xFA6A), (0xFA70, 0xFAD9)),
    *((0x2001, 0x2A6D), (0x2F81, 0x2FA1)),  # meant as U+20000 to U+2A6D6 and U+2F800 to U+2FA1D
    *((0xFF00, 0xFFEF), (0x2E80, 0x2EFF), (0x3000, 0x303F), (0x31C0, 0x31EF), (0x2F00, 0x2FDF), (0x2FF0, 0x2FFF)),
    *((0x3100, 0x312F), (0x31A0, 0x31BF), (0xFE10, 0xFE1F), (0xFE30, 0xFE4F), (0x2600, 0x26FF), (0x2700, 0x27BF)),
    *((0x3200, 0x32FF), (0x3300, 0x33FF)),
)


def split_13a(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    """The tokens of mteval-v13a."""
    return vocabulary.split_apart(_without_marks(texts), _kinds_13a(), padded=True, stripped=True)


def split_zh(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    """The tokens of mteval-v13a, Chinese characters apart."""
    return vocabulary.split_apart(texts, _kinds_zh(), padded=False, stripped=True)


def split_intl(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    """The tokens of mteval-v14."""
    return vocabulary.split_apart(texts, _kinds_intl(), padded=False, stripped=False)


def split_rouge(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    """The words of rouge-score, not stemmed."""
    result = np.empty(int((texts.ends - texts.starts).sum()), np.uint8)
    starts, ends = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
    _kernel.only_letters_and_digits(texts.data, texts.starts, texts.ends, result, starts, ends)
    return vocabulary.split(TextColumn(result, starts, ends))


def _without_marks(texts: TextColumn) -> TextColumn:
    """The texts after what mteval takes out or replaces first; few have any of it."""
    marked = np.empty(len(texts), np.bool_)
    _kernel.has_marks(texts.data, texts.starts, texts.ends, marked)
    rows = np.flatnonzero(marked)
    if not len(rows):
        return texts
    clean = TextColumn.from_strings([cleaned(texts[row].rstrip()) for row in rows.tolist()])
    first, last = int(texts.starts.min()), int(texts.ends.max())
    starts, ends = texts.starts - first, texts.ends - first
    starts[rows], ends[rows] = clean.starts + (last - first), clean.ends + (last - first)
    return TextColumn(np.concatenate((texts.data[first:last], clean.data)), starts, ends)


def cleaned(text: str) -> str:
    """A text without what does not count under `13a`, and with characters for entities; not split yet."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in text:
        for entity, sign in _ENTITIES:
            text = text.replace(entity, sign)
    return text


def kinds_of(ranges: dict[int, tuple[tuple[int, int], ...]]) -> Bytes:
    """A table of kinds by code point, from the ranges of each; what is in none has kind 0, a later one wins."""
    kinds: Bytes = np.zeros(_CODES, np.uint8)
    for kind, spans in ranges.items():
        for first, last in spans:
            kinds[first : last + 1] = kind
    return kinds


@cache
def _kinds_13a() -> Bytes:
    stops, digits, hyphen = ((0x2C, 0x2C), (0x2E, 0x2E)), ((0x30, 0x39),), ((0x2D, 0x2D),)
    return kinds_of({ALONE: _ALONE, STOP: stops, DIGIT: digits, HYPHEN: hyphen, BLANK: BLANKS})


@cache
def _kinds_zh() -> Bytes:
    chinese = kinds_of({ALONE: _CHINESE, BLANK: BLANKS})
    return np.where(chinese > 0, chinese, _kinds_13a())


@cache
def _kinds_intl() -> Bytes:
    import regex

    kinds = kinds_of({BLANK: BLANKS})
    points = np.arange(CODE_POINTS, dtype="<u4")
    points[0xD800:0xE000] = 0  # halves of pairs are no characters
    characters = points.tobytes().decode("utf-32-le")
    for kind, pattern in ((DIGIT, r"\p{N}+"), (STOP, r"\p{P}+"), (ALONE, r"\p{S}+")):
        for match in regex.finditer(pattern, characters):
            kinds[match.start() : match.end()] = kind
    return kinds


def ids_of_characters(points: npt.NDArray[np.int32], vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    """The ids of code points, each a word of its own."""
    there = np.zeros(int(points.max(initial=-1)) + 1, np.bool_)
    there[points] = True
    used = np.flatnonzero(there)
    ids = np.empty(len(there), np.int32)
    ids[used] = vocabulary.add(TextColumn.from_strings(list(map(chr, used.tolist()))))
    return ids[points]
