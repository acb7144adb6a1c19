"""METEOR with exact matches, compared with nltk."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nltk.translate.meteor_score import meteor_score

import dialeval

texts = st.lists(st.sampled_from(["a", "B", "b", "c", "d"]), max_size=9).map(" ".join)
IDENTITY = SimpleNamespace(stem=lambda word: word)
NO_SYNONYMS = SimpleNamespace(synsets=lambda word: [])


@given(st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=8))
@example([("the cat sat on the mat", ["on the mat sat the cat"]), ("a", ["b"])])
def test_it_is_meteor_of_nltk_without_stems_and_synonyms(rows: list[tuple[str, list[str]]]) -> None:
    responses, references = [list(column) for column in zip(*rows, strict=True)]
    scored = dialeval.evaluate(responses, references, metrics="meteor-exact")["system"]["meteor-exact"]
    expected = [
        meteor_score([text.split() for text in several], response.split(), stemmer=IDENTITY, wordnet=NO_SYNONYMS)
        for response, several in rows
    ]
    assert scored.scores is not None
    np.testing.assert_allclose(scored.scores, expected, rtol=1e-12, atol=1e-15)


def test_published_example() -> None:
    """Six words in the order of the reference: one chunk; the penalty is 0.5 / 6^3 (nltk's documentation)."""
    run = dialeval.evaluate(["the cat sat on the mat"], [["the cat sat on the mat"]], metrics="meteor-exact")
    assert run["system"]["meteor-exact"].mean == pytest.approx(1 - 0.5 / 6**3)
