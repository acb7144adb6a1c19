"""The MultiWOZ evaluation's own output for eight published systems: every figure, and every dialogue's verdict."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dialeval import with_intervals
from dialeval.analysis.difference import Difference
from dialeval.analysis.slices import Slice, compare_slices
from dialeval.core.result import Run
from dialeval.multiwoz import Evaluator, add_slot_domains, list_dialogue_rows
from dialeval.suites.multiwoz.data import TaskData, load_task

pytestmark = pytest.mark.golden

SYSTEMS = ("augpt", "damd", "hdsa", "lava", "marco", "mintl", "pptod", "ubar")
POLICY = ("hdsa", "lava", "marco")
CASES = [(name, "as_shipped") for name in SYSTEMS]
CASES += [(name, "without_active_domains") for name in ("augpt", *POLICY)]


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "multiwoz"


@pytest.fixture(scope="module")
def task(folder: Path) -> TaskData:
    return load_task(folder)


@pytest.fixture(scope="module")
def golden(folder: Path) -> dict[str, Any]:
    systems: dict[str, Any] = json.loads((folder / "golden.json").read_text())["systems"]
    return systems


@pytest.fixture(scope="module")
def verdicts(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    with gzip.open(folder / "golden_turns.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            found.setdefault((row["system"], row["variant"]), {})[row["dialog_id"]] = row
    return found


def predictions(folder: Path, name: str, variant: str = "as_shipped") -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress((folder / "predictions" / f"{name}.json.gz").read_bytes()))
    if variant == "without_active_domains":
        for turns in document.values():
            for turn in turns:
                turn.pop("active_domains")
    return document


def test_nothing_golden_is_left_out(golden: dict[str, Any]) -> None:
    assert {(name, variant) for name, system in golden.items() for variant in system["outputs"]} == set(CASES)


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_every_figure(folder: Path, task: TaskData, golden: dict[str, Any], name: str, variant: str) -> None:
    expected = golden[name]["outputs"][variant]
    evaluator = Evaluator(dst=name not in POLICY, data=task)
    found = evaluator.evaluate(predictions(folder, name, variant))
    assert found["success"] == expected["success"]
    assert found["bleu"] == {"mwz22": pytest.approx(expected["bleu"]["mwz22"], abs=1e-6)}
    assert list(found["richness"]) == list(expected["richness"])
    assert found["richness"] == pytest.approx(expected["richness"], rel=1e-9)
    if name not in POLICY:
        assert found["dst"] == pytest.approx(expected["dst"], abs=1e-6)


@pytest.mark.parametrize(("name", "variant"), CASES)
def test_every_dialogue(
    folder: Path, task: TaskData, golden: dict[str, Any], verdicts: dict[Any, Any], name: str, variant: str
) -> None:
    run = Evaluator(bleu=False, richness=False, data=task).run({name: predictions(folder, name, variant)})
    rows = {row["dialog_id"]: row for row in list_dialogue_rows(run, task)}
    expected = verdicts[name, variant]
    assert rows.keys() == expected.keys()
    for dialogue, row in expected.items():
        assert rows[dialogue]["inform"] == row["match"], dialogue
        success = row["success"] or dict.fromkeys(row["match"], False)
        assert rows[dialogue]["success"] == success, dialogue
    counts = golden[name]["outputs"][variant]["counts"]
    for key, hits in (("inform", counts["inform_hits"]), ("success", counts["success_hits"])):
        for domain, count in hits.items():
            assert sum(row[key].get(domain, False) for row in rows.values()) == count
            scored = run[name][key if domain == "total" else f"{key}/{domain}"].scored
            assert scored == counts["dialogues_per_domain"][domain]


def test_the_combined_score(folder: Path, task: TaskData, golden: dict[str, Any]) -> None:
    expected = golden["augpt"]["outputs"]["as_shipped"]
    run = Evaluator(richness=False, data=task).run(predictions(folder, "augpt"))
    counts = expected["counts"]
    hits = counts["inform_hits"]["total"] + counts["success_hits"]["total"]
    combined = 50 * hits / counts["dialogues_per_domain"]["total"] + expected["bleu"]["mwz22"]
    found = run["predictions"]["combined"]
    assert found.mean == pytest.approx(combined, abs=1e-6)
    interval = with_intervals(run, resamples=200)["predictions"]["combined"].interval
    assert interval is not None
    assert interval[0] < found.mean < interval[1]
    assert interval[1] - interval[0] < 10  # a thousand dialogues


def test_the_exact_ratio_changes_three_dialogues(folder: Path, task: TaskData) -> None:
    for name, expected in (("damd", {"pmul4440"}), ("pptod", {"sng0805", "mul2281"})):
        both: list[Run] = [
            Evaluator(bleu=False, richness=False, ratio=ratio, data=task).run({name: predictions(folder, name)})
            for ratio in ("historical", "exact")
        ]
        rows = [{row["dialog_id"]: row for row in list_dialogue_rows(run, task)} for run in both]
        assert {key for key in rows[0] if rows[0][key] != rows[1][key]} == expected


def test_the_input_is_left_as_it_was_and_a_second_time_gives_the_same(folder: Path, task: TaskData) -> None:
    document = predictions(folder, "damd")
    before = copy.deepcopy(document)
    evaluator = Evaluator(data=task)
    assert evaluator.evaluate(document) == evaluator.evaluate(document)
    assert document == before


def test_what_is_missing_is_said_and_strict_counts_it(folder: Path, task: TaskData) -> None:
    evaluator = Evaluator(bleu=False, richness=False, data=task)
    loose = evaluator.run({"damd": predictions(folder, "damd")})
    [warning] = [line for line in evaluator.warnings if "covers" in line]
    assert warning.startswith("damd covers 999 of 1,000 dialogues and 7,354 of 7,372 turns")
    assert "inform 57.9 would be 57.8" in warning
    strict = Evaluator(bleu=False, richness=False, strict=True, data=task).run({"damd": predictions(folder, "damd")})
    assert (loose["damd"]["inform"].scored, strict["damd"]["inform"].scored) == (999, 1000)
    assert strict["damd"]["inform"].mean == pytest.approx(57.8)
    differences = strict["damd"]["inform"].signature.differences(loose["damd"]["inform"].signature)  # type: ignore[union-attr, arg-type]
    assert differences == {"metric": ("inform(missing=failed)", "inform"), "missing": ("failed", "ignored")}


def test_domains_out_of_slot_names_are_those_of_the_policy_systems(folder: Path) -> None:
    for name in POLICY:
        document = predictions(folder, name)
        found = add_slot_domains(predictions(folder, name, "without_active_domains"))
        for dialogue, turns in document.items():
            for turn, other in zip(turns, found[dialogue], strict=True):
                assert set(turn["active_domains"]) == set(other["active_domains"])


def test_every_failed_dialogue_has_a_cause(folder: Path, task: TaskData, verdicts: dict[Any, Any]) -> None:
    [failures] = Evaluator(data=task).failures(predictions(folder, "ubar")).values()
    lost = {
        dialogue
        for dialogue, row in verdicts["ubar", "as_shipped"].items()
        if not row["match"]["total"] or not row["success"]["total"]
    }
    assert {each.dialogue for each in failures} == lost
    assert all(each.causes for each in failures)


def test_unified_booking_slots_raise_tracking(folder: Path, task: TaskData) -> None:
    apart, unified = (
        Evaluator(bleu=False, success=False, richness=False, dst=True, unify_booking=unify, data=task).evaluate(
            predictions(folder, "ubar")
        )["dst"]["joint_accuracy"]
        for unify in (False, True)
    )
    assert unified > apart + 5


def test_slices_find_the_domains_in_which_damd_loses_to_lava(folder: Path, task: TaskData) -> None:
    run = Evaluator(data=task).run({name: predictions(folder, name) for name in ("lava", "damd")})
    found = compare_slices(run, "domain", metrics=["inform", "success", "bleu/mwz22"], resamples=200, trials=1000)
    assert {each.label: each.dialogues for each in found.slices} == {
        "train": 495, "restaurant": 437, "attraction": 396, "hotel": 394, "taxi": 195,
    }  # fmt: skip
    lost = {(each.label, row.key) for each in found.slices for row in found_in(each) if row.significant and row.worse}
    assert lost == {(each.label, key) for each in found.slices for key in ("inform", "success")}, "and not in BLEU"
    hotel = next(each for each in found.slices if each.label == "hotel").difference("damd", "success")
    assert hotel is not None
    assert hotel.difference == pytest.approx(-53.69, abs=0.01)
    worst = found.worst("damd")
    assert worst is not None
    assert (worst.where.label, worst.by.key) == ("taxi", "success")
    goals = task.files.goals.goals
    for each in found.slices:
        table = each.run["damd"].table
        assert table is not None
        assert all(each.label in goals[name] for name in table.dialogues or () if name is not None)


def found_in(each: Slice) -> Sequence[Difference]:
    return () if each.comparison is None else each.comparison.differences
