"""Data of the dialogue breakdown detection challenge: annotated dialogues, and the labels of detectors for them.

    read(data, labels) -> one `Rows` per detector, a row per annotated system turn

Turns of the user and turns without annotations are passed over. Annotations other than O, T and X do not count. Where
reading is lenient, turns of any other speaker count as the system's, and a `turn-index` may be anything: the original
looks only for the user's turns, and never at an index.

The labels of a dialogue are found by its dialogue-id: as the file `<dialogue-id>.labels.json`, or in a JSONL file by
the `dialogue-id` of a line. Within the dialogue they are matched with the annotated turns

- by `turn-index` (the default): an entry belongs to the turn that it names;
- by `position`, as in the original: the n-th entry belongs to the n-th annotated turn, whatever it names. A detector
  that labels turns which nobody annotated is silently shifted by this.

Where the two differ a warning says so. Every problem of every file is raised at once, or counted where reading is
lenient (see `documents`). Of several `labels` of an entry the first counts; probabilities may be numbers in strings.
A row of labels holds the code of the label (O 0, T 1, X 2, anything else 3) and the three probabilities; NaN for what
is missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from msgspec import UNSET

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints, Mask, offsets_of
from dialeval.core.columns import NumberColumn, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.rowtable import NO_TURN
from dialeval.core.validation import JsonObject
from dialeval.io.rows import Rows
from dialeval.suites.breakdown import documents
from dialeval.suites.breakdown.documents import AnnotatedTurn, Findings, Place, ProblemType, SourceDocument, Store
from dialeval.suites.breakdown.plain import LABELS, LOGS, SUM_TOLERANCE

Match = Literal["turn-index", "position"]
Label: TypeAlias = tuple[Any, ...]
"""The code of a label and its probabilities, as they are in the file."""

DATASET = "dataset"
"""The field of a row with its data set, where there are several."""
_LARGEST_INDEX = 1 << 62
_CODES = {"O": 0.0, "T": 1.0, "X": 2.0}
_OTHER = 3.0
_KEYS = ("breakdown", "prob-O", "prob-T", "prob-X")
_fields, _letter = itemgetter(*_KEYS), attrgetter("breakdown")
_NONE = (np.nan, np.nan, np.nan, np.nan)
_SHOWN_DIALOGUES = 3

_MATCHED = {
    "turn-index": "Labels are matched by turn-index here; the original would match them by position "
    "(--match position).",
    "position": "Labels are matched by position here, as in the original: if turn-index is right, labels are taken "
    "for other turns. Leave --match position out.",
}


@dataclass(frozen=True, eq=False)
class AnnotatedTurns:
    """All annotated turns, dialogue after dialogue."""

    where: str
    dialogues: list[str]
    places: list[Place]
    """Where each dialogue is."""
    offsets: Ints
    """Dialogue `k` has the turns `offsets[k]` to `offsets[k + 1]`."""
    turns: Ints
    """The turn-index of each; `NO_TURN` where there is none."""
    counts: Floats
    """O, T and X of each."""
    utterances: list[object]
    """What was said in each, as far as it is there."""
    datasets: list[str] = field(default_factory=list)
    """The data set that each dialogue is of: its folder, file or name."""


def read_logs(source: object, findings: Findings) -> AnnotatedTurns:
    """Read the annotated turns of a folder, a file, an archive, or of documents that are parsed already."""
    names: list[str] = []
    utterances: list[object] = []
    places: list[Place] = []
    sizes: list[int] = []
    indices: list[int] = []
    datasets: list[str] = []
    judgments: list[str] = []
    """A letter per annotator for each turn: so they are counted ten times as fast as one by one."""
    try:
        for dataset, store in open_data(source).items():
            for document in store.read_all():
                dialogue = documents.decode_dialogue(document, findings)
                judged = None if dialogue is None else _pick_annotated(document, dialogue.turns, findings)
                if dialogue is None or judged is None:
                    continue
                names.append(dialogue.name)
                datasets.append(dataset)
                places.append(document.place)
                sizes.append(len(judged))
                judgments += ["".join(map(_letter, turn.annotations)) for turn in judged]
                indices += [turn.index for turn in judged]
                utterances += [turn.utterance for turn in judged]
    except DataError as error:
        findings.refuse(*error.problems)
        raise DataError(findings.problems) from None
    letters, starts = np.frombuffer("".join(judgments).encode(), np.uint8), offsets_of(map(len, judgments))[:-1]
    counts = np.stack([np.add.reduceat(letters == ord(label), starts, dtype=np.float64) for label in "OTX"], axis=1)
    if others := len(letters) - int(counts.sum()):
        findings.remarks.append(f"{others} annotations are none of O, T and X and do not count")
    where = os.fspath(source) if isinstance(source, str | os.PathLike) else "data"
    numbers, offsets = np.array(indices, np.int64), offsets_of(sizes)
    annotated = AnnotatedTurns(where, names, places, offsets, numbers, counts, utterances, datasets)
    _check_annotated(annotated, findings)
    return annotated


def open_data(source: object) -> dict[str, Store]:
    """Open annotated dialogues, by data set; `source` may be a mapping of names to sources."""
    if not isinstance(source, Mapping) or "turns" in source:  # a single dialogue is refused there
        return documents.open_stores(source, LOGS)
    opened: dict[str, Store] = {}
    for name, part in source.items():
        stores = documents.open_stores(part, LOGS)
        opened |= {name if len(stores) == 1 else f"{name}/{inner}": store for inner, store in stores.items()}
    return opened


def _pick_annotated(document: SourceDocument, turns: list[AnnotatedTurn], findings: Findings) -> list[Any] | None:
    """Return the annotated turns of a system; None if one of them cannot be used."""
    judged, unnumbered, others = [], [], []
    for at, turn in enumerate(turns):
        speaker, annotations, index = turn.speaker, turn.annotations, turn.index
        if speaker == documents.USER or (annotations is not UNSET and not annotations):
            continue
        if annotations is UNSET or speaker is UNSET:
            lacking = "annotations" if annotations is UNSET else "speaker"
            what = f"is not a dialogue of the challenge: Object missing required field `{lacking}` - at `$.turns[{at}]`"
            findings.add(ProblemType.UNREADABLE_LOG, document.place, what)
            return None
        judged.append(turn)
        if type(index) is not int or not -1 <= index < _LARGEST_INDEX:
            unnumbered.append(at)
            turn.index = NO_TURN
        if speaker != documents.SYSTEM:
            others.append(at)
    for kind, places, what in (
        (ProblemType.BAD_INDEX, unnumbered, "the turn-index is not a whole number from 0 on"),
        (ProblemType.OTHER_SPEAKER, others, "the speaker is neither S nor U"),
    ):
        if places:
            findings.add(kind, document.place, f"{documents.name_turns(places)} of the list: {what}", len(places))
    return judged


def _check_annotated(annotated: AnnotatedTurns, findings: Findings) -> None:
    """Report dialogues that occur twice, and turns without an O, T or X."""
    seen: dict[str, str] = {}
    for place, dialogue in zip(annotated.places, annotated.dialogues, strict=True):
        if dialogue in seen:
            findings.add(ProblemType.REPEATED_DIALOGUE, place, f"the dialogue {dialogue!r} is also in {seen[dialogue]}")
        seen.setdefault(dialogue, place[0])
    for at, rows in _group_rows(annotated, annotated.counts.sum(axis=1) == 0):
        what = f"{documents.name_turns(annotated.turns[rows].tolist())}: no annotation is O, T or X"
        findings.add(ProblemType.NO_REFERENCE, annotated.places[at], what, len(rows))


def _group_rows(annotated: AnnotatedTurns, chosen: Mask) -> list[tuple[int, Ints]]:
    """Return the chosen rows of each dialogue that has some."""
    rows: Ints = np.flatnonzero(chosen)
    owners, starts = np.unique(np.searchsorted(annotated.offsets, rows, side="right") - 1, return_index=True)
    return list(zip(owners.tolist(), np.split(rows, starts[1:]), strict=False))


def read_chats(source: object) -> list[JsonObject]:
    """Read dialogues as chats without their annotations.

    Every turn that is not the user's is the assistant's. A turn is at the place that its index names; where that is not
    so, as with every other problem, all problems are raised at once.
    """
    findings, chats = Findings(), []
    for store in documents.open_stores(source, LOGS).values():
        for document in store.read_all():
            dialogue = documents.decode_dialogue(document, findings)
            if dialogue is None:
                continue
            turns = dialogue.turns
            moved = [at for at, turn in enumerate(turns) if turn.index != at]
            silent = [at for at, turn in enumerate(turns) if not isinstance(turn.utterance, str)]
            if moved:
                what = f"turn {turns[moved[0]].index} is the {moved[0] + 1}. of the list, counted from index 0"
                findings.add(ProblemType.BAD_INDEX, document.place, what, len(moved))
            if silent:
                what = f"{documents.name_turns(silent)} of the list: no utterance"
                findings.add(ProblemType.UNREADABLE_LOG, document.place, what)
            roles = ("user" if turn.speaker == documents.USER else "assistant" for turn in turns)
            messages = [{"role": role, "content": turn.utterance} for role, turn in zip(roles, turns, strict=True)]
            chats.append({"dialog_id": dialogue.name, "messages": messages})
    findings.raise_or_count()
    return chats


@dataclass
class LabelsReader:
    """A reader of the labels of one detector: one row of numbers per annotated turn."""

    annotated: AnnotatedTurns
    findings: Findings
    match: Match
    name: str
    places: list[Place] = field(default_factory=list)
    """Where the labels of each dialogue are."""
    differing: list[str] = field(default_factory=list)
    unused: int = 0
    several: int = 0

    def read(self, source: Store) -> Floats:
        """Return the labels column."""
        wanted, ends = self.annotated.turns.tolist(), self.annotated.offsets.tolist()
        rows: list[Label] = []
        listed = self._parse_list(source) if isinstance(source, documents.DocumentList) else {}
        for at, dialogue in enumerate(self.annotated.dialogues):
            turns = wanted[ends[at] : ends[at + 1]]
            parsed = self._parse_file(source, dialogue) if isinstance(source, documents.Files) else listed.get(dialogue)
            if parsed is None:
                what = f"there are no labels for the dialogue {dialogue!r}"
                self.findings.add(ProblemType.NO_LABELS, (source.where, None), what, len(turns))
            document = parsed or SourceDocument(source.where, None, None)
            self.places.append(document.place)
            rows += [_NONE] * len(turns) if document.content is None else self._match_turns(dialogue, turns, document)
        self._add_remarks()
        values = _make_matrix(rows)
        self._check(values)
        return values

    def _parse_list(self, source: documents.DocumentList) -> dict[str, SourceDocument]:
        """Parse the documents of a list, by their dialogue-id."""
        documents_by_id: dict[str, SourceDocument] = {}
        for document in map(self._parse, source.read_all()):
            dialogue = _get_id(document)
            if not isinstance(dialogue, str):
                if document.content is not None:
                    self.findings.add(ProblemType.UNREADABLE_LABELS, document.place, "has no dialogue-id")
            elif dialogue in documents_by_id:
                what = f"there are labels for the dialogue {dialogue!r} before"
                self.findings.add(ProblemType.REPEATED_LABELS, document.place, what)
            else:
                documents_by_id[dialogue] = document
        return documents_by_id

    def _parse_file(self, source: documents.Files, dialogue: str) -> SourceDocument | None:
        """Parse the labels file of a dialogue; None if there is no such file."""
        name = dialogue + LABELS
        if name not in source.names:
            return None
        try:
            document = self._parse(source.read_one(name))
        except DataError as error:
            self.findings.add_error(ProblemType.UNREADABLE_LABELS, (f"{source.where}/{name}", None), error)
            return SourceDocument(source.where, None, None)
        other = _get_id(document)
        if document.content is not None and other != dialogue:
            called = "no dialogue" if other is None else f"the dialogue {other!r}"
            what = f"holds the labels of {called}, not {dialogue!r}"
            self.findings.add(ProblemType.OTHER_DIALOGUE, document.place, what)
        return document

    def _parse(self, document: SourceDocument) -> SourceDocument:
        """Return a document with its content parsed; None for content that is no JSON."""
        try:
            return document._replace(content=documents.parse(document, self.findings))
        except DataError as error:
            self.findings.add_error(ProblemType.UNREADABLE_LABELS, document.place, error)
            return document._replace(content=None)

    def _match_turns(self, dialogue: str, turns: list[int], document: SourceDocument) -> list[Label]:
        """Return the labels of each annotated turn of a dialogue."""
        indices, values = self._read_entries(document)
        if indices == turns:
            return values
        by_position = [at if at < len(values) else None for at in range(len(turns))]
        by_index = self._match_indices(indices, turns, document)
        if any(one != other for one, other in zip(by_position, by_index, strict=True) if one is not None):
            self.differing.append(dialogue)
        chosen = by_position if self.match == "position" else by_index
        missing = [turn for turn, at in zip(turns, chosen, strict=True) if at is None]
        if missing:
            entries = f"{len(values)} entries for {len(turns)} annotated turns"
            what = f"{documents.name_turns(missing)}: no labels ({entries})"
            self.findings.add(ProblemType.MISSING_TURNS, document.place, what, len(missing))
        self.unused += len(values) - sum(at is not None for at in chosen)
        return [_NONE if at is None else values[at] for at in chosen]

    def _read_entries(self, document: SourceDocument) -> tuple[list[object], list[Label]]:
        """Return the turn-index of every entry, and its code and probabilities; report what an entry lacks."""
        entries = document.content.get("turns") if isinstance(document.content, dict) else None
        if not isinstance(entries, list):
            self.findings.add(ProblemType.UNREADABLE_LABELS, document.place, 'has no list of "turns"')
            return [], []
        indices, values = list[object](), list[Label]()
        for at, entry in enumerate(entries):
            index, labels = (entry.get("turn-index"), entry.get("labels")) if isinstance(entry, dict) else (None, None)
            indices.append(index)
            if not isinstance(labels, list) or not labels or not isinstance(labels[0], dict):
                self.findings.add(ProblemType.BAD_ENTRY, document.place, f"entry {at}: no labels", 1)
                values.append(_NONE)
                continue
            self.several += len(labels) > 1
            try:
                label, *probabilities = _fields(labels[0])
            except KeyError:
                lacking = ", ".join(key for key in _KEYS if key not in labels[0])
                self.findings.add(ProblemType.BAD_ENTRY, document.place, f"entry {at}: no {lacking}", 1)
                label, *probabilities = (labels[0].get(key, UNSET) for key in _KEYS)
            code = _CODES.get(label, _OTHER) if isinstance(label, str) else np.nan if label is UNSET else _OTHER
            values.append((code, *probabilities))
        return indices, values

    def _match_indices(self, indices: list[object], turns: list[int], document: SourceDocument) -> list[int | None]:
        """Return the entry that names each of the turns, if there is one."""
        first: dict[int, int] = {}
        repeated = [
            index for at, index in enumerate(indices) if type(index) is int and first.setdefault(index, at) != at
        ]
        nameless = sum(type(index) is not int for index in indices)
        if self.match == "turn-index":
            if repeated:
                what = f"{documents.name_turns(repeated)}: labels more than once"
                self.findings.add(ProblemType.REPEATED_LABELS, document.place, what, len(repeated))
            if nameless:
                what = f"{nameless} of {len(indices)} entries have no whole number as turn-index"
                self.findings.add(ProblemType.BAD_ENTRY, document.place, what, nameless)
        return [first.get(turn) for turn in turns]

    def _add_remarks(self) -> None:
        remarks = self.findings.remarks
        if self.differing:
            more = ", ..." if len(self.differing) > _SHOWN_DIALOGUES else ""
            remarks.append(
                f"MATCHING MATTERS for {self.name}: in {len(self.differing)} of {len(self.annotated.dialogues)} "
                f"dialogues ({', '.join(self.differing[:_SHOWN_DIALOGUES])}{more}) the turn-index and the position of "
                f"labels point to different turns. {_MATCHED[self.match]}"
            )
        if self.unused:
            remarks.append(f"{self.name}: entries that belong to no annotated turn: {self.unused}; not used")
        if self.several:
            remarks.append(f"{self.name}: turns with several labels: {self.several}; the first counts")

    def _check(self, values: Floats) -> None:
        """Report invalid labels and probabilities, once for each of their files."""
        code, probabilities = values[:, 0], values[:, 1:]
        labeled = ~np.isnan(code)
        with np.errstate(invalid="ignore"):
            improbable = labeled & ~((probabilities >= 0) & np.isfinite(probabilities)).all(axis=1)
            odd = labeled & ~improbable & ~(np.abs(probabilities.sum(axis=1) - 1) <= SUM_TOLERANCE)
        problems: tuple[tuple[Mask, ProblemType, str], ...] = (
            (code == _OTHER, ProblemType.UNKNOWN_LABEL, "the label is none of O, T and X"),
            (improbable, ProblemType.NOT_PROBABLE, "a probability is below 0 or not finite"),
            (odd, ProblemType.ODD_SUM, "the probabilities do not add up to 1"),
        )
        for bad, kind, what in problems:
            for owner, rows in _group_rows(self.annotated, bad):
                shown = ", ".join(f"{p:g}" for p in probabilities[rows[0]])
                first = "" if kind is ProblemType.UNKNOWN_LABEL else f" (first: {shown})"
                message = f"{documents.name_turns(self.annotated.turns[rows].tolist())}: {what}{first}"
                self.findings.add(kind, self.places[owner], message, len(rows))


def _get_id(document: SourceDocument) -> object:
    return document.content.get("dialogue-id") if isinstance(document.content, dict) else None


def _make_matrix(rows: list[Label]) -> Floats:
    """Return the matrix of all labels; what is no number becomes NaN and is reported with other bad probabilities."""
    try:
        return np.fromiter(chain.from_iterable(rows), np.float64, 4 * len(rows)).reshape(-1, 4)
    except (ValueError, TypeError, OverflowError):
        return np.array([[_to_number(value) for value in row] for row in rows], np.float64).reshape(-1, 4)


def _to_number(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return float("nan")


@dataclass(frozen=True, eq=False, slots=True)
class BreakdownData:
    """Annotated turns, one `Rows` per detector, and warnings about them."""

    annotated: AnnotatedTurns
    systems: list[Rows]
    warnings: list[str] = field(default_factory=list)


def read(data: object, labels: object, match: Match = "turn-index", lenient: bool = False) -> BreakdownData:
    """Read annotated dialogues and the labels of one or several detectors.

    `data`: a folder, a JSONL file or an archive (see `documents`), parsed dialogues, or a mapping of data sets to
    these. `labels`: the same for one detector, a list of paths, or a mapping of names to any of these.
    """
    if match not in get_args(Match):
        raise SettingError(f"labels are matched by {' or by '.join(get_args(Match))}, not by {match!r}")
    findings = Findings(lenient)
    annotated = read_logs(data, findings)
    if not annotated.dialogues:
        problem = Problem(annotated.where, None, "holds no dialogue", "give at least one annotated dialogue")
        raise DataError([*findings.problems, problem])
    names = TextColumn.from_strings(annotated.dialogues)
    # Runs of equal names are one dialogue; a dialogue that occurs twice in a row stays whole, which does no harm.
    dialogues = names.take(np.repeat(np.arange(len(names)), np.diff(annotated.offsets)))
    counts = NumberColumn(annotated.counts)
    fields = {}
    if len(set(annotated.datasets)) > 1:
        sets = RaggedColumn.from_lists([[name] for name in annotated.datasets])
        fields[DATASET] = sets.take(np.repeat(np.arange(len(names)), np.diff(annotated.offsets)))
    systems = []
    for name, source in open_detectors(labels, findings).items():
        values = LabelsReader(annotated, findings, match, name).read(source)
        columns = {inputs.LABELS: NumberColumn(values), inputs.ANNOTATIONS: counts}
        systems.append(Rows(name, columns, dialogues, annotated.turns, source.where, fields=fields))
    return BreakdownData(annotated, systems, findings.raise_or_count())


def open_detectors(labels: object, findings: Findings) -> dict[str, Store]:
    """Open the labels, by the name of their detector."""
    detectors: dict[str, Store] = {}
    sources = _list_sources(labels)
    if not sources:
        findings.refuse(Problem("labels", None, "name no detector", "give the labels of at least one"))
    for name, source in sources:
        try:
            stores = documents.open_stores(source, LABELS)
        except DataError as error:
            # Nothing can be said of a detector that is not there, but the others may have problems too.
            findings.refuse(*error.problems)
            continue
        for inner, store in stores.items():
            called = inner if name is None else name if len(stores) == 1 else f"{name}/{inner}"
            if called in detectors:
                what = f"the detector {called!r} is also in {detectors[called].where}"
                findings.refuse(Problem(store.where, None, what, "name them: NAME=PATH, or {name: path}"))
            detectors.setdefault(called, store)
    return detectors


def read_categories(
    store: Store, held: str, name: str, findings: Findings
) -> Iterator[tuple[tuple[str, object], list[list[str]]]]:
    """Yield each turn (dialogue-id, turn-index) with the categories in a field of its annotations or labels."""
    for document in store.read_all():
        content = documents.parse(document, findings)
        try:
            for turn in content["turns"]:
                values = [judgment.get(name) or [] for judgment in turn.get(held) or ()]
                lists = [[value] if isinstance(value, str) else list(map(str, value)) for value in values]
                yield (content["dialogue-id"], turn["turn-index"]), lists
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(Problem(document.where, None, f"has no turns with {held} ({error})", "check it")) from None


def _list_sources(labels: object) -> list[tuple[str | None, object]]:
    if isinstance(labels, Mapping):
        return [(str(name), source) for name, source in labels.items()]
    if isinstance(labels, str | os.PathLike) or not isinstance(labels, Iterable):
        return [(None, labels)]
    several = list(labels)
    paths = all(isinstance(source, str | os.PathLike) for source in several)
    return [(None, source) for source in several] if paths and several else [("labels", several)]
