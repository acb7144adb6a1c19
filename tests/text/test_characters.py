"""Characters of texts against Python's strings."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.text.tokenizers import characters, characters_of
from dialeval.text.vocabulary import Vocabulary


@given(
    texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \t\x85\xa0 　é日\U0001f600")))
)
@example(texts=["".join(map(chr, range(0x3002))), "a ", "", " "])
@example(texts=["\ud7ff\ue000\uffff\U00010000\U0003ffff\U00040000\U0007ffff\U000bffff\U000fffff\U0010ffff"])
def test_characters_are_pythons_without_white_space(texts: list[str]) -> None:
    found = characters_of(TextColumn.from_strings(texts))
    assert found.words() == [list("".join(text.split())) for text in texts]


def test_lower_case_is_asked_for() -> None:
    batch = Batch(1, {inputs.RESPONSE: TextColumn.from_strings(["Ab C"])}, Vocabulary(), np.array([0, 1]))
    assert characters(batch, inputs.RESPONSE, False).words() == [["A", "b", "C"]]
    assert characters(batch, inputs.RESPONSE, True).words() == [["a", "b", "c"]]
    assert len(characters(batch, inputs.RESPONSE, True).vocabulary) == 0x110000
