"""The files of the original programs: grouped references, task dialogues, breakdown labels."""

from __future__ import annotations

import io
import json
import tarfile
from functools import cache
from pathlib import Path

from click import ClickException

import dialeval
from dialeval import sample_data
from dialeval.breakdown import evaluate_breakdown
from dialeval.cli.compat import compat
from dialeval.core.errors import DialevalError
from dialeval.io.reading import read_responses
from dialeval.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus
from dialeval.multiwoz import Evaluator
from dialeval.sgd import evaluate_sgd, make_original_output
from dialeval.suites.breakdown.reading import read_chats
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses
from dialeval.suites.multiwoz.venues import load_ontology
from fuzz.harness import Files, target

SAMPLE = sample_data.folder()
TOWN = SAMPLE / "town"


def below(folder: Path, *patterns: str) -> Files:
    """Files of a folder by their names in it."""
    paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


# dialog-eval


def response_folders() -> list[Files]:
    """A folder of responses and what belongs to them, under names that say nothing about their contents."""
    parts = below(SAMPLE, "references.txt", "contexts.txt", "vectors.txt")
    few = {name: b"".join(content.splitlines(keepends=True)[:8]) for name, content in parts.items()}
    named = {"targets.csv": few["references.txt"], "sources.tsv": few["contexts.txt"], "v.npy": few["vectors.txt"]}
    systems = ("responses/one.json", "responses/two words.txt", "responses/vocab.txt", "responses/three")
    return [{**named, "train.parquet": few["contexts.txt"], **dict.fromkeys(systems, few["references.txt"])}]


@target("dialog-eval", seeds=response_folders)
def dialog_eval(folder: Path) -> None:
    """The compatibility command, which reads every file as lines of text."""
    names = {"-ttt": "targets.csv", "-tts": "sources.tsv", "-tns": "train.parquet", "-vv": "v.npy", "-r": "responses"}
    flags = [part for flag, name in names.items() for part in (flag, str(folder / name))]
    try:
        compat.main(["dialog-eval", *flags], standalone_mode=False)
    except ClickException as error:
        raise DialevalError(error.message) from None
    (folder / "responses" / "metrics.txt").unlink()  # what it is to write


# LSDSCC


def coverage_files() -> list[Files]:
    """Hypotheses and groups, as lines and as JSON."""
    files = below(SAMPLE / "lsdscc", "varied.txt", "groups.json")
    named = {"hypotheses.txt": files["varied.txt"], "groups.json": files["groups.json"]}
    lists = [line.split("</s>") for line in files["varied.txt"].decode().splitlines()]
    return [named, {"hypotheses.json": json.dumps(lists).encode(), "groups.json": files["groups.json"]}]


@target("reference-groups", seeds=coverage_files)
def reference_groups(folder: Path) -> None:
    """Both front doors of LSDSCC."""
    hypotheses = next(iter(sorted(folder.glob("hypotheses.*"))), folder / "hypotheses.txt")
    groups = folder / "groups.json"
    evaluate_hypotheses(hypotheses, reference_groups=groups, execution=dialeval.Execution(threads=1))
    if hypotheses.suffix == ".txt":
        compute_score_on_corpus(HypothesisSet.load_corpus(hypotheses), ReferenceSet.load_json_corpus(groups))


# MultiWOZ


@cache
def evaluator() -> Evaluator:
    return Evaluator(data="town", dst=True)


ODD_VALUES = (
    "2 : 15 pm",
    "2 :15 pm",
    "2:15. pm",
    "",
    "１４:１５",
    "² pm",
    "six:15 pm",
    "14:15 o'clock",
    "17:1515",
    "-2 pm",
)
"""Times of day in odd spellings, and no value."""


def few_predictions() -> list[Files]:
    """Some dialogues of the sample's systems."""
    seeds: list[Files] = []
    for name, content in below(TOWN / "predictions", "*.json").items():
        few = dict(list(json.loads(content).items())[:3])
        seeds.append({name: json.dumps(few).encode()})
        for at, slots in enumerate(
            slots for turns in few.values() for turn in turns for slots in turn["state"].values()
        ):
            slots |= {slot: ODD_VALUES[(at + place) % len(ODD_VALUES)] for place, slot in enumerate(slots)}
            slots["leave"] = slots["arrive"] = ODD_VALUES[at % len(ODD_VALUES)]
        seeds.append({name: json.dumps(few).encode()})
    return seeds


