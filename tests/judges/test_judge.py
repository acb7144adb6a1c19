"""The judge of single responses, and its settings."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tools.judge_training.pairs import shape_within

from dialeval.core.errors import SettingError
from dialeval.judges.adem import Judge, encode_rows, open_judge, open_vectors
from dialeval.judges.cross_encoder import HEADS, PairShape
from judges.tiny_judges import tiny_judge, tiny_vectors, tiny_weights
from tiny_encoder import write_encoder


def test_context_and_closest_reference(tmp_path: Path) -> None:
    vectors = tiny_vectors(tmp_path / "e")
    said = vectors.of(["the cat", "hello there", "dog"])
    texts = ["the cat", "hello there", "dog"]
    references = [["mat", "the cat"], [" ", ""], ["dog"]]
    rows = encode_rows(vectors, [["a", "b", " ", "mat"], [], [" "]], texts, references, 2)
    np.testing.assert_array_equal(rows.reference, said * [[1], [0], [1]])
    assert rows.has_reference.tolist() == [True, False, True]
    np.testing.assert_array_equal(rows.context[:1], vectors.of(["mat"]))
    assert rows.has_context.tolist() == [True, False, False]


def test_a_judge_scores_what_it_can_and_survives_a_process_boundary(tmp_path: Path) -> None:
    judge = tiny_judge(tmp_path / "e")
    rows = (
        [["hello there"], [], ["how are you ?"], []],
        ["i am fine", "the cat", "", "x"],
        [["i am fine"], ["a cat"], [], []],
    )
    scores = judge.score(*rows)
    assert np.isnan(scores).tolist() == [False, False, False, True]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(judge)).score(*rows), scores)
    assert judge.digest.startswith("adem@")
    assert "+e@" in judge.digest


def test_a_judge_of_other_vectors_is_refused(tmp_path: Path) -> None:
    encoder = write_encoder(tmp_path / "e")
    weights = replace(tiny_weights(), encoder=str(encoder), encoder_digest="0" * 12, tokens=32)
    folder = weights.save(tmp_path / "judge")
    with pytest.raises(SettingError, match="was fitted to other vectors"):
        open_judge(folder)
    vectors = open_vectors(encoder, 32)
    replace(weights, encoder_digest=vectors.encoder.files.digest).save(folder)
    assert Judge(folder).score([["hello"]], ["the cat"], [[]]).shape == (1,)
    with pytest.raises(SettingError, match="not on 'tpu'"):
        Judge(folder, device="tpu")


def test_every_row_has_its_own_closest_reference(tmp_path: Path) -> None:
    vectors = tiny_vectors(tmp_path / "e")
    texts = ["the cat", "hello there", "dog", "i am fine", "how are you ?"]
    references = [["mat", "dog", "a cat sat"], [], ["hello", "the dog"], ["fine"], ["you", "are", "how", "mat"]]
    rows = encode_rows(vectors, [[]] * 5, texts, references, 3)
    said = vectors.of(texts).astype(np.float64)
    for row, others in enumerate(references):
        every = vectors.of(others).astype(np.float64)
        cosines = [said[row] @ other / np.linalg.norm(said[row]) / np.linalg.norm(other) for other in every]
        expected = every[int(np.argmax(cosines))] if others else np.zeros(said.shape[1])
        np.testing.assert_array_equal(rows.reference[row], expected)


def test_a_judge_that_was_not_opened_keeps_its_settings_in_a_pickle(tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(Judge("folder", tmp_path, "torch")))
    assert again.__reduce__() == (Judge, ("folder", tmp_path, "torch"))


def test_a_pair_is_cut_to_what_an_encoder_takes() -> None:
    assert shape_within(512) == PairShape()
    small = shape_within(32)
    assert (small.context_tokens + small.response_tokens, small.turns) == (32, 3)
    assert PairShape() == PairShape(3, 72, 44)
    assert HEADS == {"rank": 1, "kind": 4, "rating": 1, "breakdown": 3}
    most = 1 << 24
    assert PairShape(1, 1, 1) != PairShape(most, most, most)
    for wrong in (0, most + 1):
        for place in range(3):
            with pytest.raises(ValueError, match="from 1 on"):
                PairShape(*[wrong if place == at else 1 for at in range(3)])
