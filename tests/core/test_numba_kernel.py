"""What numba compiles for kernels: code without Python, and nothing that allocates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core import config
from numba.core.errors import NumbaError

from dialeval.core.kernels import compile_kernel, kernel


def test_the_code_of_a_function() -> None:
    @kernel
    def logs(values, found):  # type: ignore[no-untyped-def]
        for place in range(len(values)):
            found[place] = np.log(values[place])
        return len(values), values[0]

    code, is_usual = compile_kernel(logs, (np.ones(3), np.ones(3)))
    assert is_usual
    assert (list(code.returns), code.returns_tuple) == (["int64", "float64"], True)
    assert code.needs == [], "logarithms are in the library of every C compiler"
    assert code.content.startswith(b"\x7fELF") or len(code.content) > 100
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert "readonly" not in compile_kernel(logs, (frozen, np.ones(3)))[0].symbol, "one kernel for both kinds of arrays"


def test_a_kernel_allocates_nothing() -> None:
    @kernel
    def zeros(size):  # type: ignore[no-untyped-def]
        return np.zeros(size)[0]

    with pytest.raises(NumbaError, match="Only accept returning of array passed into the function"):
        compile_kernel(zeros, (3,))


def test_settings_of_a_program_do_not_reach_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel
    def add(left, right):  # type: ignore[no-untyped-def]
        return left + right

    usual = compile_kernel(add, (1.0, 2.0))[0].content
    monkeypatch.setattr(config, "DEBUGINFO_DEFAULT", 1)
    monkeypatch.setattr(config, "CPU_NAME", "generic")
    code, is_usual = compile_kernel(add, (1.0, 2.0))
    assert not is_usual, "other settings were in use when the compiler was started"
    assert config.CPU_NAME == "generic", "those of the program are as before"
    assert len(code.content) == len(usual)


SETTINGS = {
    "another processor": "cpu_name: generic\ncpu_features: ''\n",
    "no compiler": "disable_jit: 1\n",
    "bounds": "boundscheck: 1\n",
    "no settings": "- 1\n",
    "no text": "\0",
}
OBEYED = {"another processor": "1", "bounds": "1", "no compiler": "0"}
"""A program that imports numba itself obeys these settings, and keeps nothing: how many kernels it compiles."""
PROGRAM = """
import sys
sys.path.insert(0, {package!r})
{first}
from some_kernel import times_three as kernel
assert kernel(2) == 6
print(kernel.compiled)
"""


def test_a_settings_file_of_the_working_folder_is_not_obeyed(tmp_path: Path) -> None:
    """Neither on import nor in the code that is kept, which a process elsewhere loads."""
    from core.some_kernels import SOURCE

    package, here = tmp_path / "package", tmp_path / "here"
    for folder in (package, here):
        folder.mkdir()
    (package / "some_kernel.py").write_text(SOURCE)

    def run(folder: Path, first: str = "") -> tuple[str, bytes]:
        program = tmp_path / "program.py"
        program.write_text(PROGRAM.format(package=str(package), first=first))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, str(program)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        kept = sorted(package.rglob("*.kernel"))
        return done.stdout.strip(), kept[0].read_bytes() if kept else b""

    compiled_here = run(package)
    assert compiled_here[0] == "1"
    for name, settings in SETTINGS.items():
        (here / ".numba_config.yaml").write_text(settings)
        next(package.rglob("*.kernel")).unlink()
        if name in OBEYED:
            assert run(here, "import numba") == (OBEYED[name], b""), name
        assert run(here) == compiled_here, name
    assert run(here)[0] == "0", "what is kept is loaded"
