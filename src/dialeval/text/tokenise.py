"""Tokenisers: named and versioned ways to take a text apart.

The name of a tokeniser stands in the signature of every number made with it. Ours have a version that grows whenever
the same text would be split differently than before; the others are those of the programs that define them.

- `words.1`: split at white space as `str.split()` does (the convention of tokenised response files);
- `lower-words.1`: the same after `str.lower()`;
- `13a`, `intl`, `zh`: as sacreBLEU; `char`: every character that is no white space, as sacreBLEU;
- `ja`: as sacreBLEU's `ja-mecab`, with the extra `ja`;
- `unicode`: the words of UAX #29, with the extra `unicode`;
- `rouge`: as rouge-score, without its stemmer;
- `auto`: one of these, chosen by the scripts of all texts of a run before anything is split (see `scripts`).

Words that are not in the list of known words (`Need.VOCABULARY`), if there is such a list, count as themselves
(`oov=self`) or all as one word, `<unk>` (`oov=unk`, the way of dialog-eval).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, cast

from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.errors import SettingError
from dialeval.core.needs import Need
from dialeval.text.segments import japanese_words, unicode_words
from dialeval.text.separation import ids_of_characters, split_13a, split_intl, split_rouge, split_zh
from dialeval.text.vocabulary import Vocabulary


def lowered(texts: TextColumn) -> TextColumn:
    """The texts in lower case."""
    return TextColumn.from_strings([text.lower() for text in texts])


Tokeniser = Literal["words.1", "lower-words.1", "13a", "intl", "zh", "char", "ja", "unicode", "rouge", "auto"]
"""The name of a tokeniser, as metrics annotate the setting."""

DEFAULT: Tokeniser = "words.1"
AUTO: Tokeniser = "auto"


def _split_characters(texts: TextColumn, vocabulary: Vocabulary) -> TokenColumn:
    from dialeval.text.characters import characters_of

    split = characters_of(texts)
    return TokenColumn(ids_of_characters(split.ids, vocabulary), split.offsets, vocabulary)


_SPLITTERS: Mapping[Tokeniser, Callable[[TextColumn, Vocabulary], TokenColumn]] = {
    "words.1": lambda texts, vocabulary: vocabulary.split(texts),
    "lower-words.1": lambda texts, vocabulary: vocabulary.split(lowered(texts)),
    "13a": split_13a,
    "intl": split_intl,
    "zh": split_zh,
    "char": _split_characters,
    "ja": lambda texts, vocabulary: vocabulary.split(japanese_words(texts)),
    "unicode": lambda texts, vocabulary: vocabulary.split(unicode_words(texts)),
    "rouge": split_rouge,
}

Oov = Literal["self", "unk"]
"""What becomes of a word that is not in the vocabulary."""

UNKNOWN = "<unk>"


def tokenise(texts: TextColumn, vocabulary: Vocabulary, tokeniser: Tokeniser = DEFAULT) -> TokenColumn:
    """The tokens of texts over a vocabulary, new words being added to it."""
    if tokeniser == AUTO:
        raise SettingError("the tokeniser auto is chosen by an evaluation, from all texts; name one to split by it")
    return _SPLITTERS[tokeniser](texts, vocabulary)


def tokens(batch: Batch, need: Need, tokeniser: Tokeniser = DEFAULT, oov: Oov = "self") -> TokenColumn:
    """The tokens of a batch's texts, computed once for all metrics of the batch.

    Of a need with several texts per row it is the tokens of each text, one text a row: `Batch.lists` or, of a context,
    `Batch.contexts` says whose.
    """
    if oov == "unk" and batch.has(Need.VOCABULARY):
        split, known = tokens(batch, need, tokeniser), batch.resource(Need.VOCABULARY).by(tokeniser)
        return batch.derived(
            ("tokens", need, tokeniser, oov),
            lambda: TokenColumn(known.unified(split.ids), split.offsets, split.vocabulary),
        )
    texts = batch.values(need)
    vocabulary = cast(Vocabulary, batch.vocabulary)
    return batch.derived(("tokens", need, tokeniser), lambda: tokenise(texts, vocabulary, tokeniser))
