"""The data pack `lsdscc`: made of a local copy, used where no file of reference groups is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.io.packs import add_pack
from dialeval.lsdscc import ReferenceSet
from dialeval.suites.lsdscc import data
from local_site import Site, serving

pytestmark = pytest.mark.usefixtures("cache")

GROUPS = {"why ?": {"2": ["because"], "1": ["no idea", "who knows"]}}
CONTENT = json.dumps(GROUPS).encode()


def test_references_without_a_path_are_those_of_the_pack(tmp_path: Path) -> None:
    how = "dialeval data add lsdscc --from FILE, where FILE is lsdscc/data/test.group.json of https://github.com/"
    for ask in (ReferenceSet.load_json_corpus, data.find_reference_groups, lambda: add_pack("lsdscc")):
        with pytest.raises(SettingError) as caught:
            ask()
        assert how in str(caught.value)
    (tmp_path / "mine.json").write_bytes(CONTENT)
    add_pack("lsdscc", from_folder=tmp_path / "mine.json")
    assert ReferenceSet.load_json_corpus() == ReferenceSet.load_json_corpus(tmp_path / "mine.json")
    assert [groups.query for groups in ReferenceSet.load_json_corpus()] == ["why ?"]


def test_what_is_not_reference_groups_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"why ?": 5}')
    for source, what in (("bad.json", "has a number"), ("nowhere.json", "no such file"), (".", "is a folder")):
        with pytest.raises(DataError, match=what):
            add_pack("lsdscc", from_folder=tmp_path / source)
    with pytest.raises(SettingError, match="not installed"):
        data.find_reference_groups()


def test_an_address_of_ones_own() -> None:
    with serving(Site(CONTENT)) as site:
        pack = add_pack("lsdscc", site.address)
    assert list(pack.files) == [data.FILE]
    assert data.find_reference_groups().read_bytes() == CONTENT
