"""Signatures print, read back, and tell what forbids a comparison."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.errors import SettingError
from dialeval.core.signature import Signature

names = st.text(min_size=1, max_size=8)


@given(names, st.dictionaries(names, st.text(max_size=8), max_size=5))
def test_prints_and_reads_back(metric: str, fields: dict[str, str]) -> None:
    signature = Signature(metric, tuple(fields.items()))
    assert Signature.parse(str(signature)) == signature
    assert "\n" not in str(signature)


def test_reads_as_people_expect() -> None:
    signature = Signature.of("distinct-2", n=2, effective=True, epsilon=0.1)
    assert str(signature) == "distinct-2|n:2|effective:yes|epsilon:0.1"
    assert signature["n"] == "2"


@pytest.mark.parametrize("line", ["", "|n:2", "bleu|n", "bleu|:2"])
def test_what_is_no_signature_is_refused(line: str) -> None:
    with pytest.raises(SettingError, match="not a signature"):
        Signature.parse(line)


def test_differences_are_named_and_the_release_does_not_count() -> None:
    left = Signature.of("bleu-4", smooth=4, reference="aa", dialeval="0.1.0")
    right = Signature.of("bleu-4", smooth=7, reference="aa", train="bb", dialeval="0.2.0")
    assert left.differences(right) == {"smooth": ("4", "7"), "train": (None, "bb")}
    assert left.differences(left.with_fields(dialeval="9")) == {}
    assert "metric" in left.differences(Signature.of("bleu-3", smooth=4, reference="aa"))


def test_a_field_is_replaced_in_place() -> None:
    assert str(Signature.of("x", a=1, b=2).with_fields(a=3, c=4)) == "x|a:3|b:2|c:4"
