"""The model card of the judge that ships: training data, agreement with people, and weaknesses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.judge_training.validation import show_number, show_spearman

from dialeval.core.validation import parse_toml
from dialeval.judges.attacks import Attack, list_attacks
from dialeval.judges.judge import JudgeWeights
from dialeval.judges.training import Rows, begin_card, to_code, write_card_table

_TEXTS = parse_toml((Path(__file__).parent / "card.toml").read_bytes(), "card.toml", "check out the repository again")
_COLUMNS = ("judge", "judge with references")
_BREAKDOWN_METRICS = ("jsd", "mse", "f1-tx")


def card_text(weights: JudgeWeights, title: str) -> str:
    """Return the card of a judge that reads context and response together, in Markdown."""
    facts = weights.facts
    data = [
        [each["name"], "dialogues" if "rows" not in each else f"{each['rows']} rated rows", each["license"]]
        for each in facts.get("data", ())
    ]
    texts = _TEXTS
    parts = begin_card(title, texts, [["data", "what", "license"], *data], facts)
    parts += [f"Made by: {to_code(facts['command'])}"] if facts.get("command") else []
    parts += [facts["remarks"]] if facts.get("remarks") else []
    if "validation" in facts:
        parts += ["## Results", texts["how"], write_card_table(agreement_rows(facts["validation"]))]
        parts += [facts["validation"]["remarks"]] if "remarks" in facts["validation"] else []
    if "breakdowns" in facts:
        parts += ["## Breakdowns", texts["breakdowns"], write_card_table(breakdown_rows(facts["breakdowns"]))]
    parts.append("## Weaknesses")
    if attacks := [Attack(**each) for each in facts.get("attacks", ())]:
        parts.append(write_card_table(list_attacks(attacks)))
    parts += [texts["limits"], f"Weights: {weights.digest}, on top of {weights.encoder} ({weights.encoder_digest})."]
    return "\n\n".join(parts) + "\n"


def agreement_rows(validation: Mapping[str, Any]) -> Rows:
    """Return a header, a row per set and the mean, out of the facts of a judge."""
    rows = [["data set", "rows", *_COLUMNS]]
    for name, row in validation["sets"].items():
        rows.append([name, str(row["judge"]["rows"]), *(show_spearman(row.get(column)) for column in _COLUMNS)])
    return [*rows, ["mean", "", *(show_number(validation["mean"][column]) for column in _COLUMNS)]]


def breakdown_rows(breakdowns: Mapping[str, Any]) -> Rows:
    """Return a header, and a row per system and detector."""
    rows = [["system", "detector", *_BREAKDOWN_METRICS]]
    for name, detectors in breakdowns["systems"].items():
        for detector, found in detectors.items():
            rows.append([name, detector, *(f"{found[metric]:.4f}" for metric in _BREAKDOWN_METRICS)])
    return rows
