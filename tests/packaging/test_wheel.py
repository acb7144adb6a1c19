"""The wheel holds all it needs: installed alone, without a network, it runs the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("dialeval/", "dialeval-")) for name in names)
    assert {"dialeval/py.typed", "dialeval/sample/responses/careful.txt"} <= set(names)
    for asset in (ROOT / "src" / "dialeval" / "reports" / "assets").iterdir():
        assert f"dialeval/reports/assets/{asset.name}" in names
    assert not [name for name in names if name.endswith((".nbi", ".nbc", ".pyc"))]
    assert any(name.endswith("LICENSE") for name in names)


def test_the_installed_wheel_runs_the_demo(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(place)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(place), "DIALEVAL_CACHE": str(tmp_path / "cache")}
    program = "import dialeval; assert dialeval.__file__.startswith({!r}); from dialeval.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program.format(str(place)), "demo"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.splitlines()[-1]).is_file()
