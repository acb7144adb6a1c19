"""A comparison that is saved with its run, and used again where `compare` would give the same."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import dialeval
from dialeval.analysis import comparison as comparing
from dialeval.analysis.comparison import compare, load_comparison
from dialeval.cli.main import main
from dialeval.core.errors import DataError
from dialeval.reports.comparisons import judge_run

TEXTS = {
    "a": ["one two", "three four five", "six", "seven eight"] * 3,
    "b": ["one", "three", "six seven", "eight"] * 3,
    "c": ["", "three four", "six six six", "seven"] * 3,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = dialeval.evaluate(TEXTS, metrics="length,distinct-1,distinct-2")
    return run.save(tmp_path / "run", comparison=judge_run(run).dump())


def same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right) and left.to_dict() == right.to_dict()


def test_a_saved_comparison_equals_a_new_one(folder: Path) -> None:
    run = dialeval.load(folder)
    for settings in ({}, {"baseline": "a"}, {"most_tests": 300}, {"alpha": 0.05, "seed": 12345}):
        found = load_comparison(folder, run, **settings)
        new = compare(run, **settings)
        assert found is not None
        assert same(found, new)
        assert repr(found.differences) == repr(new.differences)


@pytest.mark.parametrize(
    "settings",
    [
        {"baseline": "b"},
        {"systems": ["a", "b"]},
        {"metrics": ["length"]},
        {"alpha": 0.01},
        {"confidence": 0.9},
        {"resamples": 500},
        {"trials": 3000},
        {"seed": 1},
        {"detect": 0.1},
        {"design": "unpaired"},
        {"weight": "dialogues"},
    ],
)
def test_other_settings_are_computed_anew(folder: Path, settings: dict[str, Any]) -> None:
    assert load_comparison(folder, dialeval.load(folder), **settings) is None


def test_metrics_that_were_not_tested_are_added(tmp_path: Path) -> None:
    references = ["one two", "three four", "six seven", "eight nine"] * 3
    run = dialeval.evaluate(TEXTS, references, metrics="rouge-l,chrf,length,distinct-1")
    panel = {"metrics": ["rouge-l", "chrf"]}
    document = comparing.dump_comparison(compare(run, metrics=panel["metrics"]), **panel)
    run.save(tmp_path / "run", comparison=document)
    assert same(load_comparison(tmp_path / "run", run), compare(run))
    assert load_comparison(tmp_path / "run", run, alpha=0.01) is None


def test_a_comparison_that_is_not_that_of_the_run_is_refused(folder: Path) -> None:
    run = dialeval.load(folder)
    file = folder / "comparison.json"
    document = json.loads(file.read_text())
    document["comparison"]["differences"][0]["difference"] = 1.0
    file.write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"does not belong to run\.json"):
        load_comparison(folder, run)
    (folder / "comparison.json").unlink()
    with pytest.raises(DataError):
        load_comparison(folder, run)


def test_a_comparison_of_other_systems_is_not_used(folder: Path) -> None:
    run = dialeval.load(folder)
    fewer = dialeval.Run({name: run[name] for name in ("a", "b")}, run.version)
    assert load_comparison(folder, fewer) is None


def test_a_run_that_is_saved_again_without_a_comparison_has_none(folder: Path) -> None:
    run = dialeval.load(folder)
    run.save(folder)
    assert not (folder / "comparison.json").exists()
    assert load_comparison(folder, run) is None


def test_values_that_are_not_finite_come_back(tmp_path: Path) -> None:
    run = dialeval.evaluate({"a": ["x y", "z"], "b": ["x", ""]}, metrics="length,distinct-1")
    found = compare(run)
    row = replace(found.differences[0], interval=(-np.inf, np.inf), effect=np.nan)
    odd = replace(found, differences=[row, *found.differences[1:]])
    run.save(tmp_path / "run", comparison=comparing.dump_comparison(odd))
    back = load_comparison(tmp_path / "run", run)
    assert back is not None
    assert back.differences[0].interval == (-np.inf, np.inf)
    assert np.isnan(back.differences[0].effect)


def command(*words: str) -> None:
    with pytest.raises(SystemExit):
        sys.argv = ["dialeval", *words]
        main()


def test_score_compares_once_and_compare_and_report_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []
    find = comparing._find_differences

    def count(*arguments: Any) -> Any:
        made.append("comparison")
        return find(*arguments)

    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(comparing, "_find_differences", count)
    for name, texts in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    files, run = [str(tmp_path / f"{name}.txt") for name in ("a", "b")], str(tmp_path / "run")
    command("score", *files, "-m", "length,distinct-1", "-o", run)
    assert len(made) == 1
    shown = capsys.readouterr().out
    command("compare", run)
    again = capsys.readouterr().out
    command("report", run, "--save", str(tmp_path / "report.html"))
    assert len(made) == 1
    assert again.splitlines()[0] in shown
    command("compare", run, "--seed", "1")
    assert len(made) == 2


def test_a_run_whose_comparison_is_interrupted_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name, texts in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dialeval.reports.comparisons.judge_run", interrupt)
    monkeypatch.setattr(sys, "argv", ["dialeval", "score", "a.txt", "b.txt", "-m", "length", "-o", "run"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert list(dialeval.load(tmp_path / "run")) == ["a", "b"]


@pytest.mark.parametrize("forged", ["no difference", "no differences"])
def test_a_forged_comparison_passes_no_gate(
    tmp_path: Path, forged: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every digest fits: gates are computed from the run, whatever was saved next to it."""
    texts = {"old": ["one two three four five"] * 20, "new": ["one"] * 20}
    run = dialeval.evaluate(texts, [["one two three four five"]] * 20, metrics="rouge-l,length")
    judged = judge_run(run)
    assert judged.comparison is not None
    rows = [
        replace(row, mean=row.baseline_mean, difference=0.0, p=1.0, adjusted_p=1.0)
        for row in judged.comparison.differences
    ]
    rows = [replace(row, interval=(0.0, 0.0)) for row in rows] if forged == "no difference" else []
    made = replace(judged.comparison, differences=rows)
    run.save(tmp_path / "run", comparison=comparing.dump_comparison(made, **judged.settings))
    monkeypatch.setattr(sys, "argv", sys.argv)
    shown = load_comparison(tmp_path / "run", dialeval.load(tmp_path / "run"))
    assert shown is not None
    assert len(shown.differences) == len(rows)
    for more in ([], ["--margin", "rouge-l=0.1"], ["-f", "junit"]):
        with pytest.raises(SystemExit) as end:
            sys.argv = ["dialeval", "compare", str(tmp_path / "run"), "--no-worse-than", "old", *more]
            main()
        assert end.value.code == 1, capsys.readouterr()


@pytest.mark.parametrize("older", [False, True])
def test_a_report_decides_with_the_margin_that_the_run_was_scored_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    references = [f"one two three four five {n}" for n in range(30)]
    texts = {"old": references, "new": [f"{text} six" for text in references]}
    run = dialeval.evaluate(texts, references, metrics="rouge-l")
    judged = judge_run(run, margin={"rouge-l": 0.5})
    assert judged.comparison is not None
    assert "new is worse than old" in judge_run(run).sentences[0]
    saved = judged.dump()
    assert saved is not None
    run.save(tmp_path / "run", comparison=saved.replace(b'"0.1.0"', b'"0.0.9"', 1) if older else saved)
    monkeypatch.setattr(sys, "argv", ["dialeval", "report", str(tmp_path / "run"), "--save", str(tmp_path / "r.html")])
    with pytest.raises(SystemExit):
        main()
    page = (tmp_path / "r.html").read_text()
    assert "new is as good as old" in page
    assert "new is worse than old" not in page
