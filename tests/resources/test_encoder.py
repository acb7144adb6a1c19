"""The encoder: its vectors do not depend on their neighbours, and of a long text the right end counts."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.errors import SettingError
from dialeval.resources.encoder import Encoder
from dialeval.resources.encoder_files import find_encoder
from tiny_encoder import WORDS, write_encoder

TEXTS = ["the cat sat on a mat", "", "hello there", "how are you ?", "dogs do not know .", "cat " * 40]
texts = st.lists(st.lists(st.sampled_from(WORDS[4:]), max_size=30).map(" ".join), max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


def test_vectors_are_of_length_one(folder: Path) -> None:
    vectors = Encoder(find_encoder(folder), 32).encode(TEXTS)
    assert vectors.shape == (len(TEXTS), 8)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@given(texts, st.randoms())
@settings(max_examples=30, deadline=None)
def test_neighbours_change_nothing(folder: Path, some: list[str], dice: object) -> None:
    encoder = Encoder(find_encoder(folder), 32)
    whole = encoder.encode(some)
    for text, vector in zip(some, whole, strict=True):
        np.testing.assert_array_equal(encoder.encode([text])[0], vector)
    np.testing.assert_array_equal(encoder.encode(some[::-1] + TEXTS)[: len(some)], whole[::-1])


def test_of_a_long_text_the_beginning_or_the_end_counts(folder: Path) -> None:
    encoder = Encoder(find_encoder(folder), 6)
    long, start, end = "the cat sat on a mat", "the cat sat on", "sat on a mat"
    np.testing.assert_array_equal(encoder.encode([long]), encoder.encode([start]))
    np.testing.assert_array_equal(encoder.encode([long], ends=True), encoder.encode([end]))
    assert encoder.digest != Encoder(find_encoder(folder), 7).digest
    with pytest.raises(SettingError, match="takes 3 to 64 tokens"):
        Encoder(find_encoder(folder), 65)


def test_an_encoder_survives_a_process_boundary(folder: Path) -> None:
    encoder = Encoder(find_encoder(folder), 16)
    again = pickle.loads(pickle.dumps(encoder))
    assert again.digest == encoder.digest
    np.testing.assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
