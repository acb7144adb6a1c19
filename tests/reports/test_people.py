"""What people would say, as tables."""

from __future__ import annotations

import csv
import io
import json

from rich.console import Console

import dialeval
from analysis.rated_runs import ratings_of, run_of
from dialeval.analysis.people import People, plan_ratings
from dialeval.reports import people

RUN, OPINIONS = run_of(systems={"a": 3.0, "b": 3.6, "[c]": 3.0})
HOSTILE = "{0.__class__}"
SAMPLE = dialeval.draw(RUN, 150)


def found(by: str = "judge") -> People:
    return dialeval.estimate(RUN, ratings_of(SAMPLE, OPINIONS), by=by, sample=SAMPLE)


def printed(content: object, width: int = 120) -> str:
    file = io.StringIO()
    Console(file=file, width=width).print(content)
    return file.getvalue()


def test_the_terminal() -> None:
    text = printed(people.table(found()))
    assert text.startswith("People would rate b higher than a; people do not tell [c] from a (overall, 5% level")
    assert "ratings alone" in text
    assert "worth" in text
    assert "b - a" in text
    assert "other dialogues of the same kind" in text
    assert "NOT DRAWN" not in text


def test_a_name_is_a_name_whatever_it_holds() -> None:
    run, opinions = run_of(dialogues=20, systems={HOSTILE: 3.0, "b": 3.0})
    sample = dialeval.draw(run, 40)
    made = dialeval.estimate(run, ratings_of(sample, opinions), by="judge", sample=sample)
    assert HOSTILE in people.verdict(made)[0]


def test_ratings_alone_have_no_columns_of_a_judge() -> None:
    text = printed(people.table(found("")))
    assert "worth" not in text
    assert "estimate" not in text
    assert "ratings alone" in text


def test_what_was_not_drawn_is_marked_in_every_format_for_people() -> None:
    rated = [
        {"system": "a", "dialog_id": f"d{row // 3}", "response": f"a says {row}", "scores": OPINIONS["a"][row]}
        for row in range(0, 180, 4)
    ]
    marked = dialeval.estimate(RUN, rated, by="judge", as_if_random=True)
    for text in (printed(people.table(marked)), people.FORMATS["md"](marked), people.FORMATS["latex"](marked)):
        assert "NOT DRAWN AT RANDOM" in text
    assert json.loads(people.FORMATS["json"](marked))["at_random"] is False


def test_every_digit_and_every_format() -> None:
    made = found()
    lines = list(csv.DictReader(io.StringIO(people.to_csv(made))))
    assert [line["baseline"] for line in lines] == ["", "", "", "a", "a"]
    assert float(lines[1]["value"]) == made["b"].value
    assert float(lines[3]["high"]) == made.differences[0].interval[1]
    assert [float(lines[3][name]) for name in ("factor", "baseline_factor")] == list(made.differences[0].factors)
    assert lines[0]["baseline_factor"] == ""
    assert r"\[c\]" in people.FORMATS["md"](made)
    assert r"\toprule" in people.FORMATS["latex"](made)
    assert json.loads(people.FORMATS["json"](made)) == made.to_dict()


def test_the_plan() -> None:
    text = printed(people.plan_table(plan_ratings({"a": 100, "b": 10_000}, 0.1)))
    assert "more dialogues" in text
    assert "1,199" in text
    assert "standard deviation of 1" in text
