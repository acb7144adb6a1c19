"""Saved runs, and runs that are added."""

from __future__ import annotations

import math
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dialeval
import evaluating
from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run, check_folder, files_of, load
from dialeval.core.rowtable import LARGEST
from dialeval.core.signature import Signature


def make_run(items: Floats, system: str = "a") -> Run:
    signature = Signature.of("length", tokenizer="words.1")
    known = items[~np.isnan(items)]
    scored, mean = len(known), float(known.mean()) if len(known) else math.nan
    turn = Estimate(mean, 0.25, len(items), scored, scores=items, signature=signature).with_confidence(1.97)
    corpus = Estimate(0.5, 0.0, len(items), scored, corpus=True, signature=signature)
    dialogue = Estimate(float("nan"), float("nan"), 1, 0, scores=np.array([np.nan]), level=Level.DIALOGUE)
    estimates = {"length": turn, "distinct-2": corpus, "inform/hotel": dialogue}
    other = Result(
        {"length": replace(turn, mean=7.0, scores=np.array([7.0]), units=1, scored=1)}, {"bleu-4": "needs references"}
    )
    return Run({system: Result(estimates), f"{system} 2": other}, "0.1.0", ("a warning",))


VALUES = st.floats(-LARGEST, LARGEST) | st.just(math.nan)


@settings(max_examples=25)
@given(hnp.arrays(np.float64, st.integers(0, 5), elements=VALUES), st.text(min_size=1))
def test_saves_and_loads_back_equal(tmp_path_factory: pytest.TempPathFactory, items: Floats, system: str) -> None:
    run = make_run(items, "".join(char for char in system if not "\ud800" <= char <= "\udfff"))
    folder = run.save(tmp_path_factory.mktemp("run") / "deep" / "er")
    assert load(folder) == run
    assert dialeval.load(folder / "run.json") == run


def test_items_of_another_run_are_refused(tmp_path: Path) -> None:
    one, two = make_run(np.array([1.0])).save(tmp_path / "1"), make_run(np.array([2.0])).save(tmp_path / "2")
    shutil.copy(one / "scores.parquet", two / "scores.parquet")
    with pytest.raises(DataError, match=r"does not belong to run\.json"):
        load(two)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "not JSON"),
        (b"[]", "expected object, got array"),
        (b'{"format": 4}', "missing required field dialeval"),
        (b'{"format": 1}', "was saved in layout 1, and this dialeval reads layout 4"),
        (b'{"format": 99}', "was saved in layout 99, and this dialeval reads layout 4"),
    ],
)
def test_a_broken_run_is_a_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(DataError, match=message):
        load(tmp_path)


def test_a_missing_run_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere: there is no such folder"):
        load(tmp_path / "nowhere")


@contextmanager
def full_disk(bytes_: int) -> Iterator[None]:
    """No file can grow beyond some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("bytes_", [0, 100, 20_000])
def test_a_save_that_fails_leaves_the_old_run(tmp_path: Path, bytes_: int) -> None:
    old, small = make_run(np.array([1.0])), make_run(np.array([2.0]))
    folder = old.save(tmp_path / "old")
    before = sorted(path.name for path in folder.iterdir())
    many_items, large_manifest = make_run(np.random.default_rng(0).random(10_000)), {"text": "x" * 100_000}
    for new in (many_items, replace(small, details=large_manifest)):
        with full_disk(bytes_), pytest.raises(DataError, match="cannot be written"):
            new.save(folder)
        assert load(folder) == old
        assert sorted(path.name for path in folder.iterdir()) == before
        with full_disk(bytes_), pytest.raises(DataError, match="cannot be written"):
            new.save(tmp_path / "new")
        assert list((tmp_path / "new").iterdir()) == []


def test_a_run_replaces_all_files_of_the_old_one_and_no_others(tmp_path: Path) -> None:
    import dialeval

    with_rows = dialeval.evaluate(["one two", "three"], metrics="distinct-1")
    saved = with_rows.save(tmp_path, comparison=b"{}")
    assert {path.name for path in saved.iterdir()} == {path.name for path in files_of(tmp_path)}
    (tmp_path / "notes.txt").write_text("mine")
    left = tmp_path / ".scores.parquet.0123456789ab.unfinished"
    left.write_text("left by a run that was killed")
    os.utime(left, (0, 0))
    plain = make_run(np.array([1.0]))
    assert load(plain.save(tmp_path, force=True)) == plain
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "scores.parquet", "notes.txt"}


@pytest.mark.parametrize(
    "name", ["run.json", "scores.parquet", "rows.parquet", "contributions.parquet", "comparison.json"]
)
def test_files_that_are_no_run_are_left_alone(tmp_path: Path, name: str) -> None:
    for content in (b"[]", b'{"run": 3}', b"", b"PAR1"):
        (tmp_path / name).write_bytes(content)
        for refused in (lambda: check_folder(tmp_path), lambda: make_run(np.array([1.0])).save(tmp_path)):
            with pytest.raises(DataError, match=f"{name}: would be overwritten, but dialeval did not write it"):
                refused()
        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, content)]


def test_two_saves_at_a_time_leave_one_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _handle: None)  # or it takes long
    runs = [make_run(np.array([number])) for number in (1.0, 2.0)]
    for number in range(20):
        start = Barrier(2)

        def save(run: Run, folder: Path = tmp_path / str(number), start: Barrier = start) -> None:
            start.wait(60)
            run.save(folder)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(save, runs))
        assert load(tmp_path / str(number)) in runs


SAVER = """
import sys
from pathlib import Path
import numpy as np
from core.test_result import make_run

