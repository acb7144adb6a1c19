"""Estimates are named as metrics were asked for and signed with the digests of what they depend on."""

from __future__ import annotations

from typing import Any

import pytest

import dialeval
from dialeval.core.columns import RaggedColumn


def test_a_changed_default_keeps_the_name_and_stands_in_the_signature() -> None:
    run = dialeval.evaluate(["a b"], ["a c"], metrics="bleu-4,bleu(n=2,smooth=7)", settings={"bleu": {"smooth": 6}})
    assert list(run["system"]) == ["bleu-4", "bleu(n=2,smooth=7)"]
    signature = run["system"]["bleu-4"].signature
    assert signature is not None
    assert signature["smooth"] == "6"


def test_a_digest_is_computed_once_though_systems_share_the_column(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    plain = RaggedColumn.digest.fget  # type: ignore[attr-defined]

    def counted(self: Any) -> Any:
        nonlocal calls
        calls += 1
        return plain(self)

    monkeypatch.setattr(RaggedColumn, "digest", property(counted))
    dialeval.evaluate({"a": ["x"], "b": ["y"], "c": ["z"]}, ["x"], metrics="bleu-1,bleu-2,rouge-l")
    assert calls == 1


def test_torn_dialogues_are_warned_of() -> None:
    rows = [{"response": "a", "dialog_id": name} for name in "aba"]
    (warning,) = dialeval.evaluate(rows, metrics="length").warnings
    assert "rows of 1 dialogues of system are not consecutive, such as those of 'a'" in warning
