"""The stand-in for the module `ADEM`: its methods take a session."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def test_a_session_is_taken_and_not_looked_at() -> None:
    from dialeval import adem
    from dialeval.originals.adem import ADEM

    rng = np.random.default_rng(0)
    context, response, reference = rng.normal(size=(4, 2)), rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    scores = np.array([1.0, 2.0, 3.0, 4.0])
    ours, theirs = adem.ADEM(2, 3, 2, 0.01), ADEM(2, 3, 2, 0.01)
    for session in (None, object()):
        expected, loss = ours.train_on_single_batch(context, response, reference, scores)
        found = theirs.train_on_single_batch(session, context, response, reference, human_score=scores)
        np.testing.assert_array_equal(found[0], expected)
        assert found[1] == loss
    np.testing.assert_array_equal(
        theirs.predict_on_single_batch(None, context, response, reference),
        ours.predict_on_single_batch(context, response, reference),
    )


def test_the_encoder_gets_what_comes_after_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    from dialeval import adem
    from dialeval.originals.adem import ADEMWithEncoder

    for name in ("train_on_single_batch", "predict_on_single_batch"):
        monkeypatch.setattr(adem.ADEMWithEncoder, name, lambda self, *batch, **named: (batch, named))
        method = getattr(object.__new__(ADEMWithEncoder), name)
        assert method("session", 1, 2, mask=3) == ((1, 2), {"mask": 3})


def test_names_and_defaults_are_those_of_the_original() -> None:
    from dialeval.originals.adem import ADEM, ADEMWithEncoder

    encoders = ["context_encoder", "model_response_encoder", "reference_response_encoder"]
    rest = ["learning_rate", "max_grad_norm", "others"]
    dimensions = ["context_dim", "model_response_dim", "reference_response_dim"]
    sizes = ["vocab_size", "embedding_size", *encoders, "embedding_lut_path", "learn_embedding"]
    for model, names in ((ADEM, dimensions), (ADEMWithEncoder, sizes)):
        parameters = inspect.signature(model).parameters
        assert list(parameters) == [*names, *rest]
        assert (parameters["learning_rate"].default, parameters["max_grad_norm"].default) == (0.1, 5)
        assert next(iter(inspect.signature(model.train_on_single_batch).parameters.values())).name == "self"
        assert list(inspect.signature(model.train_on_single_batch).parameters)[1] == "train_session"
        assert list(inspect.signature(model.predict_on_single_batch).parameters)[1] == "predict_session"
        assert list(inspect.signature(model.assign_learning_rate).parameters)[1:] == ["train_session", "learning_rate"]


def test_a_learning_rate_is_assigned_in_a_session() -> None:
    from dialeval.originals.adem import ADEM

    model = ADEM(2, 2, 2, 0.01, 3)
    assert (model.learning_rate, model.max_grad_norm) == (0.01, 3)
    model.assign_learning_rate(None, 0.5)
    assert model.learning_rate == 0.5
    assert model.optimizer.param_groups[0]["lr"] == 0.5
    vectors = np.ones((1, 2))
    model.train_on_single_batch(None, vectors, vectors, vectors, [3.0], 0.25)
    assert model.learning_rate == 0.25
    found = model.predict_on_single_batch(
        predict_session=None, context=vectors, model_response=vectors, reference_response=vectors
    )
    assert found.shape == (1,)


def test_vectors_keep_their_fractions() -> None:
    from dialeval.originals.adem import ADEM

    model = ADEM(1, 1, 1)
    batches = [np.array([[value]]) for value in (0.0, 0.5, 0.9)]
    found = [model.predict_on_single_batch(None, batch, batch, batch)[0] for batch in batches]
    np.testing.assert_allclose(found, [0.0, 0.5, 2 * 0.81], atol=1e-6)


def test_two_models_start_alike() -> None:
    from dialeval.adem import EncoderSettings
    from dialeval.originals.adem import ADEM, ADEMWithEncoder

    vectors = np.array([[0.1, 0.2], [0.3, -0.4]])
    pairs = [ADEM(2, 2, 2).predict_on_single_batch(None, vectors, vectors, vectors) for _ in range(2)]
    np.testing.assert_array_equal(pairs[0], pairs[1])
    small = EncoderSettings(utterance=3, context=4)
    first, second = (ADEMWithEncoder(7, 2, small).network.state_dict() for _ in range(2))
    assert all(bool((tensor == second[name]).all()) for name, tensor in first.items())


def test_the_encoder_is_made_and_loaded(tmp_path: Path) -> None:
    from dialeval.adem import EncoderSettings
    from dialeval.originals.adem import ADEMWithEncoder

    small = EncoderSettings(utterance=3, context=4)
    model = ADEMWithEncoder(7, 2, small, small, None, None, True, 0.2, 4)
    assert (model.vocabulary_size, model.embedding_size, model.settings) == (7, 2, small)
    assert (model.learning_rate, model.max_grad_norm, model.train_embeddings) == (0.2, 4, True)
    model.assign_learning_rate(None, 0.3)
    again = ADEMWithEncoder.load(model.save(tmp_path / "model"))
    assert isinstance(again, ADEMWithEncoder)
    assert (again.vocabulary_size, again.settings, again.train_embeddings) == (7, small, True)
    assert again.learning_rate == 0.3


@pytest.mark.parametrize(
    ("encoders", "lut", "message"),
    [
        ([{"params": {}}, None, None], None, "EncoderSettings, not by a dictionary"),
        (["small", "other", None], None, "have one EncoderSettings"),
        (["small", None, None], "vectors.pkl", "not read from a pickle"),
    ],
)
def test_what_the_encoder_of_the_original_takes_and_ours_does_not(encoders: list[Any], lut: Any, message: str) -> None:
    from dialeval.adem import EncoderSettings
    from dialeval.core.errors import SettingError
    from dialeval.originals.adem import ADEMWithEncoder

    settings = {"small": EncoderSettings(utterance=3), "other": EncoderSettings(utterance=4)}
    given = [settings[each] if isinstance(each, str) else each for each in encoders]
    with pytest.raises(SettingError, match=message):
        ADEMWithEncoder(7, 2, given[0], given[1], given[2], lut)
