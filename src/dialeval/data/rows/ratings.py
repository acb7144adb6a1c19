"""Ratings: replies with what people said about them, as columns, one row per rated reply.

A rated row is a row (see `row_fields`) with `scores`, and where known `scale`, `dataset` and `level`:

- `scores`: an object of quality -> number, or list with one value per annotator (null: that one did not answer); or
  directly a number or a list, which is then the quality `overall`. In a table it may be JSON in a cell, or columns
  `scores.overall`, `scores.fluent` and so on. Without any of these `overall`, `score` or `rating` is read as `overall`.
- `scale`: `[lowest, highest]` of `overall`, in a cell also `1-5`; null where there is none.
- `dataset`: what the row belongs to; else the name of its file. `level`: `dialog` where a whole dialogue was rated.

`fields` maps names as everywhere: `{"response": "answer", "scores": "human"}`. A row without a score of some quality
has NaN there. Every fault of every file is found before one is raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike, fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.needs import Need
from dialeval.data.formats import delimited, json_document, jsonl, parquet
from dialeval.data.formats.opening import PathSource, format_of, stem_of
from dialeval.data.formats.records import LISTS, FieldNames, Records, RowObject, kind_of, listed
from dialeval.data.rows.fields import FieldReader

OVERALL = "overall"
"""The quality that every rated set is expected to have."""

DIALOGUE = "dialog"
"""The level of a row that rates a whole dialogue."""

_OWN = ("scores", "scale", "dataset", "level")
_PLAIN = (OVERALL, "score", "rating")
_DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True, eq=False, slots=True)
class Ratings:
    """Rated replies; every column has one entry per row, in the order of the files."""

    datasets: Sequence[str]
    dialogues: Sequence[str]
    """Rows of equal name belong together (same context, or same dialogue); a row without a name stands alone."""
    systems: Sequence[str | None]
    contexts: Sequence[Sequence[str]]
    responses: Sequence[str]
    references: Sequence[Sequence[str]]
    """None where the rated reply is itself the reference."""
    levels: Sequence[str]
    scales: Floats
    """Lowest and highest value of `overall`, two columns; NaN where the row states none."""
    annotations: Mapping[str, Sequence[Floats]]
    """By quality and row: one value per annotator, or a single one where the source gives no more."""
    values: Mapping[str, Floats] = field(default_factory=dict)
    """By quality: the mean over annotators, NaN where nobody said anything."""

    def __len__(self) -> int:
        return len(self.responses)

    def take(self, rows: Ints | npt.NDArray[np.bool_]) -> Ratings:
        """The given rows, by number or by mask, in order."""
        chosen = np.arange(len(self))[rows]

        def some(column: Sequence[Any]) -> list[Any]:
            return [column[row] for row in chosen.tolist()]

        return Ratings(
            some(self.datasets),
            some(self.dialogues),
            some(self.systems),
            some(self.contexts),
            some(self.responses),
            some(self.references),
            some(self.levels),
            self.scales[chosen],
            {quality: some(column) for quality, column in self.annotations.items()},
            {quality: column[chosen] for quality, column in self.values.items()},
        )


def read_ratings(
    paths: PathSource | Iterable[PathSource] | Sequence[RowObject],
    fields: Mapping[str, str] | None = None,
) -> Ratings:
    """The rated rows of files (.jsonl, .json, .csv, .tsv, .parquet or .arrow, each also .gz or .zst), or of a list."""
    given = dict(fields or {})
    own = {name: given.pop(name, name) for name in _OWN}
    names = FieldNames.of(given)
    growing = _Growing(names, own)
    faults: list[Fault] = []
    for name, found in _sources(paths, names):
        try:
            for records in found():
                growing.add(records, name)
        except DataError as error:
            faults += error.faults
    if faults:
        raise DataError(faults)
    if not growing.responses:
        raise SettingError("no ratings were given; name at least one file of rated rows")
    return growing.finish()


def _sources(
    given: PathSource | Iterable[PathSource] | Sequence[RowObject], names: FieldNames
) -> Iterator[tuple[str, Callable[[], Iterable[Records]]]]:
    """What is given, each with the name of the data set that it is unless its rows say otherwise."""
    if isinstance(given, list) and given and all(isinstance(row, dict) for row in given):
        yield "ratings", lambda: [Records("ratings", enumerate(given, 1))]
        return
    for path in [given] if isinstance(given, str | PathLike) else given:
        yield stem_of(path), partial(_records, path, names)  # type: ignore[arg-type]


def _records(path: PathSource, names: FieldNames) -> Iterator[Records]:
    kind = format_of(path)
    if kind == "jsonl":
        yield jsonl.read(path)
    elif kind == "json":
        yield from json_document.read(path).values()
    elif kind in _DELIMITERS:
        yield delimited.read(path, names, _DELIMITERS[kind])
    elif kind in {"parquet", "arrow"}:
        yield Records(fspath(path), enumerate(parquet.read(path, None, Need.RESPONSE).to_pylist(), 1))
    else:
        remedy = "give .jsonl, .json, .csv, .tsv or .parquet"
        raise DataError(Fault(fspath(path), None, "plain lines hold no ratings", remedy))


class _Growing:
    """The columns while files are read."""

    def __init__(self, names: FieldNames, own: Mapping[str, str]) -> None:
        self.names, self.own = names, own
        self.datasets: list[str] = []
        self.dialogues: list[str] = []
        self.systems: list[str | None] = []
        self.contexts: list[list[str]] = []
        self.responses: list[str] = []
        self.references: list[list[str]] = []
        self.levels: list[str] = []
        self.scales: list[tuple[float, float]] = []
        self.scores: list[dict[str, Floats]] = []

    def add(self, records: Records, name: str) -> None:
        """Take the rows of one file in, or raise all its faults."""
        reader = FieldReader(records.where, self.names, records.faults)
        before, rated = len(self.responses), False
        for reader.line, row in records.rows:
            if not isinstance(row, dict):
                reader.fault(f"the row is {kind_of(row)}", "make it an object with a response and scores")
                continue
            dataset = reader.identifier(row, self.own["dataset"]) or name
            dialogue = reader.dialogue(row)
            self.datasets.append(dataset)
            self.dialogues.append(f"{dataset}/{dialogue}" if dialogue else f"{dataset}/row {reader.line}")
            self.systems.append(reader.system(row))
            self.contexts.append(reader.context(row))
            self.responses.append(reader.response(row))
            self.references.append(reader.references(row))
            self.levels.append(reader.identifier(row, self.own["level"]) or "turn")
            self.scales.append(_scale(reader, row.get(self.own["scale"]), self.own["scale"]))
            found = _scores(reader, row, self.own["scores"])
            rated = rated or bool(found)
            self.scores.append(found)
        if not records.faults and len(self.responses) == before:
            records.faults.append(Fault(records.where, None, "holds no rows", "give at least one rated reply"))
        elif not records.faults and not rated:
            what = f"no row has {self.own['scores']}, {', '.join(_PLAIN)}"
            remedy = "give each row scores, or map the name they have: --field scores=NAME"
            records.faults.append(Fault(records.where, None, what, remedy))
        records.raise_faults()

    def finish(self) -> Ratings:
        qualities = dict.fromkeys(quality for scores in self.scores for quality in scores)
        nothing = np.empty(0)
        annotations = {quality: [scores.get(quality, nothing) for scores in self.scores] for quality in qualities}
        return Ratings(
            self.datasets,
            self.dialogues,
            self.systems,
            self.contexts,
            self.responses,
            self.references,
            self.levels,
            np.array(self.scales, np.float64).reshape(-1, 2),
            annotations,
            {quality: np.array([_mean(row) for row in rows], np.float64) for quality, rows in annotations.items()},
        )


def _scores(reader: FieldReader, row: RowObject, name: str) -> dict[str, Floats]:
    """The annotators' values of each quality of a row."""
    value = _parsed(row.get(name))
    if value is None:
        prefix = f"{name}."
        flat = {key[len(prefix) :]: cell for key, cell in row.items() if key.startswith(prefix)}
        value = flat or next((row[plain] for plain in _PLAIN if row.get(plain) is not None), None)
    if not isinstance(value, dict):
        value = {OVERALL: value}
    found = {str(quality): _values(reader, _parsed(given), f"{name}.{quality}") for quality, given in value.items()}
    return {quality: values for quality, values in found.items() if len(values)}


