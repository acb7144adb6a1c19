"""A ranking as a table."""

from __future__ import annotations

import csv
import io
import json

import msgspec

import dialeval
from dialeval.human import report as rankings
from dialeval.reports.formatting import show_rounded
from human.test_rank import compared
from human.test_report import printed

FOUND = dialeval.rank(compared())


def test_the_terminal() -> None:
    text = printed(rankings.lay_out(FOUND))
    first, second, last = (each.system for each in FOUND.systems)
    lines = text.splitlines()
    assert lines[0].split()[:2] == ["system", "group"]
    assert [line.split()[:2] for line in lines[2:5]] == [[first, "a"], [second, "a"], [last, "b"]]
    assert "won/tied/lost against" in text
    assert "/".join(map(str, FOUND.between[first][last])) in text
    assert "equal length" not in text


def test_at_equal_length_its_effect_is_told() -> None:
    rows = compared(400, length=1.0)
    del rows[0]["response_a"]
    text = printed(rankings.lay_out(dialeval.rank(rows, length=True)))
    assert "Controlled for length: doubling the length multiplies the odds by" in text
    assert "1 pairs without texts are left out." in text


def test_all_cells_of_a_ranking() -> None:
    shown = rankings.to_document(FOUND)
    strengths, between = shown.tables
    assert [list(row) for row in strengths.rows] == [
        [
            each.system,
            FOUND.letters[each.system],
            show_rounded(each.strength, each.interval, signed=True),
            show_rounded(each.score, each.score_interval),
            f"{each.wins}/{each.ties}/{each.losses}",
        ]
        for each in FOUND.systems
    ]
    names = [each.system for each in FOUND.systems]
    assert list(between.head) == ["won/tied/lost against", *names]
    assert [list(row) for row in between.rows] == [
        [name, *("" if name == other else "/".join(map(str, FOUND.between[name][other])) for other in names)]
        for name in names
    ]
    assert shown.notes[0] == "600 pairs by annotators; 95% intervals over 150 dialogues (jackknife, Student)."
    assert shown.notes[3].endswith("(significance level 0.05, corrected by Holm for 3 pairs of systems).")
    assert len(shown.notes) == 4
    two = rankings.to_document(dialeval.rank(compared(100), systems=["x", "z"]))
    assert two.notes[3].endswith("(significance level 0.05).")


def test_the_effect_of_length_in_odds() -> None:
    effect = {"length": 1.0, "length_interval": (-1.0, 2.0), "left_out": 0}
    notes = rankings.to_document(msgspec.structs.replace(FOUND, **effect)).notes
    assert notes[4:] == [
        (
            "Controlled for length: doubling the length multiplies the odds by 2.00 [0.50, 4.00], and the strengths "
            "are free of this effect."
        )
    ]


def test_every_format() -> None:
    lines = list(csv.DictReader(io.StringIO(rankings.FORMATS["csv"](FOUND))))
    assert [line["groups"] for line in lines] == ["a", "a", "b"]
    assert float(lines[0]["strength"]) == FOUND.systems[0].strength
    assert rankings.FORMATS["md"](FOUND).startswith("| system | group |")
    assert r"\toprule" in rankings.FORMATS["latex"](FOUND)
    assert json.loads(rankings.FORMATS["json"](FOUND)) == FOUND.to_dict()
