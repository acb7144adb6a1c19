"""Tokenisers: named and versioned ways to take a text apart.

The name of a tokeniser stands in the signature of every number made with it, with a version that grows whenever the
same text would be split differently than before.

- `words.1`: split at white space as `str.split()` does (the convention of tokenised response files);
- `lower-words.1`: the same after `str.lower()`.

Words that are not in the list of known words (`Need.VOCABULARY`), if there is such a list, count as themselves
(`oov=self`) or all as one word, `<unk>` (`oov=unk`, the way of dialog-eval).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, cast

from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn, TokenColumn
from dialeval.core.needs import Need
from dialeval.text.vocabulary import Vocabulary


def lowered(texts: TextColumn) -> TextColumn:
    """The texts in lower case."""
    return TextColumn.from_strings([text.lower() for text in texts])


Tokeniser = Literal["words.1", "lower-words.1"]
"""The name of a tokeniser, as metrics annotate the setting."""

DEFAULT: Tokeniser = "words.1"

_BEFORE_SPLITTING: Mapping[Tokeniser, Callable[[TextColumn], TextColumn]] = {"lower-words.1": lowered}
"""What a tokeniser does to texts before they are split at white space."""

Oov = Literal["self", "unk"]
"""What becomes of a word that is not in the vocabulary."""

UNKNOWN = "<unk>"


def tokenise(texts: TextColumn, vocabulary: Vocabulary, tokeniser: Tokeniser = DEFAULT) -> TokenColumn:
    """The tokens of texts over a vocabulary, new words being added to it."""
    prepare = _BEFORE_SPLITTING.get(tokeniser)
    return vocabulary.split(prepare(texts) if prepare else texts)


def tokens(batch: Batch, need: Need, tokeniser: Tokeniser = DEFAULT, oov: Oov = "self") -> TokenColumn:
    """The tokens of a batch's texts, computed once for all metrics of the batch.

    Of a need with several texts per row it is the tokens of each text, one text a row: `Batch.lists` or, of a context,
    `Batch.contexts` says whose.
    """
    if oov == "unk" and batch.has(Need.VOCABULARY):
        split, known = tokens(batch, need, tokeniser), batch.resource(Need.VOCABULARY)
        return batch.derived(
            ("tokens", need, tokeniser, oov),
            lambda: TokenColumn(known.unified(split.ids), split.offsets, split.vocabulary),
        )
    texts = batch.values(need)
    vocabulary = cast(Vocabulary, batch.vocabulary)
    return batch.derived(("tokens", need, tokeniser), lambda: tokenise(texts, vocabulary, tokeniser))
