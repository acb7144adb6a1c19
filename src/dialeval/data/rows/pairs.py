"""Pairs: which of two responses was preferred, one comparison a row.

    {"dialog_id": "d1", "a": "damd", "b": "ubar", "better": "a", "response_a": "...", "response_b": "..."}

- `a`, `b`: the two systems. `better`: `a`, `b` or `tie`, or the name of the better system. Where a system is itself
  called `a`, `b` or `tie`, a value that means one thing as a name and another as a side is refused.
- `dialog_id`: pairs of equal name belong together; a row without one stands alone. Texts of responses are needed only
  to hold length equal. `fields` maps names as everywhere.

Every fault of every file is found before one is raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.data.formats.opening import PathSource
from dialeval.data.formats.records import FieldNames, Records, RowObject, kind_of
from dialeval.data.rows.fields import FieldReader, missing_field
from dialeval.data.rows.reading import read_objects

NAMES = ("a", "b", "better", "response_a", "response_b", "dialog_id")
TIE = "tie"


@dataclass(frozen=True, eq=False)
class Pairs:
    """Comparisons of two systems each."""

    systems: Sequence[str]
    left: Ints
    """The number of the first system of each pair."""
    right: Ints
    outcome: Ints
    """1: the first was better, 0: a tie, -1: the second."""
    dialogue: Ints
    """The number of each pair's dialogue."""
    length_ratio: Floats
    """The natural logarithm of the ratio of the responses' words, first to second; NaN where texts are not known."""
    named: bool = True
    """Whether dialogues have names; if not, every pair stands alone."""

    def __len__(self) -> int:
        return len(self.left)


def length_ratio(left: str, right: str) -> float:
    """Return the logarithm of the ratio of two responses' words; an empty response counts as one word."""
    return float(np.log(max(len(left.split()), 1) / max(len(right.split()), 1)))


@checked
def read_pairs(
    paths: PathSource | Iterable[PathSource] | Sequence[RowObject], fields: Mapping[str, str] | None = None
) -> Pairs:
    """Read the pairs of files (.jsonl, .json, .csv, .tsv, .parquet, .arrow), or of a list of objects."""
    names = dict(zip(NAMES, NAMES, strict=True))
    for name, actual in (fields or {}).items():
        if name not in names:
            raise SettingError(f"there is no field {name!r} to map; a pair has {', '.join(NAMES)}")
        names[name] = actual
    rows = read_objects(paths, "pairs", FieldNames(response=names["better"]), partial(_pair_rows, names=names))
    if not rows:
        raise SettingError("no pairs were given; name at least one file of compared responses")
    systems = list(dict.fromkeys(name for left, right, *_ in rows for name in (left, right)))
    number = {name: code for code, name in enumerate(systems)}
    dialogues: dict[str, int] = {}
    codes = [
        dialogues.setdefault(f"{place}" if name is None else f"={name}", len(dialogues))
        for place, (_, _, _, name, _) in enumerate(rows)
    ]
    return Pairs(
        systems,
        np.array([number[left] for left, *_ in rows], np.int64),
        np.array([number[right] for _, right, *_ in rows], np.int64),
        np.array([outcome for _, _, outcome, _, _ in rows], np.int64),
        np.array(codes, np.int64),
        np.array([ratio for *_, ratio in rows], np.float64),
        any(name is not None for _, _, _, name, _ in rows),
    )


_Row = tuple[str, str, int, "str | None", float]


def _pair_rows(records: Records, _name: str, names: Mapping[str, str]) -> list[_Row]:
    reader = FieldReader(records.where, FieldNames(dialog_id=names["dialog_id"]), records.faults)
    rows = []
    for reader.line, row in records.rows:
        if not isinstance(row, dict):
            reader.fault(f"the row is {kind_of(row)}", "make it an object with a, b and better")
            continue
        systems = [reader.identifier(row, names[name]) for name in ("a", "b")]
        lacking = next((name for name, system in zip("ab", systems, strict=True) if system is None), None)
        left, right = systems
        if lacking is not None or left is None or right is None:
            reader.fault(*missing_field(names[lacking or "a"], lacking or "a", row))
            continue
        if left == right:
            reader.fault(f"{left!r:.40} is compared with itself", "name two different systems")
            continue
        outcome = _outcome(reader, row, names["better"], left, right)
        texts = [row.get(names[name]) for name in ("response_a", "response_b")]
        known = all(isinstance(text, str) for text in texts)
        ratio = length_ratio(*texts) if known else float("nan")  # type: ignore[arg-type]
        rows.append((left, right, outcome, reader.dialogue(row), ratio))
    records.raise_faults()
    return rows


def possible_outcomes(better: object, left: str, right: str) -> set[int]:
    """Return every outcome that a value of `better` can mean; more than one where a system is called like a side."""
    words = {1: (left, "a", "A"), -1: (right, "b", "B"), 0: (TIE, "Tie")}
    return {outcome for outcome, own in words.items() if better in own}


def _outcome(reader: FieldReader, row: RowObject, name: str, left: str, right: str) -> int:
    better = row.get(name)
    said = better.strip() if isinstance(better, str) else better
    outcomes = possible_outcomes(said, left, right)
    if len(outcomes) == 1:
        return outcomes.pop()
    if outcomes:
        what = f"{name} is {said!r:.40}, which is ambiguous: a system of this pair is called like a side or a tie"
        reader.fault(what, "exchange the two systems of the row (a and b), or rename the system")
        return 0
    shown = (
        "is missing"
        if name not in row
        else f"is {said!r:.40}"
        if isinstance(said, str | int)
        else f"is {kind_of(said)}"
    )
    reader.fault(f"{name} {shown}", "make it a, b or tie, or the name of the better system")
    return 0
