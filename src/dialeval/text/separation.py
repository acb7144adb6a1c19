"""Tokenizers by kinds of characters: `13a`, `zh` and `intl` of sacreBLEU, and the words of rouge-score.

- `13a`: mteval-v13a, sacreBLEU's default. Symbols stand alone; so do `.` and `,` but between digits, and a hyphen
  behind a digit. Entities such as `&quot;` are characters, line feeds are spaces, `<skipped>` is nothing.
- `zh`: the same rules, and every Chinese character alone. sacreBLEU's list of these has two ranges with five digits
  that Python reads as four, so that most symbols from U+2001 to U+2A6D stand alone too.
- `intl`: mteval-v14. Punctuation (\\p{P}) stands alone but between numbers (\\p{N}), symbols (\\p{S}) always.
- `rouge`: lower case, and all but the letters and digits of ASCII is a space.

What is a number or a symbol in `intl` is what the package regex says, as in sacreBLEU; it follows Unicode, so that
characters that were added to Unicode lately may be split differently with an older version of it.

Edge cases: spaces at the end of a text do not count, and under `zh` those before it neither. A stop at either end of a
text stands alone under `13a`; under `zh` and `intl` only if its neighbor is no digit (`in 1999.` ends in `1999.`).

Kernels: split texts by the rules of sacreBLEU's tokenizers, without a copy of the text.

These rules only insert spaces into a text, so that every token is a range of its bytes. A character has one of a few
kinds, found by its code point in a table. The treatment of a stop (`.` and `,`, or any punctuation) depends on its
neighbors. Of a run of k stops between x and y all are tokens of their own, but the last one

    stays with y if y is a digit, and x is a digit exactly if k is odd.

That is the result of two substitutions over neighboring characters, (not a digit)(stop) and then (stop)(not a digit),
since a match of the first consumes two characters and the next begins behind them. Where the text is not padded with
spaces its two ends match neither substitution, so they count as digits here.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Bytes
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.kernels import kernel
from dialeval.text.vocabulary import Vocabulary, word_id

OTHER, DIGIT, STOP, ALONE, HYPHEN, SPACE = range(6)
"""Kinds of characters; a hyphen behind a digit is a token of its own."""
EDGE = 6
"""The end of a text that is not padded."""

CODE_POINTS = 0x110000
_CODES = 1 << 21
"""The number of values of four bytes, valid UTF-8 or not: tables are as long, so that no index is beyond them."""

SPACES = (
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
    (0x3200, 0x33FF),
)


def _split(texts: TextColumn, vocabulary: Vocabulary, kinds: Bytes, padded: bool, stripped: bool) -> TokenColumn:
    """Split texts by the kinds of their characters."""
    most = texts.ends - texts.starts
    cuts = np.empty(2 * int(most.max(initial=0)), np.int64)
    data, rules = (texts.data, texts.starts, texts.ends), (kinds, padded, stripped, cuts)
    return vocabulary.split_with(texts, most, lambda row, *place: split_apart(*data, row, *rules, *place))


def split_13a(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    """Return the tokens of mteval-v13a."""
    return _split(_replace_marks(texts), vocabulary, _kinds_13a(), padded=True, stripped=True)


def split_zh(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    """Return the tokens of mteval-v13a, with single Chinese characters as tokens."""
    return _split(texts, vocabulary, _kinds_zh(), padded=False, stripped=True)


def split_intl(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    """Return the tokens of mteval-v14."""
    return _split(texts, vocabulary, _kinds_intl(), padded=False, stripped=False)


def split_rouge(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    """Return the words of rouge-score, not stemmed."""
    result = np.empty(int((texts.ends - texts.starts).sum()), np.uint8)
    starts, ends = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
    keep_letters_and_digits(texts.data, texts.starts, texts.ends, result, starts, ends)
    return vocabulary.split(TextColumn(result, starts, ends))


def _replace_marks(texts: TextColumn) -> TextColumn:
    """Return the texts after what mteval takes out or replaces first; few have any of it."""
    marked = np.empty(len(texts), np.bool_)
    has_marks(texts.data, texts.starts, texts.ends, marked)
    rows = np.flatnonzero(marked)
    if not len(rows):
        return texts
    clean = TextColumn.from_strings([clean_text(texts[row].rstrip()) for row in rows.tolist()])
    first, last = int(texts.starts.min()), int(texts.ends.max())
    starts, ends = texts.starts - first, texts.ends - first
    starts[rows], ends[rows] = clean.starts + (last - first), clean.ends + (last - first)
    return TextColumn(np.concatenate((texts.data[first:last], clean.data)), starts, ends)


def clean_text(text: str) -> str:
    """Return a text without what does not count under `13a`, and with characters for entities; not split yet."""
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in text:
        for entity, sign in _ENTITIES:
            text = text.replace(entity, sign)
    return text


def make_kind_table(ranges: dict[int, tuple[tuple[int, int], ...]]) -> Bytes:
    """Return a table of kinds by code point, from the ranges of each; what is in none has kind 0, a later one wins."""
    kinds: Bytes = np.zeros(_CODES, np.uint8)
    for kind, spans in ranges.items():
        for first, last in spans:
            kinds[first : last + 1] = kind
    return kinds


@cache
def _kinds_13a() -> Bytes:
    stops, digits, hyphen = ((0x2C, 0x2C), (0x2E, 0x2E)), ((0x30, 0x39),), ((0x2D, 0x2D),)
    return make_kind_table({ALONE: _ALONE, STOP: stops, DIGIT: digits, HYPHEN: hyphen, SPACE: SPACES})


@cache
def _kinds_zh() -> Bytes:
    chinese = make_kind_table({ALONE: _CHINESE, SPACE: SPACES})
    return np.where(chinese > 0, chinese, _kinds_13a())


@cache
def _kinds_intl() -> Bytes:
    import regex

    kinds = make_kind_table({SPACE: SPACES})
    points = np.arange(CODE_POINTS, dtype="<u4")
    points[0xD800:0xE000] = 0  # halves of pairs are no characters
    characters = points.tobytes().decode("utf-32-le")
    for kind, pattern in ((DIGIT, r"\p{N}+"), (STOP, r"\p{P}+"), (ALONE, r"\p{S}+")):
        for match in regex.finditer(pattern, characters):
            kinds[match.start() : match.end()] = kind
    return kinds


def ids_of_characters(points: npt.NDArray[np.int32], vocabulary: Vocabulary) -> npt.NDArray[np.int32]:
    """Return the ids of code points, each a word of its own."""
    used = np.flatnonzero(np.bincount(points))
    ids = np.empty(int(used.max(initial=-1)) + 1, np.int32)
    ids[used] = vocabulary.add(TextColumn.from_strings(list(map(chr, used.tolist()))))
    return ids[points]


@kernel
def _width(first):  # type: ignore[no-untyped-def]
    """Return the number of bytes of the character that begins with a byte."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


