"""Files of resources that were changed by hand: each is refused where it is wrong, in a problem that names it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.core.errors import DataError
from dialeval.io.packs import find_pack
from dialeval.io.schemas import check_inside
from dialeval.judges import adem
from dialeval.judges.adem import AdemWeights
from dialeval.metrics.encoder import Encoder
from dialeval.metrics.encoder_files import find_encoder
from tiny_encoder import write_encoder

pytestmark = pytest.mark.usefixtures("cache")


def changed(path: Path, **fields: Any) -> None:
    document = json.loads(path.read_text())
    for name, value in fields.items():
        if value is KeyError:
            document.pop(name)
        else:
            document[name] = value
    path.write_text(json.dumps(document))


def use(folder: Path) -> None:
    made = Encoder(find_encoder(folder))
    assert made.digest
    assert made.encode(["the cat sat", "zebra", ""]).shape == (3, made.dimension)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"num_attention_heads": KeyError}, "missing required field num_attention_heads"),
        ({"num_attention_heads": 3}, "8 numbers cannot be shared by 3 heads"),
        ({"num_attention_heads": 0}, "num_attention_heads: expected int >= 1"),
        ({"hidden_size": "8"}, "hidden_size: expected int, got str"),
        ({"hidden_size": 10**12}, "hidden_size: expected int <= 16777216"),
        ({"hidden_size": 6}, "has the shape"),
        ({"intermediate_size": 15}, "intermediate.dense.weight has the shape (16, 8), not 15 x 8"),
        ({"vocab_size": 24}, "word_embeddings.weight has the shape (25, 8), not 24 x 8"),
        ({"max_position_embeddings": [1]}, "max_position_embeddings: expected int, got array"),
        ({"layer_norm_eps": -1}, "layer_norm_eps: expected float >= 1e-15"),
        ({"num_hidden_layers": 3}, "holds no encoder.layer.2"),
    ],
)
def test_shapes_of_transformers(tmp_path: Path, fields: dict[str, Any], what: str) -> None:
    use(write_encoder(tmp_path))
    changed(tmp_path / "config.json", **fields)
    with pytest.raises(DataError) as info:
        use(tmp_path)
    [problem] = info.value.problems
    assert what in problem.what
    assert Path(problem.where).parent == tmp_path


@pytest.mark.parametrize(
    ("modules", "what"),
    [
        ([{"path": ""}], "missing required field type"),
        ({"type": "x"}, "expected array, got object"),
        ([{"type": "Transformer", "path": "/etc"}], "is not a path inside the folder"),
        ([{"type": "Transformer", "path": "a/../../b"}], "is not a path inside the folder"),
        ([{"type": "Transformer", "path": 7}], "path: expected str"),
    ],
)
def test_modules_of_encoders(tmp_path: Path, modules: Any, what: str) -> None:
    write_encoder(tmp_path)
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(DataError, match=r"modules\.json") as info:
        use(tmp_path)
    assert what in str(info.value)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda tokenizer: tokenizer.update(model=7), "is not a working tokenizer"),
        (lambda tokenizer: tokenizer["model"].update(unk_token="[GONE]"), "is not a working tokenizer"),
        (lambda tokenizer: tokenizer["model"]["vocab"].update(cat=99), "has pieces beyond the 25 of the weights"),
        (lambda tokenizer: tokenizer.update(post_processor=None), "makes no piece of some texts"),
    ],
)
def test_tokenizers(tmp_path: Path, change: Callable[[Any], None], what: str) -> None:
    file = write_encoder(tmp_path) / "tokenizer.json"
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    with pytest.raises(DataError, match=rf"tokenizer\.json: {what}"):
        use(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "modules.json", "tokenizer.json", "model.safetensors"])
def test_pipes_in_encoders_are_not_opened(tmp_path: Path, name: str) -> None:
    write_encoder(tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=r"is not a regular file|holds no modules\.json"):
        use(tmp_path)


def saved_judge(folder: Path, **tensors: Any) -> Path:
    dice = np.random.default_rng(0)
    sides = ("context_left", "context_right", "reference_left", "reference_right")
    given = {**{side: dice.normal(size=(4, 2)) for side in sides}, "response": dice.normal(size=4), **tensors}
    scale = dict.fromkeys(("both", "context", "reference"), (0.5, 1.0))
    return AdemWeights("adem", 1.0, **given, calibration=scale, encoder="minilm", tokens=9).save(folder)


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"identity": "1"}, "identity: expected float"),
        ({"turns": 0}, "turns: expected int >= 1"),
        ({"calibration": {}}, "missing required field both"),
        ({"calibration": {"both": [1, 2], "context": [1, 2], "reference": [1, 0]}}, "a beta is 0"),
        ({"encoder": None}, "encoder: expected object"),
        ({"sha256": KeyError}, "missing required field sha256"),
        ({"format": 7}, "was saved in layout 7"),
    ],
)
def test_documents_of_judges(tmp_path: Path, fields: dict[str, Any], what: str) -> None:
    assert adem.load_adem(saved_judge(tmp_path)).turns == 3
    changed(tmp_path / "judge.json", **fields)
    with pytest.raises(DataError) as info:
        adem.load_adem(tmp_path)
    assert what in str(info.value)


@pytest.mark.parametrize(
    ("tensors", "what"),
    [
        ({"context_left": np.ones((3, 2))}, r"context_left has the shape \(3, 2\), not 4 x any"),
        ({"context_left": np.ones((4, 1))}, "context_left and context_right have different shapes"),
        ({"response": np.ones((4, 1))}, "response has the shape"),
        ({"response": np.array([1, 2, np.inf, 4])}, "response holds numbers that are not finite"),
    ],
)
def test_tensors_of_judges(tmp_path: Path, tensors: dict[str, Any], what: str) -> None:
    folder = saved_judge(tmp_path, **tensors)
    with pytest.raises(DataError, match=rf"judge\.safetensors: .*{what}"):
        adem.load_adem(folder)


def test_manifests_of_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path))
    folder = tmp_path / "packs" / "lsdscc" / "test"
    folder.mkdir(parents=True)
    facts = {"sha256": hashlib.sha256(b"").hexdigest(), "size": 0}
    manifest = {"name": "lsdscc", "version": "test", "origin": "here", "files": {"a/b.json": facts}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert find_pack("lsdscc") is not None
    for field, value in {"name": "glove-6b", "version": "../../..", "origin": 7, "files": {"../x": facts}}.items():
        (folder / "manifest.json").write_text(json.dumps({**manifest, field: value}))
        assert find_pack("lsdscc") is None, field
    for size in (1e400, -1, "1", None):
        (folder / "manifest.json").write_text(json.dumps({**manifest, "files": {"x": {**facts, "size": size}}}))
        assert find_pack("lsdscc") is None, size
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    assert find_pack("lsdscc") is None


@pytest.mark.parametrize("name", ["/x", "..", "a/../b", "a\\b", "c:x", "x\0"])
def test_paths_that_leave_their_folder(name: str) -> None:
    check_inside("a/b.json")
    check_inside("")
    with pytest.raises(ValueError, match="not a path inside"):
        check_inside(name)
