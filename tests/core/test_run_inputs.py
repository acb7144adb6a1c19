"""A run of other inputs is not replaced unasked; one that is made again is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.core.errors import DataError
from dialeval.core.result import check_folder

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