@target("predictions", seeds=few_predictions)
def predictions(folder: Path) -> None:
    """Figures, explanations and transcripts of predictions, and the strict rules."""
    path = next(iter(sorted(folder.glob("*"))), folder / "x.json")
    plain = evaluator()
    plain.with_transcripts(plain.run(path, threads=1), path)
    strict = Evaluator(data=plain.task, dst=True, strict=True, fallback="turn", unify_booking=True)
    strict.run(path, threads=1)
    strict.failures(path)


def town_files() -> list[Files]:
    """All that describes a task."""
    return [below(TOWN, "*.json", "*.toml", "database/*", "references/*")]


PREDICTIONS = json.loads((TOWN / "predictions" / "patient.json").read_bytes())


@target("task-data", seeds=town_files)
def task_data(folder: Path) -> None:
    """Goals, states, venues, references and rules; and an evaluation with them."""
    Evaluator(data=folder, dst=True).run(PREDICTIONS, threads=1)


@target("ontology", seeds=lambda: [below(TOWN, "ontology.toml")])
def ontology(folder: Path) -> None:
    """The rules of a task."""
    load_ontology(folder / "ontology.toml")


# Schema-guided dialogues

GUIDED = SAMPLE / "frames"


def guided_files() -> list[Files]:
    """Schema, references and predictions, as folders and as files of two dialogues with spans."""
    folders = below(GUIDED, "references/*.json", "steady/*.json", "train-schema.json")
    two = json.loads(folders["references/dialogues_001.json"])[:2]
    for turn in (turn for dialogue in two for turn in dialogue["turns"]):
        for frame in turn["frames"]:
            frame["slots"] = [{"slot": "inn_name", "start": 0, "exclusive_end": 5}]
    by_id = {dialogue["dialogue_id"]: dialogue for dialogue in two}
    files = {"references.json": json.dumps(two).encode(), "steady.json": json.dumps(by_id).encode()}
    return [folders, {**files, "schema.json": folders["references/schema.json"]}]


@target("guided-dialogues", seeds=guided_files)
def guided_dialogues(folder: Path) -> None:
    """Figures of frames, by group of services."""
    train = folder / "train-schema.json"
    predicted, true = (
        folder / name if (folder / name).is_dir() else folder / f"{name}.json" for name in ("steady", "references")
    )
    run = evaluate_sgd(predicted, true, train_schema=train if train.exists() else None, metrics="all")
    make_original_output(next(iter(run.values())))


# Breakdown detection


def challenge_files() -> list[Files]:
    """Logs and labels of two dialogues, as folders and as lines."""
    folders, lines = dict[str, bytes](), dict[str, bytes]()
    for kind, inside in (("data", "data/l*.json"), ("labels", "keywords/l*.json")):
        found = below(SAMPLE / "breakdown", inside)
        folders |= {f"{kind}/{Path(name).name}": content for name, content in found.items()}
        lines[f"{kind}.jsonl"] = b"".join(json.dumps(json.loads(each)).encode() + b"\n" for each in found.values())
    return [folders, lines, {"data.tgz": _tar(folders, "data"), "labels.tgz": _tar(folders, "labels")}]


def _tar(files: Files, folder: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            if name.startswith(folder):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    made = bytearray(out.getvalue())
    made[4:8] = bytes(4)  # the time of packing
    return bytes(made)


def _store(folder: Path, kind: str) -> Path:
    there = [path for path in (folder / kind, folder / f"{kind}.jsonl", folder / f"{kind}.tgz") if path.exists()]
    return there[0] if there else folder / kind


@target("breakdown", seeds=challenge_files)
def breakdown(folder: Path) -> None:
    """Logs and labels, matched in both ways, read strictly or not."""
    data, labels = _store(folder, "data"), _store(folder, "labels")
    evaluate_breakdown(data, labels, match="position", lenient=True)
    evaluate_breakdown(data, labels)


@target("breakdown-chats", seeds=challenge_files)
def breakdown_chats(folder: Path) -> None:
    """The dialogues of the challenge as chats, which a judge labels."""
    read_responses(read_chats(_store(folder, "data")))
