"""Comparisons of runs: what is compared, what is refused, and what the figures are."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval import sample_data
from dialeval.analysis.comparison import choose_trials, compare
from dialeval.analysis.pairing import label_folders
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.stats.significance import holm
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses

QUICK: dict[str, Any] = {"resamples": 200, "trials": 300}
WORDS = ["the", "a", "cat", "dog", "sat", "ran", "on", "by", "old", "new", "mat", "hat"]


def texts(seed: int, rows: int = 40, words: int = 12) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS[:words], size=rng.integers(3, 9))) for _ in range(rows)]


def made(systems: dict[str, list[str]], references: list[str] | None = None, metrics: str = "length,distinct") -> Run:
    return dialeval.evaluate(systems, references, metrics=metrics)


def test_a_known_difference_is_found_and_none_is_not(run: Run) -> None:
    found = {(row.system, row.key): row for row in compare(run, **QUICK).differences}
    assert found["narrow", "distinct-1"].significant
    assert found["narrow", "distinct-1"].worse
    assert not found["b", "distinct-1"].significant
    assert found["narrow", "distinct-1"].effect < -1 < abs(found["b", "distinct-1"].effect) * 3 + 1


def test_baseline_systems_and_metrics_can_be_chosen(run: Run) -> None:
    found = compare(run, baseline="narrow", systems=["b"], metrics=["distinct-2"], **QUICK)
    assert [(row.baseline, row.system, row.key) for row in found.differences] == [("narrow", "b", "distinct-2")]
    assert not found.differences[0].worse


def test_several_runs_take_their_names_along(run: Run) -> None:
    one, other = made({"bot": texts(1), "old": texts(4)}), made({"bot": texts(2)})
    found = compare({"main": one, "branch": other}, **QUICK)
    assert (found.baseline, found.systems) == ("main/bot", ["old", "branch/bot"])
    assert compare({"main": one, "branch": other}, baseline="branch", **QUICK).baseline == "branch/bot"
    assert compare([other, one], **QUICK).baseline == "1/bot"
    assert label_folders(["x/results", "y/results", "z/main/"]) == ["x/results", "y/results", "main"]


def test_exchanges_give_the_same_as_scoring_exchanged_texts(run: Run) -> None:
    """The decisive one: a trial of the randomization is an evaluation of responses that were really exchanged."""
    from dialeval.analysis.values import Values

    both = Values.of(run["a"]).join(Values.of(run["narrow"]))
    swap = np.random.default_rng(5).integers(2, size=40)
    found = both.compute([np.hstack([1 - swap, swap])[None, :]])
    mixed = [right if taken else left for left, right, taken in zip(texts(1), texts(3, words=4), swap, strict=True)]
    anew = made({"mixed": mixed})["mixed"]
    exchanged = {key: value for key, (value,) in found.items()}
    assert exchanged == pytest.approx({key: anew[key].mean for key in anew}, rel=1e-12)


def test_saved_runs_compare_alike(run: Run, tmp_path: Path) -> None:
    again = compare(dialeval.load(run.save(tmp_path)), **QUICK)
    assert again.to_dict() == compare(run, **QUICK).to_dict()


def test_metrics_with_other_inputs_are_left_out_with_the_reason() -> None:
    references = texts(8)
    changed = [*texts(9)[:2], *references[2:]]
    one, other = (
        made({name: texts(seed)}, given, "bleu-2,length")
        for name, seed, given in (("a", 1, references), ("b", 2, changed))
    )
    found = compare([one, other], **QUICK)
    assert (found.design.name, found.design.by, found.design.common) == ("common", "references", 38)
    assert found.differences[0].reason is None
    smoothed = dialeval.evaluate({"c": texts(1)}, references, metrics="bleu-2", settings={"bleu": {"smooth": 7}})
    (row,) = compare([one, smoothed], **QUICK).differences
    assert math.isnan(row.difference)
    assert row.reason == "settings of smooth differ: 4 and 7"
    assert math.isnan(row.p)


def test_other_settings_of_a_metric_are_not_compared() -> None:
    one = dialeval.evaluate({"a": texts(1)}, metrics="distinct-1,length")
    other = dialeval.evaluate({"b": texts(2)}, metrics="distinct-1,length", settings={"distinct": {"oov": "unk"}})
    found = {row.key: row for row in compare([one, other], **QUICK).differences}
    assert found["distinct-1"].reason == "settings of oov differ: self and unk"
    assert found["length"].reason is None


def test_rows_without_ids_prompts_and_references_are_paired_only_if_they_are_as_many() -> None:
    runs = [made({"a": texts(1)}), made({"b": texts(2, rows=39)})]
    assert compare(runs, **QUICK).design.name == "unpaired"
    for design in ("paired", "common"):
        with pytest.raises(SettingError, match="neither ids nor prompts in common, and different numbers of rows"):
            compare(runs, design=design, **QUICK)


def test_the_panel_is_one_family_and_other_metrics_are_another(run: Run) -> None:
    scored = made({"a": texts(1), "b": texts(2)}, texts(8), "length,distinct-1,bleu-1,bleu-2,rouge-l")
    found = compare(scored, **QUICK)
    assert found.panel == ("bleu-2", "rouge-l")
    rows = {row.key: row for row in found.differences}
    for family in (("bleu-2", "rouge-l"), ("length", "distinct-1", "bleu-1")):
        ps = [rows[key].p for key in family]
        for row, most in zip((rows[key] for key in family), holm(ps), strict=True):
            assert row.p <= row.adjusted_p <= most + 0.01, "permutations know that metrics are correlated"
    assert compare(scored, metrics=["bleu-1", "length"], **QUICK).panel == ("bleu-1",)
    assert compare(run, **QUICK).panel == ("length", "distinct-1", "distinct-2"), "no metric says which is better"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"baseline": "nobody"}, "no system is called 'nobody'"),
        ({"metrics": ["bleu-9"]}, "not every system has 'bleu-9'"),
        ({"systems": ["a"]}, "needs two systems"),
        ({"alpha": 0}, "alpha must be between"),
        ({"trials": 0}, "at least one trial"),
        ({"detect": -1.0}, "above 0"),
    ],
)
def test_wrong_settings_are_refused(run: Run, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        compare(run, **wrong)


def test_means_are_compared_on_rows_that_both_were_scored_on() -> None:
    one = made(
        {"a": ["x y z", "", "u v", "x y"], "b": ["x y", "u v w", "", "z y"]}, metrics="distinct(per=response),length"
    )
    key = "distinct(per=response)"
    failures, row = compare(one, metrics=[key], **QUICK).differences
    assert (row.units, row.of) == (2, 4)
    assert (row.mean, row.baseline_mean) == (1.0, 1.0)
    assert (failures.key, row.missing, row.left_out) == ("failure-rate", (1, 1), None)


def test_more_trials_than_anybody_waits_for_are_refused() -> None:
    assert choose_trials(5, 1e-4) <= 1_000_000
    with pytest.raises(SettingError, match=r"alpha of 1e-06 for 5 tests takes [0-9,]+,000 trials"):
        choose_trials(5, 1e-6)


def test_every_family_can_be_compared() -> None:
    from dialeval.breakdown import evaluate_breakdown
    from dialeval.multiwoz import evaluate as evaluate_town

    here = sample_data.folder()
    town = evaluate_town(here / "town" / "predictions", data="town", dst=True)
    found = compare(town, **QUICK)
    assert found.design.unit == "dialogues"
    assert {"inform", "bleu/town", "msttr", "num-trigrams"} <= set(found.keys)
    untested = [row for row in found.differences if row.reason and not math.isnan(row.difference)]
    assert {row.key for row in untested} == {"inform/cart", "success/cart", "msttr", "entropy", "cond-entropy"}
    talks = here / "breakdown"
    detected = evaluate_breakdown(talks / "data", [talks / "keywords", talks / "cautious"])
    found = compare(detected, **QUICK)
    assert found.systems == ["cautious"]
    assert next(row for row in found.differences if row.key == "jsd-o-t-x").better == "lower"
    assert compare(detected, baseline="floor/always-X", systems=["keywords"], metrics=["f1-x"], **QUICK).differences
    sampled = evaluate_hypotheses(
        {name: here / "lsdscc" / f"{name}.txt" for name in ("varied", "safe")},
        reference_groups=here / "lsdscc" / "groups.json",
    )
    assert set(compare(sampled, **QUICK).keys) == {"mds", "pds", "max-bleu"}


def test_a_family_stands_for_its_metrics(run: Run) -> None:
    assert compare(run, metrics=["distinct"], **QUICK).keys == ["distinct-1", "distinct-2"]
    assert compare(run, metrics=["all"], **QUICK).keys == ["length", "distinct-1", "distinct-2"]
    for wrong in (["bleu"], ["nothing-9"], []):
        with pytest.raises(SettingError, match="share length, distinct-1"):
            compare(run, metrics=wrong, **QUICK)


def test_torn_dialogues_are_told() -> None:
    """Both parts of d1 begin with its first turn, so they cannot be brought together."""
    rows = [{"dialog_id": name, "turn": 1, "response": "yes"} for name in ("d1", "d2", "d1", "d3")]
    (warning,) = dialeval.evaluate(rows, metrics="length").warnings
    assert "'d1'" in warning
    assert "sort the rows by dialogue" in warning
    again = dialeval.evaluate({"a": rows, "b": rows}, metrics="length")
    assert compare([again], **QUICK).warnings == again.warnings, "a comparison of a saved run says it too"
    in_order = [{"dialog_id": name, "response": "yes"} for name in ("d1", "d1", "d2", "d3")]
    assert not dialeval.evaluate(in_order, metrics="length").warnings


def test_no_interval_goes_beyond_what_the_metric_allows() -> None:
    """Three dialogues: the studentized interval alone would reach far beyond 1."""
    references = ["a b c d", "e f g h", "i j k l"]
    run = dialeval.evaluate({"a": ["a b c d", "x", "y"], "b": references}, references, metrics="rouge-l,length")
    rows = {row.key: row for row in compare(run).differences}
    low, high = rows["rouge-l"].interval or (0, 0)
    assert -1 <= low <= rows["rouge-l"].difference <= high <= 1
    low, high = rows["length"].interval or (0, 0)
    assert high - low > 2, "a length has no upper end"
