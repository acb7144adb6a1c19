"""Aligned dialogues: which dialogues of several systems belong together, and what each gained or lost.

    aligned = align_dialogues(run.systems)
    aligned.differences("v2", "judge")          a value per dialogue, NaN where one of the two systems has none

One model for whatever shows or samples dialogues: the report, samples to rate, and the messages of failed gates. Every
dialogue of every system is in it once: next to the dialogue of the baseline that it is matched with (`alignment`), else
alone. Within matched dialogues rows are paired one by one, unless the design compares dialogues as wholes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dialeval.analysis.alignment import Design, DesignName, align
from dialeval.analysis.values import find_better, require_table
from dialeval.core.arrays import Floats, Ints, offsets_of, ranges, row_numbers
from dialeval.core.errors import SettingError
from dialeval.core.fold import Level
from dialeval.core.result import Result

NONE = -1
"""The place of a dialogue in a system that does not have it."""


@dataclass(frozen=True)
class AlignedDialogues:
    """The dialogues of some systems, the baseline first."""

    results: Mapping[str, Result]
    places: Ints
    """A line per dialogue, a column per system: its number among the dialogues of the system, `NONE` without one."""
    designs: Mapping[str, Design | None]
    """By system the relation to the baseline; None where the two cannot be aligned."""

    @property
    def systems(self) -> Sequence[str]:
        """The names of the systems."""
        return list(self.results)

    def pairs_rows(self, system: str) -> bool:
        """Return whether rows of matched dialogues are paired one by one."""
        design = self.designs.get(system)
        return design is not None and design.name != "unpaired" and not design.whole

    def find_rows(self, system: str, dialogues: Ints | slice = slice(None)) -> tuple[Ints, Ints]:
        """Return the rows of a system in some dialogues, and where those of each dialogue begin and end among them."""
        offsets = require_table(self.results[system]).offsets
        places = self.places[dialogues, self.systems.index(system)]
        sizes = np.where(places == NONE, 0, offsets[places + 1] - offsets[places])
        return ranges(offsets[places], sizes), offsets_of(sizes)

    def list_values(self, system: str, key: str) -> Floats:
        """Return the value of each dialogue under a metric, the mean of its rows; NaN where it has none."""
        result, places = self.results[system], self.places[:, self.systems.index(system)]
        items = result[key].scores if key in result else None
        if items is None:
            return np.full(len(places), np.nan)
        if result[key].level is Level.DIALOGUE:
            return np.where(places == NONE, np.nan, items[places])
        rows, offsets = self.find_rows(system)
        return _average(items[rows], offsets)[0]

    def differences(self, system: str, key: str) -> Floats:
        """Return the difference of each dialogue to the baseline's, over the rows that both have a value for."""
        return self.measure(system, key)[0]

    def measure(self, system: str, key: str) -> tuple[Floats, Ints]:
        """Return the differences to the baseline, and the number of rows behind each."""
        first = self.systems[0]
        differences = self.list_values(system, key) - self.list_values(first, key)
        counts = np.isfinite(differences).astype(np.int64)
        sides = [self.results[name][key] for name in (first, system) if key in self.results[name]]
        before, after = [side.scores for side in sides] if len(sides) == 2 else (None, None)
        if before is None or after is None or not self.pairs_rows(system) or sides[0].level is Level.DIALOGUE:
            return differences, counts
        dialogues = self.find_common(system)
        (rows, offsets), (others, _) = (self.find_rows(name, dialogues) for name in (first, system))
        differences[dialogues], counts[dialogues] = _average(after[others] - before[rows], offsets)
        return differences, counts

    def find_common(self, system: str) -> Ints:
        """Return the dialogues that both a system and the baseline have."""
        return np.flatnonzero((self.places[:, [0, self.systems.index(system)]] != NONE).all(axis=1))

    def order_by_loss(self, system: str, key: str) -> Ints:
        """Return the dialogues that both systems have, the largest loss of a system first."""
        sign = -1.0 if find_better(self.results, key) == "lower" else 1.0
        gains = sign * self.differences(system, key)
        order = np.argsort(gains, kind="stable")
        return order[np.isfinite(gains[order])]

    def order_turns(self, system: str, key: str, dialogue: int) -> Ints:
        """Return the turns of a dialogue with the largest loss first; none where turns are not paired or scored."""
        first, here = self.systems[0], np.array([dialogue])
        rows = [self.find_rows(name, here)[0] for name in (first, system)]
        scores = [self.results[name][key].scores for name in (first, system)]
        whole = self.results[system][key].level is Level.DIALOGUE or not self.pairs_rows(system)
        if whole or scores[0] is None or scores[1] is None:
            return np.zeros(0, np.int64)
        sign = -1.0 if find_better(self.results, key) == "lower" else 1.0
        gains = sign * (scores[1][rows[1]] - scores[0][rows[0]])
        order = np.argsort(gains, kind="stable")
        return order[np.isfinite(gains[order])]

    def name_dialogue(self, dialogue: int) -> str:
        """Return the number of a dialogue and its name, if it has one."""
        column = int(np.argmax(self.places[dialogue] != NONE))
        table, place = require_table(list(self.results.values())[column]), int(self.places[dialogue, column])
        kind = "row" if len(table) == len(table.offsets) - 1 else "dialogue"
        name = table.read_ids()[place]
        return f"{kind} {place + 1}" + (f" ({name})" if name else "")

    def number_dialogues(self) -> dict[str, Ints]:
        """Return by system the number of each of its dialogues, the same for dialogues that belong together."""
        numbers = {}
        for at, (name, result) in enumerate(self.results.items()):
            numbers[name] = np.zeros(len(require_table(result).offsets) - 1, np.int64)
            there = np.flatnonzero(self.places[:, at] != NONE)
            numbers[name][self.places[there, at]] = there
        return numbers

    def number_rows(self) -> dict[str, Ints]:
        """Return by system a number of each of its rows, the same for rows that are paired."""
        first, most = self.systems[0], 0
        numbers: dict[str, Ints] = {}
        for name, result in self.results.items():
            numbers[name] = np.arange(most, most + len(require_table(result)))
            if self.pairs_rows(name):
                both = self.find_common(name)
                numbers[name][self.find_rows(name, both)[0]] = numbers[first][self.find_rows(first, both)[0]]
            most += len(numbers[name])
        flat = np.unique(np.concatenate(list(numbers.values())), return_inverse=True)[1]
        ends = np.cumsum([len(column) for column in numbers.values()])[:-1]
        return dict(zip(numbers, np.split(flat, ends), strict=True))


