"""Curves of breakdown detectors: the turns of the run, drawn and written out, in a saved run as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import dialeval
from dialeval import sample_data
from dialeval.breakdown import BreakdownRun, evaluate_breakdown
from dialeval.core.result import Run
from dialeval.reports.html import combine_runs, render
from dialeval.suites.breakdown.curves import SHOWN, make_curves_section, with_curves
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


def test_of_many_dialogues_the_first_are_open() -> None:
    found = [curve(dialogue=f"d{at}") for at in range(SHOWN + 3)]
    section = make_curves_section(Run({}, "0", details={"curves": {"a": found}}))
    assert section is not None
    before, _, folded = section.content.partition("<details>")
    assert (before.count('<section class="curves">'), folded.count('<section class="curves">')) == (SHOWN, 3)
    assert "3 further dialogues" in folded


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


def places(page: Page, tag: str, kind: str, *names: str) -> list[list[float]]:
    """The numbers in some attributes of the elements of a kind."""
    chosen = [each for each in page.of(tag) if str(each.get("class", "")).split()[:1] == [kind]]
    written = [" ".join(str(each[name]) for name in names).replace(",", " ") for each in chosen]
    return [list(map(float, numbers.split())) for numbers in written]


def test_areas_are_stacked_and_lines_go_through_the_probabilities() -> None:
    found = curve(
        turns=[1, 3, 5, 8],
        reference=["O", "X", "T", None],
        label=["O", "T", "", "X"],
        shares=[[1.0, 0.0, 0.0], [0.0, 0.25, 0.75], [0.5, 0.4, 0.1], [None, None, None]],
        probabilities=[[0.877, 0.1, 0.023], [0.0, 0.25, 0.5], [None, 0.5, 0.5], [0.5, 0.125, 0.375]],
    )
    page = section_of("a", found)
    (drawing,) = (each for each in page.of("svg") if each.get("class") == "turns")
    assert (drawing["viewbox"], drawing["width"], drawing["height"]) == ("0 0 560 150", "560", "150")
    assert drawing["aria-label"] == "d: annotators and 1 detector over the turns; figures next to it"
    assert places(page, "line", "grid", "x1", "x2", "y1", "y2") == [
        [34, 550, 130, 130],
        [34, 550, 70, 70],
        [34, 550, 10, 10],
    ]
    ticks = [[28, 134], [28, 74], [28, 14], [44, 146], [209.3, 146], [374.7, 146], [540, 146]]
    assert places(page, "text", "tick", "x", "y") == ticks
    assert places(page, "polygon", "area-t", "points") == [[44, 130, 44, 130, 209.3, 10, 374.7, 70, 540, 130, 540, 130]]
    assert places(page, "polygon", "area-x", "points") == [
        [44, 130, 44, 130, 209.3, 40, 374.7, 118, 540, 130, 540, 130]
    ]
    assert places(page, "polyline", "curve", "points") == [[44, 115.2, 209.3, 40, 540, 70]]
    assert places(page, "circle", "dot", "cx", "cy") == [[44, 115.2], [209.3, 40], [540, 70]]
    assert places(page, "text", "label", "x", "y") == [[44, 118.7], [209.3, 43.5], [540, 73.5]]
    assert page.text.startswith("OTX", page.text.index("1358") + 4)


def test_a_single_turn_is_a_bar_in_the_middle() -> None:
    single = curve(
        turns=[1], reference=["T"], label=[None], shares=[[0.25, 0.5, 0.25]], probabilities=[[1.0, 0.0, 0.0]]
    )
    page = section_of("a", single)
    assert places(page, "polygon", "area-t", "points") == [[286, 130, 286, 40, 298, 40, 298, 130]]
    assert places(page, "polygon", "area-x", "points") == [[286, 130, 286, 100, 298, 100, 298, 130]]
    assert places(page, "circle", "dot", "cx", "cy") == [[292, 130]]
    assert "00.511?System, turn 1: " in page.text, "levels, the turn, and a label that is missing"


def test_labels_have_bars_of_their_shares_and_figures() -> None:
    said = [[0, True, "hello"], [1, False, "a"], [3, False, "b"], [3, True, "c"], [None, False, "d"]]
    missing = curve(label=["", "T"], probabilities=[[0.25, None, 0.5], [0.0, 0.75, 0.25]], said=said)
    page = section_of("a", missing)
    assert places(page, "rect", "share-o", "x", "width") == [[0, 48], [0, 12], [0, 0], [0, 0]]
    assert places(page, "rect", "share-t", "x", "width") == [[48, 0], [12, 0], [0, 24], [0, 36]]
    assert places(page, "rect", "share-x", "x", "width") == [[48, 0], [12, 24], [24, 24], [36, 12]]
    bars = [each for each in page.of("svg") if each["width"] == "48"]
    assert len(bars) == 4
    keys = [each for each in page.of("svg") if each["width"] == "14"]
    assert len(keys) == 2, "annotators have no line"
    assert page.text.endswith(
        "User: helloSystem, turn 1: aannotators O1.00 0.00 0.00a –0.25 – 0.50"
        "System, turn 3: bannotators X0.00 0.50 0.50a T0.00 0.75 0.25User: cSystem, turn None: d"
    )


def test_turns_of_which_nothing_was_kept_are_those_of_the_system() -> None:
    page = section_of("a", curve())
    assert [each.get("class") for each in page.of("li")][3:] == ["by-system", "by-system"]
    assert "System, turn 1: annotators O1.00 0.00 0.00a O0.50 0.25 0.25System, turn 3: annotators X" in page.text


def test_the_seventh_detector_has_the_color_of_the_first_and_long_texts_are_cut() -> None:
    said = [[1, False, "x" * 1000], [3, False, "y" * 1001]]
    curves = {f"detector {at}": [curve(said=said)] for at in range(7)}
    section = make_curves_section(Run({}, "0", details={"curves": curves}))
    assert section is not None
    page = Page(section.content)
    colors = [str(each["class"]).split()[1] for each in page.of("polyline")]
    assert colors == [*(f"line-{at}" for at in range(6)), "line-0"]
    assert [each["class"] for each in page.of("line") if each["x2"] == "26"] == [f"curve {color}" for color in colors]
    assert "x" * 1000 in page.text
    assert "y" * 999 + "…" in page.text


@pytest.mark.parametrize(("dialogues", "folded"), [(12, ""), (13, "1 further dialogue"), (14, "2 further dialogues")])
def test_twelve_dialogues_are_not_folded(dialogues: int, folded: str) -> None:
    found = [curve(dialogue=f"d{at}") for at in range(dialogues)]
    section = make_curves_section(Run({}, "0", details={"curves": {"a": found}}))
    assert section is not None
    _, mark, rest = section.content.partition("<details>")
    assert bool(mark) == bool(folded)
    assert rest.startswith(f"<summary>{folded}</summary>" if folded else "")
    assert rest.count('<section class="curves">') == dialogues - 12


def test_texts_from_outside_stay_texts() -> None:
    name = HOSTILE.replace("\udc80", "")
    page = section_of(
        name,
        curve(dialogue=name, label=[name, name], reference=[name, name], said=[[1, False, name]]),
    )
    assert {tag for tag, _ in page.tags} & {"script", "img"} == set()
    render(Run({}, "0", details={"curves": {name: [curve(dialogue=name)]}}))


def test_runs_without_curves_have_no_such_section() -> None:
    assert make_curves_section(dialeval.evaluate(["a b"], metrics="length")) is None


def test_a_detector_whose_name_holds_half_a_character_is_drawn() -> None:
    run = evaluate_breakdown(HERE / "data", {"file \udc80": HERE / "keywords"})
    section = make_curves_section(with_curves(run))
    assert section is not None
    assert "<polyline" in section.content
