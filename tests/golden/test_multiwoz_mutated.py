"""The MultiWOZ evaluation's own output for 52 prediction files that nobody tuned for, under four or five flags.

`mutated`: responses with odd white space and other scripts, states with odd values and empty domains, dialogues cut off
or without turns, states and active domains missing in some turns. `times`: times of day in odd spellings, full-width
digits.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.errors import NeedError
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.data import TaskData, load_task

pytestmark = pytest.mark.golden

FILES = {"mutated": 40, "times": 12}
FLAGS = {"mutated": ("b", "s", "r", "d", "bsr"), "times": ("b", "s", "r", "d")}
RUNS = [(made, flags) for made, every in FLAGS.items() for flags in every]


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "multiwoz"


@pytest.fixture(scope="module")
def task(folder: Path) -> TaskData:
    return load_task(folder)


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return document


@pytest.fixture(scope="module")
def cases(folder: Path) -> dict[str, Any]:
    return {made: read(folder / made / "cases.json.gz") for made in FILES}


@pytest.fixture(scope="module")
def golden(folder: Path) -> dict[str, Any]:
    return {made: read(folder / made / "golden.json.gz") for made in FILES}


def test_nothing_golden_is_left_out(cases: dict[str, Any], golden: dict[str, Any]) -> None:
    for made, files in FILES.items():
        assert len(cases[made]) == files
        assert {name: set(outputs) for name, outputs in golden[made].items()} == {
            name: set(FLAGS[made]) for name in cases[made]
        }


def has_all_states(document: dict[str, Any]) -> bool:
    return all("state" in turn for turns in document.values() for turn in turns)


@pytest.mark.parametrize(("made", "flags"), RUNS)
def test_every_figure(task: TaskData, cases: dict[str, Any], golden: dict[str, Any], made: str, flags: str) -> None:
    bleu, success, richness, dst = (flag in flags for flag in "bsrd")
    evaluator = Evaluator(bleu, success, richness, dst, data=task)
    for name, document in cases[made].items():
        expected = golden[made][name][flags]
        if flags == "d" and not has_all_states(document):
            # docs/differences.md: the original says so on stdout and prints zeros.
            assert set(expected["dst"].values()) == {0}, name
            with pytest.raises(NeedError, match=r"needs a `state` in every turn"):
                evaluator.evaluate(document)
            continue
        found = evaluator.evaluate(document)
        if "ERR" in expected:
            # docs/differences.md: a time such as `6:15 o'clock` ends the original in a query.
            assert "o'clock" in expected["ERR"], name
            continue
        assert found["success"] == expected["success"], name
        for part in ("bleu", "richness", "dst"):
            figures = found.get(part) or {}
            assert figures == pytest.approx(expected[part] or {}, rel=1e-9, abs=1e-9), (name, part)


def test_the_cases_have_what_they_are_for(cases: dict[str, Any]) -> None:
    mutated = cases["mutated"].values()
    dialogues = [turns for document in mutated for turns in document.values()]
    states = [turn["state"] for turns in dialogues for turn in turns if "state" in turn]
    domains = [slots for state in states for slots in state.values()]
    assert any(not turns for turns in dialogues)
    assert any(not slots for slots in domains)
    assert any(value == "" for slots in domains for value in slots.values())
    lacking = [document for document in mutated if not has_all_states(document)]
    assert 0 < len(lacking) < FILES["mutated"]
    times = json.dumps(cases["times"], ensure_ascii=False)
    assert all(spelling in times for spelling in (" : 30 pm", " :30 pm", ":30. pm", "１"))
