"""Slices: figures of parts of the rows, differences in each, and one family of tests over all of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval import sample_data
from dialeval.analysis.comparison import compare
from dialeval.analysis.pairing import choose_main_keys
from dialeval.analysis.slices import compare_slices, list_kept_fields
from dialeval.core.columns import RaggedColumn
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.metrics.registry import registry
from dialeval.multiwoz import evaluate
from dialeval.stats.significance import holm

QUICK: dict[str, Any] = {"resamples": 100, "trials": 500}
TOPICS = ("taxi", "train", "hotel")


def result(values: Any, topics: list[list[str]], key: str = "rouge-l") -> Result:
    """A system with two rows in each dialogue."""
    items = np.asarray(values, np.float64)
    offsets = np.arange(0, len(items) + 1, 2)
    estimate = Estimate.of_moments(Moments.of(items, offsets), (0.0, 1.0))
    signed = Estimate(
        estimate.mean, estimate.std, len(items), len(items), scores=items, signature=registry().parse(key).signature()
    )
    fields = {"topic": RaggedColumn.from_lists(topics)}
    return Result({key: signed}, table=RowTable(offsets, [f"d{n}" for n in range(len(offsets) - 1)], None, {}, fields))


def drawn(seed: int, worse_in: str | None = None, dialogues: int = 60) -> Run:
    """Two systems that are alike, but for one topic."""
    rng = np.random.default_rng(seed)
    topics = [TOPICS[n % 3] for n in range(dialogues) for _ in range(2)]
    level = np.repeat(rng.normal(0.5, 0.1, dialogues), 2)
    first, second = (np.clip(level + rng.normal(0, 0.1, 2 * dialogues), 0, 1) for _ in range(2))
    second = np.where([topic == worse_in for topic in topics], np.clip(second - 0.2, 0, 1), second)
    listed = [[topic] for topic in topics]
    return Run({"old": result(first, listed), "new": result(second, listed)}, "0")


def test_the_slice_that_is_worse_is_found_and_no_other() -> None:
    found = compare_slices(drawn(1, "train"), "topic", **QUICK)
    assert [(each.label, each.units, each.dialogues) for each in found.slices] == [
        (topic, 40, 20) for topic in sorted(TOPICS)
    ]
    worst = found.worst("new")
    assert worst is not None
    assert (worst.where.label, worst.by.key) == ("train", "rouge-l")
    assert worst.by.worse
    assert [row.significant for row in found.differences] == [each.label == "train" for each in found.slices]
    assert found.worst_first("topic", "rouge-l")[0].label == "train"
    assert found.slices[2].difference("new", "rouge-l") is not None
    assert found.slices[2].difference("new", "bleu-4") is None


def test_all_p_are_one_family() -> None:
    found = compare_slices(drawn(2, "train"), ["topic", "turn"], **QUICK)
    assert len(found.differences) == 5
    most = holm([row.p for row in found.differences])
    assert all(row.p <= row.adjusted_p <= p + 0.02 for row, p in zip(found.differences, most, strict=True))
    alone = [compare(each.run, **QUICK).differences[0] for each in found.slices]
    assert [row.p for row in alone] == [row.p for row in found.differences], "a slice is compared like any run"
    assert any(row.adjusted_p > one.adjusted_p for row, one in zip(found.differences, alone, strict=True))


def no_difference(cases: range) -> float:
    """The share of runs without a difference in which no slice is significant."""
    clean = []
    for seed in cases:
        found = compare_slices(drawn(1000 + seed), ["topic", "turn"], resamples=50)
        assert len(found.differences) == 5
        clean.append(not any(row.significant for row in found.differences))
    return float(np.mean(clean))


def test_without_a_difference_no_slice_is_significant() -> None:
    assert no_difference(range(20)) >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / 20)


@pytest.mark.slow
def test_without_a_difference_no_slice_is_significant_in_95_of_100_cases() -> None:
    assert no_difference(range(200)) >= 0.95


def test_systems_with_other_values_in_the_same_rows_are_not_compared() -> None:
    run = drawn(5)
    turned = [[TOPICS[(row // 2 + 1) % 3]] for row in range(120)]
    other = Run({"old": run["old"], "new": result(run["new"]["rouge-l"].scores, turned)}, "0")
    reasons = {str(each.reason) for each in compare_slices(other, "topic").slices}
    assert all("0 of 20 and 20 dialogues are in common by id" in reason for reason in reasons)


def test_main_keys_are_one_of_each_family_with_a_direction() -> None:
    texts = ["a b c d e", "b c d e f"]
    run = dialeval.evaluate({"x": texts}, texts, metrics="length,distinct,bleu,rouge-l")
    assert choose_main_keys(run) == ["bleu-4", "rouge-l"]
    assert choose_main_keys(dialeval.evaluate({"x": texts}, metrics="length")) == ["length"]
    task = evaluate({"hasty": str(sample_data.folder() / "town" / "predictions" / "hasty.json")}, "town")
    assert choose_main_keys(task) == ["inform", "success", "bleu/town", "combined"]
    assert list_kept_fields(task) == ["domain"]
    domains = {each.label for each in compare_slices(task, "domain").slices}
    assert domains == {"cart", "eatery", "ferry", "inn"}


def test_fields_of_rows_are_kept_saved_and_cut_by(tmp_path: Path) -> None:
    rows = [
        {
            "response": f"w{n} b c",
            "dialog_id": n // 2,
            "topic": TOPICS[n % 3],
            "stars": n % 4,
            "ok": n > 3,
            "tags": ["x"] * (n % 2),
        }
        for n in range(12)
    ]
    run = dialeval.evaluate({"bot": rows}, metrics="length,distinct-1", keep=["topic", "stars", "ok", "tags"])
    again = dialeval.load(run.save(tmp_path))
    assert again["bot"] == run["bot"]
    assert list_kept_fields(again) == ["topic", "stars", "ok", "tags"]
    found = compare_slices(again, "topic,stars,ok,tags")
    assert {(each.field, each.label): each.units for each in found.slices} == {
        **{("topic", topic): 4 for topic in TOPICS},
        **{("stars", str(n)): 3 for n in range(4)},
        ("ok", "true"): 8,
        ("ok", "false"): 4,
        ("tags", "x"): 6,
        ("tags", "(no value)"): 6,
    }
    signature = found.slices[0].run["bot"]["length"].signature
    assert signature is not None
    assert signature["slice"].startswith("topic=")
    with pytest.raises(SettingError, match="only topic, stars, ok, tags, turn, length, history"):
        compare_slices(again, ["mood"])


def test_plain_data_holds_every_figure_and_difference() -> None:
    found = compare_slices(drawn(8, "taxi"), "topic", **QUICK)
    plain = json.loads(json.dumps(found.to_dict()))
    assert (plain["by"], plain["baseline"], plain["tests"]) == (["topic"], "old", 3)
    assert plain["settings"]["trials"] == 500
    for entry, each in zip(plain["slices"], found.slices, strict=True):
        assert (entry["slice"], entry["units"]) == (each.label, each.units)
        assert entry["systems"]["new"]["rouge-l"]["mean"] == each.run["new"]["rouge-l"].mean
        difference = each.difference("new", "rouge-l")
        assert difference is not None
        assert entry["differences"] == json.loads(json.dumps([difference.to_dict()]))


def test_slices_that_one_system_lacks_are_not_tested() -> None:
    random = np.random.default_rng(2)
    first = result(random.random(60), [["x"]] * 30 + [["y"]] * 30)
    second = result(random.random(60), [["x"]] * 60)
    found = compare_slices(Run({"old": first, "new": second}, "0"), "topic", **QUICK)
    assert {each.label: each.reason for each in found.slices}["y"] == "some system has no rows here"
    assert {each.label: each.reason for each in found.slices}["x"] is None
