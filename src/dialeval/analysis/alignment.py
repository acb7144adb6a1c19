"""Alignment of two systems: which of their rows answer the same thing, and the design of the comparison that follows.

A unit is a dialogue, or a single row where rows are not part of dialogues. Units of two systems are matched by the
first of these that both systems have:

1. dialogue ids (for several trials of a task, the id of the task);
2. prompts: the user turns before the responses, whatever the systems replied in between (`text.row_digests`);
3. references;
4. position, where neither system has any of these and both have the same numbers of rows.

A key that occurs several times is matched in order if it occurs equally often in both systems, and not at all
otherwise. Dialogues without an id are matched by their prompts. Where only the first user turns of two dialogues
without ids agree, only the rows before the first difference are matched. Rows without an id and with different prompts
are never matched.

Ids that merely count the dialogues of a log (1, 2, 3, ...) do not identify anything if most of their first prompts
differ, unless they are ids of tasks with trials, in which simulated users speak freely.

The design is

- `paired`: every unit of both systems is matched;
- `common`: paired on the units in common, at least half of those of the smaller system;
- `unpaired`: the systems are independent samples.

Within matched dialogues rows are compared one by one if all of them have the same numbers of turns; otherwise dialogues
are compared as wholes.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from msgspec.structs import replace

from dialeval.analysis.values import NO_DIALOGUES, cut, require_table
from dialeval.core.arrays import Ints, offsets_of, ranges
from dialeval.core.display import list_some
from dialeval.core.errors import SettingError
from dialeval.core.result import Result
from dialeval.core.rowtable import PROMPT, REFERENCE, TRIALS, RowTable
from dialeval.core.run_schema import Record

DesignName: TypeAlias = Literal["paired", "common", "unpaired"]
DESIGNS: tuple[DesignName, ...] = get_args(DesignName)
Key: TypeAlias = Literal["ids", "prompts", "references", "position"]

LEAST_COMMON = 0.5
"""The fraction of the smaller system's units that must be in common for a paired comparison by default."""
_MOST_LISTED = 5
"""Units outside of a comparison that are named before the rest is counted."""
_PLACE_NAME = re.compile(r"(row|line) \d+")
_WORDS: dict[Key, str] = {"ids": "id", "prompts": "prompt", "references": "reference", "position": "position"}


class Design(Record, frozen=True):
    """The relation of the units of a system to those of the baseline."""

    name: DesignName
    unit: str
    """What a unit is: `dialogues` or `rows`."""
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

    @property
    def clusters(self) -> int:
        """The number of dialogues or rows that the comparison is made of."""
        return self.baseline_units + self.system_units if self.name == "unpaired" else self.common

    def describe(self, baseline: str, system: str) -> str:
        """Return the design in one sentence."""
        units = self.unit if self.common != 1 else self.unit.removesuffix("s")
        if self.name == "paired":
            how = "" if self.by is None else ", matched by " + _WORDS[self.by]
            return f"Paired design: the systems have the same {self.common:,} {units}{how}."
        if self.name == "common":
            by = "" if self.by is None else _WORDS[self.by]
            only = "; ".join(
                f"only in {name}: {list_some(names, _MOST_LISTED)}"
                for name, names in ((baseline, self.baseline_only), (system, self.system_only))
                if names
            )
            sizes = f"{self.baseline_units:,} and {self.system_units:,}"
            return f"Paired design on the {self.common:,} {units} in common (of {sizes}), matched by {by}; {only}."
        sizes = f"{self.baseline_units:,} {self.unit} of {baseline} and {self.system_units:,} of {system}"
        why = f"; {self.common:,} {'is' if self.common == 1 else 'are'} in common" if self.common else ""
        return f"Unpaired design: {sizes} are compared as independent samples{why}."


@dataclass(frozen=True)
class Alignment:
    """Two systems with their matched rows in the same order, or all their rows in an unpaired design."""

    design: Design
    left: Result
    right: Result
    changed: bool = False
    """Whether the results hold other rows, or another order of rows, than the systems."""

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
    if left.rows is None or right.rows is None:
        raise SettingError(f"{NO_DIALOGUES}; score the responses again and save the per-row scores")
    tables = left.rows, right.rows
    units = len(left.rows.offsets) - 1, len(right.rows.offsets) - 1
    match, by, notes = _match_tables(*tables)
    common, matched = len(match.left), (int(match.left_rows.sum()), int(match.right_rows.sum()))
    complete = units == (common, len(match.right)) and matched == (len(left.rows), len(right.rows))
    is_alone = units == (len(left.rows), len(right.rows)) and not any(table.dialogues is not None for table in tables)
    plain = Design("unpaired", "rows" if is_alone else "dialogues", *units, common, by, notes=tuple(notes))
    few = not complete and common < max(1, LEAST_COMMON * min(units))
    if design == "unpaired" or (design is None and few):
        return Alignment(plain, left, right)
    if (design == "paired" and not complete) or not common:
        instead = "common or unpaired" if common else "unpaired"
        raise SettingError(
            f"the systems do not have the same units: {_describe_overlap(plain)}; use --design {instead}"
        )
    only = [_name_others(table, *side) for table, side in zip(tables, match.sides, strict=True)]
    found = replace(
        plain,
        name="paired" if complete else "common",
        whole=not _has_same_turns(*tables, match),
        baseline_only=only[0],
        system_only=only[1],
    )
    moved = not complete or not np.array_equal(match.left, match.right)
    if moved:
        left, right = (
            cut(side, ranges(require_table(side).offsets[own], rows), intervals=False)
            for side, (own, rows) in zip((left, right), match.sides, strict=True)
        )
    notes += _describe_rows(found, require_table(left), require_table(right))
    return Alignment(replace(found, notes=tuple(notes)), left, right, moved)


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


