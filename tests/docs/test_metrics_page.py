"""The page of metrics names all of them, and their figures are those that come out."""

from __future__ import annotations

import re
from pathlib import Path

import dialeval
from dialeval import sample_data
from dialeval.core.signature import Signature
from dialeval.engine.baselines import CONSTANT, GOLD, SHUFFLED, TRAIN
from dialeval.metrics.registry import registry

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_every_family_is_named() -> None:
    prose = re.sub(r"```.*?```", "", (DOCS / "metrics.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    named = re.findall(r"`([^`]+)`", prose)
    for family, metric in registry().families.items():
        assert any(preset in named for preset in metric.presets), f"metrics.md says nothing about {family}"


def test_the_figures_of_the_sample_come_out() -> None:
    lines = (DOCS / "floors.md").read_text(encoding="utf-8").splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("| metric | sample: constant"))
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[head:] if line.startswith("| `")
    ]
    shown = {row[0]: row[1:5] for row in rows[: next(n for n, row in enumerate(rows) if row[0] == "chrf") + 1]}
    here = sample_data.folder()
    run = dialeval.evaluate(
        here / "responses",
        here / "references.txt",
        here / "contexts.txt",
        train=here / "train.txt",
        vectors=here / "vectors.txt",
        baselines=True,
        metrics="all",
    )
    for key in (key for key in run.keys_in_order if run[GOLD][key].level == "turn"):
        found = [f"{run[anchor][key].mean:.3f}" for anchor in (CONSTANT, SHUFFLED, TRAIN, GOLD)]
        assert shown[key] == found, key


def test_the_signature_of_the_page_is_one() -> None:
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    line = "".join(re.findall(r"^bleu-4\|.*$|\|reference:\w+", page, re.MULTILINE))
    run = dialeval.evaluate(["a"], ["b"], metrics="bleu-4")
    signature = run["system"]["bleu-4"].signature
    assert signature is not None
    assert set(Signature.parse(line)) == set(signature)
