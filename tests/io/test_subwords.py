from __future__ import annotations

import pickle
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import save_file

from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import SettingError
from dialeval.core.files import sha256_of
from dialeval.io import vectors as embeddings
from dialeval.io.vectors import Subwords, WordVectors, load_embeddings

pytestmark = pytest.mark.usefixtures("cache")


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "find_spec", lambda name: None)
    with pytest.raises(SettingError, match=r"dialeval\[vectors\]"):
        load_embeddings("wordllama")


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 99, (2).to_bytes(8, "little") + b"{}", (3).to_bytes(8, "little") + b"[1]" + bytes(9)]
)
def test_broken_table(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "l2_supercat_256.safetensors").write_bytes(content)
    with pytest.raises(SettingError, match="expected table"):
        Subwords(tmp_path)


def made_up(folder: Path, table: npt.NDArray[Any]) -> Path:
    """A folder like that of the package, with three markers and two pieces."""
    tokenizers = pytest.importorskip("tokenizers")
    (folder / "weights").mkdir()
    (folder / "tokenizers").mkdir()
    save_file({"embedding.weight": table}, folder / "weights" / "l2_supercat_256.safetensors")
    pieces = {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3, "b": 4}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(pieces, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    return folder


def test_pieces_of_a_small_table(tmp_path: Path) -> None:
    table = np.arange(10, dtype=np.float16).reshape(5, 2)
    vectors = Subwords(made_up(tmp_path, table))
    found, known = vectors.vectors_for(["a", "b a", "x", "", "x b", "a b b"])
    assert known.tolist() == [True, True, False, False, True, True]
    assert found.tolist() == [[6, 7], [7, 8], [0, 0], [0, 0], [8, 9], [22 / 3, 25 / 3]]
    assert (vectors.dimension, vectors.name) == (2, "wordllama")
    files = [
        tmp_path / "weights" / "l2_supercat_256.safetensors",
        tmp_path / "tokenizers" / "l2_supercat_tokenizer_config.json",
    ]
    assert vectors.digest == sha256_of(*files)[:DIGEST_LENGTH]
    assert pickle.loads(pickle.dumps(vectors)).digest == vectors.digest


@pytest.mark.parametrize("table", [np.ones(4, np.float16), np.ones((2, 2, 1), np.float16), np.ones((2, 2), np.float32)])
def test_tables_of_another_form_are_refused(tmp_path: Path, table: npt.NDArray[Any]) -> None:
    with pytest.raises(
        SettingError, match="does not hold the expected table; run: pip install --force-reinstall wordllama"
    ):
        Subwords(made_up(tmp_path, table))


@pytest.mark.parametrize("there", ["both", "weights", "tokenizers", "no library"])
def test_where_the_package_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str) -> None:
    made_up(tmp_path, np.ones((5, 2), np.float16))
    for name in ("weights", "tokenizers"):
        if there in ("weights", "tokenizers") and there != name:
            [file] = (tmp_path / name).iterdir()
            file.unlink()
    spec = ModuleSpec("wordllama", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "nothing"), str(tmp_path)]
    specs = {"wordllama": spec, "tokenizers": None if there == "no library" else spec}
    monkeypatch.setattr(embeddings, "find_spec", specs.get)
    if there == "both":
        assert load_embeddings("wordllama").dimension == 2
        return
    with pytest.raises(SettingError, match=r"^the package wordllama holds no vectors here; run: pip install"):
        load_embeddings("wordllama")


class TestInstalled:
    @pytest.fixture
    def vectors(self) -> WordVectors:
        pytest.importorskip("tokenizers", reason="needs the package wordllama: pip install wordllama")
        try:
            return load_embeddings("wordllama")
        except SettingError as error:
            pytest.skip(str(error))

    def test_every_word_is_known(self, vectors: WordVectors) -> None:
        found, known = vectors.vectors_for(["cat", "", "<unk>", "Donaudampfschiff", "知道", "👍"])
        assert (vectors.name, vectors.dimension, found.shape) == ("wordllama", 256, (6, 256))
        assert found.dtype == np.float64
        assert known.tolist() == [True, False, False, True, True, True]
        assert np.isfinite(found).all()
        assert found.any(axis=1).tolist() == known.tolist()

    def test_a_word_does_not_depend_on_its_neighbors(self, vectors: WordVectors) -> None:
        words = ["cat", "Donaudampfschiff", "", "good", "cat"]
        together = vectors.vectors_for(words)[0]
        alone = np.concatenate([vectors.vectors_for([word])[0] for word in words])
        assert together.tobytes() == alone.tobytes()
        assert vectors.vectors_for([])[0].shape == (0, 256)

    def test_mean_of_the_pieces(self, vectors: WordVectors) -> None:
        assert isinstance(vectors, Subwords)
        pieces = vectors._tokenizer.encode("Donaudampfschiff", add_special_tokens=False).ids
        expected = vectors._matrix[pieces].astype(np.float64).sum(axis=0) / len(pieces)
        assert len(pieces) > 1
        assert np.allclose(vectors.vectors_for(["Donaudampfschiff"])[0][0], expected, rtol=1e-15)

    def test_related_words_are_nearer(self, vectors: WordVectors) -> None:
        cat, dog, tax = vectors.vectors_for(["cat", "dog", "tax"])[0]

        def cosine(left: Floats, right: Floats) -> float:
            return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))

        assert cosine(cat, dog) > cosine(cat, tax)

    def test_pickled_as_a_place(self, vectors: WordVectors) -> None:
        pickled = pickle.dumps(vectors)
        assert len(pickled) < 1000
        assert pickle.loads(pickled).digest == vectors.digest
