"""The encoder: its vectors do not depend on their neighbors, and of a long text the right end counts."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.errors import SettingError
from dialeval.metrics.encoder import TILE, TOGETHER, Encoder, Transformer, find_row_step, group_texts
from dialeval.metrics.encoder_files import find_encoder
from tiny_encoder import WORDS, write_encoder

pytestmark = pytest.mark.usefixtures("cache")

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


def test_rows_that_are_moved_by_a_step_have_the_same_products() -> None:
    dice = np.random.default_rng(3)
    weights = [dice.normal(size=shape).astype(np.float32) for shape in ((40, 120), (40, 40))]
    step = find_row_step(weights)
    assert TILE % step == 0
    rows = dice.normal(size=(TILE, 40)).astype(np.float32)
    for weight in weights:
        np.testing.assert_array_equal(np.roll(rows, step, axis=0) @ weight, np.roll(rows @ weight, step, axis=0))


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


def test_tokens_that_are_kept_have_the_vectors_that_they_have_among_all(folder: Path) -> None:
    files = find_encoder(folder)
    layers = Transformer(files, files.read_weights())
    pieces = [np.array([2, *range(4, 4 + many), 3]) for many in (1, 5, 5, 9)]
    kept = [np.array([0, len(ids) - 1]) for ids in pieces[:3]] + [np.array([0, 3, 4, 5])]
    whole = layers.forward(pieces, seconds=[1, 2, 3, 4])
    assert [len(rows) for rows in whole] == [3, 7, 7, 11]
    for rows, some, numbers in zip(whole, layers.forward(pieces, [1, 2, 3, 4], kept), kept, strict=True):
        np.testing.assert_allclose(some, rows[numbers], atol=1e-6)


def test_groups_are_filled_with_the_shortest_texts_first() -> None:
    half = TOGETHER // 2
    assert list(group_texts([half, 1, TOGETHER + 5, half - 1, 1])) == [[1, 4, 3], [0], [2]]
    assert list(group_texts([])) == []


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
