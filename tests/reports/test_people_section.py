"""The section on people in the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dialeval
from analysis.rated_runs import ratings_of, run_of
from dialeval.reports.people import people_section
from reports.test_html import HOSTILE, Page


def opinions() -> tuple[Any, Any, Any, Any]:
    run, said = run_of(dialogues=40)
    sample = dialeval.draw(run, 80)
    lines = [*ratings_of(sample, said), *({**line, "rater": "bob"} for line in ratings_of(sample, said))]
    ratings = [{**row, **line} for row, line in zip([*sample.by_id().values()] * 2, lines, strict=True)]
    people = dialeval.estimate(run, lines, by="judge", sample=sample)
    agreement = dialeval.agreement(run, ratings, metrics="judge", resamples=20)
    pairs = [{"a": "a", "b": HOSTILE.replace("\udc80", ""), "better": ("a", "b", "tie")[n % 3]} for n in range(12)]
    return run, people, agreement, dialeval.rank(pairs)


def test_nobody_was_asked() -> None:
    assert people_section(None, None, None) is None


def test_everything_that_people_said_is_shown(tmp_path: Path) -> None:
    run, people, agreement, ranking = opinions()
    path = dialeval.report(run, tmp_path / "r.html", people=people, agreement=agreement, ranking=ranking)
    page = Page(path.read_text(encoding="utf-8"))
    (section,) = (attrs for attrs in page.of("section") if attrs["id"] == "people")
    assert section["aria-labelledby"] == "people-title"
    for words in (
        "What people would say",
        "People would rate b higher than a",
        "ratings alone",
        "Krippendorff's alpha is 1.00 over 80 rows",
        "How far metrics agree with them",
        "Which one is preferred",
        "Wins between all pairs",
    ):
        assert words in page.text
    assert not page.of("img")
    assert not any(
        attrs["id"] == "people" for attrs in Page(dialeval.report(run, path).read_text("utf-8")).of("section")
    )


def test_parts_stand_alone() -> None:
    _, people, _, ranking = opinions()
    only = people_section(None, None, ranking)
    assert only is not None
    assert "What people would say" not in only.content
    alone = people_section(people, None, None)
    assert alone is not None
    assert "preferred" not in alone.content
