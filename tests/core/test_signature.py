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
