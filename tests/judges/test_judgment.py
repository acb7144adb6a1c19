"""The metric `judge`: the judge's verdicts as results, with the references that the rows have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
import evaluating
from dialeval.core.errors import NeedError
from dialeval.engine.worker import Threads
from dialeval.judges.judge import DialogueJudge, Verdicts, is_outside
from judges.tiny_judges import tiny_dialogue_judge, tiny_judge

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
        for part in ("score", "relevance", "fluency", "novelty", "continuity"):
            key = "judge" if part == "score" else f"judge/{part}"
            items = run["a"][key].scores
            assert items is not None
            given = expected.breakdown[:, 0] if part == "continuity" else getattr(expected, part)
            np.testing.assert_array_equal(items, given)
            assert run["a"][key].mean == pytest.approx(items.mean())
        signature = run["a"]["judge"].signature
        assert signature is not None
        assert signature["dialogue-judge"] == judge.digest


def test_a_judge_serves_the_metric_of_its_kind(tmp_path: Path) -> None:
    judge = tiny_dialogue_judge(tmp_path / "one")
    for given in (judge, tmp_path / "one" / "judge"):
        with pytest.raises(NeedError, match="judge"):
            dialeval.evaluate({"a": RESPONSES}, contexts=CONTEXTS, metrics="adem", judge=given)
    with pytest.raises(NeedError, match="judge"):
        dialeval.evaluate({"a": RESPONSES}, contexts=CONTEXTS, metrics="judge", judge=tiny_judge(tmp_path / "two"))


def test_without_a_context_nothing_is_judged(tmp_path: Path) -> None:
    with pytest.raises(NeedError, match="contexts"):
        dialeval.evaluate({"a": RESPONSES}, references=REFERENCES, metrics="judge", judge=tiny_dialogue_judge(tmp_path))


@pytest.mark.parametrize("resampled", [False, True])
def test_no_interval_goes_beyond_what_its_result_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resampled: bool
) -> None:
    """Of two rows intervals are very wide; those of the parts used to end at 5, and that of the score at 0."""
    apart = np.array([0.02, 0.97])
    verdicts = Verdicts(1 + 4 * apart, apart, apart, apart, np.repeat(apart[:, None], 3, axis=1))
    monkeypatch.setattr(DialogueJudge, "verdicts", lambda *_: verdicts)
    judge = tiny_dialogue_judge(tmp_path)
    run = dialeval.evaluate({"a": RESPONSES}, contexts=CONTEXTS, metrics="judge", judge=judge)
    run = dialeval.with_intervals(run) if resampled else run
    for key, estimate in run["a"].items():
        least, largest = (1.0, 5.0) if key == "judge" else (0.0, 1.0)
        assert estimate.interval is not None
        assert estimate.interval == (least, largest)


@pytest.mark.parametrize(
    ("response", "outside"),
    [
        ("i am fine , and you ?", False),
        ("word " * 60, False),
        ("word " * 61, True),
        ("hello\n\nhow are you ?", True),
        ("hello\nhow are you ?\n\n", False),
        ("try this: ```print(1)```", True),
        ("1. one\n2. two", True),
        ("- one\n- two", True),
        ("1. one", False),
        ("it is 3 - 2 * 1", False),
        ("", False),
    ],
)
def test_what_is_unlike_chat_replies(response: str, outside: bool) -> None:
    assert is_outside(response) == outside


@pytest.mark.parametrize("chunked", [False, True])
def test_a_run_warns_of_responses_unlike_those_it_was_validated_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunked: bool
) -> None:
    """One warning for all systems, with the agreement that was measured; from more than a tenth of all on."""
    judge = tiny_dialogue_judge(tmp_path)
    long = ["- one\n- two"] * 3 + ["i am fine"] * 17

    def warnings(responses: list[str]) -> tuple[str, ...]:
        rows = [
            {"system": system, "response": text, "context": ["hello there"]}
            for system, texts in (("a", responses), ("b", responses[::-1]))
            for text in texts
        ]
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        given: dict[str, Any] = {"engine": Threads(2), "chunk_bytes": 200} if chunked else {}
        return evaluating.evaluate(path, metrics="judge", judge=judge, **given).warnings

    assert warnings(long) == ()  # another judge than the shipped one
    monkeypatch.setattr(DialogueJudge, "shipped", True)
    (line,) = warnings(long)
    assert line.startswith("judge: 6 of 40 responses are unlike the chat replies it was validated on")
    assert "56% (llm_pairs)" in line
    assert warnings(long[1:])
    assert warnings(long[2:]) == ()  # 2 of 36
    assert warnings(long[1:] + long[-1:]) == ()  # 4 of 40, a tenth
