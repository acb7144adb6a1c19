"""Building the data packs of MultiWOZ.

`multiwoz` is what the leaderboard uses: goals and bookings of 2.1; texts, spans and states of 2.2; the venues.

The official repository (a base address, or a folder with a copy of it) holds

    data/MultiWOZ_2.1.zip                             data.json: goals, and what is booked by each turn
    data/MultiWOZ_2.2/SPLIT/dialogues_NNN.json        texts and states, for train, dev and test
    data/MultiWOZ_2.2/dialog_acts.json                where values are in the texts
    db/DOMAIN_db.json                                 the venues

and becomes the folder that `suites/multiwoz/data.py` describes, one per split. A folder in that form already
(`goals.json`, `gold_states.json`, ...) is taken over as the split `test`.

Goals: `informable` is `info` in the one spelling; `requestable` are phone, address, postcode, trainID and reference
of `reqt`, and a reference where there is a `book` part; `booking` is `book` without `invalid` and `pre_invalid`.
References are the system's texts with their spans replaced by `[slot]` from left to right, overlapping and "dontcare"
ones passed over, then normalized. States are those of the user turn before, the first value of each slot, "dontcare"
left out.

`multiwoz-2.0`, `multiwoz-2.1` and `multiwoz-2.4` are built from the folder that the archive of that version unpacks to:
`data.json` (goals, texts and states of all dialogues), `valListFile` and `testListFile` (ids, a line each, `.json` or
`.txt`). Venues and references are those of the installed pack `multiwoz`, so that versions differ in what annotators
said and in nothing else. States are `semi` and `book` of each system turn; booking slots are called `bookday` and so
on, and what is empty, not mentioned or of no interest to the user is left out.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from dialeval.core import validation
from dialeval.core.errors import DataError, NeedError, Problem, SettingError
from dialeval.core.files import cache_folder
from dialeval.core.validation import JsonObject
from dialeval.io.packs import Progress
from dialeval.suites.multiwoz.data import VERSION_FILE, read_task
from dialeval.suites.multiwoz.turns import make_normalizer
from dialeval.suites.multiwoz.venues import MULTIWOZ, Ontology, load_ontology

DOMAINS = ("restaurant", "hotel", "attraction", "train")
"""The domains with venues."""
SPLITS: Mapping[str, int] = {"train": 17, "dev": 2, "test": 2}
"""The number of dialogue files of each split."""
GOALS_ZIP = "data/MultiWOZ_2.1.zip"
GOALS_FILE = "data/MultiWOZ_2.1/data.json"
ACTS = "data/MultiWOZ_2.2/dialog_acts.json"
REFERENCES = "mwz22"
STANDARD = "2.2"
"""The version of the pack `multiwoz`."""
FILES = ("goals.json", "booked_domains.json", "gold_states.json", "user_turns.json")
PARTS = (*FILES, f"references/{REFERENCES}.json")
"""The files of a split, in the order in which the parts of a dialogue are listed; references may be missing."""
_Dialogues = dict[str, tuple[Any, ...]]
Object: TypeAlias = Mapping[str, Any]
"""An object of a JSON document."""
_MOST_BYTES = 1 << 30
_REMEDY = "get the whole repository"
_WORDS = {"phone": "PHONE", "address": "ADDRESS", "postcode": "POST", "trainid": "TRAINID", "reference": "REFERENCE"}


def list_dialogue_files(split: str) -> list[str]:
    """Return the files of a split in the official repository."""
    return [f"data/MultiWOZ_2.2/{split}/dialogues_{number:03}.json" for number in range(1, SPLITS[split] + 1)]


def build_local(source: Path, target: Path, version: str = STANDARD) -> None:
    """Build the pack of a version from a folder."""
    if version != STANDARD:
        _build_version(source, target, version)
        return
    if (source / "goals.json").is_file():
        _copy_split(source, target)
        return
    if not (source / ACTS).is_file():
        what = f"holds neither goals.json nor {ACTS}"
        remedy = "name a copy of the official repository, or a folder with goals.json, gold_states.json and database/"
        raise DataError(Problem(str(source), None, what, remedy))
    _build(source, target)


def build_remote(address: str, target: Path, progress: Progress | None, version: str = STANDARD) -> None:
    """Build the pack `multiwoz` from a base address; what is downloaded already is not fetched again."""
    if version != STANDARD:
        command = f"dialeval data add multiwoz-{version} --from DIR"
        raise SettingError(f"MultiWOZ {version} is built from a folder: {command}")
    from dialeval.io.download import check_address, download

    base = check_address(address).rstrip("/")
    place = cache_folder("downloads", f"multiwoz-{hashlib.sha256(base.encode()).hexdigest()[:16]}")
    venues, dialogues = (f"db/{domain}_db.json" for domain in DOMAINS), map(list_dialogue_files, SPLITS)
    for name in (GOALS_ZIP, ACTS, *venues, *chain.from_iterable(dialogues)):
        file = place / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            download(f"{base}/{name}", file, progress)
    try:
        _build(place, target)
    finally:
        shutil.rmtree(place, ignore_errors=True)  # whole, it is in the pack; damaged, it has to come again


def _copy_split(source: Path, target: Path) -> None:
    """Copy a folder that has the form of a pack's split."""
    from dialeval.suites.multiwoz.venues import load_venues

    if (source / "splits.json").is_file():
        raise DataError(Problem(str(source), None, "has splits already", "pass it as --data"))
    task = read_task(source)
    database = source / "database" if (source / "database").is_dir() else source
    load_venues(load_ontology(MULTIWOZ), database)
    sets = sorted(task.references.sets) if task.references else []
    for name in (*FILES, *(f"references/{one}.json" for one in sets)):
        if (source / name).is_file():
            _copy(source / name, target / "test" / name)
    for domain in DOMAINS:
        _copy(database / f"{domain}_db.json", target / "database" / f"{domain}_db.json")
    if (source / VERSION_FILE).is_file():
        _copy(source / VERSION_FILE, target / VERSION_FILE)
    _write(target / "splits.json", {"test": list(task.turns)})


