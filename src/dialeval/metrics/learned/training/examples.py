"""Examples: rated responses as vectors, ready to fit a judge or to be judged.

Scores are brought to the scale 1 to 5. Rows without a score, and rows without both context and reference, are left out.
A row's context is what it must not share with another side of a split: `without` takes out whatever has a context in
common with some other examples, also across data sets that draw on the same dialogues.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.data.rows.ratings import OVERALL, Ratings
from dialeval.metrics.learned.judge import encoded
from dialeval.metrics.learned.weights import HIGHEST, LOWEST, Encoded, Mask
from dialeval.resources.sentence_vectors import SentenceVectors

TURNS = 3
_NO_WORD = re.compile(r"\W+")


@dataclass(frozen=True, eq=False)
class Examples(Encoded):
    """Rated rows as vectors; every array has one row per response."""

    scores: Floats
    """On the scale 1 to 5."""
    sets: Ints
    """The data set of each row, as its place in `names`."""
    contexts: Ints
    """Equal where two rows have the same context, whatever set they are of."""
    rows: Ints
    """The row of the ratings that each example comes from."""
    names: Sequence[str]

    def take(self, chosen: Ints | Mask) -> Examples:
        """Some of the rows."""
        columns = [column.name for column in fields(self) if column.name != "names"]
        return replace(self, **{name: getattr(self, name)[chosen] for name in columns})

    def of_sets(self, names: Sequence[str]) -> Examples:
        """The rows of some data sets."""
        return self.take(np.isin(self.sets, [self.names.index(name) for name in names]))

    def without(self, others: Examples) -> Examples:
        """The rows whose context occurs in none of the other examples."""
        return self.take(~np.isin(self.contexts, others.contexts))


def examples_of(ratings: Ratings, vectors: SentenceVectors, turns: int = TURNS, quality: str = OVERALL) -> Examples:
    """The examples in ratings; a set without a stated scale is stretched from its lowest to its highest score."""
    if quality not in ratings.values:
        raise SettingError(f"nobody rated {quality!r}; the ratings have {', '.join(ratings.values)}")
    names = list(dict.fromkeys(ratings.datasets))
    sets: Ints = np.array([names.index(name) for name in ratings.datasets], np.int64)
    scores = on_scale(ratings, quality, sets, len(names))
    given = zip(ratings.contexts, ratings.references, strict=True)
    judgeable = np.array([any(text.strip() for text in (*c, *r)) for c, r in given], np.bool_)
    rows: Ints = np.flatnonzero(judgeable & ~np.isnan(scores))
    if not len(rows):
        raise SettingError("no rated row has both a score and a context or a reference")
    kept = ratings.take(rows)
    inputs = encoded(vectors, kept.contexts, kept.responses, kept.references, turns)
    contexts = context_numbers(kept)
    return Examples(**vars(inputs), scores=scores[rows], sets=sets[rows], contexts=contexts, rows=rows, names=names)


def on_scale(ratings: Ratings, quality: str, sets: Ints, many: int) -> Floats:
    """Values on the scale 1 to 5, by the stated scale (which is that of `overall`) or by the extremes of their set."""
    values = ratings.values[quality]
    low, high = ratings.scales.T.copy() if quality == OVERALL else np.full((2, len(values)), np.nan)
    for number in range(many):
        rows = sets == number
        if np.isnan(low[rows]).any() and not np.isnan(values[rows]).all():
            low[rows], high[rows] = np.nanmin(values[rows]), np.nanmax(values[rows])
    span = np.where(high > low, high - low, 1.0)
    on_scale: Floats = LOWEST + (HIGHEST - LOWEST) * (values - low) / span
    return on_scale


def context_numbers(ratings: Ratings) -> Ints:
    """A number for each context, equal for equal last turns but for case, blanks and punctuation.

    Sets cut the same dialogue at different lengths, so the last turn decides; rows without one stand alone.
    """
    seen: dict[str, int] = {}
    numbers: Ints = np.empty(len(ratings), np.int64)
    for row, (context, dialogue) in enumerate(zip(ratings.contexts, ratings.dialogues, strict=True)):
        last = _NO_WORD.sub("", context[-1].lower()) if context else ""
        numbers[row] = seen.setdefault(last or f"\0{dialogue}", len(seen))
    return numbers
