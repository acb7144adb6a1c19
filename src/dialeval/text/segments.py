"""Tokenisers of other libraries: `unicode`, the words of UAX #29, and `ja`, Japanese words by MeCab.

- `unicode`: a text is cut at the word boundaries of Unicode's annex 29, and what is only white space is left out.
  Punctuation and emoji are words of their own, a letter keeps its marks. It needs no dictionary: letters of scripts
  without blanks (Chinese, Thai) stand one by one, runs of Katakana and words of other scripts stay whole. By the
  package unicode-segmentation-rs (the extra `unicode`).
- `ja`: MeCab with the dictionary IPADIC, the same as sacreBLEU's `ja-mecab` (the extra `ja`).

Both split a text into stretches of it, between which a blank is put; blanks inside of one split it too.
"""

from __future__ import annotations

from functools import cache
from threading import local
from typing import Any

from dialeval.core.columns import TextColumn
from dialeval.core.errors import SettingError

IPADIC_WORDS = 392_126
"""Words of the dictionary that sacreBLEU takes."""

_taggers = local()
"""A tagger of its own for every thread: MeCab keeps what it is doing in the tagger."""


def unicode_words(texts: TextColumn) -> TextColumn:
    """The texts with a blank at every boundary of a word."""
    bounds = _bounds()
    return TextColumn.from_strings([" ".join(bounds(text)) for text in texts])


def japanese_words(texts: TextColumn) -> TextColumn:
    """The texts with a blank between Japanese words."""
    tagger = _tagger()
    return TextColumn.from_strings([tagger.parse(text.strip()) for text in texts])


@cache
def _bounds() -> Any:
    try:
        from unicode_segmentation_rs import split_word_bounds
    except ModuleNotFoundError:
        raise _lacking("unicode") from None
    return split_word_bounds


def _tagger() -> Any:
    known = getattr(_taggers, "tagger", None)
    if known is None:
        try:
            import ipadic
            import MeCab
        except ModuleNotFoundError:
            raise _lacking("ja") from None
        known = _taggers.tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")
        words = known.dictionary_info().size
        if words != IPADIC_WORDS:
            raise SettingError(f"the tokeniser ja needs IPADIC with {IPADIC_WORDS:,} words; this one has {words:,}")
    return known


def _lacking(name: str) -> SettingError:
    return SettingError(
        f"the tokeniser {name} needs a library that is not installed; run: pip install 'dialeval[{name}]'"
    )