print("ready", flush=True)
for line in sys.stdin:
    make_run(np.full(2000, float(sys.argv[1]))).save(line.strip())
    print("saved", flush=True)
"""


@contextmanager
def saver(value: float) -> Iterator[subprocess.Popen[str]]:
    """A process that saves a run in every folder that it is told."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    command = [sys.executable, "-c", SAVER, str(value)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.slow
def test_processes_that_save_into_the_same_folders(tmp_path: Path) -> None:
    runs = [make_run(np.full(2000, value)) for value in (1.0, 2.0)]
    with saver(1) as one, saver(2) as two:
        for number in range(100):
            for process in (one, two):
                assert process.stdin is not None
                process.stdin.write(f"{tmp_path / str(number)}\n")
                process.stdin.flush()
            for process in (one, two):
                assert process.stdout is not None
                assert process.stdout.readline() == "saved\n"
            assert load(tmp_path / str(number)) in runs


@pytest.mark.slow
def test_processes_that_are_killed_while_they_save(tmp_path: Path) -> None:
    old, new = (make_run(np.full(2000, value)) for value in (1.0, 2.0))
    dice = np.random.default_rng(0)
    for _ in range(40):
        old.save(tmp_path)
        with saver(2) as process:
            assert process.stdin is not None
            process.stdin.write(f"{tmp_path}\n")
            process.stdin.flush()
            time.sleep(dice.uniform(0, 0.15))
            process.kill()
        assert load(tmp_path) in (old, new)
    for left in tmp_path.glob(".*.unfinished"):
        os.utime(left, (0, 0))
    old.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "scores.parquet"}


ROWS: list[dict[str, Any]] = [
    {"dialog_id": f"d{n // 3}", "turn": n % 3, "response": f"word {n}", "reference": f"word {n + n % 2}"}
    for n in range(9)
]


def made(name: str, rows: list[dict[str, Any]] = ROWS, **more: Any) -> dialeval.Run:
    return evaluating.evaluate({name: rows}, metrics="length,rouge-l", **more)


def test_the_systems_of_both_in_order() -> None:
    one, other = made("a"), made("b", [{**row, "response": "else"} for row in ROWS])
    both = one + other
    assert list(both) == ["a", "b"]
    assert (both["a"], both["b"]) == (one["a"], other["b"])
    assert type(both) is dialeval.Run
    assert list(one + one) == ["1/a", "2/a"]
    assert list(one + other + one) == ["1/a", "b", "2/a"]
    assert dialeval.compare(both, resamples=20, trials=20).systems == ["b"]


def test_warnings_commands_and_details_of_both() -> None:
    details = {"command": "dialeval one", "curves": {"a": [1]}, "other": 5, "same": [1], "deep": {"by": {"a": 1}}}
    one = replace(made("a"), warnings=("w", "x"), details=details)
    other = replace(one, warnings=("x", "y"), details={**details, "command": "dialeval two", "other": 6})
    both = one + other
    assert both.warnings == ("w", "x", "y")
    assert both.details == {
        "command": "dialeval one\ndialeval two",
        "curves": {"1/a": [1], "2/a": [1]},
        "same": [1],
        "deep": {"by": {"1/a": 1, "2/a": 1}},
    }


def test_a_floor_that_is_the_same_in_both_is_kept_once() -> None:
    one, other = made("a", baselines=True), made("b", [{**row, "response": "else"} for row in ROWS], baselines=True)
    both = one + other
    assert len(both.baselines) == len(one.baselines) > 0
    assert next(iter(both)) == "a"
    assert set(both) == {*one, *other}


def test_systems_of_other_rows_are_joined_and_compared_by_what_they_have_in_common() -> None:
    for rows, design in (
        (ROWS[:6], "common"),
        ([*ROWS[:2], *ROWS[3:]], "paired"),  # a dialogue with another number of turns
        ([{**row, "dialog_id": row["dialog_id"].upper()} for row in ROWS], "unpaired"),
    ):
        both = made("a") + made("b", rows)
        assert list(both) == ["a", "b"]
        assert dialeval.compare(both, metrics=["length"]).design.name == design


def test_only_runs_are_added() -> None:
    with pytest.raises(TypeError):
        made("a") + 1
