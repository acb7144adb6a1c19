"""Coverage as registered metrics: settings, one alignment for three figures, every aligner in batches of any size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialeval
from dialeval.core.columns import RaggedColumn
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.core.fold import RowMetric
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses
from dialeval.suites.lsdscc.metrics import Coverage, compute_bleu_floors, warn_of_short
from laws.coverage import WORLD, Row
from laws.responses import FewVectors
from laws.worlds import Place

VARIANTS = [
    Coverage(aligner="nltk-bleu", smooth=7),
    Coverage("max-bleu", aligner="nltk-nist", n=2),
    Coverage("pds", aligner="sacre"),
    Coverage("max-bleu", aligner="embedding"),
    Coverage("max-bleu", n=5, tokenizer="lower-words.1"),
]


@pytest.mark.parametrize("metric", VARIANTS, ids=str)
@given(rows=WORLD.worlds, cut=st.integers(0, 12))
@settings(max_examples=30)
def test_batches_change_nothing(metric: RowMetric, rows: Sequence[Row], cut: int) -> None:
    place = Place(WORLD, rows)
    whole = place.scored(metric, rows).scores[metric.name]
    parts = [place.scored(metric, part).scores[metric.name] for part in (rows[:cut], rows[cut:])]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_the_training_text_weighs_words() -> None:
    texts: dict[str, Any] = {"hypotheses": [["the cat"]], "reference_groups": [[["cat"], ["the"]]]}
    given_: dict[str, Any] = {"vectors": FewVectors(), "metrics": ["coverage(by=max-bleu,aligner=embedding)"]}
    plain = evaluate_hypotheses(**texts, **given_)["system"]
    weighted = evaluate_hypotheses(**texts, **given_, train=["the the the cat"])["system"]
    (one,), (other,) = plain.values(), weighted.values()
    assert one.mean != other.mean
    assert "train" not in str(one.signature)
    assert "|train:" in str(other.signature)


@pytest.mark.parametrize(
    "given_",
    [
        {"by": "bleu"},
        {"aligner": "nltk"},
        {"n": 0},
        {"n": 101},
        {"aligner": "embedding", "n": -1},
        {"smooth": 8},
        {"tokenizer": "letters"},
    ],
)
def test_settings_that_cannot_be(given_: dict[str, Any]) -> None:
    with pytest.raises(SettingError):
        Coverage(**given_)


def test_evaluate_takes_lists_and_mappings() -> None:
    run = evaluate_hypotheses(
        {"one": [["a b", "zz"], ["c"]], "two": [["a b"], ["d"]]},
        reference_groups={"q1": {"2": ["a b"], "1": ["x y"]}, "q2": [["c"], ["d"]]},
        metrics="mds,max-bleu",
    )
    assert list(run) == ["one", "two"]
    one = run["one"]["mds"]
    assert one.scores is not None
    assert one.scores.tolist() == [1.0, 0.5]
    assert (one.units, one.scored) == (2, 2)
    assert one.interval is not None
    table = run.details["alignments"]["one"]
    assert [entry["query"] for entry in table] == ["q1", "q2"]
    assert [each["group"] for each in table[0]["hypotheses"]] == ["2", "1"]
    assert [each["text"] for each in table[0]["hypotheses"]] == ["a b", "zz"]
    assert table[1]["unreached"] == ["1"]


def test_the_table_is_saved_with_the_run_and_can_be_left_out(tmp_path: Any) -> None:
    given_: dict[str, Any] = {"hypotheses": [["a b c d"]], "reference_groups": [[["a"], ["b c"]]]}
    run = evaluate_hypotheses(**given_)
    assert dialeval.load(run.save(tmp_path / "run")) == run
    assert dialeval.load(tmp_path / "run").details == run.details != {}
    assert evaluate_hypotheses(**given_, alignments=False).details == {}


def test_only_what_is_measured_counts() -> None:
    run = evaluate_hypotheses([["a b c d e"]], reference_groups=[[["a"], ["b"]]])
    assert list(run["system"]) == ["mds", "pds", "max-bleu"]
    assert run.skipped == {}
    with pytest.raises(NeedError, match="reference_groups"):
        evaluate_hypotheses([["a"]], metrics="mds")
    with pytest.raises(NeedError, match="vectors"):
        evaluate_hypotheses([["a"]], reference_groups=[[["a"]]], settings={"coverage": {"aligner": "embedding"}})


def test_unequal_lengths_are_an_error() -> None:
    with pytest.raises(DataError, match="hypotheses for 2 queries"):
        evaluate_hypotheses([["a"], ["b"]], reference_groups=[[["a"]]])


def test_a_warning_without_groups() -> None:
    text = "a reply of seven words or so"
    run = evaluate_hypotheses([[text]], reference_groups=[[text, "b c"]])
    assert len(run.warnings) == 1
    assert "no query has more than one group" in run.warnings[0]


def test_a_warning_where_short_hypotheses_dominate() -> None:
    groups = [[["a b c d e"], ["f g"]]]
    run = evaluate_hypotheses([["no", "yes", "ok then"]], reference_groups=groups)
    assert len(run.warnings) == 1
    assert run.warnings[0].startswith("system: short hypotheses dominate (a median of 1 words)")
    others: list[dict[str, Any]] = [
        {"settings": {"coverage": {"aligner": "sacre"}}},
        {"metrics": "mds(aligner=nltk-bleu)"},
    ]
    for more in others:
        assert evaluate_hypotheses([["no", "yes"]], reference_groups=groups, **more).warnings == ()
    assert evaluate_hypotheses([["a reply of seven words or so"]], reference_groups=groups).warnings == ()


def test_floors_are_what_wrong_hypotheses_get() -> None:
    lengths = np.arange(20)
    run = evaluate_hypotheses(
        [["x " * length] for length in lengths], reference_groups=[[["a"], ["b"]]] * 20, metrics="max-bleu"
    )
    items = run["system"]["max-bleu"].scores
    assert items is not None
    np.testing.assert_allclose(compute_bleu_floors(lengths, 4), items, rtol=1e-12)


def test_no_hypotheses_are_not_short() -> None:
    assert warn_of_short("x", RaggedColumn.from_lists([[]]), 4) is None


def test_fractions_of_groups_are_between_0_and_1() -> None:
    """The closest score of an aligner has the bounds of that aligner."""
    assert {by: Coverage(by).bounds for by in ("mds", "pds", "max-bleu")} == dict.fromkeys(
        ("mds", "pds", "max-bleu"), (0.0, 1.0)
    )
    assert Coverage("max-bleu", aligner="embedding").bounds == (-1.0, 1.0)
    assert Coverage("mds", aligner="nltk-nist").bounds == (0.0, 1.0)
    assert Coverage("max-bleu", aligner="nltk-nist").bounds == (0.0, math.inf)
