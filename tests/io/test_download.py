"""Downloads against a server on this machine that breaks off, lies and changes its mind."""

from __future__ import annotations

import errno
import os
import urllib.request
from collections.abc import Iterator
from http.client import HTTPMessage, HTTPResponse
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.io import download as module
from dialeval.io.download import UntrustedArchive, check_address, download, unpacked_limit
from local_site import Site, serving

pytestmark = pytest.mark.usefixtures("cache")

CONTENT = bytes(range(256)) * 2000


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(CONTENT)) as site:
        yield site


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "downloads" / "file"


def names(target: Path) -> list[str]:
    """The files next to a target."""
    return sorted(path.name for path in target.parent.iterdir())


def test_messages_keep_the_query_to_themselves(site: Site, target: Path) -> None:
    site.statuses = [404]
    with pytest.raises(DataError) as caught:
        download(site.address + "x?token=abc", target)
    assert "abc" not in str(caught.value)


def test_full_disk(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(HTTPResponse, "read", full)
    with pytest.raises(SettingError, match="make room"):
        download(site.address, target)


def test_nobody_answers(site: Site, target: Path) -> None:
    address = site.address.replace(site.address.rsplit(":", 1)[1], "9/")
    with pytest.raises(DataError, match=r"cannot be downloaded .*run the same command again later"):
        download(address, target)


def test_redirections(site: Site, target: Path) -> None:
    site.redirect = site.address + "target"
    download(site.address, target)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("elsewhere", ["file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_redirections_lead_nowhere_else(site: Site, target: Path, elsewhere: str) -> None:
    site.redirect = elsewhere
    with pytest.raises((SettingError, DataError)):
        download(site.address, target)
    assert not target.exists()
    assert len(site.asked) == 1


@pytest.mark.parametrize(
    "address",
    ["file:///etc/passwd", "ftp://example.org/x", "example.org", "", "https:///x", "https://u:p@example.org/x"],
)
def test_addresses_that_are_refused(address: str, target: Path) -> None:
    with pytest.raises(SettingError):
        check_address(address)
    with pytest.raises(SettingError):
        download(address, target)


def test_a_download_without_an_end_is_given_up(site: Site, target: Path) -> None:
    site.sends_length = False
    with pytest.raises(DataError, match="is longer than the 100,000 bytes that it may have"):
        download(site.address, target, most_bytes=100_000)
    assert names(target) == []
    site.sends_length = True
    with pytest.raises(DataError, match="is longer than"):
        download(site.address, target, most_bytes=len(CONTENT) - 1)
    assert names(target) == []
    download(site.address, target, most_bytes=len(CONTENT))


def test_a_redirection_to_what_is_no_address_is_refused(site: Site, target: Path) -> None:
    for leads_to in ("http://[::1", "http://[bad]/x", "http://localhost:123456/"):
        site.redirect = leads_to
        with pytest.raises((DataError, SettingError), match=r"invalid address|cannot download from"):
            download(site.address, target)
    assert names(target) == []


def test_a_length_that_cannot_be(site: Site, target: Path) -> None:
    site.length = 10**20
    with pytest.raises(DataError, match="is longer than"):
        download(site.address, target)
    assert names(target) == []


def test_pipes_in_the_place_of_a_download_do_not_hold_it_up(site: Site, target: Path) -> None:
    target.parent.mkdir()
    os.mkfifo(target)
    download(site.address, target)
    assert target.read_bytes() == CONTENT


def test_limits_of_archives() -> None:
    assert unpacked_limit(10, 1 << 40) == 1 << 20
    assert unpacked_limit(1 << 20, 1 << 40) == 200 << 20
    assert unpacked_limit(1 << 20, 5) == 5


@pytest.mark.parametrize(
    ("before", "after", "followed"),
    [
        ("https://a.org/x", "https://b.org/y", True),
        ("https://a.org/x?token=1", "http://b.org/y", False),
        ("http://a.org/x", "http://b.org/y", True),
        ("http://a.org/x", "https://b.org/y", True),
    ],
)
def test_redirections_stay_encrypted(before: str, after: str, followed: bool) -> None:
    def redirect() -> Any:
        request = urllib.request.Request(before)
        return module._Redirects().redirect_request(request, BytesIO(), 302, "Found", HTTPMessage(), after)

    if followed:
        assert redirect().full_url == after
        return
    with pytest.raises(SettingError, match=r"^https://a.org/x leads to an address without encryption"):
        redirect()


def test_what_is_damage_and_what_is_not() -> None:
    archive = UntrustedArchive("x", "get it again")
    for error in (OSError("odd"), OSError(errno.EINVAL, "odd"), ValueError("odd"), EOFError("odd")):
        with (
            pytest.raises(DataError, match=r"x: the archive is damaged: .*odd; get it again"),
            archive.explain_damage(),
        ):
            raise error
    with pytest.raises(OSError, match="full"), archive.explain_damage():
        raise OSError(errno.ENOSPC, "full")
