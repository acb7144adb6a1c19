"""The challenge's eval.py by the standard library alone: its functions for one turn, and its lines for plain files.

Loading NumPy takes several times as long as this evaluation of fifty dialogues. `evaluate_folders` therefore answers
for `dialeval compat dbdc` wherever nothing has to be reported; everything else is a matter for `evaluation`, which
gives the same lines. The tests compare both.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

NAMES = ("O", "T", "X")
LOGS, LABELS = "log.json", ".labels.json"
"""How the names of files with dialogues and with labels end; any name that ends in `log.json` is a dialogue's."""
Shares = tuple[float, float, float]
"""A number for O, T and X."""
SUM_TOLERANCE = 0.02
"""How far a sum of probabilities may be from 1: three that are rounded to two decimals can be off by 0.015."""


def calc_distribution(annotations: Iterable[Mapping[str, object]]) -> list[float]:
    """Return the fractions of O, T and X among the annotations of a turn; NaN where there is none of these."""
    labels = [annotation["breakdown"] for annotation in annotations]
    counts = [labels.count(name) for name in NAMES]
    return [count / sum(counts) if any(counts) else math.nan for count in counts]


def majority_label(prob_O: float, prob_T: float, prob_X: float, threshold: float) -> str:  # noqa: N803
    """Return the reference label of a turn: O, T or X."""
    shares = prob_O, prob_T, prob_X
    largest = (name for name, share in zip(NAMES, shares, strict=True) if share >= threshold and share >= max(shares))
    return next(largest, "O")


def majority_label_lenient(prob_O: float, prob_T: float, prob_X: float, threshold: float) -> str:  # noqa: N803
    """Return the reference label of a turn with T and X as one: O_l or X_l."""
    return "X_l" if prob_O < prob_T + prob_X >= threshold else "O_l"


def kld(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the Kullback-Leibler divergence of two distributions, in bits; infinity where q lacks what p has."""
    pairs = [(p[at], q[at]) for at in range(len(p)) if p[at] != 0]
    return sum(one * math.log2(one / other) if other else math.inf for one, other in pairs)


def jsd(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the Jensen-Shannon divergence of two distributions, in bits."""
    middle = [(p[at] + q[at]) / 2 for at in range(len(p))]
    return (kld(p, middle) + kld(q, middle)) / 2


def mse(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the mean squared difference of two distributions."""
    return sum((p[at] - q[at]) ** 2 for at in range(len(p))) / len(p)


class Detected(NamedTuple):
    """Precision, recall and F-measure of a label, and the counts behind them."""

    precision: float
    recall: float
    f1: float
    found: float
    labeled: float
    real: float


def format_lines(
    dialogues: int, turns: int, references: Mapping[str, int], correct: int, scored: int,
    detected: Mapping[str, Detected], distances: Sequence[float],
) -> str:  # fmt: skip
    """Return the lines that eval.py prints; `distances` are three JS divergences and three mean squared errors."""
    lines = [
        "######### Data Stats #########",
        f"File Num : \t\t{dialogues}",
        f"System Utterance Num : \t{turns}",
        *(f"{name} Label Num : \t\t{references[name]}" for name in NAMES),
        "",
        "######### Results #########",
        f"Accuracy : \t\t{correct / scored if scored else math.nan:f} ({correct}/{scored})",
    ]
    for name, (precision, recall, f1, hits, labeled, real) in detected.items():
        lines += [
            "",
            f"Precision ({name}) : \t{precision:f} ({hits}/{labeled})",
            f"Recall    ({name}) : \t{recall:f} ({hits}/{real})",
            f"F-measure ({name}) : \t{f1:f}",
        ]
    names = [f"{what} ({of})" for what in ("JS divergence", "Mean squared error") for of in ("O,T,X", "O,T+X", "O+T,X")]
    for at, (name, value) in enumerate(zip(names, distances, strict=True)):
        lines += [*([""] if at % 3 == 0 else []), f"{name} : \t{value:f}"]
    return "\n".join([*lines, "###########################", ""])


def evaluate_folders(data: str, labels: str, threshold: float) -> str | None:
    """Return what eval.py prints; None for files of which something has to be said, or that are not in folders."""
    try:
        files = [name for name in sorted(os.listdir(data)) if name.endswith(LOGS) and not name.startswith(".")]  # noqa: PTH208
        logs = [_load(f"{data}/{name}") for name in files]
        turns = [turn for log in logs for turn in _match_turns(log, labels)]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    if not turns or len({log["dialogue-id"] for log in logs}) < len(logs):
        return None
    hard, lenient = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    rows: list[list[float]] = []
    for label, probabilities, shares in turns:
        hard[label, majority_label(*shares, threshold)] += 1
        lenient["O" if label == "O" else "X", majority_label_lenient(*shares, threshold)[0]] += 1
        pairs = list(zip(_group(probabilities), _group(shares), strict=True))
        rows.append([distance(*pair) for distance in (jsd, mse) for pair in pairs])
    references = {name: sum(hard[label, name] for label in NAMES) for name in NAMES}
    correct = sum(hard[name, name] for name in NAMES)
    detected = {"X": _detect(hard), "T+X": _detect(lenient)}
    distances = [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    return format_lines(len(logs), len(turns), references, correct, len(turns), detected, distances)


def _load(path: str) -> Any:
    with open(path, "rb") as file:  # noqa: PTH123  (without pathlib, which takes as long as the files)
        return json.loads(file.read().decode())


def _match_turns(log: Any, folder: str) -> Iterator[tuple[str, Shares, Shares]]:
    """Yield label, probabilities and annotators' shares of each annotated turn; ValueError for what is not plain."""
    turns = [turn for turn in log["turns"] if turn["speaker"] != "U" and turn["annotations"]]
    name = log["dialogue-id"]
    _require("/" not in name and all(turn["speaker"] == "S" for turn in turns))
    labels = _load(f"{folder}/{name}{LABELS}")
    indices = [turn["turn-index"] for turn in turns]
    _require(labels["dialogue-id"] == name and [entry["turn-index"] for entry in labels["turns"]] == indices)
    _require(len(set(indices)) == len(indices) and all(type(index) is int and index >= 0 for index in indices))
    for turn, entry in zip(turns, labels["turns"], strict=True):
        (label,) = entry["labels"]
        probabilities = label["prob-O"], label["prob-T"], label["prob-X"]
        _require(label["breakdown"] in NAMES and all(type(number) in (int, float) for number in probabilities))
        _require(all(number >= 0 for number in probabilities) and abs(sum(probabilities) - 1) <= SUM_TOLERANCE)
        _require(all(annotation["breakdown"] in NAMES for annotation in turn["annotations"]))
        o, t, x = calc_distribution(turn["annotations"])
        yield label["breakdown"], probabilities, (o, t, x)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _group(shares: Shares) -> list[Sequence[float]]:
    o, t, x = shares
    return [shares, (o, t + x), (o + t, x)]


def _detect(counts: Mapping[tuple[str, str], int]) -> Detected:
    correct = counts["X", "X"]
    labeled, real = (sum(count for pair, count in counts.items() if pair[at] == "X") for at in (0, 1))
    precision, recall = correct / labeled if labeled else 0.0, correct / real if real else 0.0
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return Detected(precision, recall, f1, correct, labeled, real)
