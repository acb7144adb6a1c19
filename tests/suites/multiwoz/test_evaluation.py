"""Evaluating task dialogues: names of results, what is skipped, explanations from the same turns, one reading."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

import dialeval as package
from conftest import Dialeval
from dialeval import sample_data
from dialeval.core.arrays import Floats
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Estimate, Metric
from dialeval.engine.baselines import CONSTANT, GOLD, SHUFFLED
from dialeval.metrics.bleu_counts import corpus_bleu
from dialeval.metrics.counting import Missing, corpus_error, sum_by_dialogue
from dialeval.multiwoz import Evaluator
from dialeval.suites.multiwoz import REFERENCE_SETS
from dialeval.suites.multiwoz.data import ReferenceSets, load_task, read_predictions
from dialeval.suites.multiwoz.evaluation import (
    EVERY_WORD,
    list_dialogue_rows,
    make_gold_replies,
)
from dialeval.suites.multiwoz.metrics import Combined, DialogueRate, Inform, Success, TaskBleu, combined_score
from dialeval.suites.multiwoz.turns import make_normalizer
from dialeval.text.tokenizers import normalize_moses
from laws.task import WORLD, Row
from laws.worlds import Place

TOWN = sample_data.folder() / "town"
TASK = load_task("town")


def predictions(system: str = "patient") -> dict[str, Any]:
    document: dict[str, Any] = json.loads((TOWN / "predictions" / f"{system}.json").read_text())
    return document


def test_tracking_without_states_is_skipped_or_refused() -> None:
    bare = {name: [{"response": turn["response"]} for turn in turns] for name, turns in predictions().items()}
    run = Evaluator(dst=True, data=TASK).run({"with": predictions(), "without": bare})
    assert "joint-accuracy" in run["with"]
    assert run["without"].skipped["joint-accuracy"].startswith("needs a `state` in every turn")
    with pytest.raises(NeedError, match="state tracking"):
        Evaluator(dst=True, data=TASK).run(bare)
    with pytest.raises(SettingError, match="nothing was asked for"):
        Evaluator(False, False, False, data=TASK).run(bare)


def test_explanations_agree_with_the_metrics() -> None:
    evaluator = Evaluator(data=TASK)
    run = evaluator.run(TOWN / "predictions")
    rows = {(row["system"], row["dialog_id"]): row for row in list_dialogue_rows(run, TASK)}
    failed = evaluator.failures(TOWN / "predictions")
    assert set(failed) == set(run)
    for (system, dialogue), row in rows.items():
        (each,) = evaluator.explain(TOWN / "predictions", dialogue)[system]
        assert (row["inform"]["total"], row["success"]["total"]) == (each.verdict.inform, each.verdict.success)
        assert bool(each.causes) == (not each.verdict.success) == (dialogue in {one.dialogue for one in failed[system]})
    with pytest.raises(SettingError, match=r"no dialogue 'TOWN01.json'; did you mean 'town01'"):
        evaluator.explain(predictions(), "TOWN01.json")


def test_what_is_missing_is_said_as_it_is() -> None:
    document = predictions()
    named = list(document)
    document[named[0]] = []
    document[named[1]].pop()
    del document[named[2]]
    loose, strict = (Evaluator(data=TASK, strict=flag).run(document) for flag in (False, True))
    result = loose["predictions"]
    assert (result["inform"].units, result["inform"].scored) == (8, 7)
    [line] = [line for line in loose.warnings if "covers" in line]
    assert line.startswith("predictions covers 7 of 8 dialogues and ")
    assert (
        "; as in the original, missing dialogues are left out, dialogues that lack turns are judged by those they "
        "have, dialogues without any turn (1) are judged too; --strict counts dialogues without a turn as failed and "
        "missing turns as empty: inform "
    ) in line
    # What the warning says of --strict is what it gives.
    for key in ("inform", "success"):
        assert f"{key} {result[key].mean:.1f} would be {strict['predictions'][key].mean:.1f}" in line
    [line] = [line for line in strict.warnings if "covers" in line]
    assert line.endswith("; --strict counts dialogues without a turn as failed and missing turns as empty")
    whole = Evaluator(data=TASK).run(predictions())
    assert not [line for line in whole.warnings if "covers" in line]


def test_a_file_without_any_turn_has_no_figures_of_turns() -> None:
    output = Evaluator(data=TASK).evaluate({"town01": []})
    assert output["success"]["success"]["total"] == 0
    assert all(math.isnan(value) for value in (*output["bleu"].values(), *output["richness"].values()))


def test_predictions_are_read_once_for_several_uses() -> None:
    evaluator = Evaluator(data=TASK)
    read = evaluator.read(TOWN / "predictions")
    assert read_predictions(read, TASK.files) is read
    run = evaluator.run(read)
    assert (
        evaluator.with_transcripts(run, read).details
        == evaluator.with_transcripts(evaluator.run(TOWN / "predictions"), TOWN / "predictions").details
    )


def test_the_original_output_has_what_was_asked_for() -> None:
    output = Evaluator(bleu=False, richness=False, data=TASK).evaluate(predictions())
    assert output["bleu"] is output["richness"] is None
    assert set(output["success"]) == {"inform", "success"}
    assert "total" in output["success"]["inform"]


# BLEU of task dialogues against sacreBLEU.


texts = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", ".", ",", "1.5"]), max_size=9).map(" ".join)
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)


@given(pairs)
@settings(max_examples=100)
def test_bleu_is_that_of_sacrebleu(both: list[tuple[str, str]]) -> None:
    # Rows of dialogues that have one turn each, so that the references are those of the first turn.
    names = [f"d{at}" for at in range(len(both))]
    sets = ReferenceSets({"mwz22": {name: [pair[1]] for name, pair in zip(names, both, strict=True)}}, "x")
    world = replace(WORLD, resources=lambda words: {**WORLD.resources(words), REFERENCE_SETS: sets})
    rows = [Row(name, pair[0]) for name, pair in zip(names, both, strict=True)]
    found = TaskBleu().finish(Place(world, rows).scored(TaskBleu(), rows).state)["bleu/mwz22"].mean
    expected = sacrebleu.corpus_bleu([normalize_moses(pair[0]) for pair in both], [[pair[1] for pair in both]]).score
    assert found == pytest.approx(expected, abs=1e-6)


def test_items_are_sentence_bleu() -> None:
    rows = [Row("d1", "[name] is nice, call [phone]."), Row("d2", None), Row("d3", "")]
    items = Place(WORLD, rows).scored(TaskBleu(), rows).scores["bleu/mwz22"]
    expected = sacrebleu.sentence_bleu("NAME is nice, call PHONE.", ["NAME is lovely, call PHONE."]).score
    assert items[0] == pytest.approx(expected, abs=1e-6)
    assert math.isnan(items[1])
    assert items[2] == 0


# The combined score is made of the very figures of Inform, Success and BLEU.


ROWS = [
    Row("d1", "[name] is lovely, call [phone]."),
    Row("d1", "[name] is nice, call someone."),
    Row("d2", "the code is [code], don't lose it.", 2),
    Row("d3", None),
    Row("d1", None, listed=True),
]


def value(metric: Metric[Any], rows: list[Row]) -> Estimate:
    return metric.finish(Place(WORLD, rows).scored(metric, rows).state)[metric.name]


def test_by_hand() -> None:
    assert combined_score(60.0, 40.0, 18.5) == 68.5


@pytest.mark.parametrize("missing", ["ignored", "failed"])
def test_half_of_inform_and_success_plus_bleu(missing: Missing) -> None:
    parts: list[Metric[Any]] = [Inform(missing=missing), Success(missing=missing), TaskBleu(missing=missing)]
    inform, success, bleu = (value(metric, ROWS).mean for metric in parts)
    assert 0 < success < inform
    assert 0 < bleu < 100
    found = value(Combined(missing=missing), ROWS)
    assert found.mean == (inform + success) / 2 + bleu
    assert (found.corpus, found.std) == (True, 0)
    assert (found.units, found.scored) == (5, 3 if missing == "ignored" else 5)


def test_its_contributions_are_those_of_bleu_and_one_line_of_rates_per_dialogue() -> None:
    contributions = Place(WORLD, ROWS).scored(Combined(), ROWS).contributions
    bleu = Place(WORLD, ROWS).scored(TaskBleu(), ROWS).contributions
    assert contributions["task-bleu/mwz22/ignored"] == bleu["task-bleu/mwz22/ignored"]
    rates = contributions["task-rates/file/ignored/historical"]
    assert rates.values.tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0]]  # type: ignore[union-attr]


MORE = [*ROWS, Row("d1", "[name] is lovely."), Row("d2", "[name] is [code], don't lose it.")]


def plain_score(counts: Floats) -> Floats:
    """Half of both rates plus BLEU, of dialogues, those informed, those that succeeded and the counts of BLEU."""
    return np.array([50 * (line[1] + line[2]) / line[0] + corpus_bleu(line[None, 3:])[0] for line in counts])


@pytest.mark.parametrize("rows", [MORE, ROWS, [*ROWS[:1], *ROWS[2:3], Row("d1", None)]])
@pytest.mark.parametrize("missing", ["ignored", "failed"])
def test_its_error_is_that_of_the_formula_over_dialogues(missing: Missing, rows: list[Row]) -> None:
    metric = Combined(missing=missing)
    contributions = Place(WORLD, rows).scored(metric, rows).contributions
    rates = contributions[f"task-rates/file/{missing}/historical"].values  # type: ignore[union-attr]
    scored, *counts = contributions[f"task-bleu/mwz22/{missing}"].values.T  # type: ignore[union-attr]
    together = np.column_stack((rates, *counts)).astype(np.int64)
    clusters = sum_by_dialogue(together, scored == 1, np.arange(len(rows) + 1))
    found, expected = value(metric, rows).error, corpus_error(plain_score, together.sum(axis=0).tolist(), clusters)
    assert found is not None
    assert expected is not None
    assert found.error == pytest.approx(expected.error, rel=1e-12)
    assert replace(found, error=expected.error) == expected


# Floors and ceilings of task dialogues: the sample's town, and what gold replies lose on MultiWOZ.


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


# Inform and Success as rates of dialogues, in all and by domain.


def means(metric: DialogueRate, rows: list[Row]) -> dict[str, tuple[float, int]]:
    estimates = metric.finish(Place(WORLD, rows).scored(metric, rows).state)
    return {key: (estimate.mean, estimate.scored) for key, estimate in estimates.items()}


def test_a_dialogue_without_turns_is_judged_unless_what_is_missing_failed() -> None:
    rows = [Row("d1", None, listed=True), Row("d3", None, listed=True), Row("d2", None)]
    # d1 wants an inn, d3 only a phone number: without a turn it has no offer to fail.
    assert means(Inform(), rows)["inform"] == (50, 2)
    assert means(Success(), rows)["success"] == (0, 2)
    metric = Inform(missing="failed")
    assert means(metric, rows)[metric.name] == (0, 3)