def _name_others(table: RowTable, matched: Ints, rows: Ints) -> tuple[str, ...]:
    """Name the units that were not matched, and those of which only the first rows were."""
    ids = _read_ids(table)
    sizes = np.diff(table.offsets)
    others = np.setdiff1d(np.arange(len(sizes)), matched).tolist()
    names = [ids[at] or (f"dialogue {at + 1}" if len(table) > len(sizes) else f"row {at + 1}") for at in others]
    part = matched[rows < sizes[matched]].tolist()
    return (*names, *(f"turns of {ids[at] or f'dialogue {at + 1}'} after user turns differ" for at in part))


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


def _match_tables(left: RowTable, right: RowTable) -> tuple[_Match, Key | None, list[str]]:
    """Match dialogues by the first kind of key that both tables have."""
    ids = [_read_ids(table) for table in (left, right)]
    notes: list[str] = []
    if all(map(any, ids)):
        prompts = [_join_keys(table, PROMPT) for table in (left, right)]
        keys = [[name or prompt for name, prompt in zip(*both, strict=True)] for both in zip(ids, prompts, strict=True)]
        match = _match_keys(left, right, *keys)
        if not _are_counters(left, right, ids, match):
            return match, "ids", notes
        notes.append("The dialogue ids only count the dialogues of each log, and their prompts differ.")
    kinds: tuple[tuple[Key, str], ...] = (("prompts", PROMPT), ("references", REFERENCE))
    for kind, name in kinds:
        if name in left.digests and name in right.digests:
            match = _match_keys(left, right, _join_keys(left, name), _join_keys(right, name))
            return _add_beginnings(left, right, match) if name == PROMPT else match, kind, notes
    here = np.arange(len(left.offsets) - 1 if np.array_equal(left.offsets, right.offsets) and not notes else 0)
    sizes = np.diff(left.offsets)[: len(here)]
    return _Match(here, here, sizes, sizes), "position" if len(here) else None, notes


def _read_ids(table: RowTable) -> list[str | None]:
    """Return the id of each dialogue; a name that only says where a row is in its file is none."""
    names = table.dialogues or [None] * (len(table.offsets) - 1)
    return [None if not name or (name[0] in "rl" and _PLACE_NAME.fullmatch(name)) else name for name in names]


def _join_keys(table: RowTable, name: str) -> list[Hashable | None]:
    """Return a key for each dialogue: of prompts that of its last row, which has all user turns; else of all rows."""
    if name not in table.digests:
        return [None] * (len(table.offsets) - 1)
    digests = table.digests[name]
    if name == PROMPT or len(table) == len(table.offsets) - 1:
        return [last or None for last in digests[table.offsets[1:] - 1].tolist()]
    parts = np.split(digests, table.offsets[1:-1])
    return [part.tobytes() if part.any() else None for part in parts]


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


def _add_beginnings(left: RowTable, right: RowTable, match: _Match) -> _Match:
    """Match the first rows of further dialogues whose first user turns agree, as far as their prompts agree."""
    tables, matched = (left, right), (match.left, match.right)
    rest = [np.setdiff1d(np.arange(len(t.offsets) - 1), own) for t, own in zip(tables, matched, strict=True)]
    if not all(map(len, rest)) or len(left) == len(left.offsets) - 1 or len(right) == len(right.offsets) - 1:
        return match
    firsts = [_find_first_prompts(table)[own] for table, own in zip(tables, rest, strict=True)]
    keys = [[int(key) or None for key in each.tolist()] for each in firsts]
    beginnings = [RowTable(offsets_of(np.diff(t.offsets)[own])) for t, own in zip(tables, rest, strict=True)]
    found = _match_keys(beginnings[0], beginnings[1], keys[0], keys[1])
    pairs = [(int(rest[0][one]), int(rest[1][other])) for one, other in zip(found.left, found.right, strict=True)]
    lengths = [_count_equal(left, one, right, other) for one, other in pairs]
    more = np.array([(*pair, length) for pair, length in zip(pairs, lengths, strict=True) if length], np.int64)
    both = np.concatenate([np.stack([*match], axis=1), more.reshape(-1, 3)[:, [0, 1, 2, 2]]])
    return _Match(*both[np.argsort(both[:, 0])].T)


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


def _are_counters(left: RowTable, right: RowTable, ids: Sequence[Sequence[str | None]], match: _Match) -> bool:
    """Return whether ids only count the dialogues of their file: 0, 1, 2, ... with other prompts in most dialogues."""
    if any(TRIALS in table.digests or PROMPT not in table.digests for table in (left, right)):
        return False
    for names in ids:
        if names not in ([str(at) for at in range(len(names))], [str(at + 1) for at in range(len(names))]):
            return False
    first, second = _find_first_prompts(left)[match.left], _find_first_prompts(right)[match.right]
    return bool(np.count_nonzero(first == second) < LEAST_COMMON * len(first))
