"""A file, a folder, or files that belong together are replaced whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Barrier, Thread

import pytest

from dialeval.core import files
from dialeval.core.errors import DataError, SettingError
from dialeval.core.files import (
    build_folder,
    cache_root,
    check_file,
    check_files,
    check_writable,
    discard,
    place_of,
    read_consistently,
    refuse_inputs,
    replace_file,
    replace_files,
    write_bytes,
    write_scratch,
)

RENAME = Path.replace
LEFT = ".scores.parquet.0123456789ab.unfinished"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is forced to the disk, for tests that save often."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


def test_the_old_file_stays_when_writing_fails(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(RuntimeError), replace_file(target) as beside:
        beside.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_the_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("x")
    write_bytes(tmp_path / "sub" / "file", b"new")
    assert (tmp_path / "sub" / "file").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "sub" / "file").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_what_is_written_is_forced_to_the_disk_before_it_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[tuple[int, bool]] = []

    def fsync(handle: int) -> None:
        forced.append((os.fstat(handle).st_ino, (tmp_path / "file").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_bytes(tmp_path / "file", b"new")
    assert forced == [((tmp_path / "file").stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_scratch_files_are_not_forced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _handle: pytest.fail("forced"))
    write_scratch(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    with pytest.raises(SettingError, match="set TMPDIR"):
        write_scratch(tmp_path / "file" / "deeper", b"new")


def test_nothing_is_written_through_a_link_and_a_device_is_left_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    for name, leads_to in (("link", tmp_path / "file"), ("dangling", tmp_path / "nowhere"), ("relative", "file")):
        (tmp_path / name).symlink_to(leads_to)
        with pytest.raises(DataError, match=rf"{name}: is a link to .*; name the file itself, or remove the link"):
            write_bytes(tmp_path / name, b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert not (tmp_path / "nowhere").exists()
    write_bytes(Path(os.devnull), b"gone")
    assert not Path(os.devnull).is_file()
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_bytes(tmp_path / "pipe", b"sent")
    assert os.read(reader, 10) == b"sent"
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_what_a_killed_process_left_is_removed_after_a_day(tmp_path: Path) -> None:
    old, folder, new = (tmp_path / f".x.0123456789a{letter}.unfinished" for letter in "abc")
    old.write_text("half")
    folder.mkdir()
    new.write_text("being written")
    (tmp_path / ".x.mine").write_text("of the user")
    for path in (old, folder, tmp_path / ".x.mine"):
        os.utime(path, (0, 0))
    write_bytes(tmp_path / "report.html", b"whole")
    assert {path.name for path in tmp_path.iterdir()} == {new.name, ".x.mine", "report.html"}
    os.utime(new, (0, 0))
    with build_folder(tmp_path / "y"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {".x.mine", "report.html", "y"}


def save(folder: Path, content: str) -> None:
    """Save a manifest with two files, all of which say the same."""
    with replace_files(folder, "manifest") as together:
        digests = [together.add_bytes(name, f"{content} {name}".encode()) for name in ("a", "b")]
        together.add_bytes("manifest", "\n".join([content, *digests]).encode())


def saved(folder: Path) -> str:
    """What the files of a folder say; DataError where they do not belong together."""

    def read() -> str:
        content, *digests = (folder / "manifest").read_text().split()
        for name, sha256 in zip("ab", digests, strict=True):
            try:
                found = place_of(folder / name, sha256).read_bytes()
            except FileNotFoundError:
                found = b""
            if found != f"{content} {name}".encode() or hashlib.sha256(found).hexdigest() != sha256:
                raise DataError([])
        return content

    return read_consistently(folder / "manifest", read)


def test_files_together_replace_the_old_ones_and_leave_others_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("of the user")
    (tmp_path / LEFT).write_text("half")
    os.utime(tmp_path / LEFT, (0, 0))
    save(tmp_path / "new" / "deep", "one")
    assert saved(tmp_path / "new" / "deep") == "one"
    shutil.rmtree(tmp_path / "new")
    for content in ("one", "two"):
        save(tmp_path / ".", content)
        assert saved(tmp_path) == content
        assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "manifest", "a", "b"}
    with replace_files(tmp_path, "manifest") as together:
        together.removed |= {"b", "manifest", "never"}
        together.add_bytes("manifest", b"three")
    assert {path.name for path in tmp_path.iterdir()} == {"notes.txt", "manifest", "a"}


@pytest.mark.parametrize("first", range(3))
def test_a_save_that_fails_at_any_rename_leaves_the_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    save(tmp_path, "one")
    done = []

    def rename(path: Path, target: Path) -> Path:
        done.append(target)
        if len(done) > first:
            raise OSError(28, "No space left on device")
        return RENAME(path, target)

    monkeypatch.setattr(Path, "replace", rename)
    with pytest.raises(DataError, match="No space left"):
        save(tmp_path, "two")
    monkeypatch.undo()
    assert saved(tmp_path) == "one"
    assert {path.name for path in tmp_path.iterdir()} == {"manifest", "a", "b"}


def test_saves_at_the_same_time_give_one_or_the_other(tmp_path: Path, quick: None) -> None:
    rounds, seen = 40, set()
    start = Barrier(3)

    def saver(content: str) -> None:
        for number in range(rounds):
            start.wait(60)
            save(tmp_path, f"{content}{number}")

    threads = [Thread(target=saver, args=(content,), daemon=True) for content in ("left", "right")]
    for thread in threads:
        thread.start()
    for number in range(rounds):
        start.wait(60)
        if number:  # while both write
            saved(tmp_path)
        if number == rounds - 1:
            for thread in threads:
                thread.join(60)
            seen.add(saved(tmp_path))
    assert seen <= {f"left{rounds - 1}", f"right{rounds - 1}"}
    assert {path.name for path in tmp_path.iterdir()} == {"manifest", "a", "b"}


class Killed(BaseException):
    """Stands for the end of the process."""


@contextmanager
def killed_at(step: int) -> Iterator[None]:
    """End the process, as it were, at one of its renames: what would be cleaned up stays."""
    done = 0

    def replace(path: Path, target: Path) -> Path:
        nonlocal done
        done += 1
        if done == step:
            raise Killed
        return RENAME(path, target)

    with pytest.MonkeyPatch.context() as patch, suppress(Killed):
        patch.setattr(Path, "replace", replace)
        patch.setattr(Path, "unlink", lambda _path, missing_ok=False: None)
        yield


def test_a_save_that_is_killed_leaves_the_old_files_or_the_new_ones(tmp_path: Path, quick: None) -> None:
    found = []
    for step in range(1, 7):
        folder = tmp_path / str(step)
        save(folder, "old")
        with killed_at(step):
            save(folder, "new")
        found.append(saved(folder))
        save(folder, "next")
        assert saved(folder) == "next"
        assert {path.name for path in folder.iterdir()} == {"manifest", "a", "b"}
    assert found == ["old", "old", "old", "new", "new", "new"], "the third rename is that of the manifest"


def test_a_killed_save_is_finished_by_the_next_even_if_that_fails(tmp_path: Path, quick: None) -> None:
    save(tmp_path, "old")
    with killed_at(4):
        save(tmp_path, "new")
    with killed_at(4):  # two renames for what waited, one for a file of its own
        save(tmp_path, "next")
    assert saved(tmp_path) == "new"


def test_a_save_that_fails_leaves_the_old_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None) -> None:
    save(tmp_path, "old")

    def refused(path: Path, target: Path) -> Path:
        if Path(target).name == "manifest":
            raise OSError(28, "No space left on device")
        return RENAME(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refused)
        with pytest.raises(DataError, match="No space left"):
            save(tmp_path, "new")
    assert saved(tmp_path) == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"manifest", "a", "b"}
    (tmp_path / "b").unlink()
    (tmp_path / "b").mkdir()
    with pytest.raises(DataError, match="b is a folder"):
        save(tmp_path, "new")
    assert (tmp_path / "manifest").read_text().startswith("old")


def test_a_manifest_that_lies_leads_nowhere(tmp_path: Path) -> None:
    for sha256 in ("", "../../x", "A" * 64, "0" * 64):
        assert place_of(tmp_path / "a", sha256) == tmp_path / "a"


def test_a_built_folder_appears_whole_and_goes_at_once(tmp_path: Path) -> None:
    with build_folder(tmp_path / "x" / "y") as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "a").write_text("1")
        assert not (tmp_path / "x" / "y").exists()
    assert (tmp_path / "x" / "y" / "deep" / "a").read_text() == "1"
    discard(tmp_path / "x" / "y")
    discard(tmp_path / "x" / "y")
    assert list((tmp_path / "x").iterdir()) == []


def test_files_out_of_a_workplace_take_their_places(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with files.make_workplace(folder) as place:
        (place / "x").write_bytes(b"written by another process")
        assert place.is_absolute()
        with files.replace_files(folder, "manifest") as together:
            together.take("part-0", str(place / "x"), files.sha256_of(place / "x"))
            together.take("part-1", b"given", hashlib.sha256(b"given").hexdigest())
            together.add_bytes("manifest", b"all of it")
        assert (folder / "part-0").read_bytes() == b"written by another process"
        assert (folder / "part-1").read_bytes() == b"given"
    assert sorted(path.name for path in folder.iterdir()) == ["manifest", "part-0", "part-1"]


def test_a_workplace_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyError), files.make_workplace(tmp_path / "new") as place:
        (place / "x").touch()
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be written"), files.make_workplace(tmp_path / "file"):
        pass


# Where the cache folder is; that it is made on use is in the tests of `resources.cache`.


def test_own_variable_comes_first_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DIALEVAL_CACHE", "~/own")
    assert cache_root() == tmp_path / "own"
    assert not (tmp_path / "own").exists()
    monkeypatch.setenv("DIALEVAL_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_root() == tmp_path / "xdg" / "dialeval"


def test_without_a_home_folder_one_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: Path("~/.cache/dialeval"))
    monkeypatch.setenv("DIALEVAL_CACHE", "")
    with pytest.raises(SettingError, match="set DIALEVAL_CACHE"):
        cache_root()


def test_the_home_folder_of_nobody_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", "~there_is_no_such_user/x")
    with pytest.raises(SettingError, match="DIALEVAL_CACHE='~there_is_no_such_user/x'"):
        cache_root()


def test_what_cannot_be_forced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems cannot do it for a folder; for a file it is an error."""

    def fsync(_handle: int) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    files.force(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Invalid argument"):
        files.force(tmp_path / "file")


def test_files_that_are_always_being_replaced_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    versions, reads = iter(range(1000)), []

    def read() -> None:
        reads.append(1)
        raise DataError([])

    with pytest.raises(DataError):
        read_consistently(tmp_path / "manifest", read)
    assert len(reads) == 1, "nothing was replaced meanwhile"
    monkeypatch.setattr(files, "_version", lambda _: next(versions))
    with pytest.raises(DataError):
        read_consistently(tmp_path / "manifest", read)
    assert len(reads) == 1 + 101
    assert read_consistently(tmp_path / "manifest", lambda: "read") == "read"


def test_a_folder_that_another_process_built_stays(tmp_path: Path) -> None:
    with build_folder(tmp_path / "x") as folder:
        (folder / "a").write_text("second")
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "a").write_text("first")
    assert (tmp_path / "x" / "a").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    (tmp_path / "file").write_text("of the user")
    with pytest.raises(NotADirectoryError), build_folder(tmp_path / "file"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"x", "file"}


