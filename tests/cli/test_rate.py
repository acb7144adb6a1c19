"""`dialeval rate` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.rated_runs import run_of
from cli.conftest import Dialeval


@pytest.fixture(autouse=True)
def sample(dialeval: Dialeval, tmp_path: Path) -> None:
    run_of(dialogues=30)[0].save(tmp_path / "run")
    assert dialeval("sample", "run", "-n", "20", "-o", "to-rate").returncode == 0


def test_a_page_is_written(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("rate", "page", "to-rate", "-o", "rate.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "20 to rate" in done.stderr
    assert "says" in (tmp_path / "rate.html").read_text()
    (tmp_path / "form.toml").write_text("compare = true\n")
    done = dialeval("rate", "page", "to-rate", "--form", "form.toml", "-o", "rate.html")
    assert "10 to rate" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["to-rate"], "--output"),
        (["run", "-o", "rate.html"], "sample.json"),
        (["to-rate", "-o", "to-rate/rows.jsonl"], "is an input"),
        (["to-rate", "--form", "form.toml", "-o", "form.toml"], "is an input"),
        (["to-rate", "--form", "form.toml", "-o", "rate.html"], "form.toml: not TOML"),
    ],
)
def test_what_is_refused(dialeval: Dialeval, tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "form.toml").write_text("=")
    done = dialeval("rate", "page", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "rate.html").exists()
    assert (tmp_path / "form.toml").read_text() == "="
