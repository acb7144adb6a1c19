"""Examples: rated responses as vectors, ready to fit a judge or to be judged.

Scores are brought to the scale 1 to 5. Rows without a score, and rows without both context and reference, are left out.
A row's context is what it must not share with another side of a split: `without` takes out whatever has a context in
common with some other examples, also across data sets that draw on the same dialogues.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.data.rows.ratings import OVERALL, Ratings
from dialeval.metrics.learned.judge import context_vectors, reference_vectors
from dialeval.metrics.learned.weights import HIGHEST, LOWEST, Mask
from dialeval.resources.encoder_files import Singles
from dialeval.resources.sentence_vectors import SentenceVectors

TURNS = 3
_NO_WORD = re.compile(r"\W+")


@dataclass(frozen=True, eq=False)
class Examples:
    """Rated rows as vectors; every array has one row per response."""

    context: Singles
    reference: Singles
    response: Singles
    has_context: Mask
    has_reference: Mask
    scores: Floats
    """On the scale 1 to 5."""
    sets: Ints
    """The data set of each row, as its place in `names`."""
    names: Sequence[str]
    contexts: Ints
    """Equal where two rows have the same context, whatever set they are of."""
    rows: Ints
    """The row of the ratings that each example comes from."""

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, chosen: Ints | Mask) -> Examples:
        """Some of the rows."""
        return Examples(
            self.context[chosen],
            self.reference[chosen],
            self.response[chosen],
            self.has_context[chosen],
            self.has_reference[chosen],
            self.scores[chosen],
            self.sets[chosen],
            self.names,
            self.contexts[chosen],
            self.rows[chosen],
        )

    def of_sets(self, names: Sequence[str]) -> Examples:
        """The rows of some data sets."""
        return self.take(np.isin(self.sets, [self.names.index(name) for name in names]))

    def without(self, others: Examples) -> Examples:
        """The rows whose context occurs in none of the other examples."""
        return self.take(~np.isin(self.contexts, others.contexts))


def examples_of(
    ratings: Ratings, vectors: SentenceVectors, turns: int = TURNS, quality: str = OVERALL, scaled: bool = True
) -> Examples:
    """The examples in ratings; a set without a stated scale is stretched from its lowest to its highest score."""
    if quality not in ratings.values:
        raise SettingError(f"nobody rated {quality!r}; the ratings have {', '.join(ratings.values)}")
    names = list(dict.fromkeys(ratings.datasets))
    sets: Ints = np.array([names.index(name) for name in ratings.datasets], np.int64)
    scores = (
        _on_scale(ratings, ratings.values[quality], sets, len(names), quality == OVERALL)
        if scaled
        else ratings.values[quality]
    )
    there = np.array(
        [
            any(map(str.strip, c)) or any(map(str.strip, r))
            for c, r in zip(ratings.contexts, ratings.references, strict=True)
        ],
        np.bool_,
    )
    rows: Ints = np.flatnonzero(there & ~np.isnan(scores))
    if not len(rows):
        raise SettingError("no rated row has both a score and a context or a reference")
    kept = ratings.take(rows)
    response = vectors.of(kept.responses)
    context, has_context = context_vectors(vectors, kept.contexts, turns)
    reference, has_reference = reference_vectors(vectors, kept.references, response)
    return Examples(
        context,
        reference,
        response,
        has_context,
        has_reference,
        scores[rows],
        sets[rows],
        names,
        _context_numbers(kept),
        rows,
    )


def _on_scale(ratings: Ratings, values: Floats, sets: Ints, many: int, stated: bool) -> Floats:
    """Values on the scale 1 to 5, by the stated scale or else by the extremes of their set."""
    low, high = ratings.scales.T.copy() if stated else np.full((2, len(values)), np.nan)
    for each in range(many):
        mine = sets == each
        if np.isnan(low[mine]).any() and not np.isnan(values[mine]).all():
            low[mine], high[mine] = np.nanmin(values[mine]), np.nanmax(values[mine])
    span = np.where(high > low, high - low, 1.0)
    on_scale: Floats = LOWEST + (HIGHEST - LOWEST) * (values - low) / span
    return on_scale


def _context_numbers(ratings: Ratings) -> Ints:
    """A number for each context, equal for equal last turns but for case, blanks and punctuation.

    Sets cut the same dialogue at different lengths, so the last turn decides; rows without one stand alone.
    """
    seen: dict[str, int] = {}
    found: npt.NDArray[np.int64] = np.empty(len(ratings), np.int64)
    for row, (context, dialogue) in enumerate(zip(ratings.contexts, ratings.dialogues, strict=True)):
        last = _NO_WORD.sub("", context[-1].lower()) if context else ""
        found[row] = seen.setdefault(last or f"\0{dialogue}", len(seen))
    return found
