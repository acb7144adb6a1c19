from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.io.packs import add_pack, find_pack, remove_pack, verify_pack
from dialeval.io.vectors import load_embeddings
from local_site import Site, serving

pytestmark = pytest.mark.usefixtures("cache")

VECTORS = "2 3\nthe 1 2 3\nof 4 5 6\n"
FILE = "wiki-news-300d-1M.vec"


def zipped(members: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(zipped({FILE: VECTORS, "README": "x"}))) as site:
        yield site


def leftovers(cache: Path) -> list[str]:
    files = (path for path in cache.rglob("*") if path.is_file())
    return [path.name for path in files if "packs" not in path.parts or ".unfinished" in str(path)]


def test_add_list_verify_remove(site: Site, cache: Path) -> None:
    assert find_pack("fasttext-en") is None
    steps: list[tuple[int, int | None]] = []
    pack = add_pack("fasttext-en", site.address, progress=lambda *step: steps.append(step))
    assert steps[-1] == (len(site.content), len(site.content))
    assert pack.path == cache / "packs" / "fasttext-en" / "wiki-news-300d-1M"
    assert (pack.name, pack.version, list(pack.files), pack.size) == (
        "fasttext-en",
        "wiki-news-300d-1M",
        [FILE],
        len(VECTORS),
    )
    assert pack.files[FILE].sha256 == hashlib.sha256(VECTORS.encode()).hexdigest()
    manifest = json.loads((pack.path / "manifest.json").read_text())
    assert manifest["download_sha256"] == hashlib.sha256(site.content).hexdigest()
    assert leftovers(cache) == []
    assert find_pack("fasttext-en") == pack
    assert verify_pack("fasttext-en") == []
    assert load_embeddings("fasttext-en").vectors_for(["of"])[0].tolist() == [[4, 5, 6]]
    remove_pack("fasttext-en")
    assert find_pack("fasttext-en") is None
    assert not any(path.is_dir() for path in (cache / "vectors").iterdir())
    assert not (cache / "packs" / "fasttext-en").exists()


def test_installed_pack_is_not_fetched_again(site: Site) -> None:
    assert add_pack("fasttext-en", site.address) == add_pack("fasttext-en", site.address)
    assert len(site.asked) == 1


def test_digest_is_that_of_the_files(site: Site, tmp_path: Path, cache: Path) -> None:
    first = add_pack("fasttext-en", site.address).digest
    remove_pack("fasttext-en")
    (tmp_path / FILE).write_text(VECTORS)
    assert add_pack("fasttext-en", from_folder=tmp_path).digest == first
    remove_pack("fasttext-en")
    (tmp_path / FILE).write_text(VECTORS.replace("6", "7"))
    assert add_pack("fasttext-en", from_folder=tmp_path).digest != first


def test_from_a_folder_with_the_archive(tmp_path: Path) -> None:
    archive = zipped({FILE: VECTORS})  # with the time in it
    (tmp_path / f"{FILE}.zip").write_bytes(archive)
    pack = add_pack("fasttext-en", from_folder=tmp_path)
    assert (pack.path / FILE).read_text() == VECTORS
    manifest = json.loads((pack.path / "manifest.json").read_text())
    assert manifest["download_sha256"] == hashlib.sha256(archive).hexdigest()
    assert pack.origin == "local copy"


def test_from_a_folder_without_it(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(DataError, match=rf"does not hold {FILE}.*{FILE}\.zip"):
        add_pack("fasttext-en", from_folder=tmp_path)
    assert find_pack("fasttext-en") is None
    assert leftovers(cache) == []


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_verify_finds_damage(tmp_path: Path, damage: str) -> None:
    (tmp_path / FILE).write_text(VECTORS)
    file = add_pack("fasttext-en", from_folder=tmp_path).path / FILE
    content = bytearray(file.read_bytes())
    if damage == "flip":
        content[7] ^= 1
        file.write_bytes(content)
    elif damage == "cut":
        file.write_bytes(content[:-1])
    else:
        file.unlink()
    [problem] = verify_pack("fasttext-en")
    assert problem.where == str(file)
    assert "dialeval data add fasttext-en" in problem.remedy


def test_bad_archive_leaves_nothing(site: Site, cache: Path) -> None:
    good, site.content = site.content, zipped({FILE: VECTORS, "../evil": "x"})
    with pytest.raises(DataError, match="outside its folder"):
        add_pack("fasttext-en", site.address)
    assert find_pack("fasttext-en") is None
    assert leftovers(cache) == []
    site.content = good
    assert add_pack("fasttext-en", site.address).files


def test_broken_download_installs_nothing(site: Site) -> None:
    site.breaks = [20]
    with pytest.raises(DataError, match="run the same command again"):
        add_pack("fasttext-en", site.address)
    assert find_pack("fasttext-en") is None
    add_pack("fasttext-en", site.address)
    assert find_pack("fasttext-en") is not None


def test_unknown_names_and_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="did you mean 'fasttext-en'"):
        add_pack("fasttext_en", from_folder=tmp_path)
    with pytest.raises(SettingError, match="there are fasttext-en, glove-6b"):
        remove_pack("../../x")
    with pytest.raises(SettingError, match="is not installed"):
        verify_pack("glove-6b")
    with pytest.raises(SettingError, match="not both"):
        add_pack("glove-6b", "https://example.org/x", tmp_path)
    with pytest.raises(SettingError, match="https://"):
        add_pack("glove-6b", "file:///etc/passwd")


def test_a_folder_without_its_manifest_is_no_pack(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(VECTORS)
    pack = add_pack("fasttext-en", from_folder=tmp_path)
    (pack.path / "manifest.json").write_text("{")
    assert find_pack("fasttext-en") is None
    assert add_pack("fasttext-en", from_folder=tmp_path).digest == pack.digest
