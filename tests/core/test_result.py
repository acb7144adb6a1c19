"""Saved runs, and runs that are added."""

from __future__ import annotations

import json
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
from dialeval.core.errors import MOST_PROBLEMS, DataError, Problem, ProblemList
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run, check_folder, files_of, load
from dialeval.core.rowtable import LARGEST, PartWriter, RowTable
from dialeval.core.signature import Signature
from sealing import write_sealed


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


# Reading a saved run: parts of consecutive rows are put together, and what does not fit is refused with its file.


def saved(folder: Path, values: list[list[float]], names: dict[str, str] | None = None) -> Path:
    """A run of one system whose items are in several parts."""
    parts = []
    for each in values:
        writer = PartWriter(str(folder.parent / "nowhere"))
        rows = RowTable(np.arange(len(each) + 1), [f"d{value}" for value in each])
        writer.add("s", {"turn": {"x": np.array(each)}}, rows)
        parts += [(part, names or {}) for part in writer.finish()]
    count = sum(map(len, values))
    estimate = Estimate(sum(map(sum, values)) / count, 0.0, count, count)
    return Run({(names or {}).get("s", "s"): Result({"x": estimate})}, "0").save(folder, parts)


def test_parts_are_read_as_one(tmp_path: Path) -> None:
    for number, cut in enumerate(([[1.0, 2.0, 3.0]], [[1.0], [2.0, 3.0]], [[1.0], [2.0], [3.0]])):
        result = load(saved(tmp_path / str(number), cut))["s"]
        np.testing.assert_array_equal(result["x"].scores, [1, 2, 3])
        assert result.table == RowTable(np.arange(4), ["d1.0", "d2.0", "d3.0"])


def test_a_run_that_is_saved_again_leaves_no_old_parts(tmp_path: Path) -> None:
    folder = saved(tmp_path / "run", [[1.0], [2.0], [3.0]])
    saved(folder, [[1.0]])
    assert sorted(path.name for path in folder.iterdir()) == ["rows-00000.parquet", "run.json", "scores-00000.parquet"]
    load(folder).save(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["rows.parquet", "run.json", "scores.parquet"]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    one, two = saved(tmp_path / "one", [[1.0], [2.0]]), saved(tmp_path / "two", [[3.0], [4.0]])
    part = one / "scores-00001.parquet"
    part.write_bytes((two / part.name).read_bytes())
    with pytest.raises(DataError, match=r"scores-00001.parquet"):
        load(one)
    document = json.loads((two / "run.json").read_text())
    document["scores"].pop()
    write_sealed(document, two / "run.json")
    with pytest.raises(DataError, match="1 values of x are saved for 2 rows"):
        load(two)


def test_no_digit_of_a_saved_run_is_changed_unnoticed(tmp_path: Path) -> None:
    """Each digit of `run.json` in turn is another one, as on a damaged disk or by somebody's hand."""
    file = saved(tmp_path, [[0.25, 0.5]]) / "run.json"
    sound = file.read_bytes()
    places = [place for place, byte in enumerate(sound) if chr(byte).isdigit()]
    assert len(places) > 50
    for place in places:
        digit = b"%d" % ((sound[place] - ord("0") + 5) % 10)
        file.write_bytes(sound[:place] + digit + sound[place + 1 :])
        with pytest.raises(DataError, match=r"run.json"):
            load(tmp_path)
    file.write_bytes(sound)
    assert load(tmp_path)["s"]["x"].mean == 0.375


def test_a_run_without_a_digest_is_refused_and_one_with_other_spaces_is_not(tmp_path: Path) -> None:
    file = saved(tmp_path, [[0.25, 0.5]]) / "run.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps(document))
    assert load(tmp_path)["s"]["x"].mean == 0.375
    del document["digest"]
    file.write_text(json.dumps(document))
    with pytest.raises(DataError, match="digest"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("field", "value", "what"),
    [
        ("mean", 0.97, "s: the values of x have the mean 0.375, and 0.97 is stated"),
        ("mean", None, "s: the values of x have the mean 0.375, and nan is stated"),
        ("mean", 0.375000001, "s: the values of x have the mean 0.375, and 0.375 is stated"),
        ("scored", 1, "s: 2 values of x are saved, and 1 are stated"),
    ],
)
def test_a_mean_that_its_items_do_not_have_is_refused_whatever_the_digest_says(
    tmp_path: Path, field: str, value: float | None, what: str
) -> None:
    file = saved(tmp_path, [[0.25, 0.5]]) / "run.json"
    document = json.loads(file.read_text())
    document["systems"]["s"]["metrics"]["x"][field] = value
    write_sealed(document, file)
    with pytest.raises(DataError, match=what):
        load(tmp_path)


# A run of other inputs is not replaced unasked; one that is made again is.


FORCE = "choose another folder, or replace it: --force, force=True in Python"


def scored(responses: Any, references: Any = None) -> dialeval.Run:
    return dialeval.evaluate(responses, references, metrics="length,bleu-1" if references else "length")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        Path(name).write_text("one two\nthree\n")
    return tmp_path


def test_the_same_files_are_replaced(files: Path) -> None:
    scored({"x": "a.txt"}).save("run")
    Path("a.txt").write_text("something else\nby now\n")
    again = dialeval.evaluate({"x": "./a.txt"}, ["other", "references"], metrics="length,bleu-1")
    again.save("run")
    assert dialeval.load("run") == again


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"x": "b.txt"}, "holds a run in which x is of a.txt, and here it is of b.txt"),
        ({"y": "a.txt"}, "holds a run of x, and this one is of y"),
        ({"x": "a.txt", "y": "b.txt"}, "holds a run of x, and this one is of x, y"),
    ],
)
def test_other_files_are_refused(files: Path, other: Any, what: str) -> None:
    first = scored({"x": "a.txt"})
    first.save("run")
    with pytest.raises(DataError, match=f"run.json: {what}; {FORCE}"):
        scored(other).save("run")
    assert dialeval.load("run") == first
    scored(other).save("run", force=True)
    assert dialeval.load("run") == scored(other)


