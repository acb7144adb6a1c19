"""Runs save, load back equal, and notice files that do not belong together."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dialeval
from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run, load
from dialeval.core.signature import Signature


def make_run(items: Floats, system: str = "a") -> Run:
    signature = Signature.of("length", tokeniser="words.1")
    scored = min(2, len(items))
    turn = Estimate(1.5, 0.25, len(items), scored, items=items, signature=signature).with_confidence(1.97)
    corpus = Estimate(0.5, 0.0, len(items), scored, corpus=True, signature=signature)
    dialogue = Estimate(float("nan"), float("nan"), 1, 0, items=np.array([np.nan]), level=Level.DIALOGUE)
    estimates = {"length": turn, "distinct-2": corpus, "inform/hotel": dialogue}
    other = Result({"length": replace(turn, items=np.array([7.0]), rows=1, scored=1)}, {"bleu-4": "needs references"})
    return Run({system: Result(estimates), f"{system} 2": other}, "0.1.0", ("a warning",))


@settings(max_examples=25)
@given(hnp.arrays(np.float64, st.integers(0, 5), elements=st.floats(allow_infinity=False)), st.text(min_size=1))
def test_saves_and_loads_back_equal(tmp_path_factory: pytest.TempPathFactory, items: Floats, system: str) -> None:
    run = make_run(items, "".join(char for char in system if not "\ud800" <= char <= "\udfff"))
    folder = run.save(tmp_path_factory.mktemp("run") / "deep" / "er")
    assert load(folder) == run
    assert dialeval.load(folder / "run.json") == run


def test_saving_again_gives_the_same_bytes(tmp_path: Path) -> None:
    run = make_run(np.array([1.0, np.nan]))
    first, second = run.save(tmp_path / "1"), load(run.save(tmp_path / "2")).save(tmp_path / "3")
    assert (first / "run.json").read_bytes() == (second / "run.json").read_bytes()
    assert sorted(path.name for path in second.iterdir()) == ["items.parquet", "run.json"]


def test_different_runs_are_not_equal() -> None:
    assert make_run(np.array([1.0])) != make_run(np.array([2.0]))
    assert make_run(np.array([1.0])) != make_run(np.array([1.0]), "b")


def test_items_of_another_run_are_refused(tmp_path: Path) -> None:
    one, two = make_run(np.array([1.0])).save(tmp_path / "1"), make_run(np.array([2.0])).save(tmp_path / "2")
    shutil.copy(one / "items.parquet", two / "items.parquet")
    with pytest.raises(DataError, match=r"does not belong to run\.json"):
        load(two)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not JSON"),
        (b"[]", "expected object, got array"),
        (b'{"format": 1}', "missing required field dialeval"),
        (b'{"format": 99}', "newer than this dialeval"),
    ],
)
def test_a_broken_run_is_a_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_a_missing_run_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path / "nowhere")


def test_what_was_skipped_is_known_to_the_run() -> None:
    assert make_run(np.array([1.0])).skipped == {"bleu-4": "needs references"}


def test_a_mean_has_an_interval_and_a_corpus_value_has_none() -> None:
    result = make_run(np.array([1.0]))["a"]
    assert result["length"].interval == pytest.approx((1.5 - 1.97 * 0.25, 1.5 + 1.97 * 0.25))
    assert result["distinct-2"].interval is None
    assert result["distinct-2"].confidence == 0.0


def test_roles_tell_anchors_from_systems(tmp_path: Path) -> None:
    plain = Result({"length": Estimate(1.0, 0.0, 1, 1)})
    run = Run({"mine": plain, "gold": replace(plain, role="ceiling"), "floor/x": plain}, "0")
    assert [result.role for result in run.values()] == ["system", "ceiling", "system"], "a name says nothing"
    assert run.anchors == ["gold"]
    assert run["mine"] != run["gold"]
    assert [result.role for result in load(run.save(tmp_path)).values()] == ["system", "ceiling", "system"]


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({}, {"mine": "system", "floor/x": "system", "ceiling/gold": "system"}),
        (
            {"anchors": {"systems": {"floor/x": "floor", "ceiling/gold": "ceiling"}}},
            {"mine": "system", "floor/x": "floor", "ceiling/gold": "ceiling"},
        ),
        ({"anchors": {"systems": {"ceiling/gold": "ceiling"}}}, {"floor/x": "system", "ceiling/gold": "ceiling"}),
        (
            {"breakdown": {"mine": [], "floor/x": []}},
            {"mine": "system", "floor/x": "system", "ceiling/gold": "ceiling"},
        ),
    ],
)
def test_a_run_saved_without_roles_has_those_of_its_anchors(
    tmp_path: Path, details: dict[str, object], expected: dict[str, str]
) -> None:
    plain = Result({"length": Estimate(1.0, 0.0, 1, 1)})
    folder = Run(dict.fromkeys(("mine", "floor/x", "ceiling/gold"), plain), "0", (), details).save(tmp_path)
    document = json.loads((folder / "run.json").read_text())
    for result in document["systems"].values():
        del result["role"]
    (folder / "run.json").write_text(json.dumps(document))
    roles = {name: result.role for name, result in load(folder).items()}
    assert expected.items() <= roles.items()
