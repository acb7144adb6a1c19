"""Figures of a run: what each is drawn from, the section of the report, and files for papers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, get_args

import numpy as np
import pytest

import dialeval
from dialeval import sample_data
from dialeval.cli.report import FIGURE_FORMATS
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.reports.charts import FigureFormat
from dialeval.reports.drawings import KINDS, write_figures
from reports.test_html import HOSTILE, Page, estimate, render, result

if TYPE_CHECKING:
    from pathlib import Path

HERE = sample_data.folder()
CORPUS = Estimate(0.25, 0.0, 3, 3, corpus=True)


@pytest.fixture(scope="module")
def chats() -> Run:
    """Three systems on sixty contexts."""
    return dialeval.evaluate(
        HERE / "responses", HERE / "references.txt", HERE / "contexts.txt", metrics="bleu-4,rouge-l,length,distinct-2"
    )


@pytest.fixture(scope="module")
def trials() -> Run:
    """Two agents with four trials of each of three tasks."""
    rewards = {
        "steady": [[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0]],
        "lucky": [[1, 0, 1, 0], [0, 1, 0, 0], [1, 1, 0, 0]],
    }
    systems = {
        name: [
            {"dialog_id": f"task-{task}", "trial": trial, "reward": reward, "context": ["book it"], "response": "done"}
            for task, own in enumerate(tasks)
            for trial, reward in enumerate(own)
        ]
        for name, tasks in rewards.items()
    }
    return dialeval.evaluate(systems, metrics="pass-hat-1,pass-hat-2,pass-hat-4,flips")


def test_every_kind_of_figure_is_drawn_by_its_name(chats: Run, trials: Run) -> None:
    for kind in KINDS:
        if kind == "pass-k":
            assert trials.plot(kind).name
        elif kind == "turns":  # single rows have no turns
            with pytest.raises(SettingError, match="no numbers for the figure 'turns'"):
                chats.plot(kind)
        else:
            assert chats.plot(kind, "rouge-l").name


def test_a_figure_has_the_width_that_is_asked_for(chats: Run) -> None:
    assert chats.plot("distribution", "rouge-l", width=3.0).width == 288
    with pytest.raises(SettingError, match="there is no figure 'pie'; there are means, distribution"):
        chats.plot("pie")
    with pytest.raises(SettingError, match="the run has no 'blue'"):
        chats.plot("distribution", "blue")


def test_figures_say_their_values(chats: Run) -> None:
    value = chats["careful"]["rouge-l"]
    assert value.interval is not None
    words = chats.plot("means", "rouge-l").description
    assert f"careful: {value.mean:.3f} ({value.interval[0]:.3f} to {value.interval[1]:.3f})." in words


def test_pass_k_falls_with_k(trials: Run) -> None:
    assert trials.plot("pass-k").description == "steady: from 0.583 to 0.333. lucky: from 0.417 to 0.000."


def test_scores_over_turns(tmp_path: Path) -> None:
    logs = HERE / "logs"
    run = dialeval.evaluate({"march": logs / "march.jsonl", "april": logs / "april.jsonl"}, metrics="length")
    drawn = run.plot("turns", "length")
    assert drawn.description.count(": from ") == 2
    assert "95% confidence intervals over dialogues." in drawn.inline


def test_floors_have_a_color_of_their_own() -> None:
    results = {name: Result({"k": CORPUS}) for name in ("a", "b")}
    floors = {f"floor/{n}": Result({"k": CORPUS}, role="floor") for n in range(2)}
    drawn = Run({**results, **floors}, "0").plot("means", "k").inline
    assert [drawn.count(f'class="{kind}"') for kind in ("own-0", "own-1", "anchor")] == [1, 1, 2]


@pytest.mark.parametrize("form", get_args(FigureFormat))
def test_files_for_papers(tmp_path: Path, form: FigureFormat) -> None:
    if form != "svg":
        pytest.importorskip("vl_convert", reason="needs the extra report")
    paths = write_figures(Run({"a": result(), "b": result()}, "0"), tmp_path / "figures", form, 3.3)
    assert {f"means-bleu-4.{form}", f"distribution-bleu-4.{form}"} <= {path.name for path in paths}
    assert get_args(FigureFormat) == FIGURE_FORMATS


def test_four_figures_without_titles_on_white_are_enough_for_most_papers(tmp_path: Path) -> None:
    chats = sample_data.folder() / "logs"
    run = dialeval.evaluate({name: chats / f"{name}.jsonl" for name in ("v1", "v2")}, metrics="length,distinct-2")
    paths = write_figures(run, tmp_path)
    assert 2 <= len(paths) <= 4
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert 'class="title"' not in text
        assert 'fill="#ffffff"' in text


@pytest.mark.parametrize(
    ("key", "stem"),
    [
        ("bleu(n=2,smooth=7)", "means-bleu(n=2,smooth=7)"),
        ("inform/hotel", "means-inform-hotel"),
        ("../../up", "means-..-..-up"),
        ("<b>", "means-b"),
        ("x" * 300, f"means-{'x' * 74}"),
    ],
)
def test_names_of_metrics_become_names_of_files(tmp_path: Path, key: str, stem: str) -> None:
    run = Run({HOSTILE.replace("\udc80", "")[:30]: Result({key: estimate(key, 0.1, 0.2)})}, "0")
    paths = write_figures(run, tmp_path)
    assert {path.parent for path in paths} == {tmp_path}
    assert stem in [path.stem for path in paths]
    assert all("<script" not in path.read_text(encoding="utf-8") for path in paths)


def test_metrics_without_a_value_have_no_figure(tmp_path: Path) -> None:
    nothing = Estimate(math.nan, math.nan, 3, 0, scores=np.array([math.nan]))
    assert write_figures(Run({"a": Result({"k": nothing})}, "0"), tmp_path) == []


def test_agents_have_a_mark_for_each_trial_and_tasks_that_got_worse_first(trials: Run, chats: Run) -> None:
    page = Page(render(trials))
    assert "Reliability over repeated trials (pass^k)" in page.text
    cells = [attrs for attrs in page.of("a") if str(attrs.get("class", "")).startswith("cell")]
    assert len(cells) == 24
    assert sum(attrs["class"] == "cell p" for attrs in cells) == 12
    assert page.text.index("Worse with lucky") < page.text.index("Better with lucky")
    assert "4 of 4 → 2 of 4" in page.text
    assert all(str(attrs["href"]).startswith("#d") for attrs in cells)
    assert "Task by task" not in Page(render(chats)).text
