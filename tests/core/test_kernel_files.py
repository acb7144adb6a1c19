"""Code is kept wherever dialeval is installed, and damaged code is never executed."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dialeval
from core.some_kernels import SOURCE, some_kernels
from dialeval.core import kernel_files

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
    return kernel.compiled


def kept(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.kernel"))


def test_a_kernel_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled(tmp_path, monkeypatch) == 1
    assert len(kept(tmp_path / "__pycache__")) == 1
    assert compiled(tmp_path, monkeypatch) == 0
    assert compiled(tmp_path, monkeypatch, SOURCE + "\n") == 1, "another source"
    assert compiled(tmp_path, monkeypatch) == 0, "both are kept"
    assert some_kernels(tmp_path, monkeypatch).times_three(2.0) == 6.0
    assert len(kept(tmp_path)) == 3, "other types of arguments"


@pytest.mark.parametrize("variable", kernel_files._CHOICES)
def test_what_changes_the_code_is_in_its_name(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    before = kernel_files.digest_of("dialeval.text.words_kernel", "refill", ("int64",))
    monkeypatch.setenv(variable, "1")
    assert kernel_files.digest_of("dialeval.text.words_kernel", "refill", ("int64",)) != before


def test_what_a_module_imports_is_part_of_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel holds the code of those that it calls in other modules, and constants of any module."""
    package = tmp_path / "dialeval" / "kinds"
    package.mkdir(parents=True)
    sources = {
        "a": "from dialeval.kinds.b_kernel import f\nfrom dialeval.kinds.plain import SIZE\n",
        "b": "from dialeval.kinds.c_kernel import g\n",
        "c": "",
    }
    for name, text in sources.items():
        (package / f"{name}_kernel.py").write_text(text)
    (package / "plain.py").write_text("from dialeval.kinds.unknown import x\nSIZE = 3\n")
    monkeypatch.setattr(dialeval, "__path__", [*dialeval.__path__, str(tmp_path / "dialeval")])

    def digest() -> str:
        kernel_files._sources.cache_clear()
        return kernel_files.digest_of("dialeval.kinds.a_kernel", "f", ())

    seen = {digest()}
    for name in ("a_kernel", "b_kernel", "c_kernel", "plain"):
        with (package / f"{name}.py").open("a") as file:
            file.write("# changed\n")
        seen.add(digest())
    assert len(seen) == 5


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    compiled(tmp_path, monkeypatch)
    (file,) = kept(tmp_path)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with caplog.at_level(logging.WARNING, "dialeval"):
        assert compiled(tmp_path, monkeypatch) == 1
    assert {message.split("; ")[1] for message in caplog.messages} == {"the kernel is compiled anew"}
    assert compiled(tmp_path, monkeypatch) == 0


def test_a_folder_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert compiled(tmp_path / "package", monkeypatch) == 1
    assert len(kept(tmp_path / "chosen")) == 1
    assert compiled(tmp_path / "package", monkeypatch) == 0


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
    monkeypatch.setattr(kernel_files, "_is_writable", lambda _folder: False)
    assert kernel(2) == 6
    assert kernel.compiled == 0


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel_files, "write_bytes", full)
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    assert compiled(tmp_path / "package", monkeypatch) == 1
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
