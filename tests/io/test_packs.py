from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.files import sha256_of
from dialeval.core.fingerprint import short_digest
from dialeval.io import download as downloads
from dialeval.io import packs as module
from dialeval.io.packs import (
    PACK_SOURCES,
    PackSource,
    add_pack,
    find_pack,
    remove_pack,
    require_pack,
    source_of,
    verify_pack,
)
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
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(downloads, "WAITS", (0.0,))
    with serving(Site(zipped({FILE: VECTORS, "README": "x"}))) as site:
        yield site


def leftovers(cache: Path) -> list[str]:
    files = (path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock")
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


def test_address_from_the_environment(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_ADDRESS_FASTTEXT_EN", site.address)
    assert add_pack("fasttext-en").origin == site.address


def test_digest_is_that_of_the_files(site: Site, tmp_path: Path, cache: Path) -> None:
    first = add_pack("fasttext-en", site.address).digest
    remove_pack("fasttext-en")
    (tmp_path / FILE).write_text(VECTORS)
    assert add_pack("fasttext-en", from_folder=tmp_path).digest == first
    remove_pack("fasttext-en")
    (tmp_path / FILE).write_text(VECTORS.replace("6", "7"))
    assert add_pack("fasttext-en", from_folder=tmp_path).digest != first


def test_from_a_folder_with_the_archive(tmp_path: Path) -> None:
    (tmp_path / f"{FILE}.zip").write_bytes(zipped({FILE: VECTORS}))
    pack = add_pack("fasttext-en", from_folder=tmp_path)
    assert (pack.path / FILE).read_text() == VECTORS
    manifest = json.loads((pack.path / "manifest.json").read_text())
    assert manifest["download_sha256"] == hashlib.sha256(zipped({FILE: VECTORS})).hexdigest()
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
    site.breaks = [20, 30]
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


def test_sources_are_well_formed() -> None:
    for name, source in PACK_SOURCES.items():
        assert source.name == name
        if source.address is None:
            assert source.local
        else:
            assert downloads.check_address(source.address).startswith("https://")
        assert source.files


def test_the_manifest_of_a_pack(site: Site, tmp_path: Path) -> None:
    pack = add_pack("fasttext-en", f"{site.address}?token=1")
    source = PACK_SOURCES["fasttext-en"]
    text = (pack.path / "manifest.json").read_text()
    digest = hashlib.sha256(VECTORS.encode()).hexdigest()
    facts = {
        "name": "fasttext-en",
        "version": source.version,
        "license": source.license,
        "origin": site.address,
        "download_sha256": hashlib.sha256(site.content).hexdigest(),
        "files": {FILE: {"sha256": digest, "size": len(VECTORS)}},
    }
    assert text == json.dumps(facts, indent=2) + "\n"
    assert pack.digest == short_digest(f"{digest}  {FILE}\n")
    assert pack.remedy == "run: dialeval data remove fasttext-en, then: dialeval data add fasttext-en"
    assert (pack.origin, pack.size) == (site.address, len(VECTORS))
    (pack.path / "manifest.json").write_text(text.replace("fasttext-en", "other"))
    assert find_pack("fasttext-en") is None, "a manifest of another pack"


def test_files_of_a_pack_are_checked(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(VECTORS)
    pack = add_pack("fasttext-en", from_folder=tmp_path)
    assert pack.file(FILE) == pack.verify_file(FILE) == pack.path / FILE
    (pack.path / FILE).write_text(VECTORS.replace("6", "7"))
    changed = hashlib.sha256(VECTORS.replace("6", "7").encode()).hexdigest()
    [problem] = verify_pack("fasttext-en")
    assert problem.what == f"SHA-256 {changed} instead of {pack.files[FILE].sha256}"
    (pack.path / FILE).write_text(VECTORS[:-1])
    [problem] = verify_pack("fasttext-en")
    assert problem.what == f"{len(VECTORS) - 1} bytes instead of {len(VECTORS)}"
    (pack.path / FILE).unlink()
    (pack.path / FILE).symlink_to(tmp_path / FILE)
    [problem] = verify_pack("fasttext-en")
    assert problem.what == "no such file"


def test_archives_of_packs_have_a_limit(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    def download(*given: Any) -> None:
        asked.append(given[3])
        given[1].parent.mkdir(parents=True, exist_ok=True)
        given[1].write_bytes(b"x")

    def unpack(archive: Path, *given: Any) -> None:
        asked.append(given[2])
        archive.unlink()
        raise DataError(Problem("x", None, "is damaged", "get it again"))

    monkeypatch.setattr(downloads, "download", download)
    monkeypatch.setattr(downloads, "unpack", unpack)
    with pytest.raises(DataError, match="is damaged"):
        add_pack("fasttext-en", "https://example.org/x")
    (tmp_path / f"{FILE}.zip").write_bytes(b"x")
    with pytest.raises(DataError, match="is damaged"):
        add_pack("fasttext-en", from_folder=tmp_path)
    assert asked == [1 << 33] * 3


def test_another_process_may_take_the_archive_away(site: Site, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def digest(path: Path) -> str:
        found = sha256_of(path)
        if "downloads" in path.parts:
            path.unlink()
        return found

    monkeypatch.setattr(module, "sha256_of", digest)
    assert add_pack("fasttext-en", site.address).files


def test_an_archive_that_is_there_is_not_downloaded_again(site: Site, cache: Path) -> None:
    name = hashlib.sha256(site.address.encode()).hexdigest()[:16]
    (cache / "downloads").mkdir(parents=True)
    (cache / "downloads" / f"fasttext-en-{name}").write_bytes(site.content)
    assert add_pack("fasttext-en", site.address).files
    assert not site.asked


def test_words_about_packs() -> None:
    source = PackSource("a-b", "1", "title", "license", ["x"])
    assert (source.variable, source.command) == ("DIALEVAL_ADDRESS_A_B", "dialeval data add a-b")
    local = PackSource("a", "1", "title", "license", ["x"], local="the archive")
    assert local.command == "dialeval data add a --from FILE, where FILE is the archive"
    assert source_of("multiwoz-2.2").name == "multiwoz"
    with pytest.raises(
        SettingError, match=r"^the data pack glove-6b is not installed; run: dialeval data add glove-6b$"
    ):
        require_pack("glove-6b")
    without = next(name for name, each in PACK_SOURCES.items() if each.address is None)
    with pytest.raises(
        SettingError, match=f"^the data pack {without} has no address to download from; run: dialeval data"
    ):
        add_pack(without)
