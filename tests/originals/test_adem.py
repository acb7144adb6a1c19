"""The stand-in for the module `ADEM`: its methods take a session."""

from __future__ import annotations

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
