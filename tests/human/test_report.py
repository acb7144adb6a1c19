"""What people would say, as tables."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

import dialeval
from dialeval.human import report
from dialeval.human.estimate import (
    HumanEstimate,
    HumanEstimates,
    NeededRatings,
    RatingPlan,
    join_ratings,
    plan_ratings,
)
from dialeval.human.merge import MergedRatings, merge_ratings
from dialeval.human.report import FORMATS, lay_out, make_human_section
from dialeval.io.ratings import read_pairs
from dialeval.stats.correlation import FEWEST_POINTS
from human.rated_runs import ratings_of, run_of
from human.test_merge import line, written
from reports.test_html import HOSTILE, Page

RUN, OPINIONS = run_of(systems={"a": 3.0, "b": 3.6, "[c]": 3.0})
TEMPLATE = "{0.__class__}"
SAMPLE = dialeval.sample(RUN, 150)


def found(by: str = "judge") -> HumanEstimates:
    return dialeval.estimate(RUN, ratings_of(SAMPLE, OPINIONS), judge=by, sample=SAMPLE)


def printed(content: object, width: int = 120) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(content)
    return file.getvalue()


def test_the_terminal() -> None:
    text = printed(report.lay_out(found()))
    assert " ".join(text.split()).startswith(
        "The mean human rating of b is significantly higher than that of a; no significant difference between [c] and "
        "a (overall, significance level 0.05"
    )
    assert "ratings alone" in text
    assert "effective" in text
    assert "b - a" in text
    assert "other dialogues of the same kind" in text
    assert "NOT DRAWN" not in text


def test_a_name_is_a_name_whatever_it_holds() -> None:
    run, opinions = run_of(dialogues=20, systems={TEMPLATE: 3.0, "b": 3.0})
    sample = dialeval.sample(run, 40)
    made = dialeval.estimate(run, ratings_of(sample, opinions), judge="judge", sample=sample)
    assert TEMPLATE in report.state_verdict(made)[0]


def test_ratings_alone_have_no_columns_of_a_judge() -> None:
    text = printed(report.lay_out(found("")))
    assert "effective" not in text
    assert "estimate" not in text
    assert "ratings alone" in text


def test_what_was_not_drawn_is_marked_in_every_format_for_people() -> None:
    rated = [
        {"system": "a", "dialog_id": f"d{row // 3}", "response": f"a says {row}", "scores": OPINIONS["a"][row]}
        for row in range(0, 180, 4)
    ]
    marked = dialeval.estimate(RUN, rated, judge="judge", assume_random=True)
    for text in (printed(report.lay_out(marked)), report.FORMATS["md"](marked), report.FORMATS["latex"](marked)):
        assert "NOT A RANDOM SAMPLE" in text
    assert json.loads(report.FORMATS["json"](marked))["at_random"] is False


def test_every_digit_and_every_format() -> None:
    made = found()
    lines = list(csv.DictReader(io.StringIO(report.FORMATS["csv"](made))))
    assert [line["baseline"] for line in lines] == ["", "", "", "a", "a"]
    assert float(lines[1]["value"]) == made["b"].value
    assert float(lines[3]["high"]) == made.differences[0].interval[1]
    assert [float(lines[3][name]) for name in ("factor", "baseline_factor")] == list(made.differences[0].factors)
    assert lines[0]["baseline_factor"] == ""
    assert r"\[c\]" in report.FORMATS["md"](made)
    assert r"\toprule" in report.FORMATS["latex"](made)
    assert json.loads(report.FORMATS["json"](made)) == made.to_dict()


def estimated(system: str, value: float, p: float = math.nan, baseline: str | None = None) -> HumanEstimate:
    """An estimate with these numbers."""
    return HumanEstimate(
        value=value,
        error=0.1,
        interval=(value - 0.25, value + 0.25),
        alone=value + 0.01,
        alone_error=0.2,
        alone_interval=(math.nan, math.nan),
        factors=(0.5,),
        ratings=20,
        clusters=20,
        freedom=19.0,
        effective_ratings=33.4,
        p=p,
        system=system,
        baseline=baseline,
        agreement=0.456,
        adjusted_p=p,
    )


def made_up(**more: Any) -> HumanEstimates:
    """Estimates of two systems by a judge, and whatever else is given."""
    usual: dict[str, Any] = {
        "version": "0",
        "quality": "overall",
        "judge": ["judge"],
        "population": "dialogues",
        "confidence": 0.9,
        "unit": "dialogues",
        "seed": 1,
        "at_random": True,
        "raters": "fixed",
        "named_raters": 2,
        "baseline": "a",
        "systems": [estimated("a", 3.0), estimated("b", 3.5)],
        "differences": [estimated("b", 0.5, 0.04, "a")],
        "warnings": [],
    }
    return HumanEstimates(**(usual | more))


def test_all_cells_of_estimates() -> None:
    shown = report.to_document(made_up())
    assert [(list(table.head), [list(row) for row in table.rows]) for table in shown.tables] == [
        (
            ["system", "estimate", "ratings alone", "ratings", "effective", "r"],
            [
                ["a", "3.00 [2.75, 3.25]", "3.0100", "20", "33", "0.46"],
                ["b", "3.50 [3.25, 3.75]", "3.5100", "20", "33", "0.46"],
            ],
        ),
        (
            ["difference", "estimate", "ratings alone", "ratings", "effective", "p adjusted"],
            [["b - a", "+0.50 [0.25, 0.75]", "+0.5100", "20", "33", "0.0400"]],
        ),
    ]
    assert shown.notes[0] == (
        "Quality overall; 90% confidence intervals for mean human ratings of other dialogues of the same kind."
    )
    assert "estimate: ratings, and judge on all rows (prediction-powered)." in shown.notes[1]
    assert shown.notes[2:] == [
        "Raters are fixed: intervals are for ratings by these 2 raters, and not for other raters."
    ]
    alone = report.to_document(made_up(judge=[]))
    assert [(list(table.head), [list(row) for row in table.rows]) for table in alone.tables] == [
        (["system", "ratings alone", "ratings"], [["a", "3.0100", "20"], ["b", "3.5100", "20"]]),
        (["difference", "ratings alone", "ratings"], [["b - a", "+0.5100", "20"]]),
    ]
    assert len(alone.notes) == 2
    single = report.to_document(made_up(differences=[]))
    assert (len(single.tables), single.sentences) == (1, [])


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            {"named_raters": 1},
            "Raters are fixed: intervals are for ratings by this one rater, and not for other raters.",
        ),
        (
            {"raters": "random", "named_raters": 6},
            "Raters are random: intervals hold for other raters too (6 raters).",
        ),
        ({"named_raters": 0}, None),
    ],
)
def test_for_which_raters_intervals_hold(more: dict[str, Any], line: str | None) -> None:
    notes = [note for note in report.to_document(made_up(**more)).notes if note.startswith("Raters")]
    assert notes == ([] if line is None else [line])
    run = report.to_document(made_up(population="run", unit="rows", **more)).notes[0]
    assert run.endswith("mean human ratings of the rows of this run only.")


def test_a_verdict_names_all_differences() -> None:
    differences = [
        estimated("b", 0.5, 0.0499, "a"),
        estimated("c", -0.5, 0.01, "a"),
        estimated("d", 0.5, 0.05, "a"),
        estimated("e", 0.5, 0.01, "a"),
    ]
    assert report.state_verdict(made_up(differences=differences)) == [
        "The mean human rating of b, e is significantly higher than that of a; the mean human rating of c is "  # noqa: ISC004
        "significantly lower than that of a; no significant difference between d and a (overall, significance level "
        "0.05, corrected for 4 tests)."
    ]
    (one,) = report.state_verdict(made_up())
    assert one.endswith("of a (overall, significance level 0.05).")


def test_all_cells_of_a_plan() -> None:
    plan = RatingPlan(0.2, 0.95, [NeededRatings("a", 12_345, 1200, 1500), NeededRatings("b", 10, None, 8)], ["x", "y"])
    shown = report.to_document(plan)
    assert shown.sentences == ["Ratings for a 95% interval of width 0.2:"]
    assert [list(row) for row in shown.tables[0].rows] == [
        ["a", "1,200", "1,500", "12,345"],
        ["b", "more dialogues", "8", "10"],
    ]
    more = "more dialogues: ratings of all rows would not give that width."
    assert shown.notes == ["This holds if x; y.", more]
    enough = report.to_document(RatingPlan(0.2, 0.95, plan.needed[:1], ["x"]))
    assert enough.notes == ["This holds if x."]
    with pytest.raises(TypeError, match="a dict is not a result of human evaluation"):
        report.to_document({})


def test_the_plan() -> None:
    text = printed(report.lay_out(plan_ratings({"a": 100, "b": 10_000}, 0.1)))
    assert "more dialogues" in text
    assert "1,199" in text
    assert "standard deviation of 1" in text


def opinions() -> tuple[Any, Any, Any, Any]:
    run, said = run_of(dialogues=40)
    sample = dialeval.sample(run, 80)
    lines = [*ratings_of(sample, said), *({**line, "rater": "bob"} for line in ratings_of(sample, said))]
    ratings = [{**row, **line} for row, line in zip([*sample.by_id().values()] * 2, lines, strict=True)]
    report = dialeval.estimate(run, lines, judge="judge", sample=sample)
    agreement = dialeval.agreement(run, ratings, metrics="judge", resamples=20)
    pairs = [{"a": "a", "b": HOSTILE.replace("\udc80", ""), "better": ("a", "b", "tie")[n % 3]} for n in range(12)]
    return run, report, agreement, dialeval.rank(pairs)


def test_nobody_was_asked() -> None:
    assert make_human_section(None, None, None) is None


def test_everything_that_people_said_is_shown(tmp_path: Path) -> None:
    run, report, agreement, ranking = opinions()
    path = dialeval.report(run, tmp_path / "r.html", people=report, agreement=agreement, ranking=ranking)
    page = Page(path.read_text(encoding="utf-8"))
    (section,) = (attrs for attrs in page.of("section") if attrs["id"] == "people")
    assert section["aria-labelledby"] == "people-title"
    for words in (
        "Mean human ratings",
        "The mean human rating of b is significantly higher than that of a",
        "ratings alone",
        "Krippendorff's alpha is 1.00 over 80 rows",
        "Correlation of metrics with human ratings",
        "Ranking by preferences",
        "Wins between all pairs",
    ):
        assert words in page.text
    assert not page.of("img")
    assert not any(
        attrs["id"] == "people" for attrs in Page(dialeval.report(run, path).read_text("utf-8")).of("section")
    )


def test_parts_stand_alone() -> None:
    _, report, _, ranking = opinions()
    only = make_human_section(None, None, ranking)
    assert only is not None
    assert "Mean human ratings" not in only.content
    alone = make_human_section(report, None, None)
    assert alone is not None
    assert "preferred" not in alone.content


@pytest.fixture
def merged(tmp_path: Path) -> MergedRatings:
    lines = [line(f"r{n}", rater, (n + m) % 5) for n in range(8) for m, rater in enumerate(("ann", "b|ob"))]
    return merge_ratings([written(tmp_path, "a.jsonl", [*lines, line("r0", "ann", 0, again=True, seconds=4)])])


def test_the_terminal_has_all_tables(merged: MergedRatings) -> None:
    console = Console(width=120, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(lay_out(merged))
    shown = captured.get()
    assert "16 ratings of 8 rows by 2 raters." in shown
    for words in ("alpha", "ann 4, b|ob 0", "100%", "to adjudicate"):
        assert words in shown


def test_all_cells_of_merged_ratings(tmp_path: Path) -> None:
    ann = [line(f"r{n}", "ann", value, seconds=10 * n) for n, value in enumerate((1, 2, 3, 5))]
    ann += [line("r0", "ann", 1, again=True), line("r1", "ann", 4, again=True)]
    bob = [line(f"r{n}", "bob", value) for n, value in enumerate((1, 3, 3, 4, 2))]
    merged = merge_ratings([written(tmp_path, "all.jsonl", [*ann, *bob])])
    agreement, raters, disputed = report.to_document(merged).tables
    ceiling = merged.ceilings["overall"]
    assert [list(row) for row in agreement.rows] == [
        [
            "overall",
            f"{ceiling.alpha['ordinal']:.2f} [-0.50, 1.00]",
            f"{ceiling.one_against_others['pearson']:.2f}",
            "4",
            "2",
        ]
    ]
    r = f"{np.corrcoef([1, 2, 3, 5], [1, 3, 3, 4])[0, 1]:.2f}"
    assert [list(row) for row in raters.rows] == [
        ["ann", "4", "2", "50%", "1.00", r, "+0.00", "15"],
        ["bob", "5", "0", "–", "–", r, "+0.00", "–"],
    ]
    assert list(raters.head) == [*("rater", "rows", "repeated", "intra-rater", "difference", "r", "higher", "seconds")]
    assert [list(row) for row in disputed.rows] == [
        ["r1", "overall", "ann 2, bob 3"],
        ["r3", "overall", "ann 5, bob 4"],
    ]
    assert report.to_document(merged).sentences == ["9 ratings of 5 rows by 2 raters."]
    (alone,) = (table for table in report.to_document(merge_one(tmp_path)).tables if table.head[0] == "quality")
    assert list(alone.rows[0]) == ["overall", "–", "–", "0", "–"]


def merge_one(tmp_path: Path) -> MergedRatings:
    return merge_ratings([written(tmp_path, "one.jsonl", [line("r0", "ann", 1)])])


@pytest.mark.parametrize(
    ("number", "values", "seconds", "flags"),
    [
        (4, (3,), None, []),
        (5, (3,), None, ["ann gave the same answer 5 times (overall 3)."]),
        (5, (3, 4), None, []),
        (2, (3,), 1.0, []),
        (2, (3,), 0.99, ["ann took less than 1 second for half of the rows."]),
    ],
)
def test_careless_raters_are_flagged(
    tmp_path: Path, number: int, values: tuple[int, ...], seconds: float | None, flags: list[str]
) -> None:
    rows = [line(f"r{n}", "ann", values[n % len(values)], seconds=seconds) for n in range(number)]
    assert report.flag_raters(merge_ratings([written(tmp_path, "all.jsonl", rows)])) == flags


def test_the_page_of_the_lead(merged: MergedRatings) -> None:
    counts = {"ann": (1200, 1500), "b|ob": (0, 0)}
    page = report.make_lead_page("Title", counts, None)
    assert "1,200 of 1,500 assigned ratings are there." in page
    assert '<progress max="1500" value="1200" aria-label="ann">' in page
    assert '<progress max="1" value="0" aria-label="b|ob">' in page
    assert "Agreement so far" not in page
    assert "Agreement so far" in report.make_lead_page("Title", counts, merged)


def test_figures_of_what_is_known() -> None:
    run, people, _, ranking = opinions()
    drawn = dialeval.sample(run, 80)
    rated = join_ratings(run, ratings_of(drawn, run_of(dialogues=40)[1]), judge="judge", sample=drawn)

    def count(*given: Any) -> int:
        return len(report.draw_human_figures(*given))

    alone = msgspec.structs.replace(people, judge=[])
    both = msgspec.structs.replace(people, judge=["judge", "length"])
    assert count(None, None, None) == 0
    assert count(people, None, None) == 1
    assert count(alone, None, None) == 0
    assert count(people, None, rated) == 4
    assert count(both, None, rated) == 2
    assert count(None, None, rated) == 0
    assert count(None, ranking, None) == 1
    sizes = [(FEWEST_POINTS, 1), (FEWEST_POINTS - 1, 0)]
    for number, figures in sizes:
        rows: list[dict[str, object]] = [
            {"a": "x", "b": "y", "better": "ab"[n % 2], "response_a": "w " * (1 + n), "response_b": "w " * 3}
            for n in range(number)
        ]
        assert count(None, None, None, read_pairs(rows)) == figures


def test_length_and_preference_are_drawn_as_ratios_and_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[list[float], list[float]]] = []
    monkeypatch.setattr(
        "dialeval.reports.charts.length_preference", lambda ratios, won: drawn.append((ratios.tolist(), won.tolist()))
    )
    number = 3 * FEWEST_POINTS
    rows: list[dict[str, object]] = [
        {"a": "x", "b": "y", "better": ("a", "b", "tie")[n % 3], "response_a": "w " * (1 + n), "response_b": "w w"}
        for n in range(number)
    ]
    del rows[-1]["response_a"]
    assert report.draw_human_figures(None, None, None, read_pairs(rows)) == []
    ((ratios, won),) = drawn
    assert ratios == pytest.approx([(1 + n) / 2 for n in range(number - 1)])
    assert won == ([1, 0, 0.5] * FEWEST_POINTS)[:-1]


def test_raters_have_a_line_for_each_of_several_qualities(merged: MergedRatings, tmp_path: Path) -> None:
    assert "| rater | rows |" in FORMATS["md"](merged)
    lines = [line(f"r{n}", rater, n % 5) for n in range(8) for rater in ("ann", "bob")]
    both = [{**each, "scores": {**each["scores"], "fluent": 1 + at % 3}} for at, each in enumerate(lines)]
    shown = FORMATS["md"](merge_ratings([written(tmp_path, "both.jsonl", both)]))
    assert "| rater | quality | rows |" in shown
    assert "| ann | fluent |" in shown


def test_markdown_and_json(merged: MergedRatings) -> None:
    assert "| b\\|ob |" in FORMATS["md"](merged)
    assert json.loads(FORMATS["json"](merged))["qualities"]["overall"]["n"] == 8
