"""The model card of a judge that reads context and response together, out of the facts in its folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialeval.core.files import write_bytes
from dialeval.metrics.learned.attack import Attack
from dialeval.metrics.learned.dialogue_judge import JudgeWeights, load_judge
from dialeval.metrics.learned.weights import CARD_FILE
from dialeval.reports.judge_card import Rows, attack_rows, card_table, two

_PURPOSE = (
    "A judge of dialogue responses for `dialeval score -m judge`. It reads a response together with the last turns of "
    "its context and gives 1 (bad) to 5 (good); a reference is used where there is one. Use it to order systems and to "
    "find bad responses among many; do not use it to grade a single response, or a person."
)
_HOW = (
    "Spearman's rho with the mean human score, in brackets the middle 95% of bootstrap resamples of contexts. A set "
    "that was trained on was judged by weights trained without it and without any row that shares its last turn. With "
    "references only the rows that have one count; the mean takes the other column for sets without any."
)
_LIMITS = (
    "It has seen open chat in English, mostly short replies. Other languages, long texts, facts and safety are outside "
    "of what it knows. Among fluent replies of large models it hardly tells better from worse."
)
_BREAKDOWNS = (
    "Shares of O, T and X as the breakdown challenge scores them (lower JS divergence and squared error are better, "
    "higher F of T and X together). A system was labelled by weights that were trained without it, on a scale that was "
    "fitted to the other systems. Floors look at nothing: the mean shares of the other systems, and always X. "
    "Ceilings: one annotator against the others, and a detector that knows the shares against new annotators."
)
COLUMNS = ("judge", "judge with references")
FIGURES = ("jsd", "mse", "f1-tx")


def save_card(folder: str | os.PathLike[str], title: str = "A judge of dialogue responses") -> Path:
    """Write the card of the judge in a folder beside it."""
    path = Path(folder) / CARD_FILE
    write_bytes(path, card_text(load_judge(folder), title).encode())
    return path


def card_tables(weights: JudgeWeights) -> list[tuple[str, Rows]]:
    """What the training command prints: agreement with people on sets left out, and attacks."""
    facts = weights.facts
    tables = [("Attacks", attack_rows([_attack(each) for each in facts.get("attacks", ())]))]
    if "breakdowns" in facts:
        tables.insert(0, ("Breakdown labels on systems left out", breakdown_rows(facts["breakdowns"])))
    if "validation" in facts:
        tables.insert(0, ("Spearman's rho on sets left out", agreement_rows(facts["validation"])))
    return tables


def card_text(weights: JudgeWeights, title: str) -> str:
    """The card, in Markdown."""
    facts = weights.facts
    data = [
        [each["name"], "dialogues" if "rows" not in each else f"{each['rows']} rated rows", each["licence"]]
        for each in facts.get("data", ())
    ]
    parts = [
        f"# {title}",
        _PURPOSE,
        "## Data",
        card_table([["data", "what", "licence"], *data]),
        "Only changes of weights are stored; no text is.",
        "## Settings",
        "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in facts.get("settings", {}).items()),
        *([f"Made by: `{facts['command']}`"] if facts.get("command") else []),
        *([facts["remarks"]] if facts.get("remarks") else []),
    ]
    if "validation" in facts:
        parts += ["## Results", _HOW, card_table(agreement_rows(facts["validation"]))]
        parts += [facts["validation"]["remarks"]] if "remarks" in facts["validation"] else []
    if "breakdowns" in facts:
        parts += ["## Breakdowns", _BREAKDOWNS, card_table(breakdown_rows(facts["breakdowns"]))]
    parts.append("## Weaknesses")
    if facts.get("attacks"):
        parts.append(card_table(attack_rows([_attack(each) for each in facts["attacks"]])))
    parts += [_LIMITS, f"Weights: {weights.digest}, on top of {weights.encoder} ({weights.encoder_digest})."]
    return "\n\n".join(parts) + "\n"


def agreement_rows(validation: Mapping[str, Any]) -> Rows:
    """A header, a row per set and the mean."""
    rows = [["data set", "rows", *COLUMNS]]
    for name, row in validation["sets"].items():
        rows.append([name, str(row["judge"]["rows"]), *(_agreed(row.get(column)) for column in COLUMNS)])
    rows.append(["mean", "", *(two(_number(validation["mean"][column])) for column in COLUMNS)])
    return rows


def breakdown_rows(breakdowns: Mapping[str, Any]) -> Rows:
    """A header, and a row per system and detector."""
    return [
        ["system", "detector", *FIGURES],
        *(
            [name, detector, *(f"{found[figure]:.4f}" for figure in FIGURES)]
            for name, detectors in breakdowns["systems"].items()
            for detector, found in detectors.items()
        ),
    ]


def _agreed(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    low, high = map(_number, found["spearman_interval"])
    return f"{two(_number(found['spearman']))} [{two(low)}, {two(high)}]"


def _number(value: float | None) -> float:
    """A number out of a JSON file, where NaN is null."""
    return float("nan") if value is None else value


def _attack(facts: Mapping[str, Any]) -> Attack:
    return Attack(**{**facts, "correlation": _number(facts["correlation"])})
