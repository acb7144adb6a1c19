"""`dialeval report`."""

from __future__ import annotations

from pathlib import Path

from cli.conftest import Dialeval


def test_saved_runs_become_one_page(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\n")
    assert dialeval("score", "a.txt", "-m", "length", "-o", "first").returncode == 0
    assert dialeval("score", "b=a.txt", "-m", "length", "-o", "second").returncode == 0
    done = dialeval("report", "first", "second", "-o", "out/page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert done.stdout.strip() == str(tmp_path / "out" / "page.html")
    assert "dialeval report first second -o out/page.html" in page
    assert "2 systems" in page


def test_what_is_no_run_is_named(dialeval: Dialeval) -> None:
    done = dialeval("report", "nowhere")
    assert done.returncode == 2
    assert "nowhere" in done.stderr
