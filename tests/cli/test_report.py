"""`dialeval report`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Dialeval
from dialeval.human.sample_files import read_sample
from human.rated_runs import ratings_of, run_of


def test_saved_runs_become_one_page(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n")
    assert dialeval("score", "a.txt", "-m", "length", "-o", "first").returncode == 0
    assert dialeval("score", "b=a.txt", "-m", "length", "-o", "second").returncode == 0
    done = dialeval("report", "first", "second", "--save", "out/page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert done.stdout.strip() == str(tmp_path / "out" / "page.html")
    assert "dialeval report first second --save out/page.html" in page
    assert "<title>These two cannot be compared</title>" in page


def test_the_page_says_how_runs_were_made(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "my file.txt").write_text("one two\nthree\n")
    assert dialeval("score", "my file.txt", "-m", "length", "-o", "run").returncode == 0
    done = dialeval("report", "run", "--title", "Monday & co", "--no-compare")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "dialeval score &#x27;my file.txt&#x27; -m length -o run" in page
    assert "<title>Monday &amp; co</title>" in page
    assert "plots-data" not in page


def test_figures_are_written_beside_the_page(dialeval: Dialeval, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="needs the extra report")
    (tmp_path / "a.txt").write_text("one two\nthree\n")
    assert dialeval("score", "a.txt", "-m", "length", "-o", "run").returncode == 0
    done = dialeval("report", "run", "--figures", "svg")
    assert done.returncode == 0, done.stderr
    assert "2 figures in report-figures" in done.stderr
    assert (tmp_path / "report-figures" / "means-length.svg").read_text(encoding="utf-8").startswith("<svg")
    assert dialeval("report", "run", "--figures", "pdf", "--width", "3").returncode == 0
    assert (tmp_path / "report-figures" / "means-length.pdf").exists()


def test_a_width_of_figures_needs_a_form(dialeval: Dialeval) -> None:
    done = dialeval("report", "run", "--width", "3")
    assert done.returncode == 2
    assert "--figures" in done.stderr


def test_what_is_no_run_is_named(dialeval: Dialeval) -> None:
    done = dialeval("report", "nowhere")
    assert done.returncode == 2
    assert "nowhere" in done.stderr


def test_what_people_say_is_shown(dialeval: Dialeval, tmp_path: Path) -> None:
    run, said = run_of(dialogues=30)
    run.save(tmp_path / "rated")
    assert dialeval("sample", "rated", "-n", "40", "-o", "to-rate").returncode == 0
    lines = ratings_of(read_sample(tmp_path / "to-rate"), said)
    (tmp_path / "ratings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "pairs.jsonl").write_text('{"a": "a", "b": "b", "better": "tie"}\n' * 4)
    ratings = ["--human", "ratings.jsonl", "--sample", "to-rate", "--judge", "judge", "--pairs", "pairs.jsonl"]
    done = dialeval("report", "rated", "--no-compare", "--save", "people.html", *ratings)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "people.html").read_text(encoding="utf-8")
    assert "Mean human ratings" in page
    assert "Ranking by preferences" in page
    for wrong in (["--judge", "judge"], ["--human", "ratings.jsonl"], ["rated", *ratings]):
        assert dialeval("report", "rated", "--save", "people.html", *wrong).returncode == 2


def test_a_file_of_somebody_else_is_not_overwritten(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\nthree\n")
    assert dialeval("score", "a.txt", "-m", "length", "-o", "run").returncode == 0
    (tmp_path / "report.html").write_text("<html>mine</html>")
    done = dialeval("report", "run")
    assert done.returncode == 2
    assert "report.html: would be overwritten, but dialeval did not write it" in done.stderr
    assert (tmp_path / "report.html").read_text() == "<html>mine</html>"
    (tmp_path / "link.html").symlink_to(tmp_path / "elsewhere.html")
    done = dialeval("report", "run", "--save", "link.html")
    assert done.returncode == 2
    assert "link.html: is a link" in done.stderr
    (tmp_path / "report.html").unlink()
    for _ in range(2):
        assert dialeval("report", "run").returncode == 0, "one of ours is replaced"


def test_tables_and_the_paragraph_for_a_paper(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\nthree\n")
    (tmp_path / "b.txt").write_text("one two four\nthree\n")
    (tmp_path / "refs.txt").write_text("one two\nthree four\n")
    (tmp_path / "names.toml").write_text('"bleu-1" = "BLEU-1"\na = "Ours_1"\n')
    assert dialeval("score", "a.txt", "b.txt", "-r", "refs.txt", "-m", "bleu-1,length", "-o", "run").returncode == 0
    options = (
        "--save",
        "t.tex",
        "--label",
        "tab:x",
        "--rename",
        "names.toml",
        "--rename",
        "b=Base",
        "--appendix",
        "r.tex",
    )
    done = dialeval("table", "run", *options, "--width", "column", "--percent", "--spread", "none")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "t.tex").read_text(encoding="utf-8")
    for part in (r"Ours\_1 & ", r"BLEU-1 $\uparrow$", "Base & ", r"\label{tab:x}", r"$\times$100"):
        assert part in text
    (tmp_path / "names.toml").write_text('[names]\na = "Ours"\n')
    done = dialeval("table", "run", "--rename", "names.toml")
    assert done.returncode != 0
    assert "names.toml" in done.stderr
    assert r"\item \texttt{bleu-1" in (tmp_path / "r.tex").read_text(encoding="utf-8").replace(r"\allowbreak{}", "")
    assert dialeval("table", "run", "-f", "md").stdout.startswith("| system | bleu-1 ↑ | length |")
    described = dialeval("describe", "run", "--bib", "refs.bib")
    assert described.stdout.startswith("We scored 2 systems (a, b; 2 responses each) with dialeval")
    assert "@inproceedings{papineni2002bleu," in (tmp_path / "refs.bib").read_text(encoding="utf-8")
    refused = dialeval("score", "a.txt", "-m", "length", "--label", "tab:x")
    assert (refused.returncode, "are for tables in LaTeX: -f latex" in refused.stderr) == (2, True)
    assert dialeval("compare", "run", "-f", "latex", "--label", "a}b").returncode == 2
