"""The folder of a sample for human evaluation: how it is written, read and checked. It has two files:

- `sample.json`: how the rows were sampled (seed, unit, strata with their sizes), of which systems (rows, dialogues and
  a digest of each, so that another run is not taken for it), and the SHA-256 of the other file.
- `rows.jsonl`: a line per response to rate, see `SampledRow`. Its `id` does not reveal the system; its `probability` is
  the one it was sampled with, which the estimate needs.

Ratings come back as lines that name the id, the rater and the scores, in the form that every rated row has
(`io.ratings`): `{"id": "k3fq8w2a", "rater": "ann", "scores": {"overall": 4}}`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta, Struct

from dialeval.core import validation
from dialeval.core.display import Displayable, Tabular, count_names
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import check_files, place_of, read_consistently, replace_files
from dialeval.core.result import Run
from dialeval.core.rowtable import RowTable
from dialeval.core.validation import dump
from dialeval.core.version import __version__
from dialeval.io.ratings import Ratings, read_ratings

SAMPLE_FILE = "sample.json"
ROWS_FILE = "rows.jsonl"
PAIR = "-"
"""Between the ids of two rows that are compared."""
FORMAT = 1
"""Version of the layout; a folder of a later layout is refused with a clear message."""
_FILES = (SAMPLE_FILE, ROWS_FILE)
_REMEDY = "pass the folder that `dialeval sample -o` wrote, or sample again"
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Sha256 = Annotated[str, Meta(pattern=validation.SHA256)]


class SavedSystem(Struct):
    """A system of the run that was drawn from."""

    rows: Count
    dialogues: Count
    digest: Sha256


class SavedStratum(Struct):
    """How much a stratum has and how much of it was drawn: units of the design, and responses of all systems."""

    units: Count
    drawn_units: Count
    responses: Count
    drawn_responses: Count

    def __post_init__(self) -> None:
        if self.drawn_units > self.units or self.drawn_responses > self.responses:
            raise ValueError("a stratum has fewer rows than were sampled from it")


class SavedRows(Struct):
    """The file of the rows."""

    file: Annotated[str, Meta(pattern=validation.FILE_NAME)]
    sha256: Sha256


RatedLevel: TypeAlias = Literal["turn", "dialogue"]
"""What is rated."""


class SavedSample(Struct, kw_only=True):
    """`sample.json`."""

    dialeval: str
    format: Annotated[int, Meta(ge=1)]
    seed: Count
    unit: Literal["contexts", "dialogues"]
    stratify: list[str]
    systems: Annotated[dict[str, SavedSystem], Meta(min_length=1)]
    strata: Annotated[dict[str, SavedStratum], Meta(min_length=1)]
    rows: SavedRows
    level: RatedLevel = "turn"
    """What is rated: single responses, or whole dialogues."""


class SampledRow(Struct, omit_defaults=True):
    """A response to rate; a line of `rows.jsonl`.

    Attributes:
        id: The id, which reveals nothing about the system.
        system: The system.
        row: The number of the row among those of its system, counted from 1.
        probability: The probability with which it was sampled.
        stratum: The stratum.
        response: The response.
        context: The dialogue context, turn by turn.
        roles: Who said each turn of the context, where that is known.
        reference: The references.
        dialog_id: The dialogue, where it has an id.
        turn: The turn, where it is known.
        aligned: A number that only the rows have that the alignment of the systems pairs with it.

    Examples:
        >>> import dialeval
        >>> systems = {"old": ["no"] * 40, "new": ["yes please"] * 40}
        >>> run = dialeval.evaluate(systems, contexts=[[f"tea {n} ?"] for n in range(40)], metrics="length")
        >>> row = dialeval.sample(run, 10).responses[0]
        >>> row.response in ("no", "yes please"), row.context == [f"tea {row.place} ?"]
        (True, True)
    """

    id: Annotated[str, Meta(min_length=1, max_length=64)]
    system: str
    row: Annotated[int, Meta(ge=1, le=1 << 53)]
    probability: Annotated[float, Meta(gt=0, le=1)]
    stratum: str
    response: str
    context: list[str] = []
    roles: list[str] = []
    reference: list[str] = []
    dialog_id: str | None = None
    turn: Count | None = None
    aligned: Count | None = None

    @property
    def place(self) -> int:
        """The place of the row in the items of its system, from 0 on."""
        return self.row - 1


class RatedRow(SampledRow, kw_only=True):
    """A line of `dialeval rate merge -o`, with --sample: a sampled response and the scores of one rater."""

    rater: str
    scores: dict[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class Sample(Tabular, Displayable):
    """Responses that were sampled for rating, and how.

    Attributes:
        design: The sampling design: seed, unit, strata with their sizes, and digests of the systems' rows.
        responses: The responses to rate.

    Examples:
        >>> import dialeval
        >>> systems = {"old": ["no"] * 40, "new": ["yes please"] * 40}
        >>> run = dialeval.evaluate(systems, contexts=[[f"tea {n} ?"] for n in range(40)], metrics="length")
        >>> drawn = dialeval.sample(run, 10)
        >>> len(drawn.to_pandas()), len(drawn.pairs())
        (10, 5)
    """

    design: SavedSample
    responses: Sequence[SampledRow]

    def __repr__(self) -> str:
        systems = count_names(self.design.systems, "system")
        return f"<Sample: {len(self.responses):,} responses of {systems}, unit {self.design.unit}>"

    def lines(self) -> list[dict[str, object]]:
        """Return a line per response to rate, with the fields of `SampledRow`.

        Returns:
            The lines, as `to_pandas` has them.
        """
        return [msgspec.structs.asdict(row) for row in self.responses]

    def by_id(self) -> dict[str, dict[str, object]]:
        """Return the rows as plain objects by id, to complete ratings that name only the id.

        Returns:
            The rows.
        """
        return {row.id: msgspec.to_builtins(row) for row in self.responses}

    def pairs(self) -> dict[str, tuple[SampledRow, SampledRow]]:
        """Return the pairs that raters compare: the responses of two systems to one context, or aligned dialogues.

        Returns:
            The pairs by `ID-ID`.
        """
        same: dict[tuple[object, ...], list[SampledRow]] = {}
        for row in self.responses:
            context = () if self.design.level == "dialogue" else tuple(row.context)  # which holds the own replies
            place = (row.row, row.dialog_id) if row.aligned is None else (row.aligned,)
            same.setdefault((*place, context), []).append(row)
        # Ids are random letters: which of two is the first reveals nothing.
        pairs = (sorted(pair, key=lambda row: row.id) for rows in same.values() for pair in combinations(rows, 2))
        return {PAIR.join((first.id, second.id)): (first, second) for first, second in pairs}

    def save(self, folder: str | PathLike[str]) -> Path:
        """Save the sample in a folder: `sample.json` and `rows.jsonl`.

        Args:
            folder: The folder, created if it does not exist. A sample that was saved there is replaced.

        Returns:
            The folder.

        Raises:
            DataError: Other files are in the way, or the folder cannot be written.
        """
        folder = Path(folder)
        check_sample_folder(folder)
        with replace_files(folder, SAMPLE_FILE) as files:
            digest = files.add_bytes(ROWS_FILE, b"".join(msgspec.json.encode(row) + b"\n" for row in self.responses))
            design = msgspec.structs.replace(self.design, rows=SavedRows(ROWS_FILE, digest))
            files.add_bytes(SAMPLE_FILE, dump(msgspec.to_builtins(design)))
        return folder


def make_design(tables: Mapping[str, RowTable], **design: Any) -> SavedSample:
    """Return the design of a sample of some systems; `Sample.save` adds the digest of the rows."""
    systems = {
        name: SavedSystem(len(table), len(table.offsets) - 1, digest_table(table)) for name, table in tables.items()
    }
    rows = SavedRows(ROWS_FILE, "0" * 64)
    return SavedSample(dialeval=__version__, format=FORMAT, systems=systems, rows=rows, **design)


def check_sample_folder(folder: str | PathLike[str], *inputs: object) -> None:
    """Refuse a folder that a sample may not be written to.

    A sample that has ratings is never replaced: they would belong to rows that no longer exist. Ratings come in
    many files (databases, lines, pages that raters have open), so any file next to a sample is taken for one.
    """
    check_files(folder, _FILES, _list_own_files, *inputs)
    folder = Path(folder)
    if (folder / SAMPLE_FILE).exists():
        others = sorted(path for path in folder.iterdir() if path.name not in _FILES and path.name[0] != ".")
        if others:
            what = "is in the folder of a sample and may hold ratings of it, which would lose their sample"
            raise DataError(Problem(str(others[0]), None, what, "choose another folder, or move it away"))


def _list_own_files(folder: Path) -> set[str]:
    try:
        document = validation.read_json(folder / SAMPLE_FILE, dict[str, object], _REMEDY)
    except DataError:
        return set()
    return set(_FILES) if isinstance(document.get("dialeval"), str) and "strata" in document else set()


def read_sample(folder: str | PathLike[str]) -> Sample:
    """Read the sample in a folder; DataError for what is none, or not a whole one."""
    file = Path(folder) / SAMPLE_FILE
    return read_consistently(file, lambda: _read(file))


def _read(file: Path) -> Sample:
    design, _ = validation.read_manifest(file, SavedSample, _REMEDY, FORMAT, signed=False)
    path = place_of(file.with_name(design.rows.file), design.rows.sha256)
    content = validation.read_bytes(path, _REMEDY, design.rows.sha256, SAMPLE_FILE)
    rows = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            rows.append(msgspec.json.decode(line, type=SampledRow))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(Problem(str(path), number, validation.describe_mismatch(str(error)), _REMEDY)) from None
    with validation.explain_errors(path, _REMEDY):
        _check_rows(design, rows)
    return Sample(design, rows)


def _check_rows(design: SavedSample, rows: Sequence[SampledRow]) -> None:
    """Refuse rows that do not belong to the design (InvalidError)."""
    if len({row.id for row in rows}) < len(rows) or len({(row.system, row.row) for row in rows}) < len(rows):
        raise validation.InvalidError("holds a row or an id twice")
    for row in rows:
        if len(row.roles) not in (0, len(row.context)):
            raise validation.InvalidError(f"{row.id} does not have a role for each turn of its context")
        if row.stratum not in design.strata or row.system not in design.systems:
            raise validation.InvalidError(f"{row.id} is of a stratum or system that {SAMPLE_FILE} does not name")
        if row.row > design.systems[row.system].rows:
            raise validation.InvalidError(f"{row.id} is row {row.row} of {row.system}, which has fewer")
        stratum = design.strata[row.stratum]
        if not math.isclose(row.probability, stratum.drawn_units / max(stratum.units, 1), rel_tol=1e-9):
            # 1 / probability is the weight of a rating in an estimate.
            what = f"has the probability {row.probability:g}, which the design does not give"
            raise validation.InvalidError(f"{row.id} {what}")
    drawn = sum(stratum.drawn_responses for stratum in design.strata.values())
    if drawn != len(rows):
        raise validation.InvalidError(f"holds {len(rows)} rows, and {SAMPLE_FILE} says {drawn}")


def find_sample(
    files: Iterable[str | PathLike[str]], fields: Mapping[str, str] | None = None
) -> tuple[Sample, Ratings] | None:
    """Find the sample that ratings are of, in the folder of their files or in a folder next to them.

    Ids are random letters, so a sample that has all ids of the ratings is the one.

    Returns:
        The sample and the ratings of its rows; None where there is no such sample, or two.
    """
    paths = [Path(file) for file in files]
    matches = []
    for folder in sorted({place for path in paths for place in (path.parent, *path.parent.iterdir())}):
        if (folder / SAMPLE_FILE).is_file():
            with suppress(DataError):  # a damaged sample, or ratings of other rows; who names it gets the message
                sample = read_sample(folder)
                matches.append((sample, read_ratings(paths, fields, sample.by_id())))
    return matches[0] if len(matches) == 1 else None


def digest_table(table: RowTable) -> str:
    """Return a digest of the rows of a system: dialogues, turns and responses."""
    state = hashlib.sha256(np.ascontiguousarray(table.offsets, np.int64).tobytes())
    state.update("\n".join(name or "" for name in table.dialogues or ()).encode("utf-8", "surrogatepass"))
    state.update(b"" if table.turns is None else np.ascontiguousarray(table.turns, np.int64).tobytes())
    for text in table.texts.get("response", ()):
        content = str(text).encode("utf-8", "surrogatepass")
        state.update(b"%d:%b" % (len(content), content))
    return state.hexdigest()


def check_same_run(sample: Sample, run: Run) -> None:
    """Refuse a run that the sample was not drawn from (SettingError)."""
    for name, system in sample.design.systems.items():
        table = run[name].table if name in run else None
        if table is None or (len(table), digest_table(table)) != (system.rows, system.digest):
            what = "has other rows now" if name in run else "is not in this run"
            raise SettingError(f"the sample is from another run: {name} {what}; give the run that was sampled")
