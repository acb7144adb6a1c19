"""The verdict: no direction without significance, counts that add up, and what it takes where nothing is sure."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace as with_fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

import dialeval
from dialeval.analysis import difference as difference_module
from dialeval.analysis.alignment import Design
from dialeval.analysis.comparison import Comparison, compare
from dialeval.analysis.difference import Difference, Settings
from dialeval.analysis.verdict import judge_system
from dialeval.core.arrays import Ints
from dialeval.core.fold import Better
from dialeval.core.result import Run
from dialeval.reports import comparisons as verdict_module
from dialeval.reports.comparisons import RunVerdict, choose_mark, judge_run, state_verdict
from dialeval.stats.resampling import draw_swaps

DIRECTIONS: list[Better | None] = ["higher", "lower", None]


def difference(key: str, by: float, better: Better | None, p: float, significant: bool) -> Difference:
    made = Difference(key, "old", "new", 0.5, 0.5 + by, by, 60, 60, False, better, better is not None)
    made = replace(made, interval=(by - 0.01, by + 0.01))
    return replace(made, p=p, adjusted_p=p, significant=significant, effect=by, error=0.07, detectable=0.2)


PAIRED = Design("paired", "dialogues", 60, 60, 60, "ids")
DESIGN = "Paired design: the systems have the same 60 dialogues, matched by id."


def comparison(*rows: Difference, systems: Sequence[str] = ("new",)) -> Comparison:
    panel = tuple(dict.fromkeys(row.key for row in rows))
    designs = dict.fromkeys(systems, PAIRED)
    settings = asdict(Settings())
    return Comparison(
        baseline="old", systems=list(systems), differences=list(rows), designs=designs, panel=panel, **settings
    )


def said(*rows: Difference, systems: Sequence[str] = ("new",)) -> list[str]:
    """The verdict without the sentence about the design, which comes first."""
    first, *rest = state_verdict(comparison(*rows, systems=systems))
    assert first == DESIGN
    return rest


@st.composite
def differences(draw: st.DrawFn) -> list[Difference]:
    rows = []
    for number in range(draw(st.integers(1, 12))):
        significant = draw(st.booleans())
        p = 0.001 if significant else draw(st.sampled_from([0.04, 0.3, 1.0, math.nan]))
        by = draw(st.floats(-1, 1).filter(bool))
        rows.append(difference(f"m{number}", by, draw(st.sampled_from(DIRECTIONS)), p, significant))
    return rows


@given(differences())
def test_better_worse_and_undecided_are_the_tested_metrics_with_a_direction(rows: list[Difference]) -> None:
    found = judge_system(rows, [row.key for row in rows])
    directed = [row for row in rows if row.better is not None and not math.isnan(row.p)]
    assert sorted(row.key for part in (found.better, found.worse, found.undecided) for row in part) == sorted(
        row.key for row in directed
    )
    assert found.panel == directed


@given(differences())
def test_no_direction_is_claimed_without_significance(rows: list[Difference]) -> None:
    text = " ".join(said(*rows))
    gains = [row for row in rows if row.significant and row.evidence and not row.worse]
    losses = [row for row in rows if row.significant and row.evidence and row.worse]
    claimed = re.search(r"is (better|worse) than old on (?:(\d+) of|m\d+)", text)
    assert (claimed is not None) == bool(gains or losses)
    assert ("Largest gain" in text) == bool(gains)
    assert ("Largest loss" in text) == bool(losses)
    if claimed:
        expected = gains if claimed[1] == "better" else losses
        assert claimed[2] is None or int(claimed[2]) == len(expected)
        if claimed[2] is not None:
            assert f"worse on {len(losses) or 'none'}" in text if gains else "better on none" in text
    else:
        assert (
            "No significant difference between new and old" in text
            or "None of the tested metrics says which replies are better" in text
        )
    marked = {row.key for row in rows if choose_mark(row) in ("▲", "▼", "◆")}
    assert marked == {row.key for row in rows if row.significant}
    assert {row.key for row in rows if choose_mark(row) == "·"} == {row.key for row in rows if math.isnan(row.p)}


def test_a_lower_value_is_a_gain_where_lower_is_better() -> None:
    (text,) = said(difference("kl", -0.2, "lower", 0.001, True))
    assert text.startswith("new is better than old on kl (significance level 0.05).")
    assert "Largest gain: kl −0.200 (−0.210 to −0.190)." in text
    assert choose_mark(difference("kl", -0.2, "lower", 0.001, True)) == "▲"
    assert choose_mark(difference("kl", 0.2, "lower", 0.001, True)) == "▼"
    assert choose_mark(difference("length", 0.2, None, 0.001, True)) == "◆"


def words(seed: int, kinds: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{n}" for n in rng.integers(0, kinds, 8)) for _ in range(40)]


def test_a_run_is_compared_if_it_has_two_systems_that_can_be() -> None:
    run = dialeval.evaluate({"a": words(1, 50), "b": words(2, 5)}, metrics="distinct-1,length")
    found = judge_run(run)
    assert found.comparison is not None
    assert found.sentences == state_verdict(compare(run))
    assert "b and a differ in distinct-1" in found.sentences[1]
    assert judge_run(Run({"a": run["a"]}, run.version)) == RunVerdict()
    floors = {"a": run["a"], "floor/b": with_fields(run["b"], role="floor")}
    assert judge_run(Run(floors, run.version)) == RunVerdict()
    shorter = dialeval.evaluate({"c": words(3, 50)[:20]}, metrics="distinct-1,length")
    found = judge_run(Run({**run, **shorter}, run.version))
    assert found.sentences[:2] == [
        "b: Paired design: the systems have the same 40 rows, matched by position.",
        "c: Unpaired design: 40 rows of a and 20 of c are compared as independent samples.",
    ]
    unknown = judge_run(Run({"a": run["a"], "b": with_fields(run["b"], rows=None)}, run.version))
    assert unknown.comparison is None
    assert unknown.sentences[0].startswith("Not compared: b cannot be compared with a: the run does not record")


@pytest.mark.parametrize("name", ["[bold]x", "\x1b[31mred", "a" * 200])
def test_names_are_text(name: str) -> None:
    row = replace(difference("m", 0.2, "higher", 0.001, True), system=name)
    (text,) = said(row, systems=[name])
    assert "\x1b" not in text
    assert len(text) < 250


def test_what_is_not_asked_for_makes_a_bounded_number_of_tests() -> None:
    def swapped(systems: int) -> tuple[int, str]:
        """How many exchanges of dialogues a report makes, and what it says."""
        run = dialeval.evaluate({f"s{number}": ["a b", "c", f"a {number}"] for number in range(systems)})
        made = 0

        def counted(clusters: int, trials: int, seed: int) -> Iterator[Ints]:
            nonlocal made
            made += trials
            return draw_swaps(clusters, trials, seed)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(difference_module, "draw_swaps", counted)
            patch.setattr(verdict_module, "MOST_TESTS", 20)
            patch.setattr(verdict_module, "MOST_UNASKED", 10_000)
            found = judge_run(run)
        return made, found.sentences[-1]

    few, many = swapped(20), swapped(40)
    assert few[0] == many[0] > 0
    assert many[1].endswith("so many tests take long. `dialeval compare` tests all.")
    assert int(many[1].split()[0]) == int(few[1].split()[0]) + 20
