"""Downloads against a server on this machine that breaks off, lies and changes its mind."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock

from dialeval.core.errors import DataError, SettingError
from dialeval.io import download as module
from dialeval.io.download import check_address, download
from local_site import Site, serving

pytestmark = pytest.mark.usefixtures("cache")

CONTENT = bytes(range(256)) * 2000


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(module, "WAITS", (0.0, 0.0, 0.0))
    with serving(Site(CONTENT)) as site:
        yield site


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "downloads" / "file"


def ranges(site: Site) -> list[str | None]:
    return [headers.get("range") for headers in site.asked]


def names(target: Path) -> list[str]:
    """The files next to a target; a lock stays there."""
    return sorted(path.name for path in target.parent.iterdir() if path.suffix != ".lock")


def test_whole(site: Site, target: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    download(site.address, target, hashlib.sha256(CONTENT).hexdigest(), lambda *step: steps.append(step))
    assert target.read_bytes() == CONTENT
    assert steps[-1] == (len(CONTENT), len(CONTENT))
    assert steps == sorted(steps)
    assert names(target) == ["file"]


def test_without_a_length(site: Site, target: Path) -> None:
    site.sends_length = False
    download(site.address, target)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("tag", ['"1"', None, 'W/"weak"'])
def test_goes_on_after_breaks(site: Site, target: Path, tag: str | None) -> None:
    site.etag, site.modified = tag, "Mon, 01 Jan 2024 00:00:00 GMT"
    site.breaks = [100_000, 50_000]
    download(site.address, target)
    assert target.read_bytes() == CONTENT
    assert ranges(site) == [None, "bytes=100000-", "bytes=150000-"]
    assert site.asked[1]["if-range"] == ('"1"' if tag == '"1"' else site.modified)


def test_starts_anew_where_nothing_identifies_the_file(site: Site, target: Path) -> None:
    site.etag = None
    site.breaks = [100_000]
    download(site.address, target)
    assert target.read_bytes() == CONTENT
    assert ranges(site) == [None, None]


def test_gives_up_and_the_next_call_goes_on(site: Site, target: Path) -> None:
    site.breaks = [1000] * 4
    with pytest.raises(DataError, match=r"failed 4 times.*run the same command again"):
        download(site.address, target)
    assert not target.exists()
    download(site.address, target)
    assert target.read_bytes() == CONTENT
    assert ranges(site)[-1] == "bytes=4000-"


def test_a_part_of_another_address_is_not_used(site: Site, target: Path) -> None:
    site.breaks = [1000] * 4
    with pytest.raises(DataError):
        download(site.address, target)
    download(site.address + "other", target)
    assert target.read_bytes() == CONTENT
    assert ranges(site)[-1] is None


def test_server_without_ranges(site: Site, target: Path) -> None:
    site.ranges = False
    site.breaks = [100_000]
    download(site.address, target)
    assert target.read_bytes() == CONTENT
    assert ranges(site) == [None, "bytes=100000-"]


def test_file_that_changes_between_tries(site: Site, target: Path) -> None:
    site.breaks = [100_000] * 4
    with pytest.raises(DataError):
        download(site.address, target)
    site.content, site.etag = CONTENT[::-1], '"2"'
    download(site.address, target)
    assert target.read_bytes() == CONTENT[::-1]


def test_file_that_shrinks_under_the_same_tag(site: Site, target: Path) -> None:
    site.breaks = [100_000] * 4
    with pytest.raises(DataError):
        download(site.address, target)
    site.content = CONTENT[:50_000]
    download(site.address, target)
    assert target.read_bytes() == CONTENT[:50_000]


def test_file_that_grows_under_the_same_tag(site: Site, target: Path) -> None:
    site.breaks = [100_000] * 4
    with pytest.raises(DataError):
        download(site.address, target)
    site.content = CONTENT[::-1] * 2
    download(site.address, target)
    assert target.read_bytes() == CONTENT[::-1] * 2


def test_another_range_than_asked_for(site: Site, target: Path) -> None:
    site.breaks = [100_000]
    site.skewed = True
    download(site.address, target)
    assert target.read_bytes() == CONTENT
    assert ranges(site) == [None, "bytes=100000-", None]


def test_wrong_length(site: Site, target: Path) -> None:
    site.etag, site.length = None, len(CONTENT) + 1
    with pytest.raises(DataError, match=f"{len(CONTENT)} of {len(CONTENT) + 1} bytes"):
        download(site.address, target)
    assert not target.exists()


def test_not_found_is_final(site: Site, target: Path) -> None:
    site.statuses = [404]
    with pytest.raises(DataError, match=r"404.*check the address"):
        download(site.address + "secret?token=abc", target)
    assert len(site.asked) == 1


def test_messages_keep_the_query_to_themselves(site: Site, target: Path) -> None:
    site.statuses = [404]
    with pytest.raises(DataError) as caught:
        download(site.address + "x?token=abc", target)
    assert "abc" not in str(caught.value)


def test_server_trouble_passes(site: Site, target: Path) -> None:
    site.statuses = [503, 429]
    download(site.address, target)
    assert target.read_bytes() == CONTENT


def test_full_disk(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "_copy", full)
    with pytest.raises(SettingError, match="make room"):
        download(site.address, target)


def test_nobody_answers(site: Site, target: Path) -> None:
    address = site.address.replace(site.address.rsplit(":", 1)[1], "9/")
    with pytest.raises(DataError, match="failed 4 times"):
        download(address, target)


def test_wrong_digest_is_thrown_away(site: Site, target: Path) -> None:
    with pytest.raises(DataError, match="SHA-256"):
        download(site.address, target, "0" * 64)
    assert names(target) == []


def test_a_finished_part_is_not_fetched_again(site: Site, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Path, other: Path) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda self, other: interrupted(self, other) if other == target else None)
        patch.setattr(module, "write_bytes", lambda path, content: path.write_bytes(content))
        with pytest.raises(KeyboardInterrupt):
            download(site.address, target)
    download(site.address, target)
    assert target.read_bytes() == CONTENT
    assert len(site.asked) == 1


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


def test_one_at_a_time(site: Site, target: Path) -> None:
    target.parent.mkdir()
    with FileLock(target.with_name("file.lock")), pytest.raises(DataError, match="another process"):
        download(site.address, target)
    download(site.address, target)


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
        with pytest.raises((DataError, SettingError), match=r"no address|cannot download from"):
            download(site.address, target)
    assert names(target) == []


def test_a_length_that_is_no_number_of_bytes(site: Site, target: Path) -> None:
    for length in (10**20, -1):
        site.length = length
        with pytest.raises(DataError, match=f"the server states a length of '{length}'"):
            download(site.address, target)
    assert names(target) == []


@pytest.mark.parametrize("name", ["file.part", "file.json", "file", "file.lock"])
def test_pipes_in_the_place_of_a_download_do_not_hold_it_up(site: Site, target: Path, name: str) -> None:
    target.parent.mkdir()
    os.mkfifo(target.with_name(name))
    download(site.address, target)
    assert target.read_bytes() == CONTENT
