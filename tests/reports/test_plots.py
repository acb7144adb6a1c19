"""Figures for papers: one file per metric."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, get_args

import pytest

from dialeval.cli.report import PLOT_FORMATS
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.reports import drawings
from dialeval.reports.drawings import PlotFormat, write_plots
from reports.test_html import HOSTILE, estimate, result

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("vl_convert", reason="needs the extra report")

HEADS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF-"}


@pytest.mark.parametrize("form", get_args(PlotFormat))
def test_a_file_per_metric(tmp_path: Path, form: PlotFormat) -> None:
    paths = write_plots(Run({"a": result(), "b": result()}, "0"), tmp_path / "plots", form)
    assert [path.name for path in paths] == [f"bleu-4.{form}", f"distinct-2.{form}"]
    assert all(path.read_bytes().startswith(HEADS[form]) for path in paths)


def test_drawings_hold_names_and_nothing_that_runs(tmp_path: Path) -> None:
    hostile = HOSTILE.replace("\udc80", "")[:30]
    (path, _) = write_plots(Run({hostile: result()}, "0"), tmp_path)
    drawn = path.read_text(encoding="utf-8")
    assert "&lt;script&gt;" in drawn
    assert "<script" not in drawn


def test_names_of_metrics_become_names_of_files(tmp_path: Path) -> None:
    keys = ["bleu(n=2,smooth=7)", "inform/hotel", "inform-hotel", "../../up", "<b>", "x" * 300]
    run = Run({"a": Result({key: estimate(key, 0.1, 0.2) for key in keys})}, "0")
    paths = write_plots(run, tmp_path)
    assert {path.parent for path in paths} == {tmp_path}
    assert [path.stem for path in paths][:5] == ["bleu(n=2,smooth=7)", "inform-hotel", "inform-hotel-2", "up", "b"]


def test_metrics_without_a_figure_have_no_plot(tmp_path: Path) -> None:
    nothing = Estimate(math.nan, math.nan, 3, 0)
    assert write_plots(Run({"a": Result({"k": nothing})}, "0"), tmp_path) == []


def test_other_forms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="svg, png, pdf"):
        write_plots(Run({"a": result()}, "0"), tmp_path, "gif")  # type: ignore[arg-type]
    assert get_args(PlotFormat) == PLOT_FORMATS


def test_without_the_extra_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(drawings, "can_convert", lambda: False)
    with pytest.raises(NeedError, match=r"dialeval\[report\]"):
        write_plots(Run({"a": result()}, "0"), tmp_path, "pdf")
