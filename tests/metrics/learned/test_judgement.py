"""The metric `judge`: the judge's verdicts as results, with the references that the rows have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dialeval
from dialeval.core.errors import NeedError
from metrics.learned.judges import tiny_dialogue_judge, tiny_judge

RESPONSES, REFERENCES, CONTEXTS = ["i am fine", "the cat"], ["i am not fine", "a dog"], ["how are you ?", "hello there"]


def test_every_part_of_a_verdict_is_a_result(tmp_path: Path) -> None:
    judge = tiny_dialogue_judge(tmp_path)
    for references in (REFERENCES, None):
        run = dialeval.evaluate(
            {"a": RESPONSES}, references=references, contexts=CONTEXTS, metrics="judge", judge=judge
        )
        expected = judge.verdicts(
            [[text] for text in CONTEXTS], RESPONSES, [[text] for text in references] if references else [[], []]
        )
        for part in ("score", "relevance", "fluency", "novelty"):
            key = "judge" if part == "score" else f"judge/{part}"
            items = run["a"][key].items
            assert items is not None
            np.testing.assert_array_equal(items, getattr(expected, part))
            assert run["a"][key].mean == pytest.approx(items.mean())
        signature = run["a"]["judge"].signature
        assert signature is not None
        assert signature["dialogue-judge"] == judge.digest


def test_a_folder_serves_the_metric_of_its_kind(tmp_path: Path) -> None:
    judge = tiny_dialogue_judge(tmp_path / "one")
    with pytest.raises(NeedError, match="judge"):
        dialeval.evaluate({"a": RESPONSES}, contexts=CONTEXTS, metrics="adem", judge=judge)
    with pytest.raises(NeedError, match="judge"):
        dialeval.evaluate({"a": RESPONSES}, contexts=CONTEXTS, metrics="judge", judge=tiny_judge(tmp_path / "two"))


def test_without_a_context_nothing_is_judged(tmp_path: Path) -> None:
    with pytest.raises(NeedError, match="contexts"):
        dialeval.evaluate({"a": RESPONSES}, references=REFERENCES, metrics="judge", judge=tiny_dialogue_judge(tmp_path))
