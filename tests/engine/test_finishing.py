"""Estimates are named as metrics were asked for and signed with the digests of what they depend on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import RaggedColumn
from dialeval.core.errors import DataError
from dialeval.core.fold import Fact
from dialeval.engine.folding import Options, list_signed_needs, run_sources
from dialeval.engine.plan import make_plan
from dialeval.io.reading import read_responses
from dialeval.io.sources import wrap_systems
from dialeval.metrics.registry import registry
from engine.chats import in_chunks


def test_a_changed_default_keeps_the_name_and_stands_in_the_signature() -> None:
    run = dialeval.evaluate(["a b"], ["a c"], metrics="bleu-4,bleu(n=2,smooth=7)", settings={"bleu": {"smooth": 6}})
    assert list(run["system"]) == ["bleu-4", "bleu(n=2,smooth=7)"]
    signature = run["system"]["bleu-4"].signature
    assert signature is not None
    assert signature["smooth"] == "6"


def test_all_but_the_subject_stands_in_a_signature() -> None:
    bleu = registry().parse("bleu-4")
    assert list_signed_needs(bleu) == sorted((bleu.needs | bleu.wants) - {inputs.RESPONSE})


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


def test_systems_stand_in_the_order_of_the_arguments(tmp_path: Path) -> None:
    for name in ("z", "a", "m"):
        (tmp_path / f"{name}.txt").write_text("x\n")
    for responses in ({"z": tmp_path / "z.txt", "a": tmp_path / "a.txt", "m": tmp_path / "m.txt"}, tmp_path):
        expected = list(responses) if isinstance(responses, dict) else ["a", "m", "z"]
        assert list(in_chunks(responses, metrics="length")) == expected


@dataclass(frozen=True)
class Texts(Fact[tuple[str, ...], str]):
    """For tests: the responses, joined by a sign."""

    sign: str

    def empty(self) -> tuple[str, ...]:
        return ()

    def gather(self, batch: Batch) -> tuple[str, ...]:
        return tuple(batch.texts(inputs.RESPONSE))

    def merge(self, left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
        return left + right

    def finish(self, state: tuple[str, ...]) -> str:
        return self.sign.join(state)


def test_details_are_told_apart_and_follow_the_metrics() -> None:
    details: dict[str, Fact[Any, Any]] = {"plus": Texts("+"), "minus": Texts("-"), "dot": Texts(".")}
    plan = replace(make_plan("length,distinct-1", frozenset({inputs.RESPONSE})), details=details)
    sources = wrap_systems(read_responses(["a", "b", "c"]))
    evaluation = run_sources(sources, lambda *_: plan, options=Options(batch_rows=1))
    assert evaluation.systems["system"].finish_details() == {"plus": "a+b+c", "minus": "a-b-c", "dot": "a.b.c"}
    assert evaluation.run["system"]["length"].mean == 1


def test_systems_of_files_are_named_by_argument_and_row(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text('{"response": "x", "system": "s"}\n{"response": "y", "system": "t"}\n')
    (tmp_path / "two.txt").write_text("x\n")
    run = in_chunks({"a": tmp_path / "one.jsonl", "b": tmp_path / "two.txt"}, metrics="length")
    assert list(run) == ["a/s", "a/t", "b"]
    (tmp_path / "none.jsonl").write_text("\n")
    with pytest.raises(DataError, match=r"none.jsonl: holds no rows"):
        in_chunks(tmp_path / "none.jsonl", metrics="length")
