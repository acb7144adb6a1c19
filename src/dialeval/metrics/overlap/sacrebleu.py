"""The signatures of sacreBLEU, for numbers that are the same there.

    BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0

The version is that of the sacreBLEU which the tests compare figures and lines with. `nrefs` is how many references each
row has, and `var` where rows differ. To know it from sums, a row counts its references and their square: the rows have
one number k of them just if rows * sum of squares = (sum)^2.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dialeval.core.arrays import Ints
from dialeval.core.batch import Batch
from dialeval.core.needs import Need
from dialeval.metrics.counting import SummedCounts
from dialeval.text.tokenise import Tokeniser

VERSION = "2.6.0"
MECAB = "0.996"
"""The version of MeCab that every mecab-python3 of these years holds."""

_TOKENISERS: Mapping[Tokeniser, tuple[str, str]] = {
    "words.1": ("mixed", "none"),
    "lower-words.1": ("lc", "none"),
    **{name: ("mixed", name) for name in ("13a", "intl", "zh", "char")},
    "ja": ("mixed", f"ja-mecab-{MECAB}-IPA"),
}
"""By our tokenisers: what sacreBLEU calls their case and what it calls them."""


def reference_numbers(batch: Batch) -> Ints:
    """Per row the number of references and its square."""
    numbers = np.diff(batch.lists(Need.REFERENCE).offsets)
    return np.stack((numbers, numbers * numbers), axis=1)


def number_of_references(state: SummedCounts) -> int | None:
    """How many references each scored row has, from sums that end in those of `reference_numbers`; None: it differs."""
    *_, total, squares = state.counts
    rows = state.moments.scored
    return total // rows if rows and rows * squares == total * total else None


def bleu_signature(tokeniser: Tokeniser, references: int | None) -> str | None:
    """That of corpus BLEU with the defaults of sacreBLEU; None for a tokeniser that it does not have."""
    if tokeniser not in _TOKENISERS:
        return None
    case, name = _TOKENISERS[tokeniser]
    return f"BLEU|nrefs:{_shown(references)}|case:{case}|eff:no|tok:{name}|smooth:exp|version:{VERSION}"


def chrf_signature(characters: int, words: int, beta: float, lower: bool, references: int | None) -> str | None:
    """That of corpus chrF; None for a beta that is not a whole number."""
    if beta != int(beta):
        return None
    case = "lc" if lower else "mixed"
    name = f"chrF{int(beta)}{'+' * words}"
    orders = f"nc:{characters}|nw:{words}"
    return f"{name}|nrefs:{_shown(references)}|case:{case}|eff:yes|{orders}|space:no|version:{VERSION}"


def _shown(references: int | None) -> str:
    return "var" if references is None else str(references)