def _build(source: Path, target: Path) -> None:
    """Build all splits from a copy of the official repository."""
    ontology = load_ontology(MULTIWOZ)
    normalize = make_normalizer(ontology.words)
    corpus, acts = _read_corpus(source), _read_by_id(source / ACTS)
    splits: dict[str, _Dialogues] = {split: {} for split in SPLITS}
    for split, parts in splits.items():
        for dialogue in _read_dialogues(source, split):
            with _explain_problems(f"{source}: a dialogue of {split}"):
                name = _normalize_id(dialogue["dialogue_id"])
            if name in corpus:
                with _explain_problems(f"{source}: {name}"):
                    turns, entry = list(_pair_turns(dialogue)), corpus[name]
                    parts[name] = (
                        convert_goal(entry["goal"], ontology),
                        list_booked_domains(entry["log"], len(turns)),
                        [ontology.states(convert_state(user)) for user, _ in turns],
                        [str(user.get("utterance", "")) for user, _ in turns],
                        [normalize(delexicalize_turn(system, acts.get(name, {}))) for _, system in turns],
                    )
    _write_pack(target, splits, source / "db", STANDARD)


def _build_version(source: Path, target: Path, version: str) -> None:
    """Build all splits of a version that has its dialogues in one file."""
    from dialeval.io.packs import find_pack

    standard = find_pack("multiwoz")
    if standard is None:
        raise NeedError("venues and references are those of the pack multiwoz; run first: dialeval data add multiwoz")
    if not (source / "data.json").is_file():
        remedy = f"name the folder that the archive of MultiWOZ {version} unpacks to"
        raise DataError(Problem(str(source), None, "does not hold data.json", remedy))
    ontology, corpus = load_ontology(MULTIWOZ), _read_by_id(source / "data.json")
    names = {split: _read_ids(source, f"{name}ListFile") for split, name in (("dev", "val"), ("test", "test"))}
    held_out = {name for ids in names.values() for name in ids}
    names = {"train": [name for name in corpus if name not in held_out], **names}
    splits: dict[str, _Dialogues] = {split: {} for split in names}
    for split, parts in splits.items():
        for name in names[split]:
            with _explain_problems(f"{source}: {name}"):
                goal, log = corpus[name]["goal"], corpus[name]["log"]
                states = [ontology.states(convert_annotated_state(turn["metadata"], ontology)) for turn in log[1::2]]
                users = [str(turn["text"]) for turn in log[::2]][: len(states)]
                parts[name] = convert_goal(goal, ontology), list_booked_domains(log, len(states)), states, users
        references = standard.path / split / f"references/{REFERENCES}.json"
        if references.is_file():
            texts = validation.read_json(references, dict[str, list[str]], _REMEDY)
            if all(len(texts.get(name, ())) == len(part[2]) for name, part in parts.items()):
                splits[split] = {name: (*part, texts[name]) for name, part in parts.items()}
    _write_pack(target, splits, standard.path / "database", version)


def _write_pack(target: Path, splits: Mapping[str, _Dialogues], venues: Path, version: str) -> None:
    """Write the files of all splits, each with the parts of its dialogues, and the venues."""
    for split, dialogues in splits.items():
        many = min(map(len, dialogues.values()), default=len(PARTS))
        for at, name in enumerate(PARTS[:many]):
            _write(target / split / name, {dialogue: parts[at] for dialogue, parts in dialogues.items()})
    for domain in DOMAINS:
        _copy(venues / f"{domain}_db.json", target / "database" / f"{domain}_db.json")
    _write(target / "splits.json", {split: list(dialogues) for split, dialogues in splits.items()})
    _write(target / VERSION_FILE, f"multiwoz-{version}")


def _read_ids(source: Path, stem: str) -> list[str]:
    """Return the ids of a split, a line each."""
    file = next((file for suffix in ("json", "txt") if (file := source / f"{stem}.{suffix}").is_file()), None)
    if file is None:
        raise DataError(Problem(str(source), None, f"holds neither {stem}.json nor {stem}.txt", _REMEDY))
    return [_normalize_id(line.strip()) for line in file.read_text("utf-8").splitlines() if line.strip()]


