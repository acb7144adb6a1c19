from __future__ import annotations

import errno
import gzip
import multiprocessing
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.core.errors import DataError, SettingError
from dialeval.io import packs
from dialeval.io import vectors as vectorstore
from dialeval.io.vectors import Embeddings, WordVectors, load_embeddings

pytestmark = pytest.mark.usefixtures("cache")

TEXT = "the 0.1 0.2\nof 3 4\nthe 0.5 0.6\nzero 0 0\n"


def load(path: Path) -> Embeddings:
    loaded = load_embeddings(path)
    assert isinstance(loaded, Embeddings)
    return loaded


def write(path: Path, content: str) -> Path:
    path.write_text(content, "utf-8")
    return path


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is forced to the disk: there are many small entries here."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The sources that were parsed."""
    seen: list[Path] = []
    write_entry = vectorstore._write_entry

    def counted(folder: Path, path: Path) -> None:
        seen.append(path)
        write_entry(folder, path)

    monkeypatch.setattr(vectorstore, "_write_entry", counted)
    return seen


def test_the_later_line_wins(tmp_path: Path) -> None:
    vectors = load(write(tmp_path / "v.txt", TEXT))
    assert (len(vectors), vectors.dimension, vectors.name) == (3, 2, "v.txt")
    assert vectors.words() == ["the", "of", "zero"]
    found, known = vectors.vectors_for(["the", "no", "zero", "of", "the"])
    assert found.dtype == np.float64
    assert found.tolist() == [[0.5, 0.6], [0, 0], [0, 0], [3, 4], [0.5, 0.6]]
    assert known.tolist() == [True, False, True, True, True]
    assert "the" in vectors
    assert "no" not in vectors
    assert 3 not in vectors


WORD = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=4)


