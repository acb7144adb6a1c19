"""The database of a rating server."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from dialeval.core.errors import DataError, SettingError
from dialeval.human.merge import merge_ratings
from dialeval.human.store import Rating, RatingStore, read_stored_lines

IDS = [f"r{n}" for n in range(31)]


def opened(tmp_path: Path, digest: str = "d") -> RatingStore:
    return RatingStore(tmp_path / "ratings.sqlite", digest)


def test_rows_are_dealt_evenly_and_mixed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.add_raters(["ann", "bob", "cy", "dee"])
    store.assign(IDS, 2, seed=1)
    dealt = {name: store.read_assigned(name) for name in store.read_raters()}
    assert Counter(identity for own in dealt.values() for identity in own) == dict.fromkeys(IDS, 2)
    assert {len(own) for own in dealt.values()} == {15, 16}
    met = {(one, other) for one in dealt for other in dealt if one < other and dealt[one] & dealt[other]}
    assert len(met) == 6
    store.close()


def test_dealing_again_only_adds(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.add_raters(["ann", "bob"])
    store.assign(IDS, 1, seed=1)
    before = {name: store.read_assigned(name) for name in store.read_raters()}
    secrets = store.read_raters()
    store.close()
    store = opened(tmp_path)
    store.add_raters(["ann", "cy"])
    store.assign(IDS, None, seed=2)
    assert {name: store.read_assigned(name) for name in before} == before
    assert store.read_assigned("cy") == set()
    store.assign(IDS, 2, seed=1)
    assert all(store.read_assigned(name) >= before[name] for name in before)
    # Who came later gets more, until all have the same.
    assert sorted(len(store.read_assigned(name)) for name in store.read_raters()) == [20, 21, 21]
    assert {name: secret for name, secret in store.read_raters().items() if name != "cy"} == secrets
    assert len(set(store.read_raters().values())) == 3
    assert {len(secret) for secret in (*store.read_raters().values(), store.read_lead_secret())} == {32}
    with pytest.raises(SettingError, match=r"^each row is to have 4 raters, and there are 3$"):
        store.assign(IDS, 4, seed=1)
    store.close()


def test_a_rating_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.add_raters(["ann", "bob"])
    store.assign(IDS, None, seed=1)
    for value in (1, 2):
        store.save("ann", Rating(id="r1", scores={"overall": value}))
    store.save("ann", Rating(id="r1", scores={"overall": 5}, again=True))
    store.save("bob", Rating(id="r1", rater="ann", scores={"overall": 4}))
    assert [line["scores"]["overall"] for line in store.read_lines("ann")] == [2, 5]
    assert store.count_ratings() == {"ann": (1, 31), "bob": (1, 31)}
    read = list(read_stored_lines(store.path))  # while it is open
    assert [(number, line["rater"]) for number, line in read] == [(1, "ann"), (2, "ann"), (3, "bob")]
    assert len(merge_ratings([store.path]).lines) == 2
    store.close()


def test_the_file_is_its_owners_and_safe_at_any_end(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    names = ("journal_mode", "synchronous", "trusted_schema", "busy_timeout")
    assert [store._select(f"PRAGMA {name}")[0][0] for name in names] == ["delete", 3, 0, 5000]
    assert dict(store._select("SELECT * FROM about")) == {"format": "1", "digest": "d"}
    store.close()


def test_a_copy_of_the_file_alone_has_every_rating(tmp_path: Path) -> None:
    store = rated(tmp_path, 0)
    copy = tmp_path / "copy.sqlite"
    for number, identity in enumerate(IDS, 1):
        store.save("ann", Rating(id=identity, scores={"overall": 3}))
        assert [path.name for path in tmp_path.iterdir() if path != copy] == ["ratings.sqlite"]
        shutil.copyfile(store.path, copy)
        assert len(list(read_stored_lines(copy))) == number
    store.close()


def rated(tmp_path: Path, number: int = 5) -> RatingStore:
    store = opened(tmp_path)
    store.add_raters(["ann", "bob"])
    store.assign(IDS, None, seed=1)
    for identity in IDS[:number]:
        store.save("ann", Rating(id=identity, scores={"overall": 3}))
    return store


def test_ratings_of_another_sample_are_refused(tmp_path: Path) -> None:
    opened(tmp_path).close()
    with pytest.raises(DataError, match="another sample"):
        opened(tmp_path, "other")
    opened(tmp_path).close()


@pytest.mark.parametrize("kind", ["rubbish", "empty", "folder"])
def test_what_is_no_database_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ratings.sqlite"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"SQLite format 3\0" + b"x" * 4000 if kind == "rubbish" else b"")
    with pytest.raises(DataError, match=r"ratings\.sqlite"):
        list(read_stored_lines(path))
    if kind != "empty":
        with pytest.raises(DataError, match=r"ratings\.sqlite"):
            opened(tmp_path)


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_database_of_others_is_not_touched(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "ratings.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("CREATE TABLE ratings (line)")
        connection.commit()
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    for read in (lambda: opened(tmp_path), lambda: list(read_stored_lines(path))):
        with pytest.raises(DataError, match="is not a database of ratings"):
            read()
        assert (path.read_bytes(), path.stat().st_mtime_ns) == before
        assert list(tmp_path.iterdir()) == [path]


TAMPERED = {
    "a view": ["DROP TABLE ratings", "CREATE VIEW ratings AS SELECT 1 AS line, 1 AS rowid"],
    "a trigger": ["CREATE TRIGGER t AFTER INSERT ON ratings BEGIN DELETE FROM ratings; END"],
    "another table": ["CREATE TABLE more (x)"],
    "no table": ["DROP TABLE dealt"],
    "no digest": ["DELETE FROM about WHERE name = 'digest'"],
    "a digest of bytes": ["UPDATE about SET value = x'00ff' WHERE name = 'digest'"],
    "another layout": ["UPDATE about SET value = '2' WHERE name = 'format'"],
    "a setting more": ["INSERT INTO about VALUES ('x', 'y')"],
    "a name of a setting that is no text": ["INSERT INTO about VALUES (x'ff', 'y')"],
    "a superscript for a number": ["UPDATE about SET value = '²' WHERE name = 'per_row'"],
    "a number of 5,000 digits": [f"UPDATE about SET value = '{'9' * 5000}' WHERE name = 'per_row'"],
    "a port that is none": ["INSERT INTO about VALUES ('port', '-1')"],
    "a rater of bytes": ["UPDATE raters SET name = x'ff' WHERE name = 'bob'"],
    "a rater without a name": ["UPDATE raters SET name = '' WHERE name = 'bob'"],
    "a long name": [f"UPDATE raters SET name = '{'b' * 65}' WHERE name = 'bob'"],
    "text that is not UTF-8": ["UPDATE raters SET name = CAST(x'ff' AS TEXT) WHERE name = 'bob'"],
    "a secret of bytes": ["UPDATE raters SET secret = x'ff' WHERE name = 'bob'"],
    "an empty secret": ["UPDATE raters SET secret = '' WHERE name = 'bob'"],
    "a secret with a slash": ["UPDATE raters SET secret = '/aaaaaaaaaaaaaaaaaaaaaaa' WHERE name = 'bob'"],
    "an assigned row of bytes": ["UPDATE dealt SET id = x'ff' WHERE id = 'r7'"],
    "a line of bytes": ["UPDATE ratings SET line = x'ff'"],
    "a line that is no JSON": ["UPDATE ratings SET line = '{'"],
    "a line that is a list": ["UPDATE ratings SET line = '[]'"],
    "a line that is a number": ["UPDATE ratings SET line = 1.5"],
    "a deep line": [f"UPDATE ratings SET line = '{'[' * 100_000}'"],
    "a line with NaN": ["UPDATE ratings SET line = replace(line, ':3', ':NaN')"],
    "a line with more": ["UPDATE ratings SET line = replace(line, '}}', '},\"x\":1}')"],
    "a line of another rater": ["UPDATE ratings SET line = replace(line, 'ann', 'bob')"],
    "a line of another row": ["UPDATE ratings SET line = replace(line, 'r1', 'r9')"],
    "a rating that is neither the first nor the second": ["UPDATE ratings SET again = 2"],
    "a rating for the second time": ["UPDATE ratings SET again = 1 WHERE id = 'r1'"],
    "a rating of text": ["UPDATE ratings SET again = 'x'"],
    "a rating of a row that was not assigned": ["DELETE FROM dealt WHERE id = 'r1'"],
    "a rating of nobody": ["DELETE FROM raters WHERE name = 'ann'"],
}


@pytest.mark.parametrize("statements", TAMPERED.values(), ids=TAMPERED)
def test_a_tampered_database_is_refused(tmp_path: Path, statements: list[str]) -> None:
    store = rated(tmp_path)
    store.close()
    with closing(sqlite3.connect(store.path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    before = store.path.read_bytes()
    with pytest.raises(DataError, match=r"ratings\.sqlite: "):
        opened(tmp_path)
    with pytest.raises(DataError, match=r"ratings\.sqlite: "):
        list(read_stored_lines(store.path))
    assert store.path.read_bytes() == before


def test_damaged_pages_are_refused(tmp_path: Path) -> None:
    """Whichever page is overwritten: a database is whole, or refused."""
    store = rated(tmp_path, 31)
    store.close()
    whole = store.path.read_bytes()
    size = 4096
    assert len(whole) >= 8 * size
    for page in range(1, len(whole) // size):
        store.path.write_bytes(whole[: page * size] + bytes(size) + whole[(page + 1) * size :])
        with pytest.raises(DataError, match=r"ratings\.sqlite: "):
            opened(tmp_path)
        store.path.write_bytes(whole[: page * size])
        with pytest.raises(DataError, match=r"ratings\.sqlite: "):
            list(read_stored_lines(store.path))


def test_a_locked_database_is_named_and_works_again(tmp_path: Path) -> None:
    store = rated(tmp_path, 2)
    store._select("PRAGMA busy_timeout=20")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN")
        other.execute("SELECT * FROM ratings").fetchone()  # a reader: the commit fails, in the middle of it
        with pytest.raises(DataError, match="another program uses it"):
            store.save("ann", Rating(id="r7", scores={"overall": 1}))
        other.execute("COMMIT")
        store.save("ann", Rating(id="r8", scores={"overall": 1}))
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DataError, match="another program uses it"):
            store.read_raters()
        other.execute("COMMIT")
    assert [line["id"] for _, line in read_stored_lines(store.path)] == ["r0", "r1", "r8"]
    store.close()


def test_a_full_disk_leaves_the_store_usable(tmp_path: Path) -> None:
    store = rated(tmp_path, 2)
    store._select("PRAGMA max_page_count=1")
    with pytest.raises(DataError, match="make room"):
        for identity in IDS * 10:
            store.save("ann", Rating(id=identity, scores={"overall": 1}, comment="x" * 2000))
    store._select("PRAGMA max_page_count=100000")
    store.save("ann", Rating(id="r30", scores={"overall": 4}))
    assert [line["scores"] for _, line in read_stored_lines(store.path) if line["id"] == "r30"] == [{"overall": 4.0}]
    store.close()


def test_the_port_is_remembered(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert store.port == 0
    store.port = 8017
    store.close()
    store = opened(tmp_path)
    assert store.port == 8017
    store.close()
