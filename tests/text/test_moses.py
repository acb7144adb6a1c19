from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacremoses import MosesDetokenizer, MosesTokenizer

from dialeval.text import tokenizers
from dialeval.text.tokenizers import normalize_moses

SPLIT, JOIN = MosesTokenizer(lang="en"), MosesDetokenizer(lang="en")

words = st.sampled_from(
    [
        "the",
        "NAME",
        "it's",
        "don't",
        "no",
        "No",
        "mr",
        "e",
        "10",
        "2",
        "x1",
        "10:00",
        "a:b",
        "DOTMULTI",
        "2.50",
        "-",
        "b-b",
    ]
)
marks = st.sampled_from(
    [".", ",", "?", "!", ":", ";", "'s", "'", "..", "...", "&", "#", "£", '"', "(", ")", "n't", "é"]
)
chunks = st.builds("".join, st.lists(st.one_of(words, marks), min_size=1, max_size=3))
texts = st.one_of(
    st.lists(chunks, max_size=6).map(" ".join),
    st.text("abAB01 .,?!:;'-&\t\n", max_size=25),
    st.text(max_size=15),
)


def by_sacremoses(text: str) -> str:
    return str(JOIN.detokenize(SPLIT.tokenize(text)))


@given(texts)
@settings(max_examples=400)
def test_the_same_as_sacremoses(text: str) -> None:
    assert normalize_moses(text) == by_sacremoses(text)


@given(st.lists(st.builds("".join, st.lists(st.sampled_from("aZ0'.,?!:;-#"), min_size=1, max_size=4)), max_size=6))
@settings(max_examples=400)
def test_the_same_near_the_edge_of_plain_texts(parts: list[str]) -> None:
    assert normalize_moses(" ".join(parts)) == by_sacremoses(" ".join(parts))


@pytest.mark.parametrize("form", ["{}. x", "{}. X", "{}. 5", "{}.", "'{}. X", "say {}.' X", "{}.'"])
def test_the_list_of_abbreviations_makes_no_difference(form: str) -> None:
    prefixes = [prefix.split()[0] for prefix in SPLIT.NONBREAKING_PREFIXES]
    assert len(prefixes) > 50
    for prefix in prefixes:
        assert normalize_moses(form.format(prefix)) == by_sacremoses(form.format(prefix))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello , it is 10:00 .", "hello, it is 10: 00."),
        ("NAME is nice . don't you think ?", "NAME is nice. don't you think?"),
        (". so", ". so"),
        ("a . . b", "a.. b"),
        ("", ""),
    ],
)
def test_plain_texts_need_no_sacremoses(text: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers, "_load_moses", None)
    assert normalize_moses(text) == expected
