"""Checks of the rows, folded next to the metrics: a run warns of what they find.

- `DialogueIds`: dialogues whose rows are not consecutive. Confidence intervals take consecutive rows of a dialogue for
  one cluster; an id that comes back later makes a second cluster of the same dialogue. All ids are kept as sorted
  64-bit hashes: the ids themselves would take several times the space. Such a state grows with the rows, so it is cut
  by ranges of hashes.
- `text.tokenizers.UnsplitTexts`: texts that a tokenizer left whole because their script has no spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.fold import Fact
from dialeval.core.validation import InvalidError, check_array
from dialeval.engine.plan import Plan, find_tokenizer
from dialeval.text.ngrams import Hashes, hash_column
from dialeval.text.tokenizers import SPLIT_AT_SPACES, Tokenizer, UnsplitTexts, suggest_tokenizer

_MEASURED = (inputs.RESPONSE, inputs.HYPOTHESES)
"""Columns whose texts are checked: those that are measured."""

Checked = Iterable[tuple[Fact, Any]]
"""Checks of a system with their states."""


def with_checks(plan: Plan) -> Plan:
    """Return the plan with the checks behind its own details."""
    asked = dict.fromkeys((metric.subject, find_tokenizer(metric)) for metric in plan.folded)
    checks: dict[str, Fact] = {
        f"unsplit {tokenizer}": UnsplitTexts(need, tokenizer)
        for need, tokenizer in asked
        if need in _MEASURED and tokenizer in SPLIT_AT_SPACES
    }
    return replace(plan, details={**plan.details, **checks, "dialogue ids": DialogueIds()})


def warn_of_unsplit_texts(systems: Iterable[Checked]) -> Iterator[str]:
    """Yield a warning for each tokenizer that could not split some texts of the systems."""
    by_tokenizer: dict[Tokenizer, list[Any]] = {}
    for checks in systems:
        for fold, counts in checks:
            if isinstance(fold, UnsplitTexts):
                by_tokenizer.setdefault(fold.tokenizer, []).append(counts)
    for tokenizer, several in by_tokenizer.items():
        texts, unsplit, *letters = map(sum, zip(*several, strict=True))
        if unsplit:
            name = suggest_tokenizer(texts, unsplit, letters)
            yield (
                f"{tokenizer} cannot split {unsplit:,} of {texts:,} responses, whose script puts no spaces between "
                f"words: each sentence counts as one word; choose --tokenizer {name}, "
                f"tokenizer={name!r} in Python"
            )


def warn_of_split_dialogues(
    systems: Mapping[str, Checked], ids_of: Callable[[str], Iterable[Sequence[str]]]
) -> Iterator[str]:
    """Yield a warning for each system with dialogues whose rows are not consecutive.

    `ids_of` gives the ids of a system's dialogues, some at a time, where they are kept.
    """
    for system, checks in systems.items():
        for fold, state in checks:
            if isinstance(fold, DialogueIds) and (split := fold.finish(state)):
                example = split.find_name(ids_of(system))
                what = f"rows of {split.dialogues} dialogues of {system} are not consecutive"
                what += "" if example is None else f", such as those of {example!r}"
                yield f"{what}: each part counts as a dialogue, and intervals are too narrow; sort the rows by dialogue"


@dataclass(frozen=True, eq=False, slots=True)
class SeenIds:
    """The hashes of ids in ascending order, and of those that came back."""

    hashes: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    split: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    closed: int = 0
    """How many more came back, in parts that are closed."""

    @classmethod
    def from_plain(cls, hashes: Hashes, split: Hashes, closed: int) -> SeenIds:
        """Make a state from a file; InvalidError where it is none."""
        for array in (hashes, split):
            check_array(array, np.uint64, (None,))
            if (array[1:] <= array[:-1]).any():
                raise InvalidError("hashes of dialogues are out of order")
        if type(closed) is not int or closed < 0:
            raise InvalidError("no dialogues came back this often")
        return cls(hashes, split, closed)


class SplitDialogues(NamedTuple):
    """Dialogues whose rows are not consecutive."""

    dialogues: int
    example: int
    """The hash of the id of one of them."""

    def find_name(self, ids: Iterable[Sequence[str]]) -> str | None:
        """Return the id of the example, where it is among the given ones."""
        for some in ids:
            places = np.flatnonzero(hash_column(TextColumn.from_strings(some)) == np.uint64(self.example))
            if len(places):
                return some[int(places[0])]
        return None


@dataclass(frozen=True)
class DialogueIds(Fact[SeenIds, SplitDialogues | None]):
    """A search for dialogues whose rows are not consecutive."""

    grows = True

    def empty(self) -> SeenIds:
        return SeenIds()

    def gather(self, batch: Batch) -> SeenIds:
        if batch.ids is None:
            return SeenIds()
        hashes, counts = np.unique(hash_column(batch.ids), return_counts=True)
        return SeenIds(hashes, hashes[counts > 1])

    def merge(self, left: SeenIds, right: SeenIds) -> SeenIds:
        both = np.concatenate((left.hashes, right.hashes))
        both.sort(kind="stable")  # two ascending runs
        again = np.zeros(len(both), np.bool_)
        again[1:] = both[1:] == both[:-1]
        split = np.unique(np.concatenate((left.split, right.split, both[again])))
        return SeenIds(both[~again], split, left.closed + right.closed)

    def split_state(self, state: SeenIds, parts: int) -> list[SeenIds]:
        edges = np.array([(number << 64) // parts for number in range(1, parts)], np.uint64)
        hashes, split = (np.split(every, np.searchsorted(every, edges)) for every in (state.hashes, state.split))
        return [SeenIds(*part) for part in zip(hashes, split, strict=True)]

    def close_part(self, state: SeenIds) -> SeenIds:
        """Return how many came back; one of them stays as an example."""
        return SeenIds(split=state.split[:1], closed=state.closed + len(state.split[1:]))

    def finish(self, state: SeenIds) -> SplitDialogues | None:
        return SplitDialogues(state.closed + len(state.split), int(state.split[0])) if len(state.split) else None