@kernel
def _kind(data, i, kinds):  # type: ignore[no-untyped-def]
    """Return the kind of the character at `i`; invalid bytes lead to no access beyond the arrays."""
    first = data[i]
    if first < 0x80:
        return kinds[first]
    width = _width(first)
    if i + width > data.shape[0]:
        return kinds[0]
    point = first & 0xFF >> (width + 1)
    for k in range(1, width):
        point = point << 6 | (data[i + k] & 0x3F)
    return kinds[point]


@kernel
def _strip_end(data, start, end, kinds):  # type: ignore[no-untyped-def]
    """Return where a text ends without the spaces at its end."""
    while end > start:
        last = end - 1
        while last > start and data[last] & 0xC0 == 0x80:
            last -= 1
        if _kind(data, last, kinds) != SPACE:
            break
        end = last
    return end


@kernel
def _count_stops(data, i, end, kinds):  # type: ignore[no-untyped-def]
    """Return the number of stops from `i` on, where the last of them begins, and where they end."""
    stops = 0
    last = i
    while i < end and _kind(data, i, kinds) == STOP:
        last = i
        stops += 1
        i += _width(data[i])
    return stops, last, min(i, end)


@kernel
def _is_like_digit(kind):  # type: ignore[no-untyped-def]
    return kind in (DIGIT, EDGE)


@kernel
def _put_each(data, start, end, cuts, count):  # type: ignore[no-untyped-def]
    """Put every character from `start` to `end` into `cuts` as a token of its own; return the new count."""
    while start < end:
        behind = min(start + _width(data[start]), end)
        cuts[count], cuts[count + 1] = start, behind
        count += 2
        start = behind
    return count


