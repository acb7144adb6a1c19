"""Detect breakdowns: a judge reads chats, and predicts of every turn how annotators would call it.

The results are the documents of a detector in the breakdown challenge, one per dialogue, which `dialeval breakdown`
evaluates (`data.breakdown.documents`). A turn that opens its dialogue has nothing to break; it gets the mean shares.

    label = O where T + X < cut, else T or X, whichever the head says is more probable

`fitted` finds how much the head counts in addition to the mean shares (`dialogue_judge`): so that the system that is
helped least is helped most, compared with predicting the mean for every turn. The cut is the lowest one that helps that
system at least half as much as the best one, compared with predicting X for every turn: a new system may break down
more often than all those known, and then every O costs. `left_out` estimates what that is worth on systems that neither
head nor scale have seen, next to floors and ceilings (`metrics.breakdown.detection`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Need
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import write_bytes
from dialeval.core.rowtable import NO_TURN
from dialeval.core.validation import dump
from dialeval.io.judge_settings import BreakdownScale
from dialeval.io.opening import PathSource
from dialeval.io.reading import read_files, read_responses
from dialeval.io.rows import Rows
from dialeval.judges.judge import DialogueJudge, shrunk
from dialeval.suites.breakdown import metrics
from dialeval.suites.breakdown.documents import LABELS as ENDING
from dialeval.suites.breakdown.metrics import LABELS, Codes, DetectionCounts, O, T, X, shares
from dialeval.suites.breakdown.reading import read_chats

Document = dict[str, Any]
Figures = dict[str, float]
"""What is reported of a detector, by name."""

_DIGITS = 6
_WEIGHTS = np.arange(0, 1.21, 0.05)
_CUTS = 120
"""Cuts that are tried, up to the one that leaves three turns of ten without a breakdown."""
_MOST_O = 0.6


def detect(
    chats: Sequence[PathSource] = (),
    data: Any = None,
    *,
    judge: PathSource | None = None,
    encoder: PathSource | None = None,
    fields: Mapping[str, str] | None = None,
) -> list[Document]:
    """The labels of every turn, a document per dialogue.

    `chats` are files of chats or of rows with contexts, `data` dialogues of the breakdown challenge. `judge` is the
    folder of a judge if not the shipped one, `encoder` where its encoder lies.
    """
    if not chats and data is None:
        raise SettingError("name the chats, or dialogues of the challenge (-p)")
    systems = read_files(chats, fields) if chats else []
    if data is not None:
        systems += read_responses(read_chats(data))
    opened = DialogueJudge(judge, encoder)
    documents: dict[str, Document] = {}
    for rows in systems:
        for name, turn, labels in _labels(rows, opened):
            document = documents.setdefault(name, {"dialogue-id": name, "turns": []})
            if any(entry["turn-index"] == turn for entry in document["turns"]):
                what = f"turn {turn} of the dialogue {name!r} is there twice"
                raise DataError(Problem(rows.where, None, what, "label one system at a time, and give dialogues an id"))
            document["turns"].append({"turn-index": turn, "labels": [labels]})
    return list(documents.values())


def _labels(rows: Rows, judge: DialogueJudge) -> list[tuple[str, int, dict[str, Any]]]:
    """By row: its dialogue, its turn, and what is said of it."""
    if Need.CONTEXT not in rows.columns:
        what = "has no contexts, so nothing can be said of its turns"
        raise DataError(Problem(rows.where, None, what, "give chats (`messages`), or rows with a context"))
    scale, contexts = judge.weights.breakdown, list(rows.columns[Need.CONTEXT])
    shares = judge.verdicts(contexts, list(rows.responses), [()] * len(rows)).breakdown
    shares = np.where(np.isnan(shares), scale.mean, shares)
    table = rows.table()
    names = [table.dialogues[number] if table.dialogues else None for number in table.clusters.tolist()]
    turns = np.arange(len(rows)) - table.offsets[table.clusters] if table.turns is None else table.turns
    found = []
    for row, (code, *probabilities) in enumerate(labeled(scale, shares).tolist()):
        said = {f"prob-{label}": round(share, _DIGITS) for label, share in zip(LABELS, probabilities, strict=True)}
        turn = int(turns[row])
        place = row if turn == NO_TURN else turn
        found.append((names[row] or f"row {row + 1}", place, {"breakdown": LABELS[int(code)], **said}))
    return found


def save_labels(documents: Sequence[Document], output: str | os.PathLike[str]) -> None:
    """Write labels: into a `.jsonl` file, a line per dialogue, or a folder with a file for each."""
    output = Path(output)
    if output.suffix == ".jsonl":
        write_bytes(output, b"".join(orjson.dumps(each, option=orjson.OPT_APPEND_NEWLINE) for each in documents))
        return
    for document in documents:
        name = str(document["dialogue-id"])
        if not name or "/" in name or "\0" in name or len(name.encode()) > 200:
            remedy = "write one file for all dialogues: -o labels.jsonl"
            raise DataError(
                Problem(str(output), None, f"the dialogue {name[:60]!r} cannot be the name of a file", remedy)
            )
    for document in documents:
        write_bytes(output / f"{document['dialogue-id']}{ENDING}", dump(document))


def labeled(scale: BreakdownScale, found: Floats) -> Floats:
    """Shares with the code of the label before them, as `Need.LABELS` has them."""
    # The mean would decide between T and X almost everywhere, so it is taken out again.
    _, possible, sure = np.array(scale.mean) ** (1 - scale.weight)
    broken = np.where(found[:, X] * possible >= found[:, T] * sure, X, T)
    codes = np.where(found[:, T] + found[:, X] < scale.cut, O, broken).astype(np.float64)
    return np.column_stack([np.where(np.isnan(found[:, O]), np.nan, codes), found])


def figures(labels: Floats, counts: Floats) -> Figures:
    """What the challenge reports of a detector's labels: JS divergence, squared error, and F of T and X together."""
    share = shares(counts)
    codes = Codes.of(labels, share, 0.0)
    said, real = (codes.label == T) | (codes.label == X), codes.lenient == X
    left, right = (metrics.grouped(each, "o-t-x") for each in (labels[:, 1:], share))
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0
        far = float(metrics.jensen_shannon(left, right).mean())
    found = DetectionCounts(float((said & real).sum()), float(said.sum()), float(real.sum()))
    return {"jsd": far, "mse": float(metrics.squared_error(left, right).mean()), "f1-tx": found.f1}


