"""`dialeval data` against a server on this machine."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from conftest import Dialeval
from local_site import Site, serving

VECTORS = "hello 1.0 0.0\nthere 0.5 0.5\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))


def archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        packed.writestr("wiki-news-300d-1M.vec", VECTORS)
    return content.getvalue()


def test_a_pack_is_added_listed_used_verified_and_removed(dialeval: Dialeval, tmp_path: Path) -> None:
    assert "fasttext-en   not installed" in dialeval("data", "list").stdout
    content = archive()
    with serving(Site(content, breaks=[len(content) // 2])) as site:
        added = dialeval("data", "add", "fasttext-en", "--address", f"{site.address}/vectors.zip")
    assert added.returncode == 0, added.stderr
    assert len(site.asked) == 2, "broken off half-way and started anew"
    folder = Path(added.stdout.strip())
    assert (folder / "wiki-news-300d-1M.vec").read_text() == VECTORS
    assert "fasttext-en   installed" in dialeval("data", "list").stdout

    (tmp_path / "a.txt").write_text("hello\n")
    (tmp_path / "b.txt").write_text("there\n")
    scored = dialeval(
        "score", "a.txt", "-r", "b.txt", "--vectors", "fasttext-en", "-m", "embedding-greedy", "-f", "csv"
    )
    assert scored.returncode == 0, scored.stderr
    assert "0.707" in scored.stdout

    assert dialeval("data", "verify", "fasttext-en").returncode == 0
    (folder / "wiki-news-300d-1M.vec").chmod(0o644)
    (folder / "wiki-news-300d-1M.vec").write_text(VECTORS.replace("1.0", "2.0"))
    broken = dialeval("data", "verify", "fasttext-en")
    assert broken.returncode == 2
    assert "wiki-news-300d-1M.vec" in broken.stdout
    assert dialeval("data", "remove", "fasttext-en").returncode == 0
    assert not folder.exists()


def test_an_installed_pack_is_replaced_by_force_only(dialeval: Dialeval, tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "wiki-news-300d-1M.vec").write_text(
            VECTORS if name == "old" else VECTORS.replace("1.0", "2.0")
        )
    place = Path(dialeval("data", "add", "fasttext-en", "--from", "old").stdout.strip()) / "wiki-news-300d-1M.vec"
    for source in ("new", "nowhere"):
        refused = dialeval("data", "add", "fasttext-en", "--from", source)
        assert (refused.returncode, "--force" in refused.stderr, place.read_text()) == (2, True, VECTORS)
    assert dialeval("data", "add", "fasttext-en", "--from", "nowhere", "--force").returncode == 2
    assert place.read_text() == VECTORS
    assert dialeval("data", "add", "fasttext-en", "--from", "new", "--force").returncode == 0
    assert "2.0" in place.read_text()
    assert dialeval("data", "verify", "fasttext-en").returncode == 0


def test_a_local_copy_will_do(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "wiki-news-300d-1M.vec").write_text(VECTORS)
    assert dialeval("data", "add", "fasttext-en", "--from", "mine").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "glove-6bb"], "did you mean 'glove-6b'?"),
        (["add", "glove-6b", "--address", "ftp://example.invalid/x"], "http"),
        (["verify", "glove-6b"], "glove-6b"),
        (["remove", "glove-6b"], "glove-6b"),
    ],
)
def test_mistakes_are_one_clear_message(dialeval: Dialeval, arguments: list[str], message: str) -> None:
    done = dialeval("data", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
