"""Tables for papers: they fit, bold is the decision of the comparison, names are texts, and words are true."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dialeval
from dialeval import sample_data
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.reports.documents import Width
from dialeval.reports.papers import describe_methods, write_appendix, write_table
from reports.test_summary import LOW, result

CMR10 = {
    **dict.fromkeys("0123456789aos/", 5.0),
    **dict.fromkeys(".,[]il", 2.78),
    **dict.fromkeys("-() frtj", 3.92),
    **dict.fromkeys("+−×±IC", 7.78),
    **dict.fromkeys("bdhknpquvxygcez", 5.56),
    **dict.fromkeys("mw%", 8.33),
}
"""Widths of Computer Modern Roman in 10 points, in groups of equal or rounded-up widths."""


def run_of(**values: float) -> Run:
    """Return systems with values near each other, or far."""
    return Run({name: result(LOW + value, "rouge-l") for name, value in values.items()}, "0")


def cells(table: str, system: str) -> list[str]:
    line = next(line for line in table.splitlines() if re.match(rf"\|? ?{system} ", line))
    return [cell.strip() for cell in re.split(r"[&|]", line.replace("\\\\", "").strip("| "))]


def test_data_sets_have_columns_of_their_own_and_bold_stays_within_one() -> None:
    noise = 1e-3 * np.random.default_rng(1).normal(size=len(LOW))
    near = Run({"a": result(LOW + 0.4, "rouge-l"), "b": result(LOW + 0.4 + noise, "rouge-l")}, "0")
    table = write_table({"one": run_of(a=0.0, b=0.3), "two": near}, percent=True, spread="none")
    mean = float(LOW.mean())
    assert cells(table, "a")[1].startswith(f"{100 * mean:.0f}")
    assert cells(table, "b")[1].startswith(rf"\textbf{{{100 * (mean + 0.3):.0f}")
    assert not cells(table, "b")[2].startswith(r"\textbf"), "nothing is bold where nothing differs"
    assert r"\multicolumn{1}{c}{one} & \multicolumn{1}{c}{two}" in table
    assert r"\cmidrule(lr){2-2} \cmidrule(lr){3-3}" in table
    assert "not significantly worse" in table
    assert r"shown $\times$100" in table


def test_a_system_that_a_data_set_lacks_has_no_value() -> None:
    table = write_table({"one": run_of(a=0.0, b=0.3), "two": run_of(a=0.0, c=0.1)}, "md", spread="none")
    assert cells(table, "b")[2] == "–"
    assert cells(table, "c")[1] == "–"
    assert cells(table, "c")[2].startswith(f"**{float(LOW.mean()) + 0.1:.2f}")
    assert "| system | one: rouge-l ↑ | two: rouge-l ↑ |" in table


def test_values_that_print_the_same_as_the_best_are_bold_too() -> None:
    run = dialeval.evaluate(
        {"a": ["x y z"] * 9 + ["x"], "b": ["x y z"] * 10, "c": ["q"] * 10}, ["x y z"] * 10, metrics="rouge-l"
    )
    bold = set(re.findall(r"\\textbf\{([^}]*)\}", run.to_latex(spread="none")))
    plain = set(re.findall(r"& (0\.\d+) ", run.to_latex(spread="none")))
    assert bold
    assert not bold & plain


@pytest.mark.parametrize("percent", [False, True])
def test_percentages_are_for_whole_families_and_stated(percent: bool) -> None:
    here = sample_data.folder()
    run = dialeval.evaluate(
        {name: here / "responses" / f"{name}.txt" for name in ("careful", "chatty")},
        here / "references.txt",
        train=here / "train.txt",
        vectors=here / "vectors.txt",
        metrics="embedding,rouge-l,length",
    )
    table = run.to_markdown(percent=percent, spread="none")
    head, _, careful, *_ = table.splitlines()
    names, values_of = (line.strip("| ").split(" | ") for line in (head, careful))
    values = {name.strip(" ↑"): float(cell.strip("*")) for name, cell in zip(names[1:], values_of[1:], strict=True)}
    assert ("×100" in table) == percent
    assert all((values[key] > 1) == percent for key in values if key != "length")
    assert values["length"] == 14.0


@pytest.mark.parametrize("width", ["column", "text"])
@pytest.mark.parametrize("systems", [2, 4, 8])
@pytest.mark.parametrize("spread", ["interval", "pm"])
def test_no_line_is_wider_than_the_page(systems: int, width: Width, spread: str, tmp_path: Path) -> None:
    """By the metrics of the font, and by pdfLaTeX where it is installed."""
    rng = np.random.default_rng(systems)
    words = ["a", "b", "c", "d"]
    texts = {
        f"a system with a long name {at}": [" ".join(rng.choice(words, 6)) for _ in range(30)] for at in range(systems)
    }
    run = dialeval.evaluate(texts, [" ".join(rng.choice(words, 6)) for _ in range(30)], metrics="rouge-l,bleu-4,length")
    limit = {"column": 219, "text": 345}[width]
    tables = run.to_latex(width=width, spread=spread), dialeval.compare(run).to_latex(width=width)
    _compile("\n".join(tables), width, tmp_path)
    for table in tables:
        tabulars = re.findall(r"\\begin\{tabular\}.*?\n(.*?)\\end\{tabular\}", table, re.DOTALL)
        assert tabulars
        for tabular in tabulars:
            rows = [line.removesuffix(r" \\").split(" & ") for line in tabular.splitlines() if " & " in line]
            columns = [max(map(_measure, column)) for column in zip(*rows, strict=True)]
            assert sum(columns) + 8 * (len(columns) - 1) <= limit
        caption = re.search(r"\\caption\{(.*)\}", table)
        assert caption is not None
        assert len(caption[1]) < 330, "three lines of text"


def _compile(tables: str, width: Width, folder: Path) -> None:
    """Compile tables in the class they are made for; no box is too wide, no float too high."""
    if shutil.which("pdflatex") is None:
        return
    start = r"\documentclass[twocolumn]{article}" if width == "column" else r"\documentclass{article}"
    text = f"{start}\\usepackage{{booktabs}}\\begin{{document}}\n{tables}\n\\end{{document}}"
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout
    assert "Overfull" not in done.stdout
    assert "too large" not in done.stdout


_GLYPHS = {r"\\textbf": "", r"\\dots\{\}": "mm", r"\$\\pm\$": "±", r"\$\^\{.*?\}\$": "0", r"\$-\$": "−", r"\\%": "%"}
_GLYPHS |= {r"\$\\uparrow\$": "0", r"\\textless\{\}": "+", "[{}]": ""}


def _measure(cell: str) -> float:
    value, _, interval = cell.partition(r"{\scriptsize ")
    for command, glyph in _GLYPHS.items():
        value, interval = (re.sub(command, glyph, text) for text in (value, interval))
    return sum(CMR10.get(char, 7.8) for char in value) * 0.9 + sum(CMR10[char] for char in interval) * 0.7


def test_names_of_the_paper_and_the_label() -> None:
    run = run_of(a=0.0, b=0.3)
    names = {"rouge-l": "ROUGE-L", "a": "Ours & theirs", "ruoge-l": "ROUGE"}
    table = run.to_latex(rename=names, label="tab:main", width="column")
    assert "% Not in this table, so not renamed: ruoge-l\n" in table
    assert r"\label{tab:main}" in table
    assert r"ROUGE-L $\uparrow$" in table
    assert r"Ours \& theirs" in table
    assert table.startswith("% \\usepackage{booktabs}\n\\begin{table}[t]")
    for settings, what in (
        ({"label": "a}b"}, "a label has letters"),
        ({"width": "page"}, "width is"),
        ({"spread": "x"}, "spread is"),
    ):
        with pytest.raises(SettingError, match=what):
            run.to_latex(**settings)


def test_names_are_texts_and_unknown_metrics_are_refused() -> None:
    hostile = Run({r"a_1 & \input{x}": result(LOW, "rouge-l")}, "0")
    assert r"a\_1 \& \textbackslash{}input\{x\}" in write_table({"50%": hostile})
    assert r"\item \texttt{" in write_appendix([hostile])
    with pytest.raises(SettingError, match="no run has 'blue'"):
        write_table({"data": hostile}, metrics=["blue"])
    with pytest.raises(SettingError, match="at least one run"):
        write_table({})


def test_a_comparison_of_two_shows_differences_and_of_several_marks() -> None:
    noise = 1e-3 * np.random.default_rng(1).normal(size=len(LOW))
    run = Run(
        {"a": result(LOW, "rouge-l"), "b": result(LOW + 0.3 + noise, "rouge-l"), "c": result(LOW + 0.3, "rouge-l")}, "0"
    )
    two = dialeval.compare(run, systems=["a", "b"]).to_latex()
    assert r"difference (95\% CI) & p \\" in two
    assert re.search(r"& \\textbf\{0\.\d+\} & \+0\.\d+ \(", two)
    assert "Bold: clearly better." in two
    three = dialeval.compare(run).to_latex()
    assert "$^{+}$" in three
    assert "Against a: $^{+}$ better" in three


def test_the_caption_states_that_a_test_is_over_fewer_dialogues_than_the_values() -> None:
    first = result(np.where(np.arange(len(LOW)) == 0, np.nan, LOW), "rouge-l")
    run = Run({"a": first, "b": result(LOW + 0.3, "rouge-l"), "c": result(LOW + 0.1, "rouge-l")}, "0")
    of_all = f"{len(LOW) - 1} of {len(LOW)}"
    assert of_all in write_table(dialeval.compare(run))
    assert f"{float(LOW.mean()) + 0.3:.2f}" in write_table(dialeval.compare(run)), "values are over all rows"
    assert of_all not in write_table(dialeval.compare(run, baseline="b", systems=["c"]))


# The paragraph for the methods section: true of its run, its references BibTeX.


@pytest.fixture(scope="module")
def run() -> Run:
    here = sample_data.folder()
    return dialeval.evaluate(here / "responses", here / "references.txt", metrics="sacrebleu,rouge-l,distinct-2,length")


def parse_bibtex(text: str) -> dict[str, dict[str, str]]:
    """Parse entries with balanced braces; an error where they are not."""
    entries = {}
    for entry in filter(None, text.split("\n@")):
        kind, _, rest = entry.removeprefix("@").partition("{")
        key, _, fields = rest.partition(",")
        assert kind.isalpha()
        assert entry.count("{") == entry.count("}")
        pairs = re.findall(r"(\w+) = \{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}", fields)
        entries[key] = dict(pairs)
    return entries


def test_the_paragraph_is_true_of_the_run(run: Run) -> None:
    comparison = dialeval.compare(run, metrics=["sacrebleu", "rouge-l"], trials=300)
    paragraph, references = describe_methods(run, comparison)
    assert f"We scored {len(run)} systems (careful, chatty, generic; 60 responses each)" in paragraph
    assert f"with dialeval {dialeval.__version__}" in paragraph
    for key in run.keys_in_order:
        assert ("response length" if key == "length" else key) in paragraph
    assert "300 trials" in paragraph
    assert f"adjusted for {comparison.tests} tests" in paragraph
    assert f"tested on {comparison.design.clusters} lines" in paragraph
    assert "tok:13a" in paragraph
    assert "failed" not in paragraph
    entries = parse_bibtex(references)
    cited = {key for keys in re.findall(r"\\citep\{([^}]*)\}", paragraph) for key in keys.split(",")}
    assert cited == set(entries)
    assert all({"author", "title", "year"} <= fields.keys() for fields in entries.values())
    assert not any("metrics" in fields for fields in entries.values())


def test_failures_and_names_are_stated_as_text() -> None:
    rows = [
        {"response": text, "context": ["hi"], "system": "a_b"} for text in ("fine", "", "Error 500: upstream timeout")
    ]
    paragraph, _ = describe_methods(dialeval.evaluate(rows, metrics="length"))
    assert r"one system (a\_b;" in paragraph
    assert r"Of 3 replies due from a\_b, 2 failed." in paragraph
    assert "tested" not in paragraph


def test_raters_are_described_with_their_agreement(run: Run) -> None:
    rated = [
        {"response": "yes " * (n % 7), "reference": "yes " * 9, "scores": {"overall": [n % 5, (n + n % 2) % 5]}}
        for n in range(1, 40)
    ]
    agreement = dialeval.measure_agreement(rated, metrics="rouge-l", resamples=50)
    paragraph, references = describe_methods(run, None, agreement)
    assert "Human ratings of overall cover 39 responses." in paragraph
    assert "Krippendorff's alpha is" in paragraph
    assert r"95\% CI" in paragraph
    assert "krippendorff2011computing" in references
