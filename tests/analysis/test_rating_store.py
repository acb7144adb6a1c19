"""The database of a rating server."""

from __future__ import annotations

import sqlite3
import stat
from collections import Counter
from pathlib import Path

import pytest

from dialeval.analysis.merged_ratings import merge_ratings
from dialeval.analysis.rating_store import RatingStore, stored_lines
from dialeval.core.errors import DataError, SettingError

IDS = [f"r{n}" for n in range(31)]


def opened(tmp_path: Path, digest: str = "d") -> RatingStore:
    return RatingStore(tmp_path / "ratings.sqlite", digest)


def test_rows_are_dealt_evenly_and_mixed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.add_raters(["ann", "bob", "cy", "dee"])
    store.deal(IDS, 2, seed=1)
    dealt = {name: store.dealt(name) for name in store.raters()}
    assert Counter(identity for own in dealt.values() for identity in own) == dict.fromkeys(IDS, 2)
    assert {len(own) for own in dealt.values()} == {15, 16}
    met = {(one, other) for one in dealt for other in dealt if one < other and dealt[one] & dealt[other]}
    assert len(met) == 6
    store.close()


def test_dealing_again_only_adds(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.add_raters(["ann", "bob"])
    store.deal(IDS, 1, seed=1)
    before = {name: store.dealt(name) for name in store.raters()}
    secrets = store.raters()
    store.close()
    store = opened(tmp_path)
    store.add_raters(["ann", "cy"])
    store.deal(IDS, None, seed=2)
    assert {name: store.dealt(name) for name in before} == before
    assert store.dealt("cy") == set()
    store.deal(IDS, 2, seed=1)
    assert all(store.dealt(name) >= before[name] for name in before)
    assert sum(len(store.dealt(name)) for name in store.raters()) == 62
    assert {name: secret for name, secret in store.raters().items() if name != "cy"} == secrets
    assert len(set(store.raters().values())) == 3
    assert all(len(secret) >= 32 for secret in store.raters().values())
    with pytest.raises(SettingError, match="there are 3"):
        store.deal(IDS, 4, seed=1)
    store.close()


def test_a_rating_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.add_raters(["ann", "bob"])
    store.deal(IDS, None, seed=1)
    for value in (1, 2):
        store.save("ann", {"id": "r1", "scores": {"overall": value}})
    store.save("ann", {"id": "r1", "scores": {"overall": 5}, "again": True})
    store.save("bob", {"id": "r1", "rater": "ann", "scores": {"overall": 4}})
    assert [line["scores"]["overall"] for line in store.lines("ann")] == [2, 5]
    assert store.counts() == {"ann": (1, 31), "bob": (1, 31)}
    read = [line for _, line in stored_lines(store.path)]  # while it is open
    assert [line["rater"] for line in read] == ["ann", "ann", "bob"]  # type: ignore[index]
    assert len(merge_ratings([store.path]).lines) == 2
    store.close()


def test_the_file_is_its_owners_and_safe_at_any_end(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    pragmas = [store._all(f"PRAGMA {name}")[0][0] for name in ("journal_mode", "synchronous")]
    assert pragmas == ["wal", 2]
    store.close()


def test_ratings_of_another_sample_are_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(DataError, match="another sample"):
        opened(tmp_path, "other")
    opened(tmp_path).close()


@pytest.mark.parametrize("kind", ["rubbish", "empty", "other", "view", "trigger", "folder", "broken line"])
def test_what_is_no_database_of_ours_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ratings.sqlite"
    if kind == "folder":
        path.mkdir()
    elif kind in ("rubbish", "empty"):
        path.write_bytes(b"SQLite format 3\0" + b"x" * 4000 if kind == "rubbish" else b"")
    else:
        if kind != "other":
            opened(tmp_path).close()
        connection = sqlite3.connect(path)
        if kind == "other":
            connection.execute("CREATE TABLE ratings (line)")
        elif kind == "view":
            connection.execute("DROP TABLE ratings")
            connection.execute("CREATE VIEW ratings AS SELECT 1 AS line, 1 AS rowid")
        elif kind == "trigger":
            connection.execute("CREATE TRIGGER t AFTER INSERT ON ratings BEGIN DELETE FROM ratings; END")
        else:
            connection.execute("INSERT INTO ratings VALUES ('ann', 'r1', 0, '{')")
        connection.commit()
        connection.close()
    with pytest.raises(DataError, match=r"ratings\.sqlite"):
        list(stored_lines(path))
    if kind not in ("empty", "broken line"):
        with pytest.raises(DataError, match=r"ratings\.sqlite"):
            opened(tmp_path)
