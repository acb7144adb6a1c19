"""A folder of rows to rate: what `dialeval sample` writes, and what ratings are joined with when they come back.

- `sample.json`: how the rows were drawn (seed, unit, strata with their sizes), of which systems (rows, dialogues and a
  digest of each, so that another run is not taken for it), and the SHA-256 of the other file.
- `rows.jsonl`: a line per response to rate, see `SampledRow`. Its `id` says nothing about the system; its `probability`
  is the one it was drawn with, which travels to the estimate.

Ratings come back as lines that name the id, the rater and the scores, in the form that every rated row has
(`data.rows.ratings`): `{"id": "k3fq8w2a", "rater": "ann", "scores": {"overall": 4}}`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core import gate
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.files import place_of, reading_together, replacing_together
from dialeval.core.jsondata import dump
from dialeval.core.result import Run
from dialeval.core.rowtable import RowTable
from dialeval.core.targets import check_files
from dialeval.core.version import __version__
from dialeval.data.rows.rating_lines import read_rating_lines

if TYPE_CHECKING:
    from dialeval.analysis.sample_schema import SampledRow, SavedSample

SAMPLE_FILE = "sample.json"
ROWS_FILE = "rows.jsonl"
FORMAT = 1
"""Version of the layout; a folder of a later layout is refused with a clear message."""

_FILES = (SAMPLE_FILE, ROWS_FILE)
_REMEDY = "pass the folder that `dialeval sample -o` wrote, or draw again"


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that were drawn to be rated, and how."""

    design: SavedSample
    rows: Sequence[SampledRow]

    def by_id(self) -> dict[str, dict[str, Any]]:
        """The rows as plain objects by id, as ratings that name only the id are completed from."""
        import msgspec

        return {row.id: msgspec.to_builtins(row) for row in self.rows}

    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the folder; a sample that was saved there before is replaced, files of others are not."""
        import msgspec

        folder = Path(folder)
        check_sample_folder(folder)
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in self.rows)
        with replacing_together(folder, SAMPLE_FILE) as files:
            digest = files.add_bytes(ROWS_FILE, lines)
            plain = msgspec.to_builtins(self.design)
            files.add_bytes(SAMPLE_FILE, dump({**plain, "rows": {"file": ROWS_FILE, "sha256": digest}}))
        return folder


def check_sample_folder(folder: str | PathLike[str], *inputs: Any) -> None:
    """DataError unless a sample may be written to a folder: it holds no ratings of one that would be replaced."""
    check_files(folder, _FILES, _own_files, *inputs)
    folder = Path(folder)
    ratings = sorted(path for end in ("*.sqlite", "*.jsonl") for path in folder.glob(end) if path.name != ROWS_FILE)
    if ratings and (folder / SAMPLE_FILE).exists():
        what = "may hold ratings of the sample in its folder, which would be replaced"
        raise DataError(Fault(str(ratings[0]), None, what, "choose another folder, or move it away"))


def _own_files(folder: Path) -> set[str]:
    try:
        document = gate.read_json(folder / SAMPLE_FILE, dict[str, Any], _REMEDY)
    except DataError:
        return set()
    return set(_FILES) if isinstance(document.get("dialeval"), str) and "strata" in document else set()


def read_sample(folder: str | PathLike[str]) -> Sample:
    """The sample in a folder; DataError for what is none, or not a whole one."""
    file = Path(folder) / SAMPLE_FILE
    return reading_together(file, lambda: _read(file))


def _read(file: Path) -> Sample:
    import msgspec

    from dialeval.analysis.sample_schema import SampledRow, SavedSample

    document = gate.read_json(file, dict[str, Any], _REMEDY)
    if isinstance(layout := document.get("format"), int) and layout > FORMAT:
        what = f"layout {layout} is newer than this dialeval reads ({FORMAT})"
        raise DataError(Fault(str(file), None, what, "upgrade dialeval"))
    design = gate.fitting(document, SavedSample, str(file), _REMEDY)
    path = place_of(file.with_name(design.rows.file), design.rows.sha256)
    content = gate.read_bytes(path, _REMEDY, design.rows.sha256, SAMPLE_FILE)
    rows = []
    for number, line in enumerate(content.splitlines(), 1):
        try:
            rows.append(msgspec.json.decode(line, type=SampledRow))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(Fault(str(path), number, gate.in_words(str(error)), _REMEDY)) from None
    with gate.explained(path, _REMEDY):
        _check(design, rows)
    return Sample(design, rows)


def _check(design: SavedSample, rows: Sequence[SampledRow]) -> None:
    """UnfitError where rows do not belong to the design."""
    if len({row.id for row in rows}) < len(rows) or len({(row.system, row.row) for row in rows}) < len(rows):
        raise gate.UnfitError("holds a row or an id twice")
    for row in rows:
        if len(row.roles) not in (0, len(row.context)):
            raise gate.UnfitError(f"{row.id} does not have a role for each turn of its context")
        if row.stratum not in design.strata or row.system not in design.systems:
            raise gate.UnfitError(f"{row.id} is of a stratum or system that {SAMPLE_FILE} does not name")
        if row.row >= design.systems[row.system].rows:
            raise gate.UnfitError(f"{row.id} is row {row.row} of {row.system}, which has fewer")
    drawn = sum(stratum.drawn_responses for stratum in design.strata.values())
    if drawn != len(rows):
        raise gate.UnfitError(f"holds {len(rows)} rows, and {SAMPLE_FILE} says {drawn}")


def sample_beside(files: Iterable[str | PathLike[str]]) -> Sample | None:
    """The sample that ratings are of, where it lies in the folder of their file or in a folder beside the file.

    Ids are random letters, so a sample that has all ids of the ratings is the one. None where there is none, or two.
    """
    paths = [Path(file) for file in files]
    try:
        rated = {line.id for line in read_rating_lines(paths)}
    except DataError:  # ratings that name no ids
        return None
    folders = {each for path in paths for each in (path.parent, *path.parent.iterdir())}
    found = []
    for folder in sorted(folders):
        if (folder / SAMPLE_FILE).is_file():
            with suppress(DataError):  # a damaged one; who names it as the sample is told what is wrong with it
                found.append(read_sample(folder))
    having = [sample for sample in found if rated and rated <= {row.id for row in sample.rows}]
    return having[0] if len(having) == 1 else None


def digest_of(table: RowTable) -> str:
    """What tells the rows of a system from those of another: dialogues, turns and responses."""
    state = hashlib.sha256(np.ascontiguousarray(table.offsets, np.int64).tobytes())
    state.update("\n".join(name or "" for name in table.dialogues or ()).encode("utf-8", "surrogatepass"))
    state.update(b"" if table.turns is None else np.ascontiguousarray(table.turns, np.int64).tobytes())
    state.update(table.texts["response"].digest.encode() if "response" in table.texts else b"")
    return state.hexdigest()


def check_same_run(sample: Sample, run: Run) -> None:
    """SettingError unless a sample was drawn from this run."""
    known: Mapping[str, Any] = sample.design.systems
    for name, system in known.items():
        table = run[name].rows if name in run else None
        if table is None or digest_of(table) != system.digest:
            what = "has other rows now" if name in run else "is not in this run"
            raise SettingError(
                f"the rows to rate were drawn from another run: {name} {what}; give the run that they were drawn from"
            )


def design_of(**fields: Any) -> SavedSample:
    """The design of a sample that is being drawn; its file is named when it is saved."""
    from dialeval.analysis.sample_schema import SavedRows, SavedSample

    return SavedSample(dialeval=__version__, format=FORMAT, rows=SavedRows(ROWS_FILE, "0" * 64), **fields)