def fitted(said: Floats, counts: Floats, systems: Ints) -> BreakdownScale:
    """The scale for what the head says of turns whose systems it has not learned from, and what annotators said."""
    own = [systems == system for system in np.unique(systems)]
    mean = metrics.mean_distribution(counts)
    level = (float(mean[O]), float(mean[T]), float(mean[X]))
    floors = [figures(np.tile([O, *mean], (len(rows), 1))[rows], counts[rows]) for rows in own]

    def nearer(weight: float) -> Iterator[float]:
        found = shrunk(BreakdownScale(weight, level), said)
        for rows, floor in zip(own, floors, strict=True):
            here = figures(labeled(BreakdownScale(), found[rows]), counts[rows])
            yield from (1 - here[name] / max(floor[name], 1e-12) for name in ("jsd", "mse"))

    weight = float(max(_WEIGHTS.tolist(), key=lambda tried: min(nearer(tried))))
    found = shrunk(BreakdownScale(weight, level), said)
    always = [figures(metrics.constant(X, len(rows))[rows], counts[rows])["f1-tx"] for rows in own]

    def better(cut: float) -> Iterator[float]:
        labels = labeled(BreakdownScale(weight, level, cut), found)
        return (figures(labels[rows], counts[rows])["f1-tx"] - floor for rows, floor in zip(own, always, strict=True))

    cuts = np.quantile(found[:, T] + found[:, X], np.linspace(0, _MOST_O, _CUTS))
    gains = np.array([min(better(cut)) for cut in cuts.tolist()])
    cut = cuts[np.flatnonzero(gains >= gains.max() / 2)[0]] if gains.max() > 0 else cuts[0]
    return BreakdownScale(round(weight, 2), level, round(float(cut), 4))


def left_out(said: Floats, counts: Floats, systems: Ints, names: Sequence[str]) -> dict[str, dict[str, Figures]]:
    """By system and detector: its figures, with a scale that was fitted to the other systems; floors and ceilings.

    `said` is what the head says of turns whose systems it has not learned from.
    """
    table = {}
    for number, name in enumerate(names):
        own = systems == number
        if own.all() or not own.any():
            continue
        scale = fitted(said[~own], counts[~own], systems[~own])
        columns = {
            "judge": labeled(scale, shrunk(scale, said[own])),
            **metrics.floors(counts[own], [0.0], counts[~own]),
        }
        found = {detector: figures(labels, counts[own]) for detector, labels in columns.items()}
        for ceiling, (_, labels, others) in (
            ("ceiling/annotator", metrics.annotators(counts[own])),
            ("ceiling/oracle", metrics.oracle(counts[own])),
        ):
            found[ceiling] = figures(labels, others)
        table[name] = found
    return table
