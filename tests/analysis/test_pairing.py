"""Which systems are compared under which keys, and what forbids it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dialeval.analysis.alignment import Alignment, Design, DesignName
from dialeval.analysis.pairing import choose_systems, describe_inputs
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result
from dialeval.core.rowtable import REFERENCE, RowTable
from dialeval.core.signature import Signature


def result(rows: RowTable | None = None, n: int = 4, size: int = 3, **more: Any) -> Result:
    estimate = Estimate(0.0, 0.0, size, size, scores=np.zeros(size), signature=Signature.of("bleu-4", n=n))
    return Result({"bleu-4": estimate}, table=rows, **more)


def test_anchors_are_compared_only_by_name() -> None:
    systems = {"a": result(), "gold": result(role="ceiling"), "floor/x": result()}
    assert choose_systems(systems) == ("a", ["floor/x"])
    assert choose_systems(systems, "gold") == ("gold", ["a", "floor/x"])
    assert choose_systems(systems, None, ["gold", "a", "gold"]) == ("gold", ["a"])
    only_baselines = {"low": result(role="floor"), "high": result(role="ceiling")}
    assert choose_systems(only_baselines) == ("low", ["high"])
    for names in ([], ["a"]):
        with pytest.raises(SettingError, match="needs two systems; there is a, gold, floor/x"):
            choose_systems(systems, None, names)
    with pytest.raises(SettingError, match="there is none"):
        choose_systems({})


def describe(
    left: Signature, right: Signature, references: Sequence[Sequence[int]] = (), name: DesignName = "paired"
) -> str | None:
    tables = [RowTable(np.arange(4), digests={REFERENCE: np.array(each, np.uint64)}) for each in references]
    tables = tables or [RowTable(np.arange(4))] * 2
    one, other = (
        Result({"m": Estimate(0.5, 0.0, 3, 3, signature=each)}, table=table)
        for each, table in zip((left, right), tables, strict=True)
    )
    return describe_inputs(one["m"], other["m"], Alignment(Design(name, "rows", 3, 3, 3), one, other))


def test_inputs_that_differ_are_named_in_words() -> None:
    plain = Signature.of("bleu-4", n=4, tokenizer="13a", reference="aaaa", context="bbbb", train="cccc")
    assert describe(plain, plain) is None
    assert describe(plain, plain.with_fields(context="own replies", dialeval="9")) is None
    assert describe(plain, plain.with_fields(tokenizer="zh")) == "tokenizers differ: 13a and zh"
    other = Signature("bleu(tokenizer=zh)", plain.with_fields(tokenizer="zh").fields)
    assert describe(plain, other) == "tokenizers differ: 13a and zh"
    assert describe(plain, plain.with_fields(train="dddd")) == "training texts differ"
    assert describe(plain, plain.with_fields(n=3)) == "settings of n differ: 4 and 3"
    assert describe(plain, plain.with_fields(smooth=7)) == "settings of smooth differ"
    assert "different versions" in str(describe(plain.with_fields(definition=1), plain.with_fields(definition=2)))


def test_references_are_compared_row_by_row() -> None:
    one, other = Signature.of("bleu-4", reference="aaaa"), Signature.of("bleu-4", reference="bbbb")
    assert describe(one, other, ([1, 2, 3], [1, 9, 8])) == "references differ in 2 of 3 rows"
    assert describe(one, other, ([1, 2, 3], [1, 2, 3])) is None, "the same rows out of other files"
    assert describe(one, other) == "references differ"
    assert describe(one, other, ([1, 2, 3], [1, 9, 8]), "unpaired") is None, "other rows have other references"
