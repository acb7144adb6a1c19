from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, SettingError
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
    with pytest.raises(DataError, match="pip install --force-reinstall wordllama"):
        Subwords(tmp_path)


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