@given(
    rows=st.lists(st.tuples(WORD, st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=20),
    asked=st.lists(WORD, max_size=9),
)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_equals_a_dictionary(tmp_path: Path, rows: list[tuple[str, float, float]], asked: list[str]) -> None:
    path = tmp_path / "v.txt"
    path.write_text(f"{len(rows)} 2\n" + "".join(f"{word} {x!r} {y!r}\n" for word, x, y in rows), "utf-8", newline="")
    twin = {word: [x, y] for word, x, y in rows}
    asked = asked + [word for word, _, _ in rows]
    found, known = load(path).vectors_for(asked)
    assert known.tolist() == [word in twin for word in asked]
    assert found.tolist() == [twin.get(word, [0, 0]) for word in asked]


def test_a_source_that_changed_is_noticed_whatever_its_size_and_time(tmp_path: Path, parses: list[Path]) -> None:
    path = write(tmp_path / "v.txt", TEXT)
    times = path.stat().st_mtime_ns
    load(path)
    load(path)
    assert len(parses) == 1
    write(path, TEXT.replace("0.6", "0.7"))
    os.utime(path, ns=(times, times))
    assert load(path).vectors_for(["the"])[0].tolist() == [[0.5, 0.7]]
    assert len(parses) == 2


PARTS = ("entry.json", "rows.bin", "words.json")
DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": lambda part: part.unlink(),
    "a folder": lambda part: [part.unlink(), part.mkdir()],  # type: ignore[func-returns-value]
    "emptied": lambda part: part.write_bytes(b""),
    "cut": lambda part: part.write_bytes(part.read_bytes()[:-5]),
    "zeroed": lambda part: part.write_bytes(bytes(part.stat().st_size)),
    "end zeroed": lambda part: part.write_bytes(part.read_bytes()[:-24] + bytes(24)),
    "garbage": lambda part: part.write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': [(" + bytes(part.stat().st_size)),
    "a bit": lambda part: part.write_bytes(part.read_bytes()[:-9] + b"7" + part.read_bytes()[-8:]),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", PARTS)
def test_a_damaged_entry_is_made_anew(
    tmp_path: Path,
    cache: Path,
    parses: list[Path],
    caplog: pytest.LogCaptureFixture,
    name: str,
    damage: str,
) -> None:
    path = write(tmp_path / "v.txt", TEXT)
    words = ["of", "zero", "the", "no"]
    expected, _ = load(path).vectors_for(words)
    [part] = cache.glob(f"vectors/*/{name}")
    DAMAGES[damage](part)
    found, _ = load(path).vectors_for(words)
    assert found.tolist() == expected.tolist()
    assert len(parses) == 2
    (line,) = caplog.messages
    assert line.startswith("v.txt: its entry in the cache is damaged")
    assert load(path).vectors_for(words)[0].tolist() == expected.tolist()
    assert len(parses) == 2, "and now it is whole"


def test_damage_that_is_found_when_words_are_asked_for(tmp_path: Path, cache: Path, parses: list[Path]) -> None:
    path = write(tmp_path / "v.txt", TEXT)
    vectors = load(path)
    travelled = pickle.loads(pickle.dumps(vectors))
    [matrix] = cache.glob("vectors/*/rows.bin")
    with matrix.open("r+b") as file:
        file.write(bytes(48))
    assert vectors.vectors_for(["zero"])[0].tolist() == [[0, 0]], "a row that is whole"
    assert len(parses) == 1
    for each in (vectors, travelled, pickle.loads(pickle.dumps(vectors))):
        assert each.vectors_for(["of", "the"])[0].tolist() == [[3, 4], [0.5, 0.6]]
    write(path, TEXT.replace("3", "5"))
    with pytest.raises(DataError, match=r"SHA-256 .* instead of"):
        pickle.loads(pickle.dumps(vectors))


@pytest.mark.parametrize("there", [False, True])
def test_a_cache_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """Files stand where folders would have to be made: not even the superuser can write there."""
    path, vectors = write(tmp_path / "v.txt", TEXT), tmp_path / "cache" / "vectors"
    (vectors if there else vectors.parent).parent.mkdir(exist_ok=True)
    (vectors if there else vectors.parent).write_text("")
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    with pytest.raises(SettingError, match="set DIALEVAL_CACHE to another folder"):
        load(path)


def test_a_cache_that_may_only_be_read(
    tmp_path: Path, cache: Path, parses: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tempfile.TemporaryFile

    def refuse(*, dir: Path) -> object:  # noqa: A002
        if dir.is_relative_to(cache):
            raise PermissionError
        return make(dir=dir)

    path = write(tmp_path / "a.txt", TEXT)
    load(path)
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert load(path).words() == ["the", "of", "zero"]
    assert len(parses) == 1
    write(path, TEXT + "new 1 2\n")
    with pytest.raises(SettingError, match="set DIALEVAL_CACHE to another folder"):
        load(path)


def test_a_full_disk_is_not_blamed_on_the_source(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_folder: Path, _path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(vectorstore, "_write_entry", full)
    with pytest.raises(SettingError, match="make room"):
        load(write(tmp_path / "v.txt", TEXT))
    assert list((cache / "vectors").iterdir()) == []


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "v.txt", TEXT)

    write_entry = vectorstore._write_entry

    def meddle(folder: Path, source: Path) -> None:
        write_entry(folder, source)
        write(path, TEXT + "more 1 2\n")

    monkeypatch.setattr(vectorstore, "_write_entry", meddle)
    with pytest.raises(DataError, match="changed while"):
        load(path)


def test_digest_is_that_of_the_content(tmp_path: Path) -> None:
    text = load(write(tmp_path / "v.txt", TEXT)).digest
    (tmp_path / "v.vec.gz").write_bytes(gzip.compress(b"4 2\n" + TEXT.replace(" ", "\t").encode()))
    assert load(tmp_path / "v.vec.gz").digest == text
    assert load(write(tmp_path / "x.txt", TEXT.replace("0.6", "0.7"))).digest != text
    assert load(write(tmp_path / "y.txt", TEXT.replace("zero", "null"))).digest != text


def test_an_odd_line_changes_no_digest_and_its_warning_stays(tmp_path: Path, parses: list[Path]) -> None:
    path = write(tmp_path / "odd.txt", TEXT + "a b 1 2\n")
    first, again = load(path), load(path)
    assert len(parses) == 1
    assert first.warnings == again.warnings == ("odd.txt: 1 line left out: no word with its numbers",)
    sound = load(write(tmp_path / "v.txt", TEXT))
    assert sound.warnings == ()
    assert sound.digest == first.digest


def test_an_npy_that_is_text_is_read_as_text(tmp_path: Path) -> None:
    """dialog-eval writes the vectors of its vocabulary into a text file called `vocab.npy`, beside `vocab.txt`."""
    write(tmp_path / "vocab.txt", "the\nof\nzero\n")
    assert load(write(tmp_path / "vocab.npy", TEXT)).words() == ["the", "of", "zero"]
    (tmp_path / "vocab.npy.gz").write_bytes(gzip.compress(TEXT.encode()))
    assert load(tmp_path / "vocab.npy.gz").words() == ["the", "of", "zero"]


def _load_in_child(path: str) -> tuple[str, float]:
    loaded = load_embeddings(path)
    return loaded.digest, float(loaded.vectors_for(["w77"])[0][0, 0])


def test_several_processes_at_once(tmp_path: Path, cache: Path) -> None:
    path = write(tmp_path / "v.txt", "".join(f"w{row} {row} 2\n" for row in range(20_000)))
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        seen = pool.map(_load_in_child, [str(path)] * 8, chunksize=1)
    assert set(seen) == {(load(path).digest, 77.0)}
    assert list((cache / "vectors").glob(".*")) == []


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingError, match="dialeval data add glove-6b"):
        load_embeddings("glove-6b")
    with pytest.raises(SettingError, match="did you mean 'glove-6b'"):
        load_embeddings("glove6b")
    with pytest.raises(SettingError, match="wordllama"):
        load_embeddings("zzz")
    with pytest.raises(DataError, match="no such file"):
        load_embeddings("vectors.txt")
    with pytest.raises(DataError, match="no such file"):
        load_embeddings(Path("vectors"))
    with pytest.raises(DataError, match="is a folder"):
        load_embeddings(tmp_path)


def test_from_a_pack(tmp_path: Path) -> None:
    for dimension in (50, 100, 200, 300):
        (tmp_path / f"glove.6B.{dimension}d.txt").write_text("the" + " 0.5" * dimension + "\n")
    packs.add_pack("glove-6b", from_folder=tmp_path)
    assert load_embeddings("glove-6b").dimension == 300
    small = load_embeddings("glove-6b/glove.6B.50d.txt")
    assert (small.dimension, small.name) == (50, "glove-6b/glove.6B.50d.txt")
    with pytest.raises(SettingError, match=r"it has .*glove\.6B\.100d\.txt"):
        load_embeddings("glove-6b/glove.6B.25d.txt")


def test_start_up_stays_fast() -> None:
    import subprocess

    slow = ("pyarrow", "numba", "scipy", "tokenizers", "urllib.request", "tarfile")
    code = f"import sys, dialeval.io.vectors; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.golden
def test_golden_vectors(shared_data: Path) -> None:
    path = shared_data / "dialog-eval" / "nasty-a" / "vectors.txt.gz"
    vectors: WordVectors = load(path)
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    twin = {line.split()[0]: [float(field) for field in line.split()[1:]] for line in lines}
    assert (len(lines), len(twin)) == (72, 71)
    found, known = vectors.vectors_for([*twin, "not-there"])
    assert known.tolist() == [True] * 71 + [False]
    assert found.tolist() == [*twin.values(), [0.0] * 25]
    assert not vectors.vectors_for(["zero"])[0].any()


def test_a_file_of_the_name_of_a_pack_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("glove-6b").write_text("one 1 2\n")
    with pytest.raises(SettingError, match="dialeval data add glove-6b"):
        load_embeddings("glove-6b")
    assert load_embeddings("./glove-6b").dimension == 2
    assert load_embeddings(Path("glove-6b")).dimension == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "link", "pipe"])
def test_a_changed_file_of_a_pack_is_refused(tmp_path: Path, damage: str) -> None:
    for size in (300, 200, 100, 50):
        numbers = " ".join(["0.5"] * size)
        (tmp_path / f"glove.6B.{size}d.txt").write_text(f"one {numbers}\ntwo {numbers}\n")
    file = packs.add_pack("glove-6b", from_folder=tmp_path).path / "glove.6B.50d.txt"
    name = "glove-6b/glove.6B.50d.txt"
    assert load_embeddings(name).dimension == 50
    sound = file.read_text()
    file.unlink()
    if damage == "pipe":
        os.mkfifo(file)
    elif damage == "link":
        file.symlink_to(tmp_path / "glove.6B.50d.txt")
    else:
        file.write_text(sound.splitlines(keepends=True)[0] if damage == "cut" else sound.replace("0.5", "0.7", 1))
    with pytest.raises(DataError, match=r"6B\.50d\.txt: .*(bytes instead of|SHA-256|no such file)"):
        load_embeddings(name)
