"""Documents of the breakdown challenge (DBDC): where they are stored, how they are parsed, what can be wrong with them.

    {"dialogue-id": ..., "turns": [{"turn-index": 2, "speaker": "S", "annotations": [{"breakdown": "T"}, ...]}, ...]}
    {"dialogue-id": ..., "turns": [{"turn-index": 2, "labels": [{"breakdown": "O", "prob-O": 0.8, ...}]}, ...]}

A dialogue, or the labels of a detector for one, is a JSON document. Documents are stored in

- a folder of files, `<dialogue-id>.log.json` with annotated dialogues or `<dialogue-id>.labels.json` with labels;
- a `.jsonl` file (also `.gz`, `.zst`) with one such document per line;
- a `.tar.gz` (`.tgz`, `.tar`) of such files. One with labels in several folders holds several detectors;
- a list of documents that are parsed already.

Archives are read in memory and nothing is ever written. Names of files are only compared with names, so no dialogue-id
leads out of a folder.

Where reading is strict, every problem of every file is raised at once. Where it is lenient, each type of problem has
its consequence, and the warnings say how often it occurred.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import orjson
from msgspec import UNSET, Struct, UnsetType, ValidationError

from dialeval.core.display import list_some
from dialeval.core.errors import DataError, Problem
from dialeval.core.rowtable import NO_TURN
from dialeval.io.download import UntrustedArchive, unpacked_limit
from dialeval.io.json import parse_bytes
from dialeval.io.opening import (
    BYTE_ORDER_MARK,
    PathSource,
    format_of,
    read_bytes,
    read_problem,
    refuse_device,
    split_lines,
    stem_of,
)
from dialeval.suites.breakdown.plain import LABELS, LOGS

SYSTEM, USER = "S", "U"
"""The speakers."""
MOST_BYTES = 1 << 33
"""What an archive may unpack to."""

_CONTENTS = {LOGS: ("data", "annotated dialogues"), LABELS: ("labels", "labels")}
"""What a source of such documents is called in messages, and what it holds."""
_ARCHIVES = (".tar.gz", ".tgz", ".tar")
_CHUNK = 1 << 17
"""Bytes read at once; a dialogue of the challenge has half as many."""
_SHOWN_TURNS = 12

Place = tuple[str, int | None]
"""The file of a document, and its line in a JSONL file."""


_BY_LABEL_ALONE = "not scored by divergence and squared error"


class ProblemType(Enum):
    """What can be wrong: what it is called when it is counted, how to solve it, what lenient reading does."""

    UNREADABLE_LOG = ("dialogues that cannot be used", "give dialogue-id, turns and annotations", "left out")
    UNREADABLE_LABELS = ("labels files that cannot be used", "give dialogue-id, turns and labels", "not scored")
    MARK = ("files with a byte order mark", "save it as UTF-8 without the mark, as for the original", "read without")
    REPEATED_DIALOGUE = ("dialogues that occur twice", "give each dialogue an id of its own", "each is counted")
    BAD_INDEX = ("annotated turns without a number", "number turns from 0 on", "matched by position alone")
    OTHER_SPEAKER = ("annotated turns of another speaker", 'write "S" or "U" (the user)', "counted as the system's")
    NO_REFERENCE = ("turns without an annotation O, T or X", "annotate them, or take the annotations out", "not scored")
    NO_LABELS = ("dialogues without labels", "write a labels file for every dialogue", "not scored")
    MISSING_TURNS = ("annotated turns without labels", "label every annotated turn", "not scored")
    UNKNOWN_LABEL = ("labels other than O, T, X", "write O, T or X in capitals", "counted as wrong")
    NOT_PROBABLE = ("probabilities below 0 or not finite", "write numbers from 0 to 1", _BY_LABEL_ALONE)
    ODD_SUM = ("probabilities that do not add up to 1", "divide them by their sum", "used as they are")
    OTHER_DIALOGUE = ("labels that name another dialogue", "write a file of labels for each dialogue", "used")
    REPEATED_LABELS = ("labels that occur twice", "keep one of them", "the first is used")
    BAD_ENTRY = ("entries that cannot be used", 'give each a "turn-index" and "labels" with one object', "passed over")

    def __init__(self, what: str, remedy: str, consequence: str) -> None:
        self.what, self.remedy, self.consequence = what, remedy, consequence


@dataclass
class Findings:
    """The problems found so far, and remarks that are worth printing."""

    lenient: bool = False
    problems: list[Problem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    _counts: dict[ProblemType, list[int]] = field(default_factory=dict)

    def add(self, kind: ProblemType, place: Place, what: str, turns: int = 0) -> None:
        """Add a problem of a document that concerns some turns (or all of it)."""
        self.problems.append(Problem(*place, what, kind.remedy))
        counted = self._counts.setdefault(kind, [0, 0])
        counted[0] += 1
        counted[1] += turns

    def add_error(self, kind: ProblemType, place: Place, error: DataError) -> None:
        """Add the reason why a document could not be read."""
        first = error.problems[0]
        self.add(kind, (place[0], first.line if place[1] is None else place[1]), first.what)

    def refuse(self, *problems: Problem) -> None:
        """Add problems that are errors even where reading is lenient."""
        self.problems += problems
        self.lenient = False

    def raise_or_count(self) -> list[str]:
        """Raise all problems; where reading is lenient, return how often each type of them occurred."""
        if self.problems and not self.lenient:
            raise DataError(self.problems)
        warnings = []
        for kind, (files, turns) in self._counts.items():
            amount = f" ({turns} turn{'' if turns == 1 else 's'})" if turns else ""
            warnings.append(f"{kind.what}: in {files} file{'' if files == 1 else 's'}{amount}; {kind.consequence}")
        return warnings + self.remarks


def name_turns(turns: Sequence[object]) -> str:
    """Return turns as a message names them: `turn 4`, `turns 4, 6 and 17 more`."""
    return f"turn{'' if len(turns) == 1 else 's'} {list_some([str(turn) for turn in turns], _SHOWN_TURNS)}"


class SourceDocument(NamedTuple):
    """A document, as bytes or parsed already, and where it is."""

    where: str
    line: int | None
    content: object

    @property
    def place(self) -> Place:
        """The file and the line."""
        return self.where, self.line


@dataclass(frozen=True)
class Files:
    """Documents that are found by their names, in a folder or in a folder of an archive."""

    where: str
    names: frozenset[str]
    read: Callable[[str], bytes]

    def read_all(self) -> Iterator[SourceDocument]:
        """Read every document, in the order of names."""
        return map(self.read_one, sorted(self.names))

    def read_one(self, name: str) -> SourceDocument:
        """Read the document of that name."""
        return SourceDocument(f"{self.where}/{name}", None, self.read(name))


@dataclass(frozen=True)
class DocumentList:
    """Documents without names: the lines of a JSONL file, or parsed objects; they can be read once."""

    where: str
    items: Iterable[tuple[int, object]]

    def read_all(self) -> Iterator[SourceDocument]:
        """Read every document, in order."""
        return (SourceDocument(self.where, number, content) for number, content in self.items)


Store = Files | DocumentList


def open_stores(source: object, ending: str) -> dict[str, Store]:
    """Find the documents of a path, or wrap parsed ones, by the name of their folder or file.

    `ending` is `LOGS` or `LABELS`.
    """
    argument, held = _CONTENTS[ending]
    if isinstance(source, str | os.PathLike):
        return _open_path(source, ending, f"{held} (*.{ending.strip('.')})")
    if isinstance(source, Iterable) and not isinstance(source, Mapping):
        return {argument: DocumentList(argument, enumerate(source, 1))}
    what = f"cannot read {held} from {type(source).__name__}"
    raise DataError(Problem(argument, None, what, f"pass a path, or a list of parsed {held}"))


def _open_path(path: PathSource, ending: str, called: str) -> dict[str, Store]:
    where = os.fspath(path)
    if os.path.isdir(where):  # noqa: PTH112  (Path.is_dir takes an empty name for ".")
        folder = where.rstrip(os.sep) or os.sep
        try:
            names = frozenset(name for name in os.listdir(folder) if _is_wanted(name, ending))  # noqa: PTH208
        except OSError as error:
            what = f"cannot be listed ({error.strerror})"
            raise DataError(Problem(where, None, what, "grant read permission")) from None
        stores = {Path(where).resolve().name: Files(folder, names, partial(_read_file, folder))}
    elif where.lower().endswith(_ARCHIVES):
        folders = _read_archive(where, ending)
        # Folders are told apart by their last name where that suffices.
        short = len({PurePosixPath(inside).name for inside in folders}) == len(folders)
        stores = {
            ((PurePosixPath(inside).name if short else inside) or stem_of(where)): Files(
                f"{where}:{inside}" if inside else where, frozenset(files), files.__getitem__
            )
            for inside, files in folders.items()
        }
    elif format_of(path) == "jsonl":
        return {stem_of(path): DocumentList(where, _read_lines(where))}
    else:
        exists = os.path.exists(where)  # noqa: PTH110  (Path.exists raises for a name that is too long)
        what = "is neither" if exists else "there is no such file or folder"
        raise DataError(Problem(where, None, what, f"give a folder of {called}, a .jsonl file or a .tar.gz"))
    if not any(files.names for files in stores.values()):
        remedy = "check the path; the challenge's names are expected"
        raise DataError(Problem(where, None, f"holds no {called}", remedy))
    return dict(stores)


def _is_wanted(name: str, ending: str) -> bool:
    """Return whether a file holds documents of that type; the original passes over hidden files with dialogues."""
    return name.endswith(ending) and not (ending == LOGS and name.startswith("."))


def _read_file(folder: str, name: str) -> bytes:
    place = f"{folder}/{name}"
    try:
        file = os.open(place, os.O_RDONLY)  # there may be 70,000 files, and `open` costs more than their content
        try:
            refuse_device(place, file)
            return b"".join(iter(partial(os.read, file, _CHUNK), b""))
        finally:
            os.close(file)
    except OSError as error:
        raise DataError(read_problem(place, error)) from None


def _read_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file that are not empty, with their numbers."""
    lines = split_lines(read_bytes(path), str(path))
    view = lines.data.data
    for number, (start, end) in enumerate(zip(lines.starts.tolist(), lines.ends.tolist(), strict=True), 1):
        data = bytes(view[start:end])
        if data.strip():
            yield number, data


