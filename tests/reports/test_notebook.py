"""What a notebook shows: the verdict and figures of the terminal, escaped, without scripts, small."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html import escape, unescape
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import dialeval
from analysis.test_agreement import rated
from dialeval import sample_data
from dialeval.core.errors import SettingError
from dialeval.reports import analyses, comparisons, documents
from dialeval.reports import html as notebook
from dialeval.reports.comparisons import RunVerdict, judge_run
from dialeval.reports.tables import lay_out
from human.rated_runs import ratings_of, run_of

HOSTILE = "<script>alert(1)</script>\x1b[2J"


@pytest.fixture(scope="module")
def run() -> dialeval.Run:
    here = sample_data.folder()
    systems = {"careful": here / "responses" / "careful.txt", HOSTILE: here / "responses" / "generic.txt"}
    return dialeval.evaluate(systems, here / "references.txt", metrics="bleu,distinct,length")


def whole(markup: str) -> ET.Element:
    """The markup as XML: every element is closed, and nothing but elements stands in angle brackets."""
    return ET.fromstring(f"<div>{markup.replace('<br>', '<br/>')}</div>")


def harmless(markup: str) -> None:
    assert "<script" not in markup
    assert "\x1b" not in markup
    assert not re.search(r"\son\w+=|javascript:|https?://(?!www\.w3\.org/2000/svg)", markup)
    whole(markup)


def text_of(markup: str) -> str:
    return " ".join("".join(part) for part in whole(markup).itertext())


def test_a_run_is_its_verdict_and_its_table(run: dialeval.Run) -> None:
    shown = run._repr_html_()
    harmless(shown)
    assert len(shown) < 10_000
    assert shown.count("<svg") == 1, "the differences in a small figure"
    found = judge_run(run)
    assert found.comparison is not None
    verdict = found.comparison.verdict
    assert shown.startswith(f"<p><strong>{escape(verdict.headline)}</strong></p><p>{escape(verdict.sentences[0])}</p>")
    console = Console(width=200, file=StringIO())
    console.print(lay_out(run, found))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    cells = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall("<td>(.*?)</td>", shown)]
    assert len(cells) == len(run) * len(run.keys_in_order)
    for cell in cells:
        for figure in re.findall(r"[\d.]+", cell):
            assert figure in printed
    assert '<th scope="row">bleu-4 ↑</th><td>' in shown
    assert shown.count("▼") > 1


def test_a_result_has_one_column(run: dialeval.Run) -> None:
    shown = run["careful"]._repr_html_()
    harmless(shown)
    assert shown.count("<td>") == len(run["careful"])
    assert "<b>" not in shown


def test_a_comparison_is_its_verdict_its_tables_and_its_legend(run: dialeval.Run) -> None:
    comparison = dialeval.compare(run, resamples=50, trials=100)
    shown = comparison._repr_html_()
    harmless(shown)
    for line in (comparison.verdict.headline, *comparison.verdict.sentences, comparisons.describe_method(comparison)):
        assert line in unescape(shown)
    assert shown.count("<table>") == 1
    assert comparison.to_arrow().num_rows == len(comparison.differences)
    assert comparison.to_pandas()["adjusted_p"].tolist() == [row.adjusted_p for row in comparison.differences]


def test_an_agreement_says_what_the_terminal_says() -> None:
    found = dialeval.measure_agreement(rated(), metrics="rouge-l,chrf", resamples=50)
    shown = found._repr_html_()
    harmless(shown)
    console = Console(width=300, file=StringIO())
    console.print(documents.lay_out(found))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    for line in (*analyses.state_verdict(found), *analyses.list_notes(found)):
        assert line in printed
        assert escape(line) in shown
    frame = found.to_pandas()
    assert frame["spearman"].tolist() == [
        each.spearman for levels in found.metrics.values() for each in levels.values()
    ]


def test_one_system_is_not_compared(run: dialeval.Run) -> None:
    alone = dialeval.Run({"a": run["careful"]}, run.version)
    assert "Statistics are over lines" in alone._repr_html_()


def test_the_comparison_of_the_last_run_is_made_once(run: dialeval.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    again = dialeval.Run(run.systems, run.version)
    times: list[Any] = []

    def judge(run: dialeval.Run) -> RunVerdict:
        times.append(run)
        return RunVerdict()

    monkeypatch.setattr(notebook, "judge_run", judge)
    again._repr_html_()
    again._repr_html_()
    assert len(times) == 1


def test_a_plot_is_one_drawing_with_a_line_per_system(run: dialeval.Run, tmp_path: Path) -> None:
    plot = run.plot("means", "bleu-4")
    assert repr(plot) == "Figure(name='forest', title='bleu-4 ↑, by system')"
    harmless(plot._repr_html_())
    root = ET.fromstring(plot.svg)
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{space}circle")) == 2
    titles = [element.text for element in root.findall(f".//{space}title")]
    assert titles[0] == "careful: 0.242 (0.204 to 0.281)"
    assert str(titles[1]).startswith("<script>alert(1)</script>\\x1b[2J: ")
    assert plot.save(tmp_path / "plot.svg").read_text(encoding="utf-8") == plot.svg
    with pytest.raises(SettingError, match="the run has no 'blue'; it has bleu-1"):
        run.plot("distribution", "blue")


def test_what_people_said_shows_itself_too() -> None:
    rated_run, opinions = run_of(dialogues=60, systems={HOSTILE: 3.0, "b": 3.5})
    drawn = dialeval.sample(rated_run, 60)
    found = dialeval.estimate_ratings(rated_run, ratings_of(drawn, opinions), judge="judge", sample=drawn)
    watch = dialeval.run_sequential_test(rated_run)
    pairs = [{"a": HOSTILE, "b": "b", "better": "b" if row % 3 else "a", "dialog_id": str(row)} for row in range(20)]
    ranking = dialeval.rank(pairs)
    for each, words in ((found, "ratings alone"), (watch, "confidence sequences"), (ranking, "Bradley-Terry")):
        shown = each._repr_html_()
        harmless(shown)
        assert words in text_of(shown)
        assert "\n" not in repr(each)
        assert "\x1b" not in repr(each)
    assert repr(found).startswith("<HumanEstimates: overall of 2 systems (")
    assert repr(watch).endswith(" decided>")
    assert repr(ranking).endswith("20 pairs>")


def test_every_table_converts_and_shows_itself() -> None:
    """Results that are tables: rows as of the CSV, data frames of the same size, and markup without hostile text."""
    turns = [("d1", 1, "hi", "Bern"), ("d1", 3, "at nine", "Bern"), ("d2", 1, "no", "Genf")]
    rows = [
        {
            "dialog_id": f"{dialogue}-{n}",
            "turn": turn,
            "context": [f"when {n}", HOSTILE],
            "response": text,
            "city": city,
        }
        for n in range(12)
        for dialogue, turn, text, city in turns
    ]
    longer = [{**row, "response": f"{row['response']} , {HOSTILE}"} for row in rows]
    run = dialeval.evaluate({"a": rows, HOSTILE: longer, "c": rows}, metrics="length,distinct-1", keep="city")
    drawn = dialeval.sample(run, 6)
    tables: dict[str, tuple[Any, int]] = {
        "run": (run, 3 * 2),
        "slices": (
            dialeval.compare_slices(run, ["city", "turn"], metrics=["length"], resamples=20, trials=50),
            4 * 3 * 2,
        ),
        "sequential": (dialeval.run_sequential_test(run), 2 * 2),
        "trend": (dialeval.fit_trend(run), 2 * 3),
        "items": (run.score_table, 3 * len(rows)),
        "sample": (drawn, len(drawn.responses)),
        "ranking": (dialeval.rank([{"a": "a", "b": HOSTILE, "better": side} for side in "abab"]), 2),
    }
    for name, (each, size) in tables.items():
        frame = each.to_pandas()
        assert len(frame) == size, name
        assert each.to_polars().shape == frame.shape, name
        assert len(repr(each)) < 200, name
        assert repr(each).isprintable(), name
        harmless(each._repr_html_())
        assert "<table>" in each._repr_html_(), name
    parts = tables["slices"][0].to_pandas()
    assert set(parts["slice"]) == {"Bern", "Genf", "1", "3"}
    own = parts[(parts["slice"] == "Genf") & (parts["system"] == HOSTILE) & (parts["metric"] == "length")]
    assert own[["units", "mean", "difference"]].to_numpy().tolist() == [[12, 3.0, 2.0]]
    trend = tables["trend"][0].to_pandas()
    assert trend[trend["metric"] == "length"]["value"].tolist() == [run[name]["length"].mean for name in run]
    assert "10 of 108 rows" in text_of(run.score_table._repr_html_())
