"""PyTorch and NumPy give the same vectors, on random weights of every kind and on the real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.metrics.encoder import Encoder
from dialeval.metrics.encoder_files import find_encoder, find_install_command
from tiny_encoder import write_encoder

torch = pytest.importorskip("torch")

from dialeval.judges import torch_encoder  # noqa: E402
from dialeval.judges.torch_encoder import TorchEncoder  # noqa: E402

TEXTS = ["the cat sat on a mat", "", "hello there", "how are you ?", "dogs do not know .", "cat " * 40, "i am fine"]
KINDS = {
    "mean": {},
    "of any length": {"normalized": False},
    "cls": {"pooling": "cls_token", "normalized": False},
    "prefix": {"prefix": "bert."},
}


@pytest.mark.parametrize("kind", KINDS)
def test_both_give_the_same(tmp_path: Path, kind: str) -> None:
    files = find_encoder(write_encoder(tmp_path / kind, **KINDS[kind]))  # type: ignore[arg-type]
    plain, other = Encoder(files, 24), TorchEncoder(files, 24)
    assert plain.dimension == 8
    for ends in (False, True):
        np.testing.assert_allclose(plain.encode(TEXTS, ends), other.encode(TEXTS, ends), atol=1e-5)
    assert plain.digest != other.digest, "what may differ in the last bits is not the same"


@pytest.mark.skipif(find_install_command() is not None, reason="the weights of minilm are not installed")
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


def test_texts_keep_their_order_however_they_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = TorchEncoder(find_encoder(write_encoder(tmp_path / "e")), 24)
    expected = encoder.encode(TEXTS)
    assert encoder.encode([]).shape == (0, 8)
    monkeypatch.setattr(torch_encoder, "_AHEAD_TEXTS", 3)
    monkeypatch.setattr(torch_encoder, "_BATCH_TOKENS", {"cpu": 12})
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