def _read_archive(where: str, ending: str) -> dict[str, dict[str, bytes]]:
    """Read the wanted members of an archive by folder and name, in the order of folders."""
    archive = UntrustedArchive(where, "pack the files of the challenge again")
    folders: dict[str, dict[str, bytes]] = {}
    try:
        with Path(where).open("rb") as packed, archive.explain_damage():
            limit = unpacked_limit(os.fstat(packed.fileno()).st_size, MOST_BYTES)
            for member, content in archive.tar_files(packed, limit):
                path = PurePosixPath(member)
                if not _is_wanted(path.name, ending):
                    continue
                members = folders.setdefault(str(path.parent).removeprefix("."), {})
                if path.name in members:
                    raise archive.refusal(f"holds {member!r} twice")
                members[path.name] = content.read()
    except OSError as error:
        raise DataError(read_problem(where, error)) from None
    return dict(sorted(folders.items()))


# Without garbage collection, which would visit nine million annotations again and again; none refers to itself.
class Annotation(Struct, gc=False):
    """The judgment of one annotator about a turn: no breakdown (O), a possible one (T), a breakdown (X), other (?)."""

    breakdown: Literal["O", "T", "X", "?"]


class AnnotatedTurn(Struct, gc=False, rename={"index": "turn-index"}):
    """A turn of an annotated dialogue. Annotations may be missing only where the speaker is the user."""

    annotations: list[Annotation] | UnsetType | None = UNSET
    speaker: object = UNSET
    index: object = NO_TURN
    utterance: object = None


