"""Tables of a run: what is shown, what is escaped, and that no digit is lost where programs read."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest
from rich.console import Console

import dialeval
from dialeval import sample_data
from dialeval.cli.options import RUN_FORMATS
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.signature import Signature
from dialeval.reports.documents import to_json
from dialeval.reports.tables import FORMATS, METRICS_TXT, lay_out, to_csv, to_latex, to_markdown, to_metrics_txt


def rows_estimate(*items: float) -> Estimate:
    values = np.array(items)
    finite = values[np.isfinite(values)]
    signature = Signature.of("bleu-4", n=4)
    mean, std = float(finite.mean()), float(finite.std())
    return Estimate(mean, std, len(values), len(finite), scores=values, signature=signature).with_confidence(1.97)


def corpus_estimate(value: float, rows: int = 4) -> Estimate:
    return Estimate(value, 0.0, rows, rows, corpus=True, signature=Signature.of("distinct-2", n=2))


NOTHING = Estimate(math.nan, math.nan, 4, 0).with_confidence(1.97)


@pytest.fixture
def run() -> Run:
    first = {"bleu-4": rows_estimate(0.1, 0.2, 0.4, math.nan), "distinct-2": corpus_estimate(1 / 3), "adem": NOTHING}
    second = {"bleu-4": rows_estimate(0.1, 0.2, 0.4, 0.7), "length": rows_estimate(120.0, 80.0, 101.0, 99.0)}
    return Run({"a": Result(first), "b": Result(second)}, "0.1.0", ("mind the gap",))


def printed(run: Run, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(lay_out(run))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_narrow_terminal_gets_more_tables_and_loses_no_figure(run: Run) -> None:
    many = Run({f"{name}{n}": run[name] for n in range(4) for name in run}, "0")
    narrow = printed(many, 40)
    assert narrow.count("system") > 1
    assert "…" not in narrow
    assert max(map(len, narrow.splitlines())) <= 40
    assert narrow.count("0.35") == 4


def test_names_are_not_markup(run: Run) -> None:
    shown = printed(Run({"[bold]x[/bold]": run["a"], "\x1b[31mred": run["b"]}, "0"))
    assert "[bold]x[/bold]" in shown
    assert "\x1b" not in shown


def test_json_is_the_run(run: Run) -> None:
    text = to_json(run)
    assert json.loads(text) == run.to_dict()
    assert text.endswith("}\n")


def test_csv_reads_back_to_the_last_digit(run: Run) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(run))))
    assert [(line["system"], line["metric"]) for line in lines] == [(s, key) for s in run for key in run[s]]
    for line in lines:
        est = run[line["system"]][line["metric"]]
        wanted = (est.mean, est.std, est.half_width, *(est.interval or (math.nan, math.nan)))
        found = [float(line[field] or "nan") for field in ("mean", "std", "half_width", "low", "high")]
        assert found == pytest.approx(wanted, rel=0, abs=0, nan_ok=True)
        assert (int(line["units"]), int(line["scored"])) == (est.units, est.scored)
        assert line["signature"] == str(est.signature or "")


def test_csv_quotes_names(run: Run) -> None:
    name = 'a, "b"\nc'
    assert next(csv.DictReader(io.StringIO(to_csv(Run({name: run["a"]}, "0")))))["system"] == name


def test_markdown_escapes_what_would_break_the_table(run: Run) -> None:
    text = to_markdown(Run({"a|b": run["a"], "<i>\n": run["b"]}, "0"), transpose=True)
    head, rule, bleu, *_ = text.splitlines()
    assert head == r"| metric | a\|b | &lt;i&gt;\\n |"
    assert rule == "| --- | ---: | ---: |"
    assert bleu == r"| bleu-4 ↑ | 0.23 \[0.09, 0.38\] | **0.35 \[0.12, 0.58\]** |"
    assert "Scored in part: bleu-4 3 of 4" in text


@pytest.fixture(scope="module")
def scored() -> Run:
    here = sample_data.folder()
    return dialeval.evaluate(here / "responses", here / "references.txt", metrics="bleu-4,distinct-1,length")


def test_latex_has_arrows_and_what_is_not_worse_than_the_best_in_bold(scored: Run) -> None:
    lines = to_latex(scored).splitlines()
    assert "Bold: the best, and those not significantly worse" in lines[4]
    rows = {line.split(" ")[0]: line for line in lines if "&" in line}
    assert rows["system"].startswith(r"system & bleu-4 $\uparrow$ & distinct-1 & length")
    assert rows["careful"].startswith(r"careful & \textbf{0.2421} {\scriptsize [0.2036, 0.2806]} & 0.361 & 14.00 {")
    assert r"\textbf" not in rows["chatty"]


def test_rows_and_columns_are_swapped(scored: Run) -> None:
    for write, divider in ((to_markdown, "|"), (lambda run, **more: to_latex(run, spread="none", **more), "&")):
        plain, swapped = (
            [
                [cell.strip(" \\") for cell in line.strip("|").split(divider)]
                for line in write(scored, transpose=transpose).splitlines()
                if divider in line and "---" not in line
            ]
            for transpose in (False, True)
        )
        assert [cells[1:] for cells in swapped[1:]] == [
            list(cells) for cells in zip(*(c[1:] for c in plain[1:]), strict=True)
        ]
        assert {plain[0][0], swapped[0][0]} == {"metric", "system"}


def test_intervals_stay_at_any_width_and_columns_wrap_with_their_names(scored: Run) -> None:
    for width in (44, 80, 110, 150):
        console = Console(width=width, file=io.StringIO())
        console.print(lay_out(scored))
        shown = console.file.getvalue()  # type: ignore[attr-defined]
        assert all(len(line) <= width for line in shown.splitlines())
        assert "(0.2036 to 0.2806)" in shown
        assert shown.count("metric  ") == (3 if width == 44 else 2 if width < 110 else 1)
        assert "Confidence intervals: " in shown


def test_latex_writes_exponents_as_powers() -> None:
    text = to_latex(Run({"a": Result({"mse": corpus_estimate(1.23e-8)})}, "0"))
    assert r"1.2$\times$10$^{-8}$" in text


def test_metrics_txt_has_the_columns_of_dialog_eval_in_its_order() -> None:
    assert len(METRICS_TXT) == 17
    keys = ["chrf", *reversed(METRICS_TXT), "rouge-l", "bleu(n=2,smooth=7)"]
    head = to_metrics_txt(Run({"a": Result({key: corpus_estimate(0.5) for key in keys})}, "0")).splitlines()[0]
    assert head.split() == ["filename", *METRICS_TXT, "chrf", "rouge-l", "bleu(n=2,smooth=7)"]


def test_metrics_txt_has_the_layout_of_dialog_eval(run: Run) -> None:
    head, first, second, end = to_metrics_txt(Run({"a.txt": run["a"], "my b.txt": run["b"]}, "0")).split("\n")
    assert head == "filename length distinct-2 bleu-4 adem"
    bleu = run["a"]["bleu-4"]
    assert first.startswith(f"a.txt nan,nan,nan {1 / 3},0,0.0 {bleu.mean},{bleu.std},{bleu.half_width} ")
    assert second.startswith("my_b.txt ")
    assert end == ""


def test_formats_are_the_command_lines() -> None:
    assert ["table", *FORMATS] == list(RUN_FORMATS)
