"""Kernels run wherever they are installed, and damaged code is never executed."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.core import cached_kernel

KERNEL = """
from dialeval.core.cached_kernel import njit

@njit(nogil=True)
def three(): return 3

@njit(cache=True)
def times_three(number): return number * three()
"""
NOWHERE = "/dev/null/nowhere"
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _content: b"",
    "cut": lambda content: content[:-7],
    "zeroed": lambda content: bytes(len(content)),
    "garbage": lambda content: b"\x80\x05garbage" + content,
    "a bit": lambda content: content[:-99] + bytes([content[-99] ^ 1]) + content[-98:],
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are tried anew in each test."""
    for name in ("_folder_for", "_own_folder", "_is_writable"):
        monkeypatch.setattr(cached_kernel, name, getattr(cached_kernel, name).__wrapped__)


def loaded(folder: Path) -> Any:
    """The kernel of a module that is imported anew."""
    file = folder / "some_kernel.py"
    if not file.exists():
        folder.mkdir(exist_ok=True)
        file.write_text(KERNEL)
    spec = spec_from_file_location("some_kernel", file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.times_three


def hits(kernel: Any) -> tuple[int, int]:
    """How many signatures were found in the cache, and how many were compiled; the kernel is called first."""
    assert kernel(2) == 6
    stats = kernel.stats
    return sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.nb?"))


def test_a_kernel_is_compiled_once(tmp_path: Path) -> None:
    assert hits(loaded(tmp_path)) == (0, 1)
    assert [file.suffix for file in kept(tmp_path / "__pycache__")] == [".nbc", ".nbi"]
    assert hits(loaded(tmp_path)) == (1, 0)
    (tmp_path / "some_kernel.py").write_text(KERNEL + "\n")
    assert hits(loaded(tmp_path)) == (0, 1), "another source"


def test_a_kernel_of_another_version_is_compiled_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hits(loaded(tmp_path)) == (0, 1)
    monkeypatch.setattr(cached_kernel, "__version__", "99")
    assert hits(loaded(tmp_path)) == (0, 1)
    assert hits(loaded(tmp_path)) == (1, 0)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_files_are_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, suffix: str, damage: str
) -> None:
    hits(loaded(tmp_path))
    (file,) = tmp_path.rglob(f"*{suffix}")
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[damage](whole))
    with caplog.at_level(logging.WARNING, "dialeval"):
        assert hits(loaded(tmp_path)) == (0, 1)
    assert {message.split("; ")[1] for message in caplog.messages} == {"the kernel is compiled anew"}
    assert hits(loaded(tmp_path)) == (1, 0)


def test_what_numba_cannot_load_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hits(loaded(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(cached_kernel._Results, "rebuild", lambda *_: int("of another make"))
        assert hits(loaded(tmp_path)) == (0, 1)
    assert "of another make" in caplog.text


def test_one_of_two_files_is_gone(tmp_path: Path) -> None:
    hits(loaded(tmp_path))
    for file in kept(tmp_path):
        file.unlink()
        assert hits(loaded(tmp_path)) == (0, 1)
        assert hits(loaded(tmp_path)) == (1, 0)


def test_a_package_that_may_only_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the place of `__pycache__` keeps everybody from making that folder, the superuser too."""
    loaded(tmp_path / "package")
    shutil.rmtree(tmp_path / "package" / "__pycache__", ignore_errors=True)
    (tmp_path / "package" / "__pycache__").write_text("")
    own = tmp_path / "cache"
    monkeypatch.setenv("DIALEVAL_CACHE", str(own))
    assert hits(loaded(tmp_path / "package")) == (0, 1)
    assert hits(loaded(tmp_path / "package")) == (1, 0)
    assert len(kept(own / "kernels")) == 2
    (own / "kernels").chmod(0o777)
    kernel = loaded(tmp_path / "package")
    assert hits(kernel) == (0, 1)
    assert kernel.stats.cache_path is None, "others could have written there"
    for variable in ("DIALEVAL_CACHE", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, NOWHERE)
    assert hits(loaded(tmp_path / "package")) == (0, 1)
    monkeypatch.delenv("DIALEVAL_CACHE")
    assert hits(loaded(tmp_path / "package")) == (0, 1)


def test_what_was_compiled_before_a_package_was_closed_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hits(loaded(tmp_path))
    monkeypatch.setattr(cached_kernel, "_is_writable", lambda _folder: False)
    assert hits(loaded(tmp_path)) == (1, 0)


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert hits(loaded(tmp_path)) == (0, 1)
    assert kept(tmp_path) == []


def test_the_whole_program_runs_without_any_place_to_write_to(tmp_path: Path) -> None:
    package = tmp_path / "dialeval"
    shutil.copytree(Path(dialeval.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {kernel.parent for kernel in package.rglob("*_kernel.py")}:
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