class AnnotatedDialogue(Struct, gc=False, rename={"name": "dialogue-id"}):
    """An annotated dialogue."""

    name: str
    turns: list[AnnotatedTurn]


_DIALOGUES = msgspec.json.Decoder(AnnotatedDialogue)


def decode_dialogue(document: SourceDocument, findings: Findings) -> AnnotatedDialogue | None:
    """Decode an annotated dialogue; a document that is none is a problem.

    Only the fields that matter are decoded: nine tenths of such a document are annotations of which one letter counts.
    What this decoder does not take (NaN, which Python's own `json` writes, or anything that is not as expected) is
    parsed as a whole and converted, without the parts that the original does not look at either.
    """
    try:
        dialogue = _decode_dialogue(document, findings)
        dialogue.name.encode()  # it becomes a column of texts
    except UnicodeEncodeError:
        findings.add(ProblemType.UNREADABLE_LOG, document.place, "the dialogue-id holds half of a surrogate pair")
    except ValidationError as error:
        findings.add(ProblemType.UNREADABLE_LOG, document.place, f"is not a dialogue of the challenge: {error}")
    except DataError as error:
        findings.add_error(ProblemType.UNREADABLE_LOG, document.place, error)
    else:
        return dialogue
    return None


def _decode_dialogue(document: SourceDocument, findings: Findings) -> AnnotatedDialogue:
    content = document.content
    with suppress(ValueError, RecursionError):
        # The decoder does not check the bytes of texts that it skips.
        if isinstance(content, bytes) and (content.isascii() or content.decode()):
            return _DIALOGUES.decode(content)
    dialogue = _pick(parse(document, findings), "dialogue-id", "turns")
    if isinstance(dialogue, dict):
        if dialogue.get("turns") in ({}, ""):
            dialogue["turns"] = []
        elif isinstance(dialogue.get("turns"), list):
            dialogue["turns"] = [_pick_turn(turn) for turn in dialogue["turns"]]
    return msgspec.convert(dialogue, AnnotatedDialogue)


