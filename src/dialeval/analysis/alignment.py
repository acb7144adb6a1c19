"""Alignment of two systems: which of their rows answer the same thing, and the design of the comparison that follows.

A unit is a dialogue, or a single row where rows are not part of dialogues. Units of two systems are matched by the
first of these that both systems have:

1. dialogue ids (for several trials of a task, the id of the task);
2. prompts: all user turns of the dialogue, whatever the systems replied in between (`text.row_digests`);
3. references;
4. position, where neither system has any of these and both have the same numbers of rows.

A key that occurs several times is matched in order if it occurs equally often in both systems, and not at all
otherwise. Dialogues without an id are matched by the next of these. Rows without an id and with different prompts are
never matched; a shared opening alone matches no dialogues.

Ids identify nothing if most dialogues with the same id begin with different user turns: such ids count the dialogues of
each log, unless they are the variables of a test. Ids of tasks with trials identify them, since simulated users speak
freely. Where ids match less than half of the units, prompts are used if they match at least half.

The design is

- `paired`: every unit of both systems is matched;
- `common`: paired on the units in common, at least half of the units and of the rows of each system;
- `openings`, on request only: paired on the rows before the user turns of two dialogues differ;
- `unpaired`: the systems are independent samples.

The request `ids` pairs dialogues with the same id, whatever their users said.

Within matched dialogues rows are compared one by one if all of them have the same numbers of turns; otherwise dialogues
are compared as wholes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from msgspec.structs import replace

from dialeval.analysis.values import NO_DIALOGUES, cut, find_better, require_table
from dialeval.core.arrays import Floats, Ints, offsets_of, ranges, row_numbers
from dialeval.core.display import list_some
from dialeval.core.errors import SettingError
from dialeval.core.fold import Level
from dialeval.core.result import Result
from dialeval.core.rowtable import PROMPT, REFERENCE, TRIALS, RowTable
from dialeval.core.run_schema import Record
from dialeval.text.row_digests import add_selected

DesignName: TypeAlias = Literal["paired", "common", "openings", "ids", "unpaired"]
"""What can be asked for; `ids` is then paired or common."""
DESIGNS: tuple[DesignName, ...] = get_args(DesignName)
Key: TypeAlias = Literal["ids", "prompts", "references", "position"]

LEAST_COMMON = 0.5
"""The fraction of the units and rows of each system that must be in common for a paired comparison by default."""
_MOST_LISTED = 5
"""Units outside of a comparison that are named before the rest is counted."""
_WORDS: dict[Key, str] = {"ids": "id", "prompts": "prompt", "references": "reference", "position": "position"}


NO_UNITS: Ints = np.zeros(0, np.int64)

OVER_LINES = "Statistics are over lines, as if independent; `score --dialogues` names dialogues."


class Design(Record, frozen=True):
    """The relation of the units of a system to those of the baseline."""

    name: DesignName
    unit: str
    """What a unit is: `dialogues`, `rows`, or `lines` of a text file."""
    baseline_units: int
    system_units: int
    common: int = 0
    """Units in common; of a paired comparison all that are compared."""
    by: Key | None = None
    """What units were matched by; None where they were not."""
    whole: bool = False
    """Whether dialogues are compared as wholes, since their numbers of turns differ."""
    baseline_only: tuple[str, ...] = ()
    """Units that only the baseline has."""
    system_only: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader should know about the units, in sentences."""
    rows: tuple[int, int] = (0, 0)
    """Rows of the baseline and of the system that were read."""
    compared: tuple[int, int] = (0, 0)
    """Rows of them that are compared."""

    @property
    def clusters(self) -> int:
        """The number of dialogues or rows that the comparison is made of."""
        return self.baseline_units + self.system_units if self.name == "unpaired" else self.common

    @property
    def compares_few(self) -> bool:
        """Whether less than half of the rows of either system are compared."""
        return any(compared < LEAST_COMMON * rows for compared, rows in zip(self.compared, self.rows, strict=True))

    def describe(self, baseline: str, system: str) -> str:
        """Return the design in one sentence."""
        units = self.unit if self.common != 1 else self.unit.removesuffix("s")
        by, sizes = "" if self.by is None else _WORDS[self.by], f"{self.baseline_units:,} and {self.system_units:,}"
        has_rows = self.unit == "dialogues" and any(self.rows)
        if self.name == "paired":
            how = "" if self.by is None else ", matched by " + by
            counts = " and ".join(f"{count:,}" for count in dict.fromkeys(self.rows))
            of = f" ({counts} {'row' if set(self.rows) == {1} else 'rows'})" if has_rows else ""
            return f"Paired design: the systems have the same {self.common:,} {units}{of}{how}."
        if self.name == "unpaired":
            own, other = (f" ({count:,} {'row' if count == 1 else 'rows'})" if has_rows else "" for count in self.rows)
            logs = (
                f"{self.baseline_units:,} {self.unit}{own} of {baseline} and {self.system_units:,}{other} of {system}"
            )
            why = f"; {self.common:,} {units} in common (--design common pairs these alone)" if self.common else ""
            return f"Unpaired design: {logs} are compared as independent samples{why}."
        compared = f"{self.compared[0]:,} of {self.rows[0]:,} rows and {self.compared[1]:,} of {self.rows[1]:,}"
        if self.name == "openings":
            left_out = sum(self.rows) - sum(self.compared)
            on = f"the common openings of {self.common:,} {units} (of {sizes}; {compared}; {left_out:,} rows left out)"
            return f"Paired design on {on}, matched by {by}."
        only = "".join(
            f"; only in {name}: {list_some(names, _MOST_LISTED)}"
            for name, names in ((baseline, self.baseline_only), (system, self.system_only))
            if names
        )
        of = f"{sizes}; {compared}" if has_rows else sizes
        return f"Paired design on the {self.common:,} {units} in common (of {of}), matched by {by}{only}."


