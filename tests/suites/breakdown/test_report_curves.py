"""Curves of breakdown detectors: the turns of the run, drawn and written out, in a saved run as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import dialeval
from dialeval import sample_data
from dialeval.breakdown import BreakdownRun, evaluate_breakdown
from dialeval.core.result import Result, Run
from dialeval.reports.html import combine_runs, render
from dialeval.suites.breakdown.report import make_curves_section, with_curves
from reports.test_html import HOSTILE, Page

if TYPE_CHECKING:
    from pathlib import Path


HERE = sample_data.folder() / "breakdown"


@pytest.fixture(scope="module")
def run() -> BreakdownRun:
    return evaluate_breakdown(HERE / "data", [HERE / "keywords", HERE / "cautious"])


def test_curves_are_the_turns_of_the_run(run: BreakdownRun) -> None:
    rows = [row for row in run.turns() if row["system"] == "keywords"]
    found = with_curves(run).details["curves"]["keywords"]
    order = [curve["dialogue"] for curve in found]
    rows.sort(key=lambda row: order.index(row["dialogue"]))
    assert [label for curve in found for label in curve["label"]] == [row["label"] for row in rows]
    assert [shares[2] for curve in found for shares in curve["shares"]] == [row["share-X"] for row in rows]


def test_of_many_dialogues_the_furthest_are_kept(run: BreakdownRun) -> None:
    (one,) = with_curves(run, most=1).details["curves"]["keywords"]
    everything = with_curves(run).details["curves"]

    def distance(name: str) -> float:
        gaps = [
            abs(human[0] - detector[0])
            for curves in everything.values()
            for curve in curves
            if curve["dialogue"] == name
            for human, detector in zip(curve["shares"], curve["probabilities"], strict=True)
        ]
        return float(sum(gaps)) / len(gaps)

    names = [curve["dialogue"] for curve in everything["keywords"]]
    assert one["dialogue"] == max(names, key=distance)


def test_a_run_in_memory_and_a_saved_one_show_the_same(run: BreakdownRun, tmp_path: Path) -> None:
    saved = dialeval.load(with_curves(run).save(tmp_path))
    first, second = make_curves_section(combine_runs([run])), make_curves_section(combine_runs([saved]))
    assert first is not None
    assert first == second
    page = Page(first.content)
    assert len([attrs for attrs in page.of("svg") if attrs.get("role") == "img"]) == 4
    assert "library-hours" in page.text


def test_utterances_stand_beside_the_curve_with_their_labels(run: BreakdownRun) -> None:
    section = make_curves_section(combine_runs([run]))
    assert section is not None
    first = section.content.partition('<section class="curves">')[2].partition("</section>")[0]
    found = run_curve(run)
    page = Page(first)
    for _, _, text in found["said"]:
        assert text in page.text
    at = found["turns"].index(found["turns"][-1])
    shares = " ".join(f"{share:.2f}" for share in found["shares"][at])
    assert f"annotators {found['reference'][at]}{shares}" in page.text
    assert page.text.count("keywords") == len(found["turns"])
    assert len([attrs for attrs in page.of("li") if attrs["class"] == "by-user"]) == sum(u for _, u, _ in found["said"])


def run_curve(run: BreakdownRun) -> dict[str, Any]:
    curve: dict[str, Any] = with_curves(run).details["curves"]["keywords"][0]
    return curve


def curve(**changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {"dialogue": "d", "turns": [1, 3], "reference": ["O", "X"], "label": ["O", "T"]}
    plain |= {"shares": [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]], "probabilities": [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]}
    return plain | changes


def section_of(name: str, found: dict[str, Any]) -> Page:
    section = make_curves_section(Run({}, "0", details={"curves": {name: [found]}}))
    assert section is not None
    return Page(section.content)


def test_turns_without_labels_and_single_turns_are_drawn() -> None:
    missing = curve(label=["", "T"], probabilities=[[None, None, None], [0.0, 1.0, 0.0]])
    assert len(section_of("a", missing).of("circle")) == 1
    single = curve(turns=[1], reference=["O"], label=["O"], shares=[[0.0, 0.0, 1.0]], probabilities=[[1.0, 0.0, 0.0]])
    assert len(section_of("a", single).of("polygon")) == 2


def test_texts_from_outside_stay_texts() -> None:
    name = HOSTILE.replace("\udc80", "")
    page = section_of(name, curve(dialogue=name, label=[name, name], reference=[name, name], said=[[1, False, name]]))
    assert {tag for tag, _ in page.tags} & {"script", "img"} == set()
    render(Run({"a": Result({})}, "0", details={"curves": {name: [curve(dialogue=name)]}}))


def test_runs_without_curves_have_no_such_section() -> None:
    assert make_curves_section(dialeval.evaluate(["a b"], metrics="length")) is None


def test_a_detector_whose_name_holds_half_a_character_is_drawn() -> None:
    run = evaluate_breakdown(HERE / "data", {"file \udc80": HERE / "keywords"})
    section = make_curves_section(with_curves(run))
    assert section is not None
    assert "<polyline" in section.content


# Curves hold the turns of a run, dialogue by dialogue; where there are many, the most contested ones.


def test_a_run_without_turns_is_left_as_it_is() -> None:
    empty = BreakdownRun({}, "0")
    assert with_curves(empty) is empty
    assert isinstance(empty, Run)