# Files that would be overwritten are refused before long work.


def test_a_folder_is_tried_without_a_trace(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "folder")
    check_writable(tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    for wrong in (tmp_path / "file", tmp_path / "file" / "folder"):
        with pytest.raises(DataError, match="cannot be written"):
            check_writable(wrong)
    with pytest.raises(DataError, match="cannot be written"):
        check_file(tmp_path / "file" / "new")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "link").symlink_to(tmp_path)
    check_writable(tmp_path / "link")
    for link in (tmp_path / "dangling", tmp_path / "dangling" / "folder"):
        with pytest.raises(DataError, match="dangling: is a link to"):
            check_writable(link)
    with pytest.raises(DataError, match="dangling: is a link to"):
        check_file(tmp_path / "dangling")
    with pytest.raises(DataError, match=r"cannot be written \(is a folder\)"):
        check_file(tmp_path)
    check_file(None)
    check_file(Path(os.devnull))


def test_inputs_are_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("rows.jsonl", "a b.txt", "other"):
        Path(name).write_text("x")
    Path("link").symlink_to("rows.jsonl")
    os.link("rows.jsonl", "hard")
    Path("folder").mkdir()
    Path("folder", "x").write_text("x")
    target = tmp_path / "rows.jsonl"
    for given in ("rows.jsonl", "*.jsonl", "./**/rows.*", "link", "hard", {"a": "other", "b": Path("rows.jsonl")}):
        with pytest.raises(DataError, match=r"rows\.jsonl: would be overwritten, but it is an input"):
            refuse_inputs([target], None, given)
        with pytest.raises(DataError, match="is an input"):
            check_file(target, ("other", given))
    with pytest.raises(DataError, match="is an input"):
        refuse_inputs([Path("a b.txt")], f"file://{tmp_path}/a%20b.txt")
    with pytest.raises(DataError, match=r"is an input \(folder\)"):
        refuse_inputs([Path("folder/x")], "folder")
    for other in ("other", "s3://bucket/rows.jsonl", "glove-6b", ["rows.jsonl"], "x" * 5000, "a\0b", 3, "folder"):
        refuse_inputs([target, tmp_path / "new", Path("folder", "deep", "x")], other)


