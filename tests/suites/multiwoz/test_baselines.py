"""Floors and ceilings of task dialogues: the sample's town, and what gold replies lose on MultiWOZ."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dialeval as package
from conftest import Dialeval
from dialeval import sample_data
from dialeval.core.errors import SettingError
from dialeval.engine.baselines import CONSTANT, GOLD, SHUFFLED
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz.data import load_task
from dialeval.suites.multiwoz.evaluation import EVERY_WORD, make_gold_replies
from dialeval.suites.multiwoz.venues import make_normalizer

TOWN = sample_data.folder() / "town"
HASTY = TOWN / "predictions" / "hasty.json"


def test_gold_of_the_town_loses_nothing_and_floors_are_below() -> None:
    run = Evaluator(data="town", dst=True, baselines=True).run(HASTY)
    assert run.baselines == [GOLD, SHUFFLED, CONSTANT, EVERY_WORD]
    assert [run[GOLD][key].mean for key in ("inform", "success")] == [100, 100]
    assert run[GOLD]["bleu/town"].mean == pytest.approx(100)
    for floor in (SHUFFLED, CONSTANT):
        assert run[floor]["success"].mean < run[GOLD]["success"].mean
    assert run[EVERY_WORD]["success"].mean == 100  # it tells everything, and says nothing
    assert run[EVERY_WORD]["bleu/town"].mean < 1
    assert run[CONSTANT]["slot-recall"].mean == 0
    assert "joint-accuracy" in run[GOLD].skipped
    standing = run.details["baselines"]["standing"]["hasty"]
    assert standing["inform"]["floor"] == SHUFFLED
    assert "hasty is no better than floor/shuffled-gold on inform" in run.warnings
    assert not any("floor/" in line.split(" ")[0] for line in run.warnings)
    assert run.details["failures"] == {GOLD: {}}


def test_the_same_system_has_the_same_scores_without_baselines() -> None:
    alone, among = (Evaluator(data="town", baselines=flag).run(HASTY)["hasty"] for flag in (False, True))
    assert {key: (each.mean, str(each.signature)) for key, each in alone.items()} == {
        key: (each.mean, str(each.signature)) for key, each in among.items()
    }
    assert Evaluator(data="town", baselines=True).evaluate(HASTY) == Evaluator(data="town").evaluate(HASTY)


def test_a_task_without_true_states_or_references(tmp_path: Path) -> None:
    shutil.copytree(TOWN, tmp_path / "town")
    shutil.rmtree(tmp_path / "town" / "references")
    run = Evaluator(bleu=False, richness=False, data=tmp_path / "town", baselines=True).run(HASTY)
    assert run.baselines == [CONSTANT, EVERY_WORD]
    assert run.details["baselines"]["left_out"] == dict.fromkeys((GOLD, SHUFFLED), "the data has no references")
    (tmp_path / "town" / "gold_states.json").unlink()
    run = Evaluator(bleu=False, richness=False, data=tmp_path / "town", baselines=True).run(HASTY)
    assert run.baselines == [CONSTANT]


def test_a_system_with_the_name_of_a_baseline_is_refused() -> None:
    with pytest.raises(SettingError, match="name of a baseline"):
        Evaluator(data="town", baselines=True).run({GOLD: HASTY})


def test_the_command_saves_and_reports_them(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("multiwoz", "-i", str(HASTY), "--data", "town", "--baselines", "-o", "run")
    assert done.returncode == 0, done.stderr
    assert "Between floor (0%) and ceiling (100%)" in done.stdout
    saved = package.load(tmp_path / "run")
    assert saved[GOLD].role == "ceiling"
    assert saved[EVERY_WORD].role == "floor"
    assert set(saved.details["transcripts"]) == {"hasty", GOLD}
    done = dialeval("multiwoz", "-i", str(HASTY), "--data", "town", "--baselines", "--failures", "-f", "json")
    assert {row["system"] for row in json.loads(done.stdout)} == {"hasty"}


@pytest.mark.golden
def test_gold_on_multiwoz_by_cause(shared_data: Path, dialeval: Dialeval) -> None:
    folder = shared_data / "multiwoz"
    task = load_task(folder)
    normalize = make_normalizer(task.ontology.words)
    assert task.files.references is not None
    expected = [text for dialogue in task.files.turns for text in task.files.references.sets["mwz22"][dialogue]]
    assert list(map(normalize, make_gold_replies(task))) == expected
    run = Evaluator(richness=False, data=task, baselines=True).run(folder / "predictions" / "damd.json.gz")
    assert (round(run[GOLD]["inform"].mean, 1), round(run[GOLD]["success"].mean, 1)) == (94.0, 91.2)
    lost = run.details["failures"][GOLD]
    assert len({name for cause, names in lost.items() if cause.startswith("inform") for name in names}) == 60
    assert len({name for names in lost.values() for name in names}) == 88
    assert len(lost["inform: the annotated state lacks a constraint of the goal"]) == 25
    assert len(lost["inform: the last offer is before the user has named a constraint"]) == 6
    # A constant that names every placeholder is above gold: neither rate looks at sentences.
    assert run[EVERY_WORD]["inform"].mean > run[GOLD]["inform"].mean
    assert run[EVERY_WORD]["success"].mean > run[GOLD]["success"].mean
    done = dialeval(
        "multiwoz", "-i", str(folder / "predictions" / "damd.json.gz"), "--data", str(folder), "-s", "--baselines"
    )
    assert "Dialogues that ceiling/gold fails" in done.stdout
