"""The metric `adem`: the judge's scores, with whatever of context and reference the rows have."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dialeval
from judges.tiny_judges import tiny_judge

RESPONSES, REFERENCES, CONTEXTS = ["i am fine", "the cat"], ["i am not fine", "a dog"], ["how are you ?", "hello there"]


def lists(texts: list[str] | None) -> list[list[str]]:
    return [[text] for text in texts] if texts else [[], []]


def test_rows_are_scored_by_what_they_have(tmp_path: Path) -> None:
    judge = tiny_judge(tmp_path / "e")
    for references, contexts in ((REFERENCES, CONTEXTS), (REFERENCES, None), (None, CONTEXTS)):
        run = dialeval.evaluate({"a": RESPONSES}, references=references, contexts=contexts, metrics="adem", judge=judge)
        expected = judge.score(lists(contexts), RESPONSES, lists(references))
        items = run["a"]["adem"].scores
        assert items is not None
        np.testing.assert_array_equal(items, expected)
