"""The encoder: its vectors do not depend on their neighbors, and of a long text the right end counts."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

from dialeval.core.errors import SettingError
from dialeval.metrics.encoder import TILE, Encoder, Transformer, find_row_step
from dialeval.metrics.encoder_files import find_encoder
from tiny_encoder import HEADS, HIDDEN, LAYERS, WORDS, write_encoder

pytestmark = pytest.mark.usefixtures("cache")

TEXTS = ["the cat sat on a mat", "", "hello there", "how are you ?", "dogs do not know .", "cat " * 40]
texts = st.lists(st.lists(st.sampled_from(WORDS[4:]), max_size=30).map(" ".join), max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


@given(texts, st.randoms())
@settings(max_examples=30, deadline=None)
def test_neighbors_change_nothing(folder: Path, some: list[str], dice: object) -> None:
    encoder = Encoder(find_encoder(folder), 32)
    whole = encoder.encode(some)
    for text, vector in zip(some, whole, strict=True):
        np.testing.assert_array_equal(encoder.encode([text])[0], vector)
    np.testing.assert_array_equal(encoder.encode(some[::-1] + TEXTS)[: len(some)], whole[::-1])


_ALONE_AND_TOGETHER = """
import sys
from dialeval.metrics.encoder import Encoder
from dialeval.metrics.encoder_files import find_encoder

encoder = Encoder(find_encoder(sys.argv[1]), 32)
texts = [" ".join(["cat sat on", "hello", "how are you ?"][: n % 4] + ["dog"] * (n % 7)) for n in range(40)]
whole = encoder.encode(texts)
print(sum((encoder.encode([text])[0] != vector).any() for text, vector in zip(texts, whole, strict=True)))
"""


@pytest.mark.parametrize("processor", ["HASWELL", "SANDYBRIDGE"])
def test_neighbors_change_nothing_on_other_processors(folder: Path, processor: str) -> None:
    # OpenBLAS takes the products that it has for an older processor. That of Haswell, which it takes for Zen as well,
    # depends on the place of a row in its tile.
    environment = {**os.environ, "OPENBLAS_CORETYPE": processor}
    command = [sys.executable, "-c", _ALONE_AND_TOGETHER, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "0\n"


class Uneven:
    """A weight whose product depends on the place of a row, with a period of six rows or another one."""

    __array_ufunc__ = None

    def __init__(self, period: int = 6) -> None:
        self.period = period

    def __len__(self) -> int:
        return 4

    def __rmatmul__(self, tile: Any) -> Any:
        return tile + (np.arange(len(tile)) % self.period > self.period // 2)[:, None]


def test_the_step_is_the_least_by_which_a_product_repeats() -> None:
    even = np.ones((4, 4), np.float32)
    uneven: Any = Uneven()
    assert find_row_step([even]) == 1
    assert find_row_step([even, uneven, even]) == 6
    never: Any = Uneven(TILE)
    assert find_row_step([never]) == TILE


def layer_norm(rows: Any, weight: Any, bias: Any) -> Any:
    centered = rows - rows.mean(axis=1, keepdims=True)
    return centered / np.sqrt(rows.var(axis=1, keepdims=True) + 1e-12) * weight + bias


def naive_vectors(folder: Path, ids: list[int], second: int = 0) -> Any:
    """BERT as it is written in papers, one text and one head at a time, in float64; `second` tokens of type 1."""
    tensors = {name: value.astype(float) for name, value in load_file(folder / "model.safetensors").items()}

    def apply(rows: Any, name: str) -> Any:
        return rows @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(rows: Any, name: str) -> Any:
        return layer_norm(rows, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    types = [0] * (len(ids) - second) + [1] * second
    rows = tensors["embeddings.word_embeddings.weight"][ids]
    rows = rows + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    rows = norm(rows + tensors["embeddings.token_type_embeddings.weight"][types], "embeddings.LayerNorm")
    size = HIDDEN // HEADS
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        q, k, v = (apply(rows, f"{at}attention.self.{part}") for part in ("query", "key", "value"))
        heads = []
        for head in range(HEADS):
            own = slice(head * size, (head + 1) * size)
            scores = np.exp(q[:, own] @ k[:, own].T / math.sqrt(size))
            heads.append(scores / scores.sum(axis=1, keepdims=True) @ v[:, own])
        rows = norm(rows + apply(np.hstack(heads), f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        inner = apply(rows, f"{at}intermediate.dense")
        inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        rows = norm(rows + apply(inner, f"{at}output.dense"), f"{at}output.LayerNorm")
    return rows


@pytest.mark.parametrize("step", [None, 1, 4, 6, 16])
def test_vectors_are_those_of_bert(folder: Path, step: int | None) -> None:
    files = find_encoder(folder)
    layers = Transformer(files, files.read_weights())
    layers.step = step or layers.step
    pieces = [np.array([2, *([4 + at % 19 for at in range(many)]), 3]) for many in (0, 1, 1, 5, 5, 5, 9, 60, 60, 62, 7)]
    found = layers.forward(pieces)
    assert [len(rows) for rows in found] == list(map(len, pieces))
    for rows, ids in zip(found, pieces, strict=True):
        np.testing.assert_allclose(rows, naive_vectors(folder, ids.tolist()), atol=2e-5)
    seconds = [at % 3 for at in range(len(pieces))]
    for rows, ids, second in zip(layers.forward(pieces, seconds), pieces, seconds, strict=True):
        np.testing.assert_allclose(rows, naive_vectors(folder, ids.tolist(), second), atol=2e-5)
    kept = [np.arange(len(ids))[:: at % 3 + 1] for at, ids in enumerate(pieces)]
    for rows, ids, own in zip(layers.forward(pieces, None, kept), pieces, kept, strict=True):
        np.testing.assert_allclose(rows, naive_vectors(folder, ids.tolist())[own], atol=2e-5)


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
@pytest.mark.parametrize("normalized", [True, False])
def test_vectors_of_texts_are_pooled(pooling: str, normalized: bool, tmp_path: Path) -> None:
    encoder = Encoder(find_encoder(write_encoder(tmp_path / "tiny", pooling=pooling, normalized=normalized)))
    texts = ["the cat sat", "", "hello"]
    ids = [[2, 4, 5, 6, 3], [2, 3], [2, 11, 3]]
    assert [each.tolist() for each in encoder.split_pieces(texts)] == ids
    rows = [naive_vectors(tmp_path / "tiny", each) for each in ids]
    expected = np.array([each[0] if pooling == "cls_token" else each.mean(axis=0) for each in rows])
    if normalized:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(encoder.encode(texts), expected, atol=2e-5)
    for found, each in zip(encoder.encode_tokens(texts), rows, strict=True):
        np.testing.assert_allclose(found, each, atol=2e-5)


def test_of_a_long_text_the_beginning_or_the_end_counts(folder: Path) -> None:
    encoder = Encoder(find_encoder(folder), 6)
    long, start, end = "the cat sat on a mat", "the cat sat on", "sat on a mat"
    np.testing.assert_array_equal(encoder.encode([long]), encoder.encode([start]))
    np.testing.assert_array_equal(encoder.encode([long], ends=True), encoder.encode([end]))
    assert encoder.digest != Encoder(find_encoder(folder), 7).digest
    with pytest.raises(SettingError, match="takes 3 to 64 tokens"):
        Encoder(find_encoder(folder), 65)
