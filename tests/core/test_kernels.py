"""Kernels loaded as machine code give what numba gives, for all that they may be called with."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from core.some_kernels import SOURCE, some_kernels
from dialeval.core import kernels
from dialeval.core.kernels import count_ones, load8, trailing_zeros

ARRAYS = [
    np.arange(6.0),
    np.arange(12.0)[::2],
    np.arange(6, dtype=np.int32),
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.frombuffer(bytes(8) + np.arange(4.0).tobytes(), np.uint8)[4:36],
    np.array([True, False]),
    np.zeros(0),
]


def by_numba(name: str, *arguments: Any) -> Any:
    """What the function of the module gives, as numba calls it."""
    return getattr(import_module("some_kernel"), name).dispatcher(*arguments)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}{array.strides}")
def test_arrays_of_every_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, array: Any) -> None:
    for _ in ("compiled", "loaded"):
        kernel = some_kernels(tmp_path, monkeypatch)
        found = kernel.total((array, array), 0.5)
        assert (found, type(found)) == (float(array.sum()), float)
        assert found == by_numba("total", (array, array), 0.5)
        if array.ndim == 1 and array.size and array.dtype != np.bool_:
            assert kernel.ends(array) == by_numba("ends", array)
            assert [type(each) for each in kernel.ends(array)][1:] == [bool, int]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        yield some_kernels(tmp_path_factory.mktemp("shared"), patch)


@given(left=st.lists(st.floats(allow_nan=False), max_size=20))
def test_what_a_kernel_writes_is_there(kernel: Any, left: list[float]) -> None:
    both = np.full(len(left), np.nan)
    assert kernel.add(np.array(left), np.ones(len(left)), both) is None
    np.testing.assert_array_equal(both, np.array(left) + 1)


def test_what_kernels_do_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = some_kernels(tmp_path, monkeypatch)
    with pytest.raises(OverflowError, match="more than 64 bits"):
        kernel.times_three(1 << 63)
    with pytest.raises(TypeError, match="takes no str"):
        kernel.times_three("three")
    with pytest.raises(AttributeError):
        kernel.four(4)


def test_a_kernel_that_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = some_kernels(tmp_path, monkeypatch)
    assert kernel.ratio(7, 2) == 3
    with pytest.raises(RuntimeError, match="status"):
        kernel.ratio(7, 0)


def test_threads_share_one_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = some_kernels(tmp_path, monkeypatch)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(kernel.times_three, range(64))) == [3 * number for number in range(64)]
    assert kernel.times_three.compiled == 1


def test_code_that_cannot_be_loaded_is_left_to_numba(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such processor")

    kernel = some_kernels(tmp_path, monkeypatch)
    monkeypatch.setattr(kernels, "_load_engine", fail)
    assert kernel.times_three(2) == 6
    assert kernel.ends(np.arange(4)) == (0, True, 4)
    assert "no such processor" in caplog.text
    assert "numba compiles it in each process" in caplog.text


def test_a_warm_process_does_not_import_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert some_kernels(tmp_path, monkeypatch).times_three(2) == 6
    program = "import sys; import some_kernel; print(some_kernel.times_three(2), 'numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{tmp_path}:{':'.join(sys.path)}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "6 False\n"


def test_every_kernel_that_calls_another_library_is_loaded_in_a_new_process(tmp_path: Path) -> None:
    """Roots of float32 are those of the C library, which LLVM finds only when it was told to look."""
    program = (
        "import logging, numpy as np, sys; logging.basicConfig(level='WARNING', stream=sys.stdout)\n"
        "from dialeval.metrics.encoder import add_and_normalize\n"
        "rows = np.ones((2, 3), np.float32); ones = np.ones(3, np.float32)\n"
        "add_and_normalize(rows, rows, ones, ones, ones, 1e-5)\n"
        "print('numba' in sys.modules)"
    )
    for _ in ("compiled", "loaded"):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# Code is kept wherever dialeval is installed, and damaged code is never executed.


NOWHERE = "/dev/null/nowhere"
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _content: b"",
    "cut": lambda content: content[:-7],
    "zeroed": lambda content: bytes(len(content)),
    "garbage": lambda content: b"\x80\x05garbage" + content,
    "a bit": lambda content: content[:-99] + bytes([content[-99] ^ 1]) + content[-98:],
}


def compiled(folder: Path, monkeypatch: pytest.MonkeyPatch, source: str = SOURCE) -> int:
    """How often a kernel is compiled when it is called in a new process."""
    kernel = some_kernels(folder, monkeypatch, source).times_three
    assert kernel(2) == 6
    count: int = kernel.compiled
    return count


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.kernel"))


def test_a_kernel_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled(tmp_path, monkeypatch) == 1
    assert len(kept(tmp_path / "__pycache__")) == 1
    assert compiled(tmp_path, monkeypatch) == 0
    other = SOURCE.replace("number * three()", "three() * number")
    assert compiled(tmp_path, monkeypatch, other) == 1, "another source"
    assert compiled(tmp_path, monkeypatch) == 0, "both are kept"
    assert some_kernels(tmp_path, monkeypatch).times_three(2.0) == 6.0
    assert len(kept(tmp_path)) == 3, "other types of arguments"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    compiled(tmp_path, monkeypatch)
    (file,) = kept(tmp_path)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with caplog.at_level(logging.WARNING, "dialeval"):
        assert compiled(tmp_path, monkeypatch) == 1
    assert {message.split("; ")[1] for message in caplog.messages} == {"the kernel is compiled again"}
    assert compiled(tmp_path, monkeypatch) == 0


def test_a_folder_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert compiled(tmp_path / "package", monkeypatch) == 1
    assert len(kept(tmp_path / "chosen")) == 1
    assert compiled(tmp_path / "package", monkeypatch) == 0


@pytest.mark.skipif(os.name != "posix", reason="owners and modes")
@pytest.mark.parametrize("place", ["folder", "parent", "file", "group"])
def test_code_that_others_can_write_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, place: str
) -> None:
    chosen, own = tmp_path / "parent" / "chosen", tmp_path / "own"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(chosen))
    monkeypatch.setenv("DIALEVAL_CACHE", str(own))
    monkeypatch.setattr(kernels, "_is_private_group", lambda _group: False)
    assert compiled(tmp_path / "package", monkeypatch) == 1
    (file,) = kept(chosen)
    loosened = {"folder": chosen, "parent": chosen.parent, "file": file, "group": chosen}[place]
    loosened.chmod(0o775 if place == "group" else 0o777)
    with caplog.at_level(logging.WARNING, "dialeval"):
        assert compiled(tmp_path / "package", monkeypatch) == 1
    if place == "file":
        assert file.stat().st_mode & 0o777 == 0o644, "it is written again"
    else:
        assert f"{chosen} is not used for compiled kernels" in caplog.text
        assert "NUMBA_CACHE_DIR" in caplog.text
        assert len(kept(tmp_path / "package")) == 1, "kept in the usual place"
    assert compiled(tmp_path / "package", monkeypatch) == 0


@pytest.mark.skipif(os.name != "posix", reason="owners and modes")
def test_code_of_another_user_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled(tmp_path, monkeypatch) == 1
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    monkeypatch.setattr(kernels, "_ROOT", user + 1)
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    assert compiled(tmp_path, monkeypatch) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_pipe_or_a_link_in_the_place_of_code_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled(tmp_path, monkeypatch) == 1
    (file,) = kept(tmp_path)
    content = file.read_bytes()
    file.unlink()
    os.mkfifo(file)
    assert compiled(tmp_path, monkeypatch) == 1
    file.unlink()
    (tmp_path / "elsewhere").write_bytes(content)
    file.symlink_to(tmp_path / "elsewhere")
    assert compiled(tmp_path, monkeypatch) == 1


def test_a_package_that_may_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the place of `__pycache__` keeps everybody from making that folder, the superuser too."""
    package, own = tmp_path / "package", tmp_path / "cache"
    package.mkdir()
    (package / "__pycache__").write_text("")
    monkeypatch.setenv("DIALEVAL_CACHE", str(own))
    assert compiled(package, monkeypatch) == 1
    assert compiled(package, monkeypatch) == 0
    assert len(kept(own / "kernels")) == 1
    (own / "kernels").chmod(0o777)
    assert compiled(package, monkeypatch) == 1, "others could have written there"
    for variable in ("DIALEVAL_CACHE", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, NOWHERE)
    assert compiled(package, monkeypatch) == 1
    monkeypatch.delenv("DIALEVAL_CACHE")
    assert compiled(package, monkeypatch) == 1