@kernel
def _find_cuts(data, start, end, kinds, padded, stripped, cuts):  # type: ignore[no-untyped-def]
    """Fill `cuts` with the start and the end of each token of a text; return twice their number."""
    edge = OTHER if padded else EDGE
    end = _strip_end(data, start, end, kinds)
    count = 0
    token = -1
    before = edge
    i = start
    while i < end:
        kind = _kind(data, i, kinds)
        # From `i` to `until` every character is a token; from there on a new one begins, or goes on without a cut.
        until = behind = min(i + _width(data[i]), end)
        cut = kind in (ALONE, SPACE) or (kind == HYPHEN and before == DIGIT)
        if kind == STOP:
            stops, last, behind = _count_stops(data, i, end, kinds)
            after = _kind(data, behind, kinds) if behind < end else edge
            stays = _is_like_digit(after) and _is_like_digit(before) == (stops % 2 == 1)
            cut = not (stays and stops == 1)
            until = last if stays else behind
        if cut and token >= 0:
            cuts[count], cuts[count + 1] = token, i
            count += 2
        if cut:
            count = count if kind == SPACE else _put_each(data, i, until, cuts, count)
            token = until if until < behind else -1
        elif token < 0:
            token = i
        if kind != SPACE or not (stripped and before == EDGE):
            before = kind
        i = behind
    if token >= 0:
        cuts[count], cuts[count + 1] = token, end
        count += 2
    return count


@kernel("(u1[::1], i8[::1], i8[::1], i8, u1[::1], b1, b1, i8[::1], u8[::1], u1[::1], i8[::1], i8, i4[::1], i8[::1])")
def split_apart(data, starts, ends, first, kinds, padded, stripped, cuts, table, arena, word_ends, words, ids, offsets):  # type: ignore[no-untyped-def]
    """Fill `ids` and `offsets` with the tokens of the rows from `first` on; `cuts` is scratch for those of one row.

    `padded`: whether texts are between spaces; `stripped`: whether spaces before a text do not count. Returns what
    `vocabulary.split_words` returns.
    """
    count = offsets[first]
    for row in range(first, starts.shape[0]):
        tokens = _find_cuts(data, starts[row], ends[row], kinds, padded, stripped, cuts)
        for cut in range(0, tokens, 2):
            word, words = word_id(data, cuts[cut], cuts[cut + 1], table, arena, word_ends, words)
            if word < 0:
                return row, words
            ids[count] = word
            count += 1
        offsets[row + 1] = count
    return starts.shape[0], words


@kernel("(u1[::1], i8[::1], i8[::1], b1[::1])")
def has_marks(data, starts, ends, marked):  # type: ignore[no-untyped-def]
    """Fill `found`: whether a text has what mteval takes out or replaces before it splits: `&`, `<s`, a line feed."""
    for row in range(starts.shape[0]):
        marks = False
        for i in range(starts[row], ends[row]):
            byte = data[i]
            if byte <= 0x3C and (
                byte == 0x26 or byte == 0x0A or (byte == 0x3C and i + 1 < ends[row] and data[i + 1] == 0x73)
            ):
                marks = True
                break
        marked[row] = marks


@kernel("(u1[::1], i8[::1], i8[::1], u1[::1], i8[::1], i8[::1])")
def keep_letters_and_digits(data, starts, ends, result, result_starts, result_ends):  # type: ignore[no-untyped-def]
    """Fill `result` with the texts in lower case, a space for all but ASCII letters and digits.

    Two further characters have a lower case in ASCII: the sign for kelvin, and a capital i with a dot, whose dot is a
    character of its own then.
    """
    size = 0
    for row in range(starts.shape[0]):
        result_starts[row] = size
        i = starts[row]
        while i < ends[row]:
            byte = data[i]
            width = _width(byte)
            letter = 0x20
            if 0x61 <= byte <= 0x7A or 0x30 <= byte <= 0x39:
                letter = byte
            elif 0x41 <= byte <= 0x5A:
                letter = byte + 0x20
            elif width == 3 and byte == 0xE2 and data[i + 1] == 0x84 and data[i + 2] == 0xAA:
                letter = 0x6B
            elif width == 2 and byte == 0xC4 and data[i + 1] == 0xB0:
                result[size] = 0x69
                size += 1
            result[size] = letter
            size += 1
            i += width
        result_ends[row] = size


@kernel("(u1[::1], i8[::1], i8[::1], u1[::1], i8[:, ::1])")
def count_kinds(data, starts, ends, kinds, counts):  # type: ignore[no-untyped-def]
    """Add to `counts` how many characters of each kind every text has, one line per text."""
    for row in range(starts.shape[0]):
        i = starts[row]
        while i < ends[row]:
            counts[row, _kind(data, i, kinds)] += 1
            i += _width(data[i])
