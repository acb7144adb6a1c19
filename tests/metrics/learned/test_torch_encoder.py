"""PyTorch and NumPy give the same vectors, on random weights of every kind and on the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.resources.encoder import Encoder
from dialeval.resources.encoder_files import find_encoder, lacking
from tiny_encoder import write_encoder

torch = pytest.importorskip("torch")

from dialeval.metrics.learned.finetuning import FineTuning, Pairs, fine_tune, pairs_of, save_encoder  # noqa: E402
from dialeval.metrics.learned.torch_encoder import TorchEncoder  # noqa: E402

TEXTS = ["the cat sat on a mat", "", "hello there", "how are you ?", "dogs do not know .", "cat " * 40, "i am fine"]
KINDS = {
    "mean": {},
    "cls": {"pooling": "cls_token", "normalised": False},
    "max": {"pooling": "max_tokens"},
    "root": {"pooling": "mean_sqrt_len_tokens", "normalised": False, "activation": "relu"},
    "dense": {"dense": True, "prefix": "bert."},
    "roberta": {"model_type": "roberta", "prefix": "roberta."},
}


@pytest.mark.parametrize("kind", KINDS)
def test_both_give_the_same(tmp_path: Path, kind: str) -> None:
    files = find_encoder(write_encoder(tmp_path / kind, **KINDS[kind]))  # type: ignore[arg-type]
    plain, other = Encoder(files, 24), TorchEncoder(files, 24)
    assert plain.dimension == (5 if kind == "dense" else 8)
    for ends in (False, True):
        np.testing.assert_allclose(plain.encode(TEXTS, ends), other.encode(TEXTS, ends), atol=1e-5)
    assert plain.digest != other.digest, "what may differ in the last bits is not the same"


@pytest.mark.skipif(lacking() is not None, reason="the weights of minilm are not installed")
def test_both_give_the_same_on_real_weights() -> None:
    files = find_encoder("minilm")
    texts = [*TEXTS, "What do you think about Zürich, or 東京? I'd rather stay at home...", "yes " * 300]
    np.testing.assert_allclose(Encoder(files).encode(texts), TorchEncoder(files).encode(texts), atol=1e-5)


def test_a_gpu_that_is_not_there(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    files = find_encoder(write_encoder(tmp_path / "e"))
    far = TorchEncoder(files, 24, "cuda")
    assert far.digest != TorchEncoder(files, 24).digest  # known without a GPU, to those who only send it to one
    with pytest.raises(SettingError, match="finds no GPU"):
        far.encode(["hello"])


def test_further_training_brings_replies_nearer_and_is_saved_as_it_is(tmp_path: Path) -> None:
    files = find_encoder(write_encoder(tmp_path / "before"))
    dialogue = ["hello there", "how are you ?", "i am fine", "the cat sat on a mat", "the dog do not know ."]
    pairs = pairs_of([dialogue] * 4)
    assert len(pairs) == 16
    assert pairs.contexts[2] == "hello there how are you ? i am fine"
    settings = FineTuning(epochs=8, batch_size=4, learning_rate=0.01, same_dialogue=True, share=0.9)
    results = []
    for _ in range(2):
        encoder = TorchEncoder(files, 24)
        losses = fine_tune(encoder, pairs, settings)
        results.append(encoder.encode(TEXTS))
        assert losses[-1] < losses[0]
    np.testing.assert_array_equal(results[0], results[1])
    saved = find_encoder(save_encoder(encoder, tmp_path / "after"))
    np.testing.assert_allclose(Encoder(saved, 24).encode(TEXTS), results[0], atol=1e-5)
    assert saved.digest != files.digest
    with pytest.raises(SettingError, match="fewer than two pairs"):
        fine_tune(encoder, Pairs([], [], []))
