"""The judge of single responses: its settings, the metric `adem`, and attacks."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tools.judge_training.pairs import shape_within

import dialeval
from dialeval.core.errors import SettingError
from dialeval.judges.adem import Judge, encode_rows, open_judge, open_vectors
from dialeval.judges.attacks import attack
from dialeval.judges.judge import PairShape
from judges.tiny_judges import invented_ratings, tiny_judge, tiny_vectors, tiny_weights
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
    again = pickle.loads(pickle.dumps(Judge("folder", tmp_path)))
    assert again.__reduce__() == (Judge, ("folder", tmp_path))


def test_a_pair_is_cut_to_what_an_encoder_takes() -> None:
    assert shape_within(512) == PairShape()
    small = shape_within(32)
    assert (small.context_tokens + small.response_tokens, small.turns) == (32, 3)
    for wrong in (0, (1 << 24) + 1):
        for place in range(3):
            with pytest.raises(ValueError, match="from 1 on"):
                PairShape(*[wrong if place == at else 1 for at in range(3)])


def wrap(texts: list[str] | None) -> list[list[str]]:
    return [[text] for text in texts] if texts else [[], []]


def test_the_metric_scores_rows_by_what_they_have(tmp_path: Path) -> None:
    judge, responses = tiny_judge(tmp_path / "e"), ["i am fine", "the cat"]
    said, asked = ["i am not fine", "a dog"], ["how are you ?", "hello there"]
    for references, contexts in ((said, asked), (said, None), (None, asked)):
        run = dialeval.evaluate({"a": responses}, references=references, contexts=contexts, metrics="adem", judge=judge)
        around, closest = wrap(contexts), wrap(references)
        scores = run["a"]["adem"].scores
        assert scores is not None
        assert scores.tolist() == judge.score(around, responses, closest).tolist()


def test_attacks(tmp_path: Path) -> None:
    judge = tiny_judge(tmp_path / "e")
    ratings = invented_ratings(40)
    found = {each.name: each for each in attack(judge, ratings.contexts, ratings.responses, ratings.references)}
    assert list(found) == ["reversed", "dull", "random", "context", "reference"]
    assert all(each.rows == 40 for each in found.values())
    real = judge.score(ratings.contexts, ratings.responses, ratings.references)
    turned = [" ".join(reversed(text.split())) for text in ratings.responses]
    other = judge.score(ratings.contexts, turned, ratings.references)
    each = found["reversed"]
    assert each.real == pytest.approx(real.mean())
    assert each.mean == pytest.approx(other.mean())
    assert each.not_worse == pytest.approx((other >= real).mean())
    assert each.changed == pytest.approx((np.abs(other - real) >= 0.5).mean())
    assert each.correlation == pytest.approx(np.corrcoef(real, other)[0, 1])
    bare = {each.name for each in attack(judge, ratings.contexts, ["word"] * 40, [[]] * 40)}
    assert bare == {"dull", "context"}, "what cannot be tried is left out"
    unasked = {each.name for each in attack(judge, [[]] * 40, ratings.responses, ratings.references)}
    assert unasked == {"reversed", "dull", "random", "reference"}
    with pytest.raises(SettingError, match="needs a context or a reference"):
        attack(judge, [[]] * 40, ratings.responses, [[]] * 40)
