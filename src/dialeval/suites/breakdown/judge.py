"""Detect breakdowns: a judge reads chats, and predicts of every turn how annotators would call it.

The results are the documents of a detector in the breakdown challenge, one per dialogue, which `dialeval breakdown`
evaluates (`suites.breakdown.documents`). A turn that opens its dialogue has nothing to break; it gets the mean shares.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import orjson

from dialeval.core import inputs
from dialeval.core.account import MISSING
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import write_bytes
from dialeval.core.rowtable import NO_TURN
from dialeval.core.validation import JsonObject, dump
from dialeval.io.chats import INDEX
from dialeval.io.opening import PathSource
from dialeval.io.reading import read_files, read_responses
from dialeval.io.rows import Rows
from dialeval.judges.judge import DialogueJudge, label_shares
from dialeval.metrics.breakdown import LABELS
from dialeval.suites.breakdown.plain import LABELS as ENDING
from dialeval.suites.breakdown.reading import read_chats

Document = JsonObject
_DIGITS = 6


def detect(
    chats: Sequence[PathSource] = (),
    data: object = None,
    *,
    judge_dir: PathSource | None = None,
    encoder: PathSource | None = None,
    fields: Mapping[str, str] | None = None,
) -> list[Document]:
    """Return the labels of every turn, a document per dialogue.

    `chats` are files of chats or of rows with contexts, `data` dialogues of the breakdown challenge. `judge_dir` is the
    folder of a judge if not the shipped one, `encoder` where its encoder lies.
    """
    if not chats and data is None:
        raise SettingError("name the chats, or dialogues of the challenge (-p)")
    systems = read_files(chats, fields, keep=[INDEX]) if chats else []
    if data is not None:
        systems += read_responses(read_chats(data), keep=[INDEX])
    opened = DialogueJudge(judge_dir, encoder)
    documents: dict[str, Document] = {}
    for rows in systems:
        for name, turn, labels in _label_turns(rows, opened):
            document = documents.setdefault(name, {"dialogue-id": name, "turns": []})
            if any(entry["turn-index"] == turn for entry in document["turns"]):
                what = f"turn {turn} of the dialogue {name!r} occurs twice"
                raise DataError(Problem(rows.where, None, what, "label one system at a time, and give dialogues an id"))
            document["turns"].append({"turn-index": turn, "labels": [labels]})
    return list(documents.values())


def _label_turns(rows: Rows, judge: DialogueJudge) -> list[tuple[str, int, dict[str, object]]]:
    """Return for each row its dialogue, its turn and its label."""
    if inputs.CONTEXT not in rows.columns:
        what = "has no contexts, so its turns cannot be labeled"
        raise DataError(Problem(rows.where, None, what, "give chats (`messages`), or rows with a context"))
    scale, contexts = judge.weights.breakdown, list(rows.columns[inputs.CONTEXT])
    shares = judge.verdicts(contexts, list(rows.responses), [()] * len(rows)).breakdown
    shares = np.where(np.isnan(shares), scale.mean, shares)
    table = rows.table()
    names = [table.dialogues[number] if table.dialogues else None for number in table.clusters.tolist()]
    turns = np.arange(len(rows)) - table.offsets[table.clusters] if table.turns is None else table.turns
    if INDEX in rows.fields:  # of chats the challenge counts all messages
        places = zip(rows.fields[INDEX], turns.tolist(), strict=True)
        turns = np.array([int(texts[0]) if texts else turn for texts, turn in places])
    missing = list(rows.columns[inputs.OUTCOME]) if inputs.OUTCOME in rows.columns else [[]] * len(rows)
    labeled = []
    for row, (code, *probabilities) in enumerate(label_shares(scale, shares).tolist()):
        said = {f"prob-{label}": round(share, _DIGITS) for label, share in zip(LABELS, probabilities, strict=True)}
        if missing[row] == [MISSING]:
            continue
        turn = int(turns[row])
        place = row if turn == NO_TURN else turn
        labeled.append((names[row] or f"row {row + 1}", place, {"breakdown": LABELS[int(code)], **said}))
    return labeled


def save_labels(documents: Sequence[Document], output: str | os.PathLike[str]) -> None:
    """Write labels: into a `.jsonl` file, a line per dialogue, or a folder with a file for each."""
    output = Path(output)
    if output.suffix == ".jsonl":
        write_bytes(output, b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in documents))
        return
    for document in documents:
        name = str(document["dialogue-id"])
        if not name or "/" in name or "\0" in name or len(name.encode()) > 200:
            remedy = "write one file for all dialogues: -o labels.jsonl"
            what = f"the dialogue {name[:60]!r} cannot be the name of a file"
            raise DataError(Problem(str(output), None, what, remedy))
    for document in documents:
        write_bytes(output / f"{document['dialogue-id']}{ENDING}", dump(document))
