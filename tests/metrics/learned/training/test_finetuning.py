"""Further training of an encoder: replies come nearer, seeds are kept, and what is saved is what was trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.resources.encoder import Encoder
from dialeval.resources.encoder_files import find_encoder
from tiny_encoder import write_encoder

pytest.importorskip("torch")

from dialeval.metrics.learned.torch_encoder import TorchEncoder
from dialeval.metrics.learned.training.finetuning import (
    FineTuning,
    Pairs,
    fine_tune,
    pairs_of,
    save_encoder,
)

TEXTS = ["the cat sat on a mat", "", "hello there", "how are you ?", "dogs do not know .", "cat " * 40, "i am fine"]


def test_further_training_brings_replies_nearer_and_is_saved_as_it_is(tmp_path: Path) -> None:
    files = find_encoder(write_encoder(tmp_path / "before"))
    dialogue = ["hello there", "how are you ?", "i am fine", "the cat sat on a mat", "the dog do not know ."]
    pairs = pairs_of([dialogue] * 4)
    assert len(pairs) == 16
    assert pairs.contexts[2] == "hello there how are you ? i am fine"
    settings = FineTuning(epochs=8, batch_size=4, learning_rate=0.01, same_dialogue=True, share=0.9)
    results = []
    steps: list[tuple[int, int | None]] = []
    for _ in range(2):
        encoder = TorchEncoder(files, 24)
        losses = fine_tune(encoder, pairs, settings, lambda *step: steps.append(step))
        results.append(encoder.encode(TEXTS))
        assert losses[-1] < losses[0]
    np.testing.assert_array_equal(results[0], results[1])
    assert steps == [(number, 32) for number in range(1, 33)] * 2
    saved = find_encoder(save_encoder(encoder, tmp_path / "after"))
    np.testing.assert_allclose(Encoder(saved, 24).encode(TEXTS), results[0], atol=1e-5)
    assert saved.digest != files.digest
    with pytest.raises(SettingError, match="fewer than two pairs"):
        fine_tune(encoder, Pairs([], [], []))
