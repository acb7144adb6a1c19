from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from dialeval.text.mteval import parts_13a, tokens_13a

SACRE = Tokenizer13a()
texts = st.one_of(st.text(max_size=30), st.text("a1 .,-&;<>skiped\n'\"[]/", max_size=40))


@given(texts)
@settings(max_examples=500)
def test_the_same_as_sacrebleu(text: str) -> None:
    assert tokens_13a(text) == SACRE(text).split()


@given(texts)
@settings(max_examples=500)
def test_parts_give_the_tokens_of_the_text(text: str) -> None:
    assert [token for part in parts_13a(text) for token in tokens_13a(part)] == tokens_13a(text)
