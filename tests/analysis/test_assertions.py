"""An assertion about two runs holds, or says what is worse, by how much, how sure that is, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dialeval
import evaluating
from dialeval.core.errors import SettingError
from dialeval.core.result import Run

ROWS = 40


def rows(worse: range = range(0)) -> list[dict[str, Any]]:
    """Dialogues of two turns, some of which say nothing of their reference."""
    return [
        {
            "dialog_id": f"d{row // 2}",
            "turn": row % 2,
            "response": f"nothing {row}" if row in worse else f"we have {row} rooms",
            "reference": f"we have {row} free rooms",
        }
        for row in range(ROWS)
    ]


def scored(worse: range = range(0), **settings: Any) -> Run:
    return evaluating.evaluate(rows(worse), metrics="rouge-l,chrf,length", **settings)


@pytest.fixture(scope="module")
def baseline() -> Run:
    return scored()


def test_it_holds(baseline: Run, tmp_path: Path) -> None:
    found = dialeval.assert_no_worse(scored(range(3, 4)), baseline, "rouge-l")
    assert [row.key for row in found.differences] == ["rouge-l"]
    assert not found.differences[0].significant
    baseline.save(tmp_path / "main")
    scored().save(tmp_path / "branch")
    runs = tmp_path / "branch", str(tmp_path / "main"), ["rouge-l", "chrf"]
    dialeval.assert_no_worse(*runs)
    dialeval.assert_no_worse(*runs, margin=0.2)
    with pytest.raises(AssertionError, match=r"may be worse by 0\.180, the margin is 0\.01"):
        dialeval.assert_no_worse(*runs, margin=0.01)  # 20 equal dialogues do not prove that


def test_it_says_what_is_worse_and_where(baseline: Run) -> None:
    with pytest.raises(AssertionError) as error:
        dialeval.assert_no_worse(scored(range(10, 30)), baseline, "rouge-l", rows=2)
    first, design, difference, p, won, lost, *worst = str(error.value).splitlines()
    assert design == "  Paired design: the systems have the same 20 dialogues (40 rows), matched by id."
    assert first.startswith("rouge-l of run/system is ")
    assert "significantly worse (adjusted p = 0.00" in first
    assert difference.startswith("  difference -0.3")
    assert difference.endswith("], 95% over 20 dialogues")
    assert p.startswith("  p 0.00")
    assert p.endswith("(seed 12345); alpha 0.05")
    assert (won, lost) == ("  won 0, tied 10, lost 10", "  lost most:")
    assert worst[0] == "    dialogue 6 (d5): 0.8714 -> 0.2652"
    assert len(worst) == 2


def test_every_metric_that_is_worse_is_named(baseline: Run) -> None:
    with pytest.raises(AssertionError, match=r"(?s)rouge-l of run/system .*adjusted for 2 tests.*chrf of run/system"):
        dialeval.assert_no_worse(scored(range(30)), baseline, "rouge-l,chrf")


def test_a_margin_must_be_ruled_out(baseline: Run) -> None:
    little = scored(range(0, ROWS, 4))
    dialeval.assert_no_worse(little, baseline, "rouge-l", margin=0.5)
    with pytest.raises(AssertionError, match=r"it may be worse by 0.*, the margin is 0.05"):
        dialeval.assert_no_worse(little, baseline, "rouge-l", margin=0.05)
    with pytest.raises(AssertionError, match="rouge-l of run/system") as error:
        dialeval.assert_no_worse(little, baseline, "rouge-l,chrf", margin={"rouge-l": 0.05, "chrf": 0.9})
    assert "chrf of" not in str(error.value)


def test_lower_values_may_be_the_better_ones() -> None:
    @dialeval.metric_of_rows(name="words-too-many", better="lower")
    def too_many(response: str) -> int:
        return max(0, len(response.split()) - 3)

    before = dialeval.evaluate(["a b c"] * 30, metrics=[too_many])
    after = dialeval.evaluate(["a b c d"] * 29 + ["a"], metrics=[too_many])
    with pytest.raises(AssertionError, match=r"(?s)significantly worse.*lost most:\n    row 1: 0 -> 1"):
        dialeval.assert_no_worse(after, before, "words-too-many")
    dialeval.assert_no_worse(before, after, "words-too-many")


def test_values_of_all_rows_together_show_no_rows() -> None:
    before = dialeval.evaluate([f"word{row} and {row}" for row in range(40)], metrics="distinct-1")
    after = dialeval.evaluate(["and so on"] * 40, metrics="distinct-1")
    with pytest.raises(AssertionError, match="significantly worse") as error:
        dialeval.assert_no_worse(after, before, "distinct-1")
    assert "lost most" not in str(error.value)


def test_what_cannot_be_asked(baseline: Run) -> None:
    with pytest.raises(SettingError, match="neither higher nor lower values of length are better"):
        dialeval.assert_no_worse(baseline, baseline, "length")
    several = dialeval.evaluate({"a": rows(), "b": rows()}, metrics="rouge-l")
    with pytest.raises(SettingError, match="a baseline is a run of one system; this one has a, b"):
        dialeval.assert_no_worse(baseline, several, "rouge-l")
    with pytest.raises(SettingError, match="bleu-4"):
        dialeval.assert_no_worse(baseline, baseline, "bleu-4")
    other = dialeval.evaluate([{**row, "reference": "x"} for row in rows()], metrics="rouge-l")
    with pytest.raises(SettingError, match="on rouge-l: references differ in 40 of 40 rows"):
        dialeval.assert_no_worse(other, baseline, "rouge-l")
    dialeval.assert_no_worse(several, baseline, "rouge-l")  # each of its systems


def test_in_pytest(tmp_path: Path, baseline: Run) -> None:
    """The failure as somebody reads it who runs pytest."""
    import subprocess
    import sys

    baseline.save(tmp_path / "main")
    scored(range(10, 30)).save(tmp_path / "branch")
    (tmp_path / "test_it.py").write_text(
        "import dialeval\n\ndef test_it():\n    dialeval.assert_no_worse('branch', 'main', 'rouge-l')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "E           AssertionError: rouge-l of run/system is" in done.stdout
    assert "dialogue 6 (d5): 0.8714 -> 0.2652" in done.stdout
