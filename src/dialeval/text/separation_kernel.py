"""Kernels: split texts by the rules of sacreBLEU's tokenisers, without a copy of the text.

These rules only ever put blanks into a text, so that every token is a stretch of its bytes. A character has one of a
few kinds, which a table says by its code point; `separation` has the tables. What becomes of a stop (`.` and `,`, or
any punctuation) depends on its neighbours. Of a run of k stops between x and y all stand alone, but for the last,

    which stays with y if y is a digit, and x is a digit just where k is odd.

That is what two substitutions over neighbouring characters come to, (not a digit)(stop) and then (stop)(not a digit),
since a match of the first takes in two characters and the next begins behind them. Where the text is not padded with
blanks its two ends match neither substitution, so they count as digits here.
"""

from __future__ import annotations

from dialeval.core.numba_kernel import njit
from dialeval.text.separation import ALONE, BLANK, DIGIT, EDGE, HYPHEN, OTHER, STOP
from dialeval.text.words_kernel import word_id


@njit()
def _width(first):  # type: ignore[no-untyped-def]
    """Bytes of the character that begins with a byte."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


@njit()
def _kind(data, i, kinds):  # type: ignore[no-untyped-def]
    """The kind of the character at `i`; whatever the bytes are, nothing beyond the arrays is looked at."""
    first = data[i]
    if first < 0x80:
        return kinds[first]
    if i + _width(first) > data.shape[0]:
        return kinds[0]
    if first < 0xE0:
        return kinds[(first & 0x1F) << 6 | (data[i + 1] & 0x3F)]
    if first < 0xF0:
        return kinds[(first & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | (data[i + 2] & 0x3F)]
    low = (data[i + 1] & 0x3F) << 12 | (data[i + 2] & 0x3F) << 6 | (data[i + 3] & 0x3F)
    return kinds[(first & 0x07) << 18 | low]


@njit()
def _stripped_end(data, start, end, kinds):  # type: ignore[no-untyped-def]
    """Where a text ends without the blanks at its end."""
    while end > start:
        last = end - 1
        while last > start and data[last] & 0xC0 == 0x80:
            last -= 1
        if _kind(data, last, kinds) != BLANK:
            break
        end = last
    return end


@njit()
def _run_of_stops(data, i, end, kinds):  # type: ignore[no-untyped-def]
    """The number of stops from `i` on, where the last of them begins, and where they end."""
    stops = 0
    last = i
    while i < end and _kind(data, i, kinds) == STOP:
        last = i
        stops += 1
        i += _width(data[i])
    return stops, last, min(i, end)


@njit()
def _like_a_digit(kind):  # type: ignore[no-untyped-def]
    return kind in (DIGIT, EDGE)


@njit()
def _put_each(data, start, end, cuts, count):  # type: ignore[no-untyped-def]
    """Put every character from `start` to `end` into `cuts` as a token of its own; gives the new count."""
    while start < end:
        behind = min(start + _width(data[start]), end)
        cuts[count], cuts[count + 1] = start, behind
        count += 2
        start = behind
    return count


@njit()
def _cuts(data, start, end, kinds, padded, stripped, cuts):  # type: ignore[no-untyped-def]
    """Fill `cuts` with the start and the end of each token of a text; gives twice their number."""
    edge = OTHER if padded else EDGE
    end = _stripped_end(data, start, end, kinds)
    count = 0
    token = -1
    before = edge
    i = start
    while i < end:
        kind = _kind(data, i, kinds)
        # From `i` to `until` every character is a token; from there on a new one begins, or goes on without a cut.
        until = behind = min(i + _width(data[i]), end)
        cut = kind in (ALONE, BLANK) or (kind == HYPHEN and before == DIGIT)
        if kind == STOP:
            stops, last, behind = _run_of_stops(data, i, end, kinds)
            after = _kind(data, behind, kinds) if behind < end else edge
            stays = _like_a_digit(after) and _like_a_digit(before) == (stops % 2 == 1)
            cut = not (stays and stops == 1)
            until = last if stays else behind
        if cut and token >= 0:
            cuts[count], cuts[count + 1] = token, i
            count += 2
        if cut:
            count = count if kind == BLANK else _put_each(data, i, until, cuts, count)
            token = until if until < behind else -1
        elif token < 0:
            token = i
        if kind != BLANK or not (stripped and before == EDGE):
            before = kind
        i = behind
    if token >= 0:
        cuts[count], cuts[count + 1] = token, end
        count += 2
    return count


@njit()
def split_apart(data, starts, ends, first, kinds, padded, stripped, cuts, table, arena, word_ends, words, ids, offsets):  # type: ignore[no-untyped-def]
    """Fill `ids` and `offsets` with the tokens of the rows from `first` on; `cuts` is scratch for those of one row.

    `padded`: whether texts stand between blanks; `stripped`: whether blanks before a text do not count. Gives what
    `words_kernel.split_words` gives.
    """
    count = offsets[first]
    for row in range(first, starts.shape[0]):
        tokens = _cuts(data, starts[row], ends[row], kinds, padded, stripped, cuts)
        for cut in range(0, tokens, 2):
            word, words = word_id(data, cuts[cut], cuts[cut + 1], table, arena, word_ends, words)
            if word < 0:
                return row, words
            ids[count] = word
            count += 1
        offsets[row + 1] = count
    return starts.shape[0], words


@njit()
def has_marks(data, starts, ends, found):  # type: ignore[no-untyped-def]
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
        found[row] = marks


@njit()
def only_letters_and_digits(data, starts, ends, result, result_starts, result_ends):  # type: ignore[no-untyped-def]
    """Fill `result` with the texts in lower case, a blank for all but ASCII letters and digits.

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


@njit()
def count_kinds(data, starts, ends, kinds, counts):  # type: ignore[no-untyped-def]
    """Add to `counts` how many characters of each kind the texts have."""
    for row in range(starts.shape[0]):
        i = starts[row]
        while i < ends[row]:
            counts[_kind(data, i, kinds)] += 1
            i += _width(data[i])


@njit()
def count_from(data, starts, ends, kinds, least, result):  # type: ignore[no-untyped-def]
    """Fill `result` with how many characters of kind `least` or a higher one each text has."""
    for row in range(starts.shape[0]):
        count = 0
        i = starts[row]
        while i < ends[row]:
            count += 1 if _kind(data, i, kinds) >= least else 0
            i += _width(data[i])
        result[row] = count
