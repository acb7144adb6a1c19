"""Dialogues of text files: an id per line, or empty lines; without them the output states that lines are units."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dialeval as package
import evaluating
from conftest import Dialeval
from dialeval.core.errors import DataError, SettingError

LINES = [["yes", "it is open"], ["no"], ["at nine", "", "ten euros please"]]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    flat = [line for dialogue in LINES for line in dialogue]
    (tmp_path / "old.txt").write_text("\n".join(flat) + "\n")
    (tmp_path / "new.txt").write_text("\n".join(f"{line} now" for line in flat) + "\n")
    (tmp_path / "ids.txt").write_text("a\na\nb\nc\nc\nc\n")
    (tmp_path / "refs.txt").write_text("x\n" * 6)
    for name, end in (("apart", ""), ("references", " x")):
        (tmp_path / f"{name}.txt").write_text("\n\n".join("\n".join(f"{line}{end}" for line in each) for each in LINES))
    return tmp_path


def test_ids_of_lines_make_dialogues(dialeval: Dialeval, files: Path) -> None:
    plain = dialeval("score", "old.txt", "new.txt", "-m", "length")
    first = "Paired design: the systems have the same 6 lines, matched by position. Statistics are over lines"
    assert first in " ".join(plain.stdout.split())
    assert "Statistics are over lines" in dialeval("score", "old.txt", "-m", "length").stdout
    named = dialeval("score", "old.txt", "new.txt", "-m", "length", "--dialogues", "ids.txt", "-o", "run")
    assert "Paired design: the systems have the same 3 dialogues (6 rows), matched by id." in named.stdout
    assert "over lines" not in named.stdout
    row = json.loads(dialeval("compare", "run", "-f", "json").stdout)["differences"][0]
    assert row["difference"] == pytest.approx(1)
    assert package.load(files / "run")["old"]["length"].interval_by is not None


def test_empty_lines_separate_dialogues(files: Path) -> None:
    """An empty reply to a reference is a reply."""
    responses, references = files / "apart.txt", files / "references.txt"
    run = evaluating.evaluate(responses, references, metrics="length", dialogues="empty-lines")
    rows = run["apart"].table
    assert rows is not None
    np.testing.assert_array_equal(rows.offsets, [0, 2, 3, 6])
    named = evaluating.evaluate(files / "old.txt", files / "refs.txt", metrics="length", dialogues=list("aabccc"))
    assert run["apart"]["length"].interval == named["old"]["length"].interval
    alone = evaluating.evaluate(responses, metrics="length", dialogues="empty-lines")["apart"].table
    assert alone is not None
    np.testing.assert_array_equal(alone.offsets, [0, 2, 3, 4, 5])


def test_dialogues_that_do_not_fit_are_refused(dialeval: Dialeval, files: Path) -> None:
    with pytest.raises(DataError, match="has 6 rows, but dialogues has 2"):
        evaluating.evaluate(files / "old.txt", metrics="length", dialogues=["a", "b"])
    with pytest.raises(DataError, match="has dialogues of its own"):
        evaluating.evaluate([{"dialog_id": "x", "response": "a"}], metrics="length", dialogues=["a"])
    with pytest.raises(SettingError, match="are added to rows in memory"):
        evaluating.evaluate(files / "old.txt", metrics="length", dialogues=files / "ids.txt", row_scores=False)
    refused = dialeval("score", "old.txt", "-m", "length", "--dialogues", "ids.txt", "--jobs", "2")
    assert refused.returncode == 2
    assert "--dialogues" in refused.stderr