def test_texts_in_memory_have_the_same_references(tmp_path: Path) -> None:
    scored(["a b", "c"], ["a", "c"]).save(tmp_path)
    scored(["x", "y"], ["a", "c"]).save(tmp_path)
    with pytest.raises(DataError, match=r"holds a run of other references \(\w{12}, and here \w{12}\)"):
        scored(["a b", "c"], ["a", "d"]).save(tmp_path)


def test_other_files_are_refused_before_anything_is_read(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored("a.txt").save("run")
    check_folder("run", sources=["a.txt"])
    check_folder("run", sources=["./a.txt", "b.txt"])  # who knows what b.txt holds
    monkeypatch.setattr("dialeval.engine.evaluate._Inputs.read", None)
    what = "run.json: holds a run in which a is of a.txt, which is not among the responses now"
    with pytest.raises(DataError, match=what):
        dialeval.evaluate("b.txt", metrics="length", output="run")
    with pytest.raises(DataError, match=what):
        dialeval.evaluate("b.tx[t]", metrics="length", output="run")
    monkeypatch.undo()
    monkeypatch.chdir(files)
    run = dialeval.evaluate("b.tx[t]", metrics="length", output="run", execution=dialeval.Execution(force=True))
    assert [each["length"].mean for each in dialeval.load("run").values()] == [1.5]
    assert len(run) == 1


def test_floors_and_ceilings_do_not_count(files: Path) -> None:
    with_baselines = dialeval.evaluate("a.txt", "b.txt", metrics="length", baselines=True)
    with_baselines.save("run")
    scored("a.txt").save("run")


# Problems, warnings and JSON texts.


def test_a_problem_is_one_line_that_a_terminal_does_not_obey() -> None:
    problem = Problem("a\nb.txt", 7, "the row is \x1b[2J\x1b]0;x\a", "mend \u202eit")
    assert str(problem) == r"a\nb.txt:7: the row is \x1b[2J\x1b]0;x\x07; mend \u202eit"


def test_many_problems_are_counted() -> None:
    same = DataError(Problem("a.txt", line, "bad", "mend it") for line in range(1, 9))
    assert str(same) == "a.txt:1: bad; mend it (also in line 2, 3, 4, 5, 6 and 2 more)"
    error = DataError(Problem("a.txt", line, f"bad {line}", "mend it") for line in range(1, 9))
    assert str(error).splitlines()[-1] == "and 3 more; of rows and lines `dialeval validate` lists all"
    assert len(error.problems) == 8


def test_a_list_of_problems_has_an_end() -> None:
    problems = ProblemList()
    with pytest.raises(DataError) as info:
        for line in range(1, 2 * MOST_PROBLEMS):
            problems.append(Problem("a.txt", line, "bad", "mend it"))
    *listed, last = info.value.problems
    assert [problem.line for problem in listed] == list(range(1, MOST_PROBLEMS + 1))
    assert str(last) == "a.txt: further problems are not listed; correct these first"


def problems(count: int, what: str = "odd") -> list[Problem]:
    return [Problem("a.txt", line, what, "mend it") for line in range(1, count + 1)]
