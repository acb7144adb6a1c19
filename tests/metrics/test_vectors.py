"""Vectors of texts: words that are met late, and what a word adds."""

from __future__ import annotations

import numpy as np
import pytest

import dialeval
from dialeval.core.columns import TextColumn
from dialeval.metrics.embedding import WordValues
from dialeval.metrics.words import VectorTable
from dialeval.text.tokenizers import tokenize
from dialeval.text.vocabulary import Vocabulary
from metrics.evaluated import VECTORS, Vectors


def test_vectors_of_words_that_come_late_are_found() -> None:
    responses = [f"w{number}" for number in range(50)]
    table = {word: (1.0, float(number), 0.0) for number, word in enumerate(responses)}
    result = dialeval.evaluate(
        responses, responses, train=["w3"], vectors=Vectors(table), metrics="embedding", batch_rows=3, threads=3
    )["system"]
    for by in ("average", "extrema", "greedy"):
        assert result[f"embedding-{by}"].items == pytest.approx(np.ones(50))


def test_unin_vocabulary_do_not_count_and_extremes_keep_their_sign() -> None:
    vocabulary = Vocabulary()
    texts = tokenize(TextColumn.from_strings(["a b zz", "c b", "zz", ""]), vocabulary)
    values = WordValues.of(VectorTable(vocabulary, VECTORS), None, None)
    averages, extrema = values.average_texts(texts), values.find_extrema(texts)
    assert averages.counted.tolist() == extrema.counted.tolist() == [2, 2, 0, 0]
    expected = np.array([[0.8, 0.4, 0], [-0.2, 0.4, 0], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(averages.vectors, expected, atol=1e-15)
    assert extrema.vectors.tolist() == [[1, 0.8, 0], [-1, 0.8, 0], [0, 0, 0], [0, 0, 0]]