def _pick_turn(document: object) -> object:
    turn = _pick(document, "speaker", "annotations", "turn-index", "utterance")
    if isinstance(turn, dict):
        if turn.get("speaker") == USER:
            turn["annotations"] = None
        elif isinstance(turn.get("annotations"), list):
            turn["annotations"] = annotations = [_pick(annotation, "breakdown") for annotation in turn["annotations"]]
            for annotation in annotations:
                if (
                    isinstance(annotation, dict)
                    and "breakdown" in annotation
                    and annotation["breakdown"] not in ("O", "T", "X")
                ):
                    annotation["breakdown"] = "?"
    return turn


def _pick(value: object, *keys: str) -> object:
    """Return an object with some of its fields only; anything else as it is."""
    return {key: value[key] for key in keys if key in value} if isinstance(value, dict) else value


def parse(document: SourceDocument, findings: Findings) -> Any:
    """Parse a document; what only Python's own parser takes is taken too: NaN, halves of characters."""
    data = document.content
    if not isinstance(data, bytes):
        return data
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(data)
    if data.startswith(BYTE_ORDER_MARK):
        findings.add(ProblemType.MARK, document.place, "starts with a byte order mark")
    try:
        return parse_bytes(np.frombuffer(data, np.uint8), document.where)
    except DataError as error:
        try:
            return json.loads(data.removeprefix(BYTE_ORDER_MARK).decode())
        except (ValueError, RecursionError):
            raise error from None