def _values(reader: FieldReader, value: object, what: str) -> Floats:
    items = [_parsed(item) for item in value] if isinstance(value, LISTS) else [value]
    numbers = []
    for item in items:
        if isinstance(item, int | float) and not isinstance(item, bool) and math.isfinite(item):
            numbers.append(float(item))
        elif item is not None:
            shown = repr(item)[:40] if isinstance(item, str | float) else kind_of(item)
            reader.fault(f"{what} holds {shown}", "make it a number, a list of numbers (one per annotator), or null")
    return np.array(numbers, np.float64)


def _scale(reader: FieldReader, value: object, what: str) -> tuple[float, float]:
    if isinstance(value, str):
        parts = value.split("-")
        value = [_parsed(part.strip()) for part in parts] if len(parts) == 2 else _parsed(value)
    if value is None or (isinstance(value, LISTS) and all(end is None for end in value)):
        return math.nan, math.nan
    if isinstance(value, LISTS) and len(value) == 2:
        low, high = value
        if isinstance(low, int | float) and isinstance(high, int | float) and low < high:
            return float(low), float(high)
    shown = listed(value) if isinstance(value, LISTS) else kind_of(value)
    reader.fault(f"{what} is {shown}", "make it [lowest, highest], or null where there is none")
    return math.nan, math.nan


def _parsed(value: object) -> object:
    """What a cell of a table stands for: a number, or JSON; anything that is no text stays as it is."""
    if not isinstance(value, str):
        return value
    import orjson

    try:
        return orjson.loads(value) if value.strip() else None
    except orjson.JSONDecodeError:
        return value


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else math.nan