def test_what_was_compiled_before_a_package_was_closed_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(tmp_path, monkeypatch)
    kernel = some_kernels(tmp_path, monkeypatch).times_three
    monkeypatch.setattr(kernels, "_is_writable", lambda _folder: False)
    assert kernel(2) == 6
    assert kernel.compiled == 0


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernels, "write_sealed", full)
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    assert compiled(tmp_path / "package", monkeypatch) == 1
    assert kept(tmp_path) == []


def test_the_whole_program_runs_without_any_place_to_write_to(tmp_path: Path) -> None:
    package = tmp_path / "dialeval"
    shutil.copytree(Path(dialeval.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {module.parent for module in package.rglob("*.py")}:
        (folder / "__pycache__").write_text("")
    (tmp_path / "a.txt").write_text("one two\nthree\n")
    program = "import dialeval, sys; print(dialeval.__file__); from dialeval.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "score", "a.txt", "-m", "length", "-f", "csv"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "HOME": NOWHERE, "DIALEVAL_CACHE": NOWHERE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == str(package / "__init__.py")
    assert "1.5" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="owners and modes")
def test_which_folders_are_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_safe, choose = kernels._is_safe.__wrapped__, kernels._choose_folder.__wrapped__
    monkeypatch.setattr(kernels, "_is_private_group", lambda _group: False)
    kernels._is_safe.cache_clear()
    chosen = choose(str(tmp_path / "new" / "deep"), "NUMBA_CACHE_DIR")
    assert chosen == (tmp_path / "new" / "deep").resolve()
    assert chosen.stat().st_mode & 0o777 == 0o700
    assert choose(str(tmp_path / "new" / "deep"), "NUMBA_CACHE_DIR") == chosen, "it exists by now"
    assert is_safe(chosen) is True
    assert is_safe(chosen / "missing") is False
    chosen.parent.chmod(0o777)
    assert is_safe(chosen) is False
    chosen.parent.chmod(0o1777)
    assert is_safe(chosen) is True, "nobody can replace the files of others there"
    chosen.chmod(0o1777)
    assert is_safe(chosen) is False, "anybody can write a new file there"
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        assert is_safe(chosen) is True
    (tmp_path / "file").write_text("")
    assert choose(str(tmp_path / "file" / "folder"), "NUMBA_CACHE_DIR") is None
    kernels._is_safe.cache_clear()


@pytest.mark.skipif(os.name != "posix", reason="groups")
def test_a_group_is_private_if_it_is_the_users_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import grp
    import pwd

    monkeypatch.setattr(pwd, "getpwuid", lambda _user: SimpleNamespace(pw_name="ann"))
    known = {1: ("ann", []), 2: ("ann", ["ann"]), 3: ("ann", ["bob"]), 4: ("users", []), 6: ("ann", ["ann", "root"])}
    groups = {group: SimpleNamespace(gr_name=name, gr_mem=members) for group, (name, members) in known.items()}
    monkeypatch.setattr(grp, "getgrgid", groups.__getitem__)
    asked = kernels._is_private_group.__wrapped__
    assert [asked(group) for group in (1, 2, 3, 4, 5, 6)] == [True, True, False, False, False, True]


def test_called_kernels_and_constants_are_part_of_the_source() -> None:
    """A kernel holds the code of those that it calls, and constants of its module."""
    source = "from dialeval.core.kernels import kernel\nSIZE = {size}\n"
    source += "@kernel\ndef g(x): return x + {added}\n@kernel\ndef f(x): return g(x) * SIZE{rest}\n"
    seen = set()
    for change in ({}, {"size": 4}, {"added": 2}, {"rest": " + 1"}):
        names: dict[str, Any] = {"__name__": "some"}
        exec(source.format(**({"size": 3, "added": 1, "rest": ""} | change)), names)
        seen.add(names["f"].source_digest)
    assert len(seen) == 4


@pytest.mark.parametrize("variable", ["NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_SLP_VECTORIZE"])
def test_what_changes_the_code_is_in_its_name(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    before = kernels.digest_of("source", "refill", ("int64",))
    monkeypatch.setenv(variable, "1")
    assert kernels.digest_of("source", "refill", ("int64",)) != before
    monkeypatch.delenv(variable)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert kernels.digest_of("source", "refill", ("int64",)) == before


@given(st.binary(min_size=16, max_size=40), st.integers(0, 8))
def test_eight_bytes_at_any_position(data: bytes, place: int) -> None:
    assert load8(np.frombuffer(data, np.uint8), place) == int.from_bytes(data[place : place + 8], "little")


@given(st.integers(1, 2**64 - 1))
def test_zero_bits_below_the_lowest_set_bit(value: int) -> None:
    assert trailing_zeros(np.uint64(value)) == (value & -value).bit_length() - 1


@given(st.integers(0, 2**64 - 1))
def test_set_bits(value: int) -> None:
    assert count_ones(np.uint64(value)) == value.bit_count()