def convert_annotated_state(metadata: Object, ontology: Ontology) -> dict[str, dict[str, str]]:
    """Return the state of a system turn of 2.0, 2.1 or 2.4."""
    state: dict[str, dict[str, str]] = {}
    for domain, part in metadata.items():
        booking = {f"book{slot}": value for slot, value in part.get("book", {}).items() if slot != "booked"}
        for slot, value in {**part.get("semi", {}), **booking}.items():
            if value and value not in {"none", "not mentioned", *ontology.dont_care}:
                state.setdefault(domain, {})[slot] = str(value)
    return state


def _read_corpus(source: Path) -> Object:
    """Return the dialogues of 2.1 by id, from the folder or from its archive."""
    from dialeval.io.download import unpack

    if (source / GOALS_FILE).is_file():
        return _read_by_id(source / GOALS_FILE)
    if not (archive := source / GOALS_ZIP).is_file():
        raise DataError(Problem(str(source), None, f"does not hold {GOALS_ZIP}", _REMEDY))
    with tempfile.TemporaryDirectory(prefix="dialeval-") as folder:
        unpack(archive, ["data.json"], Path(folder), _MOST_BYTES, str(archive))
        return _read_by_id(Path(folder) / "data.json")


def _read_dialogues(source: Path, split: str) -> Iterator[Object]:
    for name in list_dialogue_files(split):
        yield from validation.read_json(source / name, list[JsonObject], _REMEDY)


def _pair_turns(dialogue: Object) -> Iterator[tuple[Object, Object]]:
    """Yield each system turn with the user turn before it."""
    user: Object = {}
    for turn in dialogue["turns"]:
        if turn["speaker"].upper() == "USER":
            user = turn
        else:
            yield user, turn


def convert_goal(goal: Object, ontology: Ontology) -> Object:
    """Return a goal of 2.1 as it is judged."""
    goals: dict[str, object] = {}
    for domain in ontology.domains:
        if not (part := goal.get(domain)):
            continue
        informable = {slot: str(value) for slot, value in (part.get("info") or {}).items()}
        asked = [_WORDS[name] for slot in part.get("reqt") or () if (name := ontology.states.slot(slot)) in _WORDS]
        book = part.get("book") or {}
        if "book" in part:
            asked.append("REFERENCE")
        goals[domain] = {
            "informable": dict(ontology.states.normalize_domain(informable)),
            "requestable": list(dict.fromkeys(asked)),
            "booking": {slot: str(value) for slot, value in book.items() if slot not in ("invalid", "pre_invalid")},
        }
    return goals


def list_booked_domains(log: Sequence[Object], turns: int) -> list[list[str]]:
    """Return the domains that are booked by each system turn, which is every second one of a log of 2.1."""
    booked: dict[str, None] = {}
    by_turn: list[list[str]] = []
    for turn in log[1::2]:
        metadata = (turn.get("metadata") or {}).items()
        booked |= dict.fromkeys(domain for domain, part in metadata if part.get("book", {}).get("booked"))
        by_turn.append(list(booked))
    return [*by_turn, *[list(booked)] * (turns - len(by_turn))][:turns]


def convert_state(turn: Object) -> dict[str, dict[str, str]]:
    """Return the state after a user turn of 2.2."""
    state: dict[str, dict[str, str]] = {}
    for frame in turn.get("frames") or ():
        for name, values in ((frame.get("state") or {}).get("slot_values") or {}).items():
            domain, _, slot = name.partition("-")
            if values and values[0] != "dontcare":
                state.setdefault(domain, {})[slot] = str(values[0])
    return state


def delexicalize_turn(turn: Object, acts: Object) -> str:
    """Return the text of a system turn with its spans as placeholders."""
    text: str = turn["utterance"]
    spans = (acts.get(str(turn["turn_id"])) or {}).get("span_info") or []
    parts, end = [], 0
    for _, slot, value, start, stop in sorted(spans, key=lambda span: int(span[3])):
        if value != "dontcare" and int(start) >= end:
            parts += [text[end : int(start)], f"[{slot}]"]
            end = int(stop)
    return "".join([*parts, text[end:]])


def _read_by_id(path: Path) -> Object:
    """Return the entries of an object in a file by the ids of their dialogues."""
    document = validation.read_json(path, dict[str, JsonObject], _REMEDY)
    return {_normalize_id(name): entry for name, entry in document.items()}


def _normalize_id(name: str) -> str:
    return name.lower().removesuffix(".json")


@contextmanager
def _explain_problems(where: str) -> Iterator[None]:
    """Turn what a broken entry raises into a problem that names it."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"is not in the official form ({type(error).__name__}: {error})"
        raise DataError(Problem(where, None, what, "get the data from the official address")) from None


def _write(path: Path, content: object) -> None:
    import orjson

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    validation.size_of(source, _REMEDY)
    with validation.explain_errors(source, _REMEDY):
        shutil.copyfile(source, target)
