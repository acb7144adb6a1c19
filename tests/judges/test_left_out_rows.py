"""Training with rows left out: which rows, which dialogues, and what a run goes on from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.io.ratings import read_ratings
from dialeval.metrics.encoder_files import find_encoder
from judges.test_dialogue_training import rated, write_data

torch = pytest.importorskip("torch")

from tools.judge_training.cross_training import JudgeRecipe, RatedRows  # noqa: E402
from tools.judge_training.dialogue_training import JudgeTraining, SharedTurns, corpus_name, left_out_rows  # noqa: E402

LONG = "one two three four five six seven eight"
SIZES: dict[str, Any] = {"steps": 2, "batch_size": 4, "rating_steps": 2, "rating_rows": 8, "beside": 2, "rank": 2}


def test_each_fold_leaves_out_a_set_a_shared_context_or_a_system() -> None:
    rows = RatedRows(read_ratings([*rated("one", 6, 1), *rated("two", 4, 2), *rated("other", 4, 2)]))
    trained = np.arange(14) < 10
    folds = left_out_rows(rows, trained, "two", validate=True)
    found = {fold.name: (fold.known.tolist(), fold.test.tolist(), fold.system) for fold in folds}
    assert found == {
        "all": (list(range(10)), list(range(14)), False),
        "without one": ([6, 7, 8, 9], [0, 1, 2, 3, 4, 5], False),
        "without two": ([0, 1, 2, 3, 4, 5], [6, 7, 8, 9], False),
        "without other": ([0, 1, 2, 3, 4, 5], [10, 11, 12, 13], False),
        "without two of a": ([0, 1, 2, 3, 4, 5, 7, 9], [6, 8], True),
        "without two of b": ([0, 1, 2, 3, 4, 5, 6, 8], [7, 9], True),
    }
    assert [fold.name for fold in left_out_rows(rows, trained, "two", validate=False)] == ["all"]


def test_what_was_made_from_other_data_is_not_taken_up(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    write_data(tmp_path)
    chats = tmp_path / "chats.jsonl"
    lines = list[str]()
    files = find_encoder(tmp_path / "encoder")
    training = JudgeTraining(files, JudgeRecipe(**SIZES), "cpu", lines.append, tmp_path / "training")
    one, two = rated("one", 8, 1), rated("two", 8, 2)
    trained = np.arange(16) < 8
    rows = RatedRows(read_ratings([*one, *two]))
    folds = left_out_rows(rows, trained, None, validate=False)
    learned = training.learn([chats], rows, folds)
    assert learned.judged.shape == (16, 9)
    assert not np.isnan(learned.judged).any()
    assert np.isnan(learned.by_system).all()
    lines.clear()
    np.testing.assert_array_equal(training.learn([chats], rows, folds).judged, learned.judged)
    assert lines == []
    # Another set to judge, and other words to judge.
    changed = [*one, {**two[0], "response": "you know"}, *two[1:]]
    for others in ([*one, *two, *rated("more", 3, 3)], changed):
        rows = RatedRows(read_ratings(others))
        with pytest.raises(SettingError, match="other settings or data"):
            training.learn([chats], rows, left_out_rows(rows, np.arange(len(others)) < 8, None, validate=False))
    # Other dialogues, where only the first stage was kept.
    for kept in (tmp_path / "training").glob("ratings-*"):
        kept.unlink()
    chats.write_text(chats.read_text() + json.dumps({"turns": ["hello there", "how are you ?"]}) + "\n")
    rows = RatedRows(read_ratings([*one, *two]))
    with pytest.raises(SettingError, match=r"run\.safetensors was saved by a run with other settings or data"):
        training.learn([chats], rows, folds)


def test_dialogues_that_rated_contexts_come_from_are_left_out() -> None:
    ratings = read_ratings([{"context": ["hi you", f"{LONG} !", "Yes."], "response": "a", "scores": 1}])
    dialogues = [[LONG, "no"], ["yes", "hi you"], [f"{LONG} nine"], [], ["a", LONG.upper()], ["hi you", "yes"]]
    assert list(map(SharedTurns(ratings).are_in, dialogues)) == [True, False, False, False, True, False]
    detached = read_ratings([{"context": ["well , yes , no , sir !"], "response": "a", "scores": 1}])
    assert SharedTurns(detached).are_in(["Well, yes, no, sir!"])
    two = read_ratings([{"context": ["one two three four", "five six seven eight"], "response": "a", "scores": 1}])
    shared = [["one two three four", "five six seven eight"], ["five six seven eight", "one two three four"]]
    assert list(map(SharedTurns(two).are_in, shared)) == [True, False]


def test_a_corpus_is_called_after_its_file_or_its_folder() -> None:
    paths: list[str | Path] = ["a/chats.jsonl.gz", "star/all.jsonl.gz", Path("x/y/valid.jsonl")]
    assert list(map(corpus_name, paths)) == ["chats", "star", "y"]