def _average(values: Floats, offsets: Ints) -> tuple[Floats, Ints]:
    """Return the mean of the known values of each dialogue, NaN without any, and how many there are."""
    known, dialogues, number = np.isfinite(values), row_numbers(offsets), len(offsets) - 1
    counts = np.bincount(dialogues[known], minlength=number)
    sums = np.bincount(dialogues[known], values[known], number)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), counts


def align_dialogues(
    results: Mapping[str, Result], baseline: str | None = None, design: DesignName | None = None
) -> AlignedDialogues:
    """Match the dialogues of each system with those of the baseline, the first system unless another is named.

    `design`: that of the comparison, if one was asked for.

    Raises:
        SettingError: A system does not know its rows.
    """
    first = next(iter(results)) if baseline is None else baseline
    known = {first: results[first], **{name: result for name, result in results.items() if name != first}}
    sizes = {name: len(require_table(result).offsets) - 1 for name, result in known.items()}
    places = np.full((sizes[first], len(known)), NONE, np.int64)
    places[:, 0] = np.arange(sizes[first])
    designs: dict[str, Design | None] = {}
    for at, name in enumerate(known):
        if name == first:
            continue
        matched = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        try:
            alignment = align(known[first], known[name], design)
            designs[name], matched = alignment.design, alignment.matched
        except SettingError:
            designs[name] = None
        places[matched[0], at] = matched[1]
        others = np.setdiff1d(np.arange(sizes[name]), matched[1])
        alone = np.full((len(others), len(known)), NONE, np.int64)
        alone[:, at] = others
        places = np.concatenate((places, alone))
    return AlignedDialogues(known, places, designs)
