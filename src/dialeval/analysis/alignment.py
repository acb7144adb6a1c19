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
each log. Ids of tasks with trials identify them, since simulated users speak freely. Where ids match less than half of
the units, prompts are used if they match at least half.

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

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from msgspec.structs import replace

from dialeval.analysis.values import NO_DIALOGUES, cut, require_table
from dialeval.core.arrays import Ints, ranges
from dialeval.core.display import list_some
from dialeval.core.errors import SettingError
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
    if left.rows is None or right.rows is None:
        raise SettingError(f"{NO_DIALOGUES}; score the responses again and save the per-row scores")
    tables = left.rows, right.rows
    units, rows = _count_units(*tables), (len(left.rows), len(right.rows))
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
    known = [(PurePath(result.source or "").name, result.rows) for result in results]
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

    It says nothing of tasks with trials, whose simulated users speak freely.
    """
    if any(TRIALS in table.digests or PROMPT not in table.digests for table in (left, right)):
        return 0
    first, second = _find_first_prompts(left)[match.left], _find_first_prompts(right)[match.right]
    return int(np.count_nonzero((first != second) & (first != 0) & (second != 0)))
