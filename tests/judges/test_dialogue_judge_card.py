"""The card of a judge that reads context and response together: every fact of its folder in words and tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.judge_training.card import card_text

from dialeval.judges.judge import SHIPPED, load_judge
from judges.tiny_judges import tiny_dialogue_judge


def agreed(rho: float | None) -> dict[str, Any]:
    return {"rows": 9, "spearman": rho, "spearman_interval": [0.123, None]}


FACTS: dict[str, Any] = {
    "data": [{"name": "chats", "license": "MIT"}, {"name": "one", "rows": 7, "license": "not stated"}],
    "settings": {"batch_size": 4},
    "command": "make checkpoint",
    "validation": {
        "sets": {"one": {"judge": agreed(0.456), "judge with references": agreed(0.5)}, "two": {"judge": agreed(None)}},
        "mean": {"judge": 0.4, "judge with references": 0.43},
    },
    "breakdowns": {"set": "one", "systems": {"a": {"judge": {"jsd": 0.0371, "mse": 0.02, "f1-tx": 0.95}}}},
    "attacks": [{"name": "dull", "rows": 5, "real": 3.0, "mean": 2.0, "not_worse": 0.2, "correlation": None}],
}


def test_the_card_shows_every_fact(tmp_path: Path) -> None:
    weights = replace(tiny_dialogue_judge(tmp_path).weights, facts=FACTS)
    text = card_text(weights, "A title")
    for line in (
        "# A title",
        "| chats | dialogues | MIT |",
        "| one | 7 rated rows | not stated |",
        "- batch size: 4",
        "Made by: `make checkpoint`",
        "| one | 9 | .46 [.12, -] | .50 [.12, -] |",
        "| two | 9 | - [.12, -] |  |",
        "| mean |  | .40 | .43 |",
        "| a | judge | 0.0371 | 0.0200 | 0.9500 |",
        "| dull | 5 | 3.00 | 2.00 | 20% | - |",
    ):
        assert line in text.splitlines()
    bare = replace(weights, facts={})
    assert "## Results" not in card_text(bare, "A title")


def test_the_shipped_card_is_that_of_the_shipped_weights() -> None:
    weights = load_judge(SHIPPED)
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    assert card == card_text(weights, card.splitlines()[0].removeprefix("# "))
    assert all(each["license"] != "not stated" for each in weights.facts["data"])
    mean = weights.facts["validation"]["mean"]
    assert mean["judge"] > 0.42
    assert mean["judge with references"] > 0.43


def test_the_shipped_labels_are_above_every_floor_on_systems_left_out() -> None:
    systems = load_judge(SHIPPED).facts["breakdowns"]["systems"]
    assert list(systems) == ["CIC", "IRIS", "TKTK", "YI"]
    for detectors in systems.values():
        ours = detectors["judge"]
        for floor in (found for name, found in detectors.items() if name.startswith("floor/")):
            assert ours["jsd"] < floor["jsd"]
            assert ours["mse"] < floor["mse"]
            assert ours["f1-tx"] > floor["f1-tx"]
    for each in load_judge(SHIPPED).facts["attacks"]:
        most = {"reversed": 0.03, "context": 0.03, "random": 0.08, "dull": 0.15}
        assert each["not_worse"] <= most.get(each["name"], 1.0)