def test_files_of_others_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    (tmp_path / "yours").write_text("x")
    check_files(tmp_path, ["mine", "new"], lambda _folder: {"mine"})
    with pytest.raises(DataError) as error:
        check_files(tmp_path, ["mine", "yours", "new"], lambda _folder: {"mine"})
    assert [problem.where for problem in error.value.problems] == [str(tmp_path / "yours")]
    with pytest.raises(DataError, match="is an input"):
        check_files(tmp_path, ["mine"], lambda _folder: {"mine"}, tmp_path / "mine")


def test_many_files_and_many_inputs_are_looked_at_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets, inputs = [tmp_path / f"part-{at}" for at in range(50)], tmp_path / "inputs"
    inputs.mkdir()
    for file in (*targets, *(inputs / f"{at}.jsonl" for at in range(60))):
        file.touch()
    looked, plain = 0, Path.stat

    def stat(path: Path, **options: bool) -> os.stat_result:
        nonlocal looked
        looked += 1
        return plain(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    refuse_inputs(targets, f"{inputs}/*.jsonl")
    assert looked < 4 * (50 + 60)


def test_who_waits_too_long_for_another_save_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_WAIT_SECONDS", 0.05)
    with files._lock_folder(tmp_path), pytest.raises(DataError, match="another process is saving there"):
        save(tmp_path, "new")
    assert list(tmp_path.iterdir()) == []
    save(tmp_path, "new")
