"""Wheel and sdist are whole and as an index wants them; the wheel, installed alone without a network, runs the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from dialeval.core.kernels import list_baselines

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("built")
    build = [sys.executable, "-m", "build", "--wheel", "--sdist", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (wheel,) = built.glob("*.whl")
    return wheel


def test_both_are_as_an_index_wants_them(built: Path) -> None:
    """Metadata, and a README that can be shown there; a warning is an error."""
    check = [sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(built.iterdir()))]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_has_no_known_problem(wheel: Path) -> None:
    """Nothing at the top level that is not ours, no rubbish, no empty or doubled module."""
    check = [sys.executable, "-m", "check_wheel_contents", "--toplevel", "dialeval", str(wheel)]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_sdist_holds_what_builds_tests_and_documents(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    files = {"CITATION.cff", "LICENSE", "Makefile", "README.md", "SECURITY.md", "mkdocs.yml", "pyproject.toml"}
    assert files | {"src/dialeval/py.typed", "docs/images/report.png", "tools/site/hooks.py"} <= names
    assert any(name.startswith("tests/laws/") for name in names)
    assert not [name for name in names if name.endswith((".library", ".pyc"))]


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert all(name.startswith(("dialeval/", "dialeval-")) for name in names)
    assert {"dialeval/py.typed", "dialeval/sample_data/responses/careful.txt"} <= set(names)
    for asset in (ROOT / "src" / "dialeval" / "reports" / "assets").iterdir():
        assert f"dialeval/reports/assets/{asset.name}" in names
    assert not [name for name in names if name.endswith(".pyc")]
    assert any(name.endswith("LICENSE") for name in names)


def test_the_wheel_holds_compiled_kernels_for_its_platform(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    baselines = list_baselines()
    compiled = {f"dialeval/core/compiled/{baseline}.library" for baseline in baselines}
    assert compiled | {"dialeval/core/compiled/kernels.json"} <= names
    assert wheel.stem.split("-")[-3:-1] == ["py3", "none"], "any version of Python"
    assert wheel.stem.split("-")[-1] != "any"


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
