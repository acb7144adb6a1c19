"""What people would say, as tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console

import dialeval
from dialeval.human import report
from dialeval.human.estimate import HumanEstimates, plan_ratings
from dialeval.human.report import make_human_section
from dialeval.reports import documents
from human.rated_runs import ratings_of, run_of
from human.test_rank import compared
from reports.test_html import HOSTILE, Page

RUN, OPINIONS = run_of(systems={"a": 3.0, "b": 3.6, "[c]": 3.0})
TEMPLATE = "{0.__class__}"
SAMPLE = dialeval.sample(RUN, 150)
RANKED = dialeval.rank(compared())


def found(by: str = "judge") -> HumanEstimates:
    return dialeval.estimate_ratings(RUN, ratings_of(SAMPLE, OPINIONS), judge=by, sample=SAMPLE)


def printed(content: object, width: int = 120) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(content)
    return file.getvalue()


def test_the_terminal() -> None:
    text = printed(documents.lay_out(found()))
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
    made = dialeval.estimate_ratings(run, ratings_of(sample, opinions), judge="judge", sample=sample)
    assert TEMPLATE in report.state_verdict(made)[0]


def test_ratings_alone_have_no_columns_of_a_judge() -> None:
    text = printed(documents.lay_out(found("")))
    assert "effective" not in text
    assert "estimate" not in text
    assert "ratings alone" in text


def test_what_was_not_drawn_is_marked_in_every_format_for_people() -> None:
    rated = [
        {"system": "a", "dialog_id": f"d{row // 3}", "response": f"a says {row}", "scores": OPINIONS["a"][row]}
        for row in range(0, 180, 4)
    ]
    marked = dialeval.estimate_ratings(RUN, rated, judge="judge", assume_random=True)
    for text in (
        printed(documents.lay_out(marked)),
        documents.FORMATS["md"](marked),
        documents.FORMATS["latex"](marked),
    ):
        assert "NOT A RANDOM SAMPLE" in text
    assert json.loads(documents.FORMATS["json"](marked))["at_random"] is False


def test_every_digit_and_every_format() -> None:
    made = found()
    lines = list(csv.DictReader(io.StringIO(documents.FORMATS["csv"](made))))
    assert [line["baseline"] for line in lines] == ["", "", "", "a", "a"]
    assert float(lines[1]["value"]) == made["b"].value
    assert float(lines[3]["high"]) == made.differences[0].interval[1]
    assert [float(lines[3][name]) for name in ("factor", "baseline_factor")] == list(made.differences[0].factors)
    assert lines[0]["baseline_factor"] == ""
    assert r"\[c\]" in documents.FORMATS["md"](made)
    assert r"\toprule" in documents.FORMATS["latex"](made)
    assert json.loads(documents.FORMATS["json"](made)) == made.to_dict()


def test_the_plan() -> None:
    text = printed(documents.lay_out(plan_ratings({"a": 100, "b": 10_000}, 0.1)))
    assert "more dialogues" in text
    assert "1,199" in text
    assert "standard deviation of 1" in text
    several = " ".join(printed(documents.lay_out(plan_ratings({"a": 10_000, "b": 10_000}, 0.1))).split())
    assert "a difference of 0.1 between two of these systems is detected with 80% power" in several


def opinions() -> tuple[Any, Any, Any, Any]:
    run, said = run_of(dialogues=40)
    sample = dialeval.sample(run, 80)
    lines = [*ratings_of(sample, said), *({**line, "rater": "bob"} for line in ratings_of(sample, said))]
    ratings = [{**row, **line} for row, line in zip([*sample.by_id().values()] * 2, lines, strict=True)]
    report = dialeval.estimate_ratings(run, lines, judge="judge", sample=sample)
    agreement = dialeval.measure_agreement(run, ratings, metrics="judge", resamples=20)
    pairs = [{"a": "a", "b": HOSTILE.replace("\udc80", ""), "better": ("a", "b", "tie")[n % 3]} for n in range(12)]
    return run, report, agreement, dialeval.rank(pairs)


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


def test_a_ranking_in_the_terminal() -> None:
    text = printed(documents.lay_out(RANKED))
    first, second, last = (each.system for each in RANKED.systems)
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["system", "group"]
    assert [line.split()[:2] for line in lines[2:5]] == [[first, "a"], [second, "a"], [last, "b"]]
    assert "won/tied/lost against" in text
    assert "/".join(map(str, RANKED.between[first][last])) in text
    assert "equal length" not in text


def test_at_equal_length_its_effect_is_told() -> None:
    rows = compared(400, length=1.0)
    del rows[0]["response_a"]
    text = printed(documents.lay_out(dialeval.rank(rows, length=True)))
    assert "Controlled for length: doubling the length multiplies the odds by" in text
    assert "1 pairs without texts are left out." in text


def test_every_format_of_a_ranking() -> None:
    lines = list(csv.DictReader(io.StringIO(documents.FORMATS["csv"](RANKED))))
    assert [line["groups"] for line in lines] == ["a", "a", "b"]
    assert float(lines[0]["strength"]) == RANKED.systems[0].strength
    assert documents.FORMATS["md"](RANKED).startswith("| system | group |")
    assert r"\toprule" in documents.FORMATS["latex"](RANKED)
    assert json.loads(documents.FORMATS["json"](RANKED)) == RANKED.to_dict()