@dataclass(frozen=True)
class Alignment:
    """Two systems with their matched rows in the same order, or all their rows in an unpaired design."""

    design: Design
    left: Result
    right: Result
    changed: bool = False
    """Whether the results hold other rows, or another order of rows, than the systems."""
    matched: tuple[Ints, Ints] = (NO_UNITS, NO_UNITS)
    """The numbers of the matched dialogues of both systems, in the same order; none in an unpaired design."""

    @property
    def by_row(self) -> bool:
        """Whether row i of one system is paired with row i of the other."""
        return self.design.name != "unpaired" and not self.design.whole


class _Match(NamedTuple):
    """Matched dialogues of both sides, and how many rows of each are matched."""

    left: Ints
    right: Ints
    left_rows: Ints
    right_rows: Ints

    @property
    def sides(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Dialogues and rows of each side."""
        return (self.left, self.left_rows), (self.right, self.right_rows)


def align(left: Result, right: Result, design: DesignName | None = None) -> Alignment:
    """Match the rows of a system with those of the baseline; SettingError where the asked design is impossible."""
    if design is not None and design not in DESIGNS:
        raise SettingError(f"the designs are {', '.join(DESIGNS)}, not {design!r}")
    if left.table is None or right.table is None:
        raise SettingError(f"{NO_DIALOGUES}; score the responses again and save the per-row scores")
    tables = left.table, right.table
    units, rows = _count_units(*tables), (len(left.table), len(right.table))
    match, by, notes = _match_tables(*tables, design)
    common, matched = len(match.left), (int(match.left_rows.sum()), int(match.right_rows.sum()))
    complete = units == (common, len(match.right)) and matched == rows
    is_alone = units == rows and not any(table.dialogues is not None for table in tables)
    unit = "dialogues" if not is_alone else "lines" if are_lines([left, right]) else "rows"
    notes += [OVER_LINES] if unit == "lines" else []
    plain = Design("unpaired", unit, *units, common, by, rows=rows, compared=matched, notes=tuple(notes))
    few = not complete and (common < max(1, LEAST_COMMON * max(units)) or plain.compares_few)
    if design == "unpaired" or (design is None and few):
        return Alignment(replace(plain, compared=rows), left, right)
    if (design == "paired" and not complete) or not common:
        instead = "common or unpaired" if common else "unpaired"
        raise SettingError(
            f"the systems do not have the same units: {_describe_overlap(plain)}; use --design {instead}"
        )
    only = [_name_others(table, own) for table, (own, _) in zip(tables, match.sides, strict=True)]
    found = replace(
        plain,
        name="paired" if complete else "openings" if design == "openings" else "common",
        whole=not _has_same_turns(*tables, match),
        baseline_only=only[0],
        system_only=only[1],
    )
    moved = not complete or not np.array_equal(match.left, match.right)
    if moved:
        left, right = (
            cut(side, ranges(require_table(side).offsets[own], taken), intervals=False)
            for side, (own, taken) in zip((left, right), match.sides, strict=True)
        )
    notes += _describe_rows(found, require_table(left), require_table(right))
    return Alignment(replace(found, notes=tuple(notes)), left, right, moved, (match.left, match.right))


def are_lines(results: Iterable[Result]) -> bool:
    """Return whether the rows of all systems are lines of text files whose dialogues are not known."""
    known = [(PurePath(result.source or "").name, result.table) for result in results]
    return bool(known) and all(".txt" in name and rows is not None and rows.dialogues is None for name, rows in known)


def count_different(left: RowTable, right: RowTable, name: str) -> int | None:
    """Count the rows whose digests differ in two tables of paired rows; None where the tables do not say."""
    if name not in left.digests or name not in right.digests or len(left) != len(right):
        return None
    return int(np.count_nonzero(left.digests[name] != right.digests[name]))


def _describe_overlap(design: Design) -> str:
    sizes = f"{design.baseline_units:,} and {design.system_units:,} {design.unit}"
    if design.by is None:
        return f"they have neither ids nor prompts in common, and different numbers of rows ({sizes})"
    return f"{design.common:,} of {sizes} are in common by {_WORDS[design.by]}"


def _name_others(table: RowTable, matched: Ints) -> tuple[str, ...]:
    """Name the units that were not matched."""
    ids, units = table.read_ids(), len(table.offsets) - 1
    others = np.flatnonzero(np.bincount(matched, minlength=units) == 0).tolist()
    return tuple(ids[at] or (f"dialogue {at + 1}" if len(table) > units else f"row {at + 1}") for at in others)


def _describe_rows(design: Design, left: RowTable, right: RowTable) -> list[str]:
    """Describe how the matched rows differ."""
    if design.whole:
        different = int(np.count_nonzero(np.diff(left.offsets) != np.diff(right.offsets)))
        some = f"{different:,} of {design.common:,} dialogues have different numbers of turns"
        return [f"{some if different else 'Turns are numbered differently'}, so dialogues are compared as wholes."]
    others = count_different(left, right, PROMPT) if design.by == "ids" else 0
    return [f"User turns differ in {others:,} of {len(left):,} rows with the same id."] if others else []


def _has_same_turns(left: RowTable, right: RowTable, match: _Match) -> bool:
    """Return whether matched dialogues have the same turns."""
    if not np.array_equal(match.left_rows, match.right_rows):
        return False
    if left.turns is None or right.turns is None:
        return True
    first, second = (
        turns[ranges(table.offsets[own], rows)]
        for table, turns, (own, rows) in zip((left, right), (left.turns, right.turns), match.sides, strict=True)
    )
    return np.array_equal(first, second)


def _count_units(left: RowTable, right: RowTable) -> tuple[int, int]:
    return len(left.offsets) - 1, len(right.offsets) - 1


def _match_tables(left: RowTable, right: RowTable, design: DesignName | None) -> tuple[_Match, Key | None, list[str]]:
    """Match dialogues by the first kind of key that both tables have and that identifies them."""
    tables, notes = (left, right), list[str]()
    ids = [table.read_ids() for table in tables]
    kinds: dict[Key, str] = {"prompts": PROMPT, "references": REFERENCE}
    kind = next((kind for kind, name in kinds.items() if all(name in table.digests for table in tables)), None)
    keys: list[list[Hashable | None]] = [[None] * len(own) for own in ids]
    if kind is not None:
        keys = [_join_keys(table, kinds[kind]) for table in tables]
    match = None if kind is None else _match_keys(left, right, *keys)
    if all(map(any, ids)):
        named = [[name or key for name, key in zip(*both, strict=True)] for both in zip(ids, keys, strict=True)]
        by_id = _match_keys(left, right, *named)
        least = LEAST_COMMON * max(_count_units(left, right))
        different = 0 if design == "ids" else _count_other_openings(left, right, by_id)
        if different > LEAST_COMMON * len(by_id.left):
            what = f"In {different:,} of {len(by_id.left):,} dialogues with the same id users begin differently"
            notes.append(f"{what}, so ids are not used to match dialogues (--design ids does).")
        elif design == "ids" or kind != "prompts" or match is None or not len(by_id.left) < least <= len(match.left):
            match, kind = by_id, "ids"
    elif design == "ids":
        raise SettingError("not both systems have dialogue ids; use --design common or unpaired")
    if design == "openings":
        if match is None or any(PROMPT not in table.digests for table in tables):
            raise SettingError("not both systems have user turns (contexts), so openings cannot be compared")
        return _cut_openings(left, right, match, kind == "prompts"), kind, notes
    if match is not None:
        return match, kind, notes
    here = np.arange(len(left.offsets) - 1 if np.array_equal(left.offsets, right.offsets) and not notes else 0)
    sizes = np.diff(left.offsets)[: len(here)]
    return _Match(here, here, sizes, sizes), "position" if len(here) else None, notes


def _join_keys(table: RowTable, name: str) -> list[Hashable | None]:
    """Return a key for each dialogue: all its references, or all its user turns, however many replies each of them got.

    Contexts may hold the whole dialogue so far or a part of it, so that the prompts of all rows are the key.
    """
    digests = table.digests[name]
    selected = digests != 0
    if name == PROMPT:
        selected[1:] &= (digests[1:] != digests[:-1]) | (np.diff(table.clusters) > 0)
    return [key or None for key in add_selected(table.offsets[:-1], table.offsets[1:], digests, selected).tolist()]


def _match_keys(
    left: RowTable, right: RowTable, left_keys: Sequence[Hashable | None], right_keys: Sequence[Hashable | None]
) -> _Match:
    """Match dialogues with equal keys, in order where a key occurs equally often in both tables."""
    if left_keys == right_keys and None not in left_keys:
        here = np.arange(len(left_keys))
        return _Match(here, here, np.diff(left.offsets), np.diff(right.offsets))
    own: dict[Hashable, list[int]] = {}
    places: dict[Hashable, list[int]] = {}
    for found, keys in ((own, left_keys), (places, right_keys)):
        for at, key in enumerate(keys):
            if key is not None:
                found.setdefault(key, []).append(at)
    pairs = sorted(
        pair
        for key, here in own.items()
        if len(here) == len(places.get(key, ()))
        for pair in zip(here, places[key], strict=True)
    )
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    return _Match(first, second, np.diff(left.offsets)[first], np.diff(right.offsets)[second])


def _cut_openings(left: RowTable, right: RowTable, match: _Match, more: bool) -> _Match:
    """Cut matched dialogues where their prompts differ first; `more`: match others by their first user turn alone."""
    pairs = list(zip(match.left.tolist(), match.right.tolist(), strict=True))
    if more:
        rest = [np.setdiff1d(np.arange(u), own) for u, own in zip(_count_units(left, right), match[:2], strict=True)]
        firsts = [_find_first_prompts(table)[own] for table, own in zip((left, right), rest, strict=True)]
        keys = [[int(key) or None for key in each.tolist()] for each in firsts]
        units = [RowTable(np.arange(len(own) + 1)) for own in rest]
        found = _match_keys(units[0], units[1], keys[0], keys[1])
        pairs = sorted([*pairs, *zip(rest[0][found.left].tolist(), rest[1][found.right].tolist(), strict=True)])
    lengths = [_count_equal(left, one, right, other) for one, other in pairs]
    cut_pairs = [(*pair, length, length) for pair, length in zip(pairs, lengths, strict=True) if length]
    return _Match(*np.array(cut_pairs, np.int64).reshape(-1, 4).T)


def _find_first_prompts(table: RowTable) -> Ints:
    """Return the first prompt digest of each dialogue that is not 0."""
    digests = table.digests[PROMPT].view(np.int64)
    there = np.append(np.flatnonzero(digests), len(digests))
    places = there[np.searchsorted(there, table.offsets[:-1])]
    return np.where(places < table.offsets[1:], np.append(digests, 0)[places], 0)


def _count_equal(left: RowTable, one: int, right: RowTable, other: int) -> int:
    """Count the rows at the start of two dialogues that have the same prompts."""
    first, second = (
        table.digests[PROMPT][table.offsets[at] : table.offsets[at + 1]] for table, at in ((left, one), (right, other))
    )
    shared = min(len(first), len(second))
    different = np.flatnonzero(first[:shared] != second[:shared])
    return int(different[0]) if len(different) else shared


def _count_other_openings(left: RowTable, right: RowTable, match: _Match) -> int:
    """Count the matched dialogues that begin with other user turns; 0 where that says nothing.

    It says nothing of tasks with trials, whose simulated users speak freely; and nothing where each id is a JSON object
    of the variables of a test, from which each prompt makes other turns.
    """
    if any(TRIALS in table.digests or PROMPT not in table.digests for table in (left, right)):
        return 0
    ids = left.read_ids()
    if all((ids[at] or "").startswith('{"') for at in match.left.tolist()):
        return 0
    first, second = _find_first_prompts(left)[match.left], _find_first_prompts(right)[match.right]
    return int(np.count_nonzero((first != second) & (first != 0) & (second != 0)))


# Aligned dialogues: which dialogues of several systems belong together, and what each gained or lost.
#
#     aligned = align_dialogues(run.systems)
#     aligned.differences("v2", "judge")          a value per dialogue, NaN where one of the two systems has none
#
# One model for what shows or samples dialogues: the report, samples to rate, and the messages of failed gates. Every
# dialogue of every system is in it once: next to the dialogue of the baseline that it is matched with (`align`), else
# alone. Within matched dialogues rows are paired one by one, unless the design compares dialogues as wholes.

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
