"""The verdict: no direction without significance, counts that add up, and what it takes where nothing is sure."""

from __future__ import annotations

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


def said(*rows: Difference, systems: Sequence[str] = ("new",)) -> str:
    """The headline and its explanation, without what was read, which comes last."""
    verdict = comparison(*rows, systems=systems).verdict
    *sentences, last = verdict.sentences
    assert last == DESIGN
    return " ".join([f"{verdict.headline}.", *sentences])


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
    text = said(*rows)
    gains = [row for row in rows if row.significant and row.evidence and not row.worse]
    losses = [row for row in rows if row.significant and row.evidence and row.worse]
    headline = text.partition(". ")[0]
    assert headline.startswith("new is better") == bool(gains)
    assert ("worse" in headline and "looks" not in headline) == bool(losses)
    assert ("unlikely to be chance" in text) == bool(gains or losses) or (gains and losses)
    for count, what in ((len(gains), "better"), (len(losses), "worse")):
        if claimed := re.search(rf"It is {what} on (\d+) of", text):
            assert int(claimed[1]) == count
    if not gains and not losses:
        assert re.match("Too close to call|Neither is clearly|new looks|No metric says which|These two cannot", text)
    marked = {row.key for row in rows if choose_mark(row) in ("▲", "▼", "◆")}
    assert marked == {row.key for row in rows if row.significant}
    assert {row.key for row in rows if choose_mark(row) == "·"} == {row.key for row in rows if math.isnan(row.p)}


@pytest.mark.parametrize(
    ("rows", "headline", "explanation"),
    [
        ([difference("m", 0.2, "higher", 0.001, True)], "new is better than old", "It scores 0.200 higher on m (0.700"),
        ([difference("m", -0.2, "higher", 0.001, True)], "new is worse than old", "A loss this large is unlikely to"),
        (
            [difference("m", 0.2, "higher", 0.001, True), difference("n", 0.2, "lower", 0.001, True)],
            "new is better on m, but worse on n",
            "Neither is likely to be chance: the choice is yours.",
        ),
        ([difference("m", 0.01, "higher", 0.3, False)], "Too close to call", "p = 0.30), which may be chance."),
        (
            [difference("m", -0.1, "higher", 0.04, False)],
            "new looks worse than old, but 60 dialogues are too few to be sure",
            "Detectable at 80% power: 0.200.",
        ),
        (
            [replace(difference("m", 0.0, "higher", 0.9, False), margin=0.1)],
            "new is as good as old",
            "They score the same within the margin: m 0.000 (−0.010 to 0.010), margin 0.1.",
        ),
        (
            [difference("length", 9.0, None, 0.001, True)],
            "No metric says which is better: new is 9.000 tokens longer",
            "",
        ),
        (
            [difference("length", 9.0, None, 0.001, True), difference("m", 0.01, "higher", 0.3, False)],
            "Neither is clearly better: new is 9.000 tokens longer",
            "which may be chance",
        ),
        (
            [replace(difference("m", 0.2, "higher", math.nan, False), reason="no values")],
            "These two cannot be compared",
            "Not compared: m: no values.",
        ),
        (
            [
                replace(difference("failure-rate", 0.4, "lower", 0.001, True), baseline_mean=0.0, mean=0.4),
                difference("m", 0.2, "higher", 0.001, True),
            ],
            "new often gives no reply",
            "40% of its replies are missing or failed (old: 0%); other scores cover the rest and would flatter it.",
        ),
    ],
)
def test_the_kinds_of_verdict(rows: list[Difference], headline: str, explanation: str) -> None:
    text = said(*rows)
    assert text.startswith(f"{headline}. ")
    assert explanation in text


def test_a_lower_value_is_a_gain_where_lower_is_better() -> None:
    text = said(difference("kl", -0.2, "lower", 0.001, True))
    assert text.startswith("new is better than old. It scores 0.200 lower on kl (0.300, was 0.500; 95% CI −0.210 to")
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
    assert found.sentences[0].startswith("No metric says which is better: b is 0.")
    assert judge_run(Run({"a": run["a"]}, run.version)) == RunVerdict()
    floors = {"a": run["a"], "floor/b": with_fields(run["b"], role="floor")}
    assert judge_run(Run(floors, run.version)) == RunVerdict()
    shorter = dialeval.evaluate({"c": words(3, 50)[:20]}, metrics="distinct-1,length")
    found = judge_run(Run({**run, **shorter}, run.version))
    assert found.sentences[-2:] == [
        "b: Paired design: the systems have the same 40 rows, matched by position.",
        "c: Unpaired design: 40 rows of a and 20 of c are compared as independent samples.",
    ]
    unknown = judge_run(Run({"a": run["a"], "b": with_fields(run["b"], table=None)}, run.version))
    assert unknown.comparison is None
    assert unknown.sentences[0].startswith("Not compared: b cannot be compared with a: the run does not record")


@pytest.mark.parametrize("name", ["[bold]x", "\x1b[31mred", "a" * 200])
def test_names_are_text(name: str) -> None:
    row = replace(difference("m", 0.2, "higher", 0.001, True), system=name)
    text = said(row, systems=[name])
    assert "\x1b" not in text
    assert len(text) < 400


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
        (left_out,) = (line for line in found.sentences if "not tested" in line)
        return made, left_out

    few, many = swapped(20), swapped(40)
    assert few[0] == many[0] > 0
    assert many[1].endswith("so many tests take long. `dialeval compare` tests all.")
    assert int(many[1].split()[0]) == int(few[1].split()[0]) + 20
